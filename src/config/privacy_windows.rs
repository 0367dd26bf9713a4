//! What makes folders and files private on Windows: the ACL that they inherit. In the user's profile, where the data folder is
//! by default, it lets in this user, the system and administrators. It is not checked: a data folder that the operator puts
//! elsewhere is the operator's to protect.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// Where the data folder is when nothing says otherwise; `None` for a user without a profile.
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

/// What is wrong with a folder, to be read after its path.
pub(super) fn check_folder(path: &Path) -> Result<(), String> {
    let metadata = fs::metadata(path).map_err(|error| format!("cannot be looked at ({error})"))?;
    if !metadata.is_dir() {
        return Err("is not a folder; set SKILLBOX_DATA_DIR to one".to_owned());
    }
    // No attribute says whether the ACL lets us write: only an attempt does.
    tempfile::tempfile_in(path)
        .map_err(|error| format!("cannot be written ({error}); set SKILLBOX_DATA_DIR to another folder"))?;
    Ok(())
}

pub(super) fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    options
}

pub(super) fn check_file(_path: &Path, _file: &File) -> io::Result<Result<(), String>> {
    Ok(Ok(()))
}

/// Nothing: Windows flushes no folders; NTFS has a journal for their names.
pub(super) fn sync_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}
