//! Objects as files in a folder. An object is written under a random name and renamed when it is durable.

#[cfg_attr(windows, path = "folders_windows.rs")]
mod folders;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::blob::key::BLOBS;
use crate::blob::{Backend, Error, Key, Object, Source};
use crate::ids::{BlobObject, Tenant};
use crate::limits;

use folders::Folders;

pub(super) use folders::Staged;

/// An open folder of objects.
#[derive(Debug)]
pub(super) struct Local(Arc<Folders>);

impl Local {
    pub(super) fn open(root: &Path) -> Result<Self, Error> {
        let folders = Folders::open(root).map_err(|cause| {
            Error::backend(CannotOpen {
                path: root.display().to_string(),
                cause,
            })
        })?;
        folders.remove_stale_temporaries()?;
        Ok(Self(Arc::new(folders)))
    }

    /// Runs `act` where it may block. A call that has begun completes even if its caller is dropped.
    async fn blocking<T: Send + 'static>(
        &self,
        act: impl FnOnce(&Folders) -> io::Result<T> + Send + 'static,
    ) -> Result<T, Error> {
        let folders = self.0.clone();
        let done = tokio::task::spawn_blocking(move || act(&folders)).await;
        Ok(done.map_err(Error::backend)??)
    }
}

impl Backend for Local {
    type Staged = Staged;

    async fn stage(&self, source: File) -> Result<Staged, Error> {
        written(self.blocking(move |folders| folders.stage(source)).await)
    }

    async fn place(&self, staged: Staged, key: &Key) -> Result<u64, Error> {
        let key = key.clone();
        written(self.blocking(move |folders| folders.place(staged, &key)).await)
    }

    async fn open(&self, key: &Key) -> Result<Object, Error> {
        let key = key.clone();
        let file = self.blocking(move |folders| folders.find(&key)).await?;
        Ok(Object {
            size: file.metadata()?.len(),
            source: Source::Local(file),
        })
    }

    async fn delete(&self, key: &Key) -> Result<(), Error> {
        let key = key.clone();
        match self.blocking(move |folders| folders.delete(&key)).await {
            Err(Error::NotFound) => Ok(()),
            done => done,
        }
    }

    async fn blob_owners(&self) -> Result<Vec<Tenant>, Error> {
        self.blocking(|folders| folders.names(&[], limits::BLOB_OBJECTS_COMPARED_MAX))
            .await
    }

    async fn blob_objects(&self, tenant: &Tenant, max: usize) -> Result<Vec<BlobObject>, Error> {
        let tenant = tenant.to_string();
        let found = self.blocking(move |folders| folders.names(&[&tenant, BLOBS], max));
        match found.await {
            Err(Error::NotFound) => Ok(Vec::new()),
            found => found,
        }
    }

    async fn ping(&self) -> Result<(), Error> {
        written(self.blocking(Folders::probe).await)
    }
}

/// A missing file here means a missing folder, not a missing object.
fn written<T>(result: Result<T, Error>) -> Result<T, Error> {
    match result {
        Err(Error::NotFound) => Err(Error::backend("the folder of objects no longer exists")),
        done => done,
    }
}

#[derive(Debug, thiserror::Error)]
#[error("cannot use the folder {path}: {cause}")]
struct CannotOpen {
    path: String,
    cause: io::Error,
}
