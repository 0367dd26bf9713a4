//! What is left of native sandboxes after a server ends, however it ends; and what an ordinary user gets.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::json;
use skillbox::skill::Language;

use crate::ordinary::{AS_DELEGATED, assert_native_tests_pass};
use crate::server::{Server, eventually};
use crate::world::{Backend, World, archive, missing};

const NATIVE: &[(&str, &str)] = &[
    ("SKILLBOX_SANDBOX_BACKEND", "native"),
    ("SKILLBOX_CONCURRENCY", "8"),
];
/// Each hierarchy that a sandbox of root's may have a cgroup in.
const HIERARCHIES: [&str; 5] = ["", "memory", "pids", "cpu", "cpuacct"];

/// The folders of cgroups of these instances that still exist. One can only go when nothing lives in it.
fn homes(instances: &BTreeSet<String>) -> Vec<PathBuf> {
    let folder = |hierarchy: &str, instance: &String| {
        Path::new("/sys/fs/cgroup")
            .join(hierarchy)
            .join("skillbox")
            .join(format!("skillbox-{instance}"))
    };
    let all = instances
        .iter()
        .flat_map(|instance| HIERARCHIES.map(|hierarchy| folder(hierarchy, instance)));
    all.filter(|home| home.exists()).collect()
}

/// The processes that have registered in a data folder and not left it in order.
fn instances(data: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(data.join("instances")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names
        .filter_map(|name| name.strip_suffix(".lock").map(ToOwned::to_owned))
        .collect()
}

/// Times that a server is killed, unless `SKILLBOX_TEST_KILLS` says how many.
const KILLS: u64 = 12;
const CLIENTS: usize = 8;
/// Each kill comes at some moment before this one.
const MOMENT_MAX: Duration = Duration::from_millis(600);

/// F-01, P15: a server killed at any moment, with clients at work, leaves nothing after its restart.
/// `SKILLBOX_TEST_SEED` repeats the moments of an earlier run.
#[tokio::test(flavor = "multi_thread")]
async fn server_killed_at_any_moment_leaves_nothing() {
    if World::on(Backend::Native).await.is_none() {
        return;
    }
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let kills = number("SKILLBOX_TEST_KILLS").unwrap_or(KILLS);
    let seed = number("SKILLBOX_TEST_SEED").unwrap_or_else(|| u64::from(std::process::id()) | 1 << 40);
    println!("{kills} kills; SKILLBOX_TEST_SEED={seed}");
    tokio::task::spawn_blocking(move || kill_again_and_again(kills, seed))
        .await
        .unwrap();
}

fn kill_again_and_again(kills: u64, seed: u64) {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    // Found in the arguments of every process that any of the programs leaves.
    let mark = format!("60.{seed}");
    let mut moments = Moments(seed);
    let mut slowest = Duration::ZERO;
    let mut server = Server::start_with(&data, NATIVE);
    server.publish(archive(
        Language::Bash,
        "version: 1.0.0\n",
        &format!("(setsid sleep {mark} &); sleep 0.$((RANDOM % 3)); sleep {mark} & (( RANDOM % 2 )) || wait"),
    ));
    for kill in 1..=kills {
        let dead = instances(&data);
        let clients: Vec<_> = (0..CLIENTS).map(|_| client(&server)).collect();
        std::thread::sleep(moments.next());
        server.kill_9();
        let killed_at = Instant::now();
        clients.into_iter().for_each(|client| client.join().unwrap());

        server = Server::start_with(&data, NATIVE);
        eventually("no execution is running", || {
            let listed = server.get("/v1/executions?status=running").unwrap().body;
            listed["items"].as_array().is_some_and(Vec::is_empty)
        });
        eventually("no cgroup of the dead is left", || homes(&dead).is_empty());
        eventually("no trace in the data folder", || {
            instances(&data).is_disjoint(&dead) && std::fs::read_dir(data.join("tmp")).unwrap().count() == 0
        });
        eventually("no process and no mount of the dead is left", || {
            left_by_the_dead(&mark, folder.path()).is_empty()
        });
        slowest = slowest.max(killed_at.elapsed());
        if kill % 20 == 0 {
            println!("{kill} of {kills}; at most {slowest:?} until all had gone");
        }
    }
    println!("{kills} kills; at most {slowest:?} from a kill until the restarted server had nothing left");
}

/// Moments of a kill: a xorshift, so that a seed gives the same ones again.
struct Moments(u64);

impl Moments {
    fn next(&mut self) -> Duration {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        MOMENT_MAX.mul_f64(f64::from(u16::try_from(self.0 >> 48).unwrap()) / f64::from(u16::MAX))
    }
}

/// Processes with the mark in their arguments, and those that see the data folder in their mounts: of sandboxes only,
/// for the server itself mounts nothing.
fn left_by_the_dead(mark: &str, folder: &Path) -> Vec<String> {
    let folder = folder.to_str().unwrap();
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let path = entry.ok()?.path();
        path.file_name()?.to_str()?.parse::<u32>().ok()?;
        let arguments = std::fs::read_to_string(path.join("cmdline")).unwrap_or_default();
        let mounts = std::fs::read_to_string(path.join("mountinfo")).unwrap_or_default();
        let is_left = arguments.split('\0').any(|argument| argument == mark) || mounts.contains(folder);
        is_left.then(|| format!("{} {}", path.display(), arguments.replace('\0', " ")))
    });
    processes.collect()
}

/// Asks for runs until the server has exited.
fn client(server: &Server) -> std::thread::JoinHandle<()> {
    let (url, key) = (format!("{}/v1/executions", server.url), server.key());
    std::thread::spawn(move || {
        let body = json!({ "skill": "probe", "timeout": 60 }).to_string();
        let asked = || {
            ureq::post(&url)
                .header("authorization", format!("Bearer {key}"))
                .header("content-type", "application/json")
                .send(body.as_bytes())
        };
        while asked().is_ok() {}
    })
}

/// Runs some of these very tests as an ordinary user with a cgroup subtree of its own: every promise is kept.
#[tokio::test(flavor = "multi_thread")]
async fn delegated_ordinary_user_passes_native_tests() {
    if !rustix::process::geteuid().is_root() {
        return missing("linux", "only root can delegate to an ordinary user");
    }
    if World::on(Backend::Native).await.is_none() {
        return;
    }
    tokio::task::spawn_blocking(|| assert_native_tests_pass(AS_DELEGATED, &[]))
        .await
        .unwrap();
}
