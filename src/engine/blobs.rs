//! Blobs: stored by digest, passed to programs, returned by programs, expired.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::ops::Range;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use sha2::Digest as _;

use crate::blob::{self, Object};
use crate::bundle::artifacts::ArtifactTar;
use crate::engine::{Blobs, PageRequest, clock, failure, rows};
use crate::error::{Code, Error};
use crate::execution::{FileEntry, Outcome, OutputBlob, Skipped};
use crate::ids::{BlobObject, Digest, Tenant};
use crate::limits;
use crate::sandbox::{InputBlob, Job};
use crate::store::{self, BlobQuota, BlobRecord, Page, Saved, SavedBlob};

/// Quota and lifetime of a tenant's blobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlobPolicy {
    /// For all blobs of one tenant.
    pub quota_bytes: u64,
    /// Default lifetime.
    pub life: Duration,
}

impl Default for BlobPolicy {
    fn default() -> Self {
        Self {
            quota_bytes: limits::BLOBS_QUOTA_BYTES,
            life: limits::BLOB_LIFE,
        }
    }
}

/// A blob to store.
#[derive(Debug)]
pub struct NewBlob {
    /// The file position does not matter.
    pub content: File,
    /// `application/octet-stream` if `None`.
    pub media_type: Option<String>,
    /// Lifetime; the operator's default if `None`.
    pub life: Option<Duration>,
}

impl Blobs<'_> {
    /// Stores a blob. Content that is already stored only lives longer.
    pub async fn add(self, tenant: &Tenant, new: NewBlob) -> Result<(BlobRecord, Saved), Error> {
        let NewBlob {
            content,
            media_type,
            life,
        } = new;
        let life = life.unwrap_or(self.engine.settings.blobs.life);
        if !(Duration::from_secs(1)..=limits::BLOB_LIFE_MAX).contains(&life) {
            let max = limits::BLOB_LIFE_MAX.as_secs();
            return Err(Error::invalid(format!("ttl: must be from 1 to {max} seconds")));
        }
        let media_type = media_type.unwrap_or_else(|| "application/octet-stream".to_owned());
        let printable = media_type.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        if !printable || media_type.len() > limits::MEDIA_TYPE_CHARS_MAX || media_type.is_empty() {
            let max = limits::MEDIA_TYPE_CHARS_MAX;
            let message = format!("content-type: must be 1 to {max} printable ASCII characters");
            return Err(Error::invalid(message));
        }
        let (content, digest, size) = on_disk(move || measured(content)).await?;
        let record = blob_record(tenant, digest, size, media_type, life);
        // Finish even if the client disconnects, so that no bytes remain without a row.
        let engine = self.engine.clone();
        self.engine
            .run_detached(async move { engine.blobs().store(record, content).await })
            .await
    }

    /// Bytes before the row, so that every row has bytes. Bytes without a new row are removed again.
    async fn store(self, record: BlobRecord, content: File) -> Result<(BlobRecord, Saved), Error> {
        let (tenant, object) = (record.tenant.clone(), record.object);
        if record.size > limits::BLOB_BYTES_MAX {
            let (size, max) = (record.size, limits::BLOB_BYTES_MAX);
            let message = format!("the blob has {size} bytes, the limit is {max}; split it");
            return Err(Error::new(Code::TooLarge, message));
        }
        let put = self.engine.blob.put(&key(&tenant, object), content).await;
        put.map_err(|error| failure::of_blob(error, "blob"))?;
        let quota = BlobQuota {
            count: limits::BLOBS_MAX,
            bytes: self.engine.settings.blobs.quota_bytes,
        };
        let superfluous = match self.engine.store.put_blob(record.clone(), quota).await {
            Ok(SavedBlob::New { replaced }) => {
                if let Some(replaced) = replaced {
                    self.remove_object(&tenant, replaced).await;
                }
                return Ok((record, Saved::New));
            }
            Ok(SavedBlob::Existing(there)) => Ok((there, Saved::Existing)),
            Err(store::Error::Quota) => Err(over_quota(quota)),
            Err(error) => Err(error.into()),
        };
        self.remove_object(&tenant, object).await;
        superfluous
    }

    /// A failure only wastes space.
    async fn remove_object(self, tenant: &Tenant, object: BlobObject) {
        if let Err(error) = self.engine.blob.delete(&key(tenant, object)).await {
            tracing::warn!(%error, %object, "Bytes of a blob not removed");
        }
    }

    pub async fn get(self, tenant: &Tenant, id: &Digest) -> Result<BlobRecord, Error> {
        Ok(self.engine.store.blob(tenant, id, clock::now()).await?)
    }

    pub async fn content(self, tenant: &Tenant, id: &Digest) -> Result<(BlobRecord, Object), Error> {
        let record = self.get(tenant, id).await?;
        let object = self.open(&record).await?;
        Ok((record, object))
    }

    async fn open(self, record: &BlobRecord) -> Result<Object, Error> {
        let opened = self.engine.blob.open(&key(&record.tenant, record.object)).await;
        opened.map_err(|error| failure::of_blob(error, &format!("blob `{}`", record.digest)))
    }

    /// Newest first.
    pub async fn list(self, tenant: &Tenant, page: PageRequest) -> Result<Page<BlobRecord>, Error> {
        let rows = rows(&page);
        Ok(self
            .engine
            .store
            .blobs(tenant, clock::now(), page.after, rows)
            .await?)
    }

    /// Programs that have the blob keep it until they end.
    pub async fn delete(self, tenant: &Tenant, id: &Digest) -> Result<(), Error> {
        let ended = self.engine.store.retire_blob(tenant, id, clock::now()).await?;
        // From here on the blob cannot be found; maintenance finishes an interrupted removal.
        self.forget(&ended).await
    }

    /// Bytes first: maintenance finds a row without bytes, but not bytes without a row.
    async fn forget(self, ended: &BlobRecord) -> Result<(), Error> {
        let deleted = self.engine.blob.delete(&key(&ended.tenant, ended.object)).await;
        deleted.map_err(|error| failure::of_blob(error, "blob"))?;
        Ok(self.engine.store.delete_retired_blob(ended).await?)
    }

    /// Removes expired blobs. A failure does not stop the removal of the others.
    pub(super) async fn prune(self) -> Result<(), Error> {
        let rows = limits::BLOBS_EXPIRED_PER_QUERY;
        loop {
            let ended = self.engine.store.retire_expired_blobs(clock::now(), rows).await?;
            let mut pruned = Ok(());
            for blob in &ended {
                pruned = pruned.and(self.forget(blob).await);
            }
            pruned?;
            if ended.len() < rows as usize {
                return Ok(());
            }
        }
    }

    /// Removes bytes without a row, left by a process that died between the two.
    pub(super) async fn sweep(self) -> Result<(), Error> {
        if !self.engine.blobs_swept.is_due() {
            return Ok(());
        }
        let of_blob = |error| failure::of_blob(error, "blob");
        let mut left = limits::BLOBS_EXPIRED_PER_QUERY;
        for tenant in self.engine.blob.blob_owners().await.map_err(of_blob)? {
            // List objects before rows: an object that is stored meanwhile is too young to be removed.
            let seen = limits::BLOB_OBJECTS_COMPARED_MAX;
            let objects = self
                .engine
                .blob
                .blob_objects(&tenant, seen)
                .await
                .map_err(of_blob)?;
            let old: Vec<_> = objects.into_iter().filter(is_old).collect();
            if old.is_empty() {
                continue;
            }
            let named = self.engine.store.blob_objects(&tenant).await?;
            let named: HashSet<_> = named.into_iter().collect();
            for object in old.into_iter().filter(|object| !named.contains(object)) {
                if left == 0 {
                    return Ok(());
                }
                left -= 1;
                tracing::warn!(%object, %tenant, "Removing bytes without a blob");
                self.remove_object(&tenant, object).await;
            }
        }
        Ok(())
    }

    /// Adds the blobs of a request to its job. A missing blob is an error.
    pub(super) async fn add_inputs(
        self,
        tenant: &Tenant,
        job: &mut Job,
        ids: &[Digest],
        contents: Vec<File>,
    ) -> Result<(), Error> {
        let max = limits::INPUT_BLOBS_MAX;
        let count = ids.len() + contents.len();
        if count > max {
            return Err(Error::invalid(format!(
                "blobs: {count} blobs, the limit is {max}"
            )));
        }
        let mut bytes = 0;
        let mut add = |blob: InputBlob| {
            if job.program.blobs.iter().all(|known| known.digest != blob.digest) {
                bytes += blob.size;
                job.program.blobs.push(blob);
            }
        };
        for id in ids {
            add(self.input(tenant, id).await?);
        }
        for content in contents {
            let (content, digest, size) = on_disk(move || measured(content)).await?;
            add(InputBlob {
                digest,
                size,
                content,
            });
        }
        if bytes > limits::INPUT_BLOBS_BYTES_MAX {
            let max = limits::INPUT_BLOBS_BYTES_MAX;
            let message = format!("blobs: {bytes} bytes in total, the limit is {max}; send fewer");
            return Err(Error::new(Code::TooLarge, message));
        }
        let sizes = job.program.blobs.iter().map(|blob| blob.size);
        job.sandbox.limits = job.sandbox.limits.with_blobs(sizes).ok_or_else(|| {
            let message = format!(
                "blobs: {bytes} bytes need more memory than the skill has; raise `resources.memory` or send fewer"
            );
            Error::new(Code::TooLarge, message)
        })?;
        Ok(())
    }

    async fn input(self, tenant: &Tenant, id: &Digest) -> Result<InputBlob, Error> {
        let record = self.get(tenant, id).await?;
        let content = self.open(&record).await?.into_file().await;
        let content = content.map_err(|error| failure::of_blob(error, "blob"))?;
        Ok(InputBlob {
            digest: record.digest,
            size: record.size,
            content,
        })
    }

    /// Stores the blobs that a program returned. Blobs that cannot be stored are reported as skipped.
    pub(super) async fn take_outputs(
        self,
        tenant: &Tenant,
        tar: ArtifactTar,
        made: &[FileEntry],
    ) -> (Vec<OutputBlob>, Vec<Skipped>) {
        let (mut kept, mut skipped) = (Vec::new(), Vec::new());
        if made.is_empty() {
            return (kept, skipped);
        }
        let tar = on_disk(move || Ok(tar.finish()?.0)).await;
        for blob in made {
            let taken = match &tar {
                Ok(tar) => self.take_output(tenant, tar, blob).await,
                Err(error) => Err(Error::internal(error.to_string())),
            };
            match taken {
                Ok(()) => kept.push(OutputBlob {
                    blob_id: blob.sha256,
                    size: blob.size,
                }),
                Err(error) => {
                    tracing::warn!(%error, %tenant, "Blob of a program not stored");
                    let reason = match error.code() {
                        Code::StorageFull => "quota",
                        _ => "not_stored",
                    };
                    skipped.push(Skipped {
                        path: format!("/sandbox/out/blobs/{}", blob.path),
                        reason: reason.to_owned(),
                    });
                }
            }
        }
        (kept, skipped)
    }

    async fn take_output(self, tenant: &Tenant, tar: &File, blob: &FileEntry) -> Result<(), Error> {
        let folder = self.engine.settings.tmp_dir.clone();
        let tar = tar.try_clone().map_err(failure::of_io)?;
        let (start, size) = (blob.offset, blob.size);
        let content = on_disk(move || cut_out(tar, start..start + size, &folder)).await?;
        let media_type = "application/octet-stream".to_owned();
        let life = self.engine.settings.blobs.life;
        let record = blob_record(tenant, blob.sha256, size, media_type, life);
        self.store(record, content).await.map(drop)
    }
}

/// Adds the stored and the skipped blobs of a program.
pub(super) fn with_blobs(outcome: Outcome, kept: Vec<OutputBlob>, not_kept: Vec<Skipped>) -> Outcome {
    let skipped_total = outcome.skipped_total.saturating_add(not_kept.len() as u64);
    let room = limits::SKIPPED_NAMED_MAX.saturating_sub(outcome.skipped.len());
    let mut skipped = outcome.skipped;
    skipped.extend(not_kept.into_iter().take(room));
    Outcome {
        blobs: kept,
        skipped,
        skipped_total,
        ..outcome
    }
}

/// Time of the last sweep by this process.
#[derive(Debug, Default)]
pub(super) struct Swept(Mutex<Option<Instant>>);

impl Swept {
    /// Whether a sweep is due; if so, the caller must sweep.
    fn is_due(&self) -> bool {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = last.is_none_or(|last| last.elapsed() >= limits::BLOBS_SWEPT_EVERY);
        if is_due {
            *last = Some(Instant::now());
        }
        is_due
    }
}

/// Old enough that its writer has either inserted the row or died.
fn is_old(object: &BlobObject) -> bool {
    let age = object.named_at().map(|at| clock::now().duration_since(at));
    let age = age.and_then(|age| Duration::try_from(age).ok());
    age.is_some_and(|age| age >= limits::BLOB_BYTES_UNNAMED_MAX)
}

fn blob_record(tenant: &Tenant, digest: Digest, size: u64, media_type: String, life: Duration) -> BlobRecord {
    let now = clock::now();
    BlobRecord {
        tenant: tenant.clone(),
        digest,
        object: BlobObject::generate(),
        size,
        media_type,
        created_at: now,
        expires_at: later(now, life),
    }
}

fn key(tenant: &Tenant, object: BlobObject) -> blob::Key {
    blob::Key::Blob {
        tenant: tenant.clone(),
        object,
    }
}

fn over_quota(quota: BlobQuota) -> Error {
    let message = format!(
        "a tenant may store {} bytes (blobs.quota) in {} blobs; delete some, or wait until they expire",
        quota.bytes, quota.count
    );
    Error::new(Code::StorageFull, message)
}

fn later(now: Timestamp, life: Duration) -> Timestamp {
    let life = jiff::SignedDuration::try_from(life).unwrap_or(jiff::SignedDuration::MAX);
    now.checked_add(life).unwrap_or(Timestamp::MAX)
}

async fn on_disk<T: Send + 'static>(
    act: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, Error> {
    let done = tokio::task::spawn_blocking(act).await;
    done.map_err(Error::internal)?.map_err(failure::of_io)
}

/// Digest and size of a file.
fn measured(mut file: File) -> io::Result<(File, Digest, u64)> {
    let mut hash = sha2::Sha256::new();
    file.rewind()?;
    let mut buffer = vec![0; 64 * 1024];
    let mut size = 0;
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            file.rewind()?;
            return Ok((file, Digest::from_bytes(hash.finalize().into()), size));
        }
        hash.update(&buffer[..read]);
        size += read as u64;
    }
}

/// A range of `tar` as an unnamed file.
fn cut_out(mut tar: File, range: Range<u64>, folder: &Path) -> io::Result<File> {
    let mut file = tempfile::tempfile_in(folder)?;
    tar.seek(SeekFrom::Start(range.start))?;
    io::copy(&mut tar.take(range.end - range.start), &mut file)?;
    Ok(file)
}
