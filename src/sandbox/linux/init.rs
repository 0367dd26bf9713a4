//! Applies a plan inside the new process, step by step; then the process becomes the guest.
//!
//! The process has one thread, its own namespaces and all capabilities in them. No code of a skill has run yet.

use std::collections::VecDeque;
use std::fmt;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::{DirBuilderExt as _, symlink};
use std::path::Path;

use landlock::{
    ABI, Access as _, AccessFs, CompatLevel, Compatible as _, PathBeneath, PathFd, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _,
};
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, mount, mount_change,
    mount_remount, move_mount, open_tree, unmount,
};
use rustix::process::{DumpableBehavior, Rlimit, Signal};
use rustix::thread::{CapabilitySet, CapabilitySets};

use super::loopback;
use super::plan::{HOST, NOBODY};
use super::plan_frame::{self, ReceivedPlan};
use super::step::{Resource, Step, Then};
use super::zygote::{self, Ids};
use crate::sandbox::seccomp::bpf;
use crate::sys::{self, MountScope};

#[derive(Debug)]
pub(super) enum Error {
    Refused(&'static str),
    ReceivedFork(io::Error),
    ReceivedPlan(io::Error),
    Prepare(io::Error),
    Step(Box<Step>, io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(why) => f.write_str(why),
            Self::ReceivedFork(error) => write!(f, "only the server starts this process: {error}"),
            Self::ReceivedPlan(error) => write!(f, "no instructions from the server: {error}"),
            Self::Prepare(error) => write!(f, "our own modules cannot be written: {error}"),
            Self::Step(step, error) => {
                write!(f, "the step {step:?} failed: {error}{}", hint(step, error))
            }
        }
    }
}

/// Remedies for steps that are known to fail on some hosts.
fn hint(step: &Step, error: &io::Error) -> &'static str {
    let missing = error.raw_os_error() == Some(libc::ENOSYS);
    match step {
        Step::BindFolder { .. } | Step::BindFile { .. } | Step::Device { .. } if missing => {
            "; Linux 5.12 or newer is needed"
        }
        Step::Processes => {
            "; in a container, /proc must not be masked (docker: --security-opt systempaths=unconfined)"
        }
        Step::LockMounts { .. } => "; user namespaces within user namespaces must be allowed",
        _ => "",
    }
}

/// Serves as the zygote; then, in each child, creates the sandbox. `prepare` is called in the blank process, once
/// files can be written; its result is returned when the sandbox is complete.
pub(super) fn enter<T>(prepare: fn() -> io::Result<T>) -> Result<T, Error> {
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    // Compiled before the fork, used in the last step.
    let mut filter = for_kernel(bpf::program());
    zygote::serve().map_err(Error::ReceivedFork)?;
    let own_mounts = plan_frame::own_mounts().map_err(Error::ReceivedPlan)?;
    let mut prepared = None;
    loop {
        let ReceivedPlan {
            plan,
            host_mounts,
            mut mounts,
        } = plan_frame::receive(rustix::stdio::stdin()).map_err(Error::ReceivedPlan)?;
        if own_mounts == host_mounts {
            return Err(Error::Refused(
                "this process shares the host's mounts and will not touch them",
            ));
        }
        for step in plan.steps {
            apply(&step, &mut mounts, &mut filter).map_err(|error| Error::Step(Box::new(step), error))?;
        }
        match plan.then {
            Then::Wait if prepared.is_some() => {}
            Then::Wait => prepared = Some(prepare().map_err(Error::Prepare)?),
            Then::Serve => {
                return prepared.ok_or(Error::Refused("a plan begins with the part before the wait"));
            }
        }
    }
}

fn apply(step: &Step, mounts: &mut VecDeque<OwnedFd>, filter: &mut [libc::sock_filter]) -> io::Result<()> {
    match step {
        Step::LeaveTerminal => rustix::process::setsid().map(drop).map_err(Into::into),
        Step::HideCgroup => sys::unshare_namespaces(libc::CLONE_NEWCGROUP),
        Step::NameHost { name } => rustix::system::sethostname(name.as_bytes()).map_err(Into::into),
        Step::CutPropagation => {
            let all = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
            mount_change("/", all).map_err(Into::into)
        }
        Step::ReplaceRoot { bytes, inodes } => replace_root(*bytes, *inodes),
        Step::Folder { path } => make_folder(path),
        Step::Link { path, to } => symlink(to, path),
        Step::File { path, text } => fs::write(path, text),
        Step::BindFolder { from, to } => bind(&of_host(from), to, LOCKED),
        Step::BindFile { from, to } => {
            fs::write(to, "")?;
            bind(&of_host(from), to, LOCKED)
        }
        Step::AttachHanded { to } => {
            let mount = mounts.pop_front().ok_or(io::ErrorKind::NotFound)?;
            attach(&mount, to)
        }
        Step::Device { name } => device(name),
        Step::Terminals => mount_new(
            "devpts",
            "/dev/pts",
            MountFlags::NOSUID | MountFlags::NOEXEC,
            TERMINALS,
        ),
        Step::Processes => mount_new("proc", "/proc", SCRATCH, ""),
        Step::Scratch {
            path,
            bytes,
            inodes,
            mode,
        } => {
            let options = format!("size={bytes},nr_inodes={inodes},mode={mode},uid={NOBODY},gid={NOBODY}");
            mount_new("tmpfs", path, SCRATCH, &options)
        }
        Step::Resize { path, bytes, inodes } => resize(path, *bytes, *inodes),
        Step::LimitUser { name, value } => limit_user(name, *value),
        Step::Mask { path } => mask(path),
        Step::Freeze { path } if Path::new(path).exists() => {
            bind(path, path, LOCKED | libc::MOUNT_ATTR_NOEXEC)
        }
        Step::Freeze { .. } => Ok(()),
        Step::ForgetHost => {
            unmount(HOST, UnmountFlags::DETACH)?;
            fs::remove_dir(HOST)
        }
        Step::FreezeRoot => {
            let root = open_tree(rustix::fs::CWD, "/", OpenTreeFlags::OPEN_TREE_CLOEXEC)?;
            sys::mount_setattr(root.as_fd(), LOCKED, MountScope::One)
        }
        Step::StartLoopback => loopback::start(),
        Step::LockMounts { id } => lock_mounts(*id),
        Step::Limit { resource, value } => limit(*resource, *value),
        Step::NoNewPrivileges => rustix::thread::set_no_new_privs(true).map_err(Into::into),
        Step::Landlock { writable } => landlock(writable).map_err(io::Error::other),
        Step::DropCapabilities => drop_capabilities(),
        Step::DieWithServer => {
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).map_err(Into::into)
        }
        Step::HideFirstProcess => {
            rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(Into::into)
        }
        Step::RefuseCalls { calls } => sys::seccomp_filter(&mut for_kernel(bpf::refusing(calls))),
        Step::FilterCalls => sys::seccomp_filter(filter),
    }
}

/// Attributes of bind mounts from the host.
pub(super) const LOCKED: u64 = libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;
/// Flags of our own file systems.
const SCRATCH: MountFlags = MountFlags::NOSUID
    .union(MountFlags::NODEV)
    .union(MountFlags::NOEXEC);
const TERMINALS: &str = "newinstance,ptmxmode=0666,mode=0620";

fn of_host(path: &str) -> String {
    format!("{HOST}{path}")
}

fn make_folder(path: &str) -> io::Result<()> {
    DirBuilder::new().mode(0o755).create(path)
}

fn mount_new(kind: &str, path: &str, flags: MountFlags, options: &str) -> io::Result<()> {
    let options = std::ffi::CString::new(options)?;
    mount(kind, path, kind, flags, options.as_c_str()).map_err(Into::into)
}

fn resize(path: &str, bytes: u64, inodes: u64) -> io::Result<()> {
    let options = std::ffi::CString::new(format!("size={bytes},nr_inodes={inodes}"))?;
    mount_remount(path, SCRATCH, options.as_c_str()).map_err(Into::into)
}

/// The host is not affected: the tmpfs covers `/tmp` in this mount namespace only.
pub(super) fn replace_root(bytes: u64, inodes: u64) -> io::Result<()> {
    const PLACE: &str = "/tmp";
    let options = format!("size={bytes},nr_inodes={inodes},mode=0755,uid={NOBODY},gid={NOBODY}");
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount_new("tmpfs", PLACE, flags, &options)?;
    let host = format!("{PLACE}{HOST}");
    make_folder(&host)?;
    rustix::process::pivot_root(PLACE, &host)?;
    rustix::process::chdir("/").map_err(Into::into)
}

/// Copies the mounts at `from`, restricted before they are visible at `to`.
fn bind(from: &str, to: &str, attributes: u64) -> io::Result<()> {
    let flags =
        OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_RECURSIVE;
    let mount = open_tree(rustix::fs::CWD, from, flags)?;
    sys::mount_setattr(mount.as_fd(), attributes, MountScope::All)?;
    attach(&mount, to)
}

fn attach(mount: &OwnedFd, to: &str) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    move_mount(mount, "", rustix::fs::CWD, to, flags).map_err(Into::into)
}

fn device(name: &str) -> io::Result<()> {
    let path = format!("/dev/{name}");
    fs::write(&path, "")?;
    let attributes = libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NOEXEC;
    bind(&of_host(&path), &path, attributes)
}

fn mask(path: &str) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => mount_new(
            "tmpfs",
            path,
            SCRATCH | MountFlags::RDONLY,
            "size=0,nr_inodes=2,mode=0755",
        ),
        Ok(_) => bind("/dev/null", path, libc::MOUNT_ATTR_RDONLY),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// A kernel without this limit has nothing to limit.
fn limit_user(name: &str, value: u64) -> io::Result<()> {
    match fs::write(format!("/proc/sys/user/{name}"), value.to_string()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        written => written,
    }
}

fn lock_mounts(id: u32) -> io::Result<()> {
    // Only a dumpable process may write the files below. PID 1 becomes non-dumpable again a few steps later.
    rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable)?;
    sys::unshare_namespaces(libc::CLONE_NEWUSER | libc::CLONE_NEWNS)?;
    zygote::map_single_ids(Ids::both(id), Ids::both(id))
}

fn limit(resource: Resource, value: u64) -> io::Result<()> {
    let resource = match resource {
        Resource::OpenFiles => rustix::process::Resource::Nofile,
        Resource::CoreBytes => rustix::process::Resource::Core,
        Resource::LockedBytes => rustix::process::Resource::Memlock,
        Resource::DataBytes => rustix::process::Resource::Data,
        Resource::PendingSignals => rustix::process::Resource::Sigpending,
        Resource::Processes => rustix::process::Resource::Nproc,
    };
    // An ordinary user's limit may be lower, and cannot be raised.
    let most = rustix::process::getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let value = Some(value.min(most));
    let limit = Rlimit {
        current: value,
        maximum: value,
    };
    rustix::process::setrlimit(resource, limit).map_err(Into::into)
}

/// As far as the kernel supports Landlock. Without it, the mounts enforce the same.
fn landlock(writable: &[String]) -> Result<(), landlock::RulesetError> {
    const NEWEST: ABI = ABI::V5;
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?
        .create()?;
    let places = [("/", AccessFs::from_read(NEWEST))];
    let writable = writable
        .iter()
        .map(|path| (path.as_str(), AccessFs::from_all(NEWEST)));
    for (path, access) in places.into_iter().chain(writable) {
        if let Ok(place) = PathFd::new(path) {
            rules = rules.add_rule(PathBeneath::new(place, access))?;
        }
    }
    // `no_new_privs` is a step of its own.
    rules.no_new_privs(false).restrict_self().map(drop)
}

fn drop_capabilities() -> io::Result<()> {
    for bit in 0..u64::BITS {
        let capability = CapabilitySet::from_bits_retain(1 << bit);
        match rustix::thread::remove_capability_from_bounding_set(capability) {
            // Beyond the last capability of this kernel.
            Err(Errno::INVAL) => break,
            removed => removed?,
        }
    }
    rustix::thread::clear_ambient_capability_set()?;
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    rustix::thread::set_capabilities(None, none).map_err(Into::into)
}

/// The filter for this kernel; empty, and thus rejected by the kernel, on an unsupported architecture.
fn for_kernel(program: Option<Vec<bpf::Instruction>>) -> Vec<libc::sock_filter> {
    program
        .unwrap_or_default()
        .iter()
        .map(|instruction| libc::sock_filter {
            code: instruction.code,
            jt: instruction.holds,
            jf: instruction.fails,
            k: instruction.operand,
        })
        .collect()
}
