//! Webhooks as they are remembered: what is to be told, how far that has come, and what it is signed with.

use jiff::Timestamp;

use crate::execution::Execution;
use crate::ids::{DeliveryId, ExecutionId, Tenant};
use crate::store::Kind;
use crate::store::backend::Backend as _;
use crate::store::cursor::{List, Moment, page_rows};
use crate::store::{Cursor, Error, Page, Store};
use crate::webhook::CallbackUrl;

/// One webhook and how far it has come.
#[derive(Clone, Debug, PartialEq)]
pub struct Delivery {
    /// The same for every attempt.
    pub id: DeliveryId,
    /// Whose it is.
    pub tenant: Tenant,
    /// What it tells of.
    pub execution: ExecutionId,
    /// Where it goes.
    pub url: CallbackUrl,
    /// Where it stands.
    pub status: DeliveryStatus,
    /// Attempts so far, one that is under way included.
    pub attempts: u32,
    /// When it is sent next; while it is being sent, when whoever sends it is given up.
    pub next_at: Option<Timestamp>,
    /// When the last attempt began.
    pub last_at: Option<Timestamp>,
    /// What the receiver answered to the last attempt that is over.
    pub last_status: Option<u16>,
    /// Why that was no success.
    pub last_error: Option<String>,
    /// When its execution was accepted.
    pub created_at: Timestamp,
}

/// Where a webhook stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeliveryStatus {
    /// Its execution has not ended.
    Waiting,
    /// It is sent as soon as its time has come.
    Pending,
    /// An attempt is under way.
    Sending,
    /// The receiver has it.
    Delivered,
    /// The receiver wants no more of it.
    Gone,
    /// It was tried often enough.
    Failed,
}

impl DeliveryStatus {
    /// Every one.
    pub const ALL: [Self; 6] = [
        Self::Waiting,
        Self::Pending,
        Self::Sending,
        Self::Delivered,
        Self::Gone,
        Self::Failed,
    ];

    /// Its name.
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

    /// The one of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == name)
    }
}

/// What somebody wants to send, and how much of it at once. Bounds count what all processes send.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// What is due by now.
    pub now: Timestamp,
    /// Until then nobody else sends the same.
    pub until: Timestamp,
    /// So many.
    pub rows: u32,
    /// At most so many of one tenant at once.
    pub of_tenant: u32,
    /// At most so many of one tenant to one host at once.
    pub to_host: u32,
}

/// One attempt, given to whoever asked for it and to nobody else.
#[derive(Clone, Debug)]
pub struct Claimed {
    /// What is sent.
    pub delivery: Delivery,
    /// Its number since it was last asked for anew, from 1.
    pub number: u32,
    /// What it tells, as a list has it.
    pub execution: Execution,
}

/// How an attempt ended.
#[derive(Clone, Debug)]
pub struct Attempted {
    /// Of what.
    pub id: DeliveryId,
    /// [`Delivery::attempts`] when it was claimed.
    pub attempts: u32,
    /// What the receiver answered.
    pub status: Option<u16>,
    /// Why it is no success.
    pub error: Option<String>,
    /// What follows.
    pub then: Then,
}

/// What follows an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// Nothing: it is there.
    Delivered,
    /// Nothing: the receiver wants no more.
    Gone,
    /// Nothing: it was tried often enough.
    Failed,
    /// Another attempt.
    Again(Timestamp),
}

/// What a tenant's webhooks are signed with, sealed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedSigning {
    /// The secret.
    pub sealed: Vec<u8>,
    /// When it was made.
    pub created_at: Timestamp,
    /// The one before, and until when it signs too.
    pub previous: Option<(Vec<u8>, Timestamp)>,
}

macro_rules! on_backend {
    ($store:expr, $backend:ident => $call:expr) => {
        match &$store.0 {
            Kind::Sqlite($backend) => $call,
        }
    };
}

impl Store {
    /// Takes what is due, fairly between tenants and hosts, for whoever asks: nobody else gets the same before `until`.
    pub async fn claim_deliveries(&self, wanted: Wanted) -> Result<Vec<Claimed>, Error> {
        on_backend!(self, b => b.claim_deliveries(wanted).await)
    }

    /// Records how an attempt ended; `false` if somebody else has taken it over meanwhile, and nothing was changed.
    pub async fn attempted(&self, attempted: Attempted) -> Result<bool, Error> {
        on_backend!(self, b => b.attempted(attempted).await)
    }

    /// When the next attempt is due; `None` if there is none to come.
    pub async fn next_delivery(&self) -> Result<Option<Timestamp>, Error> {
        on_backend!(self, b => b.next_delivery().await)
    }

    /// A tenant's webhooks, those of the newest execution first.
    pub async fn deliveries(
        &self,
        tenant: &Tenant,
        after: Option<Cursor>,
        rows: u32,
    ) -> Result<Page<Delivery>, Error> {
        let (list, rows) = (List::Deliveries(tenant), page_rows(rows));
        let after = list.position(after)?;
        let found = on_backend!(self, b => b.deliveries(tenant, after, rows + 1).await)?;
        Ok(list.page(found, rows, |delivery| Moment {
            at: delivery.created_at,
            id: delivery.id,
        }))
    }

    /// The webhook of an execution, if it has one; [`Error::NotFound`] if there is no such execution.
    pub async fn delivery_of(&self, tenant: &Tenant, id: ExecutionId) -> Result<Option<Delivery>, Error> {
        on_backend!(self, b => b.delivery_of(tenant, id).await)
    }

    /// Has a webhook sent once more, however it stands; a conflict where it is being sent, or its execution has not ended.
    pub async fn redeliver(&self, tenant: &Tenant, id: DeliveryId, at: Timestamp) -> Result<Delivery, Error> {
        on_backend!(self, b => b.redeliver(tenant, id, at).await)
    }

    /// What a tenant's webhooks are signed with.
    pub async fn signing_secret(&self, tenant: &Tenant) -> Result<SealedSigning, Error> {
        on_backend!(self, b => b.signing_secret(tenant).await)
    }

    /// Keeps a tenant's first; of several at once one is kept. Returns what is kept.
    pub async fn keep_signing_secret(
        &self,
        tenant: &Tenant,
        new: SealedSigning,
    ) -> Result<SealedSigning, Error> {
        on_backend!(self, b => b.keep_signing_secret(tenant, new).await)
    }

    /// Puts `new` in place of the one that there is, which signs too until `until`.
    pub async fn rotate_signing_secret(
        &self,
        tenant: &Tenant,
        new: SealedSigning,
        until: Timestamp,
    ) -> Result<SealedSigning, Error> {
        on_backend!(self, b => b.rotate_signing_secret(tenant, new, until).await)
    }
}
