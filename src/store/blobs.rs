//! Blobs, without their bytes.
//!
//! A process that is about to delete a blob's bytes retires its row first, and a retired row never gets these bytes back. No clock
//! decides this: an upload may have begun long before.

use jiff::Timestamp;

use crate::ids::{BlobObject, Digest, Tenant};
use crate::store::cursor::{List, Moment};
use crate::store::{Error, acts};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobRecord {
    pub tenant: Tenant,
    /// The content, and its name.
    pub digest: Digest,
    /// Where its bytes are.
    pub object: BlobObject,
    pub size: u64,
    pub media_type: String,
    pub created_at: Timestamp,
    /// From then on it is not found.
    pub expires_at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SavedBlob {
    New {
        /// Bytes of the same content that had expired and that no row names any more.
        replaced: Option<BlobObject>,
    },
    /// The content existed; this is its record.
    Existing(BlobRecord),
}

/// How much one tenant stores, or may store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlobQuota {
    pub count: u64,
    pub bytes: u64,
}

acts! {
    trait Blobs {
        /// Saves a blob. If its content exists and is not retired, only its expiry moves, and never back. [`Error::Quota`] if it would
        /// exceed `quota`; an expired blob counts until it is deleted.
        async fn put_blob(&self, new: BlobRecord, quota: BlobQuota) -> Result<SavedBlob, Error>;
        /// A blob that has not expired.
        async fn blob(&self, tenant: &Tenant, digest: &Digest, now: Timestamp) -> Result<BlobRecord, Error>;
        /// Number and size of a tenant's blobs, expired or not.
        async fn blobs_used(&self, tenant: &Tenant) -> Result<BlobQuota, Error>;
        /// Retires a blob that has not expired: it is not found any more, and its content gets other bytes if it is uploaded again.
        /// Its bytes and its row are still to be deleted.
        async fn retire_blob(&self, tenant: &Tenant, digest: &Digest, now: Timestamp) -> Result<BlobRecord, Error>;
        /// As [`retire_blob`](Self::retire_blob), for at most `rows` expired blobs of all tenants; those that were retired before and
        /// are not deleted yet are returned again.
        async fn retire_expired_blobs(&self, now: Timestamp, rows: u32) -> Result<Vec<BlobRecord>, Error>;
        /// The objects of all of a tenant's blobs, expired or not. Its limit is the tenant's quota: bytes whose object is missing here
        /// would be deleted.
        async fn blob_objects(&self, tenant: &Tenant) -> Result<Vec<BlobObject>, Error>;
        /// Deletes the row of a retired blob whose bytes are deleted. Content that was uploaded again stays.
        async fn delete_retired_blob(&self, blob: &BlobRecord) -> Result<(), Error>;
    }
    lists {
        /// A tenant's blobs that have not expired, the newest first.
        async fn blobs(&self, tenant: &Tenant, now: Timestamp) -> BlobRecord
            = List::Blobs(tenant), after Moment<Digest>: |blob| Moment::new(blob.created_at, blob.digest);
    }
}
