//! Opens a database file: creates it, rejects damaged and newer ones, migrates.

use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use refinery::{Migration, Runner};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension as _, TransactionBehavior};

use crate::error::Cause;
use crate::limits;
use crate::store::Error;

use super::log::Log;
use super::pool::limit_lock_wait;

/// Every migration, oldest first: forward only, never changed once released.
const MIGRATIONS: [(&str, &str); 16] = [
    (
        "V1__first",
        include_str!("../../../migrations/sqlite/V1__first.sql"),
    ),
    (
        "V2__degraded",
        include_str!("../../../migrations/sqlite/V2__degraded.sql"),
    ),
    (
        "V3__secrets",
        include_str!("../../../migrations/sqlite/V3__secrets.sql"),
    ),
    (
        "V4__blobs",
        include_str!("../../../migrations/sqlite/V4__blobs.sql"),
    ),
    (
        "V5__shown",
        include_str!("../../../migrations/sqlite/V5__shown.sql"),
    ),
    (
        "V6__package_sets",
        include_str!("../../../migrations/sqlite/V6__package_sets.sql"),
    ),
    (
        "V7__queue",
        include_str!("../../../migrations/sqlite/V7__queue.sql"),
    ),
    (
        "V8__deliveries",
        include_str!("../../../migrations/sqlite/V8__deliveries.sql"),
    ),
    (
        "V9__cancel_requests",
        include_str!("../../../migrations/sqlite/V9__cancel_requests.sql"),
    ),
    (
        "V10__pushes",
        include_str!("../../../migrations/sqlite/V10__pushes.sql"),
    ),
    (
        "V11__workdir",
        include_str!("../../../migrations/sqlite/V11__workdir.sql"),
    ),
    (
        "V12__arrivals",
        include_str!("../../../migrations/sqlite/V12__arrivals.sql"),
    ),
    (
        "V13__requirements",
        include_str!("../../../migrations/sqlite/V13__requirements.sql"),
    ),
    (
        "V14__sessions",
        include_str!("../../../migrations/sqlite/V14__sessions.sql"),
    ),
    (
        "V15__stats",
        include_str!("../../../migrations/sqlite/V15__stats.sql"),
    ),
    (
        "V16__requests",
        include_str!("../../../migrations/sqlite/V16__requests.sql"),
    ),
];

/// Pause between two attempts at a file that another process has locked.
const RETRY_EVERY: Duration = Duration::from_millis(20);

const HAS_HISTORY: &str = "select 1 from sqlite_schema where name = 'refinery_schema_history'";
const SCHEMA_VERSION: &str = "select max(version) from refinery_schema_history";

/// One writer, and several readers.
pub(super) struct Connections {
    pub(super) writer: Connection,
    pub(super) log: Log,
    pub(super) readers: Vec<Connection>,
    /// Never waits for a lock.
    pub(super) no_wait_reader: Connection,
}

/// The file at `path` could not be used; for the operator.
#[derive(Debug, thiserror::Error)]
#[error("cannot open the database {path}: {cause}")]
struct CannotOpen {
    path: String,
    cause: Cause,
}

pub(super) fn open(path: &Path) -> Result<Connections, Error> {
    open_within(path, limits::STORE_OPEN_MAX)
}

fn open_within(path: &Path, wait_max: Duration) -> Result<Connections, Error> {
    let named = |cause: Cause| {
        Error::backend(CannotOpen {
            path: path.display().to_string(),
            cause,
        })
    };
    create_private(path).map_err(|e| named(e.into()))?;
    let give_up = Instant::now() + wait_max;
    loop {
        match connect_all(path, give_up) {
            // Switching to a write-ahead log and the first migration do not always wait for a lock.
            Err(Error::Busy) if Instant::now() < give_up => std::thread::sleep(RETRY_EVERY),
            Err(Error::Backend(cause)) => return Err(named(cause)),
            done => return done,
        }
    }
}

/// Creates an empty file that only its owner may read. SQLite creates its other files with the same mode.
///
/// The file is closed before it has its name: closing it later would drop locks that this process holds on it.
fn create_private(path: &Path) -> std::io::Result<()> {
    if path.try_exists()? {
        return Ok(());
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let empty = tempfile::NamedTempFile::new_in(folder)?.into_temp_path();
    match empty.persist_noclobber(path) {
        Err(refused) if refused.error.kind() != std::io::ErrorKind::AlreadyExists => Err(refused.error),
        _ => Ok(()),
    }
}

fn connect_all(path: &Path, give_up: Instant) -> Result<Connections, Error> {
    let mut writer = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    limit_lock_wait(&writer, give_up)?;
    let sound = refuse_damaged(&writer).and_then(|()| refuse_newer(&writer));
    sound.map_err(|error| damaged(path, error))?;
    limit_lock_wait(&writer, give_up)?;
    // `Log` makes transactions durable before a call returns.
    writer.execute_batch(&format!(
        "pragma journal_mode = wal; pragma synchronous = normal;
        pragma wal_autocheckpoint = {}; pragma journal_size_limit = {};",
        limits::STORE_LOG_PAGES,
        limits::STORE_LOG_BYTES
    ))?;
    limit_lock_wait(&writer, give_up)?;
    migrate(&mut writer)?;
    let readers = (0..limits::STORE_READERS)
        .map(|_| connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY))
        .collect::<Result<_, _>>()?;
    let no_wait_reader = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    no_wait_reader.busy_timeout(Duration::ZERO)?;
    let log = Log::open(path).map_err(Error::backend)?;
    Ok(Connections {
        log,
        writer,
        readers,
        no_wait_reader,
    })
}

fn connect(path: &Path, access: OpenFlags) -> Result<Connection, Error> {
    let mut connection = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(limits::STORE_LOCK_MAX)?;
    connection.set_prepared_statement_cache_capacity(limits::STORE_STATEMENTS);
    // A foreign file must not make this program run statements that are not its own.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.execute_batch("pragma foreign_keys = on; pragma trusted_schema = off;")?;
    connection.set_transaction_behavior(if access == OpenFlags::SQLITE_OPEN_READ_ONLY {
        TransactionBehavior::Deferred
    } else {
        // A transaction that starts with a read cannot always continue with a write.
        TransactionBehavior::Immediate
    });
    Ok(connection)
}

/// Checks for damage, within a time limit.
fn refuse_damaged(connection: &Connection) -> Result<(), Error> {
    let stop = connection.get_interrupt_handle();
    let (checked, is_checked) = mpsc::channel::<()>();
    let verdict = std::thread::scope(|scope| {
        scope.spawn(move || {
            if is_checked.recv_timeout(limits::STORE_CHECK_MAX) == Err(mpsc::RecvTimeoutError::Timeout) {
                stop.interrupt();
            }
        });
        let verdict = connection.query_row("pragma quick_check(1)", [], |row| row.get::<_, String>(0));
        drop(checked);
        verdict
    });
    match verdict {
        Ok(verdict) if verdict == "ok" => Ok(()),
        Ok(finding) => Err(Error::Damaged(finding)),
        Err(e) if e.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) => Ok(()),
        Err(e) => Err(e.into()),
    }
}

fn refuse_newer(connection: &Connection) -> Result<(), Error> {
    let known = last_version();
    match schema_version(connection)? {
        Some(found) if found > known => Err(Error::Newer { found, known }),
        _ => Ok(()),
    }
}

/// The number in the last migration's name.
fn last_version() -> i32 {
    let numbers = MIGRATIONS
        .iter()
        .filter_map(|(name, _)| name.strip_prefix('V')?.split_once("__")?.0.parse().ok());
    numbers.max().unwrap_or(i32::MAX)
}

fn schema_version(connection: &Connection) -> Result<Option<i32>, Error> {
    let has_history = connection
        .query_row(HAS_HISTORY, [], |_| Ok(()))
        .optional()?
        .is_some();
    if !has_history {
        return Ok(None);
    }
    Ok(connection.query_row(SCHEMA_VERSION, [], |row| row.get(0))?)
}

/// Reads from the file itself, past every cache.
pub(super) fn read_from_disk(path: &Path) -> Result<(), Error> {
    let version = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
        .and_then(|connection| schema_version(&connection))
        .map_err(|error| damaged(path, error))?;
    match version {
        Some(_) => Ok(()),
        None => Err(damaged(path, Error::Damaged("it has no schema".to_owned()))),
    }
}

/// Distinguishes damage from other errors of the first read.
fn damaged(path: &Path, error: Error) -> Error {
    let finding = match error {
        Error::Damaged(finding) => finding,
        Error::Backend(cause) => match sqlite_code(&cause) {
            Some(ErrorCode::NotADatabase) => "it is not a database".to_owned(),
            Some(ErrorCode::DatabaseCorrupt) => cause.to_string(),
            _ => return Error::Backend(cause),
        },
        other => return other,
    };
    Error::Damaged(format!(
        "the database {} is damaged ({finding}); restore it from a backup or move it away to start with an empty one",
        path.display()
    ))
}

/// Applies what is missing in one transaction, all or nothing.
///
/// Two processes may both find missing migrations. The second one fails on the first statement, is rolled back, and finds
/// fewer missing when it tries again.
fn migrate(connection: &mut Connection) -> Result<(), Error> {
    let known = MIGRATIONS
        .iter()
        .map(|(name, sql)| Migration::unapplied(name, sql))
        .collect::<Result<Vec<_>, _>>()
        .map_err(Error::backend)?;
    let runner = Runner::new(&known).set_grouped(true);
    let mut before = schema_version(connection)?;
    loop {
        // Refinery logs each step; the result is enough.
        let quiet = tracing::subscriber::NoSubscriber::default();
        let result = tracing::subscriber::with_default(quiet, || runner.run(connection));
        let Err(error) = result else { return Ok(()) };
        let now = schema_version(connection)?;
        if now == before {
            return Err(migration_error(error));
        }
        before = now;
    }
}

fn migration_error(error: refinery::Error) -> Error {
    match error.kind() {
        refinery::error::Kind::Connection(_, cause)
            if matches!(
                sqlite_code(cause),
                Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
            ) =>
        {
            Error::Busy
        }
        _ => Error::backend(error),
    }
}

fn sqlite_code(cause: &Cause) -> Option<ErrorCode> {
    cause.downcast_ref::<rusqlite::Error>()?.sqlite_error_code()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_in_the_folder_is_a_migration_in_the_list() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations/sqlite");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| {
                entry
                    .unwrap()
                    .path()
                    .file_stem()
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .to_owned()
            })
            .collect();
        files.sort_by_key(|name| name[1..].split("__").next().unwrap().parse::<i32>().unwrap());
        let listed: Vec<&str> = MIGRATIONS.iter().map(|(name, _)| *name).collect();
        assert_eq!(files, listed);
        for (number, name) in (1..).zip(listed) {
            assert!(name.starts_with(&format!("V{number}__")), "{name}");
        }
    }

    /// F-13: opening waits for another process in several places, which share one limit.
    #[test]
    fn wait_to_open_a_locked_file_is_limited() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("db");
        let mut foreign = Connection::open(&path).unwrap();
        foreign.execute_batch("create table t (a)").unwrap();
        let lock = foreign
            .transaction_with_behavior(TransactionBehavior::Exclusive)
            .unwrap();
        let began = Instant::now();
        let refused = open_within(&path, Duration::from_millis(500));
        assert!(matches!(refused, Err(Error::Busy)), "{:?}", refused.err());
        assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
        lock.commit().unwrap();
        open(&path).unwrap();
    }
}
