//! Durability of the write-ahead log: each writer waits for a sync, and one sync covers all earlier transactions.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, TryLockError};

/// The log of one database file.
///
/// SQLite writes a transaction to it and does not sync (`synchronous = normal`), because the next writer would wait too. The sync
/// is done here, while others write.
#[derive(Debug)]
pub(super) struct Log {
    file: File,
    /// Transactions in the log.
    written: AtomicU64,
    durable: Mutex<Durable>,
}

#[derive(Debug, Clone, Copy)]
enum Durable {
    /// So many transactions are on the disk.
    Until(u64),
    /// A sync failed. The kernel reports that once: later syncs may succeed although earlier pages are missing.
    Failed,
}

/// The position of a transaction in the log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written(u64);

impl Log {
    /// The log of the database at `path`, which is open and has one. It is beside the file itself, not beside a link to it.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let mut name = path.canonicalize()?.into_os_string();
        name.push("-wal");
        Ok(Self {
            file: File::open(name)?,
            written: AtomicU64::new(0),
            durable: Mutex::new(Durable::Until(0)),
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

    /// Fails after a failed sync. Does not wait for a sync that is under way.
    pub(super) fn is_sound(&self) -> io::Result<()> {
        let durable = match self.durable.try_lock() {
            Ok(durable) => *durable,
            Err(TryLockError::Poisoned(durable)) => *durable.into_inner(),
            // A sync is under way.
            Err(TryLockError::WouldBlock) => return Ok(()),
        };
        match durable {
            Durable::Until(_) => Ok(()),
            Durable::Failed => Err(failed()),
        }
    }

    /// Waits until a transaction, and all before it, is on the disk. Blocks. After one failure it fails until the file is opened again,
    /// which reads what is really stored.
    pub(super) fn sync(&self, written: Written) -> io::Result<()> {
        let mut durable = self.durable.lock().unwrap_or_else(PoisonError::into_inner);
        match *durable {
            Durable::Until(place) if place >= written.0 => return Ok(()),
            Durable::Until(_) => {}
            Durable::Failed => return Err(failed()),
        }
        let all = self.written.load(Ordering::Relaxed);
        *durable = Durable::Failed;
        self.file.sync_data()?;
        *durable = Durable::Until(all);
        Ok(())
    }
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
        let until = || match *log.durable.lock().unwrap() {
            Durable::Until(place) => place,
            Durable::Failed => panic!("this disk refuses nothing"),
        };
        let (first, second) = (log.wrote(), log.wrote());
        log.sync(first).unwrap();
        assert_eq!(until(), 2);
        log.sync(second).unwrap();
        let third = log.wrote();
        assert_eq!(until(), 2);
        log.sync(third).unwrap();
        assert_eq!(until(), 3);
    }

    /// F-11: what follows a write that the disk refused is not called durable, though the disk takes it.
    #[test]
    fn failed_sync_is_permanent() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = Log {
            // Nothing can be synced to it.
            file: File::open("/dev/null").unwrap(),
            written: AtomicU64::new(0),
            durable: Mutex::new(Durable::Until(0)),
        };
        let before = log.last();
        let first = log.wrote();
        log.is_sound().unwrap();
        log.sync(first).unwrap_err();
        log.is_sound().unwrap_err();
        log.file = File::create(folder.path().join("good")).unwrap();
        for place in [before, first, log.wrote()] {
            log.sync(place).unwrap_err();
        }
    }
}
