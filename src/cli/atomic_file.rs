//! Writes a received file inside a folder: opens each folder of its path separately and never through a link (O-14).

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, openat, renameat, unlinkat};
use rustix::io::Errno;

use crate::ids::ExecutionId;

/// The open target folder. The path to it may contain links.
pub(super) struct TargetFolder(OwnedFd);

impl TargetFolder {
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        Ok(Self(openat(rustix::fs::CWD, folder, flags, Mode::empty())?))
    }
}

/// A file under a temporary name in its folder; removed on drop unless committed.
pub(super) struct AtomicFile {
    folder: OwnedFd,
    temporary: String,
    name: String,
    pub(super) file: File,
    kept: bool,
}

impl AtomicFile {
    /// Creates missing folders and the file. `path` is plain and relative.
    pub(super) fn create(root: &TargetFolder, path: &str) -> io::Result<Self> {
        let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
        let mut folder = root.0.try_clone().map_err(|_| Errno::MFILE)?;
        for part in folders.split('/').filter(|part| !part.is_empty()) {
            folder = enter(&folder, part)?;
        }
        let temporary = format!(".skillbox-{}", ExecutionId::generate());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&folder, &temporary, flags, Mode::from_raw_mode(0o644))?;
        Ok(Self {
            folder,
            temporary,
            name: name.to_owned(),
            file: file.into(),
            kept: false,
        })
    }

    /// Renames the file. Replaces a link of that name instead of following it.
    pub(super) fn commit(mut self) -> io::Result<()> {
        renameat(&self.folder, &self.temporary, &self.folder, &self.name)?;
        self.kept = true;
        Ok(())
    }
}

/// Opens a folder, creating it if missing. A link in its place is an error.
fn enter(above: &OwnedFd, name: &str) -> Result<OwnedFd, Errno> {
    match mkdirat(above, name, Mode::from_raw_mode(0o755)) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error),
    }
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
    openat(above, name, flags, Mode::empty())
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if !self.kept {
            let _ = unlinkat(&self.folder, &self.temporary, AtFlags::empty());
        }
    }
}
