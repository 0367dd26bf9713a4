//! What an author should know before others meet the skill: our verdict, and that of the Agent Skills specification.

use serde::Serialize;

use crate::error::quoted;
use crate::ids::is_label;
use crate::limits;
use crate::skill::{document::Document, document::SkillMdError, fields, parse_skill_md, yaml};

/// One thing to look at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Whose rule it is.
    pub verdict: Verdict,
    /// Whether it stops the skill.
    pub severity: Severity,
    /// Line in SKILL.md, from 1, where known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// What was found and what to do.
    pub message: String,
}

/// Whose rule a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Skillbox: an error means that a push is refused.
    Skillbox,
    /// The Agent Skills specification, read strictly: an error means that other products may refuse the skill.
    AgentSkills,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Refused.
    Error,
    /// Accepted, and probably not meant.
    Warning,
}

/// Judges a SKILL.md twice; no finding at all means that both are content. `folder` is the name of the skill's folder where it has one.
pub fn lint(skill_md: &[u8], folder: Option<&str>, has_file: impl Fn(&str) -> bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut add = |verdict, severity, line, message| {
        findings.push(Finding {
            verdict,
            severity,
            line,
            message,
        })
    };
    match parse_skill_md(skill_md, folder, has_file) {
        Err(error) => add(Verdict::Skillbox, Severity::Error, error.line, error.message),
        Ok(manifest) => {
            for warning in manifest.warnings {
                add(
                    Verdict::Skillbox,
                    Severity::Warning,
                    warning.line,
                    warning.message,
                );
            }
            if manifest.version.is_none() {
                let message =
                    "no version; each push is labelled by its digest. Add `skillbox.version` to `metadata`";
                add(Verdict::Skillbox, Severity::Warning, None, message.to_owned());
            }
        }
    }
    let strict = match Document::split(skill_md).and_then(|document| fields::entries(document.front_matter)) {
        Ok(entries) => strict(&entries, folder),
        Err(error) => vec![error],
    };
    for error in strict {
        add(Verdict::AgentSkills, Severity::Error, error.line, error.message);
    }
    findings
}

/// The specification's rules, one by one.
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
    if !is_label(name, 64) || name.ends_with('-') || name.contains("--") {
        refuse(
            line,
            "`name` must be 1 to 64 of a-z, 0-9 and single '-', not at the ends".to_owned(),
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
            refuse(Some(odd.line), "`metadata` must hold text only".to_owned());
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(skill_md: &str, folder: &str) -> Vec<String> {
        lint(skill_md.as_bytes(), Some(folder), |path| {
            path == "scripts/main.py"
        })
        .into_iter()
        .map(|f| {
            format!(
                "{:?} {:?} {}",
                f.verdict,
                f.line,
                f.message.chars().take(30).collect::<String>()
            )
        })
        .collect()
    }

    #[test]
    fn a_clean_skill_has_no_finding() {
        let clean = "---\nname: a-b\ndescription: Adds.\nmetadata:\n  skillbox.version: 1.0.0\n---\n";
        assert_eq!(messages(clean, "a-b"), [""; 0]);
    }

    #[test]
    fn the_two_verdicts_are_told_apart() {
        let mixed = "---\nname: a.b\ndescription: Adds.\nversion: 1.0.0\nhook: x\nmetadata: {a: [1]}\n---\n";
        assert_eq!(
            messages(mixed, "a.b"),
            [
                "Skillbox Some(5) unknown key `hook` is ignored;",
                "AgentSkills Some(2) `name` must be 1 to 64 of a-z,",
                "AgentSkills Some(4) `version` is not a key of the ",
                "AgentSkills Some(5) `hook` is not a key of the spe",
                "AgentSkills Some(6) `metadata` must hold text only",
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
