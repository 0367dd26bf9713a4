//! Files of published skills: listed, opened, compared and checked by the lint.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::bundle::{self, Entry, Listing};
use crate::engine::added_packages::check_requirements;
use crate::engine::{PushSource, Skills, failure};
use crate::error::{Code, Error};
use crate::execution::ExecutionLimits;
use crate::ids::{Digest, Tenant};
use crate::limits;
use crate::skill::{self, DiffBudget, Hunk, LintFinding, RuleSet, Selector, Severity, SkillName};
use crate::store::SkillRecord;

/// A file of a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillFile {
    pub entry: Entry,
    /// Whether the start of the content is UTF-8 without NUL.
    pub text: bool,
}

/// An opened file of a skill.
#[derive(Debug)]
pub struct OpenSkillFile {
    pub content: File,
    pub size: u64,
    /// Of the skill that contains it, which never changes.
    pub skill: Digest,
}

/// The changes of files from one version to another.
#[derive(Debug)]
pub struct SkillDiff {
    pub from: SkillRecord,
    pub to: SkillRecord,
    /// In byte order of path.
    pub files: Vec<FileDiff>,
    /// Whether further files or hunks were left out.
    pub truncated: bool,
}

#[derive(Debug)]
pub struct FileDiff {
    pub path: String,
    pub from: Option<Entry>,
    pub to: Option<Entry>,
    /// Whether one of them is no text or too large to compare.
    pub binary: bool,
    /// Empty if `binary`, or if the limits of the comparison were reached.
    pub hunks: Vec<Hunk>,
}

impl Skills<'_> {
    pub async fn files(
        self,
        tenant: &Tenant,
        name: &SkillName,
        selector: &Selector,
    ) -> Result<Vec<SkillFile>, Error> {
        let record = self.get(tenant, name, selector).await?;
        self.in_folder(record, |folder, listing| {
            let entries = listing.entries().iter().cloned();
            let files = entries.map(|entry| {
                let text = is_text(&folder.join(&entry.path));
                SkillFile { entry, text }
            });
            Ok(files.collect())
        })
        .await
    }

    /// Opens one file of the skill, never one outside of it.
    pub async fn open_file(
        self,
        tenant: &Tenant,
        name: &SkillName,
        selector: &Selector,
        path: &str,
    ) -> Result<OpenSkillFile, Error> {
        let record = self.get(tenant, name, selector).await?;
        let missing = || {
            Error::not_found(format!(
                "file {path:?} of skill `{name}` version `{}`",
                record.version
            ))
        };
        // The folder contains no links, so that only parts such as `..` could leave it.
        bundle::check_path(path).map_err(|_| missing())?;
        let (folder, skill) = (self.folder(&record).await?, record.digest);
        let place = folder.join(path);
        let opening = tokio::task::spawn_blocking(move || {
            let metadata = std::fs::symlink_metadata(&place).ok()?;
            let content = File::open(&place).ok().filter(|_| metadata.is_file())?;
            Some(OpenSkillFile {
                content,
                size: metadata.len(),
                skill,
            })
        });
        opening.await.map_err(Error::internal)?.ok_or_else(missing)
    }

    pub async fn diff(
        self,
        tenant: &Tenant,
        name: &SkillName,
        from: &Selector,
        to: &Selector,
    ) -> Result<SkillDiff, Error> {
        let (from, to) = (
            self.get(tenant, name, from).await?,
            self.get(tenant, name, to).await?,
        );
        let of = async |record: &SkillRecord| Ok::<_, Error>(self.folder(record).await?);
        let (old, new) = (of(&from).await?, of(&to).await?);
        let _permit = self.engine.cache.unpack_permit().await;
        let compare = tokio::task::spawn_blocking(move || compare(&old, &new));
        let (files, truncated) = compare.await.map_err(Error::internal)??;
        Ok(SkillDiff {
            from,
            to,
            files,
            truncated,
        })
    }

    /// Checks a published version.
    pub async fn lint(
        self,
        tenant: &Tenant,
        name: &SkillName,
        selector: &Selector,
    ) -> Result<Vec<LintFinding>, Error> {
        let record = self.get(tenant, name, selector).await?;
        let (engine, fallback) = (self.engine.clone(), record.folder.clone());
        self.in_folder(record, move |folder, listing| {
            engine
                .skills()
                .findings(folder, listing, fallback.as_deref(), &[])
        })
        .await
    }

    /// Checks what would be published, without publishing it.
    pub async fn lint_push(self, source: PushSource, archive: File) -> Result<Vec<LintFinding>, Error> {
        let _permit = self.engine.cache.unpack_permit().await;
        let engine = self.engine.clone();
        let blocking = tokio::task::spawn_blocking(move || {
            let unpacked = match engine.cache.unpack(&archive) {
                Ok(unpacked) => unpacked,
                Err(error) => return Ok(vec![refusal(error)?]),
            };
            let (fallback, added) = (source.folder.as_deref(), source.requirements.unwrap_or_default());
            engine
                .skills()
                .findings(unpacked.folder(), &unpacked.listing, fallback, &added)
        });
        blocking.await.map_err(Error::internal)?
    }

    /// Blocking.
    fn findings(
        self,
        folder: &Path,
        listing: &Listing,
        fallback: Option<&str>,
        requirements: &[String],
    ) -> Result<Vec<LintFinding>, Error> {
        let found = bundle::with_declaration(folder, listing, fallback, |declared| {
            let mut findings = skill::lint(declared);
            if let Ok(manifest) = declared.manifest() {
                let maxima = &self.engine.settings.maxima;
                findings.extend(ExecutionLimits::lint(&manifest, maxima));
                if let Err(error) = check_requirements(&manifest, requirements) {
                    findings.push(rejected(String::new(), None, &error));
                }
            }
            Ok(findings)
        });
        let mut findings = match found {
            Ok(findings) => findings,
            Err(error) => vec![refusal(error)?],
        };
        findings.extend(bundle::lint_packages(folder, listing)?);
        findings.truncate(limits::LINT_FINDINGS_MAX);
        Ok(findings)
    }

    /// Runs `work` on the files of a version, on a blocking thread.
    async fn in_folder<T: Send + 'static>(
        self,
        record: SkillRecord,
        work: impl FnOnce(&Path, &Listing) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let folder = self.folder(&record).await?;
        let _permit = self.engine.cache.unpack_permit().await;
        let blocking = tokio::task::spawn_blocking(move || work(&folder, &bundle::list(&folder)?));
        blocking.await.map_err(Error::internal)?
    }
}

/// Why a push of this archive would be rejected; an error if the host failed.
fn refusal(error: bundle::Error) -> Result<LintFinding, Error> {
    let (file, line) = match &error {
        bundle::Error::SkillMd(error) => (error.file.as_str().to_owned(), error.line),
        bundle::Error::Refused(_)
        | bundle::Error::TooLarge(_)
        | bundle::Error::Full(_)
        | bundle::Error::Io(_) => (String::new(), None),
    };
    let error = Error::from(error);
    if !matches!(error.code(), Code::Invalid | Code::TooLarge) {
        return Err(error);
    }
    Ok(rejected(file, line, &error))
}

fn rejected(file: String, line: Option<u32>, error: &Error) -> LintFinding {
    LintFinding {
        rule_set: RuleSet::Skillbox,
        severity: Severity::Error,
        file,
        line,
        message: error.to_string(),
    }
}

/// Whether the start of a file is UTF-8 without NUL. A character may be cut at its end.
fn is_text(place: &Path) -> bool {
    let Ok(start) = read(place, limits::TEXT_SNIFFED_BYTES) else {
        return false;
    };
    let is_cut = start.len() as u64 == limits::TEXT_SNIFFED_BYTES;
    let is_utf8 = match std::str::from_utf8(&start) {
        Ok(_) => true,
        Err(error) => is_cut && error.error_len().is_none(),
    };
    is_utf8 && !start.contains(&0)
}

fn read(place: &Path, bytes_max: u64) -> std::io::Result<Vec<u8>> {
    let mut content = Vec::new();
    File::open(place)?.take(bytes_max).read_to_end(&mut content)?;
    Ok(content)
}

/// Blocking.
fn compare(old: &Path, new: &Path) -> Result<(Vec<FileDiff>, bool), Error> {
    let (from, to) = (bundle::list(old)?, bundle::list(new)?);
    let mut budget = DiffBudget::new(
        limits::DIFF_TIME_MAX,
        limits::DIFF_LINES_MAX,
        limits::DIFF_BYTES_MAX,
    );
    let (mut files, mut truncated) = (Vec::new(), false);
    let paths: BTreeSet<&str> = [&from, &to]
        .into_iter()
        .flat_map(|listing| listing.entries())
        .map(|entry| entry.path.as_str())
        .collect();
    for path in paths {
        let (before, after) = (from.find(path).cloned(), to.find(path).cloned());
        if before == after {
            continue;
        }
        if files.len() == limits::DIFF_FILES_MAX {
            truncated = true;
            break;
        }
        let texts = text(old, before.as_ref()).zip(text(new, after.as_ref()));
        let hunks = texts.as_ref().map(|(from, to)| budget.hunks(from, to));
        truncated |= hunks == Some(None);
        files.push(FileDiff {
            path: path.to_owned(),
            from: before,
            to: after,
            binary: texts.is_none(),
            hunks: hunks.flatten().unwrap_or_default(),
        });
    }
    Ok((files, truncated))
}

/// The text of a file that can be compared; empty if it does not exist.
fn text(folder: &Path, entry: Option<&Entry>) -> Option<String> {
    let Some(entry) = entry else {
        return Some(String::new());
    };
    if entry.size > limits::DIFF_FILE_BYTES_MAX {
        return None;
    }
    let place: PathBuf = folder.join(&entry.path);
    let content = read(&place, limits::DIFF_FILE_BYTES_MAX)
        .map_err(failure::of_io)
        .ok()?;
    String::from_utf8(content)
        .ok()
        .filter(|text| !text.contains('\0'))
}
