//! How a call gets at the file: on another thread, or here and now where that is less work.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::Sqlite;
use super::log::{Log, Written};
use super::pool::{transact, whole};
use crate::limits;
use crate::store::Error;

impl Sqlite {
    /// Runs `act` in one transaction: all of it is on the disk when this returns. On an error nothing is kept, unless it is the disk's:
    /// then nobody knows.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        act: impl FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let began = Instant::now();
        self.log.is_sound().map_err(Error::backend)?;
        let log = self.log.clone();
        let write = move |connection: &mut Connection| {
            let before = connection.total_changes();
            let value = transact(connection, act)?;
            // What it found and left as it was may have been written a moment ago.
            let has_written = connection.total_changes() != before;
            let written = if has_written { log.wrote() } else { log.last() };
            Ok((value, log, written))
        };
        let on_disk = |(value, log, written): (T, Arc<Log>, Written)| {
            let reached = log.reach_disk(written);
            reached.map(|()| value).map_err(Error::backend)
        };
        let done = self.writer.with(write, on_disk).await;
        self.latency.wrote(began.elapsed());
        done
    }

    /// Runs `act` on one unchanging view of the data.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        act: impl FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let began = Instant::now();
        let read = move |connection: &mut Connection| transact(connection, act);
        let done = self.readers.with(read, Ok).await;
        self.latency.read(began.elapsed());
        done
    }

    /// As [`Self::read`] for a row or two that are in memory already: less work than handing it to another thread. `None` if
    /// somebody else is at it, or the file is locked.
    pub(super) fn glance<T>(
        &self,
        act: impl FnOnce(&Connection) -> Result<T, Error>,
    ) -> Option<Result<T, Error>> {
        let mut connection = self.glance.try_lock().ok()?;
        let began = Instant::now();
        match transact(&mut connection, act) {
            Err(Error::Busy) => None,
            done => {
                self.latency.read(began.elapsed());
                Some(done)
            }
        }
    }

    /// As [`Self::write`]; `written` is called when everybody sees what was written, which may be a moment before it is on the disk.
    pub(super) async fn write_telling<T: Send + 'static>(
        &self,
        act: impl FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
        written: impl FnOnce() + Send,
    ) -> Result<T, Error> {
        let began = Instant::now();
        // Nothing begins that cannot be recorded.
        self.log.is_sound().map_err(Error::backend)?;
        let act = match self.write_at_once(act) {
            Ok(done) => {
                let (value, place) = done?;
                written();
                let log = self.log.clone();
                let reached = tokio::task::spawn_blocking(move || log.reach_disk(place)).await;
                reached.map_err(Error::backend)?.map_err(Error::backend)?;
                self.latency.wrote(began.elapsed());
                return Ok(value);
            }
            Err(act) => act,
        };
        let value = self.write(act).await?;
        written();
        Ok(value)
    }

    /// Runs `act` in one transaction here and now: less work than handing it to another thread. It is in the log then, and not
    /// yet on the disk. Gives `act` back if somebody else is writing.
    fn write_at_once<T, A>(&self, act: A) -> Result<Result<(T, Written), Error>, A>
    where
        A: FnOnce(&Connection) -> Result<T, Error>,
    {
        let Some(mut lease) = self.writer.idle() else {
            return Err(act);
        };
        let Some(impatient) = Impatient::new(lease.connection()) else {
            return Err(act);
        };
        let done = match impatient.0.transaction() {
            Ok(transaction) => Ok(whole(transaction, act)),
            Err(_) => Err(act),
        };
        // While nobody else can write.
        let place = self.log.wrote();
        done.map(|done| done.map(|value| (value, place)))
    }
}

/// A connection that waits for no lock, and leaves what moves the log into the file, which takes long, to one that may wait.
struct Impatient<'a>(&'a mut Connection);

impl<'a> Impatient<'a> {
    fn new(connection: &'a mut Connection) -> Option<Self> {
        let impatient = Self(connection);
        impatient.be((Duration::ZERO, 0)).ok().map(|()| impatient)
    }

    fn be(&self, (lock, pages): (Duration, u32)) -> rusqlite::Result<()> {
        self.0.busy_timeout(lock)?;
        self.0.pragma_update(None, "wal_autocheckpoint", pages)
    }
}

impl Drop for Impatient<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.be((limits::STORE_LOCK_MAX, limits::STORE_LOG_PAGES)) {
            tracing::warn!(%error, "The connection that writes stays impatient until the next write");
        }
    }
}
