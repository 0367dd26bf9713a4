//! The first part of a plan: what is equal for every sandbox of this host, applied by blank processes.

use std::collections::BTreeSet;

use super::plan::{MountAccess, SCRATCH};
use super::step::{SetupPlan, Step, Then};
use super::visible::{HostEntry, HostRoot};
use crate::limits;
use crate::sandbox::kernel_files;

pub(super) fn host_plan(host: &HostRoot, ways: MountAccess) -> SetupPlan {
    let mut steps = vec![
        Step::LeaveTerminal,
        Step::HideCgroup,
        Step::NameHost {
            name: "sandbox".to_owned(),
        },
        Step::CutPropagation,
        Step::ReplaceRoot {
            bytes: limits::MIB,
            inodes: 1024,
        },
    ];
    steps.extend(programs(host, ways));
    steps.extend(etc(host, ways));
    steps.extend(devices(host));
    steps.extend(scratch());
    steps.push(Step::Processes);
    steps.extend(limits::USER_LIMITS.iter().map(|(name, value)| Step::LimitUser {
        name: (*name).to_owned(),
        value: *value,
    }));
    // `/sys` stays empty.
    let masked = kernel_files::MASKED
        .iter()
        .filter(|path| path.starts_with("/proc/"));
    steps.extend(masked.map(|path| Step::Mask {
        path: (*path).to_owned(),
    }));
    steps.extend(kernel_files::READONLY.iter().map(|path| Step::Freeze {
        path: (*path).to_owned(),
    }));
    steps.push(Step::StartLoopback);
    steps.extend((ways == MountAccess::Passed).then_some(Step::ForgetHost));
    SetupPlan {
        steps,
        then: Then::Wait,
    }
}

/// The second part: folders of the host, through overlays of one tenant. Blank processes apply it in advance, too.
pub(super) fn tenant_plan(host: &HostRoot) -> SetupPlan {
    let attach = |to: &str| Step::AttachHanded { to: to.to_owned() };
    SetupPlan {
        steps: shown_folders(host).map(attach).collect(),
        then: Then::Wait,
    }
}

/// All steps before those of a single sandbox.
#[cfg(any(test, feature = "testing"))]
pub(super) fn before_run(host: &HostRoot, ways: MountAccess) -> Vec<Step> {
    let mut steps = host_plan(host, ways).steps;
    if ways == MountAccess::Passed {
        steps.extend(tenant_plan(host).steps);
    }
    steps
}

pub(super) fn folder(path: &str) -> Step {
    Step::Folder {
        path: path.to_owned(),
    }
}

fn link(path: &str, to: &str) -> Step {
    Step::Link {
        path: path.to_owned(),
        to: to.to_owned(),
    }
}

/// Programs expect them.
const EMPTY: [&str; 8] = ["/etc", "/home", "/mnt", "/opt", "/run", "/srv", "/sys", "/var"];

fn programs(host: &HostRoot, ways: MountAccess) -> Vec<Step> {
    let mut steps: Vec<_> = EMPTY.into_iter().map(folder).collect();
    steps.extend(host.entries.iter().flat_map(|entry| show(entry, ways)));
    steps
}

/// A mount point only, if mounts are passed: they are of the tenant, which blank processes do not know.
fn show(entry: &HostEntry, ways: MountAccess) -> Vec<Step> {
    match (ways, entry) {
        (MountAccess::ByPath, _) | (_, HostEntry::Link(..)) => bind(entry),
        (MountAccess::Passed, HostEntry::Folder(path)) => vec![folder(path)],
        (MountAccess::Passed, HostEntry::File(path)) => vec![Step::File {
            path: path.clone(),
            text: String::new(),
        }],
    }
}

/// Folders and files of the host that sandboxes see, in the order in which their mounts go with a plan.
pub(super) fn shown_folders(host: &HostRoot) -> impl Iterator<Item = &str> {
    let all = host.entries.iter().chain(&host.further);
    all.filter_map(|entry| match entry {
        HostEntry::Folder(path) | HostEntry::File(path) => Some(path.as_str()),
        HostEntry::Link(..) => None,
    })
}

/// The host's own, read-only.
fn bind(entry: &HostEntry) -> Vec<Step> {
    match entry {
        HostEntry::Folder(path) => vec![
            folder(path),
            Step::BindFolder {
                from: path.clone(),
                to: path.clone(),
            },
        ],
        HostEntry::File(path) => vec![Step::BindFile {
            from: path.clone(),
            to: path.clone(),
        }],
        HostEntry::Link(path, to) => vec![link(path, to)],
    }
}

/// Our own `/etc`, without the host's users, secrets and networks.
fn etc(host: &HostRoot, ways: MountAccess) -> Vec<Step> {
    let files = [
        (
            "/etc/passwd",
            "root:x:0:0:root:/root:/usr/sbin/nologin\nnobody:x:65534:65534:nobody:/workspace:/usr/sbin/nologin\n",
        ),
        ("/etc/group", "root:x:0:\nnogroup:x:65534:\n"),
        (
            "/etc/hosts",
            "127.0.0.1\tlocalhost sandbox\n::1\tlocalhost ip6-localhost ip6-loopback\n",
        ),
        (
            "/etc/nsswitch.conf",
            "passwd: files\ngroup: files\nshadow: files\nhosts: files\nnetworks: files\nprotocols: files\nservices: files\n",
        ),
    ];
    let mut steps: Vec<_> = files
        .into_iter()
        .map(|(path, text)| Step::File {
            path: path.to_owned(),
            text: text.to_owned(),
        })
        .collect();
    steps.push(link("/etc/os-release", "../usr/lib/os-release"));
    steps.extend(further(host, ways));
    steps
}

/// Each with the parent folders that do not exist yet.
fn further(host: &HostRoot, ways: MountAccess) -> Vec<Step> {
    let mut made: BTreeSet<&str> = EMPTY.into_iter().chain([""]).collect();
    let mut steps = Vec::new();
    for entry in &host.further {
        let (HostEntry::Folder(path) | HostEntry::File(path) | HostEntry::Link(path, _)) = entry;
        let ends = path.match_indices('/').map(|(end, _)| &path[..end]);
        steps.extend(ends.filter(|parent| made.insert(parent)).map(folder));
        steps.extend(show(entry, ways));
    }
    steps
}

fn devices(host: &HostRoot) -> Vec<Step> {
    let mut steps = vec![folder("/dev")];
    steps.extend(
        host.devices
            .iter()
            .map(|name| Step::Device { name: name.clone() }),
    );
    steps.extend([
        link("/dev/fd", "/proc/self/fd"),
        link("/dev/stdin", "/proc/self/fd/0"),
        link("/dev/stdout", "/proc/self/fd/1"),
        link("/dev/stderr", "/proc/self/fd/2"),
        link("/dev/ptmx", "pts/ptmx"),
        folder("/dev/pts"),
        Step::Terminals,
        folder("/dev/shm"),
        folder("/proc"),
    ]);
    steps
}

/// Mounted by blank processes with a minimal size; the plan of a single sandbox sets the granted size.
fn scratch() -> Vec<Step> {
    let made_already = "/dev/shm";
    SCRATCH
        .into_iter()
        .flat_map(|path| {
            let place = (path != made_already).then(|| folder(path));
            let mode = if path == made_already { "1777" } else { "0700" };
            let scratch = Step::Scratch {
                path: path.to_owned(),
                bytes: limits::SCRATCH_SEED_BYTES,
                inodes: limits::SCRATCH_SEED_INODES,
                mode: mode.to_owned(),
            };
            place.into_iter().chain([scratch])
        })
        .collect()
}
