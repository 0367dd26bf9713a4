//! The steps that create a sandbox, as a plain value: the reviewed posture, enforced by a snapshot test.
//!
//! There is no parameter to loosen anything here, and there must never be one: the caller chooses *what* runs,
//! only this file chooses *how*. `init.rs` applies the steps inside the new process, in order.

use super::plan_host::folder;
use super::step::{Resource, SetupPlan, Step, Then};
use crate::execution::ResourceLimits;
use crate::limits;

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
    use crate::sandbox::linux::plan_host;
    use crate::sandbox::linux::visible::{DEVICES, ETC_FILES, ETC_FOLDERS, HostEntry, HostRoot, PROGRAMS};
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
            steps: [plan_host::before_run(&host(), ways), after.steps].concat(),
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
        // A file gets an empty one as its mount point first.
        assert_eq!((differing, handed.len()), ((9, 7), walked.len() + 2));
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
        let known = [PROGRAMS, ETC_FILES, ETC_FOLDERS].concat();
        let skill = "/data/x";
        for step in planned(MountSource::Path(skill.to_owned())).steps {
            if let Step::BindFolder { from, .. } | Step::BindFile { from, .. } = step {
                assert!(known.contains(&from.as_str()) || from == skill, "{from}");
            }
        }
        let host = host();
        for path in plan_host::shown_folders(&host) {
            assert!(known.contains(&path), "{path}");
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
