//! Runs one job in one sandbox that exists for this job alone, and leaves nothing behind.
//!
//! The promises P1–P16 (`docs/ARCHITECTURE.md`) hold for every variant; a caller chooses *what* runs, never *how*.

mod auto;
pub mod docker;
mod egress;
mod environment;
mod input;
mod kernel_files;
#[cfg(target_os = "linux")]
pub mod linux;
mod report;
#[cfg(feature = "testing")]
mod scripted;
pub mod seccomp;
mod session;

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::bundle::artifacts::ArtifactTar;
use crate::error::Cause;
use crate::execution::{FileEntry, JsonText, Logs, ResourceLimits, Shown, Skipped, Usage};
use crate::ids::{Digest, ExecutionId, InstanceId};
use crate::secret::Mask;
use crate::skill::{ApprovedImage, SkillName};

pub use auto::Auto;
pub use egress::{Egress, Tunnel};
pub use environment::Environment;
pub use input::{InputBlob, InputFile};
#[cfg(feature = "testing")]
pub use scripted::Script;

/// What is to run: everything that a backend needs, nothing that could loosen it.
#[derive(Debug)]
pub struct Job {
    /// The execution; names the sandbox.
    pub execution: ExecutionId,
    /// The root filesystem, where an engine makes the sandbox.
    pub image: ApprovedImage,
    /// Who wants that image.
    pub image_of: ImageOf,
    /// The skill that is run, if any.
    pub skill: Option<SkillFiles>,
    /// Other skills that it sees.
    pub mounted: Vec<SkillFiles>,
    /// Packages that the program may import, at most one set of each kind.
    pub deps: Vec<Dependencies>,
    /// Program and arguments.
    pub argv: Vec<String>,
    /// The whole environment of the program.
    pub env: Environment,
    /// Finds the secrets among them.
    pub mask: Mask,
    /// The input: `/sandbox/input.json`, byte for byte.
    pub input: JsonText,
    /// Code that a shim of ours calls: `/sandbox/code`.
    pub code: Option<String>,
    /// Standard input; the input if absent.
    pub stdin: Option<bytes::Bytes>,
    /// Files placed below `/workspace`.
    pub files: Vec<InputFile>,
    /// Files placed in `/blobs`.
    pub blobs: Vec<InputBlob>,
    /// What is handed back.
    pub collect: Collect,
    /// A way out, for what builds dependencies and for nothing else.
    pub egress: Option<Egress>,
    /// The bounds.
    pub limits: ResourceLimits,
}

/// Who named a job's image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageOf {
    /// The server, for the language: the same interpreter of this host will do.
    Language,
    /// The skill, which then runs in nothing else.
    Skill,
}

/// Where the files that are handed back are looked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Collect {
    /// In `/sandbox/out/files`.
    #[default]
    Out,
    /// There, and what is new or changed in `/workspace`, where the skill's folders are seen too.
    Workspace,
    /// In `/sandbox/out/files`, where packages were installed: more files, and larger ones.
    Packages,
}

/// A skill's unpacked files on this host.
#[derive(Clone, Debug)]
pub struct SkillFiles {
    /// Seen inside at `/skills/<name>`.
    pub name: SkillName,
    /// Digest of the content.
    pub digest: Digest,
    /// The folder that holds them.
    pub folder: PathBuf,
}

/// Installed packages on this host: plain files, which a sandbox may read and execute, never change.
#[derive(Clone, Debug)]
pub struct Dependencies {
    /// Whose packages.
    pub packages: Packages,
    /// Digest of the content, as [`crate::bundle::list`] reads it.
    pub digest: Digest,
    /// The folder that holds them, seen inside at [`Packages::folder`].
    pub folder: PathBuf,
}

/// Whose packages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Packages {
    /// Python's.
    Python,
    /// Node's.
    Node,
}

impl Packages {
    fn as_str(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::Node => "node",
        }
    }

    /// Where a program finds them.
    #[must_use]
    pub fn folder(self) -> &'static str {
        match self {
            // `PYTHONPATH` names it.
            Self::Python => "/sandbox/deps",
            // An ES module's import ignores `NODE_PATH`; a `node_modules` above it works.
            Self::Node => "/node_modules",
        }
    }
}

/// A folder of this host that the program sees and cannot change.
#[derive(Debug)]
struct Mounted<'a> {
    /// Where it is seen.
    at: String,
    /// Says the content, on any host.
    name: String,
    digest: &'a Digest,
    folder: &'a Path,
}

impl Job {
    /// All that is mounted read-only.
    fn mounts(&self) -> Vec<Mounted<'_>> {
        let skills = self.skill.iter().chain(&self.mounted).map(|skill| Mounted {
            at: format!("/skills/{}", skill.name),
            name: format!("skill-{}-{}", &skill.digest.hex()[..32], skill.name),
            digest: &skill.digest,
            folder: &skill.folder,
        });
        let deps = self.deps.iter().map(|deps| Mounted {
            at: deps.packages.folder().to_owned(),
            // The same files may be packages of both, each seen at its own place.
            name: format!("deps-{}-{}", deps.packages.as_str(), &deps.digest.hex()[..32]),
            digest: &deps.digest,
            folder: &deps.folder,
        });
        skills.chain(deps).collect()
    }
}

/// How the program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
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
pub enum Output {
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
    pub end: End,
    /// Its output.
    pub output: Output,
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
    /// Packages are being installed.
    Installing {
        /// Which, in their author's words.
        packages: String,
    },
}

/// Takes [`Progress`]; dropped messages do not matter.
pub type ProgressSender = tokio::sync::mpsc::Sender<Progress>;

/// What accompanies one run.
#[derive(Debug)]
pub struct Run<'a> {
    /// Takes the file artifacts.
    pub artifacts: &'a mut ArtifactTar,
    /// Takes the blobs.
    pub blobs: &'a mut ArtifactTar,
    /// Ends the program early.
    pub cancel: CancellationToken,
    /// Once this is told, the program is started; if it never will be, the program never is. The sandbox is made meanwhile.
    pub go: oneshot::Receiver<()>,
}

/// What runs a job, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// What runs it.
    pub kind: Kind,
    /// Why, in a few words, for the result.
    pub reason: String,
    /// The promises that it keeps only as well as this host lets it, such as `P6`; empty but for what the operator has accepted.
    pub degraded: &'static [&'static str],
}

/// What makes a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A container engine.
    Docker,
    /// This kernel.
    Native,
    /// A script.
    Scripted,
}

impl Kind {
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
    async fn run(&self, job: &Job, run: Run<'_>) -> Result<Report, Error>;
    async fn check(&self) -> Result<(), Error>;
    async fn reconcile(&self, dead: &[InstanceId]) -> Result<usize, Error>;
    async fn settle(&self);
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
        Self::Scripted(scripted::Scripted::new(script))
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
    pub async fn prepare(&self, job: &Job, progress: Option<&ProgressSender>) -> Result<Choice, Error> {
        let chosen = |kind, reason: &str| Choice {
            kind,
            reason: reason.to_owned(),
            degraded: &[],
        };
        match self {
            Self::Docker(docker) => docker
                .prepare(job, progress)
                .await
                .map(|()| chosen(Kind::Docker, "configured")),
            #[cfg(target_os = "linux")]
            Self::Native(native) => native.prepare(job, progress).await.map(|()| native.choice()),
            // On the heap: both backends' futures in one are too much for the stacks that carry it.
            Self::Auto(auto) => Box::pin(auto.prepare(job, progress)).await,
            #[cfg(feature = "testing")]
            Self::Scripted(scripted) => scripted
                .prepare(job, progress)
                .await
                .map(|()| chosen(Kind::Scripted, "test")),
        }
    }

    /// Says what packages for this job's program are built for: the content of the image, or the interpreter of this host.
    /// Known once the job was prepared.
    #[must_use]
    pub fn base(&self, choice: &Choice, job: &Job) -> Option<String> {
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
    pub async fn run(&self, choice: &Choice, job: &Job, run: Run<'_>) -> Result<Report, Error> {
        match self {
            Self::Docker(docker) => docker.run(job, run).await,
            #[cfg(target_os = "linux")]
            Self::Native(native) => native.run(job, run).await,
            Self::Auto(auto) => Box::pin(auto.run(choice, job, run)).await,
            #[cfg(feature = "testing")]
            Self::Scripted(scripted) => scripted.run(job, run).await,
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
    pub async fn settle(&self) {
        on_backend!(self, backend => backend.settle().await);
    }
}
