//! `/v1/keys`: API keys.

use axum::http::StatusCode;

use super::authorization::Call;
use super::extract::{Json, Path};
use super::page::{PageQuery, Paging};
use super::problem::{JsonResult, ProblemResponse};
use crate::api::List;
use crate::api::keys::{self, CreateKey, FreshKey, KeyInfo};
use crate::ids::KeyId;

/// Create an API key
///
/// The response contains the secret, which is never shown again.
#[utoipa::path(post, path = "/v1/keys", tag = "keys", operation_id = "create_key", request_body = CreateKey,
    responses((status = CREATED, description = "Created", body = FreshKey)))]
pub(crate) async fn create(
    call: Call,
    Json(body, _held): Json<CreateKey>,
) -> Result<(StatusCode, axum::Json<FreshKey>), ProblemResponse> {
    let key = keys::create(call.engine(), &call.caller, body).await?;
    Ok((StatusCode::CREATED, axum::Json(key)))
}

/// List API keys
///
/// Newest first, revoked ones included, without secrets.
#[utoipa::path(get, path = "/v1/keys", tag = "keys", operation_id = "list_keys", params(PageQuery),
    responses((status = OK, body = List<KeyInfo>)))]
pub(crate) async fn list(call: Call, Paging(page): Paging) -> JsonResult<List<KeyInfo>> {
    Ok(axum::Json(keys::list(call.engine(), &call.caller, page).await?))
}

/// Revoke an API key
///
/// The key stops working immediately and permanently. Revoking it again has no effect.
#[utoipa::path(delete, path = "/v1/keys/{id}", tag = "keys", operation_id = "revoke_key",
    params(("id" = uuid::Uuid, Path, description = "The key's public id")),
    responses((status = OK, description = "Revoked", body = KeyInfo)))]
pub(crate) async fn revoke(call: Call, Path(id): Path<KeyId>) -> JsonResult<KeyInfo> {
    Ok(axum::Json(keys::revoke(call.engine(), &call.caller, id).await?))
}

/// Replace an API key
///
/// Returns a new key with the same name, scopes and expiry. The old key stops working immediately.
#[utoipa::path(post, path = "/v1/keys/{id}/rotate", tag = "keys", operation_id = "rotate_key",
    params(("id" = uuid::Uuid, Path, description = "The key's public id")),
    responses((status = CREATED, description = "Replaced", body = FreshKey)))]
pub(crate) async fn rotate(
    call: Call,
    Path(id): Path<KeyId>,
) -> Result<(StatusCode, axum::Json<FreshKey>), ProblemResponse> {
    let key = keys::rotate(call.engine(), &call.caller, id).await?;
    Ok((StatusCode::CREATED, axum::Json(key)))
}
