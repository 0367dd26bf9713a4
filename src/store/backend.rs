//! What every database behind [`Store`](crate::store::Store) can do. Each act is atomic; pages and cursors are not its business.

use jiff::Timestamp;

use crate::auth::KeyRecord;
use crate::execution::{Execution, NewExecution, Outcome};
use crate::ids::{BlobObject, DeliveryId, Digest, ExecutionId, InstanceId, KeyId, Tenant};
use crate::skill::{SecretName, Selector, SkillName, Version};
use crate::store::deliveries::{Attempted, Claimed, Delivery, SealedSigning, Wanted};
use crate::store::{
    BlobQuota, BlobRecord, Enqueued, Error, ExecutionFilter, Kept, KeptBlob, KeyedRequest, Moment, NewSecret,
    PackageSet, Published, Queued, Retention, SecretRecord, SkillRecord,
};
use crate::telemetry::Latency;

/// Lists come with at most `rows` rows, those after the given place.
pub(super) trait Backend {
    fn latency(&self) -> &Latency;
    async fn ping(&self) -> Result<(), Error>;
    /// Gives back memory that only makes the next calls a little faster.
    fn rest(&self);

    async fn publish(&self, skill: SkillRecord) -> Result<Published, Error>;
    async fn skill(
        &self,
        tenant: &Tenant,
        name: &SkillName,
        selector: &Selector,
    ) -> Result<SkillRecord, Error>;
    async fn skills(
        &self,
        tenant: &Tenant,
        after: Option<SkillName>,
        rows: u32,
    ) -> Result<Vec<SkillRecord>, Error>;
    /// Each with the number of its push.
    async fn versions(
        &self,
        tenant: &Tenant,
        name: &SkillName,
        after: Option<u64>,
        rows: u32,
    ) -> Result<Vec<(u64, SkillRecord)>, Error>;
    async fn delete_version(
        &self,
        tenant: &Tenant,
        name: &SkillName,
        version: &Version,
    ) -> Result<SkillRecord, Error>;
    async fn digest_is_used(&self, digest: &Digest) -> Result<bool, Error>;

    async fn begin(&self, execution: NewExecution, recorded: impl FnOnce() + Send) -> Result<(), Error>;
    async fn finish(&self, tenant: &Tenant, id: ExecutionId, outcome: Outcome) -> Result<bool, Error>;
    async fn enqueue(&self, queued: Queued) -> Result<Enqueued, Error>;
    async fn asked_before(&self, tenant: &Tenant, key: KeyedRequest) -> Result<Option<ExecutionId>, Error>;
    async fn queued_request(&self, tenant: &Tenant, id: ExecutionId) -> Result<Vec<u8>, Error>;
    async fn start(&self, execution: NewExecution) -> Result<bool, Error>;
    async fn leave_queue(&self, tenant: &Tenant, id: ExecutionId, outcome: Outcome) -> Result<bool, Error>;
    async fn withdraw(&self, tenant: &Tenant, id: ExecutionId) -> Result<bool, Error>;
    async fn queue_owners(&self) -> Result<Vec<InstanceId>, Error>;
    async fn adopt(
        &self,
        from_and_to: (InstanceId, InstanceId),
        at: Timestamp,
    ) -> Result<Vec<(Tenant, ExecutionId)>, Error>;
    async fn forget_idempotency_keys(&self, before: Timestamp) -> Result<(), Error>;
    async fn storage_used(&self, tenant: &Tenant) -> Result<u64, Error>;
    async fn execution(&self, tenant: &Tenant, id: ExecutionId) -> Result<Execution, Error>;
    async fn executions(
        &self,
        tenant: &Tenant,
        filter: &ExecutionFilter,
        after: Option<Moment<ExecutionId>>,
        rows: u32,
    ) -> Result<Vec<Execution>, Error>;
    async fn interrupt(
        &self,
        instance: InstanceId,
        at: Timestamp,
    ) -> Result<Vec<(Tenant, ExecutionId)>, Error>;
    async fn instances(&self) -> Result<Vec<InstanceId>, Error>;
    async fn request_cancel(&self, tenant: &Tenant, id: ExecutionId, at: Timestamp) -> Result<bool, Error>;
    async fn cancel_requests(&self, owner: InstanceId) -> Result<Vec<(Tenant, ExecutionId)>, Error>;
    async fn expired(&self, retention: &Retention, rows: u32) -> Result<Vec<(Tenant, ExecutionId)>, Error>;
    async fn forget(&self, tenant: &Tenant, id: ExecutionId) -> Result<(), Error>;

    async fn add_key(&self, key: KeyRecord) -> Result<(), Error>;
    async fn bootstrap_key(&self, key: KeyRecord) -> Result<bool, Error>;
    async fn key(&self, hash: &Digest) -> Result<KeyRecord, Error>;
    async fn keys(
        &self,
        tenant: &Tenant,
        after: Option<Moment<KeyId>>,
        rows: u32,
    ) -> Result<Vec<KeyRecord>, Error>;
    async fn revoke_key(&self, tenant: &Tenant, id: KeyId, at: Timestamp) -> Result<KeyRecord, Error>;
    async fn replace_key(
        &self,
        tenant: &Tenant,
        old: KeyId,
        new: KeyRecord,
        at: Timestamp,
    ) -> Result<(), Error>;

    async fn put_secret(&self, new: NewSecret, max: u32) -> Result<Kept, Error>;
    async fn sealed(&self, tenant: &Tenant, name: &SecretName) -> Result<Vec<u8>, Error>;
    async fn secrets(
        &self,
        tenant: &Tenant,
        after: Option<SecretName>,
        rows: u32,
    ) -> Result<Vec<SecretRecord>, Error>;
    async fn delete_secret(&self, tenant: &Tenant, name: &SecretName) -> Result<(), Error>;

    async fn keep_blob(&self, new: BlobRecord, quota: BlobQuota) -> Result<KeptBlob, Error>;
    async fn blob(&self, tenant: &Tenant, digest: &Digest, now: Timestamp) -> Result<BlobRecord, Error>;
    async fn blobs(
        &self,
        tenant: &Tenant,
        after: Option<Moment<Digest>>,
        now_and_rows: (Timestamp, u32),
    ) -> Result<Vec<BlobRecord>, Error>;
    async fn end_blob(&self, tenant: &Tenant, digest: &Digest, now: Timestamp) -> Result<BlobRecord, Error>;
    async fn end_expired_blobs(&self, now: Timestamp, rows: u32) -> Result<Vec<BlobRecord>, Error>;
    async fn blob_objects(&self, tenant: &Tenant) -> Result<Vec<BlobObject>, Error>;
    async fn forget_blob(&self, blob: &BlobRecord) -> Result<(), Error>;
    async fn keep_packages(&self, set: PackageSet) -> Result<(), Error>;
    async fn packages(&self, tenant: &Tenant, key: &Digest) -> Result<PackageSet, Error>;
    async fn package_sets(
        &self,
        tenant: &Tenant,
        after: Option<Moment<Digest>>,
        rows: u32,
    ) -> Result<Vec<PackageSet>, Error>;
    async fn packages_used(&self, tenant: &Tenant, key: &Digest, at: Timestamp) -> Result<(), Error>;
    async fn drop_packages(&self, tenant: &Tenant, key: &Digest) -> Result<PackageSet, Error>;
    async fn surplus_packages(&self, bytes_max: u64, rows: u32) -> Result<Vec<PackageSet>, Error>;
    async fn claim_deliveries(&self, wanted: Wanted) -> Result<Vec<Claimed>, Error>;
    async fn attempted(&self, attempted: Attempted) -> Result<bool, Error>;
    async fn next_delivery(&self) -> Result<Option<Timestamp>, Error>;
    async fn deliveries(
        &self,
        tenant: &Tenant,
        after: Option<Moment<DeliveryId>>,
        rows: u32,
    ) -> Result<Vec<Delivery>, Error>;
    async fn delivery_of(&self, tenant: &Tenant, id: ExecutionId) -> Result<Option<Delivery>, Error>;
    async fn redeliver(&self, tenant: &Tenant, id: DeliveryId, at: Timestamp) -> Result<Delivery, Error>;
    async fn signing_secret(&self, tenant: &Tenant) -> Result<SealedSigning, Error>;
    async fn keep_signing_secret(&self, tenant: &Tenant, new: SealedSigning) -> Result<SealedSigning, Error>;
    async fn rotate_signing_secret(
        &self,
        tenant: &Tenant,
        new: SealedSigning,
        until: Timestamp,
    ) -> Result<SealedSigning, Error>;

    async fn packages_are_kept(&self, digest: &Digest) -> Result<bool, Error>;
}
