//! Metrics for Prometheus.

use axum::Router;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;

use super::authorization::Call;
use super::problem::ProblemResponse;
use super::{App, ConnectionLimits, MetricsRoute};
use crate::engine::Engine;
use crate::error::{Code, Error};
use crate::ids::Tenant;

const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Metrics in the text format of Prometheus
///
/// They cover all tenants, so only an administrator of tenant `default` may read them. Returns 404 if
/// `metrics.enabled` is false.
#[utoipa::path(get, path = "/metrics", tag = "server", operation_id = "metrics",
    responses((status = OK, body = String, content_type = "text/plain")))]
pub(crate) async fn metrics(call: Call) -> Result<impl IntoResponse, ProblemResponse> {
    if call.state.metrics == MetricsRoute::Closed {
        let message = "metrics are disabled; set metrics.enabled (SKILLBOX_METRICS_ENABLED)";
        return Err(Error::new(Code::NotFound, message).into());
    }
    if *call.tenant() != Tenant::default_tenant() {
        let message = "metrics cover all tenants; use an administrator key of tenant `default`";
        return Err(Error::new(Code::Forbidden, message).into());
    }
    Ok((
        [(header::CONTENT_TYPE, MEDIA_TYPE)],
        call.state.engine.metrics_text(),
    ))
}

/// The metrics route without authentication, for an address of its own.
#[must_use]
pub fn metrics_app(engine: Engine) -> App {
    let open =
        async |State(engine): State<Engine>| ([(header::CONTENT_TYPE, MEDIA_TYPE)], engine.metrics_text());
    App {
        router: Router::new().route("/metrics", get(open)).with_state(engine),
        bounds: ConnectionLimits::default(),
    }
}
