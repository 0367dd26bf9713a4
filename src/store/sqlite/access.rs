//! Runs a call on the file: on another thread, or on this one where that is less work.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::Sqlite;
use super::log::{Log, Written};
use super::pool::commit;
use crate::limits;
use crate::store::Error;

impl Sqlite {
    /// Runs `act` in one transaction, which is durable when this returns. On an error nothing is changed, except after an error of the
    /// disk: then the state is unknown.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        act: impl FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let began = Instant::now();
        self.log.is_sound().map_err(Error::backend)?;
        let log = self.log.clone();
        let write = move |connection: &mut Connection| {
            let before = connection.total_changes();
            let value = commit(connection.transaction()?, act)?;
            // What it only read may have been written a moment ago.
            let has_written = connection.total_changes() != before;
            let written = if has_written { log.wrote() } else { log.last() };
            Ok((value, log, written))
        };
        let sync = |(value, log, written): (T, Arc<Log>, Written)| {
            let synced = log.sync(written);
            synced.map(|()| value).map_err(Error::backend)
        };
        let done = self.writer.with(write, sync).await;
        self.latency.wrote(began.elapsed());
        done
    }

    /// Runs `act` on one snapshot of the data.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        act: impl FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let began = Instant::now();
        let read = move |connection: &mut Connection| commit(connection.transaction()?, act);
        let done = self.readers.with(read, Ok).await;
        self.latency.read(began.elapsed());
        done
    }

    /// As [`Self::read`] on this thread, for a row or two that are cached: less work than another thread. `None` if the connection is in
    /// use or the file is locked.
    pub(super) fn try_read_now<T>(
        &self,
        act: impl FnOnce(&Connection) -> Result<T, Error>,
    ) -> Option<Result<T, Error>> {
        let mut connection = self.no_wait_reader.try_lock().ok()?;
        let began = Instant::now();
        match connection
            .transaction()
            .map_err(Error::from)
            .and_then(|transaction| commit(transaction, act))
        {
            Err(Error::Busy) => None,
            done => {
                self.latency.read(began.elapsed());
                Some(done)
            }
        }
    }

    /// As [`Self::write`]; `on_visible` is called when every reader sees the change, which may be before it is durable.
    pub(super) async fn write_visible<T: Send + 'static>(
        &self,
        act: impl FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
        on_visible: impl FnOnce() + Send,
    ) -> Result<T, Error> {
        let began = Instant::now();
        // No program starts that cannot be recorded.
        self.log.is_sound().map_err(Error::backend)?;
        let act = match self.try_write_now(act) {
            Ok(done) => {
                let (value, place) = done?;
                on_visible();
                let log = self.log.clone();
                let reached = tokio::task::spawn_blocking(move || log.sync(place)).await;
                reached.map_err(Error::backend)?.map_err(Error::backend)?;
                self.latency.wrote(began.elapsed());
                return Ok(value);
            }
            Err(act) => act,
        };
        let value = self.write(act).await?;
        on_visible();
        Ok(value)
    }

    /// Runs `act` in one transaction on this thread: less work than another thread. It is then visible, but not yet durable. Returns
    /// `act` if another call or process is writing.
    fn try_write_now<T, A>(&self, act: A) -> Result<Result<(T, Written), Error>, A>
    where
        A: FnOnce(&Connection) -> Result<T, Error>,
    {
        let Some(mut lease) = self.writer.idle() else {
            return Err(act);
        };
        let Some(no_wait) = NoWaitConnection::new(lease.connection()) else {
            return Err(act);
        };
        let done = match no_wait.0.transaction() {
            Ok(transaction) => Ok(commit(transaction, act)),
            Err(_) => Err(act),
        };
        // While no other call can write.
        let place = self.log.wrote();
        done.map(|done| done.map(|value| (value, place)))
    }
}

/// A connection that waits for no lock. It never checkpoints, which takes long: a connection that may wait does.
struct NoWaitConnection<'a>(&'a mut Connection);

impl<'a> NoWaitConnection<'a> {
    fn new(connection: &'a mut Connection) -> Option<Self> {
        let connection = Self(connection);
        connection.set_lock_wait(Duration::ZERO).ok()?;
        connection.set_autocheckpoint(0).ok()?;
        Some(connection)
    }

    fn set_lock_wait(&self, wait: Duration) -> rusqlite::Result<()> {
        self.0.busy_timeout(wait)
    }

    fn set_autocheckpoint(&self, pages: u32) -> rusqlite::Result<()> {
        self.0.pragma_update(None, "wal_autocheckpoint", pages)
    }
}

impl Drop for NoWaitConnection<'_> {
    fn drop(&mut self) {
        let restored = self.set_lock_wait(limits::STORE_LOCK_MAX);
        if let Err(error) = restored.and_then(|()| self.set_autocheckpoint(limits::STORE_LOG_PAGES)) {
            tracing::warn!(%error, "Lock wait and checkpoints not restored until the next write");
        }
    }
}
