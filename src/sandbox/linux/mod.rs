//! Native sandboxes: namespaces, cgroups, seccomp, Landlock. No engine, no image, no daemon.
//!
//! Blank processes wait in their own namespaces and cgroups. One of them receives the plan of a run, applies it to
//! itself and becomes the same guest as in a container. It serves one execution and dies with it, or with the server.

mod advice;
mod blank_processes;
mod cgroup;
mod container_options;
mod factory;
mod host;
mod host_folder;
mod identity;
mod init;
mod loopback;
#[cfg(feature = "testing")]
mod mutation;
mod overlays;
mod plan;
mod plan_frame;
mod plan_host;
mod process_view;
mod spawn;
mod step;
mod teardown;
mod userns_settings;
mod visible;
mod watchdog;
mod zygote;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use crate::error::Cause;
use crate::execution::{ResourceLimits, Usage};
use crate::ids::InstanceId;
use crate::limits;
use crate::sandbox::protocol::{self, Guest, GuestReport};
use crate::sandbox::report::report;
use crate::sandbox::warm_key::WarmKey;
use crate::sandbox::warm_pool::{PendingSandbox, WarmFactory, WarmPool};
use crate::sandbox::{
    Backend, BackendChoice, BackendKind, Completion, Error, Job, ProgressSender, Report, RunContext, Urgency,
    WarmPoolSettings,
};
use crate::telemetry::WarmPoolStats;

use cgroup::Weight;
use factory::{SandboxFactory, SandboxParts};
use plan::LimitMechanism;
use spawn::BlankProcess;
use teardown::{SandboxGuard, TEARDOWN_DELAY};
use watchdog::Watchdog;

pub use advice::{has_user_manager, wants_a_scope};
pub use container_options::missing_container_options;
pub use host::{HostSetup, PromiseMechanism};
pub use host_folder::HostFolder;
#[cfg(feature = "testing")]
pub use mutation::{TestProcess, TestSpawner, steps};

/// Argument that makes this binary the zygote.
pub const COMMAND: &str = "sandbox-native";

/// Serves as the zygote until the server exits. Returns in the first process of each sandbox, once the sandbox is
/// complete, with the early result of `prepare`. An error names the failed step.
pub fn enter<T>(prepare: fn() -> std::io::Result<T>) -> Result<T, String> {
    init::enter(prepare).map_err(|error| error.to_string())
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The program of a sandbox's first process; this one if absent.
    pub program: Option<PathBuf>,
    /// Whether to run without cgroups, with P6 and P7 degraded.
    pub allow_degraded: Degraded,
    /// Maximum number of blank processes.
    pub waiting_max: usize,
    /// Folders of the host that sandboxes see, beside its programs.
    pub folders: Vec<HostFolder>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Degraded {
    #[default]
    Refused,
    Allowed,
    /// Configured, but `auto` never selects a degraded sandbox.
    UnusedByAuto,
}

#[derive(Debug)]
pub struct Native {
    settings: Settings,
    instance: InstanceId,
    factory: tokio::sync::OnceCell<Arc<SandboxFactory>>,
    warm: WarmPool<PreparedSandbox>,
    /// Refills, and the ends of sandboxes.
    background: TaskTracker,
    host_tested: tokio::sync::OnceCell<()>,
}

/// A sandbox with a plan.
#[derive(Debug)]
struct PreparedSandbox {
    guest: Guest,
    diagnostics: spawn::Diagnostics,
    body: SandboxGuard,
    /// Its usage before the run, in the warm pool.
    used: Usage,
}

impl Native {
    pub(super) fn new(settings: Settings, instance: InstanceId) -> Self {
        let background = TaskTracker::new();
        Self {
            warm: WarmPool::new(background.clone()),
            settings,
            instance,
            factory: tokio::sync::OnceCell::new(),
            background,
            host_tested: tokio::sync::OnceCell::new(),
        }
    }

    /// How this host keeps each promise. Runs nothing.
    pub async fn setup(&self) -> HostSetup {
        match self.factory().await {
            Ok(factory) => HostSetup::available(factory.privilege, factory.blank.cgroups()),
            Err(error) => HostSetup::refused(&error),
        }
    }

    /// Creates a sandbox that runs nothing. The error names the failed step and the remedy.
    pub async fn try_host(&self) -> Result<(), Error> {
        self.test_host().await
    }

    pub(super) fn warm_pool_stats(&self) -> WarmPoolStats {
        self.warm.stats()
    }

    pub(super) fn set_warm_pool(&self, pool: WarmPoolSettings) {
        self.warm.configure(pool);
    }

    /// Known once a job was prepared.
    pub(super) fn choice(&self) -> BackendChoice {
        let is_degraded = self
            .factory
            .get()
            .is_some_and(|factory| factory.bounds() == LimitMechanism::Rlimits);
        let (reason, degraded) = if is_degraded {
            (watchdog::REASON, watchdog::DEGRADED)
        } else {
            ("configured", &[][..])
        };
        BackendChoice {
            kind: BackendKind::Native,
            reason: reason.to_owned(),
            degraded,
        }
    }

    pub(super) fn base(job: &Job) -> Option<String> {
        host::base(job)
    }

    async fn factory(&self) -> Result<&Arc<SandboxFactory>, Error> {
        self.factory
            .get_or_try_init(|| async {
                let (settings, instance) = (self.settings.clone(), self.instance);
                let background = self.background.clone();
                let open = move || SandboxFactory::open(&settings, instance, background);
                let opened = tokio::task::spawn_blocking(open).await;
                opened
                    .map_err(|error| failed("looking at this host", error))?
                    .map(Arc::new)
                    .map_err(Error::Unavailable)
            })
            .await
    }

    async fn checkout_or_start(&self, job: &Job, key: Option<WarmKey>) -> Result<PreparedSandbox, Error> {
        let weight = weight_of(job);
        let warm = key.and_then(|key| self.warm.checkout::<SandboxFactory>(key));
        if let Some(warm) = warm {
            if weight != Weight::Whole {
                warm.set_weight(weight)?;
            }
            return Ok(warm);
        }
        start_sandbox(self.factory().await?, &(&job.sandbox).into(), weight).await
    }

    /// Creates a sandbox that runs nothing, once, to check every step on this host.
    async fn test_host(&self) -> Result<(), Error> {
        self.host_tested
            .get_or_try_init(|| async {
                let bounds = ResourceLimits::clamp(
                    &crate::skill::Resources::default(),
                    None,
                    None,
                    &crate::execution::Maxima::default(),
                );
                let factory = self.factory().await?;
                let empty = SandboxParts { tenant: "", mounts: Vec::new(), limits: &bounds };
                let mut ready = start_sandbox(factory, &empty, Weight::Whole).await?;
                let guest_report = tokio::time::timeout(limits::SANDBOX_START_MAX, ready.guest.wait_for_hello()).await;
                let Ok(Ok(greeted)) = guest_report else {
                    return Err(did_not_come_up(&ready.diagnostics, &ready.body.exit_description().await));
                };
                let seen = ready.body.without_cgroup().map_or(Ok(()), watchdog::can_watch);
                drop(greeted);
                seen.map_err(|error| {
                    Error::Unavailable(format!(
                        "a sandbox without a cgroup cannot be watched on this host: {error}; root needs CAP_SYS_PTRACE for it"
                    ))
                })
            })
            .await
            .map(drop)
    }
}

/// Sets the limits of a blank process and sends it the rest of its plan, which it applies in the background.
async fn start_sandbox(
    factory: &Arc<SandboxFactory>,
    parts: &SandboxParts<'_>,
    weight: Weight,
) -> Result<PreparedSandbox, Error> {
    let blank = match factory.blank.take(parts.tenant) {
        Some(blank) => blank,
        None => fork_blank(factory, None).await?,
    };
    let BlankProcess {
        link,
        diagnostics,
        body,
        tenant,
    } = blank;
    let body = SandboxGuard {
        body: Some(body),
        background: factory.background.clone(),
    };
    if let Some(cell) = body.cell() {
        cell.set_limits(parts.limits)
            .map_err(|error| failed("setting the sandbox's limits", error))?;
        if weight != Weight::Whole {
            cell.set_weight(weight).map_err(weight_failed)?;
        }
    }
    if let Err(error) = factory.send_plan(&link, parts, tenant.as_ref()) {
        return Err(match error.kind() {
            // It failed at an earlier step and printed the reason.
            std::io::ErrorKind::BrokenPipe => did_not_come_up(&diagnostics, &body.exit_description().await),
            _ => failed("sending the plan", error),
        });
    }
    link.set_nonblocking(true)
        .map_err(|error| failed("listening to the sandbox", error))?;
    let link =
        tokio::net::UnixStream::from_std(link).map_err(|error| failed("listening to the sandbox", error))?;
    Ok(PreparedSandbox {
        guest: Guest::at(link),
        diagnostics,
        body,
        used: Usage::default(),
    })
}

impl WarmFactory for SandboxFactory {
    type Sandbox = PreparedSandbox;

    const REFILL_DELAY: Duration = TEARDOWN_DELAY;
    const REFILLS_OTHERS: bool = true;

    fn is_connected(sandbox: &mut PreparedSandbox) -> bool {
        sandbox.guest.is_connected()
    }

    async fn create_warm(
        self: &Arc<Self>,
        pending: &PendingSandbox<PreparedSandbox>,
    ) -> Result<PreparedSandbox, Error> {
        let mut started = start_sandbox(self, &(&pending.spec).into(), Weight::Little).await?;
        let warm_up = started.guest.warm_up(pending.command());
        match tokio::time::timeout(limits::SANDBOX_START_MAX, warm_up).await {
            Ok(Ok(())) => {
                started.set_weight(Weight::Whole)?;
                started.used = started
                    .body
                    .cell()
                    .map_or_else(Usage::default, cgroup::Cell::usage);
                Ok(started)
            }
            _ => Err(did_not_come_up(
                &started.diagnostics,
                &started.body.exit_description().await,
            )),
        }
    }

    async fn refill_others(self: &Arc<Self>, background: &TaskTracker) {
        while !background.is_closed()
            && let Some(reservation) = self.blank.reserve_slot()
        {
            match fork_blank(self, reservation.tenant.clone()).await {
                Ok(blank) => self.blank.add(&reservation, Some(blank)),
                Err(error) => {
                    self.blank.add(&reservation, None);
                    tracing::warn!(%error, "Blank process not created; the next run creates its own");
                    return;
                }
            }
        }
    }

    async fn release(self: &Arc<Self>) {
        let factory = self.clone();
        // On a thread that may block, since it waits for the ends of processes.
        let _ = tokio::task::spawn_blocking(move || factory.blank.drain()).await;
    }
}

/// On a thread that may block.
async fn fork_blank(factory: &Arc<SandboxFactory>, tenant: Option<String>) -> Result<BlankProcess, Error> {
    let factory = factory.clone();
    let made = tokio::task::spawn_blocking(move || {
        drop(factory.blank.take_expired());
        factory.make(tenant.as_deref())
    })
    .await;
    made.map_err(|error| failed("making a sandbox", error))?
        .map_err(|error| userns_settings::refused(&error))
}

fn failed(doing: &'static str, error: impl Into<Cause>) -> Error {
    Error::Engine {
        doing,
        source: error.into(),
    }
}

impl PreparedSandbox {
    fn set_weight(&self, weight: Weight) -> Result<(), Error> {
        let cell = self.body.cell();
        cell.map_or(Ok(()), |cell| cell.set_weight(weight).map_err(weight_failed))
    }
}

/// Without a waiting caller, the sandbox yields CPU to others.
fn weight_of(job: &Job) -> Weight {
    match job.urgency {
        Urgency::Awaited => Weight::Whole,
        Urgency::Deferred => Weight::Quarter,
    }
}

fn weight_failed(error: std::io::Error) -> Error {
    failed("giving the sandbox its share of CPU", error)
}

fn did_not_come_up(diagnostics: &spawn::Diagnostics, exit_description: &str) -> Error {
    let remedy = userns_settings::hint()
        .unwrap_or_else(|| "`skillbox doctor` shows what this host supports".to_owned());
    Error::Unavailable(format!(
        "the native sandbox did not start: {exit_description} and printed {:?}; {remedy}",
        diagnostics.text()
    ))
}

impl Backend for Native {
    async fn prepare(&self, job: &Job, _progress: Option<&ProgressSender>) -> Result<(), Error> {
        host::has_image(job)?;
        host::find_program(&job.program.argv, job.program.env.variables())?;
        self.test_host().await
    }

    async fn run(&self, job: &Job, mut context: RunContext<'_>) -> Result<Report, Error> {
        let requested_at = Instant::now();
        let key = WarmKey::of(job);
        let ready = self.checkout_or_start(job, key).await?;
        let (mut guest_report, body, diagnostics) = match self.drive(ready, job, &mut context).await? {
            // Another one, cold: the warm one ended before its program could start.
            (guest_report, body, _) if guest_report.warm && guest_report.is_stillborn() => {
                tracing::warn!(execution = %job.program.execution, "A warm sandbox ended before its program; starting another");
                body.tear_down_later(None);
                let ready = self.checkout_or_start(job, None).await?;
                self.drive(ready, job, &mut context).await?
            }
            driven => driven,
        };
        let exit_description = match guest_report.end {
            None if !guest_report.not_stored => Some(body.exit_description().await),
            None | Some(_) => None,
        };
        body.tear_down_later(guest_report.link.take());
        self.warm.refill(self.factory().await?, key, job);
        let Some(exit_description) = exit_description else {
            return Ok(report(guest_report, requested_at));
        };
        let end = explain(&guest_report, &diagnostics, &exit_description)?;
        Ok(Report {
            end,
            ..report(guest_report, requested_at)
        })
    }

    async fn check(&self) -> Result<(), Error> {
        self.test_host().await
    }

    async fn reconcile(&self, _dead: &[InstanceId]) -> Result<usize, Error> {
        drop(self.warm.evict_expired());
        let factory = self.factory().await?.clone();
        let swept = tokio::task::spawn_blocking(move || factory.blank.sweep()).await;
        swept
            .map_err(|error| failed("removing leftovers", error))?
            .map_err(|error| failed("removing leftovers", error))
    }

    async fn drain(&self) {
        self.warm.drain(self.factory.get()).await;
    }
}

impl Native {
    /// Drives the job in a sandbox, and watches it if no cgroup does.
    async fn drive(
        &self,
        ready: PreparedSandbox,
        job: &Job,
        context: &mut RunContext<'_>,
    ) -> Result<(GuestReport, SandboxGuard, spawn::Diagnostics), Error> {
        let PreparedSandbox {
            guest,
            diagnostics,
            body,
            used,
        } = ready;
        let watchdog = body
            .without_cgroup()
            .map(|body| Watchdog::start(body, &job.sandbox.limits, &self.background))
            .transpose()
            .map_err(|error| failed("watching a sandbox that has no cgroup", error))?;
        let mut guest_report = protocol::drive(guest, job, context).await;
        if let Some(cell) = body.cell() {
            guest_report.usage = merge_usage(guest_report.usage, usage_since(used, cell.usage()));
        }
        if let Some(watchdog) = watchdog {
            guest_report.apply_watchdog(watchdog.stop().await);
        }
        Ok((guest_report, body, diagnostics))
    }
}

/// CPU time before the run belongs to the warm pool.
fn usage_since(before: Usage, after: Usage) -> Usage {
    Usage {
        cpu_ms: after.cpu_ms.saturating_sub(before.cpu_ms),
        ..after
    }
}

/// The cgroup's figures if available, else the guest's.
fn merge_usage(inside: Usage, outside: Usage) -> Usage {
    let or = |outside, inside| if outside == 0 { inside } else { outside };
    Usage {
        cpu_ms: or(outside.cpu_ms, inside.cpu_ms),
        memory_peak_bytes: or(outside.memory_peak_bytes, inside.memory_peak_bytes),
        processes_peak: or(outside.processes_peak, inside.processes_peak),
        oom_kills: outside.oom_kills,
    }
}

/// Why the guest never reported an end.
fn explain(
    guest_report: &GuestReport,
    diagnostics: &spawn::Diagnostics,
    exit_description: &str,
) -> Result<Completion, Error> {
    if guest_report.usage.oom_kills > 0 {
        return Ok(Completion::OutOfMemory);
    }
    tracing::warn!(hello = guest_report.hello, said = %diagnostics.text(), "Sandbox ended without a report");
    if guest_report.hello {
        return Ok(Completion::Lost(format!(
            "the sandbox ended before it could report; {exit_description}"
        )));
    }
    Err(did_not_come_up(diagnostics, exit_description))
}
