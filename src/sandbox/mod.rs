//! Runs one job in a sandbox that exists only for this job and leaves nothing behind.
//!
//! The promises P1–P16 (`SECURITY.md`) hold for every backend. A caller chooses *what* runs, never *how*.

mod auto;
pub mod docker;
mod egress;
mod environment;
mod input;
mod job;
mod kernel_files;
#[cfg(target_os = "linux")]
pub mod linux;
mod outlook;
mod promises;
mod protocol;
mod report;
#[cfg(feature = "testing")]
mod scripted;
pub mod seccomp;
mod warm_key;
mod warm_pool;

use std::time::Duration;

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::bundle::artifacts::ArtifactTar;
use crate::error::Cause;
use crate::execution::{CodeResults, FileEntry, JsonText, Logs, Skipped, Transcript, Usage};
use crate::ids::InstanceId;
use crate::telemetry::WarmPoolStats;

pub use auto::Auto;
pub use egress::{Egress, Tunnel};
pub use environment::Environment;
pub use input::{InputBlob, InputFile};
pub use job::{
    Collect, Dependencies, FOLLOWED, ImageOf, Job, JobKind, PackageKind, ProgramRun, SandboxSpec, SkillFiles,
    Urgency,
};
pub use outlook::{OtherBackend, Outlook};
pub use promises::{PROMISES, text as promise_text, title as promise_title};
#[cfg(feature = "testing")]
pub use scripted::Script;
pub use warm_pool::WarmPoolSettings;

#[cfg(target_os = "linux")]
use job::Mount;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Completion {
    Exited(i32),
    Signaled(i32),
    TimedOut,
    OutOfMemory,
    Cancelled,
    /// The program never started, for this reason.
    NotStarted(String),
    /// The sandbox ended before it reported, for this reason.
    Lost(String),
    /// The sandbox ended because its engine did, for this reason.
    EngineLost(String),
    /// The host could not store what the program produced.
    NotStored,
}

/// `output.json`.
#[derive(Clone, Debug, PartialEq)]
pub enum ProgramOutput {
    Missing,
    Json(JsonText),
    /// Invalid, for this reason.
    Invalid(String),
    /// Larger than [`crate::limits::OUTPUT_BYTES_MAX`]; the size in bytes.
    TooLarge(u64),
}

/// The result of a job. Its files are in the [`ArtifactTar`] of the [`RunContext`].
#[derive(Clone, Debug)]
pub struct Report {
    pub end: Completion,
    pub output: ProgramOutput,
    /// Rich results of called code.
    pub shown: CodeResults,
    pub logs: Logs,
    /// Files in the tar.
    pub files: Vec<FileEntry>,
    /// First files that were not collected.
    pub skipped: Vec<Skipped>,
    /// Number of files that were not collected.
    pub skipped_total: u64,
    /// Blobs in their tar, each named by the digest of its content.
    pub blobs: Vec<FileEntry>,
    /// Whether everything was received. Otherwise logs, output and files are incomplete.
    pub complete: bool,
    pub usage: Usage,
    /// From the request until the program was started.
    pub sandbox_time: Duration,
    pub run_time: Duration,
    pub collect_time: Duration,
    pub warm: bool,
}

/// The program has not run, or its outcome is unknown.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No sandbox can be created on this host now; the message contains reason and remedy.
    #[error("{0}")]
    Unavailable(String),
    /// The image cannot be used; the message contains reason and remedy.
    #[error("{0}")]
    Image(String),
    /// The image does not exist here and cannot be pulled; the message contains reason and remedy.
    #[error("{0}")]
    ImageMissing(String),
    #[error("the sandbox engine failed while {doing}")]
    Engine {
        doing: &'static str,
        #[source]
        source: Cause,
    },
}

#[derive(Clone, Debug)]
pub enum Progress {
    Pulling {
        image: String,
        /// As the container engine reports it.
        detail: String,
    },
    /// Packages are being installed.
    Installing {
        /// As their author wrote them.
        packages: String,
        /// Number of packages that were asked for.
        count: usize,
    },
    /// What the installation has transferred so far.
    Downloaded {
        /// Packages, of those that were asked for; `None` if the installer does not name them.
        packages: Option<usize>,
        /// Number of packages that were asked for.
        count: usize,
        bytes: u64,
    },
    /// All packages have arrived.
    Unpacking { bytes: u64 },
    /// The unpacked files are copied out of the installer's sandbox.
    Storing,
    Installed {
        /// Size of the installed files.
        bytes: u64,
        took: std::time::Duration,
    },
}

/// A full queue drops messages.
pub type ProgressSender = tokio::sync::mpsc::Sender<Progress>;

/// Destinations of the results of a run, and the signals that start and cancel it.
#[derive(Debug)]
pub struct RunContext<'a> {
    pub artifacts: &'a mut ArtifactTar,
    pub blobs: &'a mut ArtifactTar,
    pub cancel: CancellationToken,
    /// The start signal. The sandbox is created before it. If the sender is dropped, the program never starts.
    pub start: oneshot::Receiver<()>,
    /// Receives output and log lines while the program runs, without secrets.
    pub transcript: &'a Transcript,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendChoice {
    pub kind: BackendKind,
    /// Why this backend was selected, for the result.
    pub reason: String,
    /// Promises that are only partly kept on this host, such as `P6`, as the operator has accepted.
    pub degraded: &'static [&'static str],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackendKind {
    Docker,
    Native,
    Scripted,
}

impl BackendKind {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Docker => "docker",
            Self::Native => "native",
            Self::Scripted => "scripted",
        }
    }
}

/// The operations of each backend. Private: callers use [`Sandbox`].
trait Backend {
    async fn prepare(&self, job: &Job, progress: Option<&ProgressSender>) -> Result<(), Error>;
    async fn run(&self, job: &Job, context: RunContext<'_>) -> Result<Report, Error>;
    async fn check(&self) -> Result<(), Error>;
    async fn reconcile(&self, dead: &[InstanceId]) -> Result<usize, Error>;
    async fn drain(&self);
}

#[derive(Debug)]
pub enum Sandbox {
    /// Containers of a Docker-compatible engine.
    Docker(Box<docker::Docker>),
    /// Processes in namespaces of this kernel.
    #[cfg(target_os = "linux")]
    Native(Box<linux::Native>),
    /// Docker if it keeps every promise, else native.
    Auto(Box<Auto>),
    /// Scripted results, for tests of higher layers.
    #[cfg(feature = "testing")]
    Scripted(scripted::Scripted),
}

macro_rules! on_backend {
    ($sandbox:expr, $backend:ident => $call:expr) => {
        match $sandbox {
            Self::Docker($backend) => $call,
            #[cfg(target_os = "linux")]
            Self::Native($backend) => $call,
            Self::Auto($backend) => $call,
            #[cfg(feature = "testing")]
            Self::Scripted($backend) => $call,
        }
    };
}

impl Sandbox {
    /// The engine need not run yet.
    #[must_use]
    pub fn docker(settings: docker::Settings, instance: InstanceId) -> Self {
        Self::Docker(Box::new(docker::Docker::new(settings, instance)))
    }

    /// The first sandbox shows whether this kernel supports them.
    #[cfg(target_os = "linux")]
    #[must_use]
    pub fn native(settings: linux::Settings, instance: InstanceId) -> Self {
        Self::Native(Box::new(linux::Native::new(settings, instance)))
    }

    #[must_use]
    pub fn auto(
        engine: docker::Settings,
        #[cfg(target_os = "linux")] native: linux::Settings,
        instance: InstanceId,
    ) -> Self {
        Self::Auto(Box::new(auto::Auto::new(
            docker::Docker::new(engine, instance),
            #[cfg(target_os = "linux")]
            linux::Native::new(native, instance),
        )))
    }

    #[cfg(feature = "testing")]
    #[must_use]
    pub fn scripted(script: Script) -> Self {
        Self::Scripted(scripted::Scripted::new(script, 0))
    }

    /// The first `refusals` preparations fail.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn scripted_late(script: Script, refusals: u32) -> Self {
        Self::Scripted(scripted::Scripted::new(script, refusals))
    }

    /// Enables the warm pool for jobs that recur.
    pub fn set_warm_pool(&self, pool: WarmPoolSettings) {
        on_backend!(self, backend => backend.set_warm_pool(pool));
    }

    #[must_use]
    pub fn warm_pool_stats(&self) -> WarmPoolStats {
        on_backend!(self, backend => backend.warm_pool_stats())
    }

    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Docker(_) => "docker",
            #[cfg(target_os = "linux")]
            Self::Native(_) => "native",
            Self::Auto(_) => "auto",
            #[cfg(feature = "testing")]
            Self::Scripted(_) => "scripted",
        }
    }

    /// Promises that are only partly kept on this host; known after [`Self::check`].
    #[must_use]
    pub fn degraded(&self) -> &'static [&'static str] {
        match self {
            #[cfg(target_os = "linux")]
            Self::Native(native) => native.choice().degraded,
            Self::Docker(_) | Self::Auto(_) => &[],
            #[cfg(feature = "testing")]
            Self::Scripted(_) => &[],
        }
    }

    /// Prepares what outlives the run (image, files of the skill) and chooses the backend. A job that cannot run is
    /// rejected before it is recorded.
    pub async fn prepare(
        &self,
        job: &Job,
        progress: Option<&ProgressSender>,
    ) -> Result<BackendChoice, Error> {
        let chosen = |kind, reason: &str| BackendChoice {
            kind,
            reason: reason.to_owned(),
            degraded: &[],
        };
        match self {
            Self::Docker(docker) => docker
                .prepare(job, progress)
                .await
                .map(|()| chosen(BackendKind::Docker, "configured")),
            #[cfg(target_os = "linux")]
            Self::Native(native) => native.prepare(job, progress).await.map(|()| native.choice()),
            // Boxed, because the combined future of both backends is too large for the stack.
            Self::Auto(auto) => Box::pin(auto.prepare(job, progress)).await,
            #[cfg(feature = "testing")]
            Self::Scripted(scripted) => scripted
                .prepare(job, progress)
                .await
                .map(|()| chosen(BackendKind::Scripted, "test")),
        }
    }

    /// Identifies what packages for this job are installed for: the image, or the interpreter of this host. Known
    /// once the job was prepared.
    #[must_use]
    pub fn base(&self, choice: &BackendChoice, job: &Job) -> Option<String> {
        match self {
            Self::Docker(docker) => docker.base(job),
            #[cfg(target_os = "linux")]
            Self::Native(_) => linux::Native::base(job),
            Self::Auto(auto) => auto.base(choice, job),
            #[cfg(feature = "testing")]
            Self::Scripted(_) => Some("scripted".to_owned()),
        }
    }

    /// Runs a prepared job to its end.
    pub async fn run(
        &self,
        choice: &BackendChoice,
        job: &Job,
        context: RunContext<'_>,
    ) -> Result<Report, Error> {
        match self {
            Self::Docker(docker) => docker.run(job, context).await,
            #[cfg(target_os = "linux")]
            Self::Native(native) => native.run(job, context).await,
            Self::Auto(auto) => Box::pin(auto.run(choice, job, context)).await,
            #[cfg(feature = "testing")]
            Self::Scripted(scripted) => scripted.run(job, context).await,
        }
    }

    /// Checks that a sandbox can be created now; returns the backend that would be used.
    pub async fn check(&self) -> Result<BackendKind, Error> {
        match self {
            Self::Docker(docker) => docker.check().await.map(|()| BackendKind::Docker),
            #[cfg(target_os = "linux")]
            Self::Native(native) => native.check().await.map(|()| BackendKind::Native),
            Self::Auto(auto) => auto.check().await,
            #[cfg(feature = "testing")]
            Self::Scripted(scripted) => scripted.check().await.map(|()| BackendKind::Scripted),
        }
    }

    /// Removes ended and expired sandboxes, and those of `dead` instances. Returns their number.
    pub async fn reconcile(&self, dead: &[InstanceId]) -> Result<usize, Error> {
        on_backend!(self, backend => backend.reconcile(dead).await)
    }

    /// Ends all warm sandboxes and waits for background work.
    pub async fn drain(&self) {
        on_backend!(self, backend => backend.drain().await);
    }
}
