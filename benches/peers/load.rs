//! What many clients at once get, beside what the bare interpreter, or the engine itself, gives as many.

use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;

use crate::containers::Containers;
use crate::judged::{Judged, Most};
use crate::latency::servers;
use crate::measure::{Row, Served, timed};
use crate::memory::cpu_seconds;
use crate::sandboxes::{bubblewrapped, is_there};
use crate::spoken::Spoken;
use crate::world::{self, Backend};

const CLIENTS: [usize; 5] = [1, 2, 8, 16, 32];
/// Each measurement; twice as long with containers, which are fewer.
const NATIVE: Duration = Duration::from_secs(3);
const DOCKER: Duration = Duration::from_secs(5);

/// What so many clients got.
struct Load {
    row: Row,
    per_second: f64,
}

/// Asks again and again from `clients` threads, each with its own client made by `begin`.
fn load<C>(
    clients: usize,
    lasts: Duration,
    begin: impl Fn() -> C + Sync,
    once: impl Fn(&mut C) -> f64 + Sync,
) -> Load {
    let all = Mutex::new(Row::new("load"));
    let started = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..clients {
            scope.spawn(|| {
                let (mut client, mut taken) = (begin(), Vec::new());
                while started.elapsed() < lasts {
                    taken.push(once(&mut client));
                }
                all.lock().unwrap().milliseconds.extend(taken);
            });
        }
    });
    let took = started.elapsed().as_secs_f64();
    let row = all.into_inner().unwrap();
    let count = f64::from(u32::try_from(row.milliseconds.len()).unwrap());
    Load {
        row,
        per_second: count / took,
    }
}

fn rest(served: &Served, spoken: &Spoken, clients: usize, lasts: Duration) -> (Load, f64) {
    let before = cpu_seconds(served.server.process.id());
    let load = load(clients, lasts, ureq::Agent::new_with_defaults, |agent| {
        served.once_by(agent, spoken.name).0
    });
    let used = cpu_seconds(served.server.process.id()) - before;
    let count = f64::from(u32::try_from(load.row.milliseconds.len()).unwrap());
    (load, used * 1000.0 / count)
}

pub(crate) fn measure(runtime: &Runtime, backend: Backend, word: &str, spoken: &Spoken, judged: &mut Judged) {
    if !Path::new(spoken.interpreter).exists() || runtime.block_on(world::World::on(backend)).is_none() {
        return println!("left out: load on {word}, {}", spoken.name);
    }
    let (cold, warm) = servers(word, spoken);
    let folder = spoken.folder();
    let containers = (backend == Backend::Docker).then(|| Containers::new(spoken));
    let lasts = if containers.is_some() { DOCKER } else { NATIVE };
    let other = ["bare", "the engine itself"][usize::from(containers.is_some())];
    judged.line(String::new());
    judged.line(format!(
        "load, {word}, {:<12} {other:>18} {:>10} {:>7} {:>9} {:>9} {:>8} {:>10} {:>7} {:>9} {:>8}",
        spoken.name, "cold", "ratio", "p50 ms", "p99 ms", "CPU ms", "default", "ratio", "p99 ms", "CPU ms"
    ));
    let cores = f64::from(u32::try_from(std::thread::available_parallelism().unwrap().get()).unwrap());
    let (mut services, mut best) = ([0.0; 2], [0.0_f64; 3]);
    for clients in CLIENTS {
        let theirs = match &containers {
            Some(containers) => load(clients, lasts, || (), |()| runtime.block_on(containers.cycle())),
            None => load(clients, lasts, || (), |()| bare(spoken, folder.path())),
        };
        let (cold, cold_cpu) = rest(&cold, spoken, clients, lasts);
        let (warm, warm_cpu) = rest(&warm, spoken, clients, lasts);
        let per_second = [theirs.per_second, cold.per_second, warm.per_second];
        best = std::array::from_fn(|at| best[at].max(per_second[at]));
        let ratio = |ours: &Load| ours.per_second / theirs.per_second;
        let p99 = |ours: &Load| ours.row.quantile(0.99);
        judged.line(format!(
            "  {clients:>2} clients {:>21.1}/s {:>15.1}/s {:>7.2} {:>9.1} {:>9.1} {cold_cpu:>8.2} {:>8.1}/s {:>7.2} {:>9.1} {warm_cpu:>8.2}",
            theirs.per_second, cold.per_second, ratio(&cold), cold.row.quantile(0.5), p99(&cold),
            warm.per_second, ratio(&warm), p99(&warm)
        ));
        if clients == 1 {
            services = [cold.row.quantile(0.5), warm.row.quantile(0.5)];
        }
        if clients != 16 {
            continue;
        }
        if backend == Backend::Native {
            judged.line(bubblewrap_alone(spoken, folder.path(), &theirs));
        }
        let name = |what: &str| format!("{word} {}, 16 clients: {what}", spoken.name);
        let fair = |service: f64| 16.0 / cores * service;
        match (backend, spoken.name) {
            (Backend::Native, "python") => {
                judged.bar(name("default / bare"), ratio(&warm), Most::AtLeast(0.8))
            }
            (Backend::Native, "bash") => {
                judged.bar(name("executions/s"), warm.per_second, Most::AtLeast(400.0))
            }
            _ => {}
        }
        judged.bar(
            name("p99 / (clients / cores x service time), cold"),
            p99(&cold) / fair(services[0]),
            Most::AtMost(1.5),
        );
        judged.bar(
            name("p99 / (clients / cores x service time), default"),
            p99(&warm) / fair(services[1]),
            Most::AtMost(1.5),
        );
    }
    if backend == Backend::Docker && spoken.name == "python" {
        let ours = best[1].max(best[2]);
        judged.bar(
            "docker python: best executions/s / the engine's own best".to_owned(),
            ours / best[0],
            Most::AtLeast(0.9),
        );
    }
}

/// What bubblewrap makes of the same machine with 16 clients.
fn bubblewrap_alone(spoken: &Spoken, folder: &Path, bare: &Load) -> String {
    if !is_there("bwrap") {
        return "  left out: bubblewrap is not installed".to_owned();
    }
    let begin = || bubblewrapped(spoken, folder);
    let theirs = load(16, NATIVE, begin, |command| timed(command, &[])).per_second;
    format!(
        "  16 times bubblewrap {theirs:.1}/s, {:.2} of bare: without HTTP, cgroups, filter and records",
        theirs / bare.per_second
    )
}

fn bare(spoken: &Spoken, folder: &Path) -> f64 {
    let (mut command, env) = spoken.bare(folder);
    let env: Vec<(&str, &Path)> = env.iter().map(|(name, path)| (*name, path.as_path())).collect();
    timed(&mut command, &env)
}
