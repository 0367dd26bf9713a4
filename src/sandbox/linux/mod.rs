//! Sandboxes made of the kernel's own parts: namespaces, cgroups, seccomp, Landlock. No engine, no image, no daemon.
//!
//! A process waits in namespaces of its own and inside its bounds before it is needed; then it gets its plan, performs it
//! on itself and is the same guest as in a container. Each serves one execution and dies with it, or with the server.

mod cgroup;
mod ending;
mod forbidden;
mod handover;
mod host;
mod identity;
mod init;
mod loopback;
#[cfg(feature = "testing")]
mod mutation;
mod parts;
mod plan;
mod pool;
mod seen;
mod spawn;
mod step;
mod watch;
mod zygote;

use std::path::PathBuf;
use std::sync::Arc;

use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use crate::error::Cause;
use crate::execution::{ResourceLimits, Usage};
use crate::ids::InstanceId;
use crate::limits;
use crate::sandbox::report::report;
use crate::sandbox::session::{self, Guest, Heard};
use crate::sandbox::warm::{Making, Recurring, Shelf};
use crate::sandbox::{
    Backend, Choice, End, Error, Job, Kind, Mounted, Pool, ProgressSender, Report, Run, Urgency,
};
use crate::telemetry::Warmth;

use cgroup::Weight;
use ending::{AFTERWARDS, Ending};
use parts::Parts;
use plan::Bounds;
use spawn::Waiting;
use watch::Watchdog;

pub use host::{Mechanism, Setup};
#[cfg(feature = "testing")]
pub use mutation::{Born, Nursery, steps};

/// The argument that turns the binary into what native sandboxes begin as.
pub const COMMAND: &str = "sandbox-native";

/// Serves as what native sandboxes begin as, until the server has gone. Returns in each first process of one, around which
/// the sandbox is made by then, with what `at_rest` made in it before anybody waited.
///
/// # Errors
///
/// Which step was refused, and why; there is no sandbox then.
pub fn enclose<T>(at_rest: fn() -> std::io::Result<T>) -> Result<T, String> {
    init::enclose(at_rest).map_err(|error| error.to_string())
}

/// Whether this process would get every promise in a cgroup that `systemd-run --user --scope -p Delegate=yes` makes.
#[must_use]
pub fn wants_a_scope() -> bool {
    !rustix::process::geteuid().is_root() && cgroup::Found::lacks_a_cgroup_of_its_own()
}

/// How native sandboxes are made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The program that becomes a sandbox's first process; this very one if absent.
    pub program: Option<PathBuf>,
    /// Whether to run where no cgroup can be had, with P6 and P7 degraded.
    pub allow_degraded: Degraded,
    /// Processes that wait for executions, at most.
    pub waiting_max: usize,
}

/// Whether the degraded form is allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Degraded {
    /// It is refused.
    #[default]
    Refused,
    /// The operator accepts it.
    Allowed,
}

/// The native backend.
#[derive(Debug)]
pub struct Native {
    settings: Settings,
    instance: InstanceId,
    parts: Arc<tokio::sync::OnceCell<Arc<Parts>>>,
    /// Sandboxes that wait for a program.
    warm: Arc<Shelf<Ready>>,
    /// Endings and preparations that nobody waits for.
    background: TaskTracker,
    rehearsed: tokio::sync::OnceCell<()>,
}

/// One sandbox that was told its plan.
#[derive(Debug)]
struct Ready {
    guest: Guest,
    diagnostics: spawn::Diagnostics,
    body: Ending,
    /// What it used before it was asked for.
    used: Usage,
}

impl Native {
    pub(super) fn new(settings: Settings, instance: InstanceId) -> Self {
        Self {
            warm: Arc::new(Shelf::empty()),
            settings,
            instance,
            parts: Arc::default(),
            background: TaskTracker::new(),
            rehearsed: tokio::sync::OnceCell::new(),
        }
    }

    /// What this host offers, for the operator; nothing is run.
    pub async fn setup(&self) -> Setup {
        let parts = self.parts().await;
        Setup::describe(parts.as_ref().map(|parts| (parts.power, parts.pool.cgroups())))
    }

    /// Makes a sandbox in which nothing runs, once: the error names the step that this host refuses, and what to do.
    pub async fn trial(&self) -> Result<(), Error> {
        self.rehearse().await
    }

    pub(super) fn warmth(&self) -> Warmth {
        self.warm.warmth()
    }

    /// Makes sandboxes in advance from now on.
    pub(super) fn keep_warm(&self, pool: Pool) {
        self.warm.allow(pool);
    }

    /// Why it runs what it runs, and with which promises degraded; known once it was prepared.
    pub(super) fn choice(&self) -> Choice {
        let is_degraded = self
            .parts
            .get()
            .is_some_and(|parts| parts.bounds() == Bounds::Rlimits);
        let (reason, degraded) = if is_degraded {
            let reason = "configured; P6 and P7 are degraded: no cgroup can be had, and sandbox.native.allow_degraded is set";
            (reason, watch::DEGRADED)
        } else {
            ("configured", &[][..])
        };
        Choice {
            kind: Kind::Native,
            reason: reason.to_owned(),
            degraded,
        }
    }

    /// What packages for this job's program are built for.
    pub(super) fn base(job: &Job) -> Option<String> {
        host::base(job)
    }

    async fn parts(&self) -> Result<&Arc<Parts>, Error> {
        self.parts
            .get_or_try_init(|| async {
                let (settings, instance) = (self.settings.clone(), self.instance);
                let opened = tokio::task::spawn_blocking(move || Parts::open(&settings, instance)).await;
                opened
                    .map_err(|error| failed("looking at this host", error))?
                    .map(Arc::new)
                    .map_err(Error::Unavailable)
            })
            .await
    }

    /// A sandbox for this job: one that waits for it, or a new one.
    async fn ready(&self, job: &Job, recurring: Option<Recurring>) -> Result<Ready, Error> {
        let waiting = recurring.and_then(|recurring| {
            let is_there = |ready: &mut Ready| ready.guest.is_there();
            self.warm.take(&recurring, is_there)
        });
        if let Some(ready) = waiting {
            if weight_of(job) != Weight::Whole {
                ready.weigh(weight_of(job))?;
            }
            return Ok(ready);
        }
        let bounds = (&job.limits, weight_of(job));
        tell(self.parts().await?, &self.background, &job.mounts(), bounds).await
    }

    /// Makes more processes wait, and one more sandbox for jobs like this if they are worth it, off everybody's path.
    fn refill(&self, parts: &Arc<Parts>, recurring: Option<Recurring>, job: &Job) {
        if self.background.is_closed() {
            return;
        }
        let making = recurring.and_then(|recurring| self.warm.begin(recurring, job));
        let (parts, warm, background) = (parts.clone(), self.warm.clone(), self.background.clone());
        self.background.spawn(async move {
            tokio::time::sleep(AFTERWARDS).await;
            if let Some(mut making) = making {
                making.make_room();
                let made = warmed(&parts, &background, &making).await;
                warm.end(making, made);
            }
            while !background.is_closed() && parts.pool.wants_one() {
                match make(&parts).await {
                    Ok(waiting) => parts.pool.put(Some(waiting)),
                    Err(error) => {
                        parts.pool.put(None);
                        tracing::warn!(%error, "Could not prepare a sandbox; the next run makes its own");
                        return;
                    }
                }
            }
        });
    }

    /// Makes a sandbox in which nothing runs, once: whether this host lets every step be performed.
    async fn rehearse(&self) -> Result<(), Error> {
        self.rehearsed
            .get_or_try_init(|| async {
                let bounds = ResourceLimits::clamp(
                    &crate::skill::Resources::default(),
                    None,
                    None,
                    &crate::execution::Maxima::default(),
                );
                let parts = self.parts().await?;
                let mut ready = tell(parts, &self.background, &[], (&bounds, Weight::Whole)).await?;
                let heard = tokio::time::timeout(limits::SANDBOX_START_MAX, ready.guest.greet()).await;
                let Ok(Ok(greeted)) = heard else {
                    return Err(did_not_come_up(&ready.diagnostics, &ready.body.fate().await));
                };
                let seen = ready.body.watched().map_or(Ok(()), watch::can_watch);
                drop(greeted);
                seen.map_err(|error| {
                    Error::Unavailable(format!(
                        "this host does not let a sandbox without a cgroup be watched: {error}; root needs CAP_SYS_PTRACE for it"
                    ))
                })
            })
            .await
            .map(drop)
    }
}

/// A sandbox with its bounds set that performs its plan now.
async fn tell(
    parts: &Arc<Parts>,
    background: &TaskTracker,
    files: &[Mounted<'_>],
    (bounds, weight): (&ResourceLimits, Weight),
) -> Result<Ready, Error> {
    let waiting = match parts.pool.take() {
        Some(waiting) => waiting,
        None => make(parts).await?,
    };
    let Waiting {
        link,
        diagnostics,
        body,
    } = waiting;
    let body = Ending {
        body: Some(body),
        background: background.clone(),
    };
    if let Some(cell) = body.cell() {
        cell.bound(bounds)
            .map_err(|error| failed("setting the sandbox's bounds", error))?;
        if weight != Weight::Whole {
            cell.weigh(weight).map_err(weightless)?;
        }
    }
    if let Err(error) = parts.hand_over(&link, files, bounds) {
        return Err(match error.kind() {
            // It failed at what it does before anybody needs it, and says why.
            std::io::ErrorKind::BrokenPipe => did_not_come_up(&diagnostics, &body.fate().await),
            _ => failed("handing the plan over", error),
        });
    }
    link.set_nonblocking(true)
        .map_err(|error| failed("listening to the sandbox", error))?;
    let link =
        tokio::net::UnixStream::from_std(link).map_err(|error| failed("listening to the sandbox", error))?;
    Ok(Ready {
        guest: Guest::at(link),
        diagnostics,
        body,
        used: Usage::default(),
    })
}

/// A sandbox that waits for jobs like this.
async fn warmed(
    parts: &Arc<Parts>,
    background: &TaskTracker,
    making: &Making<Ready>,
) -> Result<Ready, Error> {
    let bounds = (&making.job.limits, Weight::Little);
    let mut ready = tell(parts, background, &making.job.mounts(), bounds).await?;
    let warm = ready.guest.warm_up(making.warm());
    match tokio::time::timeout(limits::SANDBOX_START_MAX, warm).await {
        Ok(Ok(())) => {
            ready.weigh(Weight::Whole)?;
            ready.used = ready.body.cell().map_or_else(Usage::default, cgroup::Cell::usage);
            Ok(ready)
        }
        _ => Err(did_not_come_up(&ready.diagnostics, &ready.body.fate().await)),
    }
}

/// Makes a process that waits, on a thread where that may block.
async fn make(parts: &Arc<Parts>) -> Result<Waiting, Error> {
    let parts = parts.clone();
    let made = tokio::task::spawn_blocking(move || parts.make()).await;
    made.map_err(|error| failed("making a sandbox", error))?
        .map_err(|error| forbidden::refused(&error))
}

fn failed(doing: &'static str, error: impl Into<Cause>) -> Error {
    Error::Engine {
        doing,
        source: error.into(),
    }
}

impl Ready {
    fn weigh(&self, weight: Weight) -> Result<(), Error> {
        self.body
            .cell()
            .map_or(Ok(()), |cell| cell.weigh(weight))
            .map_err(weightless)
    }
}

/// What nobody waits for gives way.
fn weight_of(job: &Job) -> Weight {
    match job.urgency {
        Urgency::Awaited => Weight::Whole,
        Urgency::Deferred => Weight::Quarter,
    }
}

fn weightless(error: std::io::Error) -> Error {
    failed("giving the sandbox its share of CPU", error)
}

fn did_not_come_up(diagnostics: &spawn::Diagnostics, fate: &str) -> Error {
    let remedy =
        forbidden::hint().unwrap_or_else(|| "`skillbox doctor` shows what this host can do".to_owned());
    Error::Unavailable(format!(
        "the native sandbox did not come up: {fate} and said {:?}; {remedy}",
        diagnostics.text()
    ))
}

impl Backend for Native {
    async fn prepare(&self, job: &Job, _progress: Option<&ProgressSender>) -> Result<(), Error> {
        host::has_image(job)?;
        host::find_program(&job.argv, job.env.variables())?;
        self.rehearse().await
    }

    async fn run(&self, job: &Job, run: Run<'_>) -> Result<Report, Error> {
        let asked_at = Instant::now();
        let recurring = Recurring::of(job);
        let Ready {
            guest,
            diagnostics,
            body,
            used,
        } = self.ready(job, recurring).await?;
        let watchdog = body
            .watched()
            .map(|body| Watchdog::start(body, &job.limits, &self.background))
            .transpose()
            .map_err(|error| failed("watching a sandbox that has no cgroup", error))?;
        let mut heard = session::converse(guest, job, run).await;
        if let Some(cell) = body.cell() {
            heard.usage = seen_from_outside(heard.usage, since(used, cell.usage()));
        }
        if let Some(watchdog) = watchdog {
            heard.take_seen(watchdog.seen().await);
        }
        let fate = match heard.end {
            None => Some(body.fate().await),
            Some(_) => None,
        };
        body.leave(heard.link.take());
        self.refill(self.parts().await?, recurring, job);
        let Some(fate) = fate else {
            return Ok(report(heard, asked_at));
        };
        let end = explain(&heard, &diagnostics, &fate)?;
        Ok(Report {
            end,
            ..report(heard, asked_at)
        })
    }

    async fn check(&self) -> Result<(), Error> {
        self.rehearse().await
    }

    async fn reconcile(&self, _dead: &[InstanceId]) -> Result<usize, Error> {
        drop(self.warm.expired());
        let parts = self.parts().await?.clone();
        let swept = tokio::task::spawn_blocking(move || parts.pool.sweep()).await;
        swept
            .map_err(|error| failed("removing leftovers", error))?
            .map_err(|error| failed("removing leftovers", error))
    }

    async fn settle(&self) {
        self.background.close();
        drop(self.warm.clear());
        self.background.wait().await;
        // One that was being made.
        drop(self.warm.clear());
        self.background.wait().await;
        if let Some(parts) = self.parts.get() {
            let parts = parts.clone();
            // Their ends are waited for.
            let _ = tokio::task::spawn_blocking(move || parts.pool.clear()).await;
        }
        self.background.reopen();
    }
}

/// CPU time counts from when the sandbox was asked for.
fn since(before: Usage, after: Usage) -> Usage {
    Usage {
        cpu_ms: after.cpu_ms.saturating_sub(before.cpu_ms),
        ..after
    }
}

/// The cgroup's own figures where there are any.
fn seen_from_outside(inside: Usage, outside: Usage) -> Usage {
    let or = |outside, inside| if outside == 0 { inside } else { outside };
    Usage {
        cpu_ms: or(outside.cpu_ms, inside.cpu_ms),
        memory_peak_bytes: or(outside.memory_peak_bytes, inside.memory_peak_bytes),
        processes_peak: or(outside.processes_peak, inside.processes_peak),
        oom_kills: outside.oom_kills,
    }
}

/// Why a sandbox ended without saying how.
fn explain(heard: &Heard, diagnostics: &spawn::Diagnostics, fate: &str) -> Result<End, Error> {
    if heard.usage.oom_kills > 0 {
        return Ok(End::OutOfMemory);
    }
    tracing::warn!(hello = heard.hello, said = %diagnostics.text(), "A sandbox ended without a report");
    if heard.hello {
        return Ok(End::Lost(format!(
            "the sandbox ended before it could report; {fate}"
        )));
    }
    Err(did_not_come_up(diagnostics, fate))
}
