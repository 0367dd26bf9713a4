//! Webhook deliveries, and the secret that signs them.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{ADMIN, List, RUN, audit, require};
use crate::auth::{AuditAction, Caller};
use crate::engine::{Engine, PageRequest, Signing};
use crate::error::Error;
use crate::ids::{DeliveryId, ExecutionId};
use crate::store::{self, DeliveryStatus};

/// A webhook and its state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = Delivery)]
pub struct DeliveryInfo {
    /// Id, sent as `webhook-id` in every attempt.
    #[schema(value_type = String, format = Uuid)]
    pub delivery_id: DeliveryId,
    /// Execution that the webhook reports.
    #[schema(value_type = String, format = Uuid)]
    pub execution_id: ExecutionId,
    /// Receiver.
    #[schema(example = "https://hooks.example/skillbox")]
    pub url: String,
    /// `waiting` for the end of the execution, `pending` or `sending`. Final: `delivered`, `gone` (the receiver
    /// answered 410), `failed` (all attempts failed).
    #[schema(example = "delivered")]
    pub status: String,
    /// Number of attempts.
    pub attempts: u32,
    /// Time of the next attempt; `null` if none is due.
    #[schema(value_type = Option<String>, format = DateTime, required)]
    pub next_try_at: Option<jiff::Timestamp>,
    /// Start of the last attempt.
    #[schema(value_type = Option<String>, format = DateTime, required)]
    pub last_try_at: Option<jiff::Timestamp>,
    /// HTTP status of the last response.
    #[schema(required)]
    pub last_status: Option<u16>,
    /// Error of the last attempt.
    #[schema(required)]
    pub last_error: Option<String>,
    /// Time at which the execution was accepted.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: jiff::Timestamp,
}

/// The secret that signs the tenant's webhooks.
#[derive(Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = SigningSecret)]
pub struct SigningSecretInfo {
    /// As receivers are configured with it.
    #[schema(example = "whsec_…")]
    pub secret: String,
    /// Creation time.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: jiff::Timestamp,
    /// Time until which the previous secret signs too; `null` if there is none.
    #[schema(value_type = Option<String>, format = DateTime, required)]
    pub previous_until: Option<jiff::Timestamp>,
}

impl fmt::Debug for SigningSecretInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningSecret(***)")
    }
}

/// Deliveries of all executions, newest execution first.
pub async fn list(engine: &Engine, caller: &Caller, page: PageRequest) -> Result<List<DeliveryInfo>, Error> {
    require(caller, RUN)?;
    Ok(List::of(&engine.webhooks().list(caller.tenant(), page).await?))
}

/// The delivery of one execution, if it has a callback URL.
pub async fn of_execution(
    engine: &Engine,
    caller: &Caller,
    id: ExecutionId,
) -> Result<List<DeliveryInfo>, Error> {
    require(caller, RUN)?;
    let delivery = engine.webhooks().of_execution(caller.tenant(), id).await?;
    Ok(List::all(&delivery))
}

/// Sends a webhook again now, with all of its retries.
pub async fn redeliver(engine: &Engine, caller: &Caller, id: DeliveryId) -> Result<DeliveryInfo, Error> {
    require(caller, RUN)?;
    let tenant = caller.tenant().clone();
    let again = audit::recorded(
        engine,
        caller,
        AuditAction::WebhookRedelivered,
        |engine| async move {
            let delivery = engine.webhooks().redeliver(&tenant, id).await?;
            Ok((delivery, id.to_string()))
        },
    );
    Ok(DeliveryInfo::from(&again.await?))
}

/// The signing secret of the tenant; created if it does not exist.
pub async fn signing_secret(engine: &Engine, caller: &Caller) -> Result<SigningSecretInfo, Error> {
    require(caller, ADMIN)?;
    Ok(engine.webhooks().signing_secret(caller.tenant()).await?.into())
}

/// Replaces the signing secret. The previous one signs too for a day.
pub async fn rotate_signing_secret(engine: &Engine, caller: &Caller) -> Result<SigningSecretInfo, Error> {
    require(caller, ADMIN)?;
    let tenant = caller.tenant().clone();
    let action = AuditAction::WebhookSecretRotated;
    let rotated = audit::recorded(engine, caller, action, |engine| async move {
        let signing = engine.webhooks().rotate_signing_secret(&tenant).await?;
        Ok((signing, tenant.to_string()))
    });
    Ok(rotated.await?.into())
}

impl From<&store::Delivery> for DeliveryInfo {
    fn from(delivery: &store::Delivery) -> Self {
        // While it is being sent, `next_at` is when its sender counts as dead.
        let is_next = delivery.status == DeliveryStatus::Pending;
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

impl From<Signing> for SigningSecretInfo {
    fn from(signing: Signing) -> Self {
        Self {
            secret: signing.secret.reveal().to_string(),
            created_at: signing.created_at,
            previous_until: signing.previous_until,
        }
    }
}
