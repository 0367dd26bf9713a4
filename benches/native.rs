//! How long one execution of an empty Python program takes on the native sandbox, limits on and all records written, next
//! to the bare interpreter and to bubblewrap with the same namespaces and mounts (and neither limits nor records).
//!
//! All run in turn with a pause between, for a tight loop hides what moving a process into a cgroup costs.
//! `cargo bench --bench native` prints medians, ratios and bars, and exits with 1 when a bar is missed. Each bar compares
//! medians of one run; only a quiet machine gives figures that mean something. `SKILLBOX_TEST_ROUNDS` sets the rounds.
#![expect(
    clippy::unwrap_used,
    reason = "a bench that cannot go on should stop where it stands"
)]

#[path = "measure/bubblewrap.rs"]
mod bubblewrap;
#[path = "../tests/it/index.rs"]
#[expect(dead_code, reason = "the tests' index has more than this bench needs")]
mod index;
mod measure;
#[path = "../tests/it/server.rs"]
#[expect(dead_code, reason = "the tests' server has more than this bench needs")]
mod server;
#[path = "../tests/it/world.rs"]
#[expect(dead_code, reason = "the tests' world has more than this bench needs")]
mod world;

use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use bubblewrap::bubblewrap;
use measure::{Bar, Row, Served, milliseconds, timed};
use skillbox::engine::RunSpec;
use skillbox::execution::Status;
use skillbox::skill::Language;
use world::{Backend, World};

/// Rounds that are measured, unless the environment says otherwise.
const ROUNDS: usize = 60;
/// Rounds before those: they fill pools and caches.
const WARM_UP: usize = 5;
const PAUSE: Duration = Duration::from_millis(30);
const PYTHON: &str = "/usr/bin/python3";
const PROGRAM: &str = "pass\n";

#[tokio::main]
async fn main() -> ExitCode {
    // `cargo test --benches` only asks whether it builds.
    if std::env::args().any(|argument| argument == "--test") {
        return ExitCode::SUCCESS;
    }
    let Some(world) = world_with_skills().await else {
        return ExitCode::SUCCESS;
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("main.py");
    std::fs::write(&file, PROGRAM).unwrap();
    let served = tokio::task::spawn_blocking(move || Served::start("0", vec![probe()]))
        .await
        .unwrap();

    let has_bwrap = Command::new("bwrap").arg("--version").output().is_ok();
    if !has_bwrap {
        println!("skipped: bwrap is missing; install bubblewrap");
    }
    let (mut bare, mut bare_file) = (Row::new("python3 -c pass"), Row::new("python3 main.py"));
    let (mut engine, mut http) = (Row::new("the engine"), Row::new("POST /v1/executions"));
    let mut packages = Row::new("the engine, with packages");
    let mut bwrap = Row::new("bwrap");
    let mut phases = Vec::new();
    let rounds = std::env::var("SKILLBOX_TEST_ROUNDS").map_or(ROUNDS, |text| text.parse().unwrap());
    for round in 0..WARM_UP + rounds {
        let take = |row: &mut Row, milliseconds| {
            if round >= WARM_UP {
                row.milliseconds.push(milliseconds);
            }
        };
        pause().await;
        take(&mut bare, timed(Command::new(PYTHON).args(["-c", "pass"]), &[]));
        pause().await;
        let (milliseconds, timings) = engine_once(&world, "probe").await;
        take(&mut engine, milliseconds);
        if round >= WARM_UP {
            phases.push(timings);
        }
        pause().await;
        take(&mut packages, engine_once(&world, "needs").await.0);
        pause().await;
        take(&mut bare_file, timed(Command::new(PYTHON).arg(&file), &[]));
        pause().await;
        if has_bwrap {
            take(&mut bwrap, timed(&mut bwrapped(folder.path()), &[]));
            pause().await;
        }
        take(&mut http, served.once("probe").0);
    }
    world.engine.maintenance().shutdown(Duration::from_secs(10)).await;
    for row in [&bare, &bare_file, &bwrap, &engine, &packages, &http] {
        if !row.milliseconds.is_empty() {
            row.print();
        }
    }
    for (at, name) in ["sandbox", "program", "collect"].into_iter().enumerate() {
        let mut row = Row::new(name);
        row.milliseconds = phases.iter().map(|phase: &[f64; 3]| phase[at]).collect();
        row.print();
    }
    let bar = |ours, theirs, most| Bar { ours, theirs, most };
    let mut bars = vec![
        bar(&engine, &bare, 1.35),
        bar(&http, &bare, 1.5),
        bar(&packages, &engine, 1.05),
    ];
    if has_bwrap {
        bars.push(bar(&engine, &bwrap, 1.1));
    }
    // Each is printed, also after one that was missed.
    let missed = bars.iter().filter(|bar| !bar.is_kept()).count();
    ExitCode::from(u8::from(missed > 0))
}

async fn pause() {
    tokio::time::sleep(PAUSE).await;
}

/// The program as a skill.
fn probe() -> std::fs::File {
    world::archive(Language::Python, "version: 1.0.0\n", PROGRAM)
}

/// A world with the program, and with the same that has a set of packages.
async fn world_with_skills() -> Option<World> {
    let folder = tempfile::tempdir().unwrap();
    let index = index::OwnIndex::open(folder.path());
    let world = World::with_packages(Backend::Native, |data| index.settings(data)).await?;
    // For an interpreter that has none.
    index.offer_pip();
    let modules: Vec<_> = (0..500).map(|n| format!("alpha/m{n}.py")).collect();
    let files: Vec<_> = modules.iter().map(|path| (path.as_str(), "x = 1\n")).collect();
    index.wheel("alpha", &files);
    let archive = world::zip_of(&[
        (
            "SKILL.md",
            "---\nname: needs\ndescription: Probes the sandbox\nlang: python\n---\n",
        ),
        ("scripts/main.py", PROGRAM),
        ("requirements.txt", "alpha\n"),
    ]);
    for archive in [probe(), archive] {
        world
            .engine
            .skills()
            .publish(world.admin.tenant(), archive, None)
            .await
            .unwrap();
    }
    // Once, while there is an index.
    engine_once(&world, "needs").await;
    Some(world)
}

async fn engine_once(world: &World, name: &str) -> (f64, [f64; 3]) {
    let started = Instant::now();
    let execution = world.run_latest(name, RunSpec::default()).await.unwrap();
    let total = milliseconds(started);
    let outcome = execution.outcome.unwrap();
    assert_eq!(outcome.status, Status::Success, "{:?}", outcome.error);
    let timings = outcome.timings;
    (total, [timings.sandbox_ms, timings.run_ms, timings.collect_ms])
}

/// The interpreter by bubblewrap.
fn bwrapped(skill: &Path) -> Command {
    let mut command = bubblewrap(skill);
    command.args([PYTHON, "/skills/probe/main.py"]);
    command
}
