//! Health, readiness and the index.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};

use super::state::ApiState;

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
#[utoipa::path(get, path = "/", tag = "server", responses((status = OK, body = Index)))]
pub(crate) async fn index() -> Json<Index> {
    Json(Index {
        name: "skillbox",
        openapi: "/openapi.json",
        ready: "/readyz",
    })
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
