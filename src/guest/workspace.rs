//! `/workspace` for a script that is called as on its author's machine: the skill's folders are seen in it, and what it
//! leaves there is its result.

use std::collections::{HashMap, HashSet};
use std::fs::{self, DirEntry, File, FileTimes};
use std::io;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::fs::Stat;

use crate::guest::place::WORKSPACE;

/// What was there before the program was started.
#[derive(Debug, Default)]
pub(super) struct Before {
    /// Files by their path below `/workspace`.
    files: HashMap<String, Mark>,
    /// Links of ours to folders of the skill.
    links: HashSet<String>,
}

/// Two files with the same mark are the same, unchanged.
#[derive(Debug, PartialEq, Eq)]
struct Mark {
    inode: u64,
    size: i64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// Placed files are this much older than the program: clocks of file systems are coarse, and a change must show.
const OLDER: Duration = Duration::from_secs(2);

impl Before {
    /// Remembers what is there, and makes the skill's folders seen where no file was placed under their name.
    pub(super) fn prepare(skill: Option<&str>) -> io::Result<Self> {
        let mut before = Self::default();
        let time = SystemTime::now() - OLDER;
        before.remember(Path::new(WORKSPACE), "", time)?;
        if let Some(skill) = skill {
            before.show(&Path::new("/skills").join(skill))?;
        }
        Ok(before)
    }

    fn remember(&mut self, folder: &Path, path: &str, time: SystemTime) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let Some(path) = below(path, &entry) else { continue };
            if entry.file_type()?.is_dir() {
                self.remember(&entry.path(), &path, time)?;
            } else {
                let file = File::options().write(true).open(entry.path())?;
                file.set_times(FileTimes::new().set_modified(time))?;
                let metadata = file.metadata()?;
                let mark = Mark {
                    inode: metadata.ino(),
                    size: metadata.len().try_into().unwrap_or(i64::MAX),
                    modified: (metadata.mtime(), metadata.mtime_nsec()),
                    changed: (metadata.ctime(), metadata.ctime_nsec()),
                };
                self.files.insert(path, mark);
            }
        }
        Ok(())
    }

    /// `assets/logo.png` and `scripts/main.py` then mean the same as in the skill's own folder.
    fn show(&mut self, skill: &Path) -> io::Result<()> {
        for entry in fs::read_dir(skill)? {
            let entry = entry?;
            let Some(name) = below("", &entry).filter(|name| !name.starts_with('.')) else {
                continue;
            };
            let link = Path::new(WORKSPACE).join(&name);
            if entry.file_type()?.is_dir() && fs::symlink_metadata(&link).is_err() {
                symlink(entry.path(), link)?;
                self.links.insert(name);
            }
        }
        Ok(())
    }

    /// Whether a link at `path` is ours.
    pub(super) fn is_own_link(&self, path: &str) -> bool {
        self.links.contains(path)
    }

    /// Whether the file at `path` is as it was.
    pub(super) fn is_unchanged(&self, path: &str, stat: &Stat) -> bool {
        let now = Mark {
            inode: stat.st_ino,
            size: stat.st_size,
            modified: (stat.st_mtime, nanoseconds(stat.st_mtime_nsec)),
            changed: (stat.st_ctime, nanoseconds(stat.st_ctime_nsec)),
        };
        self.files.get(path) == Some(&now)
    }
}

/// What programs keep for themselves in their home folder, and what Python leaves beside its sources.
pub(super) fn is_private(folder: &str, name: &str) -> bool {
    (folder.is_empty() && name.starts_with('.')) || name == "__pycache__"
}

fn nanoseconds(value: impl TryInto<i64>) -> i64 {
    value.try_into().unwrap_or_default()
}

/// The path of an entry of `folder`; input files have names in UTF-8.
fn below(folder: &str, entry: &DirEntry) -> Option<String> {
    let name = entry.file_name().into_string().ok()?;
    Some(if folder.is_empty() {
        name
    } else {
        format!("{folder}/{name}")
    })
}
