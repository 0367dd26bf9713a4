//! `/workspace` for a script that is called as on its author's machine: the skill's files are there, to be read, written
//! and run, and what is new or changed at the end is its result.

use std::collections::HashMap;
use std::fs::{self, DirEntry, File, FileTimes, Metadata, Permissions};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::Stat;

use crate::guest::place::WORKSPACE;
use crate::limits;

/// What was there before the program was started.
#[derive(Debug, Default)]
pub(super) struct Before {
    /// Files and links by their path below `/workspace`.
    files: HashMap<String, Mark>,
    /// Bytes that may still be copied.
    room: u64,
    /// Names that may still be made.
    names: usize,
    /// The script that is called.
    called: Vec<PathBuf>,
}

/// Two files with the same mark are the same, unchanged.
#[derive(Debug, PartialEq, Eq)]
struct Mark {
    inode: u64,
    size: i64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// Files that were there are this much older than the program: clocks of file systems are coarse, and a change must show.
const OLDER: Duration = Duration::from_secs(2);

impl Before {
    /// Puts the skill's files beside those that came with the request, which win, and remembers all of them.
    pub(super) fn prepare(skill: Option<&str>, argv: &[String]) -> io::Result<Self> {
        let mut before = Self {
            room: limits::WORKSPACE_COPIES_BYTES_MAX,
            names: limits::WORKSPACE_NAMES_MAX,
            called: called(argv),
            ..Self::default()
        };
        if let Some(skill) = skill {
            before.bring(&Path::new("/skills").join(skill), Path::new(WORKSPACE))?;
        }
        let time = SystemTime::now() - OLDER;
        before.remember(Path::new(WORKSPACE), "", time)?;
        Ok(before)
    }

    /// The folder's tree with copies of small files, which a script may change, and links to all that is large, or that others
    /// execute: `/workspace` lets nothing be executed. The script that is called is a copy, too: it looks beside itself.
    fn bring(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            let (from, to) = (entry.path(), to.join(entry.file_name()));
            let metadata = entry.metadata()?;
            match fs::symlink_metadata(&to) {
                Ok(there) if metadata.is_dir() && there.is_dir() => self.bring(&from, &to)?,
                Ok(_) => {}
                Err(_) if self.names == 0 => return Ok(()),
                Err(_) => {
                    self.names -= 1;
                    self.bring_one(&from, &to, &metadata)?;
                }
            }
        }
        Ok(())
    }

    fn bring_one(&mut self, from: &Path, to: &Path, metadata: &Metadata) -> io::Result<()> {
        let executable = metadata.permissions().mode() & 0o111 != 0
            && !self.called.iter().any(|called| called == to)
            && is_program(from);
        let fits = metadata.len() <= limits::WORKSPACE_COPY_BYTES_MAX.min(self.room);
        if metadata.is_dir() {
            fs::create_dir(to)?;
            return self.bring(from, to);
        }
        if fits && !executable && fs::copy(from, to).is_ok() {
            self.room -= metadata.len();
            return fs::set_permissions(to, Permissions::from_mode(0o644));
        }
        // A workspace that is too small for copies may hold half of one.
        let _ = fs::remove_file(to);
        symlink(from, to)
    }

    fn remember(&mut self, folder: &Path, path: &str, time: SystemTime) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let path = below(path, &entry);
            let kind = entry.file_type()?;
            if kind.is_dir() {
                self.remember(&entry.path(), &path, time)?;
                continue;
            }
            if kind.is_file() {
                let file = File::options().write(true).open(entry.path())?;
                file.set_times(FileTimes::new().set_modified(time))?;
            }
            self.files.insert(path, Mark::of(&entry.metadata()?));
        }
        Ok(())
    }

    /// Whether there was a link of ours at `path`. Whatever is a link there now is not handed back in any case.
    pub(super) fn is_own_link(&self, path: &str) -> bool {
        self.files.contains_key(path)
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

impl Mark {
    fn of(metadata: &Metadata) -> Self {
        Self {
            inode: metadata.ino(),
            size: metadata.len().try_into().unwrap_or(i64::MAX),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

/// Where the script that `argv` runs by its path, or as a module, can lie.
fn called(argv: &[String]) -> Vec<PathBuf> {
    match argv {
        [_, option, module, ..] if option == "-m" => {
            let stem = Path::new(WORKSPACE).join(module.replace('.', "/"));
            vec![stem.with_extension("py"), stem.join("__main__.py")]
        }
        [_, path, ..] => vec![PathBuf::from(path)],
        _ => Vec::new(),
    }
}

/// Whether the kernel could execute the file: on some disks everything is marked as executable.
fn is_program(path: &Path) -> bool {
    let mut head = [0; 4];
    let read = File::open(path).and_then(|mut file| file.read(&mut head));
    read.is_ok() && (head.starts_with(b"#!") || head == *b"\x7fELF")
}

/// What programs keep in their home folder without being asked.
const OF_PROGRAMS: [&str; 14] = [
    ".bash_history",
    ".cache",
    ".config",
    ".fontconfig",
    ".ipython",
    ".java",
    ".jupyter",
    ".lesshst",
    ".local",
    ".matplotlib",
    ".node_repl_history",
    ".npm",
    ".pki",
    ".python_history",
];

/// What programs keep for themselves in their home folder, and what Python leaves beside its sources.
pub(super) fn is_private(folder: &str, name: &str) -> bool {
    (folder.is_empty() && OF_PROGRAMS.contains(&name)) || name == "__pycache__"
}

fn nanoseconds(value: impl TryInto<i64>) -> i64 {
    value.try_into().unwrap_or_default()
}

/// The path of an entry of `folder`. Names of skills and of input files are UTF-8.
fn below(folder: &str, entry: &DirEntry) -> String {
    let name = entry.file_name();
    let name = name.to_string_lossy();
    if folder.is_empty() {
        name.into_owned()
    } else {
        format!("{folder}/{name}")
    }
}
