//! Disk space that is given up when the disk is full, so that rows can still be deleted: a transaction that deletes
//! writes to the log first.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::limits;

/// A file beside the database, which other processes with this database share.
#[derive(Debug)]
pub(super) struct Reserve(PathBuf);

impl Reserve {
    pub(super) fn beside(database: &Path) -> Self {
        let mut name = database.as_os_str().to_owned();
        name.push("-reserve");
        Self(name.into())
    }

    /// Creates it if it does not exist. On a full disk nothing is left.
    pub(super) fn keep(&self) -> io::Result<()> {
        let mut file = match File::create_new(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
            created => created?,
        };
        // Blocks, not a hole.
        let written = file.write_all(&vec![0; limits::STORE_RESERVE_BYTES]);
        if written.is_err() {
            self.give_up();
        }
        written
    }

    /// Whether it was there.
    pub(super) fn give_up(&self) -> bool {
        fs::remove_file(&self.0).is_ok()
    }
}
