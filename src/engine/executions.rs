//! Recorded executions and their files.

use std::ops::Range;

use crate::blob::{self, Link, Object};
use crate::engine::{Executions, PageRequest, clock, failure, rows};
use crate::error::{Code, Error};
use crate::execution::{Execution, FileEntry};
use crate::ids::{ExecutionId, Tenant};
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
