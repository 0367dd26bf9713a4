//! Whether the server lives and can work; and where to read on.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};

use super::state::ApiState;

/// Where to read on.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct Index {
    /// What this is.
    name: &'static str,
    /// The document of this API.
    openapi: &'static str,
    /// Whether the server can do its work.
    ready: &'static str,
}

/// A sign of life.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct Alive {
    /// `ok`.
    #[schema(example = "ok")]
    status: &'static str,
}

/// Readiness of the server. The reasons for a failed check are in its log and in `skillbox doctor`, since this route needs no key.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Ready {
    /// Whether every check passed.
    pub ready: bool,
    /// Each part.
    pub checks: Vec<Part>,
}

/// One part's health.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Part {
    /// `server`, `store`, `blob` or `sandbox`.
    #[schema(example = "sandbox")]
    pub name: String,
    /// Whether it works.
    pub ok: bool,
}

/// Where to read on
#[utoipa::path(get, path = "/", tag = "server", responses((status = OK, body = Index)))]
pub(crate) async fn index() -> Json<Index> {
    Json(Index {
        name: "skillbox",
        openapi: "/openapi.json",
        ready: "/readyz",
    })
}

/// A sign of life
#[utoipa::path(get, path = "/healthz", tag = "server", responses((status = OK, body = Alive)))]
pub(crate) async fn healthz() -> Json<Alive> {
    Json(Alive { status: "ok" })
}

/// Whether the server can do its work
///
/// Lists each part and whether it works. The reasons for a failed check are in the server's log and in `skillbox doctor`.
#[utoipa::path(get, path = "/readyz", tag = "server",
    responses((status = OK, body = Ready), (status = SERVICE_UNAVAILABLE, description = "Some part does not work", body = Ready)))]
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
