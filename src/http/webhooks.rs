//! `/v1/webhooks`: what executions tell when they end, how far that has come, and what it is signed with.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;

use super::authorization::Authenticated;
use super::extract::{Path, Query};
use super::page::PageQuery;
use super::problem::ProblemResponse;
use super::state::ApiState;
use crate::api::List;
use crate::api::webhooks::{self, DeliveryInfo, SigningSecretInfo};
use crate::ids::{DeliveryId, ExecutionId};

/// List webhooks
///
/// Of all executions that have one, those of the newest first.
#[utoipa::path(get, path = "/v1/webhooks/deliveries", tag = "webhooks", operation_id = "list_deliveries", params(PageQuery),
    responses((status = OK, body = List<DeliveryInfo>)))]
pub(crate) async fn list(
    State(state): State<Arc<ApiState>>,
    Authenticated(caller): Authenticated,
    Query(page): Query<PageQuery>,
) -> Result<axum::Json<List<DeliveryInfo>>, ProblemResponse> {
    let page = page.into_request()?;
    Ok(axum::Json(webhooks::list(&state.engine, &caller, page).await?))
}

/// Show the webhook of an execution
///
/// One, or none where the execution was asked for without `callback_url`.
#[utoipa::path(get, path = "/v1/executions/{id}/deliveries", tag = "webhooks", operation_id = "show_deliveries",
    params(("id" = uuid::Uuid, Path, description = "The execution")),
    responses((status = OK, body = List<DeliveryInfo>)))]
pub(crate) async fn of_execution(
    State(state): State<Arc<ApiState>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<ExecutionId>,
) -> Result<axum::Json<List<DeliveryInfo>>, ProblemResponse> {
    Ok(axum::Json(
        webhooks::of_execution(&state.engine, &caller, id).await?,
    ))
}

/// Send a webhook once more
///
/// Now, however it stands, and with all its attempts before it again. It keeps its id, so a receiver that has it knows it.
#[utoipa::path(post, path = "/v1/webhooks/deliveries/{id}/redeliver", tag = "webhooks", operation_id = "redeliver",
    params(("id" = uuid::Uuid, Path, description = "The webhook")),
    responses((status = ACCEPTED, description = "It is about to be sent", body = DeliveryInfo)))]
pub(crate) async fn redeliver(
    State(state): State<Arc<ApiState>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<DeliveryId>,
) -> Result<(StatusCode, axum::Json<DeliveryInfo>), ProblemResponse> {
    let delivery = webhooks::redeliver(&state.engine, &caller, id).await?;
    Ok((StatusCode::ACCEPTED, axum::Json(delivery)))
}

/// Show the signing secret
///
/// What this tenant's webhooks are signed with, by the Standard Webhooks scheme; made if there is none.
#[utoipa::path(get, path = "/v1/webhooks/secret", tag = "webhooks", operation_id = "show_signing_secret",
    responses((status = OK, body = SigningSecretInfo)))]
pub(crate) async fn secret(
    State(state): State<Arc<ApiState>>,
    Authenticated(caller): Authenticated,
) -> Result<axum::Json<SigningSecretInfo>, ProblemResponse> {
    Ok(axum::Json(
        webhooks::signing_secret(&state.engine, &caller).await?,
    ))
}

/// Replace the signing secret
///
/// By a fresh one. The old one signs too for 24 hours: each webhook then carries both signatures.
#[utoipa::path(post, path = "/v1/webhooks/secret/rotate", tag = "webhooks", operation_id = "rotate_signing_secret",
    responses((status = OK, body = SigningSecretInfo)))]
pub(crate) async fn rotate(
    State(state): State<Arc<ApiState>>,
    Authenticated(caller): Authenticated,
) -> Result<axum::Json<SigningSecretInfo>, ProblemResponse> {
    Ok(axum::Json(
        webhooks::rotate_signing_secret(&state.engine, &caller).await?,
    ))
}
