//! The job of a backend: the sandbox, and the program to run in it. Nothing here could loosen a sandbox.

use std::path::{Path, PathBuf};

use crate::execution::{JsonText, ResourceLimits};
use crate::ids::{Digest, ExecutionId, Tenant};
use crate::sandbox::{Egress, Environment, InputBlob, InputFile};
use crate::secret::Mask;
use crate::skill::{ApprovedImage, SkillName};

/// A run of a program in a sandbox.
#[derive(Debug)]
pub struct Job {
    pub sandbox: SandboxSpec,
    pub program: ProgramRun,
    pub kind: JobKind,
    /// Whether the same sandbox may be needed again. An unpublished archive runs once; then its files are deleted.
    pub recurs: bool,
    pub urgency: Urgency,
}

/// The parts of a sandbox. Jobs with the same [`WarmKey`](super::warm_key::WarmKey) can share warm sandboxes.
#[derive(Clone, Debug)]
pub struct SandboxSpec {
    pub tenant: Tenant,
    /// Root filesystem of a container.
    pub image: ApprovedImage,
    pub image_of: ImageOf,
    pub skill: Option<SkillFiles>,
    pub mounted: Vec<SkillFiles>,
    /// At most one set per kind.
    pub deps: Vec<Dependencies>,
    pub limits: ResourceLimits,
}

/// Before the folders of `PYTHONPATH`, it makes Python send each printed line at once: `guest/runtime/followed.py`.
pub const FOLLOWED: &str = "/sandbox/runtime/followed:";

/// The part of a job that is sent to the guest and is never in a warm sandbox.
#[derive(Debug)]
pub struct ProgramRun {
    pub execution: ExecutionId,
    pub argv: Vec<String>,
    /// The whole environment, including secrets.
    pub env: Environment,
    /// Masks the secrets in output and results.
    pub mask: Mask,
    /// `/sandbox/input.json`, byte for byte.
    pub input: JsonText,
    /// `/sandbox/code`, which our shim calls.
    pub code: Option<String>,
    /// Standard input; the input if absent.
    pub stdin: Option<bytes::Bytes>,
    /// Files for `/workspace`.
    pub files: Vec<InputFile>,
    /// Files for `/blobs`.
    pub blobs: Vec<InputBlob>,
    pub collect: Collect,
}

#[derive(Debug)]
pub enum JobKind {
    Run,
    /// Installs packages: has network access, and returns `/sandbox/out/files` with the limits of packages.
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

/// The origin of the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageOf {
    /// The server's default for the language: the host's interpreter is equivalent.
    Language,
    /// The skill, which requires this image.
    Skill,
}

/// Collected files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Collect {
    /// `/sandbox/out/files`.
    #[default]
    Out,
    /// Also new and changed files of `/workspace`, which starts with the skill's folders.
    Workspace,
    /// As `Workspace`, but of the skill `/workspace` starts with what an argument names. Arguments of the request have this
    /// index in `argv` and above.
    RequestWorkspace { args_from: usize },
}

/// A skill's unpacked files on this host.
#[derive(Clone, Debug)]
pub struct SkillFiles {
    /// Name of the folder in `/skills`.
    pub name: SkillName,
    /// Digest of the content.
    pub digest: Digest,
    pub folder: PathBuf,
}

/// Installed packages on this host: regular files, readable and executable in sandboxes, never writable.
#[derive(Clone, Debug)]
pub struct Dependencies {
    pub packages: PackageKind,
    /// Digest of the content, made by [`crate::bundle::list`].
    pub digest: Digest,
    /// Folder on this host, mounted at [`PackageKind::folder`].
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

    /// Mount point.
    #[must_use]
    pub fn folder(self) -> &'static str {
        match self {
            // In `PYTHONPATH`.
            Self::Python => "/sandbox/deps",
            // `import` of ES modules ignores `NODE_PATH`, but finds a `node_modules` in a parent folder.
            Self::Node => "/node_modules",
        }
    }
}

/// A read-only mount of a folder of this host.
#[derive(Debug)]
pub(super) struct Mount<'a> {
    /// Path inside.
    pub(super) at: String,
    /// Identifies tenant and content on any host. Tenants share no files: locks and inotify events would pass between them.
    pub(super) name: String,
    pub(super) digest: &'a Digest,
    pub(super) folder: &'a Path,
}

impl SandboxSpec {
    pub(super) fn mounts(&self) -> Vec<Mount<'_>> {
        let tenant = Digest::of(self.tenant.as_str().as_bytes()).hex()[..16].to_owned();
        let skills = self.skill.iter().chain(&self.mounted).map(|skill| Mount {
            at: format!("/skills/{}", skill.name),
            name: format!("skill-{tenant}-{}-{}", &skill.digest.hex()[..32], skill.name),
            digest: &skill.digest,
            folder: &skill.folder,
        });
        let deps = self.deps.iter().map(|deps| Mount {
            at: deps.packages.folder().to_owned(),
            // Includes the kind, since the same files may be packages of both kinds with different mount points.
            name: format!(
                "deps-{tenant}-{}-{}",
                deps.packages.as_str(),
                &deps.digest.hex()[..32]
            ),
            digest: &deps.digest,
            folder: &deps.folder,
        });
        skills.chain(deps).collect()
    }
}

#[cfg(test)]
impl Job {
    /// Runs `true`, without files.
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
