//! Files of a tenant's package sets by the digest of their content: a file that several sets contain takes space once.
//!
//! Each is a hard link to the file in the sets. All files of packages have the same owner, mode and time, so a program sees
//! no difference. They are never shared by tenants: through one inode programs could signal each other (file events, locks).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::bundle::{self, Listing};
use crate::ids::Digest;
use crate::limits;

/// Name of a link that is about to replace a file. A set with a file of this name is not linked.
const NEW_LINK: &str = "~skillbox-link";

/// Blocking.
#[derive(Debug)]
pub(super) struct LinkedFiles {
    root: PathBuf,
}

impl LinkedFiles {
    pub(super) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// Replaces files of an unpacked set by known ones of the same content.
    pub(super) fn reuse(&self, folder: &Path, listing: &Listing) -> io::Result<()> {
        let new_link = folder.join(NEW_LINK);
        for entry in listing.entries().iter().filter(|entry| entry.size > 0) {
            // Absent, of a file system without links, or with all links that the file system allows.
            if fs::hard_link(self.path(&entry.sha256), &new_link).is_ok() {
                let path = folder.join(&entry.path);
                // A power failure may have truncated the known file.
                if fs::metadata(&new_link)?.len() == entry.size {
                    fs::rename(&new_link, &path)?;
                } else {
                    fs::remove_file(self.path(&entry.sha256))?;
                    fs::remove_file(&new_link)?;
                }
            }
        }
        bundle::settle_folders(folder, listing)
    }

    /// Makes the files of a set known. They have to be on disk.
    pub(super) fn add(&self, folder: &Path, listing: &Listing) -> io::Result<()> {
        for entry in listing.entries().iter().filter(|entry| entry.size > 0) {
            let path = self.path(&entry.sha256);
            let linked = fs::hard_link(folder.join(&entry.path), &path);
            match linked.map_err(|error| error.kind()) {
                Err(io::ErrorKind::NotFound) => {
                    fs::create_dir_all(path.parent().unwrap_or(&self.root))?;
                    fs::hard_link(folder.join(&entry.path), &path)?;
                }
                Err(io::ErrorKind::Unsupported | io::ErrorKind::PermissionDenied) => return Ok(()),
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// Removes files that no set contains, at most once in [`limits::SKILL_USED_MAX`].
    pub(super) fn sweep(&self) -> io::Result<()> {
        let Ok(root) = super::cache::open_folder(&self.root) else {
            return Ok(());
        };
        let swept = root.metadata()?.modified()?;
        if swept.elapsed().is_ok_and(|ago| ago < limits::SKILL_USED_MAX) {
            return Ok(());
        }
        for part in fs::read_dir(&self.root)? {
            for file in fs::read_dir(part?.path())? {
                let file = file?;
                if links(&file.metadata()?) == 1 {
                    super::cache::ignore_missing(fs::remove_file(file.path()))?;
                }
            }
        }
        root.set_modified(std::time::SystemTime::now())
    }

    fn path(&self, digest: &Digest) -> PathBuf {
        let hex = digest.hex();
        self.root.join(&hex[..2]).join(hex)
    }
}

#[cfg(unix)]
fn links(file: &fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::nlink(file)
}

/// Unknown: files stay.
#[cfg(not(unix))]
fn links(_file: &fs::Metadata) -> u64 {
    u64::MAX
}
