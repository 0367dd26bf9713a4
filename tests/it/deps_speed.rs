//! What packages cost a run that has them: next to nothing, once they are installed.

use std::time::Instant;

use skillbox::engine::RunSpec;

use super::deps::world_with_index;
use crate::attempts::print_forgiven;
use crate::outcomes::succeeded;
use crate::world::{World, zip_of};

/// Rounds of one comparison, a run of either kind in each.
const ROUNDS: usize = 30;
/// Rounds before those: they fill pools and caches, and install.
const WARM_UP: usize = 3;
/// Comparisons until one is good: a machine that does other things besides is slow now here, now there.
const ATTEMPTS: usize = 3;
/// The promise is 1.05, which `cargo bench --bench native` holds to on a quiet machine.
const MOST: f64 = 1.25;
const NEITHER: &str = "plain";
const WITH: &str = "needs";

async fn publish(world: &World, name: &str, more: &[(&str, &str)]) {
    let skill_md = format!("---\nname: {name}\ndescription: Does nothing.\nlang: python\n---\n");
    let files = [("SKILL.md", skill_md.as_str()), ("scripts/main.py", "pass\n")];
    let archive = zip_of(&[&files[..], more].concat());
    world
        .skills()
        .publish(world.tenant(), archive, None)
        .await
        .unwrap();
}

/// Milliseconds until the program was started, and in all.
async fn run(world: &World, name: &str) -> [f64; 2] {
    let begun = Instant::now();
    let execution = world.run_latest(name, RunSpec::default()).await.unwrap();
    let total = begun.elapsed().as_secs_f64() * 1000.0;
    [succeeded(execution).timings.sandbox_ms, total]
}

fn median(runs: &[[f64; 2]], which: usize) -> f64 {
    let mut sorted: Vec<_> = runs.iter().map(|run| run[which]).collect();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// The ratios of medians: of the start, and of all.
async fn compare(world: &World) -> [f64; 2] {
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for round in 0..WARM_UP + ROUNDS {
        // Each goes first in every other round.
        let pair = if round % 2 == 0 {
            let first = run(world, NEITHER).await;
            (first, run(world, WITH).await)
        } else {
            let first = run(world, WITH).await;
            (run(world, NEITHER).await, first)
        };
        if round >= WARM_UP {
            without.push(pair.0);
            with.push(pair.1);
        }
    }
    let ratios = [0, 1].map(|which| median(&with, which) / median(&without, which));
    for (which, name) in ["start", "all"].into_iter().enumerate() {
        let [one, other] = [&with, &without].map(|runs| median(runs, which));
        println!(
            "{:?} {name}: {one:.1} ms with packages, {other:.1} ms without: {:.3}",
            super::BACKEND,
            ratios[which]
        );
    }
    ratios
}

#[tokio::test]
async fn packages_do_not_slow_down_start() {
    let Some((world, index)) = world_with_index().await else {
        return;
    };
    let modules: Vec<_> = (0..500).map(|n| format!("alpha/m{n}.py")).collect();
    let files: Vec<_> = modules.iter().map(|path| (path.as_str(), "x = 1\n")).collect();
    index.wheel("alpha", &files);
    publish(&world, NEITHER, &[]).await;
    publish(&world, WITH, &[("requirements.txt", "alpha\n")]).await;
    let mut seen = Vec::new();
    for _ in 0..ATTEMPTS {
        let ratios = compare(&world).await;
        if ratios.iter().all(|ratio| *ratio <= MOST) {
            print_forgiven(&seen);
            return;
        }
        seen.push(format!("ratios {ratios:.3?} of at most {MOST}"));
    }
    panic!("start and all, with packages to without: {seen:?}");
}
