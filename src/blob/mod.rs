//! Keeps bytes: skill archives and artifacts, each under a key made of checked names, each put whole or not at all.
//!
//! What a backend must keep to is written as tests in `contract`, the same for each.

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

/// A place for objects.
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
    /// Opens the folder `root`, made with mode 0700 if it is not there. Blocks.
    ///
    /// A folder that belongs to somebody else or that others may write to is refused (C-07).
    pub fn open_local(root: &Path) -> Result<Self, Error> {
        local::Local::open(root).map(|local| Self {
            kind: Kind::Local(local),
            kept: StoredBytes::default(),
        })
    }

    /// Keeps all of `source`, wherever its position is, under `key` and returns its size in bytes.
    ///
    /// What was under `key` is there until all of the new bytes are durable; on an error it stays.
    pub async fn put(&self, key: &Key, source: File) -> Result<u64, Error> {
        let staged = self.stage(source).await?;
        self.place(staged, key).await
    }

    /// The first part of [`put`](Self::put), and all that takes long or needs much room: makes the bytes durable.
    pub async fn stage(&self, source: File) -> Result<Staged, Error> {
        match &self.kind {
            Kind::Local(local) => local.stage(source).await.map(StagedIn::Local).map(Staged),
        }
    }

    /// The last part of [`put`](Self::put): gives the bytes their key.
    pub async fn place(&self, Staged(staged): Staged, key: &Key) -> Result<u64, Error> {
        let bytes = match (&self.kind, staged) {
            (Kind::Local(local), StagedIn::Local(staged)) => local.place(staged, key).await?,
        };
        self.kept.add(key.kind(), bytes);
        Ok(bytes)
    }

    /// The object under `key`, as it is now: it stays readable to its end when it is replaced or deleted meanwhile.
    pub async fn open(&self, key: &Key) -> Result<Object, Error> {
        on_backend!(self, b => b.open(key).await)
    }

    /// Removes what is under `key`, if anything is.
    pub async fn delete(&self, key: &Key) -> Result<(), Error> {
        on_backend!(self, b => b.delete(key).await)
    }

    /// The tenants that have, or had, blobs.
    pub async fn blob_owners(&self) -> Result<Vec<Tenant>, Error> {
        on_backend!(self, b => b.blob_owners().await)
    }

    /// The objects of a tenant's blobs, at most `max` of them in no order, be they whole or what a removal left.
    pub async fn blob_objects(&self, tenant: &Tenant, max: usize) -> Result<Vec<BlobObject>, Error> {
        on_backend!(self, b => b.blob_objects(tenant, max).await)
    }

    /// How much was kept.
    #[must_use]
    pub fn kept(&self) -> &StoredBytes {
        &self.kept
    }

    /// Whether objects can be written: writes a few bytes and removes them.
    pub async fn ping(&self) -> Result<(), Error> {
        on_backend!(self, b => b.ping().await)
    }
}

/// Bytes that nobody finds yet; gone when dropped.
#[derive(Debug)]
pub struct Staged(StagedIn);

#[derive(Debug)]
enum StagedIn {
    Local(local::Staged),
}

/// An object that can be read.
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
    /// Size in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// A file of this host with all its bytes, from the beginning.
    #[must_use]
    pub fn into_file(self) -> File {
        match self.source {
            Source::Local(file) => file,
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
