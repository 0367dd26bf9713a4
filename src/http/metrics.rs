//! What the server counts, for Prometheus.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;

use super::authorization::Authenticated;
use super::problem::ProblemResponse;
use super::state::ApiState;
use super::{App, ConnectionLimits, MetricsRoute};
use crate::engine::Engine;
use crate::error::{Code, Error};
use crate::ids::Tenant;

const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Metrics in the text format of Prometheus
///
/// They tell of all tenants, so only an administrator of tenant `default` may read them. Not found where `metrics.enabled` is false.
#[utoipa::path(get, path = "/metrics", tag = "server", operation_id = "metrics",
    responses((status = OK, body = String, content_type = "text/plain")))]
pub(crate) async fn metrics(
    State(state): State<Arc<ApiState>>,
    Authenticated(caller): Authenticated,
) -> Result<impl IntoResponse, ProblemResponse> {
    if state.metrics == MetricsRoute::Closed {
        let message = "metrics are switched off; set metrics.enabled (SKILLBOX_METRICS_ENABLED)";
        return Err(Error::new(Code::NotFound, message).into());
    }
    if *caller.tenant() != Tenant::default_tenant() {
        let message = "metrics cover all tenants: only an administrator of tenant `default` may read them";
        return Err(Error::new(Code::Forbidden, message).into());
    }
    Ok(([(header::CONTENT_TYPE, MEDIA_TYPE)], state.engine.metrics_text()))
}

/// The same on an address of its own: without a key, and nothing besides.
#[must_use]
pub fn metrics_app(engine: Engine) -> App {
    let open =
        async |State(engine): State<Engine>| ([(header::CONTENT_TYPE, MEDIA_TYPE)], engine.metrics_text());
    App {
        router: Router::new().route("/metrics", get(open)).with_state(engine),
        bounds: ConnectionLimits::default(),
    }
}
