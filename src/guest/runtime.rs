//! `/sandbox/runtime`: our modules for programs, and the pipe for log lines.
//!
//! A blank process writes the modules in advance; otherwise they are written before the program starts.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, OFlags};
use tokio::net::unix::pipe;

use crate::limits;

const SKILLS: &str = "/skills";
const FOLDER: &str = "/sandbox/runtime";
/// Pipe for log lines of programs.
const LOG: &str = "/sandbox/log";

/// All folders by their path below [`FOLDER`], itself first.
const FOLDERS: [&str; 9] = [
    "",
    "_skillbox",
    "bin",
    "followed",
    "node_modules",
    "node_modules/runtime",
    "runtime",
    "skills",
    "warm",
];

/// All files by their path below [`FOLDER`].
const FILES: &[(&str, &str)] = &[
    ("_skillbox/__init__.py", ""),
    ("_skillbox/ahead.py", include_str!("runtime/ahead.py")),
    ("_skillbox/main.py", include_str!("runtime/main.py")),
    ("_skillbox/module.py", include_str!("runtime/module.py")),
    ("_skillbox/calls.py", include_str!("runtime/calls.py")),
    ("_skillbox/failures.py", include_str!("runtime/failures.py")),
    ("_skillbox/results.py", include_str!("runtime/results.py")),
    ("_skillbox/figures.py", include_str!("runtime/figures.py")),
    ("_skillbox/ipython.py", include_str!("runtime/ipython.py")),
    ("_skillbox/main.mjs", include_str!("runtime/main.mjs")),
    ("_skillbox/adapted.mjs", include_str!("runtime/adapted.mjs")),
    ("_skillbox/resolve.mjs", include_str!("runtime/resolve.mjs")),
    ("followed/sitecustomize.py", include_str!("runtime/followed.py")),
    (
        "node_modules/runtime/index.js",
        include_str!("runtime/runtime.cjs"),
    ),
    ("runtime/__init__.py", include_str!("runtime/runtime.py")),
    ("runtime/blobs.py", include_str!("runtime/blobs.py")),
    ("runtime/log.py", include_str!("runtime/log.py")),
    ("skills/__init__.py", include_str!("runtime/skills.py")),
    ("warm/sitecustomize.py", include_str!("runtime/sitecustomize.py")),
    ("warm/wait.cjs", include_str!("runtime/wait.cjs")),
];

/// Lets Node's `import` and `require` find the modules of mounted skills: `skills/salesforce/leads/sync` is
/// `code/sync.mjs` of `salesforce.leads`. A package that exports each of its modules needs no loader.
fn write_skills() -> io::Result<()> {
    let mut exports = serde_json::Map::new();
    for skill in names_in(Path::new(SKILLS)) {
        let imported = skill.replace('.', "/");
        for inner in ["code", "scripts"] {
            let spellings = [imported.clone(), imported.replace('-', "_")];
            for file in names_in(&Path::new(SKILLS).join(&skill).join(inner)) {
                let Some(stem) = ["mjs", "js", "cjs"]
                    .into_iter()
                    .find_map(|extension| file.strip_suffix(extension)?.strip_suffix('.'))
                else {
                    continue;
                };
                for spelling in &spellings {
                    // The first one found is used: `code/` before `scripts/`.
                    exports
                        .entry(format!("./{spelling}/{stem}"))
                        .or_insert_with(|| format!("./all/{skill}/{inner}/{file}").into());
                    exports
                        .entry(format!("./{spelling}/*"))
                        .or_insert_with(|| format!("./all/{skill}/{inner}/*").into());
                }
            }
        }
    }
    if exports.is_empty() {
        return Ok(());
    }
    let package = Path::new(FOLDER).join("node_modules/skills");
    fs::create_dir(&package)?;
    symlink(SKILLS, package.join("all"))?;
    let text = serde_json::json!({ "name": "skills", "exports": exports }).to_string();
    fs::write(package.join("package.json"), text)
}

/// Folders with interpreters.
const PROGRAMS: [&str; 3] = ["/usr/local/bin", "/usr/bin", "/bin"];

/// Scripts call `python`, but Debian only has `python3`. The folder is last on the path of programs.
fn write_python() -> io::Result<()> {
    let find = |name: &str| {
        let places = PROGRAMS.iter().map(|folder| Path::new(folder).join(name));
        places.into_iter().find(|place| place.exists())
    };
    let (None, Some(python)) = (find("python"), find("python3")) else {
        return Ok(());
    };
    symlink(python, Path::new(FOLDER).join("bin/python"))
}

/// The UTF-8 names in a folder, sorted; empty if the folder does not exist.
fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .take(limits::ARCHIVE_ENTRIES_MAX)
        .collect();
    names.sort_unstable();
    names
}

/// Writes the modules that are the same for every program.
pub(super) fn write_modules() -> io::Result<()> {
    let mut private = DirBuilder::new();
    private.mode(0o700);
    for folder in FOLDERS {
        private.create(Path::new(FOLDER).join(folder))?;
    }
    for (path, text) in FILES {
        let mut new = OpenOptions::new();
        new.write(true).create_new(true).mode(0o400);
        new.open(Path::new(FOLDER).join(path))?
            .write_all(text.as_bytes())?;
    }
    Ok(())
}

/// Completes the folder and makes it read-only, because it is on Python's path.
pub(super) fn write() -> io::Result<()> {
    if !Path::new(FOLDER).exists() {
        write_modules()?;
    }
    // Not in a blank process, which has no programs of the host yet.
    write_python()?;
    write_skills()?;
    for folder in FOLDERS {
        fs::set_permissions(Path::new(FOLDER).join(folder), Permissions::from_mode(0o500))?;
    }
    Ok(())
}

/// Both ends of the pipe for log lines.
#[derive(Debug)]
pub(super) struct Log {
    pub(super) reader: pipe::Receiver,
    /// Keeps the pipe open until the program has ended.
    pub(super) writer: OwnedFd,
}

impl Log {
    /// Creates the pipe. It has a name, so that a program in any language writes to it as to a file. Later changes of
    /// the name have no effect on us.
    pub(super) fn open() -> io::Result<Self> {
        rustix::fs::mknodat(CWD, LOG, FileType::Fifo, Mode::from_raw_mode(0o600), 0)?;
        let flags = OFlags::CLOEXEC | OFlags::NONBLOCK;
        let reader = rustix::fs::open(LOG, OFlags::RDONLY | flags, Mode::empty())?;
        let writer = rustix::fs::open(LOG, OFlags::WRONLY | flags, Mode::empty())?;
        Ok(Self {
            reader: pipe::Receiver::from_file(File::from(reader))?,
            writer,
        })
    }
}
