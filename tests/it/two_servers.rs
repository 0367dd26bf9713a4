//! Two servers with one database, and a data folder each: neither takes the executions of the other while it is alive.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use skillbox::engine::RunSpec;
use skillbox::execution::Status;
use skillbox::limits;
use skillbox::sandbox::{Completion, Report, Sandbox};
use skillbox::skill::Language;

use crate::queue::{ask, processes, publish, show, submit, with_server};
use crate::server::Server;
use crate::world::{World, archive, instance_in};

/// A dead server is found by the maintenance of the other one, which comes once a minute.
const RECOVERED_WITHIN: Duration = Duration::from_secs(100);
const QUEUED: [u32; 3] = [1, 2, 3];

/// Starts a server with a fresh data folder that shares the database, the blobs and the keys of `first`.
fn start_beside(first: &Server, name: &str) -> Server {
    let data = first.data.with_file_name(name);
    fs::create_dir(&data).unwrap();
    fs::set_permissions(&data, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    for key in ["admin.key", "master.key", "signing.key"] {
        fs::copy(first.data.join(key), data.join(key)).unwrap();
    }
    std::os::unix::fs::symlink(first.data.join("blobs"), data.join("blobs")).unwrap();
    let database = database_of(&first.data);
    Server::start_with(
        &data,
        &[
            ("SKILLBOX_DB_DSN", database.to_str().unwrap()),
            ("SKILLBOX_SANDBOX_BACKEND", "native"),
            ("SKILLBOX_POOL_SLOTS", "0"),
            ("SKILLBOX_CONCURRENCY", "1"),
        ],
    )
}

fn database_of(data: &Path) -> PathBuf {
    data.join("skillbox.db")
}

fn within(limit: Duration, what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < limit, "{what} did not come true");
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn is_running(server: &Server, id: &str) -> bool {
    show(server, id, "")["status"] == "running"
}

fn newest_running(server: &Server) -> Option<String> {
    let listed = server.get("/v1/executions?status=running").unwrap().body;
    listed["items"][0]["execution_id"].as_str().map(ToOwned::to_owned)
}

/// C-06: results arrive at callers and in the queue of the server that accepted them, independent of the other server.
#[tokio::test(flavor = "multi_thread")]
async fn live_server_keeps_its_executions_with_shared_database() {
    with_server(&[("SKILLBOX_CONCURRENCY", "1")], |first| {
        publish(&first);
        std::thread::scope(|scope| {
            let caller = scope.spawn(|| ask(&first, &json!({"args": ["8"], "input": "waiting caller"})));
            within(RECOVERED_WITHIN, "a running execution", || {
                newest_running(&first).is_some()
            });
            let running = newest_running(&first).unwrap();
            let queued = QUEUED.map(|n| submit(&first, "0", &json!(n)));
            let second = start_beside(&first, "second");
            // Its own work is done in turn, so its first round of maintenance is over by then.
            let own = ask(&second, &json!({"args": ["2"], "input": "second"}));
            assert_eq!(
                (own.status, &own.body["output"]),
                (200, &json!("second")),
                "{}",
                own.body
            );
            assert!(is_running(&second, &running), "{}", show(&second, &running, ""));
            for id in &queued {
                assert_eq!(
                    show(&second, id, "")["queue"],
                    Value::Null,
                    "it waits in the first"
                );
                assert_eq!(show(&first, id, "")["status"], "queued");
            }
            let answer = caller.join().unwrap();
            assert_eq!(
                (answer.status, &answer.body["status"], &answer.body["output"]),
                (200, &json!("success"), &json!("waiting caller")),
                "{}",
                answer.body
            );
            for (id, n) in queued.iter().zip(QUEUED) {
                let ended = show(&second, id, "?wait=30");
                assert_eq!(
                    (&ended["status"], &ended["output"]),
                    (&json!("success"), &json!(n)),
                    "{ended}"
                );
            }
            assert!(!second.log().contains("Recovered"), "{}", second.log());
        });
    })
    .await;
}

/// F-01, F-02: what a killed server ran is `interrupted`, and what waited in it runs in the other server.
#[tokio::test(flavor = "multi_thread")]
async fn recovers_queue_of_killed_server_with_other_data_folder() {
    with_server(&[("SKILLBOX_CONCURRENCY", "1")], |first| {
        publish(&first);
        let second = start_beside(&first, "second");
        let running = submit(&first, "600", &json!(0));
        within(RECOVERED_WITHIN, "a running execution", || {
            is_running(&first, &running)
        });
        let queued = QUEUED.map(|n| submit(&first, "0", &json!(n)));
        let own = ask(&second, &json!({"input": "second"}));
        assert_eq!(own.body["output"], "second", "{}", own.body);
        first.kill_9();
        within(RECOVERED_WITHIN, "the end of the lost execution", || {
            !is_running(&second, &running)
        });
        let ended = show(&second, &running, "");
        assert_eq!(
            (&ended["status"], &ended["error"]["code"]),
            (&json!("interrupted"), &json!("interrupted")),
            "{ended}"
        );
        for (id, n) in queued.iter().zip(QUEUED) {
            within(RECOVERED_WITHIN, "a recovered execution", || {
                show(&second, id, "?wait=30")["status"] != "queued"
            });
            let ended = show(&second, id, "?wait=30");
            assert_eq!(
                (&ended["status"], &ended["output"]),
                (&json!("success"), &json!(n)),
                "{ended}"
            );
        }
    })
    .await;
}

/// C-11.
#[tokio::test(flavor = "multi_thread")]
async fn cancels_running_and_queued_executions_of_other_server() {
    with_server(&[("SKILLBOX_CONCURRENCY", "1")], |first| {
        let program = "echo partial; (setsid sleep 97.65 &); sleep 97.65";
        first.publish(archive(Language::Bash, "version: 1.0.0\n", program));
        let second = start_beside(&first, "second");
        let cancel = |id: &str| second.post_json(&format!("/v1/executions/{id}/cancel"), &json!({}));
        std::thread::scope(|scope| {
            let caller = scope.spawn(|| ask(&first, &json!({})));
            within(RECOVERED_WITHIN, "both processes", || processes("97.65") == 2);
            let running = newest_running(&first).unwrap();
            let queued = submit(&first, "", &json!(0));
            for id in [&queued, &running] {
                let began = Instant::now();
                let answer = cancel(id);
                assert_eq!(
                    (
                        answer.status,
                        &answer.body["status"],
                        &answer.body["error"]["code"]
                    ),
                    (200, &json!("cancelled"), &json!("cancelled")),
                    "{}",
                    answer.body
                );
                assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
                assert_eq!(show(&first, id, "")["queue"], Value::Null);
            }
            assert_eq!(processes("97.65"), 0, "the whole tree has gone");
            let answer = caller.join().unwrap();
            assert_eq!(answer.body["status"], "cancelled", "{}", answer.body);
            assert_eq!(answer.body["logs"]["stdout"], "partial\n");
        });
    })
    .await;
}

fn reads(world: &World) -> u32 {
    let metrics = world.engine.metrics_text();
    let mut lines = metrics.lines();
    let count = lines.find_map(|line| line.strip_prefix("skillbox_store_read_seconds_count "));
    count.unwrap().parse().unwrap()
}

/// Reads of the database during three periods of the poll for cancel requests.
async fn reads_in_three_periods(world: &World) -> u32 {
    let before = reads(world);
    tokio::time::sleep(limits::CANCEL_POLL_EVERY * 3).await;
    reads(world) - before
}

/// An idle process, and one that is alone, do not read the database to find cancel requests.
#[tokio::test(flavor = "multi_thread")]
async fn polls_for_cancel_requests_only_while_running_beside_other_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_owned();
    let sandbox = Sandbox::scripted(|_, _| {
        std::thread::sleep(limits::CANCEL_POLL_EVERY * 5);
        Ok(Report::bare(Completion::Exited(0)))
    });
    let world = World::over(folder, instance_in(&path), sandbox).await;
    let run_and_count = async || {
        let spec = RunSpec::of_code(Language::Python, "1".to_owned());
        let run = world.runs().run(world.tenant(), spec);
        let count = async {
            tokio::time::sleep(limits::CANCEL_POLL_EVERY / 2).await;
            reads_in_three_periods(&world).await
        };
        let (ended, count) = tokio::join!(run, count);
        assert_eq!(ended.unwrap().status, Status::Success);
        count
    };
    assert_eq!(run_and_count().await, 0, "no other process is registered");
    let _other = instance_in(&path);
    let polls = run_and_count().await;
    assert!((1..=4).contains(&polls), "once a second: {polls}");
    // The last poll finds that nothing runs.
    tokio::time::sleep(limits::CANCEL_POLL_EVERY * 2).await;
    assert_eq!(reads_in_three_periods(&world).await, 0, "nothing runs");
}
