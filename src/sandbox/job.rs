//! What a backend is asked to run.

use std::path::{Path, PathBuf};

use crate::execution::{JsonText, ResourceLimits};
use crate::ids::{Digest, ExecutionId};
use crate::sandbox::{Egress, Environment, InputBlob, InputFile};
use crate::secret::Mask;
use crate::skill::{ApprovedImage, SkillName};

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
    /// PackageKind that the program may import, at most one set of each kind.
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
    /// Whether the same may be asked for again, and its files are there then: sandboxes may be made for it in advance.
    pub recurs: bool,
    /// Whether somebody waits for its end.
    pub urgency: Urgency,
    /// A way out, for what builds dependencies and for nothing else.
    pub egress: Option<Egress>,
    /// The bounds.
    pub limits: ResourceLimits,
}

/// Whether somebody waits for the end of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Urgency {
    /// Somebody does.
    #[default]
    Awaited,
    /// Nobody does: where others want CPU, it gets less.
    Deferred,
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
    pub packages: PackageKind,
    /// Digest of the content, as [`crate::bundle::list`] reads it.
    pub digest: Digest,
    /// The folder that holds them, seen inside at [`PackageKind::folder`].
    pub folder: PathBuf,
}

/// Whose packages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PackageKind {
    /// Python's.
    Python,
    /// Node's.
    Node,
}

impl PackageKind {
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
pub(super) struct Mount<'a> {
    /// Where it is seen.
    pub(super) at: String,
    /// Says the content, on any host.
    pub(super) name: String,
    pub(super) digest: &'a Digest,
    pub(super) folder: &'a Path,
}

impl Job {
    /// All that is mounted read-only.
    pub(super) fn mounts(&self) -> Vec<Mount<'_>> {
        let skills = self.skill.iter().chain(&self.mounted).map(|skill| Mount {
            at: format!("/skills/{}", skill.name),
            name: format!("skill-{}-{}", &skill.digest.hex()[..32], skill.name),
            digest: &skill.digest,
            folder: &skill.folder,
        });
        let deps = self.deps.iter().map(|deps| Mount {
            at: deps.packages.folder().to_owned(),
            // The same files may be packages of both, each seen at its own place.
            name: format!("deps-{}-{}", deps.packages.as_str(), &deps.digest.hex()[..32]),
            digest: &deps.digest,
            folder: &deps.folder,
        });
        skills.chain(deps).collect()
    }
}
