//! Private folders and files on Windows: the inherited ACL. In the user's profile, the default place, it admits this
//! user, the system and administrators. It is not checked: elsewhere the operator must protect the folder.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// Default data folder; `None` for a user without profile.
pub(super) fn default_path() -> Option<PathBuf> {
    let local = std::env::var_os("LOCALAPPDATA").map(PathBuf::from);
    local
        .filter(|local| local.is_absolute())
        .map(|local| local.join("skillbox"))
        .or_else(|| {
            std::env::home_dir()
                .filter(|home| home.is_absolute())
                .map(|home| home.join(".skillbox"))
        })
}

pub(super) fn make_folder(path: &Path) -> io::Result<()> {
    fs::create_dir(path)
}

/// The fault of a folder, as the end of a sentence.
pub(super) fn check_folder(path: &Path) -> Result<(), String> {
    let metadata = fs::metadata(path).map_err(|error| format!("cannot be examined ({error})"))?;
    if !metadata.is_dir() {
        return Err("is not a folder; set SKILLBOX_DATA_DIR to one".to_owned());
    }
    // Only an attempt shows whether the ACL permits writing.
    tempfile::tempfile_in(path)
        .map_err(|error| format!("cannot be written ({error}); set SKILLBOX_DATA_DIR to another folder"))?;
    Ok(())
}

pub(super) fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    options
}

/// Opens a file.
pub(super) fn open_to_check(path: &Path) -> io::Result<File> {
    File::open(path)
}

pub(super) fn check_file(_path: &Path, _file: &File) -> io::Result<Result<(), String>> {
    Ok(Ok(()))
}

/// Not needed: Windows flushes no folders; NTFS journals names.
pub(super) fn sync_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}

/// Links need a privilege here, and folders inherit their protection.
pub(super) fn doubts(_path: &Path) -> Vec<String> {
    Vec::new()
}
