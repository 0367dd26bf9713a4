//! Runs one job in one sandbox that exists for this job alone, and leaves nothing behind.
//!
//! The promises P1–P16 (`docs/ARCHITECTURE.md`) hold for every variant; a caller chooses *what* runs, never *how*.

mod auto;
pub mod docker;
mod egress;
mod environment;
mod input;
mod job;
mod kernel_files;
#[cfg(target_os = "linux")]
pub mod linux;
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
use crate::execution::{FileEntry, JsonText, Logs, Shown, Skipped, Transcript, Usage};
use crate::ids::InstanceId;
use crate::telemetry::WarmPoolStats;

pub use auto::Auto;
pub use egress::{Egress, Tunnel};
pub use environment::Environment;
pub use input::{InputBlob, InputFile};
pub use job::{
    Collect, Dependencies, ImageOf, Job, JobKind, PackageKind, ProgramRun, SandboxSpec, SkillFiles, Urgency,
};
#[cfg(feature = "testing")]
pub use scripted::Script;
pub use warm_pool::WarmPoolSettings;

#[cfg(target_os = "linux")]
use job::Mount;

/// How the program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Completion {
    /// By itself, with this code.
    Exited(i32),
    /// By this signal.
    Signaled(i32),
    /// Killed at the deadline.
    TimedOut,
    /// Killed for want of memory.
    OutOfMemory,
    /// Killed because the caller asked for it.
    Cancelled,
    /// Never started, for this reason.
    NotStarted(String),
    /// The sandbox vanished before it could report, for this reason.
    Lost(String),
}

/// What the program left as its output.
#[derive(Clone, Debug, PartialEq)]
pub enum ProgramOutput {
    /// Nothing.
    Missing,
    /// Valid JSON.
    Json(JsonText),
    /// Something that cannot be taken, for this reason.
    Invalid(String),
    /// More than [`crate::limits::OUTPUT_BYTES_MAX`]: this many bytes.
    TooLarge(u64),
}

/// Everything a finished job tells. Files are in the [`ArtifactTar`] that was passed in.
#[derive(Clone, Debug)]
pub struct Report {
    /// How it ended.
    pub end: Completion,
    /// Its output.
    pub output: ProgramOutput,
    /// What called code has shown.
    pub shown: Shown,
    /// Its two streams.
    pub logs: Logs,
    /// Files that were written to the tar.
    pub files: Vec<FileEntry>,
    /// The first files that were not collected.
    pub skipped: Vec<Skipped>,
    /// How many were not collected in all.
    pub skipped_total: u64,
    /// Blobs that were written to their tar, each under the digest of its content.
    pub blobs: Vec<FileEntry>,
    /// Whether all that the program left was heard; if not, logs, output and files are what came until then.
    pub complete: bool,
    /// What was used.
    pub usage: Usage,
    /// Until the program was started.
    pub sandbox_time: Duration,
    /// How long it ran.
    pub run_time: Duration,
    /// To read its results.
    pub collect_time: Duration,
    /// Whether it had been made before anybody asked.
    pub warm: bool,
}

/// Why a job could not be run at all. The program has not run, or its outcome is unknown.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No sandbox can be made on this host now; the sentence says why and what to do.
    #[error("{0}")]
    Unavailable(String),
    /// The image cannot be used; the sentence says why and what to do.
    #[error("{0}")]
    Image(String),
    /// The image is not there and cannot be had; the sentence says why and what to do.
    #[error("{0}")]
    ImageMissing(String),
    /// The engine failed in a way that is nobody's wish.
    #[error("the sandbox engine failed while {doing}")]
    Engine {
        /// What was being done.
        doing: &'static str,
        /// What it said.
        #[source]
        source: Cause,
    },
}

/// Progress of something that takes long, for whoever watches.
#[derive(Clone, Debug)]
pub enum Progress {
    /// An image is being fetched; a sentence with how far.
    Pulling {
        /// Which.
        image: String,
        /// How far, as the engine says it.
        detail: String,
    },
    /// PackageKind are being installed.
    Installing {
        /// Which, in their author's words.
        packages: String,
    },
}

/// Takes [`Progress`]; dropped messages do not matter.
pub type ProgressSender = tokio::sync::mpsc::Sender<Progress>;

/// Where the results of one run go, and what starts and cancels its program.
#[derive(Debug)]
pub struct RunContext<'a> {
    pub artifacts: &'a mut ArtifactTar,
    pub blobs: &'a mut ArtifactTar,
    pub cancel: CancellationToken,
    /// The start signal. The sandbox is created before it; if the sender is dropped, the program never starts.
    pub start: oneshot::Receiver<()>,
    /// Gets what the program prints and logs as it comes, without secrets.
    pub transcript: &'a Transcript,
}

/// What runs a job, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendChoice {
    /// What runs it.
    pub kind: BackendKind,
    /// Why, in a few words, for the result.
    pub reason: String,
    /// The promises that it keeps only as well as this host lets it, such as `P6`; empty but for what the operator has accepted.
    pub degraded: &'static [&'static str],
}

/// What makes a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackendKind {
    /// A container engine.
    Docker,
    /// This kernel.
    Native,
    /// A script.
    Scripted,
}

impl BackendKind {
    /// Its name in results.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Docker => "docker",
            Self::Native => "native",
            Self::Scripted => "scripted",
        }
    }
}

/// What every backend can do. Private: callers see only [`Sandbox`].
trait Backend {
    async fn prepare(&self, job: &Job, progress: Option<&ProgressSender>) -> Result<(), Error>;
    async fn run(&self, job: &Job, context: RunContext<'_>) -> Result<Report, Error>;
    async fn check(&self) -> Result<(), Error>;
    async fn reconcile(&self, dead: &[InstanceId]) -> Result<usize, Error>;
    async fn drain(&self);
}

/// A maker of sandboxes.
#[derive(Debug)]
pub enum Sandbox {
    /// Containers of a Docker-compatible engine.
    Docker(Box<docker::Docker>),
    /// Processes in namespaces of this kernel.
    #[cfg(target_os = "linux")]
    Native(Box<linux::Native>),
    /// Whatever keeps every promise on this host.
    Auto(Box<Auto>),
    /// Answers from a script: for tests of what lies above.
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
    /// Sandboxes of a Docker-compatible engine, which need not be there yet.
    #[must_use]
    pub fn docker(settings: docker::Settings, instance: InstanceId) -> Self {
        Self::Docker(Box::new(docker::Docker::new(settings, instance)))
    }

    /// Sandboxes of this kernel; whether it lets us is found out by the first.
    #[cfg(target_os = "linux")]
    #[must_use]
    pub fn native(settings: linux::Settings, instance: InstanceId) -> Self {
        Self::Native(Box::new(linux::Native::new(settings, instance)))
    }

    /// Sandboxes of a container engine where one can serve, else of this kernel.
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

    /// Sandboxes that answer as `script` says; nothing is run.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn scripted(script: Script) -> Self {
        Self::Scripted(scripted::Scripted::new(script, 0))
    }

    /// The same, ready only when it was asked for so often.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn scripted_late(script: Script, refusals: u32) -> Self {
        Self::Scripted(scripted::Scripted::new(script, refusals))
    }

    /// Makes sandboxes in advance from now on, for what is run more than once.
    pub fn set_warm_pool(&self, pool: WarmPoolSettings) {
        on_backend!(self, backend => backend.set_warm_pool(pool));
    }

    /// What became of those that were made in advance.
    #[must_use]
    pub fn warm_pool_stats(&self) -> WarmPoolStats {
        on_backend!(self, backend => backend.warm_pool_stats())
    }

    /// What was configured, for people.
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

    /// The promises that it keeps only as well as this host lets it; known once it was checked.
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

    /// Makes ready what outlives the run: engine, image, the skill's files; and says what will run it. A job that cannot run is refused here, before it is recorded.
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
            // On the heap: both backends' futures in one are too much for the stacks that carry it.
            Self::Auto(auto) => Box::pin(auto.prepare(job, progress)).await,
            #[cfg(feature = "testing")]
            Self::Scripted(scripted) => scripted
                .prepare(job, progress)
                .await
                .map(|()| chosen(BackendKind::Scripted, "test")),
        }
    }

    /// Says what packages for this job's program are built for: the content of the image, or the interpreter of this host.
    /// Known once the job was prepared.
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

    /// Runs `job` to its end in a sandbox of its own, made by what was chosen when it was prepared.
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

    /// Whether a sandbox could be made now.
    pub async fn check(&self) -> Result<(), Error> {
        on_backend!(self, backend => backend.check().await)
    }

    /// Removes what ended, expired or dead processes left; `dead` are instances that are known to be gone. Returns how many sandboxes were removed.
    pub async fn reconcile(&self, dead: &[InstanceId]) -> Result<usize, Error> {
        on_backend!(self, backend => backend.reconcile(dead).await)
    }

    /// Waits until nothing that was left to the background is still going on.
    pub async fn drain(&self) {
        on_backend!(self, backend => backend.drain().await);
    }
}
