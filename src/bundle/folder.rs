//! A folder on disk as a bundle: plain files only, within the same limits as an archive.

use std::io;
use std::path::Path;

use crate::bundle::{
    Entry, Error, Listing, disk,
    names::{Named, check_path, clash},
    transfer::transfer,
};
use crate::error::quoted;
use crate::limits;

/// Reads an unpacked folder again, to compare its digest with what it should be.
///
/// # Errors
///
/// Whatever an archive of the same content would be refused for; links and special files.
pub fn list(folder: &Path) -> Result<Listing, Error> {
    list_within(folder, &Bounds::SKILL)
}

/// As [`list`], of installed packages, which are more than a skill's own files.
///
/// # Errors
///
/// As there.
pub fn list_packages(folder: &Path) -> Result<Listing, Error> {
    list_within(folder, &Bounds::PACKAGES)
}

/// How much a folder may hold.
pub(super) struct Bounds {
    entries: usize,
    bytes: u64,
    /// Whether names must differ on every file system, or just on Linux.
    portable: bool,
}

impl Bounds {
    pub(super) const SKILL: Self = Self {
        entries: limits::ARCHIVE_ENTRIES_MAX,
        bytes: limits::UNPACKED_BYTES_MAX,
        portable: true,
    };
    pub(super) const PACKAGES: Self = Self {
        // Half as many folders.
        entries: limits::PACKAGES_FILES_MAX / 2 * 3,
        bytes: limits::PACKAGES_BYTES_MAX,
        portable: false,
    };
}

fn list_within(folder: &Path, bounds: &Bounds) -> Result<Listing, Error> {
    let mut entries = Vec::new();
    for found in walk(folder, bounds, |_| false)? {
        entries.push(found.read(folder, &mut io::sink())?);
    }
    Ok(Listing::new(entries, None))
}

/// A regular file that was found below the folder.
pub(super) struct Found {
    pub(super) path: String,
    pub(super) executable: bool,
    size: u64,
}

impl Found {
    /// Copies the content to `to` and tells what it is.
    pub(super) fn read(self, folder: &Path, to: &mut impl io::Write) -> Result<Entry, Error> {
        let changed = || Error::entry(&self.path, "changed while it was read; try again");
        let mut file = disk::open(&folder.join(&self.path)).map_err(|_| changed())?;
        if !file.metadata()?.is_file() {
            return Err(changed());
        }
        let content = transfer(&mut file, to, self.size).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => changed(),
            _ => error.into(),
        })?;
        if content.bytes != self.size {
            return Err(changed());
        }
        Ok(Entry {
            path: self.path,
            size: content.bytes,
            sha256: content.sha256,
            executable: self.executable,
        })
    }
}

/// All files below `folder` in byte order of path, but for those that `ignored` names, with all below them.
pub(super) fn walk(
    folder: &Path,
    bounds: &Bounds,
    ignored: impl Fn(&str) -> bool,
) -> Result<Vec<Found>, Error> {
    let mut found = Vec::new();
    let mut seen = 0;
    let mut total = 0;
    let mut waiting = vec![String::new()];
    while let Some(parent) = waiting.pop() {
        for entry in std::fs::read_dir(folder.join(&parent))? {
            let entry = entry?;
            let name = entry.file_name().into_string().map_err(|name| {
                Error::entry(&name.to_string_lossy(), "has a name that is not UTF-8; rename it")
            })?;
            let path = if parent.is_empty() {
                name
            } else {
                format!("{parent}/{name}")
            };
            if ignored(&path) {
                continue;
            }
            check_path(&path).map_err(|rule| Error::entry(&path, rule))?;
            let metadata = entry.metadata()?;
            seen += 1;
            total += if metadata.is_file() { metadata.len() } else { 0 };
            bounds.hold(seen, total)?;
            if metadata.is_dir() {
                waiting.push(path);
            } else if metadata.is_file() {
                let executable = disk::is_executable(&metadata);
                found.push(Found {
                    path,
                    executable,
                    size: metadata.len(),
                });
            } else {
                return Err(Error::entry(
                    &path,
                    "is a link, device, pipe or socket; put a plain file in its place or leave it out",
                ));
            }
        }
    }
    found.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    if !bounds.portable {
        return Ok(found);
    }
    if let Some((one, other)) = clash(found.iter().map(|file| Named {
        path: &file.path,
        folder: false,
    })) {
        let rule = format!(
            "and entry {} are one name on some file systems; rename one",
            quoted(other)
        );
        return Err(Error::entry(one, rule));
    }
    Ok(found)
}

impl Bounds {
    fn hold(&self, entries: usize, bytes: u64) -> Result<(), Error> {
        if entries > self.entries {
            return Err(Error::TooLarge(format!(
                "the folder has more than {} entries; leave out what the skill does not need",
                self.entries
            )));
        }
        if bytes > self.bytes {
            let max = self.bytes / limits::MIB;
            return Err(Error::TooLarge(format!(
                "the folder holds more than {max} MiB; leave out what the skill does not need"
            )));
        }
        Ok(())
    }
}
