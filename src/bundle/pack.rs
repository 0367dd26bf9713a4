//! Packs a folder into a reproducible zip.

use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::path::Path;

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use crate::bundle::{
    Error, Listing,
    folder::{Bounds, FileMark, Taking, marks, walk},
    load::is_declaration,
};
use crate::limits;

/// Names that are never published, in any folder.
const IGNORED: [&str; 12] = [
    ".git",
    ".hg",
    ".svn",
    "__pycache__",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    ".venv",
    ".DS_Store",
    "Thumbs.db",
    "__MACOSX",
    "node_modules/.cache",
];

/// Packs a skill's folder into `out`, an empty file, and rewinds it. Version control, caches, virtual environments
/// and files of desktops are omitted. A link inside the folder is packed as its target. The result always unpacks to
/// the same listing.
///
/// # Errors
///
/// A folder without SKILL.md or skill.toml, links that lead out, special files, and the errors of
/// [`crate::bundle::unpack`].
pub fn pack(folder: &Path, out: &mut File) -> Result<Listing, Error> {
    let found = walk(folder, &Bounds::SKILL, Taking::AsPublished { is_ignored })?;
    if !found.iter().any(|file| is_declaration(&file.path)) {
        return Err(Error::Refused(
            "the folder has no SKILL.md and no skill.toml; add one, for example with `skillbox skill init`"
                .to_owned(),
        ));
    }
    let mut entries = Vec::with_capacity(found.len());
    let mut zip = ZipWriter::new(&mut *out);
    for file in found {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .last_modified_time(DateTime::default())
            .unix_permissions(if file.executable { 0o755 } else { 0o644 });
        zip.start_file(&file.path, options).map_err(io::Error::from)?;
        entries.push(file.read(&mut zip)?);
    }
    zip.finish().map_err(io::Error::from)?;
    out.flush()?;
    if out.stream_position()? > limits::ARCHIVE_BYTES_MAX {
        let max = limits::ARCHIVE_BYTES_MAX / limits::MIB;
        return Err(Error::TooLarge(format!(
            "the archive is larger than {max} MiB; remove files that the skill does not need"
        )));
    }
    out.rewind()?;
    Ok(Listing::new(entries, None))
}

/// Marks of the files that [`pack`] would pack, in byte order of path, without reading them.
///
/// # Errors
///
/// As [`pack`] for names and links.
pub fn file_marks(folder: &Path) -> Result<Vec<FileMark>, Error> {
    marks(&walk(folder, &Bounds::SKILL, Taking::AsPublished { is_ignored })?)
}

fn is_ignored(path: &str) -> bool {
    IGNORED.iter().any(|name| {
        path.strip_suffix(name)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignores_exact_names_only() {
        for path in [
            ".git",
            "a/.git",
            "a/b/__pycache__",
            "node_modules/.cache",
            ".DS_Store",
        ] {
            assert!(is_ignored(path), "{path}");
        }
        for path in [
            "x.git",
            ".gitignore",
            "git",
            "node_modules",
            ".cache",
            "a/.git.md",
        ] {
            assert!(!is_ignored(path), "{path}");
        }
    }
}
