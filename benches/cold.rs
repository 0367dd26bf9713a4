//! How long one cold Docker execution takes, compared with starting the same hardened container by shell commands.
//!
//! Both run the same image, skill and limits on the same engine, in turn, in one process, with a pause between runs.
//! `tests/with-engine.sh cargo bench --bench cold` prints medians and their ratio, and fails above the bar.
#![expect(
    clippy::unwrap_used,
    reason = "a bench that cannot go on should stop where it stands"
)]

#[path = "measure/container.rs"]
mod container;
#[path = "../tests/it/world.rs"]
#[expect(dead_code, reason = "the tests' world has more than this bench needs")]
mod world;

use std::path::Path;
use std::time::{Duration, Instant};

use container::{ByHand, Program};
use skillbox::engine::RunSpec;
use skillbox::execution::Status;
use skillbox::sandbox::seccomp;
use skillbox::skill::{Language, Selector, SkillRef};
use world::{Backend, World};

const ROUNDS: usize = 30;
const PAUSE: Duration = Duration::from_millis(30);
/// Skillbox's median over the naive median, at most.
const RATIO_MAX: f64 = 0.65;
const PROGRAM: &str = "import json, os
value = json.load(open(os.environ['SANDBOX_INPUT_FILE']))
json.dump({'echo': value}, open(os.environ['SANDBOX_OUTPUT'], 'w'))
print('done')
";

#[tokio::main]
async fn main() {
    // `cargo test --all-targets` comes here too, without that word; it has no time for this and no release build.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let Some(world) = World::on(Backend::Docker).await else {
        return;
    };
    let archive = world::archive(Language::Python, "version: 1.0.0\n", PROGRAM);
    world
        .engine
        .skills()
        .publish(world.admin.tenant(), archive, None)
        .await
        .unwrap();
    let naive = Naive::new(&world);
    skillbox_once(&world).await;
    naive.once().await;

    let (mut ours, mut theirs, mut phases) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        tokio::time::sleep(PAUSE).await;
        let (total, timings) = skillbox_once(&world).await;
        ours.push(total);
        phases.push(timings);
        tokio::time::sleep(PAUSE).await;
        theirs.push(naive.once().await);
    }
    print_row("skillbox, cold", &mut ours);
    print_row("naive: create, start, wait, logs", &mut theirs);
    let middle = |pick: fn(&[f64; 3]) -> f64| median(&mut phases.iter().map(pick).collect::<Vec<_>>());
    println!(
        "skillbox's median phases: sandbox {:.1} ms, program {:.1} ms, collect {:.1} ms",
        middle(|p| p[0]),
        middle(|p| p[1]),
        middle(|p| p[2])
    );
    let ratio = median(&mut ours) / median(&mut theirs);
    println!("ratio of medians: {ratio:.2} (bar: {RATIO_MAX})");
    world.engine.maintenance().shutdown(Duration::from_secs(10)).await;
    assert!(ratio <= RATIO_MAX, "above the bar");
}

async fn skillbox_once(world: &World) -> (f64, [f64; 3]) {
    let ask = RunSpec {
        input: Some(world::json("{\"n\": 1}")),
        ..RunSpec::default()
    };
    let skill = SkillRef {
        name: "probe".parse().unwrap(),
        selector: Selector::Latest,
    };
    let started = Instant::now();
    let execution = world
        .engine
        .runs()
        .run(
            world.admin.tenant(),
            RunSpec {
                skill: Some(skill),
                ..ask
            },
        )
        .await
        .unwrap();
    let total = milliseconds(started);
    let outcome = execution.outcome.unwrap();
    assert_eq!(outcome.status, Status::Success, "{:?}", outcome.error);
    (
        total,
        [
            outcome.timings.sandbox_ms,
            outcome.timings.run_ms,
            outcome.timings.collect_ms,
        ],
    )
}

/// The same hardened container, driven as most tutorials do.
struct Naive {
    by_hand: ByHand,
    /// The skill's folder, bound into each container.
    _folder: tempfile::TempDir,
}

impl Naive {
    fn new(world: &World) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("main.py"), PROGRAM).unwrap();
        std::fs::write(folder.path().join("input.json"), "{\"n\": 1}").unwrap();
        open_to_all(folder.path());
        let program = Program {
            image: &world.engine.settings().images.python,
            interpreter: "python3",
            file: "main.py",
            folder: folder.path(),
        };
        let seccomp = seccomp::docker_profile(std::env::consts::ARCH).to_string();
        Self {
            by_hand: ByHand::new(&program, &seccomp),
            _folder: folder,
        }
    }

    async fn once(&self) -> f64 {
        let (total, logs) = self.by_hand.once().await;
        assert!(logs.contains("done"), "{logs}");
        total
    }
}

fn open_to_all(folder: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn print_row(name: &str, samples: &mut [f64]) {
    let middle = median(samples);
    let (first, last) = (samples[0], samples[samples.len() - 1]);
    println!("{name:<36} min {first:7.1} ms   median {middle:7.1} ms   max {last:7.1} ms");
}

/// Sorts, and takes the middle.
fn median(samples: &mut [f64]) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1000.0
}
