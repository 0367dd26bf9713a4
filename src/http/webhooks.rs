//! `/v1/webhooks`: deliveries and the signing secret.

use axum::http::StatusCode;

use super::authorization::Call;
use super::extract::Path;
use super::page::{PageQuery, Paging};
use super::problem::{JsonResult, ProblemResponse};
use crate::api::List;
use crate::api::webhooks::{self, DeliveryInfo, SigningSecretInfo};
use crate::ids::{DeliveryId, ExecutionId};

/// List webhook deliveries
///
/// Deliveries of all executions with a `callback_url`, newest execution first.
#[utoipa::path(get, path = "/v1/webhooks/deliveries", tag = "webhooks", operation_id = "list_deliveries", params(PageQuery),
    responses((status = OK, body = List<DeliveryInfo>)))]
pub(crate) async fn list(call: Call, Paging(page): Paging) -> JsonResult<List<DeliveryInfo>> {
    Ok(axum::Json(
        webhooks::list(call.engine(), &call.caller, page).await?,
    ))
}

/// Show the webhook delivery of an execution
///
/// Empty if the execution has no `callback_url`.
#[utoipa::path(get, path = "/v1/executions/{id}/deliveries", tag = "webhooks", operation_id = "show_deliveries",
    params(("id" = uuid::Uuid, Path, description = "The execution")),
    responses((status = OK, body = List<DeliveryInfo>)))]
pub(crate) async fn of_execution(call: Call, Path(id): Path<ExecutionId>) -> JsonResult<List<DeliveryInfo>> {
    Ok(axum::Json(
        webhooks::of_execution(call.engine(), &call.caller, id).await?,
    ))
}

/// Redeliver a webhook
///
/// Sends it again now, whatever its status, with all of its retries. The id stays the same, so receivers can detect
/// the repetition.
#[utoipa::path(post, path = "/v1/webhooks/deliveries/{id}/redeliver", tag = "webhooks", operation_id = "redeliver",
    params(("id" = uuid::Uuid, Path, description = "The delivery")),
    responses((status = ACCEPTED, description = "Scheduled to be sent now", body = DeliveryInfo)))]
pub(crate) async fn redeliver(
    call: Call,
    Path(id): Path<DeliveryId>,
) -> Result<(StatusCode, axum::Json<DeliveryInfo>), ProblemResponse> {
    let delivery = webhooks::redeliver(call.engine(), &call.caller, id).await?;
    Ok((StatusCode::ACCEPTED, axum::Json(delivery)))
}

/// Show the signing secret
///
/// The secret that signs this tenant's webhooks, by the Standard Webhooks scheme. Created if it does not exist.
#[utoipa::path(get, path = "/v1/webhooks/secret", tag = "webhooks", operation_id = "show_signing_secret",
    responses((status = OK, body = SigningSecretInfo)))]
pub(crate) async fn secret(call: Call) -> JsonResult<SigningSecretInfo> {
    Ok(axum::Json(
        webhooks::signing_secret(call.engine(), &call.caller).await?,
    ))
}

/// Replace the signing secret
///
/// The old secret signs too for 24 hours: each webhook then has both signatures.
#[utoipa::path(post, path = "/v1/webhooks/secret/rotate", tag = "webhooks", operation_id = "rotate_signing_secret",
    responses((status = OK, body = SigningSecretInfo)))]
pub(crate) async fn rotate(call: Call) -> JsonResult<SigningSecretInfo> {
    Ok(axum::Json(
        webhooks::rotate_signing_secret(call.engine(), &call.caller).await?,
    ))
}
