//! The write-ahead log on the disk: whoever has written waits until it is there, and one wait does for all who wrote before it.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, TryLockError};

/// The log of one database file.
///
/// SQLite writes a transaction to it and does not wait (`synchronous = normal`): the next writer would wait as well. The wait is
/// done here, beside those who write meanwhile.
#[derive(Debug)]
pub(super) struct Log {
    file: File,
    /// Transactions in the log.
    written: AtomicU64,
    durable: Mutex<Durable>,
}

/// What is known of the disk.
#[derive(Debug, Clone, Copy)]
enum Durable {
    /// So many transactions are on it.
    Until(u64),
    /// It refused once. The system tells that once, and forgets it: whatever it takes afterwards, there may be a hole before that.
    Refused,
}

/// The place of a transaction in the log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written(u64);

impl Log {
    /// The log of the database at `path`, which is open and has one. It lies beside the file itself, not beside a link to it.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let mut name = path.canonicalize()?.into_os_string();
        name.push("-wal");
        Ok(Self {
            file: File::open(name)?,
            written: AtomicU64::new(0),
            durable: Mutex::new(Durable::Until(0)),
        })
    }

    /// Notes a transaction that was just written. Whoever calls this still has the connection that wrote it.
    pub(super) fn wrote(&self) -> Written {
        Written(self.written.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// The place of the last one that was written, by whomever.
    pub(super) fn last(&self) -> Written {
        Written(self.written.load(Ordering::Relaxed))
    }

    /// Whether the disk is believed, as far as is known without waiting for it.
    pub(super) fn is_sound(&self) -> io::Result<()> {
        let durable = match self.durable.try_lock() {
            Ok(durable) => *durable,
            Err(TryLockError::Poisoned(durable)) => *durable.into_inner(),
            // It is being asked.
            Err(TryLockError::WouldBlock) => return Ok(()),
        };
        match durable {
            Durable::Until(_) => Ok(()),
            Durable::Refused => Err(refused()),
        }
    }

    /// Waits until a transaction, and all before it, is on the disk. Blocks. Once this has failed it fails until the file is opened
    /// anew, which reads what is really there.
    pub(super) fn reach_disk(&self, written: Written) -> io::Result<()> {
        let mut durable = self.durable.lock().unwrap_or_else(PoisonError::into_inner);
        match *durable {
            Durable::Until(place) if place >= written.0 => return Ok(()),
            Durable::Until(_) => {}
            Durable::Refused => return Err(refused()),
        }
        let all = self.written.load(Ordering::Relaxed);
        *durable = Durable::Refused;
        self.file.sync_data()?;
        *durable = Durable::Until(all);
        Ok(())
    }
}

fn refused() -> io::Error {
    io::Error::other(
        "the disk has refused what was written before; see to the disk and start the server again",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_wait_does_for_all_who_wrote_before_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("some.db");
        std::fs::write(&path, "pages").unwrap();
        std::fs::write(folder.path().join("some.db-wal"), "frames").unwrap();
        let log = Log::open(&path).unwrap();
        let until = || match *log.durable.lock().unwrap() {
            Durable::Until(place) => place,
            Durable::Refused => panic!("this disk refuses nothing"),
        };
        let (first, second) = (log.wrote(), log.wrote());
        log.reach_disk(first).unwrap();
        assert_eq!(until(), 2);
        log.reach_disk(second).unwrap();
        let third = log.wrote();
        assert_eq!(until(), 2);
        log.reach_disk(third).unwrap();
        assert_eq!(until(), 3);
    }

    /// F-11: what follows a write that the disk refused is not called durable, though the disk takes it.
    #[test]
    fn a_disk_that_refused_once_is_not_believed_again() {
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
        log.reach_disk(first).unwrap_err();
        log.is_sound().unwrap_err();
        log.file = File::create(folder.path().join("good")).unwrap();
        for place in [before, first, log.wrote()] {
            log.reach_disk(place).unwrap_err();
        }
    }
}
