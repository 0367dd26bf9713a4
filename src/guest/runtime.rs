//! `/sandbox/runtime`: our own modules for programs, and the pipe that takes what they log.
//!
//! The modules are written before every program: a few small files, which cost nothing that can be measured.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, OFlags};
use tokio::net::unix::pipe;

const FOLDER: &str = "/sandbox/runtime";
/// What a program writes its log lines to.
const LOG: &str = "/sandbox/log";

/// Every file by its path below [`FOLDER`].
const FILES: &[(&str, &str)] = &[
    ("_skillbox/__init__.py", ""),
    ("_skillbox/__main__.py", include_str!("runtime/main.py")),
    ("_skillbox/calls.py", include_str!("runtime/calls.py")),
    ("_skillbox/results.py", include_str!("runtime/results.py")),
    ("_skillbox/figures.py", include_str!("runtime/figures.py")),
    ("_skillbox/ipython.py", include_str!("runtime/ipython.py")),
    ("runtime/__init__.py", include_str!("runtime/runtime.py")),
    ("runtime/blobs.py", include_str!("runtime/blobs.py")),
    ("runtime/log.py", include_str!("runtime/log.py")),
    ("skills/__init__.py", include_str!("runtime/skills.py")),
];

/// Writes the modules. Nobody writes there again: what lies on Python's path must not be a place to leave things.
pub(super) fn write() -> io::Result<()> {
    let mut private = DirBuilder::new();
    private.mode(0o700).recursive(true);
    let mut folders = vec![Path::new(FOLDER).to_owned()];
    for (path, text) in FILES {
        let path = Path::new(FOLDER).join(path);
        if let Some(folder) = path.parent()
            && !folders.iter().any(|made| made == folder)
        {
            private.create(folder)?;
            folders.push(folder.to_owned());
        }
        let mut new = OpenOptions::new();
        new.write(true).create_new(true).mode(0o400);
        new.open(path)?.write_all(text.as_bytes())?;
    }
    for folder in folders {
        fs::set_permissions(folder, Permissions::from_mode(0o500))?;
    }
    Ok(())
}

/// Both ends of the pipe for log lines.
#[derive(Debug)]
pub(super) struct Log {
    pub(super) reader: pipe::Receiver,
    /// While this is open the reader sees no end, whoever else writes.
    pub(super) writer: OwnedFd,
}

impl Log {
    /// Makes the pipe. It has a name, so that a program in any language writes to it as to a file; what becomes of the
    /// name later is nothing to us.
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
