//! The steps that create a sandbox, as a plain value: the reviewed posture, enforced by a snapshot test.
//!
//! There is no parameter to loosen anything here, and there must never be one: the caller chooses *what* runs,
//! only this file chooses *how*. `init.rs` applies the steps inside the new process, in order.

use std::collections::BTreeSet;

use super::step::{Resource, SetupPlan, Step, Then};
use super::visible::{HostEntry, HostRoot};
use crate::execution::ResourceLimits;
use crate::limits;
use crate::sandbox::kernel_files;

/// Mount point of the host's root until it is unmounted.
pub(super) const HOST: &str = "/.host";
pub(super) const NOBODY: u32 = 65_534;

/// Writable file systems in memory.
pub(super) const SCRATCH: [&str; 6] = ["/workspace", "/sandbox", "/tmp", "/root", "/blobs", "/dev/shm"];
/// System calls for memory that is neither mapped nor in a mount, which a watchdog cannot see.
const UNWATCHABLE: &[&str] = &["memfd_create", "shmget", "msgget", "semget"];

/// The source of a mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum MountSource {
    /// A mount that is sent with the plan, in the order of the steps.
    Passed,
    /// A canonical path that the sandbox's user can open.
    Path(String),
}

/// How sandboxes reach folders of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MountAccess {
    /// Through mounts of the server, so that blank processes can unmount the host's root.
    Passed,
    ByPath,
}

/// The limits on memory and CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LimitMechanism {
    /// A cgroup.
    Cgroup,
    /// Limits on each process, and a watchdog outside: the degraded form.
    Rlimits,
}

#[derive(Debug)]
pub(super) struct SandboxInput<'a> {
    /// The user namespace of its mounts, which it cannot change, by mount point.
    pub(super) files: Vec<(&'a str, MountSource)>,
    pub(super) limits: &'a ResourceLimits,
    pub(super) bounds: LimitMechanism,
    pub(super) ways: MountAccess,
}

/// The steps that are equal for every sandbox of this host, applied by blank processes.
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
    steps.extend(programs(host));
    steps.extend(etc(host));
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

/// The steps of a single sandbox.
pub(super) fn run_plan(input: &SandboxInput<'_>) -> SetupPlan {
    let mut steps = resize_steps(input.limits);
    steps.extend(files(input));
    steps.extend((input.ways == MountAccess::ByPath).then_some(Step::ForgetHost));
    steps.push(Step::FreezeRoot);
    steps.extend(restrictions(input));
    SetupPlan {
        steps,
        then: Then::Serve,
    }
}

fn folder(path: &str) -> Step {
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

fn programs(host: &HostRoot) -> Vec<Step> {
    let mut steps: Vec<_> = EMPTY.into_iter().map(folder).collect();
    steps.extend(host.entries.iter().flat_map(bind));
    steps
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
fn etc(host: &HostRoot) -> Vec<Step> {
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
    steps.extend(further(host));
    steps
}

/// Each with the parent folders that do not exist yet.
fn further(host: &HostRoot) -> Vec<Step> {
    let mut made: BTreeSet<&str> = EMPTY.into_iter().chain([""]).collect();
    let mut steps = Vec::new();
    for entry in &host.further {
        let (HostEntry::Folder(path) | HostEntry::File(path) | HostEntry::Link(path, _)) = entry;
        let ends = path.match_indices('/').map(|(end, _)| &path[..end]);
        steps.extend(ends.filter(|parent| made.insert(parent)).map(folder));
        steps.extend(bind(entry));
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

/// Mounted by blank processes with a minimal size; [`resize_steps`] sets the granted size.
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

fn resize_steps(limits: &ResourceLimits) -> Vec<Step> {
    let sizes = [
        limits.workspace_bytes,
        limits.sandbox_bytes,
        limits.tmp_bytes,
        limits.root_bytes,
        limits.blobs_bytes,
        limits.shm_bytes,
    ];
    std::iter::zip(SCRATCH, sizes)
        .map(|(path, bytes)| Step::Resize {
            path: path.to_owned(),
            bytes,
            inodes: limits::tmpfs_inodes(bytes),
        })
        .collect()
}

/// Read-only mounts.
fn files(input: &SandboxInput<'_>) -> Vec<Step> {
    let mut steps = vec![folder("/skills")];
    steps.extend(
        input
            .files
            .iter()
            .flat_map(|(at, source)| mount_steps(source, at)),
    );
    steps
}

fn mount_steps(source: &MountSource, at: &str) -> [Step; 2] {
    let (place, to) = (folder(at), at.to_owned());
    let files = match source {
        MountSource::Passed => Step::AttachHanded { to },
        MountSource::Path(from) => Step::BindFolder {
            from: from.clone(),
            to,
        },
    };
    [place, files]
}

fn restrictions(input: &SandboxInput<'_>) -> Vec<Step> {
    let limits = input.limits;
    let limit = |resource, value| Step::Limit { resource, value };
    let writable = [
        "/workspace",
        "/sandbox",
        "/tmp",
        "/root",
        "/blobs",
        "/dev",
        // PID 1 controls the order of out-of-memory kills. Their own permissions protect files of others.
        "/proc",
    ];
    let mut steps = vec![
        Step::LockMounts { id: NOBODY },
        limit(Resource::OpenFiles, limits::OPEN_FILES_MAX),
        limit(Resource::CoreBytes, 0),
        limit(Resource::LockedBytes, 65_536),
        limit(Resource::PendingSignals, limits::PENDING_SIGNALS_MAX),
        limit(Resource::Processes, u64::from(limits.processes_max)),
    ];
    if input.bounds == LimitMechanism::Rlimits {
        // Reserved stacks count as data, too. The watchdog limits memory beyond that.
        let stacks = u64::from(limits.processes_max) * limits::THREAD_STACK_BYTES;
        steps.push(limit(Resource::DataBytes, limits.memory_bytes + stacks));
    }
    steps.extend([
        Step::NoNewPrivileges,
        Step::Landlock {
            writable: writable.map(ToOwned::to_owned).to_vec(),
        },
        Step::DropCapabilities,
        Step::DieWithServer,
        Step::HideFirstProcess,
    ]);
    if input.bounds == LimitMechanism::Rlimits {
        steps.push(Step::RefuseCalls {
            calls: UNWATCHABLE.iter().map(|call| (*call).to_owned()).collect(),
        });
    }
    steps.push(Step::FilterCalls);
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execution::Maxima;
    use crate::sandbox::linux::visible::{DEVICES, ETC_FILES, ETC_FOLDERS, PROGRAMS};
    use crate::skill::Resources;

    fn host() -> HostRoot {
        let link = |path: &str, to: &str| HostEntry::Link(path.to_owned(), to.to_owned());
        HostRoot {
            entries: vec![
                HostEntry::Folder("/usr".to_owned()),
                link("/bin", "usr/bin"),
                link("/lib64", "usr/lib64"),
            ],
            further: vec![
                HostEntry::File("/etc/ld.so.cache".to_owned()),
                HostEntry::File("/etc/maven/m2.conf".to_owned()),
                HostEntry::Folder("/etc/alternatives".to_owned()),
                HostEntry::Folder("/etc/maven/logging".to_owned()),
            ],
            devices: DEVICES.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    /// Both parts, one after the other.
    fn planned(source: MountSource) -> SetupPlan {
        planned_with(source, LimitMechanism::Cgroup)
    }

    fn planned_with(source: MountSource, bounds: LimitMechanism) -> SetupPlan {
        let limits = ResourceLimits::clamp(&Resources::default(), None, None, &Maxima::default());
        let ways = match source {
            MountSource::Passed => MountAccess::Passed,
            MountSource::Path(_) => MountAccess::ByPath,
        };
        let after = run_plan(&SandboxInput {
            files: vec![("/skills/demo", source.clone()), ("/sandbox/deps", source)],
            limits: &limits,
            bounds,
            ways,
        });
        SetupPlan {
            steps: [host_plan(&host(), ways).steps, after.steps].concat(),
            ..after
        }
    }

    fn lines(steps: &[Step]) -> String {
        let lines: Vec<_> = steps
            .iter()
            .map(|step| serde_json::to_string(step).unwrap())
            .collect();
        lines.join("\n")
    }

    /// The snapshot is the reviewed posture; any change to it is a change of policy.
    #[test]
    fn the_plan_is_the_reviewed_posture() {
        insta::assert_snapshot!(lines(&planned(MountSource::Passed).steps));
    }

    /// What the test above compares with.
    const REVIEWED: &str = include_str!(
        "snapshots/skillbox__sandbox__linux__plan__tests__the_plan_is_the_reviewed_posture.snap"
    );

    /// Whichever step goes or changes places with its neighbour, the snapshot is not met. What a sandbox without it is like,
    /// the test `native_mutation` shows.
    #[test]
    fn removing_or_moving_any_step_is_detected() {
        let (_, reviewed) = REVIEWED.rsplit_once("---\n").unwrap();
        let whole = planned(MountSource::Passed).steps;
        assert_eq!(lines(&whole), reviewed.trim_end());
        for place in 0..whole.len() {
            let mut steps = whole.clone();
            let removed = steps.remove(place);
            assert_ne!(lines(&steps), reviewed.trim_end(), "without {removed:?}");
        }
        for place in 1..whole.len() {
            let mut steps = whole.clone();
            steps.swap(place - 1, place);
            assert_ne!(
                lines(&steps),
                reviewed.trim_end(),
                "{:?} too early",
                steps[place - 1]
            );
        }
    }

    #[test]
    fn plan_of_an_ordinary_user_differs_in_file_access_only() {
        let (handed, walked) = (
            planned(MountSource::Passed).steps,
            planned(MountSource::Path("/data/x".to_owned())).steps,
        );
        let missing = |all: &[Step], from: &[Step]| all.iter().filter(|step| !from.contains(step)).count();
        let differing = (missing(&handed, &walked), missing(&walked, &handed));
        assert_eq!((differing, handed.len()), ((2, 2), walked.len()));
    }

    #[test]
    fn degraded_plan_limits_each_process() {
        let (whole, degraded) = (
            planned(MountSource::Passed).steps,
            planned_with(MountSource::Passed, LimitMechanism::Rlimits).steps,
        );
        let more: Vec<_> = degraded.iter().filter(|step| !whole.contains(step)).collect();
        let bound = Step::Limit {
            resource: Resource::DataBytes,
            value: limits::MEMORY_BYTES + 1024 * limits::MIB,
        };
        let refused = Step::RefuseCalls {
            calls: ["memfd_create", "shmget", "msgget", "semget"]
                .map(ToOwned::to_owned)
                .to_vec(),
        };
        assert_eq!((more, degraded.len()), (vec![&bound, &refused], whole.len() + 2));
    }

    /// Nothing of the host but programs, libraries and five devices, all of it read-only.
    #[test]
    fn no_added_step_exposes_the_host() {
        for step in planned(MountSource::Passed).steps {
            if let Step::BindFolder { from, .. } | Step::BindFile { from, .. } = step {
                let known = [PROGRAMS, ETC_FILES, ETC_FOLDERS].concat();
                assert!(known.contains(&from.as_str()), "{from}");
            }
        }
    }

    /// S-37: what restricts comes last, the filter at the very end, and nothing is mounted after the mounts are locked.
    #[test]
    fn restrictions_are_the_last_steps() {
        let steps = planned(MountSource::Passed).steps;
        assert_eq!(steps.last(), Some(&Step::FilterCalls));
        let locked = steps
            .iter()
            .position(|step| matches!(step, Step::LockMounts { .. }));
        let mounted = steps.iter().rposition(|step| {
            matches!(
                step,
                Step::BindFolder { .. }
                    | Step::AttachHanded { .. }
                    | Step::Scratch { .. }
                    | Step::Mask { .. }
                    | Step::FreezeRoot
            )
        });
        assert!(mounted < locked);
    }

    #[test]
    fn plan_survives_encoding() {
        let plan = planned(MountSource::Passed);
        let text = serde_json::to_vec(&plan).unwrap();
        assert_eq!(serde_json::from_slice::<SetupPlan>(&text).unwrap(), plan);
    }
}
