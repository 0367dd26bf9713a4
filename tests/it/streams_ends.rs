//! Streams from start to end, while readers connect and disconnect.

use std::time::Duration;

use serde_json::{Value, json};
use skillbox::execution::{Bookmark, Reason, Status, TranscriptEvent};
use skillbox::http::ConnectionLimits;
use skillbox::skill::Language;

use crate::watching::{ServedWorld, Version, id_of, path_of, until_printed};
use crate::world::{World, archive};

/// Code that says that it runs, and never ends by itself.
const SLEEPS: &str = "import time\nprint('on', flush=True)\ntime.sleep(100)";

/// A disconnect of the requesting client cancels the execution; other readers receive the cancellation.
#[tokio::test]
async fn disconnect_cancels_streamed_execution_if_requested() {
    let Some(door) = ServedWorld::on(super::BACKEND, ConnectionLimits::default()).await else {
        return;
    };
    for (version, on_disconnect) in [
        (Version::Http1, "cancel"),
        (Version::Http2, "cancel"),
        (Version::Http1, "continue"),
    ] {
        let body = json!({ "code": SLEEPS, "on_disconnect": on_disconnect });
        let mut coming = door.run(version, &body).await;
        let id = id_of(&until_printed(&mut coming, "on").await);
        let mut beside = door.get(&path_of(&id), &[]).await;
        until_printed(&mut beside, "on").await;
        drop(coming);
        if on_disconnect == "continue" {
            let more = tokio::time::timeout(Duration::from_millis(500), beside.next()).await;
            assert!(more.is_err(), "it goes on: {more:?}");
            door.cancel(&id).await;
        }
        let rest = beside.rest().await;
        assert_eq!(
            rest.last().unwrap().data["status"],
            "cancelled",
            "{version:?} {on_disconnect}"
        );
    }
}

#[tokio::test]
async fn stream_reports_queue_position() {
    let Some(door) = ServedWorld::on(super::BACKEND, ConnectionLimits::default()).await else {
        return;
    };
    let later = json!({ "code": SLEEPS, "mode": "async" });
    let mut all = Vec::new();
    // As many as run at once, and two more.
    for _ in 0..6 {
        let mut coming = door.run(Version::Http1, &later).await;
        let first = coming.next().await.unwrap();
        all.push((
            first.data["execution_id"].as_str().unwrap().to_owned(),
            coming,
            first,
        ));
    }
    let (last, mut coming, first) = all.pop().unwrap();
    assert_eq!(
        (&first.data["status"], &first.data["queue_position"]),
        (&json!("queued"), &json!(2))
    );
    door.cancel(&all.pop().unwrap().0).await;
    let moved = coming.next().await.unwrap();
    assert_eq!(
        (moved.name.as_str(), &moved.data["queue_position"]),
        ("status", &json!(1))
    );
    door.cancel(&all.pop().unwrap().0).await;
    let begun = coming.next().await.unwrap();
    assert_eq!(
        (&begun.data["status"], &begun.data["queue_position"]),
        (&json!("running"), &Value::Null)
    );
    until_printed(&mut coming, "on").await;
    all.push((last, coming, begun));
    for (id, coming, _) in all {
        door.cancel(&id).await;
        assert_eq!(coming.rest().await.last().unwrap().data["status"], "cancelled");
    }
}

/// Running executions end with the process, and their readers are told; a reader of another process's execution is redirected.
#[tokio::test]
async fn stream_reports_end_at_server_shutdown() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    let (mut follow, _run) = world.watch(archive(Language::Python, "", SLEEPS)).await;
    while !matches!(follow.next().await.unwrap(), TranscriptEvent::Printed { .. }) {}
    // A process beside this one, over the same folder.
    let folder = world.folder.path();
    let instance = crate::world::instance_in(folder);
    let sandbox = crate::world::sandbox_on(super::BACKEND, &instance).await.unwrap();
    let other = crate::world::engine_in(folder, instance, sandbox).await;
    let mut elsewhere = other
        .executions()
        .follow(world.tenant(), follow.id(), Bookmark::default())
        .await
        .unwrap();
    let mut sent_on = other
        .executions()
        .follow(world.tenant(), follow.id(), follow.bookmark())
        .await
        .unwrap();
    let engine = world.engine.clone();
    other.maintenance().shutdown(Duration::ZERO).await;
    let end = |status, reason| Some(TranscriptEvent::End { status, reason });
    assert_eq!(sent_on.next().await, end(Status::Running, Reason::Shutdown));
    assert_eq!(sent_on.next().await, None);
    assert!(matches!(elsewhere.next().await, Some(TranscriptEvent::Status(_))));
    assert_eq!(elsewhere.next().await, end(Status::Running, Reason::Shutdown));
    engine.maintenance().shutdown(Duration::ZERO).await;
    let Some(TranscriptEvent::Result(execution)) = follow.next().await else {
        panic!("its result comes first");
    };
    assert_eq!(execution.status, Status::Interrupted);
    assert_eq!(follow.next().await, end(Status::Interrupted, Reason::Finished));
    assert_eq!(follow.next().await, None);
    let mut late = engine
        .executions()
        .follow(world.tenant(), follow.id(), Bookmark::default())
        .await
        .unwrap();
    let mut printed = false;
    while let Some(event) = late.next().await {
        printed |= matches!(event, TranscriptEvent::Printed { .. });
    }
    assert!(printed, "what it had printed is kept");
}

/// An execution that another process runs is seen when it has ended.
#[tokio::test]
async fn stream_reports_end_of_execution_of_other_process() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    let folder = world.folder.path();
    let instance = crate::world::instance_in(folder);
    let sandbox = crate::world::sandbox_on(super::BACKEND, &instance).await.unwrap();
    let other = crate::world::engine_in(folder, instance, sandbox).await;
    let (begun, _run) = world
        .watch(archive(
            Language::Python,
            "",
            "import time\nprint('on', flush=True)\ntime.sleep(1)",
        ))
        .await;
    let id = begun.id();
    let mut elsewhere = other
        .executions()
        .follow(world.tenant(), id, Bookmark::default())
        .await
        .unwrap();
    let mut event = Vec::new();
    while let Some(next) = elsewhere.next().await {
        event.push(next);
    }
    let [
        TranscriptEvent::Status(status),
        TranscriptEvent::Printed { bytes, .. },
        TranscriptEvent::Result(_),
        TranscriptEvent::End { .. },
    ] = &event[..]
    else {
        panic!("{event:?}");
    };
    assert_eq!((*status, bytes.as_slice()), (Status::Running, &b"on\n"[..]));
}
