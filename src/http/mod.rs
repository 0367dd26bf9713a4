//! The REST door: translates, never decides.

mod accept;
mod access;
mod activity;
mod answer;
mod args;
mod artifacts;
mod attachment;
mod blobs;
mod body;
mod budget;
mod content;
mod deps;
mod document;
mod door;
mod events;
mod exchange;
mod executions;
mod extract;
mod gate;
mod guard;
mod health;
mod host;
mod keys;
mod links;
mod metrics;
mod page;
mod problem;
mod range;
mod routes;
mod secrets;
mod serve;
mod skills;
mod throttle;
mod tools;
mod upload;
mod webhooks;
mod wire;

use std::any::Any;
use std::sync::Arc;

use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Router};
use tower_http::catch_panic::CatchPanicLayer;

use crate::engine::Engine;
use crate::error::Error;

use door::Door;
use host::Hosts;

pub use access::{Access, Matrix};
pub use blobs::{BLOB_CREATED_AT, BLOB_EXPIRES_AT, BlobInfo};
pub use deps::Packages;
pub use door::{MetricsRoute, Settings};
pub use events::{EndEvent, EndReason, PrintedEvent, StatusEvent};
pub use executions::StreamTexts;
pub use health::{Part, Ready};
pub use metrics::metrics_app;
pub use page::List;
pub use problem::Problem;
pub use secrets::Secret;
pub use serve::{App, Bounds, Peer, serve};
pub use tools::ToolDefinition;
pub use webhooks::{Delivery, SigningSecret};
pub use wire::{FreshKey, Key, Skill, SkillSummary};

/// The door to `engine`, ready to be served.
#[must_use]
pub fn app(engine: Engine, settings: &Settings) -> App {
    let bounds = Bounds::default();
    let door = Arc::new(Door::new(engine.clone(), settings));
    let table = routes::table();
    let guard = guard::Guard {
        door: Arc::clone(&door),
        matrix: Arc::new(table.matrix.clone()),
    };
    let document = document::written(&table);
    let hosts = Arc::new(Hosts::new(
        settings.server_url.as_deref(),
        &settings.allowed_hosts,
    ));
    let router = Router::from(table.router)
        .route_layer(from_fn_with_state(guard, guard::guard))
        .fallback(|| async { axum::http::StatusCode::NOT_FOUND })
        .with_state(door)
        // Each extractor has its own cap.
        .layer(DefaultBodyLimit::disable())
        .layer(Extension(document))
        .layer(from_fn_with_state(hosts, gate::gate))
        .layer(from_fn_with_state(bounds, body::patient))
        .layer(CatchPanicLayer::custom(panicked))
        .layer(from_fn_with_state(engine, exchange::exchange));
    App { router, bounds }
}

/// Who may call what.
#[must_use]
pub fn matrix() -> Matrix {
    routes::table().matrix
}

/// The OpenAPI document.
#[must_use]
pub fn document() -> serde_json::Value {
    serde_json::to_value(document::document(&routes::table())).expect("the document always serializes")
}

#[expect(clippy::needless_pass_by_value, reason = "the layer hands it over like this")]
fn panicked(payload: Box<dyn Any + Send>) -> Response {
    let text = payload
        .downcast_ref::<&str>()
        .map(ToString::to_string)
        .or_else(|| payload.downcast_ref::<String>().cloned());
    let cause = format!("a handler panicked: {}", text.unwrap_or_default());
    problem::Refusal::from(Error::internal(cause)).into_response()
}
