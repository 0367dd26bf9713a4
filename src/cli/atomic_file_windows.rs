//! Writes a received file inside a folder on Windows, by path. Existing links and junctions are not followed; a
//! process that can create one meanwhile can write to the folder anyway.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::ids::ExecutionId;

/// The target folder. The path to it may contain links.
pub(super) struct TargetFolder(PathBuf);

impl TargetFolder {
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        // Literal from here on, and of any length.
        fs::canonicalize(folder).map(Self)
    }
}

/// A file under a temporary name in its folder; removed on drop unless committed.
pub(super) struct AtomicFile {
    temporary: PathBuf,
    path: PathBuf,
    pub(super) file: File,
    kept: bool,
}

impl AtomicFile {
    /// Creates missing folders and the file. `path` is plain and relative, and each part is a name that Windows
    /// keeps.
    pub(super) fn create(root: &TargetFolder, path: &str) -> io::Result<Self> {
        let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
        let mut folder = root.0.clone();
        for part in folders.split('/').filter(|part| !part.is_empty()) {
            folder.push(part);
            enter(&folder)?;
        }
        let temporary = folder.join(format!(".skillbox-{}", ExecutionId::generate()));
        Ok(Self {
            file: File::create_new(&temporary)?,
            path: folder.join(name),
            temporary,
            kept: false,
        })
    }

    /// Renames the file. Replaces a link of that name instead of following it.
    pub(super) fn commit(mut self) -> io::Result<()> {
        fs::rename(&self.temporary, &self.path)?;
        self.kept = true;
        Ok(())
    }
}

/// Creates a missing folder. A link or a junction in its place is rejected.
fn enter(folder: &Path) -> io::Result<()> {
    match fs::create_dir(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Ok(()) | Err(_) => {}
    }
    if fs::symlink_metadata(folder)?.is_dir() {
        Ok(())
    } else {
        Err(io::ErrorKind::NotADirectory.into())
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if !self.kept {
            let _ = fs::remove_file(&self.temporary);
        }
    }
}
