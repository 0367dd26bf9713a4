//! The folders and files of the local backend on Windows, by path. The ACL of the root, which all below inherits, keeps others
//! out: the checks here are against accidents, not against a concurrent attacker.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Seek as _, Write as _};
use std::os::windows::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Instant;

use crate::blob::Key;
use crate::limits;

/// No tenant has this name: tenant names have no dot.
const TEMPORARIES: &str = ".tmp";
/// Locked by each writer of a temporary file: Windows locks no folders.
const LOCK: &str = ".tmp.lock";

/// Other calls delete a folder whenever they have emptied it, so a new folder may vanish this often.
const PLACE_ATTEMPTS: usize = 100;

/// Opens the end of a path itself, even a link.
const FILE_FLAG_OPEN_REPARSE_POINT: u32 = 0x0020_0000;

/// The root, and in it a folder for incomplete objects.
#[derive(Debug)]
pub(super) struct Folders {
    root: PathBuf,
}

impl Folders {
    /// Creates missing folders.
    pub(super) fn open(root: &Path) -> io::Result<Self> {
        fs::create_dir_all(root)?;
        // Literal from here on: the operator may give the root through a link, and a tenant may be called `nul`.
        let root = fs::canonicalize(root)?;
        enter(&root, TEMPORARIES, make_folder)?;
        Ok(Self { root })
    }

    /// Deletes temporary files of dead processes: all that exist while no process writes.
    pub(super) fn remove_stale_temporaries(&self) -> io::Result<()> {
        let lock = self.open_lock()?;
        match lock.try_lock() {
            Ok(()) => {}
            // Another process writes now; the next start tries again.
            Err(TryLockError::WouldBlock) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        for entry in fs::read_dir(self.root.join(TEMPORARIES))? {
            fs::remove_file(entry?.path())?;
        }
        Ok(())
    }

    /// Each call opens it again, because a lock belongs to one open file.
    fn open_lock(&self) -> io::Result<File> {
        OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(self.root.join(LOCK))
    }

    fn temporary(&self) -> io::Result<Temporary> {
        let lock = self.open_lock()?;
        let give_up = Instant::now() + limits::BLOB_LOCK_MAX;
        // Waits for a process that deletes incomplete objects, but not for one that stands still.
        while let Err(refused) = lock.try_lock_shared() {
            match refused {
                TryLockError::WouldBlock if Instant::now() < give_up => {
                    std::thread::sleep(limits::LOCK_RETRY_AFTER)
                }
                refused => return Err(refused.into()),
            }
        }
        // 74 random bits; a name that is taken nevertheless is rejected.
        let path = self.root.join(TEMPORARIES).join(uuid::Uuid::now_v7().to_string());
        let file = File::create_new(&path)?;
        Ok(Temporary {
            _lock: lock,
            path,
            file,
            moved: false,
        })
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
                Err(error) if error.kind() == io::ErrorKind::NotFound && attempt < PLACE_ATTEMPTS => {
                    attempt += 1;
                }
                placed => break placed?,
            }
        }
        Ok(staged.size)
    }

    /// Creates the folders of `key` and moves `temporary` there. Windows flushes no folders; NTFS has a journal for them.
    fn try_place(&self, temporary: &mut Temporary, key: &Key) -> io::Result<()> {
        let folder = self.way(key, make_folder)?;
        fs::rename(&temporary.path, folder.join(key.name()))?;
        temporary.moved = true;
        Ok(())
    }

    pub(super) fn find(&self, key: &Key) -> io::Result<File> {
        let path = self.way(key, |_| Ok(()))?.join(key.name());
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(FILE_FLAG_OPEN_REPARSE_POINT)
            .open(path)?;
        if file.metadata()?.is_file() {
            Ok(file)
        } else {
            Err(io::Error::other(format!("{key} is not a regular file")))
        }
    }

    /// Deletes the object and the folders that this empties.
    pub(super) fn delete(&self, key: &Key) -> io::Result<()> {
        let folder = self.way(key, |_| Ok(()))?;
        let removed = match fs::remove_file(folder.join(key.name())) {
            // An interrupted deletion leaves a folder without its object.
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            removed => removed,
        };
        let below = folder.ancestors().take(key.folders().len());
        for emptied in below {
            // It is not empty, or another process uses or has deleted it; an empty folder does no harm.
            if fs::remove_dir(emptied).is_err() {
                break;
            }
        }
        removed
    }

    /// Names in the folder at the end of `way` that parse as `T`, at most `max`.
    pub(super) fn names<T: FromStr>(&self, way: &[&str], max: usize) -> io::Result<Vec<T>> {
        let folder = way
            .iter()
            .try_fold(self.root.clone(), |folder, name| enter(&folder, name, |_| Ok(())))?;
        let mut found = Vec::new();
        for entry in fs::read_dir(folder)? {
            if found.len() == max {
                break;
            }
            let name = entry?.file_name();
            found.extend(name.to_str().and_then(|name| name.parse().ok()));
        }
        Ok(found)
    }

    /// The folder of `key`, after `prepare` has seen each folder on the way.
    fn way(&self, key: &Key, prepare: fn(&Path) -> io::Result<()>) -> io::Result<PathBuf> {
        let names = key.folders();
        names
            .iter()
            .try_fold(self.root.clone(), |folder, name| enter(&folder, name, prepare))
    }

    /// Writes and deletes a few bytes.
    pub(super) fn probe(&self) -> io::Result<()> {
        let mut temporary = self.temporary()?;
        temporary.file.write_all(b"probe")?;
        temporary.file.sync_all()
    }
}

/// The path of a folder in `parent`; rejects a link or a junction.
fn enter(parent: &Path, name: &str, prepare: fn(&Path) -> io::Result<()>) -> io::Result<PathBuf> {
    let folder = parent.join(name);
    prepare(&folder)?;
    if fs::symlink_metadata(&folder)?.is_dir() {
        Ok(folder)
    } else {
        Err(io::ErrorKind::NotADirectory.into())
    }
}

/// Creates a folder if it does not exist.
fn make_folder(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
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
    /// Held open, so that no process deletes it as a leftover.
    _lock: File,
    path: PathBuf,
    file: File,
    moved: bool,
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.moved {
            // The next start deletes what cannot be deleted now.
            let _ = fs::remove_file(&self.path);
        }
    }
}
