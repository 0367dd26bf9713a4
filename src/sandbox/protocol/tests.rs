//! Guests that do not keep to their part: the host gets away from each of them in time, and says what happened.

use tokio::io::DuplexStream;
use tokio_util::sync::CancellationToken;

use super::results::is_plain;
use super::*;
use crate::bundle::artifacts::ArtifactTar;
use crate::guest::wire::{Item, Side};
use crate::secret::{Mask, SecretValue};

/// A guest with its streams accepted, to be played by a test.
struct Player {
    _link: Link,
    control: wire::Stream,
    inputs: wire::Stream,
    stdout: wire::Stream,
    _stderr: wire::Stream,
    _log: wire::Stream,
    results: wire::Stream,
}

impl Player {
    async fn on(socket: DuplexStream) -> Self {
        let mut link = Link::new(socket, Side::Guest);
        let mut streams = std::collections::HashMap::new();
        for _ in Channel::ALL {
            let (channel, stream) = link.accept().await.unwrap();
            streams.insert(channel, stream);
        }
        let mut take = |channel| streams.remove(&channel).unwrap();
        Self {
            _link: link,
            control: take(Channel::Control),
            inputs: take(Channel::Inputs),
            stdout: take(Channel::Stdout),
            _stderr: take(Channel::Stderr),
            _log: take(Channel::Log),
            results: take(Channel::Results),
        }
    }

    async fn send(&mut self, frame: ToHost) {
        wire::send(&mut self.control, &frame).await.unwrap();
    }

    /// That all was sent, of a program that wrote and used nothing.
    async fn send_done(&mut self) {
        let (stdout_bytes, stderr_bytes, usage) = (0, 0, wire::GuestUsage::default());
        self.send(ToHost::Done {
            stdout_bytes,
            stderr_bytes,
            log_lines_bytes: 0,
            usage,
        })
        .await;
    }

    /// Ends every stream; the connection stays.
    fn leave(self) -> Link {
        self._link
    }

    async fn come_up(&mut self) {
        let version = wire::VERSION;
        self.send(ToHost::Hello { version }).await;
        self.send(ToHost::Started).await;
    }
}

fn job(argument_bytes: usize) -> Job {
    let mut job = Job::sample();
    job.program.argv = vec!["x".repeat(argument_bytes)];
    job
}

/// Drives what `guest` does with its end of the connection. Returns how long it took.
async fn drive_with<F>(
    job: &Job,
    cancel: &CancellationToken,
    guest: impl FnOnce(DuplexStream) -> F,
) -> (GuestReport, Duration)
where
    F: Future<Output = ()> + Send + 'static,
{
    let (near, far) = tokio::io::duplex(64 * 1024);
    let guest = tokio::spawn(guest(far));
    let mut artifacts = ArtifactTar::create_in(&std::env::temp_dir());
    let mut blobs = ArtifactTar::create_in(&std::env::temp_dir());
    let begun = Instant::now();
    let (go, start) = oneshot::channel();
    go.send(()).unwrap();
    let transcript = Transcript::default();
    let mut context = RunContext {
        transcript: &transcript,
        artifacts: &mut artifacts,
        blobs: &mut blobs,
        cancel: cancel.clone(),
        start,
    };
    let report = drive(Guest::at(near), job, &mut context).await;
    let took = begun.elapsed();
    guest.abort();
    (report, took)
}

/// Holds on to the connection and never reads from it.
async fn deaf(socket: DuplexStream) {
    let _held = socket;
    std::future::pending().await
}

#[tokio::test(start_paused = true)]
async fn host_does_not_wait_for_a_guest_that_reads_nothing() {
    // More than the connection takes unread: the host is stuck while it still says what to start.
    let (report, took) = drive_with(&job(1 << 20), &CancellationToken::new(), deaf).await;
    assert!((report.end.is_none(), report.hello, report.complete) == (true, false, false));
    assert!(
        took <= limits::SANDBOX_START_MAX + Duration::from_secs(1),
        "{took:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn cancels_before_the_guest_connects() {
    let cancel = CancellationToken::new();
    cancel.cancel();
    let (report, took) = drive_with(&job(1), &cancel, deaf).await;
    assert_eq!(report.end, Some(ProgramEnd::Cancelled));
    assert_eq!(report.logs.stdout_total, 0);
    assert!(took <= limits::KILL_GRACE + Duration::from_secs(1), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn cancelled_guest_gets_no_extra_time_by_sending() {
    let cancel = CancellationToken::new();
    cancel.cancel();
    let slow = |socket| async {
        let mut guest = Player::on(socket).await;
        tokio::time::sleep(limits::KILL_GRACE / 2).await;
        guest.come_up().await;
        std::future::pending().await
    };
    let (report, took) = drive_with(&job(1), &cancel, slow).await;
    assert_eq!(report.end, Some(ProgramEnd::Cancelled));
    assert!(report.started_at.is_some());
    assert!(took <= limits::KILL_GRACE + Duration::from_secs(1), "{took:?}");
}

/// P8, P9.
#[tokio::test(start_paused = true)]
async fn reports_what_a_late_guest_did_not_send() {
    let job = job(1);
    let stuck = |socket| async {
        let mut guest = Player::on(socket).await;
        guest.come_up().await;
        guest.stdout.write_all(b"heard").await.unwrap();
        guest.stdout.flush().await.unwrap();
        std::future::pending().await
    };
    let (report, took) = drive_with(&job, &CancellationToken::new(), stuck).await;
    assert_eq!((report.end, report.complete), (Some(ProgramEnd::TimedOut), false));
    assert_eq!(report.logs.stdout, b"heard");
    assert!(report.logs.truncated());
    assert!(
        took <= job.sandbox.limits.timeout + Duration::from_secs(1),
        "{took:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn abandons_guest_with_endless_streams() {
    let job = job(1);
    let endless = |socket| async {
        let mut guest = Player::on(socket).await;
        guest.come_up().await;
        guest
            .send(ToHost::Ended {
                end: ProgramEnd::Exited(0),
            })
            .await;
        guest.send_done().await;
        std::future::pending().await
    };
    let (report, took) = drive_with(&job, &CancellationToken::new(), endless).await;
    assert_eq!(
        (report.end, report.complete),
        (Some(ProgramEnd::Exited(0)), false)
    );
    assert!(took <= limits::COLLECT_MAX + Duration::from_secs(1), "{took:?}");
}

/// Which of the two is noticed first is chance, hence the many times.
#[tokio::test(start_paused = true)]
async fn cancel_after_the_end_loses_no_output() {
    for _ in 0..40 {
        let cancel = CancellationToken::new();
        let late = cancel.clone();
        let done = |socket| async move {
            let mut guest = Player::on(socket).await;
            guest.inputs.read_to_end(&mut Vec::new()).await.unwrap();
            guest.come_up().await;
            guest
                .send(ToHost::Ended {
                    end: ProgramEnd::Exited(0),
                })
                .await;
            let end = Item::End { skipped_total: 0 };
            wire::send(&mut guest.results, &end).await.unwrap();
            guest.send_done().await;
            let _link = guest.leave();
            late.cancel();
            std::future::pending().await
        };
        let (report, _) = drive_with(&job(1), &cancel, done).await;
        assert_eq!((report.end, report.complete), (Some(ProgramEnd::Exited(0)), true));
    }
}

#[tokio::test(start_paused = true)]
async fn rejects_states_out_of_order() {
    let twice = |socket| async {
        let mut guest = Player::on(socket).await;
        guest.come_up().await;
        guest.send(ToHost::Started).await;
        std::future::pending().await
    };
    let (report, took) = drive_with(&job(1), &CancellationToken::new(), twice).await;
    assert_eq!((report.end, report.complete), (None, false));
    assert!(took < Duration::from_secs(1), "{took:?}");
}

/// Every name and count is checked again: such results are never taken for whole.
#[tokio::test(start_paused = true)]
async fn rejects_invalid_results() {
    let file = |path: &str, size| Item::File {
        path: path.to_owned(),
        size,
    };
    let blob = |name: &str, size| Item::Blob {
        name: name.to_owned(),
        size,
    };
    let impossible = [
        (vec![file("../x", 0)], 0),
        (vec![file("a", 0), file("a", 0)], 1),
        (vec![file("a", limits::FILES_BYTES_MAX + 1)], 0),
        (vec![file(&"a".repeat(limits::FILE_PATH_BYTES_MAX + 1), 0)], 0),
        (
            (0..=256).map(|n| file(&format!("{n:04096}"), 0)).collect(),
            limits::FILE_PATHS_BYTES_MAX / limits::FILE_PATH_BYTES_MAX,
        ),
        (vec![blob("../../x", 0)], 0),
        (vec![blob(&"A".repeat(64), 0)], 0),
        (vec![blob(&"a".repeat(64), limits::OUTPUT_BLOBS_BYTES_MAX + 1)], 0),
        (
            (0..=limits::OUTPUT_BLOBS_MAX)
                .map(|n| blob(&format!("{n:064x}"), 0))
                .collect(),
            0,
        ),
        (
            vec![Item::Output {
                size: limits::OUTPUT_BYTES_MAX + 1,
            }],
            0,
        ),
        (
            (0..=limits::FILES_MAX).map(|n| file(&n.to_string(), 0)).collect(),
            limits::FILES_MAX,
        ),
    ];
    for (items, taken) in impossible {
        let lying = |socket| async {
            let mut guest = Player::on(socket).await;
            guest.come_up().await;
            for item in items {
                if wire::send(&mut guest.results, &item).await.is_err() {
                    break;
                }
            }
            std::future::pending().await
        };
        let (report, _) = drive_with(&job(1), &CancellationToken::new(), lying).await;
        assert!(!report.complete);
        assert_eq!(report.output, ProgramOutput::Missing);
        let paths: Vec<_> = report.files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths.len(), taken, "{paths:?}");
    }
}

/// O-21: of names that differ in a secret alone the second is left out; nothing else is refused for it.
#[tokio::test(start_paused = true)]
async fn reports_masked_names_once_and_blobs_by_content() {
    let secrets = ["hunter2", "hunter3"].map(|text| SecretValue::new(text.to_owned()).unwrap());
    let mut job = job(1);
    job.program.mask = Mask::new(&secrets);
    let empty = crate::ids::Digest::of(b"");
    let leaving = |socket| async move {
        let mut guest = Player::on(socket).await;
        guest.inputs.read_to_end(&mut Vec::new()).await.unwrap();
        guest.come_up().await;
        guest
            .send(ToHost::Ended {
                end: ProgramEnd::Exited(0),
            })
            .await;
        for path in ["a-hunter2", "a-hunter3", "a-***", "b"] {
            let path = path.to_owned();
            let file = Item::File { path, size: 1 };
            wire::send(&mut guest.results, &file).await.unwrap();
            guest.results.write_all(b"x").await.unwrap();
        }
        for name in [empty.hex(), "a".repeat(64)] {
            let blob = Item::Blob { name, size: 0 };
            wire::send(&mut guest.results, &blob).await.unwrap();
        }
        let end = Item::End { skipped_total: 0 };
        wire::send(&mut guest.results, &end).await.unwrap();
        guest.send_done().await;
        let _link = guest.leave();
        std::future::pending().await
    };
    let (report, _) = drive_with(&job, &CancellationToken::new(), leaving).await;
    assert!(report.complete);
    let paths: Vec<_> = report.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, ["a-***", "b"]);
    let blobs: Vec<_> = report.blobs.iter().map(|blob| blob.sha256).collect();
    assert_eq!(blobs, [empty]);
    let skipped: Vec<_> = report
        .skipped
        .iter()
        .map(|skipped| skipped.reason.as_str())
        .collect();
    assert_eq!(
        (skipped, report.skipped_total),
        (vec!["duplicate", "duplicate", "content"], 3)
    );
}

#[test]
fn accepts_plain_paths_only() {
    for wrong in [
        "", "/a", "a/", "a//b", "..", "a/../b", "./a", "a\0", "a\n", "\u{9b}a",
    ] {
        assert!(!is_plain(wrong), "{wrong:?}");
    }
    assert!(is_plain("a b/ü.txt"));
}

/// A sandbox that was removed before the start signal costs nothing but another one.
#[tokio::test(start_paused = true)]
async fn another_sandbox_gets_the_same_context() {
    let mut artifacts = ArtifactTar::create_in(&std::env::temp_dir());
    let mut blobs = ArtifactTar::create_in(&std::env::temp_dir());
    let (go, start) = oneshot::channel();
    let transcript = Transcript::default();
    let mut context = RunContext {
        transcript: &transcript,
        artifacts: &mut artifacts,
        blobs: &mut blobs,
        cancel: CancellationToken::new(),
        start,
    };
    let job = job(1);
    let (near, far) = tokio::io::duplex(64 * 1024);
    drop(far);
    let stillborn = drive(Guest::at(near), &job, &mut context).await;
    assert!(stillborn.is_stillborn());
    go.send(()).unwrap();
    assert!((&mut context.start).await.is_ok());
}
