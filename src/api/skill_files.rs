//! Files of skills: listed, downloaded, compared and checked.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::skills::{Push, Skill};
use super::{RUN_OR_SKILLS, SKILLS, require};
use crate::auth::Caller;
use crate::engine::{Engine, FileDiff, OpenSkillFile, SkillDiff, SkillFile};
use crate::error::Error;
use crate::ids::Digest;
use crate::skill::{Hunk, LintFinding, RuleSet, Selector, Severity, SkillName, SkillRef, Version};
use crate::store::SkillRecord;

/// All files of a version of a skill, in byte order of path.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SkillFileList {
    pub items: Vec<ListedSkillFile>,
}

/// A file of a skill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ListedSkillFile {
    /// Path in the skill's folder.
    #[schema(example = "scripts/main.py")]
    pub path: String,
    /// Size in bytes.
    pub size: u64,
    /// Digest of the content.
    #[schema(value_type = String, format = "digest")]
    pub sha256: Digest,
    pub executable: bool,
    /// Whether its first 64 KiB are UTF-8 without NUL.
    pub text: bool,
}

/// What changed between two versions of a skill.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SkillChanges {
    #[schema(value_type = String, format = "version", example = "1.0.0")]
    pub from: Version,
    #[schema(value_type = String, format = "version", example = "1.2.0")]
    pub to: Version,
    /// Declared values that differ.
    pub fields: Vec<FieldChange>,
    /// Files that differ, in byte order of path.
    pub files: Vec<FileChange>,
    /// Whether files or hunks were left out because of their size.
    pub truncated: bool,
}

/// A declared value that differs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct FieldChange {
    /// Member of the skill, such as `timeout`.
    #[schema(example = "timeout")]
    pub name: String,
    /// Any JSON; `null` if it was not declared.
    #[schema(required)]
    pub from: Value,
    /// Any JSON; `null` if it is not declared.
    #[schema(required)]
    pub to: Value,
}

/// A file that differs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct FileChange {
    pub path: String,
    pub change: ChangeKind,
    /// Size in bytes; `null` if the file was added.
    #[schema(required)]
    pub from_size: Option<u64>,
    /// Size in bytes; `null` if the file was removed.
    #[schema(required)]
    pub to_size: Option<u64>,
    /// Whether it is no UTF-8 text, or too large to compare.
    pub binary: bool,
    /// Changed lines; none if `binary`, or if the answer would become too large.
    pub hunks: Vec<Hunk>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    Added,
    Removed,
    /// The content differs.
    Modified,
    /// Only whether it is executable differs.
    Mode,
}

/// The findings of the lint.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LintReport {
    pub findings: Vec<ReportedFinding>,
}

/// A finding of the lint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ReportedFinding {
    pub level: FindingLevel,
    pub code: FindingCode,
    /// File of the skill; empty for the archive as a whole.
    #[schema(example = "SKILL.md")]
    pub path: String,
    /// Line in that file, from 1, if known.
    #[schema(required)]
    pub line: Option<u32>,
    /// What is wrong and what to do.
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum FindingLevel {
    Error,
    /// Accepted, but probably a mistake.
    Warning,
}

/// The rules that a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FindingCode {
    /// Skillbox: an error means that a push is rejected.
    Skillbox,
    /// The Agent Skills specification: an error means that other products may reject the skill.
    AgentSkills,
}

/// All files of one version.
pub async fn files(engine: &Engine, caller: &Caller, skill: &SkillRef) -> Result<SkillFileList, Error> {
    require(caller, RUN_OR_SKILLS)?;
    let SkillRef { name, selector } = skill;
    let files = engine.skills().files(caller.tenant(), name, selector).await?;
    let items = files.into_iter().map(ListedSkillFile::from).collect();
    Ok(SkillFileList { items })
}

/// One file of one version.
pub async fn open_file(
    engine: &Engine,
    caller: &Caller,
    skill: &SkillRef,
    path: &str,
) -> Result<OpenSkillFile, Error> {
    require(caller, RUN_OR_SKILLS)?;
    let SkillRef { name, selector } = skill;
    engine
        .skills()
        .open_file(caller.tenant(), name, selector, path)
        .await
}

/// What changed from one version to another.
pub async fn diff(
    engine: &Engine,
    caller: &Caller,
    name: &SkillName,
    from: &Selector,
    to: &Selector,
) -> Result<SkillChanges, Error> {
    require(caller, RUN_OR_SKILLS)?;
    let diff = engine.skills().diff(caller.tenant(), name, from, to).await?;
    let SkillDiff {
        from,
        to,
        files,
        truncated,
    } = diff;
    Ok(SkillChanges {
        from: from.version.clone(),
        to: to.version.clone(),
        fields: fields(from, to)?,
        files: files.into_iter().map(FileChange::from).collect(),
        truncated,
    })
}

/// Checks a published version.
pub async fn lint(engine: &Engine, caller: &Caller, skill: &SkillRef) -> Result<LintReport, Error> {
    require(caller, RUN_OR_SKILLS)?;
    let SkillRef { name, selector } = skill;
    let findings = engine.skills().lint(caller.tenant(), name, selector).await?;
    Ok(findings.into())
}

/// Checks an archive without publishing it.
pub async fn lint_push(engine: &Engine, caller: &Caller, push: Push) -> Result<LintReport, Error> {
    require(caller, SKILLS)?;
    let (source, archive) = push.of(caller);
    let findings = engine.skills().lint_push(source, archive).await?;
    Ok(findings.into())
}

/// Members of [`Skill`] that an author declares, or an operator adds. Its instructions are a file.
const DECLARED: [&str; 18] = [
    "description",
    "dialect",
    "language",
    "entrypoint",
    "image",
    "timeout",
    "memory_bytes",
    "cpu_millis",
    "disk_bytes",
    "input_schema",
    "output_schema",
    "license",
    "compatibility",
    "metadata",
    "allowed_tools",
    "function",
    "secrets",
    "requirements",
];

fn fields(from: SkillRecord, to: SkillRecord) -> Result<Vec<FieldChange>, Error> {
    let members = |record| serde_json::to_value(Skill::of(record, None)).map_err(Error::internal);
    let (mut from, mut to) = (members(from)?, members(to)?);
    let changes = DECLARED.into_iter().map(|name| FieldChange {
        name: name.to_owned(),
        from: from[name].take(),
        to: to[name].take(),
    });
    Ok(changes.filter(|change| change.from != change.to).collect())
}

impl From<SkillFile> for ListedSkillFile {
    fn from(SkillFile { entry, text }: SkillFile) -> Self {
        Self {
            path: entry.path,
            size: entry.size,
            sha256: entry.sha256,
            executable: entry.executable,
            text,
        }
    }
}

impl From<FileDiff> for FileChange {
    fn from(diff: FileDiff) -> Self {
        let change = match (&diff.from, &diff.to) {
            (None, _) => ChangeKind::Added,
            (_, None) => ChangeKind::Removed,
            (Some(from), Some(to)) if from.sha256 == to.sha256 => ChangeKind::Mode,
            (Some(_), Some(_)) => ChangeKind::Modified,
        };
        Self {
            path: diff.path,
            change,
            from_size: diff.from.map(|entry| entry.size),
            to_size: diff.to.map(|entry| entry.size),
            binary: diff.binary,
            hunks: diff.hunks,
        }
    }
}

impl From<Vec<LintFinding>> for LintReport {
    fn from(findings: Vec<LintFinding>) -> Self {
        Self {
            findings: findings.into_iter().map(ReportedFinding::from).collect(),
        }
    }
}

impl From<LintFinding> for ReportedFinding {
    fn from(finding: LintFinding) -> Self {
        Self {
            level: match finding.severity {
                Severity::Error => FindingLevel::Error,
                Severity::Warning => FindingLevel::Warning,
            },
            code: match finding.rule_set {
                RuleSet::Skillbox => FindingCode::Skillbox,
                RuleSet::AgentSkills => FindingCode::AgentSkills,
            },
            path: finding.file,
            line: finding.line,
            message: finding.message,
        }
    }
}
