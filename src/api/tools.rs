//! Skills as the tools of a model.

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};

use super::{List, RUN_OR_SKILLS, require};
use crate::auth::Caller;
use crate::engine::{Engine, PageRequest};
use crate::error::Error;
use crate::limits;
use crate::skill::{CallPackages, Selector, SkillName, ToolFormat, Version, prompt_entry, tool};
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

    #[must_use]
    pub fn into_value(self) -> serde_json::Value {
        self.0
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
    let packages = call_packages(engine);
    let tools = page.items.iter();
    Ok(List {
        items: tools
            .filter_map(|record| ToolDefinition::of(record, format, packages))
            .collect(),
        next_page_token: page.next.as_ref().map(Cursor::to_string),
    })
}

/// The latest version of one skill; `None` for one that cannot be called.
pub async fn of_skill(
    engine: &Engine,
    caller: &Caller,
    name: &SkillName,
    format: ToolFormat,
) -> Result<Option<ToolDefinition>, Error> {
    require(caller, RUN_OR_SKILLS)?;
    let record = engine
        .skills()
        .get(caller.tenant(), name, &Selector::Latest)
        .await?;
    Ok(ToolDefinition::of(&record, format, call_packages(engine)))
}

fn call_packages(engine: &Engine) -> CallPackages {
    match engine.settings().deps.requests {
        true => CallPackages::Offered,
        false => CallPackages::Forbidden,
    }
}

/// A skill that was found by words.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FoundSkill {
    pub name: SkillName,
    pub version: Version,
    pub description: String,
}

/// The skills with the most of these words in their names and descriptions, best first.
pub async fn search(engine: &Engine, caller: &Caller, query: &str) -> Result<Vec<FoundSkill>, Error> {
    require(caller, RUN_OR_SKILLS)?;
    let query: String = query.chars().take(limits::DETAIL_CHARS_MAX).collect();
    let query = query.to_lowercase();
    let words: Vec<&str> = query.split_whitespace().collect();
    let (mut found, mut seen, mut after) = (Vec::new(), 0, None);
    while seen < limits::ROWS_LISTED_MAX {
        let rows = limits::PAGE_ROWS_MAX;
        let page = engine
            .skills()
            .list(caller.tenant(), PageRequest { after, rows })
            .await?;
        seen += page.items.len();
        let ranked = page
            .items
            .into_iter()
            .map(|record| (rank(&record, &words), record));
        found.extend(ranked.filter(|(rank, _)| *rank > 0));
        // The sort is stable, so that skills of one rank stay in the order of their names.
        found.sort_by_key(|(rank, _)| Reverse(*rank));
        found.truncate(limits::MCP_FOUND_MAX);
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let skills = found.into_iter().map(|(_, record)| FoundSkill {
        name: record.name,
        version: record.version,
        description: record.manifest.description,
    });
    Ok(skills.collect())
}

/// A word of the name counts more than one of the description.
fn rank(record: &SkillRecord, words: &[&str]) -> usize {
    let name = record.name.as_str();
    let description = record.manifest.description.to_lowercase();
    let of_word = |word: &&str| match (name.contains(word), description.contains(word)) {
        (true, _) => 3,
        (false, true) => 1,
        (false, false) => 0,
    };
    words.iter().map(of_word).sum()
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
