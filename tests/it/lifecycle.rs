//! What is left after a server ends, however it ends; and after many runs.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use skillbox::ids::InstanceId;
use skillbox::sandbox::Sandbox;
use skillbox::skill::Language;

use crate::sandbox_oracles::connect;
use crate::server::{Server, eventually, own_memory_kib};
use crate::world::{archive, calls, docker_settings, images, missing};

/// Whether this machine has an engine; prints why if not.
async fn has_docker() -> bool {
    let sandbox = Sandbox::docker(docker_settings(), InstanceId::generate());
    match sandbox.check().await {
        Ok(_) => true,
        Err(error) => {
            missing("docker", &error.to_string());
            false
        }
    }
}

/// The files below the data folder that an execution could leave behind.
fn leftovers(data: &Path) -> BTreeSet<String> {
    let mut pending = vec![data.join("tmp"), data.join("blobs"), data.join("instances")];
    let mut found = BTreeSet::new();
    while let Some(path) = pending.pop() {
        // It may be removed meanwhile.
        if let Ok(entries) = std::fs::read_dir(&path) {
            pending.extend(entries.filter_map(|entry| Some(entry.ok()?.path())));
        } else if path.exists() {
            found.insert(path.strip_prefix(data).unwrap().display().to_string());
        }
    }
    found
}

fn run_count(server: &Server, status: &str) -> usize {
    let answer = server.get(&format!("/v1/executions?status={status}")).unwrap();
    answer.body["items"].as_array().map_or(0, Vec::len)
}

/// The executions that have a container, in any state.
fn containers() -> BTreeSet<String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let options = bollard::query_parameters::ListContainersOptionsBuilder::default()
            .all(true)
            .build();
        let all = connect().await.list_containers(Some(options)).await.unwrap();
        let names = all
            .into_iter()
            .flat_map(|container| container.names.unwrap_or_default());
        names
            .filter_map(|name| name.strip_prefix("/skillbox-run-").map(ToOwned::to_owned))
            .collect()
    })
}

/// F-01, F-03 and the bar: `kill -9` in the middle of a run leaves nothing after a restart.
#[tokio::test(flavor = "multi_thread")]
async fn restart_cleans_up_after_killed_server() {
    if !has_docker().await {
        return;
    }
    tokio::task::spawn_blocking(|| {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let server = Arc::new(Server::start(&data));
        server.publish(archive(
            Language::Python,
            "version: 1.0.0\n",
            "import time; time.sleep(100)",
        ));
        let before = leftovers(&data);
        let body = json!({"skill": "probe", "timeout": 60});
        let client = std::thread::spawn({
            let url = format!("{}/v1/executions", server.url);
            let key = server.key();
            move || {
                let request = ureq::post(url).header("authorization", format!("Bearer {key}"));
                let _ = request
                    .header("content-type", "application/json")
                    .send(body.to_string().as_bytes());
            }
        });
        eventually("a running execution", || run_count(&server, "running") == 1);
        let listed = server.get("/v1/executions?status=running").unwrap().body;
        let id = listed["items"][0]["execution_id"].as_str().unwrap().to_owned();
        eventually("a container", || containers().contains(&id));
        Arc::into_inner(server).unwrap().kill_9();
        client.join().unwrap();

        let server = Server::start(&data);
        eventually("the end of the execution", || run_count(&server, "running") == 0);
        assert_eq!(
            server.get(&format!("/v1/executions/{id}")).unwrap().body["status"],
            "interrupted"
        );
        eventually("the end of the container", || !containers().contains(&id));
        eventually("an empty data folder", || leftovers(&data).len() == before.len());
    })
    .await
    .unwrap();
}

/// A container such as a server of this instance makes, `age` ago, and never starts.
async fn abandoned(docker: &bollard::Docker, instance: InstanceId, age: Duration) -> String {
    let created = jiff::Timestamp::now() - age;
    let labels = [
        ("role", "run".to_owned()),
        ("instance", instance.to_string()),
        ("created", created.as_second().to_string()),
    ];
    let body = bollard::models::ContainerCreateBody {
        image: Some(images().bash),
        network_disabled: Some(true),
        labels: Some(
            labels
                .map(|(label, value)| (format!("dev.skillbox.{label}"), value))
                .into(),
        ),
        ..Default::default()
    };
    docker.create_container(None, body).await.unwrap().id
}

/// F-03: what a server left on a shared engine goes in time, though its data folder is unknown; what may still be used stays.
#[tokio::test]
async fn maintenance_removes_only_abandoned_containers() {
    if !has_docker().await {
        return;
    }
    let docker = connect().await;
    let (own, stranger) = (InstanceId::generate(), InstanceId::generate());
    let sandbox = Sandbox::docker(docker_settings(), own);
    let (old, new) = (Duration::from_secs(3600), Duration::ZERO);
    let abandoned_long_ago = abandoned(&docker, stranger, old).await;
    let just_made = abandoned(&docker, stranger, new).await;
    let own_just_made = abandoned(&docker, own, new).await;
    let exists = async |id: &str| docker.inspect_container(id, None).await.is_ok();

    // Another server's round may be at it already, and ours then leaves it to that one.
    let goes = async |id: &str| {
        let mut pace = tokio::time::interval(Duration::from_millis(100));
        while exists(id).await {
            pace.tick().await;
        }
    };
    let soon = Duration::from_secs(30);

    sandbox.reconcile(&[]).await.unwrap();
    tokio::time::timeout(soon, goes(&abandoned_long_ago))
        .await
        .expect("it stays");
    assert!(exists(&just_made).await && exists(&own_just_made).await);

    // Known to be dead, it needs nothing any more.
    sandbox.reconcile(&[stranger, own]).await.unwrap();
    tokio::time::timeout(soon, goes(&just_made))
        .await
        .expect("it stays");
    assert!(exists(&own_just_made).await, "nobody is dead to itself");
    docker.remove_container(&own_just_made, None).await.unwrap();
}

/// F-05: a server that is asked to end lets running executions end first, and exits with 0.
#[tokio::test(flavor = "multi_thread")]
async fn terminated_server_finishes_running_executions() {
    if !has_docker().await {
        return;
    }
    tokio::task::spawn_blocking(|| {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let server = Arc::new(Server::start(&data));
        server.publish(archive(Language::Bash, "version: 1.0.0\n", "sleep 2; echo done"));
        let client = std::thread::spawn({
            let server = server.clone();
            move || server.post_json("/v1/executions", &json!({"skill": "probe"}))
        });
        eventually("a running execution", || run_count(&server, "running") == 1);
        let pid = i32::try_from(server.process.id())
            .ok()
            .and_then(rustix::process::Pid::from_raw)
            .unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        let answer = client.join().unwrap();
        assert_eq!(answer.body["status"], "success", "{}", answer.body);
        let mut server = Arc::into_inner(server).unwrap();
        assert_eq!(server.process.wait().unwrap().code(), Some(0), "{}", server.log());
    })
    .await
    .unwrap();
}

/// Of the load test.
const CLIENTS: usize = 8;
/// Additional open descriptors after the runs: there may have been fewer warm sandboxes before.
const DESCRIPTORS_MORE_MAX: usize = 5 + 3 * 8;
/// What the server may hold more after them, in KiB.
const GROWTH_KIB_MAX: u64 = 5 * 1024;

/// Descriptors and memory of a process, in KiB.
fn footprint(pid: u32) -> (usize, u64) {
    let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count();
    (descriptors, own_memory_kib(pid))
}

/// 8 clients, no failure, no leak.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn many_executions_leave_nothing_behind() {
    if !has_docker().await {
        return;
    }
    tokio::task::spawn_blocking(|| {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let server = Server::start(&data);
        server.publish(archive(
            Language::Bash,
            "version: 1.0.0\n",
            "echo \"$SANDBOX_INPUT\" > \"$SANDBOX_OUTPUT\"",
        ));
        let run = |count: usize| {
            std::thread::scope(|scope| {
                for client in 0..CLIENTS {
                    let server = &server;
                    scope.spawn(move || {
                        for turn in 0..count / CLIENTS {
                            let input = json!({"client": client, "turn": turn});
                            let answer = server
                                .post_json("/v1/executions", &json!({"skill": "probe", "input": input}));
                            assert_eq!(
                                answer.body["status"], "success",
                                "{} {}",
                                answer.status, answer.body
                            );
                            assert_eq!(answer.body["output"], input);
                        }
                    });
                }
            });
        };
        // The allocator, the pools and the database's caches reach their size.
        run(CLIENTS * 10);
        let settle = || eventually("the end of all containers", || nothing_left(&server));
        settle();
        let before = footprint(server.process.id());
        let runs = calls();
        run(runs);
        settle();
        let after = footprint(server.process.id());
        println!("descriptors, KiB of its own: {before:?} before {runs} executions, {after:?} after");
        assert!(
            after.0 <= before.0 + DESCRIPTORS_MORE_MAX,
            "descriptors: {before:?} {after:?}"
        );
        assert!(
            after.1 <= before.1 + GROWTH_KIB_MAX,
            "memory: {before:?} {after:?}"
        );
        assert!(
            leftovers(&data).iter().all(|path| !path.starts_with("tmp")),
            "{:?}",
            leftovers(&data)
        );
    })
    .await
    .unwrap();
}

/// Whether none of this server's last executions has a container any more.
fn nothing_left(server: &Server) -> bool {
    let (left, newest) = (containers(), server.get("/v1/executions?limit=200").unwrap().body);
    let mut rows = newest["items"].as_array().unwrap().iter();
    rows.all(|row| !left.contains(row["execution_id"].as_str().unwrap()))
}
