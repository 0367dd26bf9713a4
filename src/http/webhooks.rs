//! `/v1/webhooks`: what executions tell when they end, how far that has come, and what it is signed with.

use std::fmt;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};

use super::authorization::Authenticated;
use super::extract::{Path, Query};
use super::page::{List, PageQuery};
use super::problem::ProblemResponse;
use super::state::ApiState;
use crate::engine::Signing;
use crate::ids::{DeliveryId, ExecutionId};
use crate::store;

/// One webhook and how far it has come.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Delivery {
    /// Its id, the `webhook-id` of every attempt.
    #[schema(value_type = String, format = Uuid)]
    pub delivery_id: DeliveryId,
    /// Execution that the webhook reports.
    #[schema(value_type = String, format = Uuid)]
    pub execution_id: ExecutionId,
    /// Where it goes.
    #[schema(example = "https://hooks.example/skillbox")]
    pub url: String,
    /// `waiting` for the end of its execution, `pending`, `sending`; for good: `delivered`, `gone` (the receiver wants no
    /// more), `failed` (it was tried often enough).
    #[schema(example = "delivered")]
    pub status: String,
    /// Attempts so far.
    pub attempts: u32,
    /// When it is tried next; `null` where it is not.
    #[schema(value_type = Option<String>, format = DateTime, required)]
    pub next_try_at: Option<jiff::Timestamp>,
    /// When the last attempt began.
    #[schema(value_type = Option<String>, format = DateTime, required)]
    pub last_try_at: Option<jiff::Timestamp>,
    /// What the receiver answered to it, as an HTTP status.
    #[schema(required)]
    pub last_status: Option<u16>,
    /// Why it was no success.
    #[schema(required)]
    pub last_error: Option<String>,
    /// When its execution was accepted.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: jiff::Timestamp,
}

/// What the tenant's webhooks are signed with.
#[derive(Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SigningSecret {
    /// As receivers are configured with it.
    #[schema(example = "whsec_…")]
    pub secret: String,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: jiff::Timestamp,
    /// Until when the one before signs too; `null` if there is none.
    #[schema(value_type = Option<String>, format = DateTime, required)]
    pub previous_until: Option<jiff::Timestamp>,
}

impl fmt::Debug for SigningSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningSecret(***)")
    }
}

/// List webhooks
///
/// Of all executions that have one, those of the newest first.
#[utoipa::path(get, path = "/v1/webhooks/deliveries", tag = "webhooks", operation_id = "list_deliveries", params(PageQuery),
    responses((status = OK, body = List<Delivery>)))]
pub(crate) async fn list(
    State(state): State<Arc<ApiState>>,
    Authenticated(caller): Authenticated,
    Query(page): Query<PageQuery>,
) -> Result<axum::Json<List<Delivery>>, ProblemResponse> {
    let page = state.engine.deliveries(&caller, page.into_request()?).await?;
    Ok(axum::Json(List::of(&page)))
}

/// Show the webhook of an execution
///
/// One, or none where the execution was asked for without `callback_url`.
#[utoipa::path(get, path = "/v1/executions/{id}/deliveries", tag = "webhooks", operation_id = "show_deliveries",
    params(("id" = uuid::Uuid, Path, description = "The execution")),
    responses((status = OK, body = List<Delivery>)))]
pub(crate) async fn of_execution(
    State(state): State<Arc<ApiState>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<ExecutionId>,
) -> Result<axum::Json<List<Delivery>>, ProblemResponse> {
    let delivery = state.engine.delivery_of(&caller, id).await?;
    Ok(axum::Json(List {
        items: delivery.iter().map(Delivery::from).collect(),
        next_page_token: None,
    }))
}

/// Send a webhook once more
///
/// Now, however it stands, and with all its attempts before it again. It keeps its id, so a receiver that has it knows it.
#[utoipa::path(post, path = "/v1/webhooks/deliveries/{id}/redeliver", tag = "webhooks", operation_id = "redeliver",
    params(("id" = uuid::Uuid, Path, description = "The webhook")),
    responses((status = ACCEPTED, description = "It is about to be sent", body = Delivery)))]
pub(crate) async fn redeliver(
    State(state): State<Arc<ApiState>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<DeliveryId>,
) -> Result<(StatusCode, axum::Json<Delivery>), ProblemResponse> {
    let delivery = state.engine.redeliver(&caller, id).await?;
    Ok((StatusCode::ACCEPTED, axum::Json(Delivery::from(&delivery))))
}

/// Show the signing secret
///
/// What this tenant's webhooks are signed with, by the Standard Webhooks scheme; made if there is none.
#[utoipa::path(get, path = "/v1/webhooks/secret", tag = "webhooks", operation_id = "show_signing_secret",
    responses((status = OK, body = SigningSecret)))]
pub(crate) async fn secret(
    State(state): State<Arc<ApiState>>,
    Authenticated(caller): Authenticated,
) -> Result<axum::Json<SigningSecret>, ProblemResponse> {
    let signing = state.engine.signing_secret(&caller).await?;
    Ok(axum::Json(SigningSecret::from(&signing)))
}

/// Replace the signing secret
///
/// By a fresh one. The old one signs too for 24 hours: each webhook then carries both signatures.
#[utoipa::path(post, path = "/v1/webhooks/secret/rotate", tag = "webhooks", operation_id = "rotate_signing_secret",
    responses((status = OK, body = SigningSecret)))]
pub(crate) async fn rotate(
    State(state): State<Arc<ApiState>>,
    Authenticated(caller): Authenticated,
) -> Result<axum::Json<SigningSecret>, ProblemResponse> {
    let signing = state.engine.rotate_signing_secret(&caller).await?;
    Ok(axum::Json(SigningSecret::from(&signing)))
}

impl From<&store::Delivery> for Delivery {
    fn from(delivery: &store::Delivery) -> Self {
        // While it is being sent, this is when its sender is considered dead.
        let is_next = delivery.status == store::DeliveryStatus::Pending;
        Self {
            delivery_id: delivery.id,
            execution_id: delivery.execution,
            url: delivery.url.to_string(),
            status: delivery.status.as_str().to_owned(),
            attempts: delivery.attempts,
            next_try_at: delivery.next_at.filter(|_| is_next),
            last_try_at: delivery.last_at,
            last_status: delivery.last_status,
            last_error: delivery.last_error.clone(),
            created_at: delivery.created_at,
        }
    }
}

impl From<&Signing> for SigningSecret {
    fn from(signing: &Signing) -> Self {
        Self {
            secret: signing.secret.reveal().to_string(),
            created_at: signing.created_at,
            previous_until: signing.previous_until,
        }
    }
}
