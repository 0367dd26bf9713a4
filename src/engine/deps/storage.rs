//! Stored package sets: bytes in the blob store, a folder on this host, and a row.

use std::fs::File;
use std::path::PathBuf;

use crate::blob;
use crate::engine::deps::{PackageSetKey, requested::RequestedPackages};
use crate::engine::{Packages, clock, failure};
use crate::error::{Code, Error};
use crate::store::PackageSet;

pub(super) fn blob_key(set: &PackageSet) -> blob::Key {
    blob::Key::Packages {
        tenant: set.tenant.clone(),
        key: set.key,
    }
}

impl Packages<'_> {
    /// Stores what an installer wrote. If two install the same set, the last one wins.
    pub(super) async fn store_set(
        self,
        name: &PackageSetKey,
        wanted: &RequestedPackages,
        tar: File,
    ) -> Result<(PackageSet, PathBuf), Error> {
        let again = tar.try_clone().map_err(failure::of_io)?;
        let permit = self.engine.packages.unpack_permit().await;
        let folders = self.engine.packages.of(&name.tenant);
        let unpacking = tokio::task::spawn_blocking(move || {
            let unpacked = folders.unpack(&tar).map_err(invalid_packages)?;
            let listing = unpacked.listing.clone();
            let folder = folders.keep(unpacked).map_err(failure::of_io)?;
            Ok::<_, Error>((listing, folder))
        });
        let (listing, folder) = unpacking.await.map_err(Error::internal)??;
        drop(permit);
        let now = clock::now();
        let set = PackageSet {
            tenant: name.tenant.clone(),
            key: name.key,
            language: wanted.language(),
            wanted: wanted.names(),
            digest: listing.digest(),
            bytes: listing.bytes_total(),
            files: u32::try_from(listing.entries().len()).unwrap_or(u32::MAX),
            created_at: now,
            used_at: now,
        };
        let kept = self.engine.blob.put(&blob_key(&set), again).await;
        kept.map_err(|error| failure::of_blob(error, "installed packages"))?;
        self.engine.store.put_packages(set.clone()).await?;
        Ok((set, folder))
    }

    /// The folder of a set, if it is on this host.
    pub(super) async fn local_folder(self, set: &PackageSet) -> Result<Option<PathBuf>, Error> {
        let digest = set.digest;
        self.on_folders(&set.tenant, move |folders| Ok(folders.find(&digest)))
            .await
    }

    /// The folder of a set, fetched if it is not on this host; `None` if its bytes are missing or changed.
    pub(super) async fn fetch_folder(self, set: &PackageSet) -> Result<Option<PathBuf>, Error> {
        if let Some(folder) = self.local_folder(set).await? {
            return Ok(Some(folder));
        }
        let digest = set.digest;
        let object = match self.engine.blob.open(&blob_key(set)).await {
            Ok(object) => object,
            Err(blob::Error::NotFound) => return Ok(None),
            Err(error) => return Err(failure::of_blob(error, "installed packages")),
        };
        let _permit = self.engine.packages.unpack_permit().await;
        let tar = self.engine.copy_object(object).await?;
        let folders = self.engine.packages.of(&set.tenant);
        let unpacking = tokio::task::spawn_blocking(move || {
            let unpacked = folders.unpack(&tar).ok();
            // F-20: changed bytes are not mounted but installed again.
            let unpacked = unpacked.filter(|unpacked| unpacked.listing.digest() == digest);
            let kept = unpacked.map(|unpacked| folders.keep(unpacked));
            kept.transpose().map_err(failure::of_io)
        });
        unpacking.await.map_err(Error::internal)?
    }
}

/// The content of packages, not this server, caused the error.
fn invalid_packages(error: crate::bundle::Error) -> Error {
    match Error::from(error) {
        error if matches!(error.code(), Code::Invalid | Code::TooLarge) => Error::new(
            Code::DependenciesFailed,
            format!("the installed packages cannot be stored: {error}"),
        ),
        error => error,
    }
}
