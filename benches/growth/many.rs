//! Many that want something at once: readers of one execution's events, and executions that one tenant asks for beside another.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::KEEP;
use crate::judged::{Judged, Most};
use crate::measure::{Row, Served, milliseconds};
use crate::memory::mib;
use crate::spoken::{BASH, Spoken};

const READERS: usize = 1_000;
const SUBMISSIONS: usize = 10_000;
const SUBMITTERS: usize = 4;
const SAMPLES: usize = 150;
/// Runs until the bench ends it.
const SLEEPER: Spoken = Spoken {
    program: "sleep 100\n",
    ..BASH
};

fn json(served: &Served, key: &str, path: &str, body: &Value) -> Value {
    let request = served.agent.post(format!("{}{path}", served.server.url));
    let request = request
        .header("authorization", format!("Bearer {key}"))
        .header("content-type", "application/json");
    let text = request
        .send(body.to_string())
        .unwrap()
        .body_mut()
        .read_to_string()
        .unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Readers of the events of one execution that says nothing.
pub(crate) fn readers(judged: &mut Judged) {
    let served = Served::start_with(&KEEP, vec![SLEEPER.archive()]);
    let pid = served.server.process.id();
    let asked = json!({"skill": SLEEPER.name, "mode": "async"});
    let id = json(&served, &served.key, "/v1/executions", &asked)["execution_id"]
        .as_str()
        .unwrap()
        .to_owned();
    std::thread::sleep(Duration::from_secs(2));
    let before = mib(pid, "status", "VmRSS:");
    let address = served.server.url.strip_prefix("http://").unwrap();
    let request = format!(
        "GET /v1/executions/{id}/events HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {}\r\naccept: text/event-stream\r\n\r\n",
        served.key
    );
    let reader = || {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut head = [0; 12];
        stream.read_exact(&mut head).unwrap();
        assert_eq!(&head, b"HTTP/1.1 200", "{}", String::from_utf8_lossy(&head));
        stream
    };
    let streams: Vec<TcpStream> = std::iter::repeat_with(reader).take(READERS).collect();
    std::thread::sleep(Duration::from_secs(2));
    let more = mib(pid, "status", "VmRSS:") - before;
    drop(streams);
    json(
        &served,
        &served.key,
        &format!("/v1/executions/{id}/cancel"),
        &json!({}),
    );
    judged.line(format!(
        "readers: {READERS} idle event streams take {more:.1} MiB of RSS above {before:.1}"
    ));
    judged.bar(
        format!("{READERS} idle event streams, RSS in MiB"),
        more,
        Most::AtMost(32.0),
    );
}

/// What one tenant waits for while another asks for ten thousand executions.
pub(crate) fn submissions(judged: &mut Judged) {
    let most = SUBMISSIONS.to_string();
    let env = [&KEEP[..], &[("SKILLBOX_ASYNC_QUEUE", most.as_str())]].concat();
    let served = Served::start_with(&env, vec![BASH.archive()]);
    let other = json!({"name": "other", "scopes": ["run", "skills"], "tenant": "other"});
    let other = json(&served, &served.key, "/v1/keys", &other)["api_key"]
        .as_str()
        .unwrap()
        .to_owned();
    let mut archive = Vec::new();
    BASH.archive().read_to_end(&mut archive).unwrap();
    let publish = served.agent.post(format!("{}/v1/skills", served.server.url));
    let publish = publish.header("authorization", format!("Bearer {other}"));
    publish
        .header("content-type", "application/zip")
        .send(&archive[..])
        .unwrap();
    let one = || {
        std::thread::sleep(Duration::from_millis(10));
        let started = Instant::now();
        let answer = json(
            &served,
            &other,
            "/v1/executions",
            &json!({"skill": BASH.name, "input": {"x": 1}}),
        );
        let took = milliseconds(started);
        assert_eq!(answer["status"], "success", "{answer}");
        took
    };
    let mut quiet = Row::new("quiet");
    quiet.milliseconds = std::iter::repeat_with(one).take(SAMPLES + 10).skip(10).collect();
    let mut beside = Row::new("beside");
    let (sent, began) = (AtomicUsize::new(0), Instant::now());
    std::thread::scope(|scope| {
        for _ in 0..SUBMITTERS {
            scope.spawn(|| {
                while sent.fetch_add(1, Ordering::Relaxed) < SUBMISSIONS {
                    let asked = json!({"skill": BASH.name, "input": {"x": 1}, "mode": "async"});
                    let answer = json(&served, &served.key, "/v1/executions", &asked);
                    assert!(answer["execution_id"].is_string(), "{answer}");
                }
            });
        }
        while beside.milliseconds.len() < SAMPLES || sent.load(Ordering::Relaxed) < SUBMISSIONS {
            beside.milliseconds.push(one());
        }
    });
    let took = began.elapsed().as_secs_f64();
    judged.line(format!(
        "submissions: {SUBMISSIONS} of one tenant in {took:.0} s; another's p50 {:.1} -> {:.1} ms, p99 {:.1} -> {:.1} ms",
        quiet.quantile(0.5), beside.quantile(0.5), quiet.quantile(0.99), beside.quantile(0.99)
    ));
    let ratio = beside.quantile(0.99) / quiet.quantile(0.99);
    judged.bar(
        format!("{SUBMISSIONS} submissions: another tenant's p99 / quiet"),
        ratio,
        Most::AtMost(2.0),
    );
}
