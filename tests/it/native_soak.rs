//! Many honest programs one after the other: none of them notices the table of system calls, and nothing grows or stays.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use skillbox::engine::RunSpec;
use skillbox::execution::Status;
use skillbox::skill::{Language, Selector, SkillRef};

use crate::outcomes::{output, stderr};
use crate::server::own_memory_kib;
use crate::world::{Backend, World, alone, archive};

/// Runs, unless `SKILLBOX_TEST_SOAK` says how many.
const RUNS: usize = 48;
/// At a time: as many as a world admits.
const CLIENTS: usize = 4;
/// Runs before the first look: pools, caches and the allocator fill.
const WARM_UP: usize = 24;
/// What a process may keep after any number of runs: far below what one run leaked in each of ten thousand would be.
const GROWTH_KIB_MAX: u64 = 24 * 1024;

/// The parts of the honest programs, in turn.
const PARTS: &[(Language, &[&str])] = &[
    (
        Language::Python,
        &[
            "threads",
            "processes",
            "shared_memory",
            "children",
            "tls",
            "database",
            "files",
            "local_sockets",
            "clocks_and_signals",
            "terminal",
        ],
    ),
    (
        Language::Node,
        &[
            "overHttp",
            "overDatagrams",
            "workers",
            "watching",
            "children",
            "manyFiles",
            "computing",
        ],
    ),
    (
        Language::Bash,
        &[
            "job_control",
            "perl_scripts",
            "pipes",
            "substitution",
            "tools",
            "limits",
            "sourced",
        ],
    ),
];

/// What must not grow.
#[derive(Debug)]
struct Held {
    descriptors: usize,
    threads: usize,
    mounts: usize,
    cgroups: usize,
    memory_kib: u64,
}

impl Held {
    /// By this process, once all that ended has been cleared away.
    async fn now(world: &World) -> Self {
        world.engine.sandbox().drain().await;
        let entries = |path: &str| fs::read_dir(path).unwrap().count();
        let instance = format!("skillbox-{}", world.engine.instance());
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let data = world.folder.path().to_str().unwrap();
        Self {
            descriptors: entries("/proc/self/fd"),
            threads: entries("/proc/self/task"),
            mounts: mounts.lines().filter(|line| line.contains(data)).count(),
            cgroups: cgroups(&instance),
            memory_kib: own_memory_kib(std::process::id()),
        }
    }
}

/// Folders of this instance's sandboxes in every hierarchy.
fn cgroups(instance: &str) -> usize {
    let hierarchies =
        ["", "memory", "pids", "cpu", "cpuacct"].map(|name| Path::new("/sys/fs/cgroup").join(name));
    let homes = hierarchies.map(|hierarchy| hierarchy.join("skillbox").join(instance));
    let folders = homes.iter().filter_map(|home| fs::read_dir(home).ok()).flatten();
    folders
        .filter(|entry| entry.as_ref().unwrap().path().is_dir())
        .count()
}

/// S-12, P13, P15. Prints what it saw.
#[tokio::test(flavor = "multi_thread")]
async fn many_honest_programs_succeed_and_leave_nothing() {
    let (_, room) = module_path!().split_once("::").unwrap();
    if !alone(&format!("{room}::many_honest_programs_succeed_and_leave_nothing")).await {
        return;
    }
    let Some(world) = World::on(Backend::Native).await else {
        return;
    };
    let runs = std::env::var("SKILLBOX_TEST_SOAK").map_or(RUNS, |text| text.parse().unwrap());
    let world = Arc::new(world);
    let python = format!(
        "{}\n{}",
        include_str!("../../src/prove/probes/prelude.py"),
        include_str!("../../src/prove/probes/honest.py")
    );
    let programs = [
        &python,
        include_str!("../../src/prove/probes/honest.js"),
        include_str!("../../src/prove/probes/honest.sh"),
    ];
    for (major, ((language, _), program)) in (1..).zip(PARTS.iter().zip(programs)) {
        let archive = archive(*language, &format!("version: {major}.0.0\n"), program);
        world
            .skills()
            .publish(world.tenant(), archive, None)
            .await
            .unwrap();
    }
    let mut failures = go(&world, WARM_UP).await;
    let before = Held::now(&world).await;
    failures.extend(go(&world, runs).await);
    let after = Held::now(&world).await;
    println!(
        "{runs} runs; before {before:?}, after {after:?}; {} failures",
        failures.len()
    );
    let mut counted = BTreeMap::new();
    for failure in &failures {
        *counted.entry(failure).or_insert(0) += 1;
    }
    assert!(failures.is_empty(), "{counted:#?}");
    assert!(
        after.descriptors <= before.descriptors + 8,
        "{before:?} {after:?}"
    );
    assert!(after.threads <= before.threads + 16, "{before:?} {after:?}");
    assert_eq!((after.mounts, after.cgroups), (0, 0), "{before:?} {after:?}");
    assert!(
        after.memory_kib <= before.memory_kib + GROWTH_KIB_MAX,
        "{before:?} {after:?}"
    );
}

/// Runs that many parts and returns what any of them complained about.
async fn go(world: &Arc<World>, runs: usize) -> Vec<String> {
    let next = Arc::new(AtomicUsize::new(0));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let (world, next) = (world.clone(), next.clone());
            tokio::spawn(async move {
                let mut failures = Vec::new();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= runs {
                        return failures;
                    }
                    failures.extend(run(&world, number).await);
                    if number % 500 == 499 {
                        println!(
                            "{} of {runs}, {} failures of this client",
                            number + 1,
                            failures.len()
                        );
                    }
                }
            })
        })
        .collect();
    let mut failures = Vec::new();
    for client in clients {
        failures.extend(client.await.unwrap());
    }
    failures
}

/// Runs one part; what it complained about, if anything.
async fn run(world: &World, number: usize) -> Option<String> {
    let kind = number % PARTS.len();
    let (_, parts) = PARTS[kind];
    let part = parts[number / PARTS.len() % parts.len()];
    let skill = SkillRef {
        name: "probe".parse().unwrap(),
        selector: Selector::Version(format!("{}.0.0", kind + 1).parse().unwrap()),
    };
    let ask = RunSpec {
        args: vec![part.to_owned()],
        ..RunSpec::default()
    };
    let outcome = world
        .run_request(RunSpec {
            skill: Some(skill),
            ..ask
        })
        .await
        .unwrap()
        .outcome
        .unwrap();
    if outcome.status != Status::Success {
        return Some(format!("{part}: {:?} {}", outcome.error, stderr(&outcome)));
    }
    let seen = output(&outcome);
    (seen != serde_json::json!({ part: "ok" })).then(|| format!("{part}: {seen}"))
}
