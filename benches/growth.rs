//! What does not get slower or larger: with a million executions in the history, with a gibibyte of files, after ten thousand
//! runs, with a thousand readers, beside a tenant that asks for ten thousand.
//!
//! `cargo bench --bench growth -- --only history,files` runs these parts of `history`, `files`, `runs`,
//! `readers`, `submissions`, `counting`.
//! Native sandbox, authentication on, records durable. Only a quiet machine gives figures that mean something.
#![expect(
    clippy::unwrap_used,
    reason = "a bench that cannot go on should stop where it stands"
)]

#[path = "peers/judged.rs"]
#[expect(dead_code, reason = "the other bench compares more")]
mod judged;
#[path = "growth/many.rs"]
mod many;
#[expect(dead_code, reason = "what benches share is more than this one needs")]
mod measure;
#[path = "peers/memory.rs"]
#[expect(dead_code, reason = "the other bench looks at more")]
mod memory;
#[path = "../tests/it/server.rs"]
#[expect(dead_code, reason = "the tests' server has more than this bench needs")]
mod server;
#[path = "peers/spoken.rs"]
#[expect(dead_code, reason = "the other bench runs more")]
mod spoken;
#[path = "../tests/it/world.rs"]
#[expect(dead_code, reason = "the tests' world has more than this bench needs")]
mod world;

use std::io::Read as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use skillbox::telemetry::{ExecutionCompletion, Latency, Metrics, RequestCompletion, StoredBytes};

use judged::{Judged, Most};
use measure::{Row, Served, milliseconds};
use memory::mib;
use server::Server;
use spoken::{BASH, PYTHON};

const FEW: u64 = 1_000;
const MANY: u64 = 1_000_000;
const ROUNDS: usize = 200;
const RUNS: usize = 10_000;
/// The largest blob, and how many make a gibibyte.
const BLOB_BYTES: usize = 64 << 20;
const BLOBS: usize = 16;
/// Nothing is forgotten, and a tenant may keep what is measured.
const KEEP: [(&str, &str); 4] = [
    ("SKILLBOX_SANDBOX_BACKEND", "native"),
    ("SKILLBOX_RETENTION_AGE", "off"),
    ("SKILLBOX_RETENTION_PER_TENANT", "off"),
    ("SKILLBOX_BLOBS_QUOTA", "3Gi"),
];

fn main() -> ExitCode {
    // `cargo test --benches` only asks whether it builds.
    if !std::env::args().any(|argument| argument == "--bench") {
        return ExitCode::SUCCESS;
    }
    let only = std::env::args()
        .skip_while(|argument| argument != "--only")
        .nth(1);
    let takes = |part: &str| {
        only.as_deref()
            .is_none_or(|only| only.split(',').any(|word| word == part))
    };
    let mut judged = Judged::default();
    for (part, measure) in [
        ("counting", counting as fn(&mut Judged)),
        ("history", history),
        ("files", files),
        ("runs", runs),
        ("readers", many::readers),
        ("submissions", many::submissions),
    ] {
        if takes(part) {
            measure(&mut judged);
        }
    }
    judged.print();
    ExitCode::from(u8::from(judged.missed() > 0))
}

impl Served {
    fn stream(&self, path: &str) -> ureq::BodyReader<'static> {
        let request = self.agent.get(format!("{}{path}", self.server.url));
        let response = request
            .header("authorization", format!("Bearer {}", self.key))
            .call()
            .unwrap();
        response.into_body().into_reader()
    }

    fn get(&self, path: &str) -> String {
        let mut text = String::new();
        self.stream(path).read_to_string(&mut text).unwrap();
        text
    }

    fn post(&self, path: &str, content_type: &str, body: &[u8]) -> String {
        let request = self.agent.post(format!("{}{path}", self.server.url));
        let request = request
            .header("authorization", format!("Bearer {}", self.key))
            .header("content-type", content_type);
        request.send(body).unwrap().body_mut().read_to_string().unwrap()
    }
}

/// A server with so many executions behind it, and the id of one in the middle.
struct Aged {
    served: Served,
    middle: String,
    /// The paths of list pages, with their names.
    pages: Vec<(&'static str, String)>,
}

impl Aged {
    fn start(executions: u64) -> Self {
        let served = Served::start_with(&KEEP, vec![PYTHON.archive()]);
        served.once(PYTHON.name);
        let Served {
            server,
            agent,
            key,
            _folder,
        } = served;
        let data = server.kill_9();
        fill(&data.join("skillbox.db"), executions);
        let served = Served {
            server: Server::start_with(&data, &KEEP),
            agent,
            key,
            _folder,
        };
        served.once(PYTHON.name);
        let mut aged = Self {
            served,
            middle: id(executions / 2),
            pages: Vec::new(),
        };
        aged.pages = aged.find_pages(executions);
        aged
    }

    /// The newest page, one in the middle and the last but one, of all and of those with a filter.
    fn find_pages(&self, executions: u64) -> Vec<(&'static str, String)> {
        let mut pages = Vec::new();
        for (filter, names) in [
            ("", ["list, newest", "list, middle", "list, deepest"]),
            (
                "&status=success&skill=python",
                ["list of one skill and status, newest", "… middle", "… deepest"],
            ),
        ] {
            pages.push((names[0], format!("/v1/executions?limit=50{filter}")));
            for (name, n) in [(names[1], executions / 2), (names[2], 110)] {
                let until = jiff::Timestamp::from_second(second(n)).unwrap();
                let path = format!("/v1/executions?limit=50{filter}&until={until}");
                let token = self.get(&path).1["next_page_token"].as_str().unwrap().to_owned();
                pages.push((name, format!("{path}&page_token={token}")));
            }
        }
        pages
    }

    fn get(&self, path: &str) -> (f64, serde_json::Value) {
        let started = Instant::now();
        let text = self.served.get(path);
        (milliseconds(started), serde_json::from_str(&text).unwrap())
    }
}

/// When the execution with this number was accepted.
fn second(n: u64) -> i64 {
    1_700_000_000 + i64::try_from(n).unwrap()
}

fn id(n: u64) -> String {
    format!("01900000-0000-7000-8000-{n:012x}")
}

/// Copies of the one execution that is there, with numbers up to `executions`, oldest first, in one transaction.
fn fill(path: &Path, executions: u64) {
    let mut database = Connection::open(path).unwrap();
    let transaction = database.transaction().unwrap();
    let columns = |table: &str| {
        let mut statement = transaction
            .prepare(&format!("select name from pragma_table_info('{table}')"))
            .unwrap();
        let names = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
        names.map(Result::unwrap).collect::<Vec<_>>()
    };
    let number = "printf('01900000-0000-7000-8000-%012x', n)";
    let moment = "(1700000000 + n) * 1000000";
    for (table, key) in [("executions", "id"), ("execution_results", "execution")] {
        let columns = columns(table);
        let values: Vec<&str> = columns
            .iter()
            .map(|column| match column.as_str() {
                name if name == key => number,
                "created_at" | "finished_at" => moment,
                name => name,
            })
            .collect();
        let statement = format!(
            "with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < {executions}),
             template as (select * from {table} where {key} not like '01900000-%' limit 1)
             insert into {table} ({}) select {} from numbers, template",
            columns.join(", "),
            values.join(", ")
        );
        transaction.execute(&statement, []).unwrap();
    }
    transaction.commit().unwrap();
    database
        .query_row("pragma wal_checkpoint(truncate)", [], |_| Ok(()))
        .unwrap();
}

fn history(judged: &mut Judged) {
    let began = Instant::now();
    let (few, many) = (Aged::start(FEW), Aged::start(MANY));
    println!("made the histories in {:.0} s", began.elapsed().as_secs_f64());
    let mut rows = Vec::new();
    let mut compare = |name: &'static str, most: f64, sample: &dyn Fn(&Aged) -> f64, judged: &mut Judged| {
        let mut pair = [Row::new("with 1,000"), Row::new("with 1,000,000")];
        for round in 0..ROUNDS + 20 {
            for (row, aged) in pair.iter_mut().zip([&few, &many]) {
                // What waits for the next run is made meanwhile.
                let pause = if name.starts_with("POST") { 30 } else { 2 };
                std::thread::sleep(Duration::from_millis(pause));
                let taken = sample(aged);
                if round >= 20 {
                    row.milliseconds.push(taken);
                }
            }
        }
        let ratio = pair[1].quantile(0.5) / pair[0].quantile(0.5);
        rows.push(format!(
            "  {name:<44} {:>9.3} {:>9.3} {ratio:>7.2}  p99 {:>8.3} {:>8.3}",
            pair[0].quantile(0.5),
            pair[1].quantile(0.5),
            pair[0].quantile(0.99),
            pair[1].quantile(0.99)
        ));
        judged.bar(
            format!("1,000,000 / 1,000 executions: {name}"),
            ratio,
            Most::AtMost(most),
        );
    };
    compare(
        "POST /v1/executions, warm",
        1.1,
        &|aged| aged.served.once(PYTHON.name).0,
        judged,
    );
    compare(
        "GET /v1/executions/{id}",
        1.2,
        &|aged| aged.get(&format!("/v1/executions/{}", aged.middle)).0,
        judged,
    );
    for at in 0..few.pages.len() {
        compare(
            few.pages[at].0,
            1.3,
            &|aged| aged.get(&aged.pages[at].1).0,
            judged,
        );
    }
    judged.line(format!(
        "{:<46} {:>9} {:>9} {:>7}",
        "history, p50 ms", "1,000", "1,000,000", "ratio"
    ));
    for row in rows {
        judged.line(row);
    }
}

/// A gibibyte up and down as blobs: what no blob may exceed, sixteen times, each its own.
fn files(judged: &mut Judged) {
    let served = Served::start_with(&KEEP, vec![BASH.archive()]);
    let pid = served.server.process.id();
    served.once(BASH.name);
    let idle = mib(pid, "status", "VmRSS:");
    let mut content: Vec<u8> = (0..BLOB_BYTES)
        .map(|at| u8::try_from((at * 31 + at / 251) % 256).unwrap())
        .collect();
    let mut paths = Vec::new();
    let (mut up, mut down) = (Duration::ZERO, Duration::ZERO);
    let mut peak = (0.0_f64, 0.0_f64);
    for number in 0..BLOBS {
        content[..8].copy_from_slice(&number.to_le_bytes());
        let started = Instant::now();
        let text = served.post("/v1/blobs", "application/octet-stream", &content);
        up += started.elapsed();
        peak.0 = peak.0.max(mib(pid, "status", "VmRSS:"));
        let answer: serde_json::Value = serde_json::from_str(&text).unwrap();
        paths.push(format!("/v1/blobs/{}", answer["blob_id"].as_str().unwrap()));
    }
    let up_peak = mib(pid, "status", "VmHWM:");
    let mut buffer = vec![0; 1 << 20];
    for path in &paths {
        let started = Instant::now();
        let mut reader = served.stream(path);
        let mut bytes = 0;
        loop {
            match reader.read(&mut buffer).unwrap() {
                0 => break,
                count => bytes += count,
            }
        }
        down += started.elapsed();
        assert_eq!(bytes, BLOB_BYTES);
        peak.1 = peak.1.max(mib(pid, "status", "VmRSS:"));
    }
    let rate = |took: Duration| {
        f64::from(u32::try_from(BLOB_BYTES * BLOBS / 1_000_000).unwrap()) / took.as_secs_f64()
    };
    let all = mib(pid, "status", "VmHWM:") - idle;
    judged.line(format!(
        "files, 1 GiB as {BLOBS} blobs: up {:.0} MB/s, down {:.0} MB/s; RSS {idle:.1} before, at most {up_peak:.1} while up, {:.1} after down",
        rate(up), rate(down), peak.1
    ));
    judged.bar("1 GiB up, MB/s".to_owned(), rate(up), Most::AtLeast(300.0));
    judged.bar("1 GiB down, MB/s".to_owned(), rate(down), Most::AtLeast(800.0));
    judged.bar(
        "1 GiB up and down, RSS in MiB above idle".to_owned(),
        all,
        Most::AtMost(16.0),
    );
}

/// Ten thousand runs of Bash by two clients.
fn runs(judged: &mut Judged) {
    let served = Served::start_with(&KEEP, vec![BASH.archive()]);
    let pid = served.server.process.id();
    let run = |count: usize| {
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let agent = ureq::Agent::new_with_defaults();
                    for _ in 0..count / 2 {
                        served.once_by(&agent, BASH.name);
                    }
                });
            }
        });
        std::thread::sleep(Duration::from_secs(1));
        mib(pid, "status", "VmRSS:")
    };
    let began = Instant::now();
    let (first, last) = (run(500), run(RUNS));
    judged.line(format!(
        "runs: RSS {first:.1} MiB after 500, {last:.1} MiB after {RUNS} more, in {:.0} s",
        began.elapsed().as_secs_f64()
    ));
    judged.bar(
        format!("{RUNS} runs, RSS in MiB more"),
        last - first,
        Most::AtMost(5.0),
    );
}

/// What counting adds to one execution and its request.
fn counting(judged: &mut Judged) {
    const TIMES: u32 = 100_000;
    let metrics = Metrics::new(&Latency::default(), &StoredBytes::default());
    let latency = Latency::default();
    let started = Instant::now();
    for _ in 0..TIMES {
        latency.read(Duration::from_micros(80));
        latency.wrote(Duration::from_micros(200));
        latency.wrote(Duration::from_micros(200));
        metrics.ended(&ExecutionCompletion {
            status: "success",
            backend: "native",
            language: "python",
            phases: [("queue", 0.0), ("sandbox", 1.0), ("run", 2.0), ("collect", 0.5)],
        });
        metrics.answered(&RequestCompletion {
            method: "POST",
            route: "/v1/executions",
            status: 200,
            code: None,
            took: Duration::from_millis(3),
        });
    }
    let each = started.elapsed().as_secs_f64() * 1e6 / f64::from(TIMES);
    judged.line(format!("counting one execution and its request: {each:.2} us"));
    judged.bar("counting one execution, us".to_owned(), each, Most::AtMost(5.0));
}
