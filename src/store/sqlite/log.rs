//! Durability of the write-ahead log: each writer waits for a sync, and one sync covers all earlier transactions.
//! After a failed sync, or when the database's file is another one, nothing is accepted any more.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

/// The log of one database file.
///
/// SQLite writes a transaction to it and does not sync (`synchronous = normal`), because the next writer would wait too. The sync
/// is done here, while others write.
#[derive(Debug)]
pub(super) struct Log {
    file: File,
    /// Transactions in the log.
    written: AtomicU64,
    /// So many transactions are on the disk.
    durable: Mutex<u64>,
    database: DatabaseFile,
    /// Permanent: the kernel reports a failed sync once, and later syncs may succeed although earlier pages are missing.
    failed: CancellationToken,
}

/// The database's file as it was opened.
#[derive(Debug)]
struct DatabaseFile {
    path: PathBuf,
    identity: (u64, u64),
}

/// The position of a transaction in the log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written(u64);

impl Log {
    /// The log of the database at `path`, which is open and has one. It is beside the file itself, not beside a link to it.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let path = path.canonicalize()?;
        let mut name = path.clone().into_os_string();
        name.push("-wal");
        Ok(Self {
            file: File::open(name)?,
            written: AtomicU64::new(0),
            durable: Mutex::new(0),
            database: DatabaseFile {
                identity: identity(&path)?,
                path,
            },
            failed: CancellationToken::new(),
        })
    }

    /// Counts a transaction that was just written. The caller still holds the connection that wrote it.
    pub(super) fn wrote(&self) -> Written {
        Written(self.written.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// The position of the last transaction of any call.
    pub(super) fn last(&self) -> Written {
        Written(self.written.load(Ordering::Relaxed))
    }

    /// Cancelled when nothing is accepted any more.
    pub(super) fn failed(&self) -> &CancellationToken {
        &self.failed
    }

    /// Fails after a failed sync, or if the database's path leads to another file. Does not wait for a sync that is under
    /// way.
    pub(super) fn is_sound(&self) -> io::Result<()> {
        if self.failed.is_cancelled() {
            return Err(failed());
        }
        self.noticing(self.database.is_same())
    }

    /// Waits until a transaction, and all before it, is on the disk. Blocks.
    pub(super) fn sync(&self, written: Written) -> io::Result<()> {
        let mut durable = self.durable.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_sound()?;
        if *durable < written.0 {
            let all = self.written.load(Ordering::Relaxed);
            self.noticing(self.file.sync_data())?;
            *durable = all;
        }
        Ok(())
    }

    /// Stops accepting after a failure.
    pub(super) fn noticing<T, E>(&self, done: Result<T, E>) -> Result<T, E> {
        if done.is_err() {
            self.failed.cancel();
        }
        done
    }
}

impl DatabaseFile {
    fn is_same(&self) -> io::Result<()> {
        match identity(&self.path) {
            Ok(identity) if identity == self.identity => Ok(()),
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Err(io::Error::other(
                "the database's file was replaced or deleted; restore it and restart the server",
            )),
        }
    }
}

/// Device and inode.
#[cfg(unix)]
fn identity(path: &Path) -> io::Result<(u64, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    let metadata = std::fs::metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

/// Windows does not let an open database be replaced.
#[cfg(not(unix))]
fn identity(_: &Path) -> io::Result<(u64, u64)> {
    Ok((0, 0))
}

fn failed() -> io::Error {
    io::Error::other("an earlier write to disk failed; check the disk and restart the server")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_sync_covers_all_earlier_transactions() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("some.db");
        std::fs::write(&path, "pages").unwrap();
        std::fs::write(folder.path().join("some.db-wal"), "frames").unwrap();
        let log = Log::open(&path).unwrap();
        let until = || *log.durable.lock().unwrap();
        let (first, second) = (log.wrote(), log.wrote());
        log.sync(first).unwrap();
        assert_eq!(until(), 2);
        log.sync(second).unwrap();
        let third = log.wrote();
        assert_eq!(until(), 2);
        log.sync(third).unwrap();
        assert_eq!(until(), 3);
    }

    fn some_log(folder: &Path) -> Log {
        let path = folder.join("some.db");
        std::fs::write(&path, "pages").unwrap();
        std::fs::write(folder.join("some.db-wal"), "frames").unwrap();
        Log::open(&path).unwrap()
    }

    /// F-11: what follows a write that the disk rejected is not called durable, though the disk accepts it.
    #[test]
    fn failed_sync_is_permanent() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = some_log(folder.path());
        // Nothing can be synced to it.
        log.file = File::open("/dev/null").unwrap();
        let before = log.last();
        let first = log.wrote();
        log.is_sound().unwrap();
        log.sync(first).unwrap_err();
        log.is_sound().unwrap_err();
        assert!(log.failed().is_cancelled());
        log.file = File::create(folder.path().join("good")).unwrap();
        for place in [before, first, log.wrote()] {
            log.sync(place).unwrap_err();
        }
    }

    /// F-28: runs were acknowledged into a deleted file.
    #[test]
    fn replaced_or_deleted_database_file_is_a_permanent_failure() {
        let folder = tempfile::tempdir().unwrap();
        for replace in [
            (|path: &Path| std::fs::remove_file(path).unwrap()) as fn(&Path),
            |path| {
                let other = path.with_extension("other");
                std::fs::write(&other, "pages").unwrap();
                std::fs::rename(&other, path).unwrap();
            },
        ] {
            let log = some_log(folder.path());
            log.sync(log.wrote()).unwrap();
            let path = folder.path().join("some.db");
            let kept = folder.path().join("kept.db");
            std::fs::hard_link(&path, &kept).unwrap();
            replace(&path);
            let error = log.sync(log.wrote()).unwrap_err().to_string();
            assert!(error.contains("replaced or deleted"), "{error}");
            std::fs::rename(&kept, &path).unwrap();
            log.is_sound().unwrap_err();
        }
    }
}
