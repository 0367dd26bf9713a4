//! Metadata of skills, executions, keys, sessions, secrets, blobs, packages and webhooks, and the audit trail. Each act is atomic; no transaction leaves
//! this module.
//!
//! Each query for a caller names its tenant. These do not, because they serve no caller: the look-ups of a key, a session and a
//! sign-in link by their hashes, which find the tenant, the claim of due webhooks, and maintenance for all tenants ([`Store::interrupt_running`],
//! [`Store::running_instances`], [`Store::queue_owners`], [`Store::recover_queue`], [`Store::cancel_requests`],
//! [`Store::delete_idempotency_keys`], [`Store::expired_executions`], [`Store::skill_digest_is_used`],
//! [`Store::delete_ended_sessions`], [`Store::delete_audit_entries`], [`Store::retire_expired_blobs`], [`Store::surplus_packages`],
//! [`Store::packages_digest_is_used`], [`Store::uncounted_tenants`], [`Store::delete_counts`]).
//!
//! `contract` tests what every backend must do.

mod acts;
mod audit;
mod blobs;
#[cfg(test)]
mod contract;
mod counts;
mod cursor;
mod deliveries;
mod error;
mod executions;
mod instance;
mod keys;
mod packages;
mod queue;
mod secrets;
mod sessions;
mod skills;
mod sqlite;

use std::path::Path;

use tokio_util::sync::CancellationToken;

use crate::telemetry::Latency;

use acts::acts;

pub use blobs::{BlobQuota, BlobRecord, SavedBlob};
pub use counts::{BucketCounts, Buckets, CountPeriod, CountQuery, OldCounts, SkillCounts};
pub use cursor::{Cursor, Page};
pub use deliveries::{
    Attempt, ClaimedDelivery, Delivery, DeliveryClaim, DeliveryStatus, NextStep, SealedSigningSecret,
};
pub use error::{Conflict, Error, InvalidCursor};
pub use executions::{ExecutionFilter, ExecutionSource, Retention, Statuses};
pub use instance::{CannotRegister, Instance};
pub use packages::PackageSet;
pub use queue::{Enqueued, KeyedRequest, QueueRecovery, Queued};
pub use secrets::{NewSecret, Saved, SecretRecord};
pub use sessions::{SessionEnd, SessionQuota};
pub use skills::{Published, SkillRecord};

/// A database. Times are stored to the microsecond.
#[derive(Debug)]
pub struct Store(Kind);

#[derive(Debug)]
enum Kind {
    Sqlite(sqlite::Sqlite),
}

macro_rules! on_backend {
    ($store:expr, $backend:ident => $call:expr) => {
        match &$store.0 {
            $crate::store::Kind::Sqlite($backend) => $call,
        }
    };
}
use on_backend;

impl Store {
    /// Opens the database file at `path` and migrates it to this program's schema. Creates it (mode 0600) if it does not exist.
    ///
    /// Several processes may have one file open. [`Error::Newer`], [`Error::Damaged`] and [`Error::Busy`] say why a file is rejected.
    pub async fn open_sqlite(path: &Path) -> Result<Self, Error> {
        sqlite::Sqlite::open(path).await.map(Kind::Sqlite).map(Self)
    }

    #[must_use]
    pub fn latency(&self) -> &Latency {
        on_backend!(self, backend => backend.latency())
    }

    /// Whether the database answers.
    pub async fn ping(&self) -> Result<(), Error> {
        on_backend!(self, backend => backend.ping().await)
    }

    /// Sets disk space aside for [`Self::give_up_reserve`], unless it is.
    pub async fn keep_reserve(&self) -> Result<(), Error> {
        on_backend!(self, backend => backend.keep_reserve().await)
    }

    /// Frees the reserved disk space, so that a full database can delete; `false` if there is none.
    #[must_use]
    pub fn give_up_reserve(&self) -> bool {
        on_backend!(self, backend => backend.give_up_reserve())
    }

    /// Cancelled when the database accepts nothing any more, until it is opened again: the disk failed, or the file was
    /// replaced, deleted or damaged.
    #[must_use]
    pub fn failed(&self) -> &CancellationToken {
        on_backend!(self, backend => backend.failed())
    }

    /// Releases memory that only makes the next calls a little faster.
    pub fn release_memory(&self) {
        on_backend!(self, backend => backend.release_memory());
    }
}
