//! The promises of every backend, run on SQLite, and those of this backend alone.

use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::Barrier;
use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior};

use super::{Sqlite, keys, open, row};
use crate::auth::{ApiKey, KeyRecord, Scope, Scopes};
use crate::ids::{KeyId, Tenant};
use crate::limits;
use crate::store::{Error, ExecutionFilter, Kind, Store, contract};

use contract::{Place, contract_tests};

/// A database file in a folder of its own.
pub(super) struct File(tempfile::TempDir);

impl File {
    pub(super) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("skillbox.db")
    }

    async fn try_open(&self) -> Result<Store, Error> {
        Store::open_sqlite(&self.path()).await
    }
}

impl Place for File {
    async fn open(&self) -> Store {
        self.try_open().await.unwrap()
    }
}

contract_tests!(File::new());

pub(super) fn inner(store: &Store) -> &Sqlite {
    match &store.0 {
        Kind::Sqlite(sqlite) => sqlite,
    }
}

/// Runs a statement behind the store's back.
async fn execute(store: &Store, sql: &'static str) {
    let done = inner(store).writer.with(move |c| Ok(c.execute_batch(sql)?), Ok);
    done.await.unwrap();
}

fn key(secret: &ApiKey) -> KeyRecord {
    KeyRecord {
        id: KeyId::generate(),
        tenant: Tenant::default_tenant(),
        name: "ci".to_owned(),
        hint: secret.hint().to_owned(),
        hash: secret.hash(),
        scopes: Scopes::new([Scope::Run]),
        created_at: jiff::Timestamp::UNIX_EPOCH,
        expires_at: None,
        revoked_at: None,
    }
}

fn numbered_key(n: u8) -> KeyRecord {
    key(&ApiKey::from_random([n; 32]))
}

#[tokio::test]
async fn only_the_owner_can_read_the_files() {
    let file = File::new();
    let store = file.open().await;
    store.add_key(numbered_key(1)).await.unwrap();
    let mut names = Vec::new();
    for entry in file.0.path().read_dir().unwrap() {
        let entry = entry.unwrap();
        assert_eq!(entry.metadata().unwrap().mode() & 0o777, 0o600, "{entry:?}");
        names.push(entry.file_name().into_string().unwrap());
    }
    names.sort();
    assert_eq!(names, ["skillbox.db", "skillbox.db-shm", "skillbox.db-wal"]);
}

/// T-08.
#[tokio::test]
async fn files_contain_no_key() {
    let file = File::new();
    let store = file.open().await;
    let secret = ApiKey::from_random([7; 32]);
    store.add_key(key(&secret)).await.unwrap();
    for entry in file.0.path().read_dir().unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        let shown = &secret.reveal().as_bytes()[..9];
        assert!(!bytes.windows(shown.len()).any(|window| window == shown));
    }
}

/// F-17: one process migrates, the others wait or check again.
#[test]
fn concurrent_starts_create_one_database() {
    for _ in 0..25 {
        let (file, start) = (File::new(), Barrier::new(8));
        std::thread::scope(|scope| {
            for n in 0..8 {
                let (file, start) = (&file, &start);
                scope.spawn(move || {
                    start.wait();
                    let opened = open::open(&file.path()).unwrap();
                    keys::add(&opened.writer, &numbered_key(n)).unwrap();
                });
            }
        });
        let opened = open::open(&file.path()).unwrap();
        let terms = (Tenant::default_tenant().to_string(), i64::MAX, "", 100);
        let found = row::all(&opened.readers[0], keys::PAGE, terms, keys::record).unwrap();
        assert_eq!(found.len(), 8);
    }
}

/// F-17.
#[tokio::test]
async fn rejects_newer_database_unchanged() {
    let file = File::new();
    let store = file.open().await;
    execute(
        &store,
        "insert into refinery_schema_history values (99, 'later', '2030-01-01T00:00:00Z', '1')",
    )
    .await;
    drop(store);
    let refused = file.try_open().await.unwrap_err();
    assert!(
        matches!(refused, Error::Newer { found: 99, known: 16 }),
        "{refused:?}"
    );
    assert!(refused.to_string().contains("version 99") && refused.to_string().contains("up to 16"));
}

/// F-17: a migration that breaks off at its last step leaves nothing, and can be tried again.
#[tokio::test]
async fn a_failed_migration_leaves_nothing_behind() {
    let file = File::new();
    let planted = Connection::open(file.path()).unwrap();
    let obstacle = "
        create table refinery_schema_history (version int4 primary key, name, applied_on, checksum);
        create trigger obstacle before insert on refinery_schema_history begin select raise(abort, 'no'); end";
    planted.execute_batch(obstacle).unwrap();
    let refused = file.try_open().await.unwrap_err();
    assert!(matches!(refused, Error::Backend(_)), "{refused:?}");
    let tables = "select count(*) from sqlite_schema where name in ('skills', 'executions', 'keys')";
    let left: u32 = planted.query_row(tables, [], |row| row.get(0)).unwrap();
    assert_eq!(left, 0);
    planted.execute_batch("drop trigger obstacle").unwrap();
    file.open().await.ping().await.unwrap();
}

/// F-13.
#[tokio::test]
async fn rejects_damaged_file_by_name() {
    let file = File::new();
    let store = file.open().await;
    for n in 0..100 {
        store.add_key(numbered_key(n)).await.unwrap();
    }
    drop(store);
    let sound = std::fs::read(file.path()).unwrap();
    let mut scribbled = sound.clone();
    scribbled[sound.len() / 2..][..4096].fill(0xa5);
    let cut = sound[..sound.len() / 2].to_vec();
    for bytes in [
        scribbled,
        cut,
        b"not a database, but long enough for a header".repeat(100),
    ] {
        std::fs::write(file.path(), bytes).unwrap();
        let refused = file.try_open().await.unwrap_err();
        let Error::Damaged(text) = refused else {
            panic!("{refused:?}")
        };
        assert!(text.contains(file.path().to_str().unwrap()), "{text}");
    }
}

/// F-13: the intact part of a log is used after a crash.
#[tokio::test]
async fn torn_log_loses_only_its_last_transaction() {
    let (file, copy) = (File::new(), File::new());
    let store = file.open().await;
    for n in 0..10 {
        store.add_key(numbered_key(n)).await.unwrap();
    }
    let log = |path: PathBuf| path.with_extension("db-wal");
    std::fs::copy(file.path(), copy.path()).unwrap();
    let bytes = std::fs::read(log(file.path())).unwrap();
    std::fs::write(log(copy.path()), &bytes[..bytes.len() - 100]).unwrap();
    let page = copy
        .open()
        .await
        .keys(&Tenant::default_tenant(), None, 100)
        .await
        .unwrap();
    assert_eq!(page.items.len(), 9);
}

#[tokio::test]
async fn a_path_that_cannot_be_opened_is_named_in_the_cause_only() {
    let folder = tempfile::tempdir().unwrap();
    let refused = Store::open_sqlite(folder.path()).await.unwrap_err();
    let name = folder.path().to_str().unwrap();
    assert!(!refused.to_string().contains(name), "{refused}");
    let cause = std::error::Error::source(&refused).unwrap().to_string();
    assert!(cause.contains(name), "{cause}");
}

/// F-13: readers go on while another process writes; a lock that stays is `Busy`.
#[tokio::test]
async fn a_lock_of_another_process_is_busy() {
    let file = File::new();
    let store = file.open().await;
    let mut other = Connection::open(file.path()).unwrap();
    let lock = other
        .transaction_with_behavior(TransactionBehavior::Exclusive)
        .unwrap();
    assert!(store.keys(&Tenant::default_tenant(), None, 1).await.is_ok());
    let begin = |c: &mut Connection| {
        c.busy_timeout(Duration::ZERO)?;
        let begun = c.transaction().map(|_| ()).map_err(Error::from);
        c.busy_timeout(limits::STORE_LOCK_MAX)?;
        begun
    };
    let impatient = inner(&store).writer.with(begin, Ok);
    assert!(matches!(impatient.await, Err(Error::Busy)));
    let waiting = store.add_key(numbered_key(1));
    let (added, ()) = tokio::join!(waiting, async { lock.commit().unwrap() });
    added.unwrap();
}

/// F-11: a full disk is reported, nothing is half written, and freed space restores service.
#[tokio::test]
async fn full_disk_is_reported_until_space_is_freed() {
    let file = File::new();
    let store = file.open().await;
    let (tenant, old) = (Tenant::default_tenant(), numbered_key(1));
    store.add_key(old.clone()).await.unwrap();
    let long = KeyRecord {
        name: "x".repeat(100_000),
        ..numbered_key(2)
    };
    let at = jiff::Timestamp::UNIX_EPOCH;
    execute(&store, "pragma max_page_count = 1").await;
    let refused = store.replace_key(&tenant, old.id, long.clone(), at).await;
    assert!(matches!(refused, Err(Error::Full)), "{refused:?}");
    assert_eq!(store.key(&old.hash).await.unwrap(), old);
    execute(&store, "pragma max_page_count = 1000000").await;
    store
        .replace_key(&tenant, old.id, long.clone(), at)
        .await
        .unwrap();
    assert_eq!(store.key(&long.hash).await.unwrap(), long);
}

/// F-22.
#[tokio::test]
async fn panic_loses_no_connection() {
    let file = File::new();
    let store = file.open().await;
    for _ in 0..2 * limits::STORE_READERS {
        let crashed = inner(&store).write(|_| -> Result<(), Error> { panic!("on purpose") });
        assert!(matches!(crashed.await, Err(Error::Backend(_))));
        let crashed = inner(&store).read(|_| -> Result<(), Error> { panic!("on purpose") });
        assert!(matches!(crashed.await, Err(Error::Backend(_))));
    }
    store.add_key(numbered_key(1)).await.unwrap();
    assert!(store.key(&numbered_key(1).hash).await.is_ok());
}

#[test]
fn calls_can_be_awaited_on_any_thread() {
    fn is_send(_: impl Send) {}
    fn check(store: &Store) {
        is_send(store.running_instances());
        is_send(store.bootstrap_key(numbered_key(1)));
        is_send(store.executions(&Tenant::default_tenant(), &ExecutionFilter::default(), None, 1));
    }
    let _ = check;
}

/// The log is merged into the file even if a read outlives the store, so a copy of the file is complete.
#[tokio::test]
async fn read_that_outlives_its_store_leaves_no_log() {
    let file = File::new();
    let log = file.path().with_extension("db-wal");
    let store = file.try_open().await.unwrap();
    execute(&store, "create table written (any)").await;
    let (begun, is_begun) = tokio::sync::oneshot::channel();
    let (go_on, may_go_on) = std::sync::mpsc::channel::<()>();
    {
        let slow = inner(&store).read(move |_| {
            begun.send(()).unwrap();
            may_go_on.recv().map_err(Error::backend)
        });
        tokio::select! {
            _ = slow => panic!("it waits"),
            began = is_begun => began.unwrap(),
        }
    }
    drop(store);
    assert!(log.exists());
    go_on.send(()).unwrap();
    let gone = async {
        while log.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), gone).await.unwrap();
}

/// A corrupt webhook delays no other one, and is not read again at once.
#[tokio::test]
async fn unreadable_webhook_delays_no_other() {
    let file = File::new();
    let store = file.open().await;
    contract::deliveries::ended(&store, "a", "spoilt.example", 1).await;
    let sound = contract::deliveries::ended(&store, "a", "sound.example", 2).await;
    execute(
        &store,
        "update deliveries set url = '' where host = 'spoilt.example'",
    )
    .await;
    let claim = async || {
        store
            .claim_deliveries(contract::deliveries::claim(3))
            .await
            .unwrap()
    };
    let claimed = claim().await;
    assert_eq!(claimed.len(), 1, "{claimed:?}");
    assert_eq!(claimed[0].delivery.execution, sound.id);
    assert!(claim().await.is_empty());
}
