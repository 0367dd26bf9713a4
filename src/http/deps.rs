//! `/v1/deps`: installed packages, listed, installed in advance, forgotten.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;

use super::authorization::Authenticated;
use super::extract::{Json, Path, Query};
use super::page::PageQuery;
use super::problem::ProblemResponse;
use super::state::ApiState;
use crate::api::List;
use crate::api::packages::{self, PackageSetInfo, Prefetch};
use crate::ids::Digest;

/// List installed packages
///
/// The newest first.
#[utoipa::path(get, path = "/v1/deps", tag = "deps", operation_id = "list_deps", params(PageQuery),
    responses((status = OK, body = List<PackageSetInfo>)))]
pub(crate) async fn list(
    State(state): State<Arc<ApiState>>,
    Authenticated(caller): Authenticated,
    Query(page): Query<PageQuery>,
) -> Result<axum::Json<List<PackageSetInfo>>, ProblemResponse> {
    let page = page.into_request()?;
    Ok(axum::Json(packages::list(&state.engine, &caller, page).await?))
}

/// Install a skill's packages in advance
///
/// Answers when all that its program and its scripts ask for is installed: at once if it was before.
#[utoipa::path(post, path = "/v1/deps/prefetch", tag = "deps", operation_id = "prefetch_deps", request_body = Prefetch,
    responses((status = OK, description = "Installed", body = List<PackageSetInfo>)))]
pub(crate) async fn prefetch(
    State(state): State<Arc<ApiState>>,
    Authenticated(caller): Authenticated,
    Json(body, _held): Json<Prefetch>,
) -> Result<axum::Json<List<PackageSetInfo>>, ProblemResponse> {
    Ok(axum::Json(
        packages::prefetch(&state.engine, &caller, body, None).await?,
    ))
}

/// Forget installed packages
///
/// The next run that needs them installs them again. Running programs are not affected.
#[utoipa::path(delete, path = "/v1/deps/{key}", tag = "deps", operation_id = "delete_deps",
    params(("key" = String, Path, description = "As in the list")),
    responses((status = NO_CONTENT, description = "Forgotten, or never known")))]
pub(crate) async fn delete(
    State(state): State<Arc<ApiState>>,
    Authenticated(caller): Authenticated,
    Path(key): Path<Digest>,
) -> Result<StatusCode, ProblemResponse> {
    packages::delete(&state.engine, &caller, &key).await?;
    Ok(StatusCode::NO_CONTENT)
}
