//! Sets of installed packages as they are kept: bytes in the blob store, a folder on this host, a row that says so.

use std::fs::File;
use std::path::PathBuf;

use crate::blob;
use crate::engine::deps::{SetName, declared::Wanted};
use crate::engine::{Engine, clock, failure};
use crate::error::{Code, Error};
use crate::store::PackageSet;

pub(super) fn key_of(set: &PackageSet) -> blob::Key {
    blob::Key::Packages {
        tenant: set.tenant.clone(),
        key: set.key,
    }
}

impl Engine {
    /// Keeps what an installer left; of two that install the same, the last stays.
    pub(super) async fn keep_packages(
        &self,
        (tenant, key): &SetName,
        wanted: &Wanted,
        tar: File,
    ) -> Result<(PackageSet, PathBuf), Error> {
        let again = tar.try_clone().map_err(failure::of_io)?;
        let turn = self.0.packages.turn().await;
        let engine = self.clone();
        let unpacking = tokio::task::spawn_blocking(move || {
            let unpacked = engine.0.packages.unpack(&tar).map_err(not_packages)?;
            let listing = unpacked.listing.clone();
            let folder = engine.0.packages.keep(unpacked).map_err(failure::of_io)?;
            Ok::<_, Error>((listing, folder))
        });
        let (listing, folder) = unpacking.await.map_err(Error::internal)??;
        drop(turn);
        let now = clock::now();
        let set = PackageSet {
            tenant: tenant.clone(),
            key: *key,
            language: wanted.language(),
            wanted: wanted.names(),
            digest: listing.digest(),
            bytes: listing.bytes_total(),
            files: u32::try_from(listing.entries().len()).unwrap_or(u32::MAX),
            created_at: now,
            used_at: now,
        };
        let kept = self.0.blob.put(&key_of(&set), again).await;
        kept.map_err(|error| failure::of_blob(error, "installed packages"))?;
        self.0.store.put_packages(set.clone()).await?;
        Ok((set, folder))
    }

    /// The folder of a set, if it is on this host.
    pub(super) async fn packages_here(&self, set: &PackageSet) -> Result<Option<PathBuf>, Error> {
        let digest = set.digest;
        self.on_packages(move |cache| Ok(cache.find(&digest))).await
    }

    /// The folder of a set on this host, fetched if it is not here; `None` if its bytes have gone or are not what they were.
    pub(super) async fn packages_folder(&self, set: &PackageSet) -> Result<Option<PathBuf>, Error> {
        if let Some(folder) = self.packages_here(set).await? {
            return Ok(Some(folder));
        }
        let digest = set.digest;
        let object = match self.0.blob.open(&key_of(set)).await {
            Ok(object) => object,
            Err(blob::Error::NotFound) => return Ok(None),
            Err(error) => return Err(failure::of_blob(error, "installed packages")),
        };
        let _turn = self.0.packages.turn().await;
        let tar = self.copy_object(object).await?;
        let engine = self.clone();
        let unpacking = tokio::task::spawn_blocking(move || {
            let unpacked = engine.0.packages.unpack(&tar).ok();
            // F-20: other bytes are not mounted; they are installed anew.
            let unpacked = unpacked.filter(|unpacked| unpacked.listing.digest() == digest);
            let kept = unpacked.map(|unpacked| engine.0.packages.keep(unpacked));
            kept.transpose().map_err(failure::of_io)
        });
        unpacking.await.map_err(Error::internal)?
    }
}

/// What came out of an installer is its packages' doing.
fn not_packages(error: crate::bundle::Error) -> Error {
    match Error::from(error) {
        error if matches!(error.code(), Code::Invalid | Code::TooLarge) => Error::new(
            Code::DependenciesFailed,
            format!("the packages were installed and cannot be kept: {error}"),
        ),
        error => error,
    }
}
