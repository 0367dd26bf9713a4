//! The store in one SQLite file: a write-ahead log, one connection that writes, a few that read.

mod access;
mod blobs;
mod deliveries;
mod due;
mod executions;
mod keys;
mod known;
mod log;
mod open;
mod packages;
mod pool;
mod queue;
mod retention;
mod row;
mod secrets;
mod skills;
mod storage;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use rusqlite::Connection;

use crate::auth::KeyRecord;
use crate::execution::{Execution, NewExecution, Outcome, Status};
use crate::ids::{BlobObject, DeliveryId, Digest, ExecutionId, InstanceId, KeyId, Tenant};
use crate::skill::{SecretName, Selector, SkillName, Version};
use crate::store::deliveries::{Attempted, Claimed, Delivery, SealedSigning, Wanted};
use crate::store::{
    Backend, BlobQuota, BlobRecord, Enqueued, Error, ExecutionFilter, Kept, KeptBlob, KeyedRequest, Moment,
    NewSecret, PackageSet, Published, Queued, Retention, SecretRecord, SkillRecord,
};
use crate::telemetry::Latency;

use known::Known;
use log::Log;
use pool::Pool;

/// An open database file.
#[derive(Debug)]
pub(super) struct Sqlite {
    /// Reads what every request asks for, and is never waited for.
    glance: Mutex<Connection>,
    known: Arc<Known>,
    readers: Pool,
    writer: Pool,
    log: Arc<Log>,
    latency: Latency,
}

impl Sqlite {
    pub(super) async fn open(path: &Path) -> Result<Self, Error> {
        let path = path.to_owned();
        let connections = tokio::task::spawn_blocking(move || open::open(&path))
            .await
            .map_err(Error::backend)??;
        // Closed last: who may not write cannot move the log into the file, and whoever copies the file alone would lose it.
        let writer = Pool::new(vec![connections.writer]);
        Ok(Self {
            glance: Mutex::new(connections.glance),
            known: Arc::default(),
            readers: Pool::closed_before(&writer, connections.readers),
            writer,
            log: Arc::new(connections.log),
            latency: Latency::default(),
        })
    }
}

impl Backend for Sqlite {
    fn latency(&self) -> &Latency {
        &self.latency
    }

    async fn ping(&self) -> Result<(), Error> {
        self.log.is_sound().map_err(Error::backend)?;
        self.read(|c| Ok(c.query_row("select 1", [], |_| Ok(()))?)).await
    }

    fn rest(&self) {
        self.readers.rest();
        self.writer.rest();
    }

    async fn publish(&self, skill: SkillRecord) -> Result<Published, Error> {
        self.write(move |c| skills::publish(c, &skill)).await
    }

    async fn skill(
        &self,
        tenant: &Tenant,
        name: &SkillName,
        selector: &Selector,
    ) -> Result<SkillRecord, Error> {
        if let Some(found) = self.glance(|c| self.known.find(c, tenant, name, selector)) {
            return found;
        }
        let (tenant, name, selector) = (tenant.clone(), name.clone(), selector.clone());
        let known = self.known.clone();
        self.read(move |c| known.find(c, &tenant, &name, &selector)).await
    }

    async fn skills(
        &self,
        tenant: &Tenant,
        after: Option<SkillName>,
        rows: u32,
    ) -> Result<Vec<SkillRecord>, Error> {
        let tenant = tenant.clone();
        self.read(move |c| skills::list(c, &tenant, after.as_ref(), rows))
            .await
    }

    async fn versions(
        &self,
        tenant: &Tenant,
        name: &SkillName,
        after: Option<u64>,
        rows: u32,
    ) -> Result<Vec<(u64, SkillRecord)>, Error> {
        let (tenant, name) = (tenant.clone(), name.clone());
        self.read(move |c| skills::versions(c, &tenant, &name, after, rows))
            .await
    }

    async fn delete_version(
        &self,
        tenant: &Tenant,
        name: &SkillName,
        version: &Version,
    ) -> Result<SkillRecord, Error> {
        let (tenant, name, version) = (tenant.clone(), name.clone(), version.clone());
        self.write(move |c| skills::delete(c, &tenant, &name, &version))
            .await
    }

    async fn digest_is_used(&self, digest: &Digest) -> Result<bool, Error> {
        let digest = *digest;
        self.read(move |c| skills::digest_is_used(c, &digest)).await
    }

    async fn begin(&self, execution: NewExecution, recorded: impl FnOnce() + Send) -> Result<(), Error> {
        self.write_telling(move |c| executions::begin(c, &execution), recorded)
            .await
    }

    async fn finish(&self, tenant: &Tenant, id: ExecutionId, outcome: Outcome) -> Result<bool, Error> {
        let tenant = tenant.clone();
        self.write(move |c| executions::finish(c, &tenant, id, (Status::Running, &outcome)))
            .await
    }

    async fn enqueue(&self, queued: Queued) -> Result<Enqueued, Error> {
        self.write(move |c| queue::enqueue(c, &queued)).await
    }

    async fn asked_before(&self, tenant: &Tenant, key: KeyedRequest) -> Result<Option<ExecutionId>, Error> {
        let tenant = tenant.clone();
        let find = move |c: &Connection| queue::known(c, &tenant, &key);
        match self.read(find.clone()).await? {
            None => Ok(None),
            // It may have been written a moment ago: what a writer finds is on the disk.
            Some(_) => self.write(find).await,
        }
    }

    async fn queued_request(&self, tenant: &Tenant, id: ExecutionId) -> Result<Vec<u8>, Error> {
        let tenant = tenant.clone();
        self.read(move |c| queue::request(c, &tenant, id)).await
    }

    async fn start(&self, execution: NewExecution) -> Result<bool, Error> {
        self.write(move |c| queue::start(c, &execution)).await
    }

    async fn leave_queue(&self, tenant: &Tenant, id: ExecutionId, outcome: Outcome) -> Result<bool, Error> {
        let tenant = tenant.clone();
        self.write(move |c| queue::leave(c, &tenant, id, &outcome)).await
    }

    async fn withdraw(&self, tenant: &Tenant, id: ExecutionId) -> Result<bool, Error> {
        let tenant = tenant.clone();
        self.write(move |c| queue::withdraw(c, &tenant, id)).await
    }

    async fn queue_owners(&self) -> Result<Vec<InstanceId>, Error> {
        self.read(queue::owners).await
    }

    async fn adopt(
        &self,
        from_and_to: (InstanceId, InstanceId),
        at: Timestamp,
    ) -> Result<Vec<(Tenant, ExecutionId)>, Error> {
        self.write(move |c| queue::adopt(c, from_and_to, at)).await
    }

    async fn forget_idempotency_keys(&self, before: Timestamp) -> Result<(), Error> {
        self.write(move |c| queue::forget_keys(c, before)).await
    }

    async fn storage_used(&self, tenant: &Tenant) -> Result<u64, Error> {
        let tenant = tenant.clone();
        self.read(move |c| storage::used(c, &tenant)).await
    }

    async fn execution(&self, tenant: &Tenant, id: ExecutionId) -> Result<Execution, Error> {
        let tenant = tenant.clone();
        self.read(move |c| executions::find(c, &tenant, id)).await
    }

    async fn executions(
        &self,
        tenant: &Tenant,
        filter: &ExecutionFilter,
        after: Option<Moment<ExecutionId>>,
        rows: u32,
    ) -> Result<Vec<Execution>, Error> {
        let (tenant, filter) = (tenant.clone(), filter.clone());
        self.read(move |c| executions::list(c, &tenant, &filter, after, rows))
            .await
    }

    async fn interrupt(
        &self,
        instance: InstanceId,
        at: Timestamp,
    ) -> Result<Vec<(Tenant, ExecutionId)>, Error> {
        self.write(move |c| executions::interrupt(c, instance, at)).await
    }

    async fn instances(&self) -> Result<Vec<InstanceId>, Error> {
        self.read(executions::instances).await
    }

    async fn request_cancel(&self, tenant: &Tenant, id: ExecutionId, at: Timestamp) -> Result<bool, Error> {
        let tenant = tenant.clone();
        self.write(move |c| executions::request_cancel(c, &tenant, id, at))
            .await
    }

    async fn cancel_requests(&self, owner: InstanceId) -> Result<Vec<(Tenant, ExecutionId)>, Error> {
        self.read(move |c| executions::cancel_requests(c, owner)).await
    }

    async fn expired(&self, retention: &Retention, rows: u32) -> Result<Vec<(Tenant, ExecutionId)>, Error> {
        let retention = *retention;
        self.read(move |c| retention::expired(c, &retention, rows)).await
    }

    async fn forget(&self, tenant: &Tenant, id: ExecutionId) -> Result<(), Error> {
        let tenant = tenant.clone();
        self.write(move |c| retention::forget(c, &tenant, id)).await
    }

    async fn add_key(&self, key: KeyRecord) -> Result<(), Error> {
        self.write(move |c| keys::add(c, &key)).await
    }

    async fn bootstrap_key(&self, key: KeyRecord) -> Result<bool, Error> {
        self.write(move |c| keys::bootstrap(c, &key)).await
    }

    async fn key(&self, hash: &Digest) -> Result<KeyRecord, Error> {
        if let Some(found) = self.glance(|c| keys::find(c, hash)) {
            return found;
        }
        let hash = *hash;
        self.read(move |c| keys::find(c, &hash)).await
    }

    async fn keys(
        &self,
        tenant: &Tenant,
        after: Option<Moment<KeyId>>,
        rows: u32,
    ) -> Result<Vec<KeyRecord>, Error> {
        let tenant = tenant.clone();
        self.read(move |c| keys::list(c, &tenant, after, rows)).await
    }

    async fn revoke_key(&self, tenant: &Tenant, id: KeyId, at: Timestamp) -> Result<KeyRecord, Error> {
        let tenant = tenant.clone();
        self.write(move |c| keys::revoke(c, &tenant, id, at)).await
    }

    async fn replace_key(
        &self,
        tenant: &Tenant,
        old: KeyId,
        new: KeyRecord,
        at: Timestamp,
    ) -> Result<(), Error> {
        let tenant = tenant.clone();
        self.write(move |c| keys::replace(c, &tenant, old, &new, at))
            .await
    }

    async fn put_secret(&self, new: NewSecret, max: u32) -> Result<Kept, Error> {
        self.write(move |c| secrets::put(c, &new, max)).await
    }

    async fn sealed(&self, tenant: &Tenant, name: &SecretName) -> Result<Vec<u8>, Error> {
        let (tenant, name) = (tenant.clone(), name.clone());
        self.read(move |c| secrets::sealed(c, &tenant, &name)).await
    }

    async fn secrets(
        &self,
        tenant: &Tenant,
        after: Option<SecretName>,
        rows: u32,
    ) -> Result<Vec<SecretRecord>, Error> {
        let tenant = tenant.clone();
        self.read(move |c| secrets::list(c, &tenant, after.as_ref(), rows))
            .await
    }

    async fn delete_secret(&self, tenant: &Tenant, name: &SecretName) -> Result<(), Error> {
        let (tenant, name) = (tenant.clone(), name.clone());
        self.write(move |c| secrets::delete(c, &tenant, &name)).await
    }

    async fn keep_blob(&self, new: BlobRecord, quota: BlobQuota) -> Result<KeptBlob, Error> {
        self.write(move |c| blobs::keep(c, &new, quota)).await
    }

    async fn blob(&self, tenant: &Tenant, digest: &Digest, now: Timestamp) -> Result<BlobRecord, Error> {
        let (tenant, digest) = (tenant.clone(), *digest);
        self.read(move |c| blobs::find(c, &tenant, &digest, now)).await
    }

    async fn blobs(
        &self,
        tenant: &Tenant,
        after: Option<Moment<Digest>>,
        now_and_rows: (Timestamp, u32),
    ) -> Result<Vec<BlobRecord>, Error> {
        let tenant = tenant.clone();
        self.read(move |c| blobs::list(c, &tenant, after, now_and_rows))
            .await
    }

    async fn end_blob(&self, tenant: &Tenant, digest: &Digest, now: Timestamp) -> Result<BlobRecord, Error> {
        let (tenant, digest) = (tenant.clone(), *digest);
        self.write(move |c| blobs::end(c, &tenant, &digest, now)).await
    }

    async fn blob_objects(&self, tenant: &Tenant) -> Result<Vec<BlobObject>, Error> {
        let tenant = tenant.clone();
        self.read(move |c| blobs::objects(c, &tenant)).await
    }

    async fn end_expired_blobs(&self, now: Timestamp, rows: u32) -> Result<Vec<BlobRecord>, Error> {
        self.write(move |c| blobs::end_expired(c, now, rows)).await
    }

    async fn forget_blob(&self, blob: &BlobRecord) -> Result<(), Error> {
        let blob = blob.clone();
        self.write(move |c| blobs::forget(c, &blob)).await
    }

    async fn keep_packages(&self, set: PackageSet) -> Result<(), Error> {
        self.write(move |c| packages::keep(c, &set)).await
    }

    async fn packages(&self, tenant: &Tenant, key: &Digest) -> Result<PackageSet, Error> {
        let (tenant, key) = (tenant.clone(), *key);
        self.read(move |c| packages::find(c, &tenant, &key)).await
    }

    async fn package_sets(
        &self,
        tenant: &Tenant,
        after: Option<Moment<Digest>>,
        rows: u32,
    ) -> Result<Vec<PackageSet>, Error> {
        let tenant = tenant.clone();
        self.read(move |c| packages::list(c, &tenant, after, rows)).await
    }

    async fn packages_used(&self, tenant: &Tenant, key: &Digest, at: Timestamp) -> Result<(), Error> {
        let (tenant, key) = (tenant.clone(), *key);
        self.write(move |c| packages::used(c, &tenant, &key, at)).await
    }

    async fn drop_packages(&self, tenant: &Tenant, key: &Digest) -> Result<PackageSet, Error> {
        let (tenant, key) = (tenant.clone(), *key);
        self.write(move |c| packages::drop(c, &tenant, &key)).await
    }

    async fn surplus_packages(&self, bytes_max: u64, rows: u32) -> Result<Vec<PackageSet>, Error> {
        self.read(move |c| packages::surplus(c, bytes_max, rows)).await
    }

    async fn claim_deliveries(&self, wanted: Wanted) -> Result<Vec<Claimed>, Error> {
        let due = self.read(move |c| due::due(c, &wanted)).await?;
        if due.is_empty() {
            return Ok(Vec::new());
        }
        self.write(move |c| deliveries::claim(c, &due, &wanted)).await
    }

    async fn attempted(&self, attempted: Attempted) -> Result<bool, Error> {
        self.write(move |c| deliveries::attempted(c, &attempted)).await
    }

    async fn next_delivery(&self) -> Result<Option<Timestamp>, Error> {
        self.read(deliveries::next).await
    }

    async fn deliveries(
        &self,
        tenant: &Tenant,
        after: Option<Moment<DeliveryId>>,
        rows: u32,
    ) -> Result<Vec<Delivery>, Error> {
        let tenant = tenant.clone();
        self.read(move |c| deliveries::list(c, &tenant, after, rows))
            .await
    }

    async fn delivery_of(&self, tenant: &Tenant, id: ExecutionId) -> Result<Option<Delivery>, Error> {
        let tenant = tenant.clone();
        self.read(move |c| deliveries::of_execution(c, &tenant, id)).await
    }

    async fn redeliver(&self, tenant: &Tenant, id: DeliveryId, at: Timestamp) -> Result<Delivery, Error> {
        let tenant = tenant.clone();
        self.write(move |c| deliveries::redeliver(c, &tenant, id, at))
            .await
    }

    async fn signing_secret(&self, tenant: &Tenant) -> Result<SealedSigning, Error> {
        let tenant = tenant.clone();
        self.read(move |c| deliveries::signing(c, &tenant)).await
    }

    async fn keep_signing_secret(&self, tenant: &Tenant, new: SealedSigning) -> Result<SealedSigning, Error> {
        let tenant = tenant.clone();
        self.write(move |c| deliveries::keep_signing(c, &tenant, &new))
            .await
    }

    async fn rotate_signing_secret(
        &self,
        tenant: &Tenant,
        new: SealedSigning,
        until: Timestamp,
    ) -> Result<SealedSigning, Error> {
        let tenant = tenant.clone();
        self.write(move |c| deliveries::rotate_signing(c, &tenant, &new, until))
            .await
    }

    async fn packages_are_kept(&self, digest: &Digest) -> Result<bool, Error> {
        let digest = *digest;
        self.read(move |c| packages::are_kept(c, &digest)).await
    }
}
