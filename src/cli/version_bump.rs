//! `skillbox skill push --bump`: raises the version in a skill's folder. Nothing else in the file changes.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::ValueEnum;

use crate::cli::authoring::UnpackedSkill;
use crate::cli::failure::{Failure, Result};
use crate::cli::skill_source::SkillSource;
use crate::skill::{File, SkillName, Version, WrittenVersion};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Bump {
    /// 1.2.3 becomes 1.2.4
    Patch,
    /// 1.2.3 becomes 1.3.0
    Minor,
    /// 1.2.3 becomes 2.0.0
    Major,
}

impl Bump {
    /// The next release after the highest of these.
    fn after(self, releases: impl IntoIterator<Item = [u64; 3]>) -> Version {
        let [major, minor, patch] = releases.into_iter().max().unwrap_or_default();
        let next = match (self, [major, minor, patch]) {
            // The first release of a skill without versions.
            (Self::Patch, [0, 0, 0]) => [0, 1, 0],
            (Self::Patch, _) => [major, minor, patch.saturating_add(1)],
            (Self::Minor, _) => [major, minor.saturating_add(1), 0],
            (Self::Major, _) => [major.saturating_add(1), 0, 0],
        };
        Version::of_release(next)
    }
}

/// What is known of a skill's version before a push.
pub(crate) struct LocalVersion {
    pub(crate) name: SkillName,
    written: Option<WrittenVersion>,
}

impl LocalVersion {
    pub(crate) fn read(source: &SkillSource) -> Result<Self> {
        let (name, written) = UnpackedSkill::open(source)?
            .with_declaration(|declared| Ok((declared.manifest()?.name, declared.written_version()?)))?;
        Ok(Self { name, written })
    }

    /// `SKILL.md:4`, if the version is written anywhere.
    pub(crate) fn place(&self) -> Option<String> {
        let written = self.written.as_ref()?;
        Some(format!("{}:{}", written.file.as_str(), written.line))
    }
}

/// A changed file, restored when dropped unless kept.
pub(crate) struct RaisedVersion {
    path: PathBuf,
    before: Option<Vec<u8>>,
    /// `SKILL.md:4: version 1.0.1`.
    pub(crate) description: String,
}

impl RaisedVersion {
    /// Writes the next version after the one in the folder and `latest`, the highest published one.
    pub(crate) fn write(
        source: &SkillSource,
        local: &LocalVersion,
        latest: Option<&Version>,
        bump: Bump,
    ) -> Result<Self> {
        let folder = source.folder().ok_or_else(|| {
            Failure::refused(
                "--bump changes the version in SKILL.md, so give the skill's folder instead of an archive",
            )
        })?;
        let written = local.written.as_ref();
        let release = |version: &Version| version.release();
        let parsed = written.and_then(|written| written.text.parse().ok());
        let next = bump.after(
            parsed
                .as_ref()
                .and_then(release)
                .into_iter()
                .chain(latest.and_then(release)),
        );
        let file = written.map_or(File::SkillMd, |written| written.file);
        let path = declaration(&folder, file)?;
        let before = std::fs::read(&path).map_err(|error| Failure::file(&path, &error))?;
        let text = std::str::from_utf8(&before).map_err(|_| cannot_change(file, "it is not UTF-8"))?;
        let after = match written {
            Some(written) => replaced(text, written, &next),
            None => inserted(text, &next),
        };
        let after = after.ok_or_else(|| {
            cannot_change(
                file,
                "write `version: 0.1.0` as a line of its own between its `---` lines",
            )
        })?;
        write(&path, after.as_bytes())?;
        let line = written.map_or(2, |written| written.line);
        let raised = Self {
            path,
            before: Some(before),
            description: format!("{}:{line}: version {next}", file.as_str()),
        };
        // Whatever the line looked like, the skill must now have this version. If not, the drop restores the file.
        let read = LocalVersion::read(source)?.written.map(|written| written.text);
        if read.as_deref() != Some(next.to_string().as_str()) {
            return Err(cannot_change(file, "raise it by hand"));
        }
        Ok(raised)
    }

    pub(crate) fn keep(mut self) {
        self.before = None;
    }
}

impl Drop for RaisedVersion {
    fn drop(&mut self) {
        if let Some(before) = self.before.take() {
            let _ = write(&self.path, &before);
        }
    }
}

fn cannot_change(file: File, remedy: &str) -> Failure {
    Failure::refused(format!(
        "the version in {} cannot be changed by --bump: {remedy}",
        file.as_str()
    ))
}

/// The file of a folder by its name in any case.
fn declaration(folder: &Path, file: File) -> Result<PathBuf> {
    let named = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.eq_ignore_ascii_case(file.as_str()))
    };
    let entries = std::fs::read_dir(folder).map_err(|error| Failure::file(folder, &error))?;
    let mut paths = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
    let missing = || cannot_change(file, "it is not in this folder");
    paths.find(named).ok_or_else(missing)
}

/// The text with another version on its line; `None` if the line does not contain the version as text.
fn replaced(text: &str, written: &WrittenVersion, next: &Version) -> Option<String> {
    let mut lines: Vec<_> = text.split_inclusive('\n').map(str::to_owned).collect();
    let line = lines.get_mut(usize::try_from(written.line).ok()?.checked_sub(1)?)?;
    let value = line.find([':', '='])?;
    let start = value + line[value..].find(&written.text)?;
    line.replace_range(start..start + written.text.len(), &next.to_string());
    Some(lines.concat())
}

/// The text with a version as the first line of the front matter.
fn inserted(text: &str, next: &Version) -> Option<String> {
    let opening = text.split_inclusive('\n').next()?;
    let is_opening = opening.trim_start_matches('\u{feff}').trim_end() == "---";
    let end = if opening.ends_with("\r\n") { "\r\n" } else { "\n" };
    is_opening.then(|| format!("{opening}version: {next}{end}{}", &text[opening.len()..]))
}

/// Atomically, with the permissions of the file.
fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let failed = |error: &std::io::Error| Failure::file(path, error);
    let folder = path.parent().unwrap_or(Path::new("."));
    let permissions = std::fs::metadata(path)
        .map_err(|error| failed(&error))?
        .permissions();
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(|error| failed(&error.kind().into()))?;
    file.write_all(bytes)
        .and_then(|()| file.as_file().set_permissions(permissions))
        .map_err(|error| failed(&error))?;
    file.persist(path).map_err(|error| failed(&error.error))?;
    Ok(())
}

/// The versions of a skill are released content: a conflict is solved by another version.
pub(crate) fn conflict(failure: Failure, source: &SkillSource) -> Failure {
    if !failure.is_version_conflict() {
        return failure;
    }
    let place = LocalVersion::read(source).ok().and_then(|local| local.place());
    let place = place
        .map(|place| format!("raise it in {place}, or "))
        .unwrap_or_default();
    let way = match source.folder() {
        Some(_) => "push with --bump patch",
        None => "push the folder with --bump patch",
    };
    failure.hint(format!("{place}{way}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_release_follows_the_highest() {
        let cases = [
            (Bump::Patch, vec![[1, 2, 3]], "1.2.4"),
            (Bump::Minor, vec![[1, 2, 3], [1, 10, 0]], "1.11.0"),
            (Bump::Major, vec![[1, 2, 3]], "2.0.0"),
            (Bump::Patch, vec![], "0.1.0"),
            (Bump::Minor, vec![[0, 0, 0]], "0.1.0"),
            (Bump::Major, vec![], "1.0.0"),
        ];
        for (bump, releases, next) in cases {
            assert_eq!(
                bump.after(releases.clone()).to_string(),
                next,
                "{bump:?} of {releases:?}"
            );
        }
    }

    #[test]
    fn only_the_version_changes() {
        let written = WrittenVersion {
            file: File::SkillMd,
            line: 3,
            text: "1.0.0".to_owned(),
        };
        let text = "---\r\nname: a\r\nversion:   '1.0.0' # after 1.0.0\r\n---\r\nversion: 1.0.0\r\n";
        let next = "1.0.1".parse().unwrap();
        let expected = text.replacen("'1.0.0'", "'1.0.1'", 1);
        assert_eq!(replaced(text, &written, &next).unwrap(), expected);
        assert_eq!(
            inserted("---\nname: a\n---\n", &next).unwrap(),
            "---\nversion: 1.0.1\nname: a\n---\n"
        );
        assert_eq!(inserted("# A skill\n", &next), None);
    }
}
