//! What a program says on its two streams, and what the server bears of it.

use base64::Engine as _;
use serde_json::json;
use skillbox::execution::{Outcome, Status};
use skillbox::skill::Language;

use crate::outcomes::{output, stderr};
use crate::sandbox_oracles::{Attack, ObservedWorld};
use crate::world::{alone, missing};

const MIB: usize = 1024 * 1024;

/// Makes a program say these bytes, and checks that they come out as they are.
async fn assert_verbatim(watched: &ObservedWorld, what: &str, bytes: &[u8]) {
    let said = base64::engine::general_purpose::STANDARD.encode(bytes);
    let input = json!({ "said": said, "times": 3 }).to_string();
    let outcome = watched
        .run(Attack::python(include_str!("../../src/prove/probes/speak.py")).input(&input))
        .await;
    assert_eq!(
        outcome.status,
        Status::Success,
        "{what}: {:?} {}",
        outcome.error,
        stderr(&outcome)
    );
    assert_eq!(output(&outcome), json!({ "other descriptors": [] }), "{what}");
    for (kept, total) in [
        (&outcome.logs.stdout, outcome.logs.stdout_total),
        (&outcome.logs.stderr, outcome.logs.stderr_total),
    ] {
        assert!(
            *kept == bytes.repeat(3),
            "{what}: {:?}",
            String::from_utf8_lossy(kept)
        );
        assert_eq!(total, 3 * bytes.len() as u64, "{what}");
    }
    assert!(!outcome.logs.truncated());
}

/// O-17, O-18: all of it is text, none of it is heard.
#[tokio::test]
async fn preserves_forged_frames_and_arbitrary_bytes() {
    let Some(watched) = ObservedWorld::on(super::BACKEND).await else {
        return;
    };
    let frame = |json: &str| {
        [
            &u32::try_from(json.len()).unwrap().to_be_bytes()[..],
            json.as_bytes(),
        ]
        .concat()
    };
    let ended = r#"{"type":"ended","end":{"exited":0}}"#;
    let done = r#"{"type":"done","stdout_bytes":0,"stderr_bytes":0,"usage":{"cpu_ms":0,"memory_peak_bytes":0,"processes_peak":0,"oom_kills":9}}"#;
    // Data, window update with SYN, reset, ping and go-away of stream 1.
    let yamux: Vec<u8> = [
        [0u8, 0, 0, 8],
        [0, 1, 0, 1],
        [0, 0, 0, 8],
        [0, 2, 0, 1],
        [0, 3, 0, 0],
    ]
    .iter()
    .flat_map(|head| [&head[..], &[0, 0, 0, 1, 0, 0, 0, 0]].concat())
    .collect();
    let cases = [
        (
            "engine stream headers",
            b"\x01\0\0\0\0\0\0\x05hello\x02\0\0\0\xff\xff\xff\xff\0\0\0\0".to_vec(),
        ),
        (
            "our frames",
            [frame(ended), frame(done), frame(r#"{"type":"cancel"}"#)].concat(),
        ),
        ("channel bytes", b"cioerc".to_vec()),
        ("multiplexer frames", yamux),
        (
            "log lines",
            b"{\"level\":\"error\",\"message\":\"forged\"}\nERROR skillbox: forged\r\n".to_vec(),
        ),
        (
            "server-sent events",
            b"event: end\ndata: {\"status\":\"success\"}\n\nretry: 1\n\n".to_vec(),
        ),
        ("invalid UTF-8", b"\xff\xfe\xc0\xaf\xed\xa0\x80\xf5".to_vec()),
        ("NUL and controls", (0..=255).collect()),
        (
            "escape sequences",
            b"\x1b]0;title\x07\x1b[2J\x1b[31m\x9b6n\x1bc".to_vec(),
        ),
        ("carriage returns", b"\r".repeat(10_000)),
    ];
    for (what, bytes) in cases {
        assert_verbatim(&watched, what, &bytes).await;
    }
    watched.close().await;
}

/// O-17: exact up to the limit, with the total reported.
#[tokio::test]
async fn truncates_an_endless_line_at_the_limit() {
    let Some(watched) = ObservedWorld::on(super::BACKEND).await else {
        return;
    };
    let program = "head -c 200000000 /dev/zero | tr '\\0' y; head -c 1048577 /dev/zero >&2";
    let outcome = watched.run(Attack::plain(Language::Bash, program)).await;
    assert_eq!(outcome.status, Status::Success, "{:?}", outcome.error);
    assert!(outcome.logs.stdout == b"y".repeat(MIB) && outcome.logs.stderr == b"\0".repeat(MIB));
    assert_eq!(
        (outcome.logs.stdout_total, outcome.logs.stderr_total),
        (200_000_000, 1_048_577)
    );
    assert!(outcome.logs.truncated());
    watched.close().await;
}

/// A line of `/proc/self/status` in bytes.
fn memory(key: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))
        .unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

/// The memory of the server for one hostile program: at most 64 MiB at its peak.
async fn assert_bearable(watched: &ObservedWorld, what: &str, attack: Attack) -> Outcome {
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = memory("VmRSS");
    let outcome = watched.run(attack).await;
    let peak = memory("VmHWM").saturating_sub(before);
    println!("{what}: {} MiB, {:?}", peak / MIB as u64, outcome.timings);
    assert!(
        peak <= 64 * MIB as u64,
        "{what} cost the server {} MiB",
        peak / MIB as u64
    );
    outcome
}

/// R-07, O-07, O-08.
#[tokio::test]
async fn floods_of_logs_and_files_cost_the_server_little_memory() {
    if !std::path::Path::new("/proc/self/clear_refs").exists() {
        return missing("proc", "only Linux tells a process its peak of memory");
    }
    let (_, room) = module_path!().split_once("::").unwrap();
    let test = format!("{room}::floods_of_logs_and_files_cost_the_server_little_memory");
    if !alone(&test).await {
        return;
    }
    let Some(watched) = ObservedWorld::on(super::BACKEND).await else {
        return;
    };
    // Once around, so that what is made only once does not count.
    watched.run(Attack::plain(Language::Bash, "true")).await;
    let flood = Attack::python(include_str!("../../src/prove/probes/flood.py"))
        .input(r#"{"blocks": 8192}"#)
        .seconds(60.0);
    let outcome = assert_bearable(&watched, "1 GB of logs", flood).await;
    assert_eq!(outcome.status, Status::Success, "{:?}", outcome.error);
    let line: Vec<u8> = (0..8192)
        .flat_map(|number| format!("{number:07}\n").into_bytes())
        .collect();
    assert!(outcome.logs.stdout == line.repeat(16) && outcome.logs.stderr == line.repeat(16));
    assert_eq!(outcome.logs.stdout_total + outcome.logs.stderr_total, 1 << 30);

    let tree = |case: &str| {
        Attack::python(include_str!("../../src/prove/probes/tree.py"))
            .input(&json!({ "case": case, "canaries": [] }).to_string())
    };
    let outcome = assert_bearable(&watched, "a sparse file of 1 TiB", tree("one_sparse")).await;
    assert_eq!((outcome.files.len(), outcome.skipped_total), (1, 1));
    assert_eq!(
        (
            outcome.skipped[0].path.as_str(),
            outcome.skipped[0].reason.as_str()
        ),
        ("huge", "too_large")
    );

    let outcome = assert_bearable(&watched, "10,000 sparse files", tree("many_sparse")).await;
    assert_eq!((outcome.files.len(), outcome.skipped_total), (4, 9996));
    assert!(
        outcome
            .skipped
            .iter()
            .all(|skipped| skipped.reason == "too_large")
            && outcome.skipped.len() == 50
    );

    let outcome = assert_bearable(&watched, "100,000 files", tree("many")).await;
    let made = output(&outcome)["made"].as_u64().unwrap();
    assert!((16_000..=16_384).contains(&made), "{made}");
    assert_eq!(
        (outcome.files.len() as u64, outcome.skipped_total),
        (1000, made - 1 - 1000)
    );
    assert!(outcome.skipped.iter().all(|skipped| skipped.reason == "too_many"));
    assert!(outcome.timings.collect_ms < 10_000.0, "{:?}", outcome.timings);

    let outcome = assert_bearable(&watched, "3,000 folders", tree("wide")).await;
    assert_eq!(outcome.files.len() as u64 + outcome.skipped_total, 3000);
    assert_bearable(&watched, "1,000 FIFOs", tree("special")).await;
    watched.close().await;
}
