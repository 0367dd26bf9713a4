//! The REST API: translates, never decides.

mod accept;
mod access;
mod activity;
mod artifacts;
mod attachment;
mod audit;
mod authorization;
mod blobs;
mod body;
mod budget;
mod changes;
mod content;
mod deps;
mod document;
mod events;
mod executions;
mod extract;
#[cfg(feature = "grpc")]
mod grpc_schema;
mod health;
mod host;
mod inert;
mod keys;
mod links;
#[cfg(feature = "mcp")]
mod mcp;
mod metrics;
mod outer_layer;
mod page;
mod problem;
mod prove;
mod range;
mod request_filter;
mod rerun;
mod response;
mod results;
mod routes;
pub(crate) mod sdk;
mod secrets;
mod serve;
mod server_info;
mod session;
mod skill_files;
mod skills;
mod state;
mod stats;
mod text_formats;
mod throttle;
mod tools;
mod ui;
mod upload;
mod webhooks;

use std::any::Any;
use std::sync::Arc;

use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Router};
use tower_http::catch_panic::CatchPanicLayer;

use crate::engine::Engine;
use crate::error::Error;

use host::Hosts;
use outer_layer::OuterLayer;

#[cfg(feature = "grpc")]
pub(crate) use {
    authorization::{Call, FileTenant},
    body::{read as read_body, read_error},
    budget::BudgetShare,
    events::ExecutionEvents,
    executions::{envelope, execute},
    problem::ProblemResponse,
    request_filter::RequestedHost,
    response::wait_for_share,
    state::run_detached,
    upload::{check_requirements, receive_pieces},
};

pub(crate) use state::ApiState;

pub use access::{Access, Matrix};
pub use blobs::{BLOB_CREATED_AT, BLOB_EXPIRES_AT};
pub use health::{Part, Ready};
pub use metrics::metrics_app;
pub use serve::{App, ConnectionLimits, ConnectionSlots, Peer, serve, serve_within};
pub use state::{Dashboard, MetricsRoute, Settings};

/// Path of the Model Context Protocol.
const MCP_PATH: &str = "/mcp";
/// What all transports of a server use together: its budgets, its counters of wrong keys, and its limits.
#[derive(Clone, Debug)]
pub struct Api {
    state: Arc<ApiState>,
    hosts: Arc<Hosts>,
    bounds: ConnectionLimits,
}

/// The REST API over `engine`.
#[must_use]
pub fn app(engine: Engine, settings: &Settings) -> App {
    Api::new(engine, settings).rest()
}

impl Api {
    #[must_use]
    pub fn new(engine: Engine, settings: &Settings) -> Self {
        Self {
            state: Arc::new(ApiState::new(engine, settings)),
            hosts: Arc::new(Hosts::new(
                settings.server_url.as_deref(),
                &settings.allowed_hosts,
            )),
            bounds: settings.connections,
        }
    }

    /// The REST API.
    #[must_use]
    pub fn rest(&self) -> App {
        let table = routes::table();
        let document = document::written(&table);
        let mut router = self.authorized(Router::from(table.router), table.matrix);
        if self.state.dashboard == Dashboard::Served {
            router = router.merge(ui::routes());
        }
        let router = router
            .fallback(|| async { axum::http::StatusCode::NOT_FOUND })
            .with_state(Arc::clone(&self.state))
            .layer(Extension(document));
        self.app(router, problem::render)
    }

    #[cfg(feature = "grpc")]
    pub(crate) fn state(&self) -> Arc<ApiState> {
        Arc::clone(&self.state)
    }

    /// These routes, of which each request is authorized by `matrix`.
    pub(crate) fn authorized(&self, router: Router<Arc<ApiState>>, matrix: Matrix) -> Router<Arc<ApiState>> {
        let authorizer = authorization::Authorizer {
            state: Arc::clone(&self.state),
            matrix: Arc::new(matrix),
        };
        router.route_layer(from_fn_with_state(authorizer, authorization::authorize))
    }

    /// A transport with the checks and limits of all of them; `render` writes its errors.
    pub(crate) fn app(&self, router: Router, render: fn(Response, &Error, &str) -> Response) -> App {
        let engine = self.state.engine.clone();
        let router = router
            // Each extractor has a limit of its own.
            .layer(DefaultBodyLimit::disable())
            .layer(from_fn_with_state(
                Arc::clone(&self.hosts),
                request_filter::filter_request,
            ))
            .layer(from_fn_with_state(self.bounds, body::limit_body_time))
            .layer(CatchPanicLayer::custom(panicked))
            .layer(from_fn_with_state(
                OuterLayer { engine, render },
                outer_layer::outer_layer,
            ));
        App {
            router,
            bounds: self.bounds,
        }
    }
}

/// The access matrix.
#[must_use]
pub fn matrix() -> Matrix {
    routes::table().matrix
}

#[must_use]
pub fn document() -> serde_json::Value {
    document::document(&routes::table())
}

#[expect(clippy::needless_pass_by_value, reason = "the layer hands it over like this")]
fn panicked(payload: Box<dyn Any + Send>) -> Response {
    let text = payload
        .downcast_ref::<&str>()
        .map(ToString::to_string)
        .or_else(|| payload.downcast_ref::<String>().cloned());
    let cause = format!("a handler panicked: {}", text.unwrap_or_default());
    problem::ProblemResponse::from(Error::internal(cause)).into_response()
}
