//! A folder on disk as a bundle: regular files only, with the limits of an archive.

use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::bundle::{
    Entry, Error, Listing, disk,
    names::{Named, check_path, clash},
    transfer::transfer,
};
use crate::error::quoted;
use crate::limits;

/// Lists an unpacked folder to verify its digest. Links, special files and everything that an archive may not contain
/// are errors.
pub fn list(folder: &Path) -> Result<Listing, Error> {
    list_within(folder, &Bounds::SKILL)
}

/// As [`list`], with the limits of installed packages.
pub fn list_packages(folder: &Path) -> Result<Listing, Error> {
    list_within(folder, &Bounds::PACKAGES)
}

pub(super) struct Bounds {
    entries: usize,
    bytes: u64,
    /// Whether names must be distinct on every file system, or only on Linux.
    portable: bool,
}

impl Bounds {
    pub(super) const SKILL: Self = Self {
        entries: limits::ARCHIVE_ENTRIES_MAX,
        bytes: limits::UNPACKED_BYTES_MAX,
        portable: true,
    };
    pub(super) const PACKAGES: Self = Self {
        // Folders are limited to half of the files.
        entries: limits::PACKAGES_FILES_MAX / 2 * 3,
        bytes: limits::PACKAGES_BYTES_MAX,
        portable: false,
    };
}

fn list_within(folder: &Path, bounds: &Bounds) -> Result<Listing, Error> {
    let mut entries = Vec::new();
    for found in walk(folder, bounds, Taking::AsUnpacked)? {
        entries.push(found.read(&mut io::sink())?);
    }
    Ok(Listing::new(entries, None))
}

pub(super) struct Found {
    pub(super) path: String,
    pub(super) executable: bool,
    size: u64,
    /// Where the file is: somewhere else in the folder if `path` is a link.
    place: PathBuf,
}

impl Found {
    fn mark(&self) -> Result<FileMark, Error> {
        Ok(FileMark {
            path: self.path.clone(),
            size: self.size,
            modified: std::fs::metadata(&self.place)?.modified().ok(),
        })
    }
}

/// What a change of a file changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileMark {
    pub path: String,
    pub size: u64,
    pub modified: Option<SystemTime>,
}

pub(super) fn marks(found: &[Found]) -> Result<Vec<FileMark>, Error> {
    found.iter().map(Found::mark).collect()
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Taking {
    /// Everything; links are rejected.
    AsUnpacked,
    /// Everything except ignored paths and virtual environments. Links are replaced by the file or folder inside that
    /// they lead to; links that lead nowhere or up are omitted.
    AsPublished {
        /// Ignores a path and everything below it.
        is_ignored: fn(&str) -> bool,
    },
}

impl Found {
    /// Copies the content to `to`, and returns its size and digest.
    pub(super) fn read(self, to: &mut impl io::Write) -> Result<Entry, Error> {
        let changed = || Error::entry(&self.path, "changed while it was read; try again");
        let mut file = disk::open(&self.place).map_err(|_| changed())?;
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

/// All files below `folder` in byte order of path.
pub(super) fn walk(folder: &Path, bounds: &Bounds, taking: Taking) -> Result<Vec<Found>, Error> {
    let root = folder.canonicalize()?;
    let mut walk = Walk {
        bounds,
        taking,
        found: Vec::new(),
        seen: 0,
        bytes: 0,
        waiting: vec![(String::new(), root.clone())],
        root,
    };
    while let Some((parent, place)) = walk.waiting.pop() {
        walk.enter(&parent, &place)?;
    }
    let mut found = walk.found;
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

struct Walk<'a> {
    bounds: &'a Bounds,
    taking: Taking,
    root: PathBuf,
    found: Vec<Found>,
    seen: usize,
    bytes: u64,
    /// Folders to visit: their paths in the bundle and on disk.
    waiting: Vec<(String, PathBuf)>,
}

impl Walk<'_> {
    fn enter(&mut self, parent: &str, place: &Path) -> Result<(), Error> {
        let is_venv = || !parent.is_empty() && place.join("pyvenv.cfg").is_file();
        if matches!(self.taking, Taking::AsPublished { .. }) && is_venv() {
            return Ok(());
        }
        for entry in std::fs::read_dir(place)? {
            let entry = entry?;
            let name = entry.file_name().into_string().map_err(|name| {
                Error::entry(&name.to_string_lossy(), "has a name that is not UTF-8; rename it")
            })?;
            let path = if parent.is_empty() {
                name
            } else {
                format!("{parent}/{name}")
            };
            if self.ignores(&path) {
                continue;
            }
            check_path(&path).map_err(|rule| Error::entry(&path, rule))?;
            let metadata = entry.metadata()?;
            if !metadata.is_symlink() {
                self.take(path, entry.path(), &metadata)?;
            } else if let Some(target) = self.follow(&path, place)? {
                let metadata = target.symlink_metadata()?;
                self.take(path, target, &metadata)?;
            }
        }
        Ok(())
    }

    fn take(&mut self, path: String, place: PathBuf, metadata: &Metadata) -> Result<(), Error> {
        self.seen += 1;
        self.bytes += if metadata.is_file() { metadata.len() } else { 0 };
        self.bounds.hold(self.seen, self.bytes)?;
        if metadata.is_dir() {
            self.waiting.push((path, place));
        } else if metadata.is_file() {
            let executable = disk::is_executable(metadata);
            self.found.push(Found {
                path,
                executable,
                size: metadata.len(),
                place,
            });
        } else {
            return Err(Error::entry(
                &path,
                "is a device, pipe or socket; remove it from the folder",
            ));
        }
        Ok(())
    }

    /// The target of the link at `path` in the folder `place`; `None` to omit it.
    fn follow(&self, path: &str, place: &Path) -> Result<Option<PathBuf>, Error> {
        if let Taking::AsUnpacked = self.taking {
            return Err(Error::entry(path, "is a link; replace it by a regular file"));
        }
        let name = path.rsplit('/').next().unwrap_or(path);
        let Ok(target) = place.join(name).canonicalize() else {
            return Ok(None);
        };
        let Ok(inside) = target.strip_prefix(&self.root) else {
            return Err(Error::entry(
                path,
                "is a link that leads out of the folder; replace it by the file or remove it",
            ));
        };
        let inside = inside.to_string_lossy().replace('\\', "/");
        let leads_up = place.starts_with(&target);
        Ok((!leads_up && !self.ignores_any(&inside)).then_some(target))
    }

    fn ignores(&self, path: &str) -> bool {
        match self.taking {
            Taking::AsUnpacked => false,
            Taking::AsPublished { is_ignored } => is_ignored(path),
        }
    }

    fn ignores_any(&self, path: &str) -> bool {
        let above = path.match_indices('/').map(|(at, _)| &path[..at]);
        above.chain([path]).any(|path| self.ignores(path))
    }
}

impl Bounds {
    fn hold(&self, entries: usize, bytes: u64) -> Result<(), Error> {
        if entries > self.entries {
            return Err(Error::TooLarge(format!(
                "the folder has more than {} entries; remove files that the skill does not need",
                self.entries
            )));
        }
        if bytes > self.bytes {
            let max = self.bytes / limits::MIB;
            return Err(Error::TooLarge(format!(
                "the folder holds more than {max} MiB; remove files that the skill does not need"
            )));
        }
        Ok(())
    }
}
