//! Commands for skill authors that need no engine: `skillbox skill init`, `lint`, `package`, `export`.

use std::path::{Path, PathBuf};

use crate::bundle::{self, Listing};
use crate::cli::arguments::{self, Archive};
use crate::cli::console::{Console, Format, Rows};
use crate::cli::exit::Exit;
use crate::cli::failure::{Failure, Result};
use crate::cli::skill::keep;
use crate::cli::skill_source::SkillSource;
use crate::cli::syntax::syntax_errors;
use crate::execution::{ExecutionLimits, Maxima};
use crate::skill::{self as domain, File, Language, LintFinding, RuleSet, Severity, SkillName};

pub(crate) fn init(name: &SkillName, lang: Language, console: &Console) -> Result<Exit> {
    let folder = PathBuf::from(name.as_str());
    std::fs::create_dir(&folder).map_err(|error| Failure::file(&folder, &error))?;
    write_scaffold(&folder, name, lang)?;
    console.success(format!(
        "created {0}; try `skillbox run ./{0} --input @{0}/input.json`",
        folder.display()
    ));
    Ok(Exit::Success)
}

/// Writes a small working skill into a folder.
pub(crate) fn write_scaffold(folder: &Path, name: &SkillName, lang: Language) -> Result<()> {
    for (path, text) in domain::scaffold(name, lang) {
        let path = folder.join(path);
        let parent = path.parent().unwrap_or(folder);
        std::fs::create_dir_all(parent)
            .and_then(|()| std::fs::write(&path, text))
            .map_err(|error| Failure::file(&path, &error))?;
    }
    Ok(())
}

/// `maxima` are those of a server with this configuration.
pub(crate) fn lint(source: &SkillSource, maxima: &Maxima, console: &Console) -> Result<Exit> {
    // Pack and unpack, so that the checked files are those that a push would send.
    let checked = UnpackedSkill::open(source)?;
    let mut findings = checked.with_declaration(|declared| {
        let mut findings = domain::lint(declared);
        if let Ok(manifest) = declared.manifest() {
            findings.extend(ExecutionLimits::lint(&manifest, maxima));
        }
        Ok(findings)
    })?;
    let (folder, listing) = (checked.folder.path(), &checked.listing);
    findings.extend(bundle::lint_packages(folder, listing)?);
    findings.extend(syntax_errors(folder, listing));
    if !findings.is_empty() || console.format_or(Format::Table) != Format::Table {
        console.data(Format::Table, &findings, |findings| Rows {
            heading: &["rule of", "severity", "where", "finding"],
            rows: findings.iter().map(finding).collect(),
            optional: &["rule of"],
        })?;
    }
    let refused = findings
        .iter()
        .any(|finding| finding.rule_set == RuleSet::Skillbox && finding.severity == Severity::Error);
    let other_rules = findings.iter().any(|finding| finding.severity == Severity::Error);
    if findings.is_empty() {
        console.success("no problems found");
    } else if refused {
        console.say("a push rejects this skill until the errors of rule `skillbox` are corrected");
    } else if other_rules {
        console.say("a push accepts this skill; other products may reject it because of the errors");
    }
    Ok(if refused { Exit::Failed } else { Exit::Success })
}

fn finding(finding: &LintFinding) -> Vec<String> {
    let verdict = match finding.rule_set {
        RuleSet::Skillbox => "skillbox",
        RuleSet::AgentSkills => "agent-skills",
    };
    let severity = match finding.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    let line = match finding.line {
        Some(line) => format!("{}:{line}", finding.file),
        None => finding.file.clone(),
    };
    vec![
        verdict.to_owned(),
        severity.to_owned(),
        line,
        finding.message.clone(),
    ]
}

pub(crate) fn package(folder: &Path, out: Option<PathBuf>, console: &Console) -> Result<Exit> {
    let full = folder
        .canonicalize()
        .map_err(|error| Failure::file(folder, &error))?;
    if !full.is_dir() {
        let message = format!(
            "`{}` is not a folder; give the folder of a skill",
            folder.display()
        );
        return Err(Failure::refused(message));
    }
    let mut archive = arguments::pack(folder)?;
    let named = || {
        full.file_name()
            .map(|name| PathBuf::from(name).with_added_extension("zip"))
    };
    let out = out
        .or_else(named)
        .ok_or_else(|| Failure::refused("cannot derive an archive name from this folder; give --out"))?;
    keep(&mut archive, &out)?;
    console.success(format!("packed {} into {}", folder.display(), out.display()));
    Ok(Exit::Success)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExportForm {
    /// Unchanged.
    AsItIs,
    /// Strictly by the Agent Skills specification.
    Strict,
}

/// An archive or folder, checked and unpacked as a push would.
pub(crate) struct UnpackedSkill {
    folder: tempfile::TempDir,
    listing: Listing,
    name: Option<SkillName>,
}

impl UnpackedSkill {
    pub(crate) fn open(source: &SkillSource) -> Result<Self> {
        let Archive { file, name } = source.open()?;
        let folder =
            tempfile::tempdir().map_err(|error| Failure::internal("making a temporary folder", error))?;
        let listing = bundle::unpack(&file, folder.path())?;
        Ok(Self {
            folder,
            listing,
            name,
        })
    }

    pub(crate) fn with_declaration<T>(
        &self,
        judge: impl FnOnce(&domain::Declaration<'_>) -> std::result::Result<T, bundle::Error>,
    ) -> Result<T> {
        let name = self.name.as_ref().map(SkillName::as_str);
        Ok(bundle::with_declaration(
            self.folder.path(),
            &self.listing,
            name,
            judge,
        )?)
    }
}

/// Creates the folder completely or not at all.
pub(crate) fn export(source: &SkillSource, form: ExportForm, out: &Path, console: &Console) -> Result<Exit> {
    let checked = UnpackedSkill::open(source)?;
    let from = checked.folder.path();
    let name = match form {
        ExportForm::AsItIs => {
            checked.with_declaration(|declared| Ok(declared.manifest()?.name.to_string()))?
        }
        ExportForm::Strict => {
            let strict = checked.with_declaration(|declared| Ok(declared.strict()?))?;
            let write = |file: File, text: &str| {
                let path = from.join(file.as_str());
                std::fs::write(&path, text).map_err(|error| Failure::file(&path, &error))
            };
            write(File::SkillMd, &strict.skill_md)?;
            if let Some(skill_toml) = &strict.skill_toml {
                write(File::SkillToml, skill_toml)?;
            }
            strict.name
        }
    };
    let folder = out.join(&name);
    if folder.exists() {
        let message = format!(
            "`{}` already exists; choose another parent folder with --out",
            folder.display()
        );
        return Err(Failure::refused(message));
    }
    std::fs::create_dir_all(out).map_err(|error| Failure::file(out, &error))?;
    let staging = tempfile::tempdir_in(out).map_err(|error| Failure::file(out, &error.kind().into()))?;
    let made = staging.path().join(&name);
    let mut packed = arguments::pack(from)?;
    std::fs::create_dir(&made)
        .and_then(|()| std::io::Seek::rewind(&mut packed))
        .map_err(|error| Failure::file(&folder, &error))?;
    bundle::unpack(&packed, &made)?;
    std::fs::rename(&made, &folder).map_err(|error| Failure::file(&folder, &error))?;
    console.success(format!("exported {name} to {}", folder.display()));
    Ok(Exit::Success)
}
