//! Remembers skills, executions and keys. Every act is atomic and no transaction leaves this room.
//!
//! Every query for a caller names its tenant. Those that do not serve no caller: the look-up of a key by its hash, which
//! tells whose it is, and upkeep, which is for all ([`Store::interrupt`], [`Store::instances`], [`Store::queue_owners`],
//! [`Store::adopt`], [`Store::cancel_requests`], [`Store::forget_idempotency_keys`], [`Store::expired`],
//! [`Store::digest_is_used`], [`Store::end_expired_blobs`], [`Store::surplus_packages`], [`Store::packages_are_kept`]).
//!
//! What a backend must keep to is written as tests in `contract`, the same for each.

mod backend;
#[cfg(test)]
mod contract;
mod cursor;
mod deliveries;
mod error;
mod instance;
mod record;
mod sqlite;

use std::path::Path;

use jiff::Timestamp;

use crate::auth::KeyRecord;
use crate::execution::{Execution, NewExecution, Outcome};
use crate::ids::{BlobObject, Digest, ExecutionId, InstanceId, KeyId, Tenant};
use crate::skill::{SecretName, Selector, SkillName, Version};
use crate::telemetry::Latency;

use backend::Backend;
use cursor::{List, Moment, page_rows};

pub use cursor::Cursor;
pub use deliveries::{Attempted, Claimed, Delivery, DeliveryStatus, SealedSigning, Then, Wanted};
pub use error::{Conflict, Error, InvalidCursor};
pub use instance::{CannotRegister, Instance};
pub use record::{
    BlobQuota, BlobRecord, Enqueued, ExecutionFilter, Kept, KeptBlob, KeyedRequest, NewSecret, PackageSet,
    Page, Published, Queued, Retention, SecretRecord, SkillRecord,
};

/// A database. Times are kept to the microsecond.
#[derive(Debug)]
pub struct Store(Kind);

#[derive(Debug)]
enum Kind {
    Sqlite(sqlite::Sqlite),
}

macro_rules! on_backend {
    ($store:expr, $backend:ident => $call:expr) => {
        match &$store.0 {
            Kind::Sqlite($backend) => $call,
        }
    };
}

impl Store {
    /// Opens the database file at `path` and brings it to this program's schema; makes it (mode 0600) if it is not there.
    ///
    /// Several processes may have one file open. [`Error::Newer`], [`Error::Damaged`] and [`Error::Busy`] say why a file is refused.
    pub async fn open_sqlite(path: &Path) -> Result<Self, Error> {
        sqlite::Sqlite::open(path).await.map(Kind::Sqlite).map(Self)
    }

    /// How long it takes.
    #[must_use]
    pub fn latency(&self) -> &Latency {
        on_backend!(self, b => b.latency())
    }

    /// Whether the database answers.
    pub async fn ping(&self) -> Result<(), Error> {
        on_backend!(self, b => b.ping().await)
    }

    /// Gives back memory that only makes the next calls a little faster.
    pub fn rest(&self) {
        on_backend!(self, b => b.rest());
    }

    /// Adds a version. The same content again is no error; other content under a published version is (Z-25).
    pub async fn publish(&self, skill: SkillRecord) -> Result<Published, Error> {
        on_backend!(self, b => b.publish(skill).await)
    }

    /// The version that `selector` means. `latest` is the highest release, of two that differ in build metadata only the
    /// most recent push, and if there are only pre-releases the most recent push.
    pub async fn skill(
        &self,
        tenant: &Tenant,
        name: &SkillName,
        selector: &Selector,
    ) -> Result<SkillRecord, Error> {
        on_backend!(self, b => b.skill(tenant, name, selector).await)
    }

    /// The latest version of each skill, by name, without its instructions: they can be large, and no list shows them.
    pub async fn skills(
        &self,
        tenant: &Tenant,
        after: Option<Cursor>,
        rows: u32,
    ) -> Result<Page<SkillRecord>, Error> {
        let (list, rows) = (List::Skills(tenant), page_rows(rows));
        let after = list.position(after)?;
        let found = on_backend!(self, b => b.skills(tenant, after, rows + 1).await)?;
        Ok(list.page(found, rows, |skill| skill.name.clone()))
    }

    /// The versions of one skill, the most recent push first, without their instructions.
    pub async fn versions(
        &self,
        tenant: &Tenant,
        name: &SkillName,
        after: Option<Cursor>,
        rows: u32,
    ) -> Result<Page<SkillRecord>, Error> {
        let (list, rows) = (List::Versions(tenant, name), page_rows(rows));
        let after = list.position(after)?;
        let found = on_backend!(self, b => b.versions(tenant, name, after, rows + 1).await)?;
        let page = list.page(found, rows, |(push, _)| *push);
        Ok(Page {
            items: page.items.into_iter().map(|(_, skill)| skill).collect(),
            next: page.next,
        })
    }

    /// Removes a version and returns what it was.
    pub async fn delete_version(
        &self,
        tenant: &Tenant,
        name: &SkillName,
        version: &Version,
    ) -> Result<SkillRecord, Error> {
        on_backend!(self, b => b.delete_version(tenant, name, version).await)
    }

    /// Whether any version of any tenant has this content.
    pub async fn digest_is_used(&self, digest: &Digest) -> Result<bool, Error> {
        on_backend!(self, b => b.digest_is_used(digest).await)
    }

    /// Records an execution as running. It is durable when this returns.
    pub async fn begin(&self, execution: NewExecution) -> Result<(), Error> {
        self.begin_telling(execution, || ()).await
    }

    /// The same; `recorded` is called as soon as everybody sees it, also if this process is killed. A power cut in the moment
    /// until this returns may lose it.
    pub async fn begin_telling(
        &self,
        execution: NewExecution,
        recorded: impl FnOnce() + Send,
    ) -> Result<(), Error> {
        on_backend!(self, b => b.begin(execution, recorded).await)
    }

    /// Records the end of a running execution, once: `false` means that somebody else ended it before, and nothing was changed.
    pub async fn finish(&self, tenant: &Tenant, id: ExecutionId, outcome: Outcome) -> Result<bool, Error> {
        on_backend!(self, b => b.finish(tenant, id, outcome).await)
    }

    /// Records an execution that waits for its turn, unless the same request was made before under the same key.
    /// It is durable when this returns.
    ///
    /// # Errors
    ///
    /// [`Conflict::OtherRequest`] for another request under that key, [`Error::Quota`] where the tenant's waiting requests
    /// would be more than [`limits::QUEUED_BYTES_MAX`](crate::limits::QUEUED_BYTES_MAX) together; nothing is recorded then.
    pub async fn enqueue(&self, queued: Queued) -> Result<Enqueued, Error> {
        on_backend!(self, b => b.enqueue(queued).await)
    }

    /// The execution of the same request under this key, if there was one; a conflict if the key was another request's.
    pub async fn asked_before(
        &self,
        tenant: &Tenant,
        key: KeyedRequest,
    ) -> Result<Option<ExecutionId>, Error> {
        on_backend!(self, b => b.asked_before(tenant, key).await)
    }

    /// What a queued execution will be given.
    pub async fn queued_request(&self, tenant: &Tenant, id: ExecutionId) -> Result<Vec<u8>, Error> {
        on_backend!(self, b => b.queued_request(tenant, id).await)
    }

    /// Records that the turn of a queued execution has come; `false` if it has left the queue. It is durable when this returns.
    pub async fn start(&self, execution: NewExecution) -> Result<bool, Error> {
        on_backend!(self, b => b.start(execution).await)
    }

    /// Records the end of an execution that never started; `false` if it has, or has ended.
    pub async fn leave_queue(
        &self,
        tenant: &Tenant,
        id: ExecutionId,
        outcome: Outcome,
    ) -> Result<bool, Error> {
        on_backend!(self, b => b.leave_queue(tenant, id, outcome).await)
    }

    /// Forgets an execution that never started, its key included; `false` if it has, or has ended.
    pub async fn withdraw(&self, tenant: &Tenant, id: ExecutionId) -> Result<bool, Error> {
        on_backend!(self, b => b.withdraw(tenant, id).await)
    }

    /// The processes that have queued executions.
    pub async fn queue_owners(&self) -> Result<Vec<InstanceId>, Error> {
        on_backend!(self, b => b.queue_owners().await)
    }

    /// Gives what waited in a dead process to another one; returns which, the oldest first. Whose caller waited with it is ended.
    pub async fn adopt(
        &self,
        owner: InstanceId,
        heir: InstanceId,
        at: Timestamp,
    ) -> Result<Vec<(Tenant, ExecutionId)>, Error> {
        on_backend!(self, b => b.adopt((owner, heir), at).await)
    }

    /// Forgets keys of requests made before this time.
    pub async fn forget_idempotency_keys(&self, before: Timestamp) -> Result<(), Error> {
        on_backend!(self, b => b.forget_idempotency_keys(before).await)
    }

    /// Bytes of a tenant's archives and of what its executions left.
    pub async fn storage_used(&self, tenant: &Tenant) -> Result<u64, Error> {
        on_backend!(self, b => b.storage_used(tenant).await)
    }

    /// One execution with everything that is known of it.
    pub async fn execution(&self, tenant: &Tenant, id: ExecutionId) -> Result<Execution, Error> {
        on_backend!(self, b => b.execution(tenant, id).await)
    }

    /// Executions, the newest first. Their outcomes come without output, logs, files and the names of skipped files.
    pub async fn executions(
        &self,
        tenant: &Tenant,
        filter: &ExecutionFilter,
        after: Option<Cursor>,
        rows: u32,
    ) -> Result<Page<Execution>, Error> {
        let (list, rows) = (List::Executions(tenant, filter), page_rows(rows));
        let after = list.position(after)?;
        let found = on_backend!(self, b => b.executions(tenant, filter, after, rows + 1).await)?;
        Ok(list.page(found, rows, |execution| Moment {
            at: execution.new.created_at,
            id: execution.new.id,
        }))
    }

    /// Ends what a dead process left running, as interrupted; returns which.
    pub async fn interrupt(
        &self,
        instance: InstanceId,
        at: Timestamp,
    ) -> Result<Vec<(Tenant, ExecutionId)>, Error> {
        on_backend!(self, b => b.interrupt(instance, at).await)
    }

    /// The processes that have running executions.
    pub async fn instances(&self) -> Result<Vec<InstanceId>, Error> {
        on_backend!(self, b => b.instances().await)
    }

    /// Asks the process that owns an execution to cancel it; `false` if the execution has ended.
    pub async fn request_cancel(
        &self,
        tenant: &Tenant,
        id: ExecutionId,
        at: Timestamp,
    ) -> Result<bool, Error> {
        on_backend!(self, b => b.request_cancel(tenant, id, at).await)
    }

    /// The executions of a process that other processes asked it to cancel, and that have not ended.
    pub async fn cancel_requests(&self, owner: InstanceId) -> Result<Vec<(Tenant, ExecutionId)>, Error> {
        on_backend!(self, b => b.cancel_requests(owner).await)
    }

    /// Executions that have ended and need not be kept, at most `rows`, each tenant's oldest first.
    pub async fn expired(
        &self,
        retention: &Retention,
        rows: u32,
    ) -> Result<Vec<(Tenant, ExecutionId)>, Error> {
        on_backend!(self, b => b.expired(retention, rows).await)
    }

    /// Deletes an execution that has ended; one that runs is [`Error::NotFound`] here.
    pub async fn forget(&self, tenant: &Tenant, id: ExecutionId) -> Result<(), Error> {
        on_backend!(self, b => b.forget(tenant, id).await)
    }

    /// Adds a key.
    pub async fn add_key(&self, key: KeyRecord) -> Result<(), Error> {
        on_backend!(self, b => b.add_key(key).await)
    }

    /// Adds the very first key; `false` and nothing changed if there ever was one, revoked ones included (T-16).
    pub async fn bootstrap_key(&self, key: KeyRecord) -> Result<bool, Error> {
        on_backend!(self, b => b.bootstrap_key(key).await)
    }

    /// The key with this hash; whether it still holds is [`Caller::check`](crate::auth::Caller::check)'s question.
    pub async fn key(&self, hash: &Digest) -> Result<KeyRecord, Error> {
        on_backend!(self, b => b.key(hash).await)
    }

    /// A tenant's keys, the newest first.
    pub async fn keys(
        &self,
        tenant: &Tenant,
        after: Option<Cursor>,
        rows: u32,
    ) -> Result<Page<KeyRecord>, Error> {
        let (list, rows) = (List::Keys(tenant), page_rows(rows));
        let after = list.position(after)?;
        let found = on_backend!(self, b => b.keys(tenant, after, rows + 1).await)?;
        Ok(list.page(found, rows, |key| Moment {
            at: key.created_at,
            id: key.id,
        }))
    }

    /// Ends a key's life for good; a second time keeps the first time.
    pub async fn revoke_key(&self, tenant: &Tenant, id: KeyId, at: Timestamp) -> Result<KeyRecord, Error> {
        on_backend!(self, b => b.revoke_key(tenant, id, at).await)
    }

    /// Revokes `old` and adds `new`, both or neither. A key that is revoked already is [`Error::NotFound`] here.
    pub async fn replace_key(
        &self,
        tenant: &Tenant,
        old: KeyId,
        new: KeyRecord,
        at: Timestamp,
    ) -> Result<(), Error> {
        on_backend!(self, b => b.replace_key(tenant, old, new, at).await)
    }

    /// Keeps a secret, in place of the one that has this name. [`Error::Quota`] if it would be one more than `max`.
    pub async fn put_secret(&self, new: NewSecret, max: u32) -> Result<Kept, Error> {
        on_backend!(self, b => b.put_secret(new, max).await)
    }

    /// The sealed value of a secret.
    pub async fn sealed(&self, tenant: &Tenant, name: &SecretName) -> Result<Vec<u8>, Error> {
        on_backend!(self, b => b.sealed(tenant, name).await)
    }

    /// A tenant's secrets by name, without their values.
    pub async fn secrets(
        &self,
        tenant: &Tenant,
        after: Option<Cursor>,
        rows: u32,
    ) -> Result<Page<SecretRecord>, Error> {
        let (list, rows) = (List::Secrets(tenant), page_rows(rows));
        let after = list.position(after)?;
        let found = on_backend!(self, b => b.secrets(tenant, after, rows + 1).await)?;
        Ok(list.page(found, rows, |secret| secret.name.clone()))
    }

    /// Removes a secret for good.
    pub async fn delete_secret(&self, tenant: &Tenant, name: &SecretName) -> Result<(), Error> {
        on_backend!(self, b => b.delete_secret(tenant, name).await)
    }

    /// Keeps a blob. If its content is there already and not ended, only its expiry moves, and never back. [`Error::Quota`] if it would
    /// be more than `quota`; what has expired counts until it is forgotten.
    pub async fn keep_blob(&self, new: BlobRecord, quota: BlobQuota) -> Result<KeptBlob, Error> {
        on_backend!(self, b => b.keep_blob(new, quota).await)
    }

    /// A blob that has not expired.
    pub async fn blob(&self, tenant: &Tenant, digest: &Digest, now: Timestamp) -> Result<BlobRecord, Error> {
        on_backend!(self, b => b.blob(tenant, digest, now).await)
    }

    /// A tenant's blobs that have not expired, the newest first.
    pub async fn blobs(
        &self,
        tenant: &Tenant,
        now: Timestamp,
        after: Option<Cursor>,
        rows: u32,
    ) -> Result<Page<BlobRecord>, Error> {
        let (list, rows) = (List::Blobs(tenant), page_rows(rows));
        let after = list.position(after)?;
        let found = on_backend!(self, b => b.blobs(tenant, after, (now, rows + 1)).await)?;
        Ok(list.page(found, rows, |blob| Moment {
            at: blob.created_at,
            id: blob.digest,
        }))
    }

    /// Ends a blob that has not expired: nobody finds it any more, and its content gets other bytes if it comes back. Its
    /// bytes and its row are still to be removed.
    pub async fn end_blob(
        &self,
        tenant: &Tenant,
        digest: &Digest,
        now: Timestamp,
    ) -> Result<BlobRecord, Error> {
        on_backend!(self, b => b.end_blob(tenant, digest, now).await)
    }

    /// As [`end_blob`](Self::end_blob), for at most `rows` blobs of all tenants that have expired, with those that were
    /// ended before and are not forgotten yet.
    pub async fn end_expired_blobs(&self, now: Timestamp, rows: u32) -> Result<Vec<BlobRecord>, Error> {
        on_backend!(self, b => b.end_expired_blobs(now, rows).await)
    }

    /// The objects of all of a tenant's blobs, expired or not. Its bound is the tenant's quota: what were left out here would
    /// be taken for nobody's.
    pub async fn blob_objects(&self, tenant: &Tenant) -> Result<Vec<BlobObject>, Error> {
        on_backend!(self, b => b.blob_objects(tenant).await)
    }

    /// Removes the row of a blob that was ended and whose bytes are gone. Content that came back meanwhile stays.
    pub async fn forget_blob(&self, blob: &BlobRecord) -> Result<(), Error> {
        on_backend!(self, b => b.forget_blob(blob).await)
    }

    /// Remembers installed packages; those that were kept under this key before are replaced.
    pub async fn keep_packages(&self, set: PackageSet) -> Result<(), Error> {
        on_backend!(self, b => b.keep_packages(set).await)
    }

    /// The packages under a key.
    pub async fn packages(&self, tenant: &Tenant, key: &Digest) -> Result<PackageSet, Error> {
        on_backend!(self, b => b.packages(tenant, key).await)
    }

    /// A tenant's installed packages, the newest first.
    pub async fn package_sets(
        &self,
        tenant: &Tenant,
        after: Option<Cursor>,
        rows: u32,
    ) -> Result<Page<PackageSet>, Error> {
        let (list, rows) = (List::Packages(tenant), page_rows(rows));
        let after = list.position(after)?;
        let found = on_backend!(self, b => b.package_sets(tenant, after, rows + 1).await)?;
        Ok(list.page(found, rows, |set| Moment {
            at: set.created_at,
            id: set.key,
        }))
    }

    /// Remembers that packages were used; those that are not there were dropped meanwhile.
    pub async fn packages_used(&self, tenant: &Tenant, key: &Digest, at: Timestamp) -> Result<(), Error> {
        on_backend!(self, b => b.packages_used(tenant, key, at).await)
    }

    /// Forgets the packages under a key and returns what they were.
    pub async fn drop_packages(&self, tenant: &Tenant, key: &Digest) -> Result<PackageSet, Error> {
        on_backend!(self, b => b.drop_packages(tenant, key).await)
    }

    /// Of all tenants' packages those that are too much if `bytes_max` may stay, at most `rows`: first of the
    /// tenant with the most bytes, of one tenant the longest unused first.
    pub async fn surplus_packages(&self, bytes_max: u64, rows: u32) -> Result<Vec<PackageSet>, Error> {
        on_backend!(self, b => b.surplus_packages(bytes_max, rows).await)
    }

    /// Whether packages of any tenant have this content.
    pub async fn packages_are_kept(&self, digest: &Digest) -> Result<bool, Error> {
        on_backend!(self, b => b.packages_are_kept(digest).await)
    }
}
