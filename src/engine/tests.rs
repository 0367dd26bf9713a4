//! An engine over a sandbox that answers from a script; what becomes of what waits when its process ends.

use std::path::Path;
use std::time::Duration;

use super::*;
use crate::blob::{Blob, LinkSigner};
use crate::engine::{RunOptions, RunRequest, RunSpec};
use crate::execution::{Bookmark, Reason, Status, TranscriptEvent};
use crate::ids::Tenant;
use crate::sandbox::{Completion, Report};

/// An engine in this folder, over this sandbox.
pub(super) async fn engine(folder: &Path, sandbox: Sandbox) -> Engine {
    let images = Images::default();
    let settings = Settings {
        maxima: Maxima::default(),
        allowlist: ImageAllowlist::new([images.python.clone()]),
        images,
        concurrency: 2,
        tenant_concurrency: 2,
        tenant_rate: None,
        tenant_storage: None,
        queue: 2,
        async_queue: 2,
        queue_wait: Duration::from_secs(1),
        retention: RetentionPolicy::default(),
        keep_request: None,
        blobs: BlobPolicy::default(),
        link_life: Duration::from_secs(60),
        deps: DependencySettings::in_folder(folder.join("packages")),
        webhooks: Default::default(),
        cache_dir: folder.join("cache"),
        tmp_dir: folder.to_owned(),
    };
    Engine::new(Parts {
        store: Store::open_sqlite(&folder.join("db")).await.unwrap(),
        blob: Blob::open_local(&folder.join("blobs")).unwrap(),
        sandbox,
        links: LinkSigner::new(b"0123456789abcdef-links-of-a-test-").unwrap(),
        master_key: MasterKey::from_random([7; 32]),
        settings,
        instance: Instance::register_beside(&folder.join("db")).unwrap(),
    })
}

fn some_code() -> RunRequest {
    RunSpec::of_code(Language::Python, "1".to_owned()).into()
}

/// F-06: an engine that starts again, say, ends nothing of what waits.
#[tokio::test]
async fn execution_that_cannot_start_waits_again() {
    let folder = tempfile::tempdir().unwrap();
    let sandbox = Sandbox::scripted_late(|_, _| Ok(Report::bare(Completion::Exited(0))), 1);
    let engine = engine(folder.path(), sandbox).await;
    let tenant = Tenant::default_tenant();
    let submitted = engine
        .runs()
        .submit(&tenant, some_code(), RunOptions::default())
        .await;
    let id = submitted.unwrap().new.id;
    let ended = engine
        .executions()
        .ended_within(&tenant, id, Duration::from_secs(20))
        .await;
    assert_eq!(ended.unwrap().status, Status::Success);
    engine.maintenance().shutdown(Duration::ZERO).await;
}

/// F-03: a process that shuts down does not start an execution whose slot was just granted; the next process does.
#[tokio::test]
async fn execution_granted_during_shutdown_runs_after_restart() {
    let folder = tempfile::tempdir().unwrap();
    let engine_here = || {
        let sandbox = Sandbox::scripted(|_, _| Ok(Report::bare(Completion::Exited(0))));
        engine(folder.path(), sandbox)
    };
    let tenant = Tenant::default_tenant();
    let first = engine_here().await;
    // As `shutdown` does while an execution is being admitted.
    first.0.running.stop();
    let submitted = first
        .runs()
        .submit(&tenant, some_code(), RunOptions::default())
        .await
        .unwrap();
    let mut follow = first
        .executions()
        .follow(&tenant, submitted.new.id, Bookmark::default())
        .await
        .unwrap();
    first.maintenance().shutdown(Duration::ZERO).await;
    // Decision 26: it never ran here, and a reader that reconnects elsewhere receives its queue position.
    let (status, reason) = (Status::Queued, Reason::Shutdown);
    let mut told = follow.next().await;
    while told == Some(TranscriptEvent::Status(status)) {
        told = follow.next().await;
    }
    assert_eq!(told, Some(TranscriptEvent::End { status, reason }));
    let left = first.executions().get(&tenant, submitted.new.id).await.unwrap();
    assert_eq!(left.status, Status::Queued, "{:?}", left.outcome);
    drop((first, follow));
    let next = engine_here().await;
    next.runs().recover_queue().await.unwrap();
    next.maintenance().shutdown(Duration::from_secs(20)).await;
    let ended = next.executions().get(&tenant, submitted.new.id).await.unwrap();
    assert_eq!(ended.status, Status::Success, "{:?}", ended.outcome);
}
