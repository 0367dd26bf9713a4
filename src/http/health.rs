//! Health, readiness and the index.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde::{Deserialize, Serialize};

use super::state::{ApiState, Dashboard};
use super::ui;

/// Links to further documents.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct Index {
    /// Name of the server.
    name: &'static str,
    /// Path of the OpenAPI document.
    openapi: &'static str,
    /// Path of the readiness check.
    ready: &'static str,
}

/// Liveness.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct Alive {
    /// `ok`, or `storage_failed` when the database accepts nothing any more and the server ends.
    #[schema(example = "ok")]
    status: &'static str,
}

/// Readiness of the server. The reasons for a failed check are in its log and in `skillbox doctor`, since this route needs no key.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Ready {
    /// Whether every check passed.
    pub ready: bool,
    pub checks: Vec<Part>,
}

/// Readiness of a component.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Part {
    /// `server`, `store`, `blob` or `sandbox`.
    #[schema(example = "sandbox")]
    pub name: String,
    /// Whether it works.
    pub ok: bool,
}

/// Index
///
/// Browsers are redirected to the dashboard.
#[utoipa::path(get, path = "/", tag = "server",
    responses((status = OK, body = Index), (status = SEE_OTHER, description = "The dashboard, for a client that prefers HTML")))]
pub(crate) async fn index(State(state): State<Arc<ApiState>>, headers: HeaderMap) -> Response {
    let mut response = if state.dashboard == Dashboard::Served && ui::prefers_html(&headers) {
        ui::to_dashboard()
    } else {
        let index = Index {
            name: "skillbox",
            openapi: "/openapi.json",
            ready: "/readyz",
        };
        Json(index).into_response()
    };
    let vary = HeaderValue::from_static("accept");
    response.headers_mut().insert(header::VARY, vary);
    response
}

/// Check liveness
#[utoipa::path(get, path = "/healthz", tag = "server",
    responses((status = OK, body = Alive), (status = SERVICE_UNAVAILABLE, description = "The database failed and the server ends", body = Alive)))]
pub(crate) async fn healthz(State(state): State<Arc<ApiState>>) -> (StatusCode, Json<Alive>) {
    let (code, status) = if state.has_failed_storage() {
        (StatusCode::SERVICE_UNAVAILABLE, "storage_failed")
    } else {
        (StatusCode::OK, "ok")
    };
    (code, Json(Alive { status }))
}

/// Check readiness
///
/// Lists each component and whether it works. The server's log and `skillbox doctor` show the reasons of failed
/// checks.
#[utoipa::path(get, path = "/readyz", tag = "server",
    responses((status = OK, body = Ready), (status = SERVICE_UNAVAILABLE, description = "A check failed", body = Ready)))]
pub(crate) async fn readyz(State(state): State<Arc<ApiState>>) -> (StatusCode, Json<Ready>) {
    let readiness = state.readiness().await;
    let status = if readiness.ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    let checks = readiness.checks.iter().map(|check| Part {
        name: check.name.to_owned(),
        ok: check.ok,
    });
    let ready = Ready {
        ready: readiness.ready,
        checks: checks.collect(),
    };
    (status, Json(ready))
}
