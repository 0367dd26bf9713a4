//! Sandboxes made of the kernel's own parts: namespaces, cgroups, seccomp, Landlock. No engine, no image, no daemon.
//!
//! A process waits in namespaces of its own and inside its bounds before it is needed; then it gets its plan, performs it
//! on itself and is the same guest as in a container. Each serves one execution and dies with it, or with the server.

mod cgroup;
mod handover;
mod host;
mod identity;
mod init;
mod loopback;
mod plan;
mod pool;
mod spawn;
mod step;

use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use rustix::mount::{OpenTreeFlags, open_tree};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use crate::error::Cause;
use crate::execution::{ResourceLimits, Usage};
use crate::guest::wire::{self, Channel, Link, Side, ToHost};
use crate::ids::InstanceId;
use crate::limits;
use crate::sandbox::report::report;
use crate::sandbox::session::{self, Heard};
use crate::sandbox::{Backend, Dependencies, End, Error, Job, ProgressSender, Report, Run, SkillFiles};
use crate::sys::{self, Reach};

use identity::Power;
use plan::{Bounds, HostRoot, Source, Wanted};
use pool::Pool;
use spawn::{Body, Waiting};

pub use host::{Mechanism, Setup};

/// What a run leaves to the background begins this much later: until then its end is being recorded and answered, and
/// neither should share a processor with it, or pages with a process that is being made.
const AFTERWARDS: Duration = Duration::from_millis(5);

/// The argument that turns the binary into the maker of its own sandbox.
pub const COMMAND: &str = "sandbox-native";

/// Runs as the first process of a native sandbox; never returns to a caller that would do anything else.
#[must_use]
pub fn main() -> ExitCode {
    init::main()
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
    parts: tokio::sync::OnceCell<Arc<Parts>>,
    /// Endings and preparations that nobody waits for.
    background: TaskTracker,
    rehearsed: tokio::sync::OnceCell<()>,
}

/// What all sandboxes of this process have in common.
#[derive(Debug)]
struct Parts {
    host: HostRoot,
    power: Power,
    pool: Pool,
    /// This process's mount namespace, as `/proc` names it.
    own_mounts: String,
}

/// Folders of this host that one sandbox sees.
#[derive(Debug, Default)]
struct Files<'a> {
    skill: Option<&'a SkillFiles>,
    deps: Option<&'a Dependencies>,
}

/// One sandbox that was told its plan.
struct Told {
    link: tokio::net::UnixStream,
    diagnostics: spawn::Diagnostics,
    body: Ending,
}

/// A sandbox's process and bounds, ended in the background when this is dropped.
struct Ending {
    body: Option<Body>,
    background: TaskTracker,
}

impl Native {
    pub(super) fn new(settings: Settings, instance: InstanceId) -> Self {
        Self {
            settings,
            instance,
            parts: tokio::sync::OnceCell::new(),
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

    /// Why it runs what it runs, for results.
    pub(super) fn reason(&self) -> &'static str {
        match self.parts.get().map(|parts| parts.pool.cgroups()) {
            Some(None) => {
                "configured; P6 and P7 are degraded: no cgroup can be had, and sandbox.native.allow_degraded is set"
            }
            _ => "configured",
        }
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

    /// A sandbox with its bounds set that performs its plan now.
    async fn tell(&self, files: &Files<'_>, bounds: &ResourceLimits) -> Result<Told, Error> {
        let parts = self.parts().await?;
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
            background: self.background.clone(),
        };
        if let Some(cell) = body.cell() {
            cell.bound(bounds)
                .map_err(|error| failed("setting the sandbox's bounds", error))?;
        }
        parts
            .hand_over(&link, files, bounds)
            .map_err(|error| match error.kind() {
                // It failed at what it does before anybody needs it, and says why.
                std::io::ErrorKind::BrokenPipe => did_not_come_up(&diagnostics, &body.fate()),
                _ => failed("handing the plan over", error),
            })?;
        link.set_nonblocking(true)
            .map_err(|error| failed("listening to the sandbox", error))?;
        let link = tokio::net::UnixStream::from_std(link)
            .map_err(|error| failed("listening to the sandbox", error))?;
        Ok(Told {
            link,
            diagnostics,
            body,
        })
    }

    /// Makes one more process wait, off everybody's path.
    fn refill(&self, parts: &Arc<Parts>) {
        if !parts.pool.has_room() || self.background.is_closed() {
            return;
        }
        let parts = parts.clone();
        self.background.spawn(async move {
            tokio::time::sleep(AFTERWARDS).await;
            match make(&parts).await {
                Ok(waiting) => parts.pool.put(waiting),
                Err(error) => {
                    tracing::warn!(%error, "Could not prepare a sandbox; the next run makes its own")
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
                let Told {
                    link,
                    diagnostics,
                    body,
                } = self.tell(&Files::default(), &bounds).await?;
                let heard = tokio::time::timeout(limits::SANDBOX_START_MAX, greeting(link)).await;
                match heard {
                    Ok(Ok(())) => Ok(()),
                    Ok(Err(_)) | Err(_) => Err(did_not_come_up(&diagnostics, &body.fate())),
                }
            })
            .await
            .map(drop)
    }
}

/// Makes a process that waits, on a thread where that may block.
async fn make(parts: &Arc<Parts>) -> Result<Waiting, Error> {
    let parts = parts.clone();
    let made = tokio::task::spawn_blocking(move || parts.make()).await;
    made.map_err(|error| failed("making a sandbox", error))?
        .map_err(|error| host::refused(&error))
}

/// Waits for the guest's first word.
async fn greeting(link: tokio::net::UnixStream) -> std::io::Result<()> {
    let mut link = Link::new(link, Side::Host);
    let mut streams = Vec::new();
    for channel in Channel::ALL {
        streams.push(link.open(channel).await?);
    }
    let control = &mut streams[0];
    match wire::receive(control, wire::FRAME_TO_HOST_BYTES_MAX).await? {
        Some(ToHost::Hello { .. }) => Ok(()),
        _ => Err(wire::invalid("expected a greeting")),
    }
}

fn failed(doing: &'static str, error: impl Into<Cause>) -> Error {
    Error::Engine {
        doing,
        source: error.into(),
    }
}

fn did_not_come_up(diagnostics: &spawn::Diagnostics, fate: &str) -> Error {
    Error::Unavailable(format!(
        "the native sandbox did not come up: {fate} and said {:?}; `skillbox doctor` shows what this host can do",
        diagnostics.text()
    ))
}

impl Parts {
    fn open(settings: &Settings, instance: InstanceId) -> Result<Self, String> {
        let power = Power::of_this_process()?;
        let own_mounts =
            handover::own_mounts().map_err(|error| format!("/proc cannot be read: {error}; mount it"))?;
        Ok(Self {
            host: host::root(),
            power,
            pool: Pool::open(settings, instance, power)?,
            own_mounts,
        })
    }

    /// Makes a process that waits and does already what is the same for every sandbox. Blocks.
    fn make(&self) -> std::io::Result<Waiting> {
        let waiting = self.pool.make(self.power)?;
        let frame = handover::frame(plan::before(&self.host), self.own_mounts.clone())?;
        handover::send(waiting.link.as_fd(), &frame, &[])?;
        Ok(waiting)
    }

    fn hand_over(
        &self,
        link: &std::os::unix::net::UnixStream,
        files: &Files<'_>,
        bounds: &ResourceLimits,
    ) -> std::io::Result<()> {
        let mut mounts = Vec::new();
        let skill = match files.skill {
            Some(skill) => Some((&skill.name, self.source(&skill.folder, &mut mounts)?)),
            None => None,
        };
        let deps = files.deps.map(|deps| self.source(&deps.folder, &mut mounts));
        let plan = plan::after(&Wanted {
            skill,
            deps: deps.transpose()?,
            limits: bounds,
            bounds: self.pool.cgroups().map_or(Bounds::Rlimits, |_| Bounds::Cgroup),
        });
        let frame = handover::frame(plan, self.own_mounts.clone())?;
        let borrowed: Vec<_> = mounts.iter().map(|mount| mount.as_fd()).collect();
        handover::send(link.as_fd(), &frame, &borrowed)
    }

    /// How the sandbox gets at a folder; what only this process can mount is added to `mounts`.
    fn source(&self, folder: &Path, mounts: &mut Vec<OwnedFd>) -> std::io::Result<Source> {
        match self.power {
            Power::Root => {
                mounts.push(detached(folder)?);
                Ok(Source::Handed)
            }
            Power::Ordinary { .. } => {
                let path = std::fs::canonicalize(folder)?;
                let text = path.into_os_string().into_string();
                text.map(Source::Path)
                    .map_err(|_| std::io::Error::other("the data folder's path is not UTF-8; move it"))
            }
        }
    }
}

/// A read-only mount of a folder that is nowhere yet: the way to the folder stays closed to the sandbox's user.
fn detached(folder: &Path) -> std::io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let mount = open_tree(rustix::fs::CWD, folder, flags)?;
    sys::mount_setattr(mount.as_fd(), init::LOCKED, Reach::One)?;
    Ok(mount)
}

impl Ending {
    fn fate(&self) -> String {
        self.body.as_ref().map_or_else(String::new, Body::fate)
    }

    fn cell(&self) -> Option<&cgroup::Cell> {
        self.body.as_ref().and_then(|body| body.cell.as_ref())
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        let Some(body) = self.body.take() else { return };
        // At once; only the waiting is left to the background.
        body.kill();
        if tokio::runtime::Handle::try_current().is_ok() {
            self.background.spawn(async move {
                tokio::time::sleep(AFTERWARDS).await;
                // If the runtime ends first, it waits here.
                let _ = tokio::task::spawn_blocking(move || drop(body)).await;
            });
        }
    }
}

impl Backend for Native {
    async fn prepare(&self, job: &Job, _progress: Option<&ProgressSender>) -> Result<(), Error> {
        host::find_program(&job.argv, &job.env)?;
        self.rehearse().await
    }

    async fn run(&self, job: &Job, run: Run<'_>) -> Result<Report, Error> {
        let asked_at = Instant::now();
        let files = Files {
            skill: job.skill.as_ref(),
            deps: job.deps.as_ref(),
        };
        let Told {
            link,
            diagnostics,
            body,
        } = self.tell(&files, &job.limits).await?;
        let mut heard = session::converse(link, job, run).await;
        if let Some(cell) = body.cell() {
            heard.usage = seen_from_outside(heard.usage, cell.usage());
        }
        let fate = heard.end.is_none().then(|| body.fate());
        drop(body);
        self.refill(self.parts().await?);
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
        let parts = self.parts().await?.clone();
        let swept = tokio::task::spawn_blocking(move || parts.pool.sweep()).await;
        swept
            .map_err(|error| failed("removing leftovers", error))?
            .map_err(|error| failed("removing leftovers", error))
    }

    async fn settle(&self) {
        self.background.close();
        self.background.wait().await;
        if let Some(parts) = self.parts.get() {
            let parts = parts.clone();
            // Their ends are waited for.
            let _ = tokio::task::spawn_blocking(move || parts.pool.clear()).await;
        }
        self.background.reopen();
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
