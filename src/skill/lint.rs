//! Checks a skill by the rules of Skillbox and of the Agent Skills specification.

use serde::Serialize;

use crate::error::quoted;
use crate::limits;
use crate::skill::agent_skill::{agent_skill, is_agent_name};
use crate::skill::document::{Document, File, SkillMdError};
use crate::skill::{Declaration, Dialect, InvalidRequirement, fields, yaml};

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LintFinding {
    #[serde(rename = "verdict")]
    pub rule_set: RuleSet,
    pub severity: Severity,
    pub file: String,
    /// Line in that file, from 1, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RuleSet {
    /// An error means that a push is rejected.
    Skillbox,
    /// The Agent Skills specification, applied literally: an error means that other products may reject the skill.
    AgentSkills,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Error,
    /// Accepted, but probably a mistake.
    Warning,
}

/// Applies both rule sets.
#[must_use]
pub fn lint(declaration: &Declaration<'_>) -> Vec<LintFinding> {
    let mut findings = ours(declaration);
    let folder = declaration.fallback_name;
    let strict = match declaration.skill_md {
        None => vec![SkillMdError::new(
            None,
            format!("is missing; the specification requires it, and {ONLY_A_TOOL}"),
        )],
        Some(skill_md) => {
            let checked = Document::split(skill_md).and_then(|document| {
                let mut errors = strict(&fields::entries(&document.front_matter)?, folder);
                errors.extend(document.passed_over.map(|above| {
                    SkillMdError::new(1, format!("must start with `---`, but starts with {above}"))
                }));
                Ok(errors)
            });
            checked.unwrap_or_else(|error| vec![error])
        }
    };
    if strict.is_empty() {
        findings.extend(unlisted(declaration));
    }
    findings.extend(
        strict
            .into_iter()
            .map(|error| LintFinding::of(RuleSet::AgentSkills, error)),
    );
    findings
}

/// Of a skill that clients of the Model Context Protocol cannot list.
const ONLY_A_TOOL: &str = "clients of MCP see the skill only as a tool";

/// Why the skills extension cannot describe a skill that follows the specification.
fn unlisted(declaration: &Declaration<'_>) -> Option<LintFinding> {
    let name = declaration.manifest().ok()?.name;
    let reason = agent_skill(&name, declaration.skill_md?).err()?;
    Some(LintFinding {
        rule_set: RuleSet::Skillbox,
        severity: Severity::Warning,
        file: File::SkillMd.as_str().to_owned(),
        line: None,
        message: format!("{ONLY_A_TOOL}: {reason}"),
    })
}

impl LintFinding {
    fn of(rule_set: RuleSet, error: SkillMdError) -> Self {
        Self {
            rule_set,
            severity: Severity::Error,
            file: error.file.as_str().to_owned(),
            line: error.line,
            message: error.message,
        }
    }
}

impl From<InvalidRequirement> for LintFinding {
    /// A push accepts it, but programs that need the packages fail.
    fn from(refused: InvalidRequirement) -> Self {
        let (file, line) = refused.place();
        Self {
            rule_set: RuleSet::Skillbox,
            severity: Severity::Warning,
            file: file.to_owned(),
            line,
            message: refused.rule().to_owned(),
        }
    }
}

/// Rules of a push.
fn ours(declaration: &Declaration<'_>) -> Vec<LintFinding> {
    let manifest = match declaration.manifest_or_errors() {
        Ok(manifest) => manifest,
        Err(mut errors) => {
            errors.sort_by_key(|error| (error.file.as_str(), error.line));
            let finding = |error| LintFinding::of(RuleSet::Skillbox, error);
            return errors.into_iter().map(finding).collect();
        }
    };
    let warning = |line, message| LintFinding {
        rule_set: RuleSet::Skillbox,
        severity: Severity::Warning,
        file: File::SkillMd.as_str().to_owned(),
        line,
        message,
    };
    let told = manifest.warnings.into_iter();
    let mut findings: Vec<_> = told.map(|told| warning(told.line, told.message)).collect();
    let is_called = manifest.language.is_some() || manifest.dialect == Dialect::Function;
    if manifest.version.is_none() && is_called {
        let message =
            "no version; each push is identified by its digest. Add `skillbox.version` to `metadata`";
        findings.push(warning(None, message.to_owned()));
    }
    findings
}

/// Rules of the specification.
fn strict(entries: &[(String, yaml::Node)], folder: Option<&str>) -> Vec<SkillMdError> {
    let mut errors = Vec::new();
    let mut refuse = |line: Option<u32>, message: String| errors.push(SkillMdError::new(line, message));
    let field = |key: &str| {
        let node = entries
            .iter()
            .find(|(name, _)| name == key)
            .map(|(_, node)| node)?;
        match &node.value {
            yaml::Value::Scalar { text, .. } => Some((Some(node.line), text.as_str())),
            _ => Some((Some(node.line), "")),
        }
    };

    let (line, name) = field("name").unwrap_or_default();
    if !is_agent_name(name) {
        refuse(
            line,
            format!("`name` must be 1 to 64 of a-z, 0-9 and single '-', not at the ends; {ONLY_A_TOOL}"),
        );
    } else if folder.is_some_and(|folder| folder != name) {
        refuse(line, "`name` must equal the folder's name".to_owned());
    }
    let (line, description) = field("description").unwrap_or_default();
    if !(1..=limits::DESCRIPTION_CHARS_MAX).contains(&description.trim().chars().count()) {
        refuse(
            line,
            format!(
                "`description` must be 1 to {} characters",
                limits::DESCRIPTION_CHARS_MAX
            ),
        );
    }
    if let Some((line, text)) = field("compatibility")
        && !(1..=limits::COMPATIBILITY_CHARS_MAX).contains(&text.trim().chars().count())
    {
        refuse(
            line,
            format!(
                "`compatibility` must be 1 to {} characters",
                limits::COMPATIBILITY_CHARS_MAX
            ),
        );
    }
    for (key, node) in entries {
        let line = Some(node.line);
        if !fields::AGENT_SKILLS_KEYS.contains(&key.as_str()) {
            let key = quoted(key);
            refuse(
                line,
                format!("{key} is not a key of the specification; write it as text in `metadata`"),
            );
        }
        if let ("metadata", yaml::Value::Map(pairs)) = (key.as_str(), &node.value)
            && let Some((_, odd)) = pairs.iter().find(|(_, value)| value.kind() != "text")
        {
            refuse(Some(odd.line), "`metadata` must contain text only".to_owned());
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(skill_md: &str, folder: &str) -> Vec<String> {
        lint(&Declaration {
            skill_md: Some(skill_md.as_bytes()),
            fallback_name: Some(folder),
            files: &["SKILL.md", "scripts/main.py"],
            ..Declaration::default()
        })
        .into_iter()
        .map(|f| {
            format!(
                "{:?} {:?} {}",
                f.rule_set,
                f.line,
                f.message.chars().take(30).collect::<String>()
            )
        })
        .collect()
    }

    #[test]
    fn clean_skill_has_no_findings() {
        let clean = "---\nname: a-b\ndescription: Adds.\nmetadata:\n  skillbox.version: 1.0.0\n---\n";
        assert_eq!(messages(clean, "a-b"), [""; 0]);
    }

    #[test]
    fn warns_of_skill_that_no_client_of_mcp_can_list() {
        let reserved = "---\nname: versions\ndescription: Adds.\nmetadata:\n  skillbox.version: 1.0.0\n---\n";
        assert_eq!(
            messages(reserved, "versions"),
            ["Skillbox None clients of MCP see the skill o"]
        );
    }

    #[test]
    fn lists_all_errors_at_once() {
        let wrong = "---\nname: a\ndescription: Adds.\ntimeout: soon\nresources: {memory: 1 cow, cpu: -1}\nimage: '!'\n\
                     input_schema: 7\nmetadata:\n  skillbox.lang: cobol\n---\n";
        let errors: Vec<_> = messages(wrong, "a")
            .into_iter()
            .filter(|message| message.starts_with("Skillbox"))
            .collect();
        assert_eq!(
            errors,
            [
                "Skillbox Some(4) `timeout` `soon`: must be a nu",
                "Skillbox Some(5) `resources.memory` `1 cow`: mu",
                "Skillbox Some(7) `input_schema` must be a JSON ",
                "Skillbox Some(9) `lang` `cobol`: must be `pytho",
            ]
        );
    }

    #[test]
    fn distinguishes_the_two_rule_sets() {
        let mixed = "---\nname: a.b\ndescription: Adds.\nversion: 1.0.0\nhook: x\nmetadata: {a: [1]}\n---\n";
        assert_eq!(
            messages(mixed, "a.b"),
            [
                "Skillbox Some(5) unknown key `hook`: ignored; c",
                "AgentSkills Some(2) `name` must be 1 to 64 of a-z,",
                "AgentSkills Some(4) `version` is not a key of the ",
                "AgentSkills Some(5) `hook` is not a key of the spe",
                "AgentSkills Some(6) `metadata` must contain text o",
            ]
        );
        assert!(
            messages("---\nname: a\ndescription: x\n---\n", "b")
                .iter()
                .any(|m| m.contains("folder"))
        );
        assert_eq!(messages("# no front matter", "a").len(), 2);
    }
}
