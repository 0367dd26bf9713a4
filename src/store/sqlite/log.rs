//! The write-ahead log on the disk: whoever has written waits until it is there, and one wait does for all who wrote before it.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The log of one database file.
///
/// SQLite writes a transaction to it and does not wait (`synchronous = normal`): the next writer would wait as well. The wait is
/// done here, beside those who write meanwhile.
#[derive(Debug)]
pub(super) struct Log {
    file: File,
    /// Transactions in the log.
    written: AtomicU64,
    /// How many of them are on the disk.
    durable: Mutex<u64>,
}

/// The place of a transaction in the log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written(u64);

impl Log {
    /// The log of the database at `path`, which is open and has one.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let mut name = path.as_os_str().to_owned();
        name.push("-wal");
        Ok(Self {
            file: File::open(name)?,
            written: AtomicU64::new(0),
            durable: Mutex::new(0),
        })
    }

    /// Notes a transaction that was just written. Whoever calls this still has the connection that wrote it.
    pub(super) fn wrote(&self) -> Written {
        Written(self.written.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Waits until a transaction is on the disk. Blocks.
    pub(super) fn reach_disk(&self, written: Written) -> io::Result<()> {
        let mut durable = self.durable.lock().unwrap_or_else(PoisonError::into_inner);
        if *durable >= written.0 {
            return Ok(());
        }
        let all = self.written.load(Ordering::Relaxed);
        self.file.sync_data()?;
        *durable = all;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_wait_does_for_all_who_wrote_before_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("some.db");
        std::fs::write(folder.path().join("some.db-wal"), "frames").unwrap();
        let log = Log::open(&path).unwrap();
        let (first, second) = (log.wrote(), log.wrote());
        log.reach_disk(first).unwrap();
        assert_eq!(*log.durable.lock().unwrap(), 2);
        log.reach_disk(second).unwrap();
        let third = log.wrote();
        assert_eq!(*log.durable.lock().unwrap(), 2);
        log.reach_disk(third).unwrap();
        assert_eq!(*log.durable.lock().unwrap(), 3);
    }
}
