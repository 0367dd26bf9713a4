//! What is seen of an execution while it runs, by those who watch it.

use std::time::Duration;

use serde_json::{Value, json};
use skillbox::execution::{Bookmark, PartContent, Status, TranscriptEvent};
use skillbox::http::ConnectionLimits;
use skillbox::limits;
use skillbox::sandbox::WarmPoolSettings;
use skillbox::secret::SecretValue;
use skillbox::skill::Language;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::watching::{ServedWorld, Version, code, id_of, logged, path_of, printed, until_printed};
use crate::world::archive;

/// Code that prints in both streams and the log, and never ends by itself.
const TALKS: &str = r#"
import sys, time
from runtime import log
print('ä1', flush=True)
sys.stderr.write('e1\n'); sys.stderr.flush()
log.info('first', n=1)
sys.stdout.buffer.write(b'\xff\xe2\x82'); sys.stdout.flush()
time.sleep(0.1)
sys.stdout.buffer.write(b'\xac2\n'); sys.stdout.flush()
log.info('second')
sys.stderr.write('x' * 40000 + '\n'); sys.stderr.flush()
print('ready', flush=True)
time.sleep(100)
"#;

/// Python keeps what it prints until 8 KiB are there, unless a client follows: in a new interpreter and in one that waited.
#[tokio::test]
async fn followed_python_program_need_not_flush() {
    let Some(door) = ServedWorld::on(super::BACKEND, ConnectionLimits::default()).await else {
        return;
    };
    let pool = WarmPoolSettings {
        slots: 1,
        memory_bytes: 64 << 20,
        idle: Duration::from_secs(60),
    };
    door.world.maintenance().keep_warm(pool);
    let mut seen = [false, false];
    for _ in 0..20 {
        let program = "import time\nprint('ready')\ntime.sleep(100)";
        let mut coming = door.run(Version::Http1, &code(program)).await;
        let mut events = until_printed(&mut coming, "ready").await;
        door.cancel(&id_of(&events)).await;
        events.extend(coming.rest().await);
        let [.., result, _end] = &events[..] else {
            panic!("{events:?}");
        };
        let is_warm = result.data["timings"]["warm"].as_bool().unwrap();
        seen[usize::from(is_warm)] = true;
        if seen == [true, true] {
            return;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    panic!("cold and warm: {seen:?}");
}

#[tokio::test]
async fn streams_output_during_run_and_always_sends_end() {
    let Some(door) = ServedWorld::on(super::BACKEND, ConnectionLimits::default()).await else {
        return;
    };
    for version in [Version::Http1, Version::Http2] {
        let mut coming = door.run(version, &code(TALKS)).await;
        assert_eq!(
            (coming.status.as_u16(), coming.content_type.as_str()),
            (200, "text/event-stream")
        );
        // It sleeps for longer than anybody waits here.
        let mut events = until_printed(&mut coming, "ready").await;
        let id = id_of(&events);
        assert_eq!(events[0].data["status"], "running");
        let mut second = door.get_by(version, &path_of(&id), &[]).await;
        let seen = until_printed(&mut second, "ready").await;
        assert_eq!(printed(&seen, "stdout"), printed(&events, "stdout"));
        door.cancel(&id).await;
        events.extend(coming.rest().await);
        let [.., result, end] = &events[..] else {
            panic!("{events:?}");
        };
        assert_eq!((result.name.as_str(), end.name.as_str()), ("result", "end"));
        assert_eq!(end.data, json!({"status": "cancelled", "reason": "finished"}));
        assert_eq!(result.data["execution_id"], id);
        let logs = &result.data["logs"];
        assert_eq!(
            String::from_utf8_lossy(&printed(&events, "stdout")),
            logs["stdout"].as_str().unwrap()
        );
        assert_eq!(
            String::from_utf8_lossy(&printed(&events, "stderr")),
            logs["stderr"].as_str().unwrap()
        );
        assert_eq!(json!(logged(&events)), logs["lines"]);
        assert_eq!(logs["lines"][0]["fields"]["n"], 1);
        assert_eq!(second.rest().await.last(), Some(end));
        // The response of a plain `GET`, except for the links, which are signed again.
        let shown = door
            .get(&format!("/v1/executions/{id}"), &[])
            .await
            .bytes()
            .await
            .0;
        assert_eq!(serde_json::from_slice::<Value>(&shown).unwrap(), result.data);
    }
}

/// From every position, in memory and in the record, a reader receives the same events as an uninterrupted one.
#[tokio::test]
async fn reader_resumes_at_exact_position() {
    let Some(door) = ServedWorld::on(super::BACKEND, ConnectionLimits::default()).await else {
        return;
    };
    let mut coming = door.run(Version::Http1, &code(TALKS)).await;
    let live = until_printed(&mut coming, "ready").await;
    let id = id_of(&live);
    let mut early = Vec::new();
    for event in &live {
        let header = [("last-event-id", event.id.as_str())];
        early.push((event.id.clone(), door.get(&path_of(&id), &header).await));
    }
    door.cancel(&id).await;
    let whole = [live, coming.rest().await].concat();
    for event in &whole {
        let path = format!("{}?last_event_id={}", path_of(&id), event.id);
        early.push((event.id.clone(), door.get(&path, &[]).await));
    }
    let (out, err) = (printed(&whole, "stdout"), printed(&whole, "stderr"));
    for (place, coming) in early {
        let place: Bookmark = place.parse().unwrap();
        if place.to_string().ends_with("end") {
            assert_eq!(coming.status, 204, "there is nothing more");
            continue;
        }
        let rest = coming.rest().await;
        let count = |bytes: u64| usize::try_from(bytes).unwrap();
        assert_eq!(printed(&rest, "stdout"), out[count(place.stdout)..], "{place}");
        assert_eq!(printed(&rest, "stderr"), err[count(place.stderr)..], "{place}");
        assert_eq!(logged(&rest), logged(&whole)[count(place.lines)..], "{place}");
        assert!(rest.iter().all(|event| event.name != "status"), "{place}");
        assert_eq!(rest.last(), whole.last(), "{place}");
    }
    for wrong in ["7", "99-0-0-running", "0-0-99-running"] {
        let path = format!("{}?last_event_id={wrong}", path_of(&id));
        let refused = door.get(&path, &[]).await;
        assert_eq!(refused.status, 400, "{wrong}");
        let problem: Value = serde_json::from_slice(&refused.bytes().await.0).unwrap();
        assert!(
            problem["detail"].as_str().unwrap().starts_with("last_event_id: "),
            "{problem}"
        );
    }
}

/// While the execution runs: the stream starts at its beginning, and the first client may disconnect.
#[tokio::test]
async fn repeated_idempotency_key_joins_stream() {
    let Some(door) = ServedWorld::on(super::BACKEND, ConnectionLimits::default()).await else {
        return;
    };
    let key = [("idempotency-key", "once")];
    let mut first = door.run_with(Version::Http1, &key, &code(TALKS)).await;
    let heard = until_printed(&mut first, "ready").await;
    let id = id_of(&heard);
    let mut second = door.run_with(Version::Http2, &key, &code(TALKS)).await;
    let again = until_printed(&mut second, "ready").await;
    assert_eq!(
        (id_of(&again), &again[0].data["status"]),
        (id.clone(), &json!("running"))
    );
    assert_eq!(printed(&again, "stdout"), printed(&heard, "stdout"));
    drop(first);
    door.cancel(&id).await;
    let end = second.rest().await.pop().unwrap();
    assert_eq!(end.data, json!({"status": "cancelled", "reason": "finished"}));
    let listed = door.get("/v1/executions", &[]).await.bytes().await.0;
    let listed: Value = serde_json::from_slice(&listed).unwrap();
    assert_eq!(listed["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn stream_requests_are_rejected_as_usual_and_report_early_end() {
    let Some(door) = ServedWorld::on(super::BACKEND, ConnectionLimits::default()).await else {
        return;
    };
    for (body, status) in [(json!({"skill": "not-there"}), 404), (json!({}), 400)] {
        let refused = door.run(Version::Http1, &body).await;
        assert_eq!(refused.status, status);
        assert_eq!(refused.content_type, "application/problem+json");
    }
    let silent = door.run(Version::Http2, &code("7")).await.rest().await;
    let names: Vec<_> = silent.iter().map(|event| event.name.as_str()).collect();
    assert_eq!(names, ["status", "result", "end"]);
    assert_eq!(silent[1].data["output"], 7);
}

/// C-09.
#[tokio::test]
async fn two_hundred_readers_get_same_bytes() {
    let Some(door) = ServedWorld::on(super::BACKEND, ConnectionLimits::default()).await else {
        return;
    };
    let program = "import sys, time\nfor n in range(300):\n    print(n, 'ß' * 500, flush=True)\n    if n == 100: time.sleep(1)";
    let mut first = door.run(Version::Http1, &code(program)).await;
    let status = first.until("status").await;
    let id = status.data["execution_id"].as_str().unwrap().to_owned();
    let mut readers = Vec::new();
    for n in 0..200 {
        let version = if n % 2 == 0 {
            Version::Http1
        } else {
            Version::Http2
        };
        readers.push(door.get_by(version, &path_of(&id), &[]).await);
    }
    let whole = first.rest().await;
    let result = &whole[whole.len() - 2].data;
    let out = printed(&whole, "stdout");
    assert_eq!(
        String::from_utf8_lossy(&out),
        result["logs"]["stdout"].as_str().unwrap()
    );
    for reader in readers {
        assert_eq!(reader.status, 200);
        let heard = reader.rest().await;
        assert_eq!(printed(&heard, "stdout"), out);
        assert_eq!(heard.last(), whole.last());
    }
}

/// A-25: who stops reading is dropped; the execution and everybody else go on.
#[tokio::test(flavor = "multi_thread")]
async fn drops_stalled_reader_of_flooding_program() {
    let bounds = ConnectionLimits {
        idle: Duration::from_secs(2),
        ..ConnectionLimits::default()
    };
    let Some(door) = ServedWorld::on(super::BACKEND, bounds).await else {
        return;
    };
    // The kernel takes much for a reader that takes nothing: as events these bytes are more than eight times a megabyte.
    let floods = "import sys, time\nprint('begun', flush=True)\ntime.sleep(0.5)\n\
        for stream in (sys.stderr, sys.stdout):\n    stream.buffer.write(b'\\xff' * (4 << 20))\n    stream.flush()\n\
        time.sleep(6)";
    let mut coming = door.run(Version::Http1, &code(floods)).await;
    let id = id_of(&until_printed(&mut coming, "begun").await);
    let mut stuck = TcpStream::connect(door.address).await.unwrap();
    let request = format!(
        "GET {} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\r\n",
        path_of(&id),
        door.key
    );
    stuck.write_all(request.as_bytes()).await.unwrap();
    let rest = coming.rest().await;
    assert_eq!(
        rest.last().map(|event| &event.data["status"]),
        Some(&json!("success"))
    );
    assert_eq!(printed(&rest, "stderr").len() as u64, limits::LOG_BYTES_MAX);
    let mut heard = Vec::new();
    let read = tokio::time::timeout(Duration::from_secs(10), stuck.read_to_end(&mut heard));
    let _ = read.await.expect("it was dropped");
    let heard = String::from_utf8_lossy(&heard);
    assert!(
        heard.contains("event: stderr") && !heard.contains("event: result"),
        "{}",
        heard.len()
    );
}

/// O-21: what is watched is what is recorded, and never more.
#[tokio::test]
async fn live_stream_never_shows_secret() {
    let Some(door) = ServedWorld::on(super::BACKEND, ConnectionLimits::default()).await else {
        return;
    };
    let world = &door.world;
    let secret = "hunter2-and-more";
    let value = SecretValue::new(secret.to_owned()).unwrap();
    let name = "API_TOKEN".parse().unwrap();
    world.secrets().set(world.tenant(), &name, &value).await.unwrap();
    let program = r#"import json, os, sys, time
sys.path.insert(0, '/sandbox/runtime')
from runtime import log
token = os.environ['API_TOKEN']
print('plain', token, flush=True)
log.info('it is ' + token, token=token)
log.info('no secret')
for char in token + ' and ' + token[:9]:
    sys.stderr.write(char); sys.stderr.flush(); time.sleep(0.01)
time.sleep(0.2)
"#;
    let (mut follow, run) = world
        .watch(archive(
            Language::Python,
            "permissions: {secrets: [API_TOKEN]}\n",
            program,
        ))
        .await;
    let (mut printed, mut lines) = ([Vec::new(), Vec::new()], Vec::new());
    while let Some(news) = follow.next().await {
        match news {
            TranscriptEvent::Printed { stream, bytes } => printed[stream as usize].extend(bytes),
            TranscriptEvent::Logged(line) => lines.push(line),
            TranscriptEvent::Result(_) => break,
            TranscriptEvent::Status(_) | TranscriptEvent::End { .. } => {}
        }
        let seen = format!("{} {lines:?}", String::from_utf8_lossy(&printed.concat()));
        assert!(
            !seen.contains("hunter2-and-") && !seen.contains("and-more"),
            "{seen}"
        );
    }
    let execution = run.await.unwrap().unwrap();
    assert_eq!(execution.status, Status::Success);
    let logs = execution.outcome.unwrap().logs;
    let parts = logs.parts().map(|part| match part.content {
        PartContent::Stdout(bytes) | PartContent::Stderr(bytes) => {
            String::from_utf8_lossy(bytes).into_owned()
        }
        PartContent::Log(lines) => format!("{lines:?}"),
    });
    let parts = parts.collect::<Vec<_>>().concat();
    assert!(
        !parts.contains("hunter2-and-") && !parts.contains("and-more"),
        "{parts}"
    );
    assert_eq!(printed, [logs.stdout, logs.stderr]);
    assert_eq!((lines.len(), lines), (2, logs.lines));
    assert_eq!(String::from_utf8_lossy(&printed[0]), "plain ***\n");
}

#[tokio::test]
async fn follows_logs_to_end_byte_for_byte() {
    let Some(door) = ServedWorld::on(super::BACKEND, ConnectionLimits::default()).await else {
        return;
    };
    let mut coming = door.run(Version::Http1, &code(TALKS)).await;
    let id = id_of(&until_printed(&mut coming, "ä1").await);
    let path = |query: &str| format!("/v1/executions/{id}/logs{query}");
    let mut out = door.get(&path("?follow=true&stream=stdout"), &[]).await;
    assert_eq!(out.content_type, "text/plain; charset=utf-8");
    let mut begun = out.piece().await.unwrap().to_vec();
    assert!(begun.starts_with("ä1\n".as_bytes()), "before it has ended");
    let both = door.get(&path("?follow=true"), &[]).await;
    // From the beginning: it may have come together with what was waited for before.
    until_printed(&mut door.get(&path_of(&id), &[]).await, "ready").await;
    door.cancel(&id).await;
    let (rest, is_whole) = out.bytes().await;
    begun.extend(rest);
    assert!(is_whole);
    let kept = door.get(&path("?stream=stdout"), &[]).await.bytes().await.0;
    assert_eq!(begun, kept);
    let (both, is_whole) = both.bytes().await;
    let all = door.get(&path(""), &[]).await.bytes().await.0;
    assert_eq!((both.len(), is_whole), (all.len(), true));
    let late = door.get(&path("?follow=true"), &[]).await.bytes().await;
    // A character whose bytes arrived apart is never split, so its place may differ.
    let sorted = |mut bytes: Vec<u8>| {
        bytes.sort_unstable();
        bytes
    };
    assert_eq!((sorted(late.0), late.1), (sorted(all), true));
}

/// Parts of both streams and of the log are recorded in order of arrival.
#[tokio::test]
async fn records_order_and_time_of_output() {
    let Some(door) = ServedWorld::on(super::BACKEND, ConnectionLimits::default()).await else {
        return;
    };
    let program = "\
import sys, time
from runtime import log
for part in range(3):
    print('out', part, flush=True)
    time.sleep(0.1)
    print('err', part, file=sys.stderr, flush=True)
    time.sleep(0.1)
    log.info('line')
    time.sleep(0.1)
";
    let mut coming = door.run(Version::Http1, &code(program)).await;
    let id = id_of(&until_printed(&mut coming, "out 2").await);
    drop(coming.bytes().await);
    let path = |query: &str| format!("/v1/executions/{id}/logs?timestamps=true{query}");
    let shown = door.get(&path(""), &[]).await.bytes().await.0;
    let shown: Value = serde_json::from_slice(&shown).unwrap();
    let parts = shown["parts"].as_array().unwrap();
    let texts: Vec<_> = parts.iter().map(|part| part["text"].as_str().unwrap()).collect();
    let expected = (0..3).flat_map(|n| {
        [
            format!("out {n}\n"),
            format!("err {n}\n"),
            "INFO line\n".to_owned(),
        ]
    });
    assert_eq!(texts, expected.collect::<Vec<_>>());
    let time = |part: &Value| part["time"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    // A busy machine moves single parts by more than the pauses between them.
    assert!(parts.is_sorted_by_key(time), "{parts:#?}");
    let span = time(parts.last().unwrap()) - time(&parts[0]);
    assert!(span.total(jiff::Unit::Millisecond).unwrap() > 600.0, "{parts:#?}");
    let only = door.get(&path("&stream=stderr"), &[]).await.bytes().await.0;
    let only: Value = serde_json::from_slice(&only).unwrap();
    assert_eq!(only["parts"].as_array().unwrap().len(), 3);
    let refused = door.get(&path("&follow=true"), &[]).await.bytes().await.0;
    assert!(String::from_utf8_lossy(&refused).contains("timestamps: not with follow=true"));
}
