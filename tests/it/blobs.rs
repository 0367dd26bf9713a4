//! Blobs in real sandboxes: into `/blobs`, out of `/sandbox/out/blobs`.

use std::io::Write as _;

use serde_json::json;
use skillbox::engine::{NewBlob, RunRequest, RunSpec};
use skillbox::error::Code;
use skillbox::execution::Status;
use skillbox::ids::Digest;
use skillbox::limits;
use skillbox::skill::Language;

use crate::outcomes::{output, stderr, stdout, succeeded};
use crate::world::World;

fn file(content: &[u8]) -> std::fs::File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(content).unwrap();
    file
}

async fn keep(world: &World, content: &[u8]) -> Digest {
    let new = NewBlob {
        content: file(content),
        media_type: None,
        life: None,
    };
    let (record, _) = world.blobs().add(world.tenant(), new).await.unwrap();
    assert_eq!(record.digest, Digest::of(content));
    record.digest
}

fn with(blobs: Vec<Digest>) -> RunSpec {
    RunSpec {
        blobs,
        ..RunSpec::default()
    }
}

const LOOK: &str = "import hashlib, json, os
seen = {}
for name in sorted(os.listdir('/blobs')):
    path = '/blobs/' + name
    data = open(path, 'rb').read()
    seen[name] = [len(data), hashlib.sha256(data).hexdigest() == name, oct(os.stat(path).st_mode & 0o777)]
json.dump(seen, open(os.environ['SANDBOX_OUTPUT'], 'w'))";

#[tokio::test]
async fn mounts_only_requested_blobs_by_digest() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    let (kept, empty) = (keep(&world, &vec![7; 3 << 20]).await, keep(&world, b"").await);
    keep(&world, b"another").await;
    let request = RunRequest {
        blob_contents: vec![file(b"given")],
        ..with(vec![kept, empty, kept]).into()
    };
    let execution = world.run(Language::Python, LOOK, request).await;
    let outcome = execution.outcome.unwrap();
    let seen = output(&outcome);
    assert_eq!(
        seen,
        json!({
            kept.hex(): [3 << 20, true, "0o444"],
            Digest::of(b"given").hex(): [5, true, "0o444"],
            empty.hex(): [0, true, "0o444"],
        })
    );
    let none = world
        .run(Language::Python, LOOK, RunSpec::default())
        .await
        .outcome
        .unwrap();
    assert_eq!(output(&none), json!({}));
    // What was handed over is not kept.
    let found = world.blobs().get(world.tenant(), &Digest::of(b"given")).await;
    assert_eq!(found.unwrap_err().code(), Code::NotFound);
}

#[tokio::test]
async fn accepts_blobs_up_to_limit_and_rejects_one_byte_more() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    let most = usize::try_from(limits::INPUT_BLOBS_BYTES_MAX).unwrap();
    let request = || {
        let half = |byte| file(&vec![byte; most / 2]);
        RunRequest {
            blob_contents: vec![half(1), half(2)],
            ..RunRequest::default()
        }
    };
    succeeded(world.run(Language::Python, LOOK, request()).await);
    let mut one_more = request();
    one_more.blob_contents.push(file(b"x"));
    let refused = world.try_run(Language::Python, LOOK, one_more).await.unwrap_err();
    assert_eq!(refused.code(), Code::TooLarge);
}

#[tokio::test]
async fn reports_missing_blob_before_start_and_record() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    let missing = Digest::of(b"nowhere");
    let refused = world.try_run(Language::Python, LOOK, with(vec![missing])).await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.code(), Code::NotFound);
    assert!(refused.to_string().contains(&missing.to_string()), "{refused}");
    assert!(world.has_recorded_nothing().await);
}

const MAKE: &str = "import hashlib, os
def put(data, name=None):
    open('/sandbox/out/blobs/' + (name or hashlib.sha256(data).hexdigest()), 'wb').write(data)
";

#[tokio::test]
async fn stores_and_reports_blobs_written_by_program() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    let program = format!("{MAKE}put(b'hello'); put(bytes(1 << 20)); put(b'')");
    let execution = world.run(Language::Python, &program, RunSpec::default()).await;
    let outcome = execution.outcome.as_ref().unwrap();
    assert_eq!(
        (outcome.status, outcome.skipped_total),
        (Status::Success, 0),
        "{}",
        stderr(outcome)
    );
    let mut told: Vec<_> = outcome
        .blobs
        .iter()
        .map(|blob| (blob.size, blob.blob_id))
        .collect();
    told.sort_unstable();
    assert_eq!(
        told,
        [
            (0, Digest::of(b"")),
            (5, Digest::of(b"hello")),
            (1 << 20, Digest::of(&vec![0; 1 << 20]))
        ]
    );
    let recorded = world
        .executions()
        .get(world.tenant(), execution.new.id)
        .await
        .unwrap();
    assert_eq!(recorded.outcome.unwrap().blobs, outcome.blobs);
    // And the next one finds it.
    let next = "import os; print(open('/blobs/' + os.listdir('/blobs')[0]).read())";
    let ask = with(vec![Digest::of(b"hello")]);
    let outcome = world.run(Language::Python, next, ask).await.outcome.unwrap();
    assert_eq!(stdout(&outcome), "hello\n");
}

/// O-03, O-04, O-06: a name is believed when the content was found to be that.
#[tokio::test]
async fn skips_and_reports_blobs_with_wrong_digest() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    let program = format!(
        "{MAKE}
put(b'good')
put(b'other', 'a' * 64)
put(b'x', 'report.txt')
put(b'x', 'A' * 64)
os.symlink('/etc/passwd', '/sandbox/out/blobs/' + 'b' * 64)
os.mkfifo('/sandbox/out/blobs/' + 'c' * 64)
os.mkdir('/sandbox/out/blobs/' + 'd' * 64)"
    );
    let outcome = world
        .run(Language::Python, &program, RunSpec::default())
        .await
        .outcome
        .unwrap();
    assert_eq!(outcome.blobs.len(), 1, "{}", stderr(&outcome));
    assert_eq!(outcome.blobs[0].blob_id, Digest::of(b"good"));
    let mut skipped: Vec<_> = outcome
        .skipped
        .iter()
        .map(|skipped| {
            (
                skipped.path.trim_start_matches("/sandbox/out/blobs/").to_owned(),
                skipped.reason.as_str(),
            )
        })
        .collect();
    skipped.sort();
    let named = |letter: &str| letter.repeat(64);
    assert_eq!(
        skipped,
        [
            (named("A"), "name"),
            (named("a"), "content"),
            (named("b"), "link"),
            (named("c"), "special"),
            (named("d"), "special"),
            ("report.txt".to_owned(), "name"),
        ]
    );
    assert_eq!(outcome.skipped_total, 6);
    let page = skillbox::engine::PageRequest { after: None, rows: 9 };
    assert_eq!(
        world
            .blobs()
            .list(world.tenant(), page)
            .await
            .unwrap()
            .items
            .len(),
        1
    );
}

#[tokio::test]
async fn skips_and_reports_blobs_above_quota() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    // The quota of tests is 64 MiB.
    keep(&world, &vec![1; 40 << 20]).await;
    keep(&world, &vec![2; 20 << 20]).await;
    let program = format!("{MAKE}put(bytes(8 << 20)); put(b'small')");
    let outcome = world
        .run(Language::Python, &program, RunSpec::default())
        .await
        .outcome
        .unwrap();
    let kept: Vec<_> = outcome.blobs.iter().map(|blob| blob.size).collect();
    assert_eq!((outcome.status, kept), (Status::Success, vec![5]));
    assert_eq!(
        (outcome.skipped_total, outcome.skipped[0].reason.as_str()),
        (1, "quota")
    );
    let many = format!("{MAKE}[put(str(n).encode()) for n in range(103)]");
    let outcome = world
        .run(Language::Python, &many, RunSpec::default())
        .await
        .outcome
        .unwrap();
    assert_eq!(
        (outcome.blobs.len(), outcome.skipped_total),
        (limits::OUTPUT_BLOBS_MAX, 3)
    );
    assert_eq!(outcome.skipped[0].reason, "too_many");
}
