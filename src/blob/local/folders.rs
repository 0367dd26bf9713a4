//! The folders and files of the local backend. Each folder of a path is opened on its own, never through a link.

use std::fs::{DirBuilder, File};
use std::io::{self, Seek as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::str::FromStr;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, Dir, FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::blob::Key;
use crate::limits;

/// No tenant has this name: tenant names have no dot.
const TEMPORARIES: &str = ".tmp";

/// Other calls delete a folder whenever they have emptied it, so a new folder may vanish this often.
const PLACE_ATTEMPTS: usize = 100;

const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// The root, and in it a folder for incomplete objects.
#[derive(Debug)]
pub(super) struct Folders {
    root: OwnedFd,
    lock_wait_max: Duration,
}

impl Folders {
    /// Creates missing folders and rejects those that others may write to.
    pub(super) fn open(root: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(root)?;
        // The operator may give the root through a link; below it there are none.
        let root = rustix::fs::open(root, FOLDER.difference(OFlags::NOFOLLOW), Mode::empty())?;
        refuse_foreign(&root)?;
        make_folder(&root, TEMPORARIES)?;
        let temporaries = rustix::fs::openat(&root, TEMPORARIES, FOLDER, Mode::empty())?;
        refuse_foreign(&temporaries)?;
        Ok(Self {
            root,
            lock_wait_max: limits::BLOB_LOCK_MAX,
        })
    }

    /// Deletes temporary files of dead processes: all that exist while no process writes.
    pub(super) fn remove_stale_temporaries(&self) -> io::Result<()> {
        let temporaries = match self.lock_temporaries(FlockOperation::NonBlockingLockExclusive) {
            // Another process writes now; the next start tries again.
            Err(Errno::WOULDBLOCK) => return Ok(()),
            locked => locked?,
        };
        for entry in Dir::read_from(&temporaries)? {
            let entry = entry?;
            let name = entry.file_name();
            if name != c"." && name != c".." {
                rustix::fs::unlinkat(&temporaries, name, AtFlags::empty())?;
            }
        }
        Ok(())
    }

    /// The folder for incomplete objects, locked until it is closed. Each call opens it again, because a lock belongs to one
    /// open file.
    fn lock_temporaries(&self, operation: FlockOperation) -> Result<OwnedFd, Errno> {
        let temporaries = rustix::fs::openat(&self.root, TEMPORARIES, FOLDER, Mode::empty())?;
        rustix::fs::flock(&temporaries, operation)?;
        Ok(temporaries)
    }

    /// Waits for a process that deletes incomplete objects, but not for one that stands still.
    fn temporary(&self) -> Result<Temporary, Errno> {
        let give_up = Instant::now() + self.lock_wait_max;
        loop {
            match self.lock_temporaries(FlockOperation::NonBlockingLockShared) {
                Err(Errno::WOULDBLOCK) if Instant::now() < give_up => {
                    std::thread::sleep(limits::LOCK_RETRY_AFTER);
                }
                locked => return Temporary::create(locked?),
            }
        }
    }

    pub(super) fn stage(&self, mut source: File) -> io::Result<Staged> {
        let mut temporary = self.temporary()?;
        source.rewind()?;
        let size = io::copy(&mut source, &mut temporary.file)?;
        temporary.file.sync_all()?;
        Ok(Staged { temporary, size })
    }

    pub(super) fn place(&self, mut staged: Staged, key: &Key) -> io::Result<u64> {
        let mut attempt = 1;
        loop {
            match self.try_place(&mut staged.temporary, key) {
                Err(Errno::NOENT) if attempt < PLACE_ATTEMPTS => attempt += 1,
                placed => break placed?,
            }
        }
        Ok(staged.size)
    }

    /// Creates the folders of `key` and moves `temporary` there, durably.
    fn try_place(&self, temporary: &mut Temporary, key: &Key) -> Result<(), Errno> {
        let mut folder = rustix::io::dup(&self.root)?;
        for name in key.folders() {
            make_folder(&folder, &name)?;
            folder = rustix::fs::openat(&folder, name, FOLDER, Mode::empty())?;
        }
        temporary.move_to(&folder, key.name())?;
        rustix::fs::fsync(&folder)
    }

    pub(super) fn find(&self, key: &Key) -> io::Result<File> {
        let ways = self.ways(key)?;
        let folder = ways.last().unwrap_or(&self.root);
        // Not blocking: opening a pipe would wait.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::openat(folder, key.name(), flags, Mode::empty())?;
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode);
        if kind == FileType::RegularFile {
            Ok(File::from(file))
        } else {
            Err(io::Error::other(format!("{key} is not a regular file")))
        }
    }

    /// Deletes the object and the folders that this empties.
    pub(super) fn delete(&self, key: &Key) -> io::Result<()> {
        let ways = self.ways(key)?;
        let folder = ways.last().unwrap_or(&self.root);
        let unlinked = rustix::fs::unlinkat(folder, key.name(), AtFlags::empty());
        match unlinked {
            // An interrupted deletion leaves a folder without its object.
            Ok(()) | Err(Errno::NOENT) => rustix::fs::fsync(folder)?,
            Err(other) => return Err(other.into()),
        }
        let parents = std::iter::once(&self.root).chain(&ways);
        let names = key.folders();
        for (parent, name) in parents.zip(&names).collect::<Vec<_>>().into_iter().rev() {
            match rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR) {
                Ok(()) => {}
                // It is not empty, or another process deleted it.
                Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOENT) => break,
                Err(other) => return Err(other.into()),
            }
        }
        Ok(unlinked?)
    }

    /// Names in the folder at the end of `way` that parse as `T`, at most `max`.
    pub(super) fn names<T: FromStr>(&self, way: &[&str], max: usize) -> io::Result<Vec<T>> {
        let mut folder = rustix::io::dup(&self.root)?;
        for name in way {
            folder = rustix::fs::openat(&folder, *name, FOLDER, Mode::empty())?;
        }
        let mut found = Vec::new();
        for entry in Dir::read_from(&folder)? {
            if found.len() == max {
                break;
            }
            let entry = entry?;
            let name = entry.file_name().to_str();
            found.extend(name.ok().and_then(|name| name.parse().ok()));
        }
        Ok(found)
    }

    /// Opens the folders of `key`, outermost first.
    fn ways(&self, key: &Key) -> Result<Vec<OwnedFd>, Errno> {
        let mut ways: Vec<OwnedFd> = Vec::new();
        for name in key.folders() {
            let parent = ways.last().unwrap_or(&self.root);
            ways.push(rustix::fs::openat(parent, name, FOLDER, Mode::empty())?);
        }
        Ok(ways)
    }

    /// Writes and deletes a few bytes.
    pub(super) fn probe(&self) -> io::Result<()> {
        let mut temporary = self.temporary()?;
        temporary.file.write_all(b"probe")?;
        temporary.file.sync_all()
    }
}

/// Creates a folder for its owner only, durably, if it does not exist.
fn make_folder(parent: &OwnedFd, name: &str) -> Result<(), Errno> {
    match rustix::fs::mkdirat(parent, name, Mode::RWXU) {
        Ok(()) => rustix::fs::fsync(parent),
        Err(Errno::EXIST) => Ok(()),
        Err(other) => Err(other),
    }
}

fn refuse_foreign(folder: &OwnedFd) -> io::Result<()> {
    let found = rustix::fs::fstat(folder)?;
    if found.st_uid != rustix::process::geteuid().as_raw() {
        return Err(io::Error::other(
            "it belongs to another user; chown it to the user that runs skillbox",
        ));
    }
    if Mode::from_raw_mode(found.st_mode).intersects(Mode::WGRP | Mode::WOTH) {
        return Err(io::Error::other("others can write to it; chmod it to 0700"));
    }
    Ok(())
}

/// A complete object without a key.
#[derive(Debug)]
pub(in crate::blob) struct Staged {
    temporary: Temporary,
    size: u64,
}

/// A file under a random name; deleted when dropped, unless it was moved to its key.
#[derive(Debug)]
struct Temporary {
    /// Locked, so that no process deletes it as a leftover.
    folder: OwnedFd,
    name: String,
    file: File,
    moved: bool,
}

impl Temporary {
    fn create(folder: OwnedFd) -> Result<Self, Errno> {
        // 74 random bits; `EXCL` and `NOFOLLOW` reject a name that is taken nevertheless.
        let name = uuid::Uuid::now_v7().to_string();
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&folder, &name, flags, Mode::RUSR | Mode::WUSR)?;
        Ok(Self {
            folder,
            name,
            file: File::from(file),
            moved: false,
        })
    }

    fn move_to(&mut self, folder: &OwnedFd, name: &str) -> Result<(), Errno> {
        rustix::fs::renameat(&self.folder, &self.name, folder, name)?;
        self.moved = true;
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.moved {
            // The next start deletes what cannot be deleted now.
            let _ = rustix::fs::unlinkat(&self.folder, &self.name, AtFlags::empty());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// F-13: a process that stands still while it deletes incomplete objects blocks no upload permanently.
    #[test]
    fn wait_for_a_process_that_deletes_leftovers_is_limited() {
        let root = tempfile::tempdir().unwrap();
        let folders = Folders {
            lock_wait_max: Duration::from_millis(50),
            ..Folders::open(&root.path().join("blobs")).unwrap()
        };
        let held = folders
            .lock_temporaries(FlockOperation::NonBlockingLockExclusive)
            .unwrap();
        let refused = folders.probe().unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
        assert!(matches!(
            crate::blob::Error::from(refused),
            crate::blob::Error::Busy
        ));
        drop(held);
        folders.probe().unwrap();
    }
}
