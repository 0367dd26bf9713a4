//! `skillbox prove`: attacks test sandboxes on this host and reports which promises hold.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::cli::client::EmbeddedClient;
use crate::cli::console::{Console, Format, Mark, Rows};
use crate::cli::exit::Exit;
use crate::cli::failure::{Failure, Result};
use crate::cli::progress::Spinner;
use crate::config::{self, Config};
use crate::engine::ProofProgressLine;
use crate::prove::{self, Finding, Origin, Proof, ProofProgress, Selection, Tally, Target, Verdict};
use crate::server::Signals;

#[derive(Debug, Args)]
#[command(after_help = "\
Attacks only sandboxes that it makes for this, in a temporary data folder, with the images and settings that are configured. \
Takes about a minute for each backend. Ends with 1 if any promise did not hold, and with 75 if this host was too slow to tell.

Examples:
  skillbox prove
  skillbox prove --backend native --only P1 --only S-10
  skillbox prove --format json | jq '.backends[].findings[] | select(.verdict != \"kept\")'")]
pub(crate) struct ProveArgs {
    /// Sandbox backend; by default every backend that is available here
    #[arg(long, value_enum, default_value_t = BackendChoice::All)]
    backend: BackendChoice,
    /// Attack from warm sandboxes, as a server keeps them for recently used skills
    #[arg(long)]
    warm: bool,
    /// Only this promise (P7), attack of the catalogue (S-10) or probe (S-10b); may be repeated
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Print progress as lines of JSON, and end when standard input closes
    #[arg(long, hide = true)]
    supervised: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum BackendChoice {
    /// Docker.
    Docker,
    /// Native.
    Native,
    /// Every available backend.
    All,
}

/// The results of all backends.
#[derive(Debug, Serialize)]
struct ProveReport {
    total: Tally,
    backends: Vec<Proof>,
    /// Unavailable backends and the reasons.
    skipped: Vec<SkippedBackend>,
}

#[derive(Debug, Serialize)]
struct SkippedBackend {
    backend: &'static str,
    reason: String,
}

/// Background work must not delay the shell prompt for long.
const CLOSING_MAX: Duration = Duration::from_secs(30);

/// Interval of progress lines where no bar can be drawn.
const TELL_EVERY: Duration = Duration::from_secs(10);

pub(crate) fn prove(args: &ProveArgs, config: &Config, console: &Console) -> Result<Exit> {
    let selection = Selection::named(&args.only).map_err(|error| Failure::new(Exit::Usage, error))?;
    let mut report = ProveReport {
        total: Tally::default(),
        backends: Vec::new(),
        skipped: Vec::new(),
    };
    let supervisor = args.supervised.then(Supervisor::attach).transpose()?;
    for (wanted, name, backend) in [
        (BackendChoice::Docker, "docker", config::BackendChoice::Docker),
        (BackendChoice::Native, "native", config::BackendChoice::Native),
    ] {
        if args.backend != BackendChoice::All && args.backend != wanted {
            continue;
        }
        let origin = if args.warm { Origin::Warm } else { Origin::Cold };
        let reporter = Reporter {
            console,
            supervisor: supervisor.as_ref(),
        };
        match attack(config, backend, origin, &selection, &reporter)? {
            AttackOutcome::Over(proof) => {
                print(&proof, console)?;
                report.total = report.total.and(proof.total);
                report.backends.push(*proof);
            }
            AttackOutcome::Interrupted => return Ok(Exit::Interrupted),
            AttackOutcome::Unavailable(reason) if args.backend == wanted => {
                return Err(Failure::new(Exit::Unavailable, format!("{name}: {reason}")));
            }
            AttackOutcome::Unavailable(reason) => report.skipped.push(SkippedBackend {
                backend: name,
                reason,
            }),
        }
    }
    conclude(&report, console)
}

enum AttackOutcome {
    Over(Box<Proof>),
    Interrupted,
    /// The backend cannot create sandboxes, for this reason.
    Unavailable(String),
}

/// Attacks one backend, with a temporary data folder.
fn attack(
    config: &Config,
    backend: config::BackendChoice,
    origin: Origin,
    selection: &Selection,
    reporter: &Reporter<'_>,
) -> Result<AttackOutcome> {
    let folder =
        tempfile::tempdir().map_err(|error| Failure::internal("making a temporary data folder", error))?;
    let config = config.trying(backend, folder.path());
    let local = EmbeddedClient::open(&config)?;
    if let Err(error) = local.wait(local.engine().sandbox().check()) {
        local.close();
        return Ok(AttackOutcome::Unavailable(error.to_string()));
    }
    let target = Target {
        engine: local.engine(),
        caller: local.caller(),
        folder: folder.path(),
        runtime: config.sandbox.docker.runtime.as_deref(),
        origin,
    };
    let attacked = local.wait(until_signal(&target, selection, reporter));
    local.close();
    attacked
}

/// Ctrl-C interrupts the attacks and waits until their sandboxes are removed. So does the end of a supervisor.
async fn until_signal(
    target: &Target<'_>,
    selection: &Selection,
    reporter: &Reporter<'_>,
) -> Result<AttackOutcome> {
    let mut signals = Signals::new()?;
    let name = target.engine.sandbox().name();
    let spinner = Spinner::start(format!("attacking {name}"));
    let told_at = Mutex::new(Instant::now());
    let told = |progress: ProofProgress| {
        let ProofProgress { done, all } = progress;
        spinner.say(format!("attacking {name}: {done} of {all}"));
        let mut told_at = told_at.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = done == 0 || done == all || told_at.elapsed() >= TELL_EVERY;
        if reporter.supervisor.is_some() {
            reporter.say_as_json(name, progress);
        } else if !Console::draws_progress() && is_due {
            *told_at = Instant::now();
            reporter.console.say(format!("attacking {name}: {done} of {all}"));
        }
    };
    let interrupted = async {
        tokio::select! {
            () = signals.next() => {}
            () = reporter.unattended() => {}
        }
    };
    tokio::select! {
        proof = prove::prove(target, selection, told) => {
            let proof = proof.map_err(|error| Failure::internal("placing canaries and starting listeners", error))?;
            Ok(AttackOutcome::Over(Box::new(proof)))
        }
        () = interrupted => {
            spinner.say("ending".to_owned());
            let _ = tokio::time::timeout(CLOSING_MAX, target.engine.maintenance().shutdown(Duration::ZERO)).await;
            Ok(AttackOutcome::Interrupted)
        }
    }
}

/// A server that started this command and holds its standard input open.
struct Supervisor {
    gone: CancellationToken,
}

impl Supervisor {
    fn attach() -> Result<Self> {
        let gone = CancellationToken::new();
        let closed = gone.clone();
        // Not a thread of a runtime, which would wait for it at the end.
        std::thread::Builder::new()
            .name("supervisor".to_owned())
            .spawn(move || {
                let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
                closed.cancel();
            })
            .map_err(|error| Failure::internal("watching standard input", error))?;
        Ok(Self { gone })
    }
}

struct Reporter<'a> {
    console: &'a Console,
    supervisor: Option<&'a Supervisor>,
}

impl Reporter<'_> {
    fn say_as_json(&self, backend: &str, ProofProgress { done, all }: ProofProgress) {
        let line = ProofProgressLine {
            backend: backend.to_owned(),
            done,
            total: all,
        };
        self.console.say(serde_json::json!(line));
    }

    /// Returns when the supervisor has gone; never without one.
    async fn unattended(&self) {
        match self.supervisor {
            Some(supervisor) => supervisor.gone.cancelled().await,
            None => std::future::pending().await,
        }
    }
}

/// Prints the result of one backend as soon as it is complete.
fn print(proof: &Proof, console: &Console) -> Result<()> {
    if console.format_or(Format::Table) != Format::Table {
        return Ok(());
    }
    console.heading(&format!("{}: {}", proof.backend, proof.form))?;
    let width = proof
        .findings
        .iter()
        .map(|finding| finding.name.chars().count())
        .max();
    let width = width.unwrap_or_default().min(NAME_WIDTH_MAX);
    for promise in &proof.promises {
        let by = promise
            .mechanism
            .as_ref()
            .map(|by| format!(" ({by})"))
            .unwrap_or_default();
        console.heading(&format!("\n{} {}{by}", promise.promise, promise.says))?;
        for finding in proof
            .findings
            .iter()
            .filter(|finding| finding.promise == promise.promise)
        {
            console.check(mark(finding.verdict), &line(finding, width))?;
        }
        console.check(
            mark(promise.tally.verdict()),
            &format!("{:<12} {}", promise.promise, counted(promise.tally)),
        )?;
    }
    console.text("\n")?;
    let text = format!(
        "{}: {} in {} s\n",
        proof.backend,
        counted(proof.total),
        proof.seconds
    );
    console.check(mark(proof.total.verdict()), &text)
}

/// Longer names are printed in full and shift the mechanism column.
const NAME_WIDTH_MAX: usize = 72;

fn line(finding: &Finding, width: usize) -> String {
    use std::fmt::Write as _;
    let mut text = format!(
        "{:<6} {:<12} {:<width$}  {}",
        finding.id,
        word(finding.verdict),
        finding.name,
        finding.mechanism
    );
    if let Some(reason) = &finding.reason {
        let _ = write!(text, "\n    → {reason}");
    }
    for (client, expected) in &finding.expected {
        let seen = finding.seen.get(client).unwrap_or(&serde_json::Value::Null);
        let _ = write!(text, "\n    → {client}: expected {expected}, seen {seen}");
    }
    for (client, seen) in finding
        .seen
        .iter()
        .filter(|(client, _)| !finding.expected.contains_key(*client))
    {
        let _ = write!(text, "\n    → {client}: {seen}");
    }
    text
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Kept => "kept",
        Verdict::Degraded => "degraded",
        Verdict::Inconclusive => "inconclusive",
        Verdict::Breach => "BREACH",
        Verdict::Skipped => "skipped",
    }
}

fn mark(verdict: Verdict) -> Mark {
    match verdict {
        Verdict::Kept => Mark::Good,
        Verdict::Degraded | Verdict::Inconclusive => Mark::Doubtful,
        Verdict::Breach => Mark::Bad,
        Verdict::Skipped => Mark::Untold,
    }
}

fn counted(tally: Tally) -> String {
    let Tally {
        kept,
        degraded,
        inconclusive,
        breach,
        skipped,
    } = tally;
    let inconclusive = match inconclusive {
        0 => String::new(),
        count => format!("{count} inconclusive, "),
    };
    format!("{kept} kept, {degraded} degraded, {inconclusive}{breach} breach, {skipped} skipped")
}

fn conclude(report: &ProveReport, console: &Console) -> Result<Exit> {
    if console.format_or(Format::Table) == Format::Table {
        for SkippedBackend { backend, reason } in &report.skipped {
            console.check(Mark::Untold, &format!("{backend}: skipped: {reason}"))?;
        }
        if report.backends.len() > 1 {
            console.check(
                mark(report.total.verdict()),
                &format!("in all: {}", counted(report.total)),
            )?;
        }
    } else {
        console.data(Format::Json, report, |_| Rows::default())?;
    }
    if report.backends.is_empty() {
        let why = |skipped: &SkippedBackend| format!("{}: {}", skipped.backend, skipped.reason);
        let all: Vec<_> = report.skipped.iter().map(why).collect();
        return Err(Failure::new(
            Exit::Unavailable,
            format!("no backend is available: {}", all.join("; ")),
        ));
    }
    Ok(exit(report.total))
}

/// An empty output is as bad as none.
fn exit(total: Tally) -> Exit {
    match total.verdict() {
        Verdict::Kept | Verdict::Degraded => Exit::Success,
        Verdict::Inconclusive => Exit::Inconclusive,
        Verdict::Breach => Exit::Failed,
        Verdict::Skipped => Exit::Unavailable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn breach_fails_and_no_result_is_unavailable() {
        let tally = |kept, degraded, breach, skipped| Tally {
            kept,
            degraded,
            inconclusive: 0,
            breach,
            skipped,
        };
        let slow = Tally {
            inconclusive: 1,
            ..tally(120, 4, 0, 0)
        };
        assert_eq!(exit(slow), Exit::Inconclusive);
        assert_eq!(exit(slow.and(tally(0, 0, 1, 0))), Exit::Failed);
        assert_eq!(exit(tally(120, 4, 1, 0)), Exit::Failed);
        assert_eq!(exit(tally(120, 0, 0, 2)), Exit::Success);
        assert_eq!(exit(tally(100, 20, 0, 0)), Exit::Success);
        assert_eq!(exit(tally(0, 0, 0, 120)), Exit::Unavailable);
        assert_eq!(exit(Tally::default()), Exit::Unavailable);
    }
}
