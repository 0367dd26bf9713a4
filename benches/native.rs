//! How long one execution of an empty Python program takes on the native sandbox, limits on, next to the bare interpreter.
//!
//! Both run in turn in one process with a pause between, for a tight loop hides what moving a process into a cgroup costs.
//! `cargo bench --bench native` prints medians and their ratio, and fails above the bar.
#![expect(
    clippy::unwrap_used,
    reason = "a bench that cannot go on should stop where it stands"
)]

#[path = "../tests/it/world.rs"]
#[expect(dead_code, reason = "the tests' world has more than this bench needs")]
mod world;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use skillbox::engine::{Ask, RunRequest, What};
use skillbox::execution::Status;
use skillbox::skill::{Language, Selector};
use world::{Backend, World};

const ROUNDS: usize = 60;
const PAUSE: Duration = Duration::from_millis(30);
/// Skillbox's median over the bare interpreter's, at most.
const RATIO_MAX: f64 = 1.35;
const PYTHON: &str = "/usr/bin/python3";

#[tokio::main]
async fn main() {
    // `cargo test --benches` only asks whether it builds.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let Some(world) = World::on(Backend::Native).await else {
        return;
    };
    let archive = world::archive(Language::Python, "version: 1.0.0\n", "pass\n");
    world.engine.publish(&world.admin, archive, None).await.unwrap();
    let (mut ours, mut bare, mut phases) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS + 5 {
        tokio::time::sleep(PAUSE).await;
        let (total, timings) = skillbox_once(&world).await;
        tokio::time::sleep(PAUSE).await;
        let alone = bare_once();
        // The first rounds fill pools and caches.
        if round >= 5 {
            ours.push(total);
            phases.push(timings);
            bare.push(alone);
        }
    }
    print_row("skillbox, native, cold", &mut ours);
    print_row("python3 -c pass", &mut bare);
    let middle = |pick: fn(&[f64; 3]) -> f64| median(&mut phases.iter().map(pick).collect::<Vec<_>>());
    println!(
        "skillbox's median phases: sandbox {:.2} ms, program {:.2} ms, collect {:.2} ms",
        middle(|p| p[0]),
        middle(|p| p[1]),
        middle(|p| p[2])
    );
    let ratio = median(&mut ours) / median(&mut bare);
    println!("ratio of medians: {ratio:.2} (bar: {RATIO_MAX})");
    world.engine.shutdown(Duration::from_secs(10)).await;
    assert!(ratio <= RATIO_MAX, "above the bar");
}

async fn skillbox_once(world: &World) -> (f64, [f64; 3]) {
    let what = What::Skill {
        name: "probe".parse().unwrap(),
        selector: Selector::Latest,
    };
    let request = RunRequest {
        what,
        ask: Ask::default(),
        progress: None,
    };
    let started = Instant::now();
    let execution = world.engine.run(&world.admin, request).await.unwrap();
    let total = milliseconds(started);
    let outcome = execution.outcome.unwrap();
    assert_eq!(outcome.status, Status::Success, "{:?}", outcome.error);
    let timings = outcome.timings;
    (total, [timings.sandbox_ms, timings.run_ms, timings.collect_ms])
}

fn bare_once() -> f64 {
    let started = Instant::now();
    let status = Command::new(PYTHON)
        .args(["-c", "pass"])
        .env_clear()
        .stdin(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    milliseconds(started)
}

fn print_row(name: &str, samples: &mut [f64]) {
    let middle = median(samples);
    let (first, last) = (samples[0], samples[samples.len() - 1]);
    println!("{name:<36} min {first:7.2} ms   median {middle:7.2} ms   max {last:7.2} ms");
}

/// Sorts, and takes the middle.
fn median(samples: &mut [f64]) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1000.0
}
