//! Webhooks: their state, their attempts, and the secret that signs them.

use jiff::Timestamp;

use crate::execution::Execution;
use crate::ids::{DeliveryId, ExecutionId, Tenant};
use crate::store::cursor::{List, Moment};
use crate::store::{Error, acts};
use crate::webhook::CallbackUrl;

/// One webhook.
#[derive(Clone, Debug, PartialEq)]
pub struct Delivery {
    /// The same for every attempt.
    pub id: DeliveryId,
    pub tenant: Tenant,
    pub execution: ExecutionId,
    pub url: CallbackUrl,
    pub status: DeliveryStatus,
    /// Attempts so far, the current one included.
    pub attempts: u32,
    /// When it is sent next; while it is being sent, when its claim expires.
    pub next_at: Option<Timestamp>,
    /// When the last attempt began.
    pub last_at: Option<Timestamp>,
    /// The receiver's answer to the last completed attempt.
    pub last_status: Option<u16>,
    /// Why that attempt failed.
    pub last_error: Option<String>,
    /// When its execution was accepted.
    pub created_at: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeliveryStatus {
    /// Its execution has not ended.
    Waiting,
    /// It is sent at `next_at`.
    Pending,
    /// An attempt is under way.
    Sending,
    Delivered,
    /// The receiver answered `410 Gone`.
    Gone,
    /// All attempts failed.
    Failed,
}

impl DeliveryStatus {
    pub const ALL: [Self; 6] = [
        Self::Waiting,
        Self::Pending,
        Self::Sending,
        Self::Delivered,
        Self::Gone,
        Self::Failed,
    ];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Pending => "pending",
            Self::Sending => "sending",
            Self::Delivered => "delivered",
            Self::Gone => "gone",
            Self::Failed => "failed",
        }
    }

    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == name)
    }
}

/// How much is claimed at once. Limits count what all processes send.
#[derive(Clone, Copy, Debug)]
pub struct DeliveryClaim {
    pub now: Timestamp,
    /// When the claim expires.
    pub until: Timestamp,
    pub rows: u32,
    /// At most so many of one tenant at once.
    pub per_tenant: u32,
    /// At most so many of one tenant to one host at once.
    pub per_host: u32,
}

/// A webhook that only its claimer sends.
#[derive(Clone, Debug)]
pub struct ClaimedDelivery {
    pub delivery: Delivery,
    /// The number of this attempt since the webhook last became due by request, from 1.
    pub number: u32,
    /// As a list shows it.
    pub execution: Execution,
}

/// The result of an attempt.
#[derive(Clone, Debug)]
pub struct Attempt {
    pub id: DeliveryId,
    /// [`Delivery::attempts`] when it was claimed.
    pub attempts: u32,
    /// The receiver's answer.
    pub status: Option<u16>,
    pub error: Option<String>,
    pub next: NextStep,
}

/// What follows an attempt: an end, or another attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextStep {
    Delivered,
    Gone,
    Failed,
    Retry(Timestamp),
}

/// The secret that signs a tenant's webhooks, sealed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedSigningSecret {
    pub sealed: Vec<u8>,
    pub created_at: Timestamp,
    /// The previous secret, and until when it signs too.
    pub previous: Option<(Vec<u8>, Timestamp)>,
}

acts! {
    trait Deliveries {
        /// Claims due webhooks, fairly between tenants and hosts. No other process claims the same ones before `until`.
        async fn claim_deliveries(&self, claim: DeliveryClaim) -> Result<Vec<ClaimedDelivery>, Error>;
        /// Records the result of an attempt; `false`, and no change, if another process has claimed the webhook since.
        async fn record_attempt(&self, attempt: Attempt) -> Result<bool, Error>;
        /// When the next attempt is due; `None` if none is.
        async fn next_delivery(&self) -> Result<Option<Timestamp>, Error>;
        /// The webhook of an execution, if it has one; [`Error::NotFound`] if the execution does not exist.
        async fn execution_delivery(&self, tenant: &Tenant, id: ExecutionId) -> Result<Option<Delivery>, Error>;
        /// Makes a webhook due again; a conflict while it is being sent, or if its execution has not ended.
        async fn redeliver(&self, tenant: &Tenant, id: DeliveryId, at: Timestamp) -> Result<Delivery, Error>;
        async fn signing_secret(&self, tenant: &Tenant) -> Result<SealedSigningSecret, Error>;
        /// Saves a tenant's first signing secret and returns the saved one: of several at once, one wins.
        async fn init_signing_secret(&self, tenant: &Tenant, new: SealedSigningSecret) -> Result<SealedSigningSecret, Error>;
        /// Replaces the signing secret. The previous one signs too until `until`.
        async fn rotate_signing_secret(&self, tenant: &Tenant, new: SealedSigningSecret, until: Timestamp) -> Result<SealedSigningSecret, Error>;
    }
    lists {
        /// A tenant's webhooks, those of the newest execution first.
        async fn deliveries(&self, tenant: &Tenant) -> Delivery
            = List::Deliveries(tenant), after Moment<DeliveryId>: |delivery| Moment::new(delivery.created_at, delivery.id);
    }
}
