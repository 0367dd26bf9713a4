//! What every backend of [`Blob`](crate::blob::Blob) does.

use std::fs::File;

use crate::blob::{Error, Key, Object};
use crate::ids::{BlobObject, Tenant};

pub(super) trait Backend {
    /// Deletes itself when dropped, unless it was placed.
    type Staged;

    async fn stage(&self, source: File) -> Result<Self::Staged, Error>;
    async fn place(&self, staged: Self::Staged, key: &Key) -> Result<u64, Error>;
    async fn open(&self, key: &Key) -> Result<Object, Error>;
    async fn delete(&self, key: &Key) -> Result<(), Error>;
    async fn blob_owners(&self) -> Result<Vec<Tenant>, Error>;
    async fn blob_objects(&self, tenant: &Tenant, max: usize) -> Result<Vec<BlobObject>, Error>;
    async fn ping(&self) -> Result<(), Error>;
}
