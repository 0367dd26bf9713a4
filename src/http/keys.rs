//! `/v1/keys`: API keys made, listed, revoked, rotated.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;

use super::authorization::Authenticated;
use super::extract::{Json, Path, Query};
use super::page::PageQuery;
use super::problem::ProblemResponse;
use super::state::ApiState;
use crate::api::List;
use crate::api::keys::{self, CreateKey, FreshKey, KeyInfo};
use crate::ids::KeyId;

/// Make an API key
///
/// The response contains the secret, which is never shown again.
#[utoipa::path(post, path = "/v1/keys", tag = "keys", operation_id = "create_key", request_body = CreateKey,
    responses((status = CREATED, description = "Made", body = FreshKey)))]
pub(crate) async fn create(
    State(state): State<Arc<ApiState>>,
    Authenticated(caller): Authenticated,
    Json(body, _held): Json<CreateKey>,
) -> Result<(StatusCode, axum::Json<FreshKey>), ProblemResponse> {
    let key = keys::create(&state.engine, &caller, body).await?;
    Ok((StatusCode::CREATED, axum::Json(key)))
}

/// List API keys
///
/// The newest first, revoked ones included, without secrets.
#[utoipa::path(get, path = "/v1/keys", tag = "keys", operation_id = "list_keys", params(PageQuery),
    responses((status = OK, body = List<KeyInfo>)))]
pub(crate) async fn list(
    State(state): State<Arc<ApiState>>,
    Authenticated(caller): Authenticated,
    Query(page): Query<PageQuery>,
) -> Result<axum::Json<List<KeyInfo>>, ProblemResponse> {
    let page = page.into_request()?;
    Ok(axum::Json(keys::list(&state.engine, &caller, page).await?))
}

/// Revoke an API key
///
/// The key stops working immediately and permanently. Revoking it again has no effect.
#[utoipa::path(delete, path = "/v1/keys/{id}", tag = "keys", operation_id = "revoke_key",
    params(("id" = uuid::Uuid, Path, description = "The key's public id")),
    responses((status = OK, description = "Revoked", body = KeyInfo)))]
pub(crate) async fn revoke(
    State(state): State<Arc<ApiState>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<KeyId>,
) -> Result<axum::Json<KeyInfo>, ProblemResponse> {
    Ok(axum::Json(keys::revoke(&state.engine, &caller, id).await?))
}

/// Replace an API key
///
/// A new key with the same name, scopes and expiry; the old one ends at once.
#[utoipa::path(post, path = "/v1/keys/{id}/rotate", tag = "keys", operation_id = "rotate_key",
    params(("id" = uuid::Uuid, Path, description = "The key's public id")),
    responses((status = CREATED, description = "Replaced", body = FreshKey)))]
pub(crate) async fn rotate(
    State(state): State<Arc<ApiState>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<KeyId>,
) -> Result<(StatusCode, axum::Json<FreshKey>), ProblemResponse> {
    let key = keys::rotate(&state.engine, &caller, id).await?;
    Ok((StatusCode::CREATED, axum::Json(key)))
}
