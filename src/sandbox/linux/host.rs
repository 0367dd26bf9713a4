//! What this host supports, with remedies for operators.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use landlock::{ABI, Access as _, AccessFs, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _};

use super::cgroup::Cgroups;
use super::host_folder::HostFolder;
use super::identity::{OUTER_COUNT, OUTER_FIRST, Privilege};
use super::visible::{DEVICES, ETC_FILES, ETC_FOLDERS, HostEntry, HostRoot, PROGRAMS};
use crate::sandbox::{Error, ImageOf, Job};

#[derive(Debug, Clone)]
pub struct HostSetup {
    /// How each promise that depends on the host is kept.
    pub mechanisms: Vec<PromiseMechanism>,
    /// Why native sandboxes are unavailable, and the remedy.
    pub refused: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromiseMechanism {
    /// `P1` to `P16`.
    pub promise: &'static str,
    pub by: String,
    pub kept: bool,
}

impl HostSetup {
    pub(super) fn available(privilege: Privilege, cgroups: Option<&Cgroups>) -> Self {
        Self {
            mechanisms: mechanisms(privilege, cgroups),
            refused: None,
        }
    }

    pub(super) fn refused(error: &Error) -> Self {
        Self {
            mechanisms: Vec::new(),
            refused: Some(error.to_string()),
        }
    }
}

fn mechanisms(privilege: Privilege, cgroups: Option<&Cgroups>) -> Vec<PromiseMechanism> {
    let kept = |promise, by: &str| PromiseMechanism {
        promise,
        by: by.to_owned(),
        kept: true,
    };
    let identity = match privilege {
        Privilege::Root => format!(
            "a user of its own for each execution, {OUTER_FIRST} to {}",
            OUTER_FIRST + OUTER_COUNT - 1
        ),
        Privilege::Ordinary { uid, .. } => format!("a user namespace over user {uid}, groups as they are"),
    };
    let bounded = |promise, degraded: &str| PromiseMechanism {
        promise,
        by: cgroups.map_or_else(|| degraded.to_owned(), Cgroups::describe),
        kept: cgroups.is_some(),
    };
    let landlock = if has_landlock() {
        "read-only mounts, locked by a second mount namespace, and Landlock"
    } else {
        "read-only mounts, locked by a second mount namespace; no Landlock here"
    };
    vec![
        kept(
            "P1",
            "a network namespace without interfaces but its own loopback, and seccomp",
        ),
        kept("P2", landlock),
        kept("P3", &identity),
        kept("P4", "every capability dropped, no_new_privs, nosuid mounts"),
        PromiseMechanism {
            kept: true,
            ..bounded("P5", "RLIMIT_NPROC within the user namespace")
        },
        bounded(
            "P6",
            "limits on each process, and a watchdog that kills a sandbox that exceeds its memory",
        ),
        bounded(
            "P7",
            "a watchdog that pauses a sandbox that exceeds its CPU share",
        ),
        kept(
            "P12",
            "PID, mount and IPC namespaces, no sysfs, no cgroups inside",
        ),
        kept("P13", "our seccomp table, compiled for this kernel"),
        kept(
            "P15",
            "the death of the PID namespace with its first process, and that with the server",
        ),
    ]
}

/// Any version. The check itself restricts nothing.
fn has_landlock() -> bool {
    let asked = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(ABI::V1));
    asked.and_then(Ruleset::create).is_ok()
}

/// The first kernel with `mount_setattr`, the newest required system call.
const KERNEL_MIN: (u32, u32) = (5, 12);

/// Rejects old kernels before a step fails.
pub(super) fn check_kernel() -> Result<(), String> {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    match version(&release) {
        Some(version) if version < KERNEL_MIN => Err(format!(
            "native sandboxes need Linux {}.{} or newer, and this is {release}; upgrade it, or set sandbox.backend to docker",
            KERNEL_MIN.0, KERNEL_MIN.1
        )),
        Some(_) | None => Ok(()),
    }
}

/// The first two numbers of a kernel's release.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(['.', '-', '+']);
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// What sandboxes see of the host, with the operator's folders.
pub(super) fn root(folders: &[HostFolder]) -> HostRoot {
    let present = |paths: &[&str]| paths.iter().filter_map(|path| entry(path)).collect::<Vec<_>>();
    // A folder inside another one is visible with it.
    let is_inside = |path: &str| {
        let around =
            |folder: &&HostFolder| Path::new(path).starts_with(folder.as_str()) && path != folder.as_str();
        folders.iter().find(around).is_some()
    };
    let configured = folders.iter().map(HostFolder::as_str).collect::<BTreeSet<_>>();
    let etc = ETC_FILES.iter().chain(ETC_FOLDERS).copied();
    let further: Vec<_> = etc.chain(configured).filter(|path| !is_inside(path)).collect();
    HostRoot {
        entries: present(PROGRAMS),
        further: present(&further),
        devices: DEVICES
            .iter()
            .filter(|name| Path::new("/dev").join(name).exists())
            .map(|name| (*name).to_owned())
            .collect(),
    }
}

fn entry(path: &str) -> Option<HostEntry> {
    let metadata = fs::symlink_metadata(path).ok()?;
    if metadata.is_symlink() {
        let to = fs::read_link(path).ok()?.into_os_string().into_string().ok()?;
        return Some(HostEntry::Link(path.to_owned(), to));
    }
    if metadata.is_dir() {
        return Some(HostEntry::Folder(path.to_owned()));
    }
    metadata.is_file().then(|| HostEntry::File(path.to_owned()))
}

/// Native sandboxes use the programs of this host: a skill with an image of its own cannot run.
pub(super) fn has_image(job: &Job) -> Result<(), Error> {
    match job.sandbox.image_of {
        ImageOf::Language => Ok(()),
        ImageOf::Skill => Err(Error::ImageMissing(format!(
            "the skill needs image `{}` and thus a container engine; start one, or remove `image` from the skill to run it with the programs of this host",
            job.sandbox.image
        ))),
    }
}

/// Reports a missing program before the execution is recorded.
pub(super) fn find_program(argv: &[String], env: &[(String, String)]) -> Result<(), Error> {
    let Some(name) = argv.first().filter(|name| !name.contains('/')) else {
        return Ok(());
    };
    if program(name, env).is_some() {
        return Ok(());
    }
    Err(Error::Unavailable(format!(
        "`{name}` is not installed on this host, whose programs the native sandbox uses; install it, or set sandbox.backend to docker"
    )))
}

/// Looks up `name` in the program's `PATH`.
fn program(name: &str, env: &[(String, String)]) -> Option<PathBuf> {
    let path = env
        .iter()
        .find_map(|(key, value)| (key == "PATH").then_some(value.as_str()));
    let mut files = path
        .unwrap_or_default()
        .split(':')
        .map(|folder| Path::new(folder).join(name));
    files.find(|file| {
        file.metadata()
            .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
    })
}

/// Identifies the interpreter of a job, since another one may need other packages.
pub(super) fn base(job: &Job) -> Option<String> {
    let file = program(job.program.argv.first()?, job.program.env.variables())?
        .canonicalize()
        .ok()?;
    let metadata = file.metadata().ok()?;
    Some(format!(
        "{} {} {} {}",
        std::env::consts::ARCH,
        file.display(),
        metadata.len(),
        metadata.mtime()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compares_kernel_releases_by_number() {
        for (release, expected) in [
            ("5.12.0", (5, 12)),
            ("6.1.0-18-amd64", (6, 1)),
            ("5.4-rc1", (5, 4)),
            ("6.18.44-x+", (6, 18)),
        ] {
            assert_eq!(version(release), Some(expected), "{release}");
        }
        assert!((5, 4) < KERNEL_MIN && (6, 1) > KERNEL_MIN && (5, 15) > KERNEL_MIN);
        assert_eq!(version("unknown"), None);
    }

    #[test]
    fn names_missing_program_before_start() {
        let env = [("PATH".to_owned(), "/usr/bin:/bin".to_owned())];
        assert!(find_program(&["sh".to_owned()], &env).is_ok());
        let error = find_program(&["no-such-program".to_owned()], &env).unwrap_err();
        assert!(error.to_string().contains("`no-such-program`"), "{error}");
    }
}
