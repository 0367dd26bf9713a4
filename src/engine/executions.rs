//! Looking at executions, fetching their files.

use std::ops::Range;

use crate::auth::{Caller, Scope};
use crate::blob::{self, Link, Object};
use crate::engine::{Engine, PageRequest, clock, failure, require, rows};
use crate::error::{Code, Error};
use crate::execution::{Execution, FileEntry};
use crate::ids::{ExecutionId, Tenant};
use crate::store::{ExecutionFilter, Page};

/// All files of an execution as one uncompressed tar.
#[derive(Debug)]
pub struct Artifacts {
    /// Whose they are.
    pub execution: Execution,
    /// The tar.
    pub object: Object,
}

/// One file of an execution.
#[derive(Debug)]
pub struct ArtifactFile {
    /// What it is.
    pub entry: FileEntry,
    /// The tar that holds it.
    pub object: Object,
}

impl ArtifactFile {
    /// Where the whole file lies in the tar.
    #[must_use]
    pub fn range(&self) -> Range<u64> {
        self.entry.offset..self.entry.offset + self.entry.size
    }
}

impl Engine {
    /// The caller's executions, the newest first, without output and logs.
    pub async fn executions(
        &self,
        caller: &Caller,
        filter: ExecutionFilter,
        page: PageRequest,
    ) -> Result<Page<Execution>, Error> {
        require(caller, &[Scope::Run])?;
        let rows = rows(&page);
        Ok(self
            .0
            .store
            .executions(caller.tenant(), &filter, page.after, rows)
            .await?)
    }

    /// One execution with everything that is known of it.
    pub async fn execution(&self, caller: &Caller, id: ExecutionId) -> Result<Execution, Error> {
        require(caller, &[Scope::Run])?;
        self.find_execution(caller.tenant(), id).await
    }

    pub(super) async fn find_execution(&self, tenant: &Tenant, id: ExecutionId) -> Result<Execution, Error> {
        Ok(self.0.store.execution(tenant, id).await?)
    }

    /// All files of an execution. The door has checked a key or a link for `tenant`.
    pub async fn artifacts(&self, tenant: &Tenant, id: ExecutionId) -> Result<Artifacts, Error> {
        let execution = self.find_execution(tenant, id).await?;
        if execution
            .outcome
            .as_ref()
            .is_none_or(|outcome| outcome.files.is_empty())
        {
            return Err(Error::not_found(format!(
                "execution `{id}` has no files; its archive was"
            )));
        }
        let object = self.open_artifacts(tenant, id).await?;
        Ok(Artifacts { execution, object })
    }

    /// One file of an execution. The door has checked a key or a link for `tenant`.
    pub async fn artifact_file(
        &self,
        tenant: &Tenant,
        id: ExecutionId,
        path: &str,
    ) -> Result<ArtifactFile, Error> {
        let execution = self.find_execution(tenant, id).await?;
        let files = execution.outcome.map(|outcome| outcome.files).unwrap_or_default();
        let entry = files.into_iter().find(|entry| entry.path == path);
        let entry = entry.ok_or_else(|| Error::not_found(format!("file {path:?} of execution `{id}`")))?;
        let object = self.open_artifacts(tenant, id).await?;
        Ok(ArtifactFile { entry, object })
    }

    async fn open_artifacts(&self, tenant: &Tenant, id: ExecutionId) -> Result<Object, Error> {
        let key = blob::Key::Artifacts {
            tenant: tenant.clone(),
            execution: id,
        };
        self.0
            .blob
            .open(&key)
            .await
            .map_err(|error| failure::of_blob(error, "the execution's files"))
    }

    /// When a link that is made now stops working.
    #[must_use]
    pub fn link_expiry(&self) -> jiff::Timestamp {
        let now = clock::now();
        let life =
            jiff::SignedDuration::try_from(self.0.settings.link_life).unwrap_or(jiff::SignedDuration::MAX);
        now.checked_add(life).unwrap_or(jiff::Timestamp::MAX)
    }

    /// Signs a download link.
    #[must_use]
    pub fn sign(&self, link: &Link) -> String {
        self.0.links.sign(link)
    }

    /// Whether `signature` was made for exactly this link and still holds.
    pub fn check_link(&self, link: &Link, signature: &str) -> Result<(), Error> {
        let checked = self.0.links.verify(link, signature, clock::now());
        checked.map_err(|refused| Error::new(Code::Forbidden, refused.to_string()))
    }
}
