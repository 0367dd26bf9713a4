//! Recorded executions.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::execution::{
    AskedLimits, ExecutionLimits, GrantedLimits, Outcome, ResourceLimits, Status, Workdir,
};
use crate::ids::{Digest, ExecutionId, InstanceId, KeyId, Tenant};
use crate::skill::{Language, SkillName, Version};
use crate::webhook::CallbackUrl;

/// An execution before its start.
#[derive(Clone, Debug, PartialEq)]
pub struct NewExecution {
    pub id: ExecutionId,
    pub tenant: Tenant,
    /// `None` for code.
    pub skill: Option<SkillName>,
    pub version: Option<Version>,
    /// Digest of the skill or the code.
    pub digest: Option<Digest>,
    pub language: Language,
    pub image: String,
    /// `None` until it has a slot.
    pub backend: Option<ChosenBackend>,
    pub limits: ResourceLimits,
    pub asked: AskedLimits,
    /// The process that runs it.
    pub instance: InstanceId,
    pub created_at: jiff::Timestamp,
    /// `None` for executions of earlier releases.
    pub workdir: Option<Workdir>,
    /// Packages that were added to the skill, then those of the request. `None` for executions of earlier releases.
    pub requirements: Option<Vec<String>>,
    /// `None` for executions of earlier releases and of command lines.
    pub key: Option<ExecutionKey>,
    /// Receiver of the webhook. Not in lists.
    pub callback_url: Option<CallbackUrl>,
    /// The request to insert with it. Never read back with the execution.
    pub kept_request: Option<Bytes>,
}

impl NewExecution {
    #[must_use]
    pub fn limits(&self) -> ExecutionLimits {
        ExecutionLimits {
            asked: self.asked,
            granted: GrantedLimits::from(&self.limits),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChosenBackend {
    /// `docker` or `native`.
    pub name: String,
    pub reason: String,
    /// Promises that the host only keeps partly, such as `P6`.
    pub degraded: Vec<String>,
}

/// The API key that started an execution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ExecutionKey {
    #[schema(value_type = String, format = Uuid)]
    pub id: KeyId,
    /// Name at that time.
    #[schema(example = "ci")]
    pub name: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Execution {
    pub new: NewExecution,
    pub status: Status,
    /// Present if and only if `status` is final.
    pub outcome: Option<Outcome>,
}
