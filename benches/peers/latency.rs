//! How long one execution takes, each way in turn.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use skillbox::engine::RunSpec;
use skillbox::execution::Status;
use skillbox::sandbox::WarmPoolSettings;
use tokio::runtime::Runtime;

use crate::containers::Containers;
use crate::judged::{Judged, Most, of};
use crate::measure::{Row, Served, milliseconds, timed, timed_as_it_is};
use crate::memory::cpu_seconds;
use crate::sandboxes::{Driver, bubblewrapped, bundle, is_there};
use crate::spoken::Spoken;
use crate::world::{self, Backend, World};

/// Rounds that are measured, unless the environment says otherwise.
const ROUNDS: usize = 100;
/// Rounds before those: they fill pools and caches.
const WARM_UP: usize = 5;
pub(crate) const PAUSE: Duration = Duration::from_millis(30);

pub(crate) const BARE: &str = "bare interpreter";
pub(crate) const BWRAP: &str = "bubblewrap, same binds and namespaces";
pub(crate) const CRUN: &str = "crun, same hardening";
pub(crate) const RUNC: &str = "runc, same hardening";
pub(crate) const RUN: &str = "docker run, same hardening";
pub(crate) const NAIVE: &str = "create, start, wait, logs by hand";
pub(crate) const ENGINE_COLD: &str = "skillbox, engine, cold";
pub(crate) const ENGINE_WARM: &str = "skillbox, engine, warm";
pub(crate) const REST_COLD: &str = "skillbox, REST, cold";
pub(crate) const REST_WARM: &str = "skillbox, REST, warm";
const CLI_SERVER: &str = "skillbox, CLI to a server, warm";
const CLI_LOCAL: &str = "skillbox, CLI, no server";

pub(crate) fn rounds() -> usize {
    std::env::var("SKILLBOX_TEST_ROUNDS").map_or(ROUNDS, |text| text.parse().unwrap())
}

/// One way to run the program: its name, and a sample of it.
pub(crate) type Way<'a> = (&'static str, Box<dyn FnMut() -> f64 + 'a>);

/// What takes long and has no bar is taken less often.
const SELDOM: usize = 4;

/// Takes all in turn.
pub(crate) fn in_turn(mut ways: Vec<Way<'_>>, rounds: usize) -> Vec<Row> {
    let mut rows: Vec<Row> = ways.iter().map(|(name, _)| Row::new(name)).collect();
    for round in 0..WARM_UP + rounds {
        for (row, (_, sample)) in rows.iter_mut().zip(&mut ways) {
            if row.name.contains("CLI") && round % SELDOM != 0 {
                continue;
            }
            std::thread::sleep(PAUSE);
            let taken = sample();
            if round >= WARM_UP {
                row.milliseconds.push(taken);
            }
        }
    }
    rows
}

/// A server without and one with interpreters that wait.
pub(crate) fn servers(word: &str, spoken: &Spoken) -> (Served, Served) {
    let start = |slots| {
        let env = [("SKILLBOX_SANDBOX_BACKEND", word), ("SKILLBOX_POOL_SLOTS", slots)];
        Served::start_with(&env, vec![spoken.archive()])
    };
    (start("0"), start("8"))
}

pub(crate) fn measure(runtime: &Runtime, backend: Backend, word: &str, spoken: &Spoken, judged: &mut Judged) {
    let Some(cold_world) = runtime.block_on(world_with(backend, spoken)) else {
        return println!("left out: {word} sandboxes are missing");
    };
    let Some(warm_world) = runtime.block_on(world_with(backend, spoken)) else {
        return;
    };
    warm_world
        .engine
        .maintenance()
        .keep_warm(WarmPoolSettings::default());
    let (cold, warm) = servers(word, spoken);
    let folder = spoken.folder();
    let path = folder.path();
    let containers = (backend == Backend::Docker).then(|| Containers::new(spoken));
    let (bare, env) = spoken.bare(path);
    let env: Vec<(&str, &Path)> = env.iter().map(|(name, path)| (*name, path.as_path())).collect();
    let mut bare = bare;
    let mut ways: Vec<Way<'_>> = vec![(BARE, Box::new(|| timed(&mut bare, &env)))];
    match &containers {
        Some(containers) => {
            ways.push((RUN, Box::new(|| containers.docker_run())));
            ways.push((NAIVE, Box::new(|| runtime.block_on(containers.naive()))));
        }
        None => ways.extend(local_peers(spoken, path)),
    }
    ways.push((
        ENGINE_COLD,
        Box::new(|| engine_once(runtime, &cold_world, spoken)),
    ));
    ways.push((
        ENGINE_WARM,
        Box::new(|| engine_once(runtime, &warm_world, spoken)),
    ));
    ways.push((REST_COLD, Box::new(|| cold.once(spoken.name).0)));
    let (mut asked, mut found) = (0_usize, 0_usize);
    ways.push((
        REST_WARM,
        Box::new(|| {
            let (taken, had_waited) = warm.once(spoken.name);
            asked += 1;
            found += usize::from(had_waited);
            taken
        }),
    ));
    let mut remote = remote(&warm, spoken);
    ways.push((CLI_SERVER, Box::new(move || timed_as_it_is(&mut remote))));
    let mut local = local(word, spoken, path);
    ways.push((CLI_LOCAL, Box::new(move || timed_as_it_is(&mut local))));
    let before = cpu_seconds(warm.server.process.id());
    let rows = in_turn(ways, rounds());
    let used = cpu_seconds(warm.server.process.id()) - before;
    judged.rows(&format!("{word}, {}", spoken.name), &rows);
    judged.line(format!(
        "  {found} of {asked} REST requests found one that waited"
    ));
    // The server's requests: those by REST and those by the command line.
    let each = used * 1000.0 / f64::from(u32::try_from(asked + asked.div_ceil(SELDOM)).unwrap());
    judged.line(format!(
        "  server's CPU per warm execution, all that it does for it: {each:.2} ms"
    ));
    bars(word, spoken, &rows, judged);
    if backend == Backend::Native && spoken.name != "bash" {
        judged.bar(
            format!("native {}: server's CPU per warm execution, ms", spoken.name),
            each,
            Most::AtMost(1.5),
        );
    }
    for world in [&cold_world, &warm_world] {
        runtime.block_on(world.engine.maintenance().shutdown(Duration::from_secs(10)));
    }
}

async fn world_with(backend: Backend, spoken: &Spoken) -> Option<World> {
    let world = World::on(backend).await?;
    world
        .engine
        .skills()
        .publish(world.admin.tenant(), spoken.archive(), None)
        .await
        .unwrap();
    Some(world)
}

/// bubblewrap, crun and runc, as far as they are here.
fn local_peers<'a>(spoken: &'a Spoken, folder: &Path) -> Vec<Way<'a>> {
    let mut ways: Vec<Way<'a>> = Vec::new();
    if is_there("bwrap") {
        let mut command = bubblewrapped(spoken, folder);
        ways.push((BWRAP, Box::new(move || timed(&mut command, &[]))));
    } else {
        println!("left out: bubblewrap is not installed");
    }
    let bundle = bundle(spoken, folder);
    for (program, name) in [("crun", CRUN), ("runc", RUNC)] {
        if !is_there(program) {
            println!("left out: {program} is not installed");
            continue;
        }
        let (mut shell, mut run, bundle) = (Driver::shell(), 0, bundle.clone());
        ways.push((
            name,
            Box::new(move || {
                run += 1;
                let started = Instant::now();
                let line = format!(
                    "{program} run --bundle {} skillbox-bench-{}-{run}",
                    bundle.display(),
                    std::process::id()
                );
                let answer = shell.ask(&line);
                let total = milliseconds(started);
                assert_eq!(answer, "0", "{program} could not run the program");
                total
            }),
        ));
    }
    ways
}

fn engine_once(runtime: &Runtime, world: &World, spoken: &Spoken) -> f64 {
    runtime.block_on(async {
        let ask = RunSpec {
            input: Some(world::json("{\"x\": 1}")),
            ..RunSpec::default()
        };
        let started = Instant::now();
        let execution = world.run_latest(spoken.name, ask).await.unwrap();
        let total = milliseconds(started);
        let outcome = execution.outcome.unwrap();
        assert_eq!(outcome.status, Status::Success, "{:?}", outcome.error);
        total
    })
}

fn skillbox(arguments: &[&str], data: PathBuf) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_skillbox"));
    let images = world::images();
    let list = [&images.python, &images.node, &images.bash]
        .map(String::as_str)
        .join(",");
    command
        .args(arguments)
        .env("HOME", &data)
        .env("SKILLBOX_DATA_DIR", data)
        .env("SKILLBOX_IMAGE_PYTHON", &images.python)
        .env("SKILLBOX_IMAGE_NODE", &images.node)
        .env("SKILLBOX_IMAGE_BASH", &images.bash)
        .env("SKILLBOX_IMAGE_ALLOWLIST", list);
    command
}

fn remote(served: &Served, spoken: &Spoken) -> Command {
    let data = served.server.data.with_extension("client");
    let mut command = skillbox(&["run", spoken.name, "--input", "{\"x\": 1}"], data);
    command
        .env("SKILLBOX_SERVER_URL", &served.server.url)
        .env("SKILLBOX_API_KEY", served.server.key());
    command
}

fn local(word: &str, spoken: &Spoken, folder: &Path) -> Command {
    let skill = folder.join(spoken.name).display().to_string();
    let data = folder.join("data");
    std::fs::create_dir(&data).unwrap();
    let mut command = skillbox(&["run", &skill, "--input", "{\"x\": 1}"], data.join("skillbox"));
    command.env("SKILLBOX_SANDBOX_BACKEND", word);
    command
}

/// The bars of the issue that this part can tell.
fn bars(word: &str, spoken: &Spoken, rows: &[Row], judged: &mut Judged) {
    let p50 = |name: &str| of(rows, name, 0.5);
    let p99 = |name: &str| of(rows, name, 0.99);
    let mut bar = |what: &str, ours: Option<f64>, theirs: Option<f64>, most: Most| {
        if let (Some(ours), Some(theirs)) = (ours, theirs) {
            judged.bar(format!("{word} {}: {what}", spoken.name), ours / theirs, most);
        }
    };
    let (cold, warm, bare) = (p50(REST_COLD), p50(REST_WARM), p50(BARE));
    match (word, spoken.name) {
        ("native", "python") => {
            bar("cold / bare", cold, bare, Most::AtMost(1.35));
            bar("cold p99 / bare p50", p99(REST_COLD), bare, Most::AtMost(2.0));
            bar("warm / bare", warm, bare, Most::AtMost(0.35));
            bar("warm p99 / bare p50", p99(REST_WARM), bare, Most::AtMost(1.0));
            bar("cold / bwrap", cold, p50(BWRAP), Most::AtMost(1.1));
            bar("warm / bwrap", warm, p50(BWRAP), Most::AtMost(0.35));
            bar("cold / crun", cold, p50(CRUN), Most::AtMost(0.55));
            bar("cold / runc", cold, p50(RUNC), Most::AtMost(0.45));
        }
        ("native", "node") => {
            bar("cold / bare", cold, bare, Most::AtMost(1.15));
            bar("warm / bare", warm, bare, Most::AtMost(0.3));
        }
        ("native", _) => {
            for (what, ours) in [("cold - bare, ms", cold), ("warm - bare, ms", warm)] {
                let more = ours.zip(bare).map(|(ours, bare)| ours - bare);
                bar(what, more, Some(1.0), Most::AtMost(2.5));
            }
        }
        (_, "python") => {
            bar("warm / bare", warm, bare, Most::AtMost(0.5));
            bar("docker run / warm", p50(RUN), warm, Most::AtLeast(12.0));
            bar("naive sequence / warm", p50(NAIVE), warm, Most::AtLeast(12.0));
            bar("cold / naive sequence", cold, p50(NAIVE), Most::AtMost(0.65));
        }
        _ => {}
    }
}
