//! What a backend is asked to run: the sandbox, and the program run in it. Nothing here could loosen a sandbox.

use std::path::{Path, PathBuf};

use crate::execution::{JsonText, ResourceLimits};
use crate::ids::{Digest, ExecutionId, Tenant};
use crate::sandbox::{Egress, Environment, InputBlob, InputFile};
use crate::secret::Mask;
use crate::skill::{ApprovedImage, SkillName};

/// One run of one program in one sandbox.
#[derive(Debug)]
pub struct Job {
    pub sandbox: SandboxSpec,
    pub program: ProgramRun,
    pub kind: JobKind,
    /// Whether the same sandbox may be needed again. An unpublished archive runs once, and its files are deleted after it.
    pub recurs: bool,
    pub urgency: Urgency,
}

/// What a sandbox is made of. Jobs with the same [`WarmKey`](super::warm_key::WarmKey) can use each other's warm sandboxes.
#[derive(Clone, Debug)]
pub struct SandboxSpec {
    pub tenant: Tenant,
    /// The root filesystem, where a container engine makes the sandbox.
    pub image: ApprovedImage,
    pub image_of: ImageOf,
    /// The skill that is run, if any.
    pub skill: Option<SkillFiles>,
    /// Other skills that the program can read.
    pub mounted: Vec<SkillFiles>,
    /// Installed packages, at most one set of each kind.
    pub deps: Vec<Dependencies>,
    pub limits: ResourceLimits,
}

/// What one run brings: sent to the guest, never part of a warm sandbox.
#[derive(Debug)]
pub struct ProgramRun {
    /// Names the sandbox.
    pub execution: ExecutionId,
    /// Program and arguments.
    pub argv: Vec<String>,
    /// The whole environment of the program, secrets included.
    pub env: Environment,
    /// Finds the secrets in what the program prints and returns.
    pub mask: Mask,
    /// `/sandbox/input.json`, byte for byte.
    pub input: JsonText,
    /// `/sandbox/code`, which a shim of ours calls.
    pub code: Option<String>,
    /// Standard input; the input if absent.
    pub stdin: Option<bytes::Bytes>,
    /// Files placed below `/workspace`.
    pub files: Vec<InputFile>,
    /// Files placed in `/blobs`.
    pub blobs: Vec<InputBlob>,
    pub collect: Collect,
}

#[derive(Debug)]
pub enum JobKind {
    Run,
    /// Installs packages: has a way out, and hands back `/sandbox/out/files` with the limits for packages.
    Build {
        egress: Egress,
    },
}

impl JobKind {
    pub(super) fn egress(&self) -> Option<&Egress> {
        match self {
            Self::Run => None,
            Self::Build { egress } => Some(egress),
        }
    }
}

/// Priority for CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Urgency {
    /// A caller waits for the result.
    #[default]
    Awaited,
    /// No caller waits: yields CPU to other sandboxes.
    Deferred,
}

/// Which setting chose the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageOf {
    /// The server, for the language: the same interpreter of this host is good enough.
    Language,
    /// The skill, which then runs in no other image.
    Skill,
}

/// Which files are handed back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Collect {
    /// `/sandbox/out/files`.
    #[default]
    Out,
    /// Those, and what is new or changed in `/workspace`, which starts with the skill's folders.
    Workspace,
}

/// A skill's unpacked files on this host.
#[derive(Clone, Debug)]
pub struct SkillFiles {
    /// Mounted at `/skills/<name>`.
    pub name: SkillName,
    /// Digest of the content.
    pub digest: Digest,
    pub folder: PathBuf,
}

/// Installed packages on this host: plain files, which a sandbox may read and execute, never change.
#[derive(Clone, Debug)]
pub struct Dependencies {
    pub packages: PackageKind,
    /// Digest of the content, as [`crate::bundle::list`] reads it.
    pub digest: Digest,
    /// The folder on this host, mounted at [`PackageKind::folder`].
    pub folder: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PackageKind {
    Python,
    Node,
}

impl PackageKind {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::Node => "node",
        }
    }

    /// Where it is mounted.
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

/// A read-only mount of a folder of this host.
#[derive(Debug)]
pub(super) struct Mount<'a> {
    /// The path inside.
    pub(super) at: String,
    /// Identifies the content, on any host.
    pub(super) name: String,
    pub(super) digest: &'a Digest,
    pub(super) folder: &'a Path,
}

impl SandboxSpec {
    pub(super) fn mounts(&self) -> Vec<Mount<'_>> {
        let skills = self.skill.iter().chain(&self.mounted).map(|skill| Mount {
            at: format!("/skills/{}", skill.name),
            name: format!("skill-{}-{}", &skill.digest.hex()[..32], skill.name),
            digest: &skill.digest,
            folder: &skill.folder,
        });
        let deps = self.deps.iter().map(|deps| Mount {
            at: deps.packages.folder().to_owned(),
            // With its kind: the same files may be packages of both, each mounted at its own path.
            name: format!("deps-{}-{}", deps.packages.as_str(), &deps.digest.hex()[..32]),
            digest: &deps.digest,
            folder: &deps.folder,
        });
        skills.chain(deps).collect()
    }
}

#[cfg(test)]
impl Job {
    /// Runs `true` once, without files.
    pub(super) fn sample() -> Self {
        let image = crate::skill::ImageAllowlist::new(["bash:5".to_owned()]).approve("bash:5");
        let (resources, maxima) = (Default::default(), Default::default());
        Self {
            sandbox: SandboxSpec {
                tenant: "acme".parse().unwrap(),
                image: image.unwrap(),
                image_of: ImageOf::Language,
                skill: None,
                mounted: Vec::new(),
                deps: Vec::new(),
                limits: ResourceLimits::clamp(&resources, None, None, &maxima),
            },
            program: ProgramRun {
                execution: ExecutionId::generate(),
                argv: vec!["true".to_owned()],
                env: Environment::default(),
                mask: Mask::default(),
                input: JsonText::parse(b"{}").unwrap(),
                code: None,
                stdin: None,
                files: Vec::new(),
                blobs: Vec::new(),
                collect: Collect::Out,
            },
            kind: JobKind::Run,
            recurs: false,
            urgency: Urgency::Awaited,
        }
    }
}
