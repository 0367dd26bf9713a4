//! The store in one SQLite file: a write-ahead log, one connection that writes, a few that read.

mod access;
mod audit;
mod blobs;
mod count_queries;
#[cfg(test)]
mod count_speed;
mod counts;
mod deliveries;
mod due;
mod execution_pages;
mod executions;
mod keys;
mod log;
mod open;
mod packages;
mod parsed;
mod pool;
#[cfg(test)]
mod query_plans;
mod queue;
mod requests;
mod reserve;
mod retention;
mod row;
mod secrets;
mod sessions;
mod skills;
mod storage;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use rusqlite::Connection;
use tokio_util::sync::CancellationToken;

use crate::store::Error;
use crate::telemetry::Latency;

use log::Log;
use parsed::ParsedSkills;
use pool::Pool;
use reserve::Reserve;

/// An open database file.
#[derive(Debug)]
pub(super) struct Sqlite {
    /// Reads what every request needs; a call that would have to wait for it uses `readers`.
    no_wait_reader: Mutex<Connection>,
    parsed: Arc<ParsedSkills>,
    readers: Pool,
    writer: Pool,
    log: Arc<Log>,
    path: PathBuf,
    latency: Latency,
}

impl Sqlite {
    pub(super) async fn open(path: &Path) -> Result<Self, Error> {
        let path = path.to_owned();
        let opened = path.clone();
        let connections = tokio::task::spawn_blocking(move || open::open(&opened))
            .await
            .map_err(Error::backend)??;
        // Closed last: a reader cannot move the log into the file, and a copy of the file alone would lose the log.
        let writer = Pool::new(vec![connections.writer]);
        Ok(Self {
            no_wait_reader: Mutex::new(connections.no_wait_reader),
            parsed: Arc::default(),
            readers: Pool::closed_before(&writer, connections.readers),
            writer,
            log: Arc::new(connections.log),
            path,
            latency: Latency::default(),
        })
    }

    pub(super) fn latency(&self) -> &Latency {
        &self.latency
    }

    pub(super) async fn ping(&self) -> Result<(), Error> {
        self.log.is_sound().map_err(Error::backend)?;
        let path = self.path.clone();
        let read = tokio::task::spawn_blocking(move || open::read_from_disk(&path));
        match read.await.map_err(Error::backend)? {
            // The file is still there, and is no sound database any more.
            Err(error @ Error::Damaged(_)) => self.log.noticing(Err(error)),
            read => read,
        }
    }

    pub(super) async fn keep_reserve(&self) -> Result<(), Error> {
        let reserve = Reserve::beside(&self.path);
        tokio::task::spawn_blocking(move || reserve.keep())
            .await
            .map_err(Error::backend)?
            .map_err(Error::backend)
    }

    pub(super) fn give_up_reserve(&self) -> bool {
        Reserve::beside(&self.path).give_up()
    }

    pub(super) fn failed(&self) -> &CancellationToken {
        self.log.failed()
    }

    pub(super) fn release_memory(&self) {
        self.readers.release_memory();
        self.writer.release_memory();
    }
}
