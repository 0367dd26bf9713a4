//! Which skills the skills extension of the Model Context Protocol (SEP-2640) can describe.

use serde_json::{Map, Value};

use crate::ids::is_label;
use crate::skill::document::Document;
use crate::skill::{SkillName, fields};

/// The first segment of the URIs of versions: `skill://versions/1.2.0/NAME/SKILL.md`.
const VERSIONS: &str = "versions";

/// Every field of the front matter as it is written. The error says why clients of the extension do not see the skill.
pub fn agent_skill(name: &SkillName, skill_md: &[u8]) -> Result<Map<String, Value>, String> {
    let document = Document::split(skill_md).map_err(|error| error.to_string())?;
    let entries = fields::entries(&document.front_matter).map_err(|error| error.to_string())?;
    let front_matter: Map<String, Value> = entries
        .into_iter()
        .map(|(key, node)| (key, node.to_json()))
        .collect();
    let text = |key: &str| front_matter.get(key).and_then(Value::as_str);
    if text("name") != Some(name.as_str()) {
        return Err(format!("`name` of SKILL.md is not `{name}`"));
    }
    if !is_agent_name(name.as_str()) {
        return Err("`name` has a dot".to_owned());
    }
    if name.as_str() == VERSIONS {
        return Err("`name` is the prefix of the addresses of versions".to_owned());
    }
    if text("description").is_none() {
        return Err("`description` is not a text".to_owned());
    }
    Ok(front_matter)
}

/// The names of the Agent Skills specification.
pub(super) fn is_agent_name(name: &str) -> bool {
    is_label(name, 64) && !name.ends_with('-') && !name.contains("--")
}
