//! Objects: skill archives, artifacts, blobs and packages, each under a key of checked names, each put atomically.
//!
//! `contract` tests what every backend must do.

mod backend;
#[cfg(test)]
mod contract;
mod error;
mod key;
mod links;
mod local;

use std::fs::File;
use std::io::{Seek as _, SeekFrom};
use std::ops::Range;
use std::path::Path;

use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::ids::{BlobObject, Tenant};
use crate::telemetry::StoredBytes;

use backend::Backend;

pub use error::Error;
pub use key::Key;
pub use links::{Link, LinkSigner, Refused, WeakSecret};

#[derive(Debug)]
pub struct Blob {
    kind: Kind,
    kept: StoredBytes,
}

#[derive(Debug)]
enum Kind {
    Local(local::Local),
}

macro_rules! on_backend {
    ($blob:expr, $backend:ident => $call:expr) => {
        match &$blob.kind {
            Kind::Local($backend) => $call,
        }
    };
}

impl Blob {
    /// Opens the folder `root`, created with mode 0700 if it does not exist. Blocks.
    ///
    /// A folder that belongs to another user or that others may write to is rejected (C-07).
    pub fn open_local(root: &Path) -> Result<Self, Error> {
        local::Local::open(root).map(|local| Self {
            kind: Kind::Local(local),
            kept: StoredBytes::default(),
        })
    }

    /// Stores all of `source`, from its beginning, under `key` and returns its size in bytes.
    ///
    /// An object under `key` stays until all of the new bytes are durable, and on an error.
    pub async fn put(&self, key: &Key, source: File) -> Result<u64, Error> {
        let staged = self.stage(source).await?;
        self.place(staged, key).await
    }

    /// The first part of [`put`](Self::put), which takes long and needs space: makes the bytes durable.
    pub async fn stage(&self, source: File) -> Result<Staged, Error> {
        match &self.kind {
            Kind::Local(local) => local.stage(source).await.map(StagedIn::Local).map(Staged),
        }
    }

    /// The last part of [`put`](Self::put): moves the bytes to their key.
    pub async fn place(&self, Staged(staged): Staged, key: &Key) -> Result<u64, Error> {
        let bytes = match (&self.kind, staged) {
            (Kind::Local(local), StagedIn::Local(staged)) => local.place(staged, key).await?,
        };
        self.kept.add(key.kind(), bytes);
        Ok(bytes)
    }

    /// The object under `key`. It stays readable to its end if it is replaced or deleted.
    pub async fn open(&self, key: &Key) -> Result<Object, Error> {
        on_backend!(self, b => b.open(key).await)
    }

    /// Deletes the object under `key`, if it exists.
    pub async fn delete(&self, key: &Key) -> Result<(), Error> {
        on_backend!(self, b => b.delete(key).await)
    }

    /// The tenants that have, or had, blobs.
    pub async fn blob_owners(&self) -> Result<Vec<Tenant>, Error> {
        on_backend!(self, b => b.blob_owners().await)
    }

    /// The objects of a tenant's blobs, at most `max` in no order, including those that a deletion left incomplete.
    pub async fn blob_objects(&self, tenant: &Tenant, max: usize) -> Result<Vec<BlobObject>, Error> {
        on_backend!(self, b => b.blob_objects(tenant, max).await)
    }

    /// How much was stored.
    #[must_use]
    pub fn kept(&self) -> &StoredBytes {
        &self.kept
    }

    /// Whether objects can be written: writes a few bytes and deletes them.
    pub async fn ping(&self) -> Result<(), Error> {
        on_backend!(self, b => b.ping().await)
    }
}

/// Durable bytes without a key; deleted when dropped.
#[derive(Debug)]
pub struct Staged(StagedIn);

#[derive(Debug)]
enum StagedIn {
    Local(local::Staged),
}

#[derive(Debug)]
pub struct Object {
    size: u64,
    source: Source,
}

#[derive(Debug)]
enum Source {
    Local(File),
}

impl Object {
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// A file of this host with all its bytes, from the beginning. Async, because a remote backend downloads it.
    pub async fn into_file(self) -> Result<File, Error> {
        match self.source {
            Source::Local(file) => Ok(file),
        }
    }

    /// The bytes of `range`, as far as the object has them.
    pub async fn into_reader(
        self,
        range: Range<u64>,
    ) -> Result<impl AsyncRead + Send + Unpin + 'static, Error> {
        let length = range.end.saturating_sub(range.start);
        match self.source {
            Source::Local(mut file) => {
                file.seek(SeekFrom::Start(range.start))?;
                Ok(tokio::fs::File::from_std(file).take(length))
            }
        }
    }
}
