//! Recorded executions and their files.

use std::ops::Range;
use std::time::Duration;

use crate::blob::{self, Link, Object};
use crate::engine::{Executions, PageRequest, clock, failure, rows};
use crate::error::{Code, Error};
use crate::execution::{Execution, FileEntry, Omitted, ResultForm};
use crate::ids::{ExecutionId, Tenant};
use crate::limits;
use crate::store::{ExecutionFilter, Page};

/// One file of an execution.
#[derive(Debug)]
pub struct ArtifactFile {
    pub entry: FileEntry,
    /// The tar that contains the file.
    pub object: Object,
}

impl ArtifactFile {
    /// Position of the file in the tar.
    #[must_use]
    pub fn range(&self) -> Range<u64> {
        self.entry.offset..self.entry.offset + self.entry.size
    }
}

/// The result of [`Executions::prune`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Pruned {
    /// Deleted executions, or those that would be.
    pub count: u64,
    /// Whether the limit of one call was reached.
    pub more: bool,
}

impl Executions<'_> {
    /// Newest first, without output and logs.
    pub async fn list(
        self,
        tenant: &Tenant,
        filter: ExecutionFilter,
        page: PageRequest,
    ) -> Result<Page<Execution>, Error> {
        let rows = rows(&page);
        let store = &self.engine.store;
        Ok(store.executions(tenant, &filter, page.after, rows).await?)
    }

    pub async fn get(self, tenant: &Tenant, id: ExecutionId) -> Result<Execution, Error> {
        Ok(self.engine.store.execution(tenant, id).await?)
    }

    /// As [`get`](Self::get), without reading these parts.
    pub async fn get_without(
        self,
        tenant: &Tenant,
        id: ExecutionId,
        omitted: Omitted,
    ) -> Result<Execution, Error> {
        Ok(self.engine.store.execution_without(tenant, id, omitted).await?)
    }

    /// Deletes an ended execution with its files.
    pub async fn delete(self, tenant: &Tenant, id: ExecutionId) -> Result<(), Error> {
        if self.get(tenant, id).await?.outcome.is_none() {
            let message = format!("execution `{id}` has not ended; cancel it first");
            return Err(Error::new(Code::Conflict, message));
        }
        self.engine.maintenance().forget(tenant, id).await?;
        self.engine.publish_deletion(tenant, id);
        Ok(())
    }

    /// Deletes ended executions that match and were accepted at least `age` ago: at most [`limits::PRUNED_PER_CALL`].
    pub async fn prune(
        self,
        tenant: &Tenant,
        filter: ExecutionFilter,
        age: Duration,
        dry_run: bool,
    ) -> Result<Pruned, Error> {
        let pruned = self.prune_pages(tenant, filter, age, dry_run).await;
        if !dry_run {
            self.engine.publish_reset(tenant);
        }
        pruned
    }

    async fn prune_pages(
        self,
        tenant: &Tenant,
        filter: ExecutionFilter,
        age: Duration,
        dry_run: bool,
    ) -> Result<Pruned, Error> {
        let age = jiff::SignedDuration::try_from(age).unwrap_or(jiff::SignedDuration::MAX);
        let until = clock::now().checked_sub(age).unwrap_or(jiff::Timestamp::MIN);
        let filter = ExecutionFilter {
            until: Some(until),
            ..filter
        };
        let mut pruned = Pruned::default();
        let mut after = None;
        loop {
            let rows = limits::EXPIRED_PER_QUERY;
            let page = self.engine.store.executions(tenant, &filter, after, rows).await?;
            let ended = page.items.iter().filter(|execution| execution.outcome.is_some());
            let ended: Vec<_> = ended.map(|execution| execution.new.id).collect();
            for id in ended {
                if pruned.count >= limits::PRUNED_PER_CALL {
                    pruned.more = true;
                    return Ok(pruned);
                }
                if !dry_run {
                    self.engine.maintenance().forget(tenant, id).await?;
                }
                pruned.count += 1;
            }
            after = page.next;
            if after.is_none() {
                return Ok(pruned);
            }
        }
    }

    /// All files of an execution as one uncompressed tar.
    pub async fn artifacts(self, tenant: &Tenant, id: ExecutionId) -> Result<Object, Error> {
        let execution = self.get(tenant, id).await?;
        if execution
            .outcome
            .as_ref()
            .is_none_or(|outcome| outcome.files.is_empty())
        {
            return Err(Error::not_found(format!(
                "archive of execution `{id}`, which has no files,"
            )));
        }
        self.open_artifacts(tenant, id).await
    }

    pub async fn artifact_file(
        self,
        tenant: &Tenant,
        id: ExecutionId,
        path: &str,
    ) -> Result<ArtifactFile, Error> {
        let execution = self.get(tenant, id).await?;
        let files = execution.outcome.map(|outcome| outcome.files).unwrap_or_default();
        let entry = files.into_iter().find(|entry| entry.path == path);
        let entry = entry.ok_or_else(|| Error::not_found(format!("file {path:?} of execution `{id}`")))?;
        let object = self.open_artifacts(tenant, id).await?;
        Ok(ArtifactFile { entry, object })
    }

    /// One form of the result at position `n`.
    pub async fn result(
        self,
        tenant: &Tenant,
        id: ExecutionId,
        n: usize,
        form: ResultForm,
    ) -> Result<Vec<u8>, Error> {
        let results = self.engine.store.results(tenant, id).await?;
        let content = results.get(n).and_then(|result| result.content(form));
        let content =
            content.ok_or_else(|| Error::not_found(format!("`{form}` of result {n} of execution `{id}`")));
        Ok(content?.into_owned())
    }

    async fn open_artifacts(self, tenant: &Tenant, id: ExecutionId) -> Result<Object, Error> {
        let key = blob::Key::Artifacts {
            tenant: tenant.clone(),
            execution: id,
        };
        self.engine
            .blob
            .open(&key)
            .await
            .map_err(|error| failure::of_blob(error, "the execution's files"))
    }

    /// Expiry of a link that is signed now.
    #[must_use]
    pub fn link_expiry(self) -> jiff::Timestamp {
        let now = clock::now();
        let life = jiff::SignedDuration::try_from(self.engine.settings.link_life)
            .unwrap_or(jiff::SignedDuration::MAX);
        now.checked_add(life).unwrap_or(jiff::Timestamp::MAX)
    }

    #[must_use]
    pub fn sign_link(self, link: &Link) -> String {
        self.engine.links.sign(link)
    }

    /// Checks that `signature` belongs to exactly this link, and its expiry.
    pub fn check_link(self, link: &Link, signature: &str) -> Result<(), Error> {
        let checked = self.engine.links.verify(link, signature, clock::now());
        checked.map_err(|refused| Error::new(Code::Forbidden, refused.to_string()))
    }
}
