//! Private folders and files on Unix: owner and permission bits.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Default data folder; `None` for a user without home.
pub(super) fn default_path() -> Option<PathBuf> {
    if rustix::process::geteuid().is_root() {
        return Some(PathBuf::from("/var/lib/skillbox"));
    }
    let base = std::env::var_os("XDG_DATA_HOME")
        .map(PathBuf::from)
        .filter(|base| base.is_absolute());
    base.map(|base| base.join("skillbox")).or_else(|| {
        std::env::home_dir()
            .filter(|home| home.is_absolute())
            .map(|home| home.join(".skillbox"))
    })
}

/// Creates a folder for this user only.
pub(super) fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

/// The fault of a folder, as the end of a sentence: owned or writable by others, or not writable for us.
pub(super) fn check_folder(path: &Path) -> Result<(), String> {
    let metadata = fs::metadata(path).map_err(|error| format!("cannot be examined ({error})"))?;
    let user = rustix::process::geteuid().as_raw();
    if !metadata.is_dir() {
        return Err("is not a folder; set SKILLBOX_DATA_DIR to one".to_owned());
    }
    if metadata.uid() != user {
        let owner = metadata.uid();
        return Err(format!(
            "belongs to user {owner}, not to {user}; run as that user or set SKILLBOX_DATA_DIR"
        ));
    }
    if metadata.mode() & 0o022 != 0 {
        return Err(format!(
            "can be written by others; run `chmod 700 {}`",
            path.display()
        ));
    }
    if rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_err() {
        return Err("cannot be written; set SKILLBOX_DATA_DIR to another folder".to_owned());
    }
    Ok(())
}

/// What makes a folder doubtful although it is private: others decide what its path leads to.
pub(super) fn doubts(path: &Path) -> Vec<String> {
    let mut doubts = Vec::new();
    if fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink()) {
        doubts.push(
            "is a link; name the folder that it leads to, so that a changed link does not change the data"
                .to_owned(),
        );
    }
    let parent = path.parent().map(fs::metadata).and_then(Result::ok);
    // With the sticky bit, as of /tmp, others cannot rename what is ours.
    if let Some(parent) = parent
        && parent.mode() & 0o002 != 0
        && parent.mode() & 0o1000 == 0
    {
        doubts.push(
            "lies in a folder that everybody can write to, who can replace it; choose another parent folder"
                .to_owned(),
        );
    }
    doubts
}

/// Options for writing a file for this user only.
pub(super) fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600);
    options
}

/// Opens a file without waiting: a FIFO has no end to wait for. [`check_file`] then rejects it.
pub(super) fn open_to_check(path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NONBLOCK.bits();
    OpenOptions::new()
        .read(true)
        .custom_flags(i32::try_from(flags).unwrap_or(0))
        .open(path)
}

/// Why a secret file is rejected: other users could read it.
pub(super) fn check_file(path: &Path, file: &File) -> io::Result<Result<(), String>> {
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Ok(Err("is not a regular file; move it away".to_owned()));
    }
    let user = rustix::process::geteuid();
    // Root may read the folder of a service with a user of its own.
    let own = metadata.uid() == user.as_raw() || user.is_root();
    if own && metadata.mode() & 0o077 == 0 {
        return Ok(Ok(()));
    }
    Ok(Err(format!(
        "must belong to user {} and be private; run `chmod 600 {}`",
        user.as_raw(),
        path.display()
    )))
}

/// Syncs the names in a folder.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder).and_then(|folder| folder.sync_all())
}
