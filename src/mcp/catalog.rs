//! The tools of a client: the generic ones, and one for each skill that its tenant can call.

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

use super::McpClient;
use super::arguments::{CODE_MEMBERS, SKILL_MEMBERS, run_schema};
use crate::api::page_request;
use crate::api::tools::{self, ToolDefinition};
use crate::error::{Code, Error};
use crate::limits;
use crate::skill::{SkillName, ToolFormat};

/// Tools that do not stand for a skill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GenericTool {
    RunSkill,
    RunCode,
    ListSkills,
    SearchSkills,
    ReadFile,
}

impl GenericTool {
    const ALL: [Self; 5] = [
        Self::RunSkill,
        Self::RunCode,
        Self::ListSkills,
        Self::SearchSkills,
        Self::ReadFile,
    ];

    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    const fn name(self) -> &'static str {
        match self {
            Self::RunSkill => "run_skill",
            Self::RunCode => "run_code",
            Self::ListSkills => "list_skills",
            Self::SearchSkills => "search_skills",
            Self::ReadFile => "read_file",
        }
    }

    const fn description(self) -> &'static str {
        match self {
            Self::RunSkill => {
                "Run a skill in a sandbox and return its output, its log and the files that it wrote."
            }
            Self::RunCode => {
                "Run Python, JavaScript or Bash in a sandbox without network. Files written to /sandbox/out/files are returned."
            }
            Self::ListSkills => "List the skills that can be run, by name, with their descriptions.",
            Self::SearchSkills => "Find skills by words of their names and descriptions.",
            Self::ReadFile => {
                "Read a file: the uri of a resource_link in a result, or skill://NAME/PATH of a skill's file, such as skill://NAME/SKILL.md for its instructions."
            }
        }
    }

    fn schema(self) -> Value {
        let object = |properties: Value, required: &[&str]| json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false });
        match self {
            Self::RunSkill => run_schema(&SKILL_MEMBERS),
            Self::RunCode => run_schema(&CODE_MEMBERS),
            Self::ListSkills => object(
                json!({
                    "limit": { "type": "integer", "minimum": 1, "description": "Skills per page." },
                    "page_token": { "type": "string", "description": "next_page_token of the previous page." },
                }),
                &[],
            ),
            Self::SearchSkills => object(
                json!({ "query": { "type": "string", "description": "One or more words." } }),
                &["query"],
            ),
            Self::ReadFile => object(json!({ "uri": { "type": "string" } }), &["uri"]),
        }
    }

    fn annotations(self) -> ToolAnnotations {
        match self {
            Self::RunSkill | Self::RunCode => sandboxed(),
            Self::ListSkills | Self::SearchSkills | Self::ReadFile => {
                ToolAnnotations::new().read_only(true).open_world(false)
            }
        }
    }

    fn tool(self) -> Tool {
        Tool::new(self.name(), self.description(), members(self.schema()))
            .with_annotations(self.annotations())
    }
}

/// What runs in a sandbox reaches no network and changes nothing outside.
fn sandboxed() -> ToolAnnotations {
    ToolAnnotations::new().destructive(false).open_world(false)
}

fn members(schema: Value) -> Arc<JsonObject> {
    match schema {
        Value::Object(members) => Arc::new(members),
        _ => Arc::default(),
    }
}

impl McpClient {
    /// All tools. With more skills than a model can choose from, only pinned skills have tools of their own.
    pub(super) async fn tools(&self) -> Result<Vec<Tool>, Error> {
        let skills = self.skill_tools().await?;
        let generic = GenericTool::ALL
            .into_iter()
            .filter(|tool| *tool != GenericTool::SearchSkills || skills.is_none());
        let mut all: Vec<Tool> = generic.map(GenericTool::tool).collect();
        for definition in skills.unwrap_or_default() {
            let mut tool: Tool = serde_json::from_value(definition.into_value()).map_err(Error::internal)?;
            tool.annotations = Some(sandboxed());
            all.push(tool);
        }
        Ok(all)
    }

    /// `None` if there are too many.
    async fn skill_tools(&self) -> Result<Option<Vec<ToolDefinition>>, Error> {
        if !self.pinned.is_empty() {
            return self.pinned_tools().await.map(Some);
        }
        let rows = limits::PAGE_ROWS_MAX.to_string();
        let mut page = page_request(Some(&rows), None)?;
        let mut found = Vec::new();
        loop {
            let listed = tools::list(&self.engine, &self.caller, ToolFormat::Mcp, page).await?;
            let own = |tool: &ToolDefinition| GenericTool::from_name(tool.name()).is_none();
            found.extend(listed.items.into_iter().filter(own));
            if found.len() > limits::MCP_SKILL_TOOLS_MAX {
                return Ok(None);
            }
            match listed.next_page_token {
                None => return Ok(Some(found)),
                token => page = page_request(Some(&rows), token.as_deref())?,
            }
        }
    }

    async fn pinned_tools(&self) -> Result<Vec<ToolDefinition>, Error> {
        let mut found = Vec::new();
        for name in self.pinned.iter().take(limits::MCP_SKILL_TOOLS_MAX) {
            match tools::of_skill(&self.engine, &self.caller, name, ToolFormat::Mcp).await {
                Ok(tool) => found.extend(tool.filter(|tool| GenericTool::from_name(tool.name()).is_none())),
                // It was deleted, or not pushed yet; the others stay usable.
                Err(error) if error.code() == Code::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }
}

/// The skill whose tool has this name; its dots are `_` there.
pub(super) fn skill_of(tool: &str) -> Option<SkillName> {
    tool.replace('_', ".").parse().ok()
}
