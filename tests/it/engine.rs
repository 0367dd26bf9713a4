//! Promises of the engine that hold for every program: over a scripted sandbox, so that ends can be chosen.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use skillbox::auth::{Caller, KeyRecord, Scope, Scopes};
use skillbox::blob::{self, Blob};
use skillbox::bundle::artifacts::ArtifactTar;
use skillbox::engine::{Engine, NewKey, PageRequest, RetentionPolicy, RunOptions, RunSpec};
use skillbox::error::{Code, Error};
use skillbox::execution::{Execution, Status};
use skillbox::ids::{Digest, KeyId};
use skillbox::limits;
use skillbox::sandbox::{self, Completion, Job, Report, Sandbox};
use skillbox::skill::{Language, Selector, SkillRef};
use skillbox::store::{ExecutionFilter, Store};

use crate::world::{World, archive, engine_with_retention, instance_in};

/// Closed while a test holds executions back.
static GATE: (Mutex<bool>, Condvar) = (Mutex::new(true), Condvar::new());

fn set_gate(open: bool) {
    *GATE.0.lock().unwrap() = open;
    GATE.1.notify_all();
}

/// Keeps everybody else from writing to this database for so much longer than anybody waits for a lock.
fn hold_database(path: &str, longer: Duration) {
    let database = rusqlite::Connection::open(path).unwrap();
    database.execute_batch("begin immediate").unwrap();
    std::thread::spawn(move || {
        std::thread::sleep(limits::STORE_LOCK_MAX + longer);
        drop(database);
    });
}

/// Leaves one file behind; the argument `panic` panics, `gate` waits until the gate is open, `hold:` names a database.
fn script(job: &Job, artifacts: &mut ArtifactTar) -> Result<Report, sandbox::Error> {
    let asked = |what: &str| job.program.argv.iter().any(|arg| arg == what);
    assert!(!asked("panic"), "asked to panic");
    if let Some(path) = job.program.argv.iter().find_map(|arg| arg.strip_prefix("hold:")) {
        hold_database(path, Duration::from_secs(1));
    }
    if asked("gate") {
        let closed = GATE.0.lock().unwrap();
        drop(GATE.1.wait_while(closed, |open| !*open).unwrap());
    }
    artifacts.start("a.txt", 5).unwrap();
    artifacts.write(b"hello").unwrap();
    Ok(Report {
        files: vec![artifacts.end().unwrap()],
        sandbox_time: Duration::from_nanos(123_456),
        run_time: Duration::from_nanos(666_666),
        collect_time: Duration::from_nanos(142_857_142_857),
        ..Report::bare(Completion::Exited(0))
    })
}

async fn world() -> World {
    let folder = tempfile::tempdir().unwrap();
    let instance = instance_in(folder.path());
    let world = World::over(folder, instance, Sandbox::scripted(script)).await;
    let file = archive(Language::Python, "version: 1.0.0\n", "print()");
    world.skills().publish(world.tenant(), file, None).await.unwrap();
    world
}

async fn run(engine: &Engine, caller: &Caller, arg: &str) -> Result<Execution, Error> {
    let skill = SkillRef {
        name: "probe".parse().unwrap(),
        selector: Selector::Latest,
    };
    let ask = RunSpec {
        args: vec![arg.to_owned()],
        ..RunSpec::default()
    };
    let request = RunSpec {
        skill: Some(skill),
        ..ask
    };
    engine.runs().run(caller.tenant(), request).await
}

async fn listed(engine: &Engine, caller: &Caller, status: Option<Status>) -> Vec<Execution> {
    let filter = ExecutionFilter {
        statuses: status.into(),
        ..ExecutionFilter::default()
    };
    let page = PageRequest {
        after: None,
        rows: 200,
    };
    engine
        .executions()
        .list(caller.tenant(), filter, page)
        .await
        .unwrap()
        .items
}

/// The executions whose artifacts are in the blob folder, by the names of their folders.
fn stored_artifacts(folder: &Path) -> BTreeSet<String> {
    let mut pending = vec![folder.join("blobs")];
    let mut found = BTreeSet::new();
    while let Some(path) = pending.pop() {
        if path.is_dir() {
            pending.extend(std::fs::read_dir(&path).unwrap().map(|e| e.unwrap().path()));
        } else if path.ends_with("files.tar") {
            let execution = path.parent().unwrap().file_name().unwrap();
            found.insert(execution.to_str().unwrap().to_owned());
        }
    }
    found
}

/// The administrator of another tenant, who has published the same skill.
async fn other_tenant(world: &World) -> Caller {
    let new = NewKey {
        name: "other".to_owned(),
        scopes: Scopes::new([Scope::Admin]),
        expires_at: None,
    };
    let (_, key) = world.keys().create("other".parse().unwrap(), new).await.unwrap();
    let caller = world.keys().authenticate(key.reveal()).await.unwrap();
    let file = archive(Language::Python, "version: 1.0.0\n", "print()");
    world.skills().publish(caller.tenant(), file, None).await.unwrap();
    caller
}

#[tokio::test]
async fn stored_execution_equals_run_response() {
    let world = world().await;
    for _ in 0..20 {
        let answered = run(&world.engine, &world.admin, "").await.unwrap();
        let later = world.executions().get(world.tenant(), answered.new.id).await;
        assert_eq!(answered, later.unwrap());
    }
}

#[tokio::test]
async fn key_with_latest_expiry_reads_back_unchanged() {
    let world = world().await;
    let odd = "2999-01-02T03:04:05.123456789Z".parse().unwrap();
    for expires_at in [odd, jiff::Timestamp::MAX] {
        let new = NewKey {
            name: "late".to_owned(),
            scopes: Scopes::new([Scope::Run]),
            expires_at: Some(expires_at),
        };
        let (answered, _) = world.keys().create(world.tenant().clone(), new).await.unwrap();
        let page = PageRequest { after: None, rows: 1 };
        let newest = world.keys().list(world.tenant(), page).await.unwrap();
        assert_eq!(
            (newest.items[0].created_at, newest.items[0].expires_at),
            (answered.created_at, answered.expires_at)
        );
    }
}

/// O-d: an execution whose pipeline broke down is not running for ever, and its slot is free.
#[tokio::test]
async fn lost_execution_ends_as_interrupted() {
    let world = world().await;
    for _ in 0..world.engine.settings().concurrency {
        let broken = run(&world.engine, &world.admin, "panic").await.unwrap_err();
        assert_eq!(broken.code(), Code::Internal);
    }
    let running = listed(&world.engine, &world.admin, Some(Status::Running)).await;
    assert_eq!(running.len(), world.engine.settings().concurrency);
    // Stored for an outcome that is never recorded.
    let blob = Blob::open_local(&world.folder.path().join("blobs")).unwrap();
    let files = blob::Key::Artifacts {
        tenant: world.tenant().clone(),
        execution: running[0].new.id,
    };
    blob.put(&files, tempfile::tempfile().unwrap()).await.unwrap();
    world.maintenance().run().await;
    let left = blob.open(&files).await;
    assert!(matches!(left, Err(blob::Error::NotFound)), "{left:?}");
    assert_eq!(
        listed(&world.engine, &world.admin, Some(Status::Running))
            .await
            .len(),
        0
    );
    let ended = listed(&world.engine, &world.admin, Some(Status::Interrupted)).await;
    assert_eq!(ended.len(), world.engine.settings().concurrency);
    assert!(run(&world.engine, &world.admin, "").await.is_ok());
    assert_eq!(
        std::fs::read_dir(world.folder.path().join("tmp"))
            .unwrap()
            .count(),
        0
    );
}

/// F-13: an outcome is not lost if another process locks the database when the program ends.
#[tokio::test]
async fn records_outcome_after_database_was_locked() {
    let world = world().await;
    let database = world.folder.path().join("skillbox.db");
    let hold = format!("hold:{}", database.display());
    let ended = run(&world.engine, &world.admin, &hold).await.unwrap();
    assert_eq!(ended.status, Status::Success);
    let recorded = world
        .executions()
        .get(world.tenant(), ended.new.id)
        .await
        .unwrap();
    assert_eq!(recorded, ended);
}

/// C-11: by its own process, and by another one whether the owner is alive or dead.
#[tokio::test]
async fn cancels_lost_execution_immediately() {
    let world = world().await;
    for (is_owner_dead, by_owner) in [(false, true), (false, false), (true, false)] {
        let broken = run(&world.engine, &world.admin, "panic").await.unwrap_err();
        assert_eq!(broken.code(), Code::Internal);
        let lost = listed(&world.engine, &world.admin, Some(Status::Running)).await;
        let path = world.folder.path();
        let other = engine_with_retention(
            RetentionPolicy::default(),
            path,
            instance_in(path),
            Sandbox::scripted(script),
        )
        .await;
        if is_owner_dead {
            let lock = path.join(format!("instances/{}.lock", world.engine.instance()));
            std::fs::remove_file(lock).unwrap();
        }
        let engine = if by_owner { &world.engine } else { &other };
        let ended = engine
            .executions()
            .cancel(world.tenant(), lost[0].new.id)
            .await
            .unwrap();
        assert_eq!(ended.status, Status::Interrupted);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn does_not_run_execution_whose_caller_left_queue() {
    let world = world().await;
    set_gate(false);
    let spawn = |arg: &'static str| {
        let (engine, admin) = (world.engine.clone(), world.admin.clone());
        tokio::spawn(async move { run(&engine, &admin, arg).await })
    };
    let at_work: Vec<_> = (0..world.engine.settings().concurrency)
        .map(|_| spawn("gate"))
        .collect();
    while listed(&world.engine, &world.admin, Some(Status::Running))
        .await
        .len()
        < at_work.len()
    {
        tokio::task::yield_now().await;
    }
    let left = tokio::time::timeout(
        Duration::from_millis(200),
        run(&world.engine, &world.admin, "left"),
    );
    assert!(left.await.is_err(), "it must wait");
    let stayed = spawn("stayed");
    set_gate(true);
    for task in at_work {
        assert_eq!(task.await.unwrap().unwrap().status, Status::Success);
    }
    assert_eq!(stayed.await.unwrap().unwrap().status, Status::Success);
    let all = listed(&world.engine, &world.admin, None).await;
    assert_eq!(all.len(), world.engine.settings().concurrency + 1);
}

/// F-13: one whose turn comes while others hold the database is not let in, and nobody else would ever say so.
#[tokio::test(flavor = "multi_thread")]
async fn reports_rejected_execution_once_it_is_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let instance = instance_in(folder.path());
    let world = World::over(folder, instance, Sandbox::scripted_late(script, 1)).await;
    let request = RunSpec::of_code(Language::Python, "1".to_owned());
    let submitted = world
        .runs()
        .submit(world.tenant(), request, RunOptions::default())
        .await;
    let id = submitted.unwrap().new.id;
    let database = world.folder.path().join("skillbox.db");
    // Its start fails after it was queued again.
    let longer = limits::QUEUED_RETRY_AFTER * 3;
    hold_database(database.to_str().unwrap(), longer);
    let within = limits::STORE_LOCK_MAX * 4;
    let ended = world
        .executions()
        .ended_within(world.tenant(), id, within)
        .await
        .unwrap();
    let outcome = ended.outcome.unwrap();
    assert_eq!(outcome.status, Status::Failed, "{:?}", outcome.error);
    assert!(outcome.error.unwrap().message.contains("database is busy"));
    // No fault of its sandbox, which was only never told to begin.
    let counted = r#"skillbox_sandbox_failures_total{reason="no_sandbox"} 0"#;
    let metrics = world.engine.metrics_text();
    assert!(metrics.contains(counted), "{metrics}");
}

/// T-15: retention counts and deletes within each tenant.
#[tokio::test]
async fn retention_deletes_rows_and_files_per_tenant() {
    let world = world().await;
    let other = other_tenant(&world).await;
    let mut kept = Vec::new();
    for (caller, count) in [(&world.admin, 5), (&other, 1)] {
        for _ in 0..count {
            kept.push(run(&world.engine, caller, "").await.unwrap().new.id);
        }
    }
    assert_eq!(stored_artifacts(world.folder.path()).len(), 6);
    let policy = RetentionPolicy {
        age: Some(Duration::from_secs(3600)),
        per_tenant: Some(2),
    };
    let sandbox = Sandbox::scripted(script);
    let path = world.folder.path();
    let engine = engine_with_retention(policy, path, instance_in(path), sandbox).await;
    engine.maintenance().run().await;
    let ids = |executions: Vec<Execution>| -> BTreeSet<String> {
        executions.iter().map(|one| one.new.id.to_string()).collect()
    };
    let (mine, theirs) = (
        ids(listed(&engine, &world.admin, None).await),
        ids(listed(&engine, &other, None).await),
    );
    let last = |range: std::ops::Range<usize>| -> BTreeSet<String> {
        kept[range].iter().map(ToString::to_string).collect()
    };
    assert_eq!((&mine, &theirs), (&last(3..5), &last(5..6)));
    assert_eq!(stored_artifacts(path), mine.union(&theirs).cloned().collect());
}

#[tokio::test]
async fn retention_by_age_deletes_only_ended_executions() {
    let world = world().await;
    run(&world.engine, &world.admin, "").await.unwrap();
    let unended = run(&world.engine, &world.admin, "panic").await.unwrap_err();
    assert_eq!(unended.code(), Code::Internal);
    let policy = RetentionPolicy {
        age: Some(Duration::ZERO),
        per_tenant: None,
    };
    let path = world.folder.path();
    let engine = engine_with_retention(policy, path, instance_in(path), Sandbox::scripted(script)).await;
    engine.maintenance().run().await;
    let left = listed(&engine, &world.admin, None).await;
    assert_eq!(
        left.iter().map(|one| one.status).collect::<Vec<_>>(),
        [Status::Running]
    );
    assert_eq!(stored_artifacts(path).len(), 0);
}

#[tokio::test]
async fn undeletable_files_do_not_block_retention_of_other_tenants() {
    let world = world().await;
    let stuck = run(&world.engine, &world.admin, "").await.unwrap().new.id;
    for _ in 0..3 {
        run(&world.engine, &world.admin, "").await.unwrap();
    }
    let path = world.folder.path();
    let tar = path.join(format!("blobs/default/{stuck}/files.tar"));
    std::fs::remove_file(&tar).unwrap();
    std::fs::create_dir(&tar).unwrap();
    let policy = RetentionPolicy {
        age: Some(Duration::ZERO),
        per_tenant: None,
    };
    let engine = engine_with_retention(policy, path, instance_in(path), Sandbox::scripted(script)).await;
    engine.maintenance().run().await;
    let left = listed(&engine, &world.admin, None).await;
    assert_eq!(left.iter().map(|one| one.new.id).collect::<Vec<_>>(), [stuck]);
    std::fs::remove_dir(&tar).unwrap();
    engine.maintenance().run().await;
    assert_eq!(listed(&engine, &world.admin, None).await.len(), 0);
}

/// F-11, Z-28: an archive that finds no room leaves no version, even where nothing could be taken back.
#[tokio::test]
async fn lists_version_only_after_archive_is_durable() {
    let world = world().await;
    let database = rusqlite::Connection::open(world.folder.path().join("skillbox.db")).unwrap();
    let nothing_goes = "create trigger full before delete on skills begin select raise(abort, 'full'); end";
    database.execute_batch(nothing_goes).unwrap();
    std::fs::remove_dir(world.folder.path().join("blobs/.tmp")).unwrap();
    let file = archive(Language::Python, "version: 2.0.0\n", "print()");
    let refused = world.skills().publish(world.tenant(), file, None).await;
    assert_eq!(refused.unwrap_err().code(), Code::Internal);
    let name = "probe".parse().unwrap();
    let latest = world.skills().get(world.tenant(), &name, &Selector::Latest).await;
    assert_eq!(latest.unwrap().version.to_string(), "1.0.0");
}

/// F-01: a server that was killed between a version's row and its archive is repaired by the next push.
#[tokio::test]
async fn next_push_stores_missing_archive() {
    let world = world().await;
    let path = world.folder.path();
    std::fs::remove_dir_all(path.join("blobs/default")).unwrap();
    std::fs::remove_dir_all(path.join("cache")).unwrap();
    let lost = run(&world.engine, &world.admin, "").await.unwrap_err();
    assert_eq!(lost.code(), Code::NotFound);
    assert!(lost.to_string().contains("push"), "{lost}");
    let file = archive(Language::Python, "version: 1.0.0\n", "print()");
    world.skills().publish(world.tenant(), file, None).await.unwrap();
    std::fs::remove_dir_all(path.join("cache")).unwrap();
    assert!(run(&world.engine, &world.admin, "").await.is_ok());
}

/// Many who want one skill that is not unpacked yet all get it, and one copy is kept.
#[tokio::test(flavor = "multi_thread")]
async fn concurrent_runs_share_one_unpacking() {
    let world = world().await;
    let cache = world.folder.path().join("cache");
    std::fs::remove_dir_all(&cache).unwrap();
    let runs = (0..16).map(|_| {
        let (engine, admin) = (world.engine.clone(), world.admin.clone());
        tokio::spawn(async move { run(&engine, &admin, "").await })
    });
    for task in runs.collect::<Vec<_>>() {
        assert_eq!(task.await.unwrap().unwrap().status, Status::Success);
    }
    assert_eq!(std::fs::read_dir(&cache).unwrap().count(), 1);
}

/// Z-29: a version that is deleted while others run it is whole or not there.
#[tokio::test(flavor = "multi_thread")]
async fn version_deleted_during_request_runs_or_is_not_found() {
    let world = world().await;
    std::fs::remove_dir_all(world.folder.path().join("cache")).unwrap();
    let runs = (0..16).map(|_| {
        let (engine, admin) = (world.engine.clone(), world.admin.clone());
        tokio::spawn(async move { run(&engine, &admin, "").await })
    });
    let runs: Vec<_> = runs.collect();
    let (name, version) = ("probe".parse().unwrap(), "1.0.0".parse().unwrap());
    world
        .skills()
        .delete(world.tenant(), &name, &version)
        .await
        .unwrap();
    for task in runs {
        match task.await.unwrap() {
            Ok(execution) => assert_eq!(execution.status, Status::Success),
            Err(error) => assert_eq!(error.code(), Code::NotFound, "{error}"),
        }
    }
    let again = world.skills().delete(world.tenant(), &name, &version).await;
    assert_eq!(again.unwrap_err().code(), Code::NotFound);
    let file = archive(Language::Python, "version: 1.0.0\n", "print('other')");
    assert!(world.skills().publish(world.tenant(), file, None).await.is_ok());
    assert!(run(&world.engine, &world.admin, "").await.is_ok());
}

/// Its successor would be born expired, or bring back what was revoked.
#[tokio::test]
async fn does_not_rotate_expired_or_revoked_key() {
    let world = world().await;
    let new = NewKey {
        name: "ended".to_owned(),
        scopes: Scopes::new([Scope::Run]),
        expires_at: None,
    };
    let (revoked, _) = world.keys().create(world.tenant().clone(), new).await.unwrap();
    let expired = KeyRecord {
        id: KeyId::generate(),
        hash: Digest::of(b"expired"),
        expires_at: Some(revoked.created_at),
        ..revoked.clone()
    };
    let store = Store::open_sqlite(&world.folder.path().join("skillbox.db"))
        .await
        .unwrap();
    store.add_key(expired.clone()).await.unwrap();
    world.keys().revoke(world.tenant(), revoked.id).await.unwrap();
    for id in [revoked.id, expired.id] {
        let refused = world.keys().rotate(world.tenant(), id).await.unwrap_err();
        assert_eq!(refused.code(), Code::Conflict, "{refused}");
    }
    let unchanged = store.key(&expired.hash).await.unwrap();
    assert_eq!(unchanged, expired);
}
