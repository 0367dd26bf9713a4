//! What a server holds while nothing runs, and what a sandbox holds that waits.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::json;
use skillbox::skill::Language;

use crate::server::Server;
use crate::world::{Backend, World, archive};

/// In MiB; the documents promise it.
const IDLE_MIB_MAX: f64 = 30.0;
/// In MiB, of one that waits; the documents promise it.
const WAITING_MIB_MAX: f64 = 1.0;
/// In MiB, of what sandboxes are copied from, beside the program, which all of them share.
const ZYGOTE_MIB_MAX: f64 = 4.0;
/// Warm sandboxes of this test.
const WAITING: usize = 4;

/// One field of `/proc/<pid>/<file>` in MiB, all lines of it added up.
fn mib(pid: u32, file: &str, field: &str) -> f64 {
    let text = fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let lines = text.lines().filter(|line| line.starts_with(field));
    let kib = lines.filter_map(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
    kib.sum::<f64>() / 1024.0
}

/// The processes that the server has made and that live.
fn children(pid: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let texts = threads.filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("children")).ok());
    texts
        .flat_map(|text| {
            text.split_whitespace()
                .filter_map(|word| word.parse().ok())
                .collect::<Vec<_>>()
        })
        .collect()
}

/// Whether a process is in a PID namespace of its own, as a sandbox is; what sandboxes are copied from is not.
fn is_sandbox(child: u32) -> bool {
    let namespace = |of: &str| fs::read_link(format!("/proc/{of}/ns/pid")).ok();
    namespace(&child.to_string()) != namespace("self")
}

/// The server's figure is the released binary's, which `SKILLBOX_TEST_BINARY` names; other builds map more of themselves.
#[tokio::test(flavor = "multi_thread")]
async fn idle_server_and_warm_sandbox_use_little_memory() {
    if World::on(Backend::Native).await.is_none() {
        return;
    }
    tokio::task::spawn_blocking(|| {
        let folder = tempfile::tempdir().unwrap();
        let concurrency = WAITING.to_string();
        let env = [
            ("SKILLBOX_SANDBOX_BACKEND", "native"),
            ("SKILLBOX_CONCURRENCY", concurrency.as_str()),
        ];
        let server = Server::start_with(&folder.path().join("data"), &env);
        let pid = server.process.id();
        let idle = mib(pid, "status", "VmRSS:");
        server.publish(archive(Language::Bash, "version: 1.0.0\n", "true"));
        let started = Instant::now();
        while children(pid).len() < WAITING {
            assert!(
                started.elapsed() < Duration::from_secs(60),
                "sandboxes do not wait"
            );
            let clients = [(); WAITING].map(|()| {
                let (url, key) = (format!("{}/v1/executions", server.url), server.key());
                std::thread::spawn(move || {
                    let request = ureq::post(&url).header("authorization", format!("Bearer {key}"));
                    request.send_json(json!({ "skill": "probe" })).unwrap().status()
                })
            });
            clients
                .into_iter()
                .for_each(|client| assert_eq!(client.join().unwrap(), 200));
            std::thread::sleep(Duration::from_millis(300));
        }
        let used = mib(pid, "status", "VmRSS:");
        let (waiting, zygotes): (Vec<_>, Vec<_>) = children(pid).into_iter().partition(|child| is_sandbox(*child));
        let held = |children: Vec<u32>, field: &str| -> Vec<_> {
            let each = children.into_iter();
            each.map(|child| mib(child, "smaps_rollup", field)).collect()
        };
        let (waiting, zygotes) = (held(waiting, "Private_"), held(zygotes, "Anonymous:"));
        println!(
            "idle server {idle:.1} MiB, after some runs {used:.1} MiB; of their own: waiting {waiting:.1?} MiB, copied {zygotes:.1?} MiB"
        );
        if std::env::var_os("SKILLBOX_TEST_BINARY").is_some() || !cfg!(debug_assertions) {
            assert!(idle.max(used) <= IDLE_MIB_MAX, "{idle} {used}");
            assert!(zygotes.iter().all(|mib| *mib <= ZYGOTE_MIB_MAX), "{zygotes:?}");
        }
        assert!(
            zygotes.len() == 1 && waiting.iter().all(|mib| (0.05..=WAITING_MIB_MAX).contains(mib)),
            "{zygotes:?} {waiting:?}"
        );
    })
    .await
    .unwrap();
}
