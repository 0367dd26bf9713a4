//! Skills as the tools of a model.

use serde::{Deserialize, Serialize};

use super::{List, RUN_OR_SKILLS, require};
use crate::auth::Caller;
use crate::engine::{Engine, PageRequest};
use crate::error::Error;
use crate::skill::{CallPackages, ToolFormat, prompt_entry, tool};
use crate::store::{Cursor, SkillRecord};

/// A tool definition in the format of a model's API.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(transparent)]
#[schema(value_type = Object)]
pub struct ToolDefinition(serde_json::Value);

impl ToolDefinition {
    /// `None` for a skill that cannot be called.
    fn of(record: &SkillRecord, format: ToolFormat, packages: CallPackages) -> Option<Self> {
        tool(&record.manifest, &record.version, format, packages).map(Self)
    }

    pub(crate) fn name(&self) -> &str {
        self.text("name")
    }

    pub(crate) fn description(&self) -> &str {
        self.text("description")
    }

    fn text(&self, member: &str) -> &str {
        let function = self.0.get("function").unwrap_or(&self.0);
        function[member].as_str().unwrap_or_default()
    }
}

/// The latest version of each callable skill, by name. A page may have fewer rows than requested.
pub async fn list(
    engine: &Engine,
    caller: &Caller,
    format: ToolFormat,
    page: PageRequest,
) -> Result<List<ToolDefinition>, Error> {
    require(caller, RUN_OR_SKILLS)?;
    let page = engine.skills().list(caller.tenant(), page).await?;
    let packages = match engine.settings().deps.requests {
        true => CallPackages::Offered,
        false => CallPackages::Forbidden,
    };
    let tools = page.items.iter();
    Ok(List {
        items: tools
            .filter_map(|record| ToolDefinition::of(record, format, packages))
            .collect(),
        next_page_token: page.next.as_ref().map(Cursor::to_string),
    })
}

/// The entries of the latest versions for a prompt, by name.
pub async fn prompt_entries(
    engine: &Engine,
    caller: &Caller,
    page: PageRequest,
) -> Result<List<String>, Error> {
    require(caller, RUN_OR_SKILLS)?;
    let page = engine.skills().list(caller.tenant(), page).await?;
    let skills = page.items.iter();
    Ok(List {
        items: skills.map(|skill| prompt_entry(&skill.manifest)).collect(),
        next_page_token: page.next.as_ref().map(Cursor::to_string),
    })
}
