//! `/v1/deps`: installed packages.

use axum::http::StatusCode;

use super::authorization::Call;
use super::extract::{Json, Path};
use super::page::{PageQuery, Paging};
use super::problem::{JsonResult, ProblemResponse};
use crate::api::List;
use crate::api::packages::{self, PackageSetInfo, Prefetch};
use crate::ids::Digest;

/// List installed packages
///
/// Newest first.
#[utoipa::path(get, path = "/v1/deps", tag = "deps", operation_id = "list_deps", params(PageQuery),
    responses((status = OK, body = List<PackageSetInfo>)))]
pub(crate) async fn list(call: Call, Paging(page): Paging) -> JsonResult<List<PackageSetInfo>> {
    Ok(axum::Json(
        packages::list(call.engine(), &call.caller, page).await?,
    ))
}

/// Install a skill's packages in advance
///
/// Responds when all packages of its program and scripts are installed; immediately if they were before.
#[utoipa::path(post, path = "/v1/deps/prefetch", tag = "deps", operation_id = "prefetch_deps", request_body = Prefetch,
    responses((status = OK, description = "Installed", body = List<PackageSetInfo>)))]
pub(crate) async fn prefetch(
    call: Call,
    Json(body, _held): Json<Prefetch>,
) -> JsonResult<List<PackageSetInfo>> {
    Ok(axum::Json(
        packages::prefetch(call.engine(), &call.caller, body, None).await?,
    ))
}

/// Delete installed packages
///
/// The next run that needs them installs them again. Running programs are not affected.
#[utoipa::path(delete, path = "/v1/deps/{key}", tag = "deps", operation_id = "delete_deps",
    params(("key" = String, Path, format = "digest", description = "`key` of the set, from the list")),
    responses((status = NO_CONTENT, description = "Deleted, or not found")))]
pub(crate) async fn delete(call: Call, Path(key): Path<Digest>) -> Result<StatusCode, ProblemResponse> {
    packages::delete(call.engine(), &call.caller, &key).await?;
    Ok(StatusCode::NO_CONTENT)
}
