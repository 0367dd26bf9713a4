//! An execution as the store remembers it.

use crate::execution::{Outcome, ResourceLimits, Status};
use crate::ids::{Digest, ExecutionId, InstanceId, Tenant};
use crate::skill::{Language, SkillName, Version};
use crate::webhook::CallbackUrl;

/// What is known when an execution is recorded, before anything runs.
#[derive(Clone, Debug, PartialEq)]
pub struct NewExecution {
    /// Its id.
    pub id: ExecutionId,
    /// Whose it is.
    pub tenant: Tenant,
    /// The skill, or `None` for code sent with the request.
    pub skill: Option<SkillName>,
    /// The skill's version.
    pub version: Option<Version>,
    /// The skill's content, or the digest of the code.
    pub digest: Option<Digest>,
    /// The language of what runs.
    pub language: Language,
    /// The image it runs in.
    pub image: String,
    /// What makes its sandbox; `None` until its turn has come.
    pub backend: Option<ChosenBackend>,
    /// Its bounds.
    pub limits: ResourceLimits,
    /// The process that runs it.
    pub instance: InstanceId,
    /// When it was accepted.
    pub created_at: jiff::Timestamp,
    /// Where its end is told; left out of lists.
    pub callback_url: Option<CallbackUrl>,
}

/// What makes the sandbox of an execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChosenBackend {
    /// `docker` or `native`.
    pub name: String,
    /// Why this one.
    pub reason: String,
    /// Promises that it keeps only as well as the host lets it, such as `P6`.
    pub degraded: Vec<String>,
}

/// A recorded execution.
#[derive(Clone, Debug, PartialEq)]
pub struct Execution {
    /// What was known at the start.
    pub new: NewExecution,
    /// Where it stands.
    pub status: Status,
    /// How it ended; present exactly when `status` is final.
    pub outcome: Option<Outcome>,
}
