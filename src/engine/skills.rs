//! Publishes, finds and deletes skills.

use std::fs::File;
use std::io;
use std::path::PathBuf;

use crate::blob;
use crate::bundle;
use crate::engine::added_packages::check_requirements;
use crate::engine::cache::{SkillCache, Unpacked};
use crate::engine::{PageRequest, SkillAction, SkillChange, Skills, clock, failure, rows};
use crate::error::{Code, Error, quoted};
use crate::ids::{Digest, KeyId, Tenant};
use crate::limits;
use crate::skill::{Manifest, Selector, SkillName, SkillTraits, Version, Warning};
use crate::store::{self, Page, Published, SkillRecord};

/// The origin of a push.
#[derive(Debug)]
pub struct PushSource {
    pub tenant: Tenant,
    /// Name of the folder or archive; names a skill that declares no name.
    pub folder: Option<String>,
    pub key: Option<KeyId>,
    /// Packages to add to the version. If absent, those of the version that was `latest` until now are carried over.
    pub requirements: Option<Vec<String>>,
}

impl Skills<'_> {
    /// Publishes an archive under the name and version that it declares. Different content under a published version
    /// is a conflict.
    pub async fn publish(
        self,
        tenant: &Tenant,
        archive: File,
        fallback_name: Option<&str>,
    ) -> Result<(SkillRecord, Published), Error> {
        let source = PushSource {
            tenant: tenant.clone(),
            folder: fallback_name.map(ToOwned::to_owned),
            key: None,
            requirements: None,
        };
        self.publish_from(source, archive).await
    }

    /// As [`publish`](Self::publish), for the key of a caller. The record has a warning if another skill has this name.
    pub async fn publish_from(
        self,
        source: PushSource,
        archive: File,
    ) -> Result<(SkillRecord, Published), Error> {
        let engine = self.engine.clone();
        // Finish even if the client disconnects, so that no row remains without bytes.
        self.engine
            .run_detached(async move { engine.skills().publish_attached(source, archive).await })
            .await
    }

    async fn publish_attached(
        self,
        source: PushSource,
        archive: File,
    ) -> Result<(SkillRecord, Published), Error> {
        let PushSource {
            tenant,
            folder,
            key,
            requirements,
        } = source;
        let archive_bytes = archive.metadata().map_err(failure::of_io)?.len();
        if archive_bytes > limits::ARCHIVE_BYTES_MAX {
            let message = format!(
                "the archive has {archive_bytes} bytes, the limit is {}",
                limits::ARCHIVE_BYTES_MAX
            );
            return Err(Error::new(Code::TooLarge, message));
        }
        self.engine.check_storage(&tenant, archive_bytes).await?;
        let again = archive.try_clone().map_err(failure::of_io)?;
        let (unpacked, manifest) = self.unpack(archive, folder.clone()).await?;
        let added = match &requirements {
            Some(requirements) => check_requirements(&manifest, requirements)?,
            None => self.carried(&tenant, &manifest).await?,
        };
        let listing = &unpacked.listing;
        let digest = listing.digest();
        let record = SkillRecord {
            tenant: tenant.clone(),
            name: manifest.name.clone(),
            version: manifest
                .version
                .clone()
                .unwrap_or_else(|| Version::unnamed(&digest)),
            digest,
            archive_bytes,
            unpacked_bytes: listing.bytes_total(),
            files: u32::try_from(listing.entries().len()).unwrap_or(u32::MAX),
            folder: listing.folder().map(ToOwned::to_owned).or(folder),
            pushed_by: key,
            requirements: added,
            created_at: clock::now(),
            manifest,
        };
        self.on_cache(move |cache| cache.keep(unpacked)).await?;
        // Slow steps, and those that need disk space, come before the row.
        let staged = self.engine.blob.stage(again).await;
        let staged = staged.map_err(|error| failure::of_blob(error, "archive"))?;
        // The row decides a race between two uploads of one version. Only the winner's bytes are stored (C-02).
        let other = self.other_skill(&record).await?;
        let published = self.engine.store.publish(record.clone()).await?;
        self.place_archive(&record, &published, staged).await?;
        // For the answer of this push only.
        let warned = |mut record: SkillRecord| {
            record.manifest.warnings.extend(other);
            record
        };
        match published {
            Published::New => {
                tracing::info!(skill = %record.name, version = %record.version, digest = %record.digest, "Published {} {}", record.name, record.version);
                self.publish_change(&record, SkillAction::Published);
                Ok((warned(record), Published::New))
            }
            Published::Same(mut existing) => {
                if requirements.is_some() && existing.requirements != record.requirements {
                    let added = record.requirements.clone();
                    existing.requirements.clone_from(&added);
                    self.engine
                        .store
                        .set_requirements(&tenant, &record.name, &record.version, added)
                        .await?;
                }
                Ok((warned(existing.as_ref().clone()), Published::Same(existing)))
            }
        }
    }

    /// The packages that were added to the version that is `latest`, as far as they suit the new one.
    async fn carried(self, tenant: &Tenant, manifest: &Manifest) -> Result<Vec<String>, Error> {
        match self
            .engine
            .store
            .skill(tenant, &manifest.name, &Selector::Latest)
            .await
        {
            Ok(before) if before.manifest.package_language() == manifest.package_language() => {
                Ok(before.requirements)
            }
            Ok(_) | Err(store::Error::NotFound(_)) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }

    /// Replaces the packages that were added to a version. Returns its record.
    pub async fn set_requirements(
        self,
        tenant: &Tenant,
        name: &SkillName,
        selector: &Selector,
        requirements: &[String],
    ) -> Result<SkillRecord, Error> {
        let mut record = self.get(tenant, name, selector).await?;
        record.requirements = check_requirements(&record.manifest, requirements)?;
        self.engine
            .store
            .set_requirements(tenant, name, &record.version, record.requirements.clone())
            .await?;
        Ok(record)
    }

    /// A warning if the last push of this name was another skill.
    async fn other_skill(self, record: &SkillRecord) -> Result<Option<Warning>, Error> {
        let SkillRecord { tenant, name, .. } = record;
        let before = self.engine.store.versions(tenant, name, None, 1).await?;
        let Some(before) = before.items.into_iter().next() else {
            return Ok(None);
        };
        if before.digest == record.digest || traits(&before).are_of_one_skill(&traits(record)) {
            return Ok(None);
        }
        let key = match before.pushed_by {
            Some(id) => match self.engine.store.key_by_id(tenant, id).await {
                Ok(key) => format!(" by the key {} ({}…)", quoted(&key.name), key.hint),
                Err(store::Error::NotFound(_)) => String::new(),
                Err(error) => return Err(error.into()),
            },
            None => String::new(),
        };
        let folder = before
            .folder
            .as_deref()
            .map_or_else(String::new, |folder| format!(" from {}", quoted(folder)));
        let pushed = before.created_at.strftime("%Y-%m-%d");
        let description = quoted(&before.manifest.description);
        let version = before.version;
        Ok(Some(Warning {
            line: None,
            message: format!(
                "another skill has the name `{name}`: version {version}, pushed{folder} on {pushed}{key}, is described as {description}; rename one of them if both are needed"
            ),
        }))
    }

    /// Stores the archive of a new version, or of an existing one whose bytes were lost.
    async fn place_archive(
        self,
        record: &SkillRecord,
        published: &Published,
        archive: blob::Staged,
    ) -> Result<(), Error> {
        let key = archive_key(record);
        let missing = match published {
            Published::New => true,
            Published::Same(_) => matches!(self.engine.blob.open(&key).await, Err(blob::Error::NotFound)),
        };
        if !missing {
            return Ok(());
        }
        let Err(error) = self.engine.blob.place(archive, &key).await else {
            return Ok(());
        };
        if matches!(published, Published::New) {
            // Undo, so that no version remains without an archive.
            let undone = self
                .engine
                .store
                .delete_version(&record.tenant, &record.name, &record.version)
                .await;
            if let Err(error) = undone {
                tracing::error!(skill = %record.name, %error, "Version without archive not deleted");
            }
        }
        Err(failure::of_blob(error, "archive"))
    }

    /// On a blocking thread.
    pub(super) async fn unpack(
        self,
        archive: File,
        fallback: Option<String>,
    ) -> Result<(Unpacked, Manifest), Error> {
        let _permit = self.engine.cache.unpack_permit().await;
        let engine = self.engine.clone();
        let blocking = tokio::task::spawn_blocking(move || {
            let unpacked = engine.cache.unpack(&archive)?;
            let manifest = bundle::load(unpacked.folder(), &unpacked.listing, fallback.as_deref())?;
            Ok::<_, bundle::Error>((unpacked, manifest))
        });
        Ok(blocking.await.map_err(Error::internal)??)
    }

    /// The folder of a published skill on this host, fetched and unpacked if missing.
    pub(super) async fn folder(self, record: &SkillRecord) -> Result<PathBuf, Error> {
        if let Some(folder) = self.cached(record.digest).await? {
            return Ok(folder);
        }
        let _permit = self.engine.cache.unpack_permit().await;
        // Another task may have fetched it meanwhile.
        if let Some(folder) = self.cached(record.digest).await? {
            return Ok(folder);
        }
        let archive = self.fetch(record).await?;
        let (engine, digest) = (self.engine.clone(), record.digest);
        let blocking = tokio::task::spawn_blocking(move || {
            let unpacked = engine.cache.unpack(&archive)?;
            // F-20: changed bytes are detected before anything runs.
            if unpacked.listing.digest() != digest {
                return Err(Error::internal(format!(
                    "an archive has another digest than {digest}"
                )));
            }
            engine.cache.keep(unpacked).map_err(failure::of_io)
        });
        blocking.await.map_err(Error::internal)?
    }

    async fn cached(self, digest: Digest) -> Result<Option<PathBuf>, Error> {
        let cache = &self.engine.cache;
        if cache.is_verified(&digest) {
            // Two system calls take less time than another thread.
            return Ok(cache.find(&digest));
        }
        self.on_cache(move |cache| Ok(cache.find(&digest))).await
    }

    /// Copies the archive of a version into an unnamed local file.
    async fn fetch(self, record: &SkillRecord) -> Result<File, Error> {
        let object = self.open_archive(record).await?;
        self.engine.copy_object(object).await
    }

    /// On a blocking thread, since a skill may have thousands of files.
    pub(super) async fn on_cache<T: Send + 'static>(
        self,
        work: impl FnOnce(&SkillCache) -> io::Result<T> + Send + 'static,
    ) -> Result<T, Error> {
        let engine = self.engine.clone();
        let worked = tokio::task::spawn_blocking(move || work(&engine.cache)).await;
        worked.map_err(Error::internal)?.map_err(failure::of_io)
    }

    /// The latest version of each skill, by name.
    pub async fn list(self, tenant: &Tenant, page: PageRequest) -> Result<Page<SkillRecord>, Error> {
        let rows = rows(&page);
        Ok(self.engine.store.skills(tenant, page.after, rows).await?)
    }

    /// Most recent push first.
    pub async fn versions(
        self,
        tenant: &Tenant,
        name: &SkillName,
        page: PageRequest,
    ) -> Result<Page<SkillRecord>, Error> {
        let (first, rows) = (page.after.is_none(), rows(&page));
        let found = self.engine.store.versions(tenant, name, page.after, rows).await?;
        if first && found.items.is_empty() {
            Err(Error::not_found(format!("skill `{name}`")))
        } else {
            Ok(found)
        }
    }

    pub async fn get(
        self,
        tenant: &Tenant,
        name: &SkillName,
        selector: &Selector,
    ) -> Result<SkillRecord, Error> {
        Ok(self.engine.store.skill(tenant, name, selector).await?)
    }

    /// The version that `latest` selects; `None` if the skill has no version.
    pub async fn latest(self, tenant: &Tenant, name: &SkillName) -> Result<Option<Version>, Error> {
        match self.engine.store.skill(tenant, name, &Selector::Latest).await {
            Ok(record) => Ok(Some(record.version)),
            Err(store::Error::NotFound(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Running executions of the version are not affected.
    pub async fn delete(self, tenant: &Tenant, name: &SkillName, selector: &Selector) -> Result<(), Error> {
        let record = self.get(tenant, name, selector).await?;
        let engine = self.engine.clone();
        // Finish even if the client disconnects.
        self.engine
            .run_detached(async move { engine.skills().delete_attached(&record).await })
            .await
    }

    /// Bytes first: otherwise a push of the same version in between would lose its own bytes.
    async fn delete_attached(self, record: &SkillRecord) -> Result<(), Error> {
        let SkillRecord {
            tenant,
            name,
            version,
            ..
        } = record;
        let deleted = self.engine.blob.delete(&archive_key(record)).await;
        deleted.map_err(|error| failure::of_blob(error, "archive"))?;
        self.engine.store.delete_version(tenant, name, version).await?;
        self.publish_change(record, SkillAction::Deleted);
        tracing::info!(skill = %name, version = %version, "Deleted {name} {version}");
        Ok(())
    }

    fn publish_change(self, record: &SkillRecord, action: SkillAction) {
        let change = SkillChange {
            name: record.name.clone(),
            version: record.version.clone(),
            action,
        };
        self.engine.publish_skill(&record.tenant, change);
    }

    pub async fn archive(
        self,
        tenant: &Tenant,
        name: &SkillName,
        selector: &Selector,
    ) -> Result<(SkillRecord, blob::Object), Error> {
        let record = self.get(tenant, name, selector).await?;
        let object = self.open_archive(&record).await?;
        Ok((record, object))
    }

    async fn open_archive(self, record: &SkillRecord) -> Result<blob::Object, Error> {
        let SkillRecord { name, version, .. } = record;
        match self.engine.blob.open(&archive_key(record)).await {
            // The version is being deleted, or a crash came between its row and its bytes.
            Err(blob::Error::NotFound) => Err(Error::new(
                Code::NotFound,
                format!(
                    "the archive of skill `{name}` version `{version}` is missing; push the same files again"
                ),
            )),
            opened => opened.map_err(|error| failure::of_blob(error, "archive")),
        }
    }
}

fn traits(record: &SkillRecord) -> SkillTraits<'_> {
    SkillTraits {
        folder: record.folder.as_deref(),
        description: &record.manifest.description,
    }
}

fn archive_key(record: &SkillRecord) -> blob::Key {
    blob::Key::SkillArchive {
        tenant: record.tenant.clone(),
        skill: record.name.clone(),
        version: record.version.clone(),
    }
}
