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
use state::ApiState;

pub use access::{Access, Matrix};
pub use blobs::{BLOB_CREATED_AT, BLOB_EXPIRES_AT};
pub use health::{Part, Ready};
pub use metrics::metrics_app;
pub use serve::{App, ConnectionLimits, Peer, serve};
pub use state::{Dashboard, MetricsRoute, Settings};

/// Path of the Model Context Protocol.
const MCP_PATH: &str = "/mcp";

/// The REST API over `engine`.
#[must_use]
pub fn app(engine: Engine, settings: &Settings) -> App {
    let bounds = settings.connections;
    let state = Arc::new(ApiState::new(engine.clone(), settings));
    let table = routes::table();
    let guard = authorization::Authorizer {
        state: Arc::clone(&state),
        matrix: Arc::new(table.matrix.clone()),
    };
    let document = document::written(&table);
    let hosts = Arc::new(Hosts::new(
        settings.server_url.as_deref(),
        &settings.allowed_hosts,
    ));
    let mut router =
        Router::from(table.router).route_layer(from_fn_with_state(guard, authorization::authorize));
    if settings.dashboard == Dashboard::Served {
        router = router.merge(ui::routes());
    }
    let router = router
        .fallback(|| async { axum::http::StatusCode::NOT_FOUND })
        .with_state(state)
        // Each extractor has a limit of its own.
        .layer(DefaultBodyLimit::disable())
        .layer(Extension(document))
        .layer(from_fn_with_state(hosts, request_filter::filter_request))
        .layer(from_fn_with_state(bounds, body::limit_body_time))
        .layer(CatchPanicLayer::custom(panicked))
        .layer(from_fn_with_state(engine, outer_layer::outer_layer));
    App { router, bounds }
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
