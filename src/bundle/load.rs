//! Loads the manifest of an unpacked skill.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use crate::bundle::{Error, Listing};
use crate::error::quoted;
use crate::limits;
use crate::skill::{
    self, Action, Declaration, Dialect, InvalidRequirement, LintFinding, Manifest, PackageLists, Warning,
    action,
};

const SKILL_MD: &str = skill::File::SkillMd.as_str();

/// Loads the skill in `folder` with this listing. A skill without a `name` is named after the archive's only
/// top-level folder, else `fallback_name`.
///
/// # Errors
///
/// SKILL.md and skill.toml are missing or misplaced, and the errors of [`Declaration::manifest`].
pub fn load(folder: &Path, listing: &Listing, fallback_name: Option<&str>) -> Result<Manifest, Error> {
    let manifest = with_declaration(
        folder,
        listing,
        fallback_name,
        |declared| Ok(declared.manifest()?),
    )?;
    let actions = actions(folder, listing)?;
    let dialect = match manifest.dialect {
        Dialect::Instructions if !actions.is_empty() => Dialect::Toolbox,
        known => known,
    };
    let mut warnings = manifest.warnings;
    let refused = refused(folder, listing, &actions).into_iter();
    warnings.extend(refused.map(|refused| Warning {
        line: None,
        message: format!("{refused}; until then programs that need packages cannot run"),
    }));
    warnings.truncate(limits::WARNINGS_MAX);
    Ok(Manifest {
        dialect,
        actions,
        warnings,
        ..manifest
    })
}

/// Requirements of the skill in `folder` that cannot be installed, and imports of scripts that neither the skill nor its package
/// lists have.
///
/// # Errors
///
/// The file system fails.
pub fn lint_packages(folder: &Path, listing: &Listing) -> Result<Vec<LintFinding>, Error> {
    let (files, actions) = (paths(listing), actions(folder, listing)?);
    let lists = PackageLists {
        files: &files,
        actions: &actions,
    };
    let undeclared = lists.undeclared(|path, bytes_max| text_of(folder, listing, path, bytes_max));
    let findings = refused(folder, listing, &actions).into_iter().chain(undeclared);
    Ok(findings.map(LintFinding::from).collect())
}

/// The text of a file that is at most this large.
fn text_of(folder: &Path, listing: &Listing, path: &str, bytes_max: u64) -> Option<String> {
    let entry = listing.find(path).filter(|entry| entry.size <= bytes_max)?;
    String::from_utf8(head(&folder.join(&entry.path), bytes_max).ok()?).ok()
}

fn refused(folder: &Path, listing: &Listing, actions: &[Action]) -> Vec<InvalidRequirement> {
    let files = paths(listing);
    let lists = PackageLists {
        files: &files,
        actions,
    };
    lists.refused(|path, bytes_max| text_of(folder, listing, path, bytes_max))
}

fn paths(listing: &Listing) -> Vec<&str> {
    let entries = listing.entries().iter();
    entries.map(|entry| entry.path.as_str()).collect()
}

/// Calls `read` with the declaration of the skill in `folder`; names as in [`load`].
pub fn with_declaration<T>(
    folder: &Path,
    listing: &Listing,
    fallback_name: Option<&str>,
    read: impl FnOnce(&Declaration<'_>) -> Result<T, Error>,
) -> Result<T, Error> {
    // One byte more than allowed, so that the parser reports a file that is too long.
    let content = |file: skill::File, bytes_max: u64| {
        let found = listing.entries().iter().find(|entry| is_named(&entry.path, file));
        found
            .map(|entry| head(&folder.join(&entry.path), bytes_max + 1))
            .transpose()
    };
    let skill_md = content(skill::File::SkillMd, limits::SKILL_MD_BYTES_MAX)?;
    let skill_toml = content(skill::File::SkillToml, limits::FRONT_MATTER_BYTES_MAX as u64)?;
    if skill_md.is_none() && skill_toml.is_none() {
        return Err(misplaced(listing));
    }
    let files = paths(listing);
    read(&Declaration {
        skill_md: skill_md.as_deref(),
        skill_toml: skill_toml.as_deref(),
        fallback_name: listing.folder().or(fallback_name),
        files: &files,
    })
}

/// Whether a file in the root folder declares the skill.
pub(super) fn is_declaration(path: &str) -> bool {
    is_named(path, skill::File::SkillMd) || is_named(path, skill::File::SkillToml)
}

/// No two files of a bundle differ only in case, so `skill.md` is unambiguous.
fn is_named(path: &str, file: skill::File) -> bool {
    path.eq_ignore_ascii_case(file.as_str())
}

/// The scripts that can be run, in byte order of path.
fn actions(folder: &Path, listing: &Listing) -> io::Result<Vec<Action>> {
    let mut actions = Vec::new();
    for entry in listing.entries() {
        if actions.len() == limits::ACTIONS_MAX {
            break;
        }
        let head = head(&folder.join(&entry.path), limits::ACTION_HEAD_BYTES)?;
        actions.extend(action(&entry.path, &head));
    }
    Ok(actions)
}

fn head(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(bytes_max).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn misplaced(listing: &Listing) -> Error {
    let named = |path: &&str| {
        path.rsplit('/')
            .next()
            .is_some_and(|name| name.eq_ignore_ascii_case(SKILL_MD))
    };
    let rule = "must be at the root of the archive or of its only top-level folder";
    let paths = listing.entries().iter().map(|entry| entry.path.as_str());
    let found: Vec<_> = paths.filter(named).collect();
    let shown = found
        .iter()
        .take(limits::SKILLS_NAMED_MAX)
        .map(|path| quoted(path));
    let shown = shown.collect::<Vec<_>>().join(", ");
    Error::Refused(match found.len().saturating_sub(limits::SKILLS_NAMED_MAX) {
        _ if found.is_empty() => format!("SKILL.md is missing; it {rule}"),
        0 => format!("SKILL.md {rule}; found {shown} instead"),
        more => format!("SKILL.md {rule}; found {shown} and {more} more instead"),
    })
}
