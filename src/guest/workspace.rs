//! The workspace of a script, as on its author's machine: `/workspace` and the script's folder have copies of the
//! skill's files. New and changed files in either are results.

use std::collections::HashMap;
use std::fs::{self, DirEntry, File, FileTimes, Metadata, Permissions};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::Stat;

use crate::guest::layout::WORKSPACE;
use crate::limits;

/// The files before the program was started.
#[derive(Debug)]
pub(super) struct WorkspaceSnapshot {
    pub(super) trees: Vec<Tree>,
}

#[derive(Debug)]
pub(super) struct Tree {
    pub(super) root: PathBuf,
    /// Files and links by their path.
    files: HashMap<String, FileStamp>,
}

/// A file with an equal stamp is unchanged.
#[derive(Debug, PartialEq, Eq)]
struct FileStamp {
    inode: u64,
    size: i64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// The copy of the skill from which scripts are run. As deep as in the products that they are written for, because
/// many scripts count their folder's parents.
const SCRIPTS_COPY: &str = "/sandbox/skills/public";

/// Existing files are dated back by this much: clocks of file systems are coarse, and a change must be visible.
const MTIME_MARGIN: Duration = Duration::from_secs(2);

/// What `/workspace` contains of the skill.
#[derive(Clone, Copy, Debug)]
pub(super) enum WorkspaceContent<'a> {
    Skill,
    /// The files and folders that one of these arguments names.
    Named(&'a [String]),
}

impl WorkspaceSnapshot {
    /// Places the skill's files next to those of the request, which take precedence, copies all of them to the folder
    /// from which scripts are run, and records them.
    pub(super) fn prepare(
        skill: Option<&str>,
        argv: &[String],
        content: WorkspaceContent<'_>,
    ) -> io::Result<Self> {
        let mut roots = vec![PathBuf::from(WORKSPACE)];
        if let Some(skill) = skill {
            let (from, deep) = (
                Path::new("/skills").join(skill),
                Path::new(SCRIPTS_COPY).join(skill),
            );
            fs::create_dir_all(&deep)?;
            let mut copies = Copies {
                bytes: limits::WORKSPACE_COPIES_BYTES_MAX,
                names: limits::WORKSPACE_NAMES_MAX,
                called: called(argv, &deep).map(|path| from.join(path)).collect(),
            };
            match content {
                WorkspaceContent::Skill => copies.copy_tree(&from, &roots[0])?,
                WorkspaceContent::Named(args) => {
                    for path in args.iter().filter_map(|arg| plain_path(arg)) {
                        copies.copy_named(&from, &roots[0], &path)?;
                    }
                }
            }
            let mut scripts = Copies {
                called: std::mem::take(&mut copies.called),
                ..Copies::within(&deep)?
            };
            scripts.copy_tree(&roots[0], &deep)?;
            if let WorkspaceContent::Named(_) = content {
                scripts.copy_tree(&from, &deep)?;
            }
            roots.push(deep);
        }
        let time = SystemTime::now() - MTIME_MARGIN;
        let trees = roots.into_iter().map(|root| Tree::record(root, time));
        Ok(Self {
            trees: trees.collect::<io::Result<_>>()?,
        })
    }
}

/// Remaining limits on copies.
struct Copies {
    bytes: u64,
    /// Remaining names.
    names: usize,
    /// Possible paths of the script.
    called: Vec<PathBuf>,
}

impl Copies {
    /// At most what the file system of `folder` can hold in addition to the program's files.
    fn within(folder: &Path) -> io::Result<Self> {
        let room = rustix::fs::statvfs(folder)?;
        // Some kernels do not count names.
        let names = if room.f_files == 0 {
            u64::MAX
        } else {
            room.f_favail / 4 * 3
        };
        let names = usize::try_from(names).unwrap_or(usize::MAX);
        Ok(Self {
            bytes: limits::WORKSPACE_COPIES_BYTES_MAX.min(room.f_bavail.saturating_mul(room.f_frsize) / 2),
            names: limits::WORKSPACE_NAMES_MAX.min(names),
            called: Vec::new(),
        })
    }

    /// Recreates the folder's tree: copies of small files, which a script may change, and links to large and
    /// executable ones, since nothing writable can be executed. The script itself is a copy, because it looks for
    /// files next to itself.
    fn copy_tree(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            let (from, to) = (entry.path(), to.join(entry.file_name()));
            let metadata = entry.metadata()?;
            match fs::symlink_metadata(&to) {
                Ok(there) if metadata.is_dir() && there.is_dir() => self.copy_tree(&from, &to)?,
                Ok(_) => {}
                Err(_) if self.names == 0 => return Ok(()),
                Err(_) => {
                    self.names -= 1;
                    self.copy_entry(&from, &to, &metadata)?;
                }
            }
        }
        Ok(())
    }

    /// Copies the file or folder at `path` in `from`. A path of the request's own is left as it is.
    fn copy_named(&mut self, from: &Path, to: &Path, path: &Path) -> io::Result<()> {
        let (from, to) = (from.join(path), to.join(path));
        let Ok(metadata) = fs::symlink_metadata(&from) else {
            return Ok(());
        };
        let has_parent = to
            .parent()
            .is_none_or(|parent| fs::create_dir_all(parent).is_ok());
        if self.names == 0 || !has_parent || fs::symlink_metadata(&to).is_ok() {
            return Ok(());
        }
        self.names -= 1;
        self.copy_entry(&from, &to, &metadata)
    }

    fn copy_entry(&mut self, from: &Path, to: &Path, metadata: &Metadata) -> io::Result<()> {
        if metadata.is_dir() {
            fs::create_dir(to)?;
            return self.copy_tree(from, to);
        }
        if metadata.is_symlink() {
            return symlink(fs::read_link(from)?, to);
        }
        let executable = metadata.permissions().mode() & 0o111 != 0
            && !self.called.iter().any(|called| called == from)
            && is_program(from);
        // In memory a file takes whole pages.
        let room = metadata.len().next_multiple_of(PAGE);
        let fits = metadata.len() <= limits::WORKSPACE_COPY_BYTES_MAX && room <= self.bytes;
        if fits && !executable && fs::copy(from, to).is_ok() {
            self.bytes -= room;
            return fs::set_permissions(to, Permissions::from_mode(0o644));
        }
        // A file system that is too small for copies may use half of its space for them.
        let _ = fs::remove_file(to);
        symlink(from, to)
    }
}

impl Tree {
    fn record(root: PathBuf, time: SystemTime) -> io::Result<Self> {
        let mut tree = Self {
            root,
            files: HashMap::new(),
        };
        tree.record_folder(&tree.root.clone(), "", time)?;
        Ok(tree)
    }

    fn record_folder(&mut self, folder: &Path, path: &str, time: SystemTime) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let path = below(path, &entry);
            let kind = entry.file_type()?;
            if kind.is_dir() {
                self.record_folder(&entry.path(), &path, time)?;
                continue;
            }
            if kind.is_file() {
                let file = File::options().write(true).open(entry.path())?;
                file.set_times(FileTimes::new().set_modified(time))?;
            }
            self.files.insert(path, FileStamp::of(&entry.metadata()?));
        }
        Ok(())
    }

    /// Whether our link was at `path`. A link that is there now is never collected.
    pub(super) fn is_own_link(&self, path: &str) -> bool {
        self.files.contains_key(path)
    }

    /// Whether the file at `path` is unchanged.
    pub(super) fn is_unchanged(&self, path: &str, stat: &Stat) -> bool {
        let now = FileStamp {
            inode: stat.st_ino,
            size: stat.st_size,
            modified: (stat.st_mtime, nanoseconds(stat.st_mtime_nsec)),
            changed: (stat.st_ctime, nanoseconds(stat.st_ctime_nsec)),
        };
        self.files.get(path) == Some(&now)
    }
}

impl FileStamp {
    fn of(metadata: &Metadata) -> Self {
        Self {
            inode: metadata.ino(),
            size: metadata.len().try_into().unwrap_or(i64::MAX),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

/// The script in `argv`, below its skill's folder: the program, or the module that the shim runs.
fn called<'a>(argv: &'a [String], deep: &'a Path) -> impl Iterator<Item = &'a Path> {
    let programs = argv.iter().skip(1).take(2);
    programs.filter_map(move |path| Path::new(path).strip_prefix(deep).ok())
}

/// A relative path in an argument: `assets/a.json`, `./assets/`.
fn plain_path(arg: &str) -> Option<PathBuf> {
    let mut parts = Path::new(arg)
        .components()
        .filter(|part| *part != Component::CurDir)
        .peekable();
    parts.peek()?;
    parts
        .map(|part| matches!(part, Component::Normal(_)).then_some(part))
        .collect()
}

/// The unit of a file in memory.
const PAGE: u64 = 4096;

/// Whether the kernel could execute the file: on some disks everything is marked as executable.
fn is_program(path: &Path) -> bool {
    let mut head = [0; 4];
    let read = File::open(path).and_then(|mut file| file.read(&mut head));
    read.is_ok() && (head.starts_with(b"#!") || head == *b"\x7fELF")
}

/// State that programs save in their home folder on their own.
const PROGRAM_STATE: [&str; 14] = [
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

/// Saved state of programs, and Python's bytecode.
pub(super) fn is_private(folder: &str, name: &str) -> bool {
    (folder.is_empty() && PROGRAM_STATE.contains(&name)) || name == "__pycache__"
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_paths_in_whole_arguments() {
        for (arg, path) in [
            ("a.json", "a.json"),
            ("./assets/a.json", "assets/a.json"),
            ("assets/", "assets"),
            ("a/./b", "a/b"),
        ] {
            assert_eq!(plain_path(arg).as_deref(), Some(Path::new(path)), "{arg}");
        }
        for arg in ["", ".", "./", "/etc/passwd", "../a", "a/../b"] {
            assert_eq!(plain_path(arg), None, "{arg}");
        }
    }
}
