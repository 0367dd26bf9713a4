//! The changes of a tenant as they happen.

use serde::Serialize;

use super::{RUN, require};
use crate::auth::Caller;
use crate::engine::{ChangeId, ChangeSubscription, Engine, SkillAction, SkillChange};
use crate::error::Error;
use crate::ids::ExecutionId;
use crate::skill::{SkillName, Version};

/// Event `execution_deleted`: an execution was deleted, or rejected after it was announced.
#[derive(Clone, Debug, PartialEq, Serialize, utoipa::ToSchema)]
pub struct ExecutionDeletedEvent {
    #[schema(value_type = String, format = Uuid)]
    pub execution_id: ExecutionId,
}

/// Event `skill`: a version was published or deleted.
#[derive(Clone, Debug, PartialEq, Serialize, utoipa::ToSchema)]
pub struct SkillEvent {
    #[schema(value_type = String, format = "skill-name")]
    pub name: SkillName,
    #[schema(value_type = String, format = "version")]
    pub version: Version,
    pub change: SkillEventKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum SkillEventKind {
    Published,
    Deleted,
}

/// Events `ready` and `reset`: without members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct NoDetails {}

impl From<&SkillChange> for SkillEvent {
    fn from(change: &SkillChange) -> Self {
        Self {
            name: change.name.clone(),
            version: change.version.clone(),
            change: match change.action {
                SkillAction::Published => SkillEventKind::Published,
                SkillAction::Deleted => SkillEventKind::Deleted,
            },
        }
    }
}

/// The changes of the caller's tenant from now on, or after this position.
pub fn follow(engine: &Engine, caller: &Caller, from: Option<ChangeId>) -> Result<ChangeSubscription, Error> {
    require(caller, RUN)?;
    Ok(engine.changes().follow(caller, from))
}
