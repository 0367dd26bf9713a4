//! Attacks its own sandboxes on this host, through the real engine, and reports which promises hold.
//!
//! The attacks are data (`*.yaml`) and programs (`probes/`). They attack only sandboxes created for them.

mod attacker;
mod backend_info;
mod leftovers;
mod probe;
mod programs;
mod report;
mod surroundings;
#[cfg(test)]
mod tests;
mod verdict;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use serde::Serialize;
use serde_json::{Value, json};

use crate::auth::Caller;
use crate::engine::{Engine, RunRequest, UnpublishedArchive};
use crate::error::{Code, Error};
use crate::execution::{Outcome, Status};
use crate::limits;
use crate::sandbox::WarmPoolSettings;
use crate::secret::SecretValue;
use crate::skill::{Language, SecretName};

use attacker::{Attacker, ProbeSkill};
use backend_info::BackendInfo;
use probe::Attack;
use surroundings::Surroundings;
use verdict::{Observation, check_probe, is_only_late, on_slow_host};

pub use attacker::Origin;
pub use probe::Selection;
pub use report::{PromiseTally, Proof, Tally};
pub use verdict::{Finding, Verdict};

#[derive(Debug)]
pub struct Target<'a> {
    /// The engine to attack, with one backend and a folder of its own.
    pub engine: &'a Engine,
    /// An administrator of the engine.
    pub caller: &'a Caller,
    pub folder: &'a Path,
    /// Configured runtime of the container engine.
    pub runtime: Option<&'a str>,
    pub origin: Origin,
}

#[derive(Clone, Copy, Debug)]
pub struct ProofProgress {
    /// Completed attacks.
    pub done: usize,
    pub all: usize,
}

/// Only two: more would distort the durations that some probes check.
const AT_ONCE: usize = 2;
/// A busy host may be late once; a sandbox without a time limit is always late.
const IN_TIME_TRIES: usize = 3;
/// Enough for every interpreter, kept for the whole proof.
const WARM_POOL: WarmPoolSettings = WarmPoolSettings {
    slots: 8,
    memory_bytes: 256 << 20,
    idle: limits::WARM_IDLE_MAX,
};
/// Pause between two runs of the neighbour.
const NEIGHBOUR_EVERY: Duration = Duration::from_millis(500);

/// Runs the selected attacks and checks their probes. Ends in limited time; shutting the engine down ends the
/// attacks.
pub async fn prove(
    target: &Target<'_>,
    selection: &Selection,
    progress: impl Fn(ProofProgress) + Sync,
) -> io::Result<Proof> {
    let started = Instant::now();
    let backend = BackendInfo::of(target.engine, target.runtime).await;
    let surroundings = Surroundings::set_up(target.folder)?;
    plant_secrets(target, surroundings.secret())
        .await
        .map_err(io::Error::other)?;
    let attacks = selection.on(&backend.traits);
    let (looks, shots): (Vec<_>, Vec<_>) = attacks.iter().partition(|attack| attack.program.is_none());
    let is_native = backend.traits.iter().any(|name| name == "native");
    let slowness = slowness(target, is_native).await;
    let attacker = Attacker {
        engine: target.engine,
        caller: target.caller,
        surroundings: &surroundings,
        origin: target.origin,
        slowness,
    };
    if target.origin == Origin::Warm {
        target.engine.maintenance().keep_warm(WARM_POOL);
    }
    let done = AtomicUsize::new(0);
    let all = shots.len();
    progress(ProofProgress { done: 0, all });
    let attack_all = futures::stream::iter(shots.iter().copied())
        .map(async |attack| {
            let observation = if attack.needs_bounds && !backend.degraded.is_empty() {
                Observation::NotTried
            } else {
                attack_in_time(&attacker, attack, &backend.traits).await
            };
            let done = done.fetch_add(1, Ordering::SeqCst) + 1;
            progress(ProofProgress { done, all });
            (attack, observation)
        })
        .buffer_unordered(AT_ONCE)
        .collect::<Vec<(&Attack, Observation)>>();
    let (mut observations, neighbour) = beside_a_neighbour(target, attack_all).await;
    if !looks.is_empty() {
        let seen = Observation::Outcome(afterwards(target, &surroundings, &neighbour).await);
        observations.extend(looks.into_iter().map(|look| (look, seen.clone())));
    }
    let mut findings: Vec<_> = observations
        .iter()
        .flat_map(|(attack, observation)| {
            attack
                .probes
                .iter()
                .map(|probe| check_probe(probe, observation, &backend.traits))
                .map(|finding| on_slow_host(finding, observation, slowness))
        })
        .collect();
    let promises = report::by_promise(&mut findings, &backend.mechanisms);
    let waited = |(attack, observation): &&(&Attack, Observation)| {
        attack.program.is_some() && matches!(observation, Observation::Outcome(seen) if seen["warm"] == true)
    };
    Ok(Proof {
        waited: observations.iter().filter(waited).count(),
        backend: backend.backend.to_owned(),
        form: backend.form,
        degraded: report::degraded(&backend.degraded, &promises),
        total: Tally::of(&findings),
        promises,
        findings,
        seconds: (started.elapsed().as_secs_f64() * 10.0).round() / 10.0,
    })
}

/// Times of a small program in a cold sandbox on an ordinary host.
const USUAL_RUN_NATIVE: Duration = Duration::from_millis(200);
const USUAL_RUN: Duration = Duration::from_millis(400);
/// Attacks get at most so many times their own time limit.
const SLOWNESS_MAX: f64 = 20.0;

/// How many times slower than an ordinary host this one runs the part that all Python programs begin with; at least 1.
async fn slowness(target: &Target<'_>, is_native: bool) -> f64 {
    let program = programs::python("conclude()");
    let mut fastest = f64::INFINITY;
    for _ in 0..2 {
        let started = Instant::now();
        if run_small(target, Language::Python, &program).await.is_ok() {
            fastest = fastest.min(started.elapsed().as_secs_f64());
        }
    }
    let usual = if is_native { USUAL_RUN_NATIVE } else { USUAL_RUN };
    let slowness = fastest / usual.as_secs_f64();
    if slowness.is_finite() {
        slowness.clamp(1.0, SLOWNESS_MAX)
    } else {
        1.0
    }
}

/// Repeats an attack that only took too long.
async fn attack_in_time(attacker: &Attacker<'_>, attack: &Attack, traits: &[String]) -> Observation {
    let mut observation = attacker.attack(attack).await;
    for _ in 1..IN_TIME_TRIES {
        if !is_only_late(&attack.probes, &observation, traits) {
            break;
        }
        tracing::warn!(probe = attack.probes[0].id, "Probe took too long, tried again");
        observation = attacker.attack(attack).await;
    }
    observation
}

/// Stores a secret that one program declares, and another that none does.
async fn plant_secrets(target: &Target<'_>, secret: &str) -> Result<(), Error> {
    for (name, value) in [
        ("PROVE_DECLARED", secret.to_owned()),
        ("PROVE_OTHER", format!("of nobody: {secret}")),
    ] {
        let name: SecretName = name.parse().map_err(Error::internal)?;
        let value = SecretValue::new(value).map_err(Error::internal)?;
        target
            .engine
            .secrets()
            .set(target.caller.tenant(), &name, &value)
            .await?;
    }
    Ok(())
}

/// Executions of another skill during the attacks.
#[derive(Debug, Default, Serialize)]
struct Neighbour {
    runs: usize,
    failed: usize,
    slowest_seconds: f64,
    /// The first failure.
    why: Option<String>,
}

impl Neighbour {
    fn take(&mut self, run: Result<(), Option<String>>, seconds: f64) {
        match run {
            Ok(()) => self.runs += 1,
            Err(Some(why)) => {
                self.failed += 1;
                self.why.get_or_insert(why);
            }
            // Bash is missing, for example.
            Err(None) => {}
        }
        self.slowest_seconds = self.slowest_seconds.max(seconds);
    }
}

/// Runs another small skill repeatedly during `work`.
async fn beside_a_neighbour<T>(target: &Target<'_>, work: impl Future<Output = T>) -> (T, Neighbour) {
    let mut seen = Neighbour::default();
    tokio::pin!(work);
    loop {
        tokio::select! {
            done = &mut work => return (done, seen),
            () = tokio::time::sleep(NEIGHBOUR_EVERY) => {}
        }
        let started = Instant::now();
        let neighbour = neighbour(target);
        tokio::pin!(neighbour);
        // Awaited even if the attacks end first.
        let (run, over) = tokio::select! {
            run = &mut neighbour => (run, None),
            done = &mut work => (neighbour.await, Some(done)),
        };
        seen.take(run, started.elapsed().as_secs_f64());
        if let Some(done) = over {
            return (done, seen);
        }
    }
}

async fn neighbour(target: &Target<'_>) -> Result<(), Option<String>> {
    run_small(target, Language::Bash, "echo '\"well\"' >\"$SANDBOX_OUTPUT\"").await
}

/// Runs a small skill that must succeed. `Err(None)` means that it cannot run here.
async fn run_small(target: &Target<'_>, language: Language, program: &str) -> Result<(), Option<String>> {
    let skill = ProbeSkill {
        language,
        program,
        front_matter: &[],
        beside: &BTreeMap::new(),
    };
    let archive = skill.archive(target.folder);
    let request = RunRequest {
        archive: Some(UnpublishedArchive {
            zip: archive.map_err(|error| Some(error.to_string()))?,
            fallback_name: None,
        }),
        ..RunRequest::default()
    };
    match target.engine.runs().run(target.caller.tenant(), request).await {
        Err(error) if error.code() == Code::SandboxUnavailable => Err(None),
        Err(error) => Err(Some(error.to_string())),
        Ok(execution) => match execution.outcome {
            Some(outcome) if outcome.status == Status::Success && outcome.output.is_some() => Ok(()),
            Some(Outcome {
                error: Some(error), ..
            }) => Err(Some(error.message)),
            Some(_) | None => Err(Some(format!(
                "its status is {} and it has no output",
                execution.status
            ))),
        },
    }
}

/// Checks this host after all attacks.
async fn afterwards(target: &Target<'_>, surroundings: &Surroundings, neighbour: &Neighbour) -> Value {
    let mut seen = surroundings.after();
    let left = leftovers::find(target).await;
    seen["left"] = left.into();
    seen["neighbour"] = json!(neighbour);
    seen
}
