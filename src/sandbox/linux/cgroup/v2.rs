//! Cgroup version 2: one hierarchy; sandboxes are forked into their cgroup.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::Access;

use super::find::CgroupScope;
use super::{Weight, keyed, number, write};
use crate::execution::{ResourceLimits, Usage};
use crate::sandbox::linux::advice;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::sandbox::linux) struct Unified {
    pub(super) top: PathBuf,
    /// This process's own cgroup.
    pub(super) own: PathBuf,
    pub(super) reach: CgroupScope,
}

/// CPU period in microseconds.
const PERIOD: u64 = 100_000;
const CONTROLLERS: &str = "+memory +pids +cpu";
/// This process moves here, because a cgroup with processes cannot delegate controllers.
const SERVER: &str = "skillbox-server";

/// Attempts to move all processes away: one that forks meanwhile leaves a child behind.
const ROUNDS: u32 = 10;

impl Unified {
    /// This process's own cgroup. A server started by a moved process is in the leaf.
    fn own(&self) -> &Path {
        match self.own.parent() {
            Some(parent) if self.own.ends_with(SERVER) => parent,
            _ => &self.own,
        }
    }

    /// Whether the mount point is the real root of the hierarchy, which alone lacks this file.
    fn has_real_top(&self) -> bool {
        !self.top.join("cgroup.type").exists()
    }

    /// Whether our cgroup was delegated by the service manager, or is the root of a container's namespace.
    fn is_delegated(&self) -> bool {
        let own = self.own();
        (own == self.top && !self.has_real_top())
            || ["trusted.delegate", "user.delegate"].iter().any(|name| {
                let mut value = [0; 8];
                rustix::fs::getxattr(own, *name, &mut value[..]).is_ok_and(|length| value[..length] == *b"1")
            })
    }

    /// Whether this process may empty its cgroup: only if it was delegated, so that no foreign processes are moved.
    pub(super) fn is_ours(&self) -> bool {
        let procs = self.own().join("cgroup.procs");
        let own = std::process::id().to_string();
        let is_alone = || fs::read_to_string(&procs).is_ok_and(|all| all.lines().all(|line| line == own));
        rustix::fs::access(&procs, Access::WRITE_OK).is_ok() && (self.is_delegated() || is_alone())
    }
}

/// The folder for sandboxes' cgroups, with delegated controllers: below this process's own cgroup if that was
/// delegated, else, for root, at the top.
pub(super) fn base(unified: &Unified) -> Result<PathBuf, String> {
    let own = unified.own();
    if unified.reach == CgroupScope::Own || unified.is_delegated() {
        if !unified.is_ours() {
            return Err(format!(
                "this process shares its cgroup `{}`, or may not change it; {}",
                own.display(),
                advice::own_cgroup()
            ));
        }
        return match missing(own) {
            Some(controller) => Err(format!(
                "the controller `{controller}` is not delegated to `{}`; as root write \"[Service]\\nDelegate=cpu memory pids\" to /etc/systemd/system/user@.service.d/delegate.conf, run systemctl daemon-reload, and log in again",
                own.display()
            )),
            None => delegate_controllers(own)
                .map(|()| own.to_owned())
                .map_err(|error| {
                    format!(
                        "the controllers of `{}` cannot be delegated ({error}); {}",
                        own.display(),
                        advice::own_cgroup()
                    )
                }),
        };
    }
    let base = unified.top.join("skillbox");
    let handed = fs::create_dir_all(&base)
        .and_then(|()| write(&unified.top, "cgroup.subtree_control", CONTROLLERS))
        .and_then(|()| write(&base, "cgroup.subtree_control", CONTROLLERS));
    handed.map(|()| base).map_err(|error| match error.kind() {
        io::ErrorKind::ReadOnlyFilesystem => format!(
            "cgroups are read-only here ({error}); a container needs /sys/fs/cgroup mounted for writing, a service ProtectControlGroups=no"
        ),
        _ => format!("cgroups cannot be created at the top ({error}); run as root"),
    })
}

/// A controller that this cgroup lacks.
fn missing(own: &Path) -> Option<&'static str> {
    let here = fs::read_to_string(own.join("cgroup.controllers")).unwrap_or_default();
    ["memory", "pids", "cpu"]
        .into_iter()
        .find(|wanted| !here.split_whitespace().any(|controller| controller == *wanted))
}

/// Delegates the controllers of our cgroup to its children, which requires a cgroup without processes.
fn delegate_controllers(own: &Path) -> io::Result<()> {
    let server = own.join(SERVER);
    fs::create_dir_all(&server)?;
    let mut round = 0;
    loop {
        for process in fs::read_to_string(own.join("cgroup.procs"))?.lines() {
            add_process(&server, process)?;
        }
        match write(own, "cgroup.subtree_control", CONTROLLERS) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy && round < ROUNDS => round += 1,
            handed => return handed,
        }
    }
}

/// Moves a process into `folder`; no error if it has ended.
fn add_process(folder: &Path, process: &str) -> io::Result<()> {
    if process == "0" {
        // 0 would mean this process.
        return Err(io::Error::other("a process of another PID namespace is in it"));
    }
    match fs::write(folder.join("cgroup.procs"), process) {
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
        moved => moved,
    }
}

/// Delegates the controllers of our folder to the sandboxes' cgroups.
pub(super) fn enable(home: &Path) -> Result<(), String> {
    write(home, "cgroup.subtree_control", CONTROLLERS)
        .map_err(|error| format!("the cgroup controllers cannot be delegated: {error}"))
}

pub(super) fn set_process_limit(folder: &Path, most: u32) -> io::Result<()> {
    write(folder, "pids.max", most)?;
    // An out-of-memory kill ends one process, not all, so that the program can continue.
    write(folder, "memory.oom.group", 0)
}

pub(super) fn set_limits(folder: &Path, limits: &ResourceLimits) -> io::Result<()> {
    write(folder, "memory.max", limits.memory_bytes)?;
    // Missing in kernels without swap.
    if folder.join("memory.swap.max").exists() {
        write(folder, "memory.swap.max", 0)?;
    }
    let quota = u64::from(limits.cpu_millis) * PERIOD / 1000;
    write(folder, "cpu.max", format!("{quota} {PERIOD}"))
}

pub(super) fn set_weight(folder: &Path, weight: Weight) -> io::Result<()> {
    let weight = match weight {
        Weight::Little => 6,
        Weight::Quarter => 25,
        Weight::Whole => 100,
    };
    write(folder, "cpu.weight", weight)
}

pub(super) fn usage(folder: &Path) -> Usage {
    Usage {
        cpu_ms: keyed(folder, "cpu.stat", "usage_usec").unwrap_or(0) / 1000,
        memory_peak_bytes: number(folder, "memory.peak").unwrap_or(0),
        processes_peak: number(folder, "pids.peak").unwrap_or(0),
        oom_kills: keyed(folder, "memory.events", "oom_kill").unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execution::Maxima;
    use crate::skill::Resources;

    fn read(folder: &Path, file: &str) -> String {
        fs::read_to_string(folder.join(file)).unwrap()
    }

    /// A cgroup of an ordinary user with these processes and controllers.
    fn scope(top: &Path, processes: &str, controllers: &str) -> Unified {
        let own = top.join("user.slice/x.scope");
        fs::create_dir_all(&own).unwrap();
        fs::write(own.join("cgroup.procs"), processes).unwrap();
        fs::write(own.join("cgroup.controllers"), controllers).unwrap();
        Unified {
            top: top.to_owned(),
            own,
            reach: CgroupScope::Own,
        }
    }

    #[test]
    fn moves_own_processes_into_a_leaf_and_delegates() {
        let top = tempfile::tempdir().unwrap();
        let own_id = std::process::id().to_string();
        let unified = scope(top.path(), &format!("{own_id}\n"), "cpuset cpu io memory pids\n");
        let own = unified.own.clone();
        assert_eq!(base(&unified), Ok(own.clone()));
        assert_eq!(read(&own.join(SERVER), "cgroup.procs"), own_id);
        assert_eq!(read(&own, "cgroup.subtree_control"), CONTROLLERS);
        // A process that this one starts is in the leaf already.
        let started = Unified {
            own: own.join(SERVER),
            ..unified
        };
        assert_eq!(base(&started), Ok(own));
    }

    /// A login shell in the same scope stays where it is.
    #[test]
    fn does_not_move_processes_of_others() {
        let top = tempfile::tempdir().unwrap();
        for others in ["1\n", "0\n"] {
            let own_id = std::process::id();
            let unified = scope(top.path(), &format!("{own_id}\n{others}"), "cpu memory pids\n");
            let why = base(&unified).unwrap_err();
            assert!(why.contains("shares its cgroup") && why.contains("root"), "{why}");
            assert!(!unified.own.join(SERVER).exists());
        }
    }

    #[test]
    fn names_controller_that_is_not_delegated() {
        let top = tempfile::tempdir().unwrap();
        let unified = scope(top.path(), "", "memory pids\n");
        let why = base(&unified).unwrap_err();
        assert!(why.contains("`cpu`") && why.contains("delegate.conf"), "{why}");
    }

    #[test]
    fn delegates_the_top_of_a_container() {
        let top = tempfile::tempdir().unwrap();
        fs::write(top.path().join("cgroup.type"), "domain\n").unwrap();
        fs::write(top.path().join("cgroup.procs"), "1\n").unwrap();
        fs::write(top.path().join("cgroup.controllers"), "cpu memory pids\n").unwrap();
        let unified = Unified {
            top: top.path().to_owned(),
            own: top.path().to_owned(),
            reach: CgroupScope::Top,
        };
        assert_eq!(base(&unified), Ok(top.path().to_owned()));
        assert_eq!(read(&top.path().join(SERVER), "cgroup.procs"), "1");
    }

    #[test]
    fn root_makes_its_subtree_at_the_top() {
        let top = tempfile::tempdir().unwrap();
        let unified = Unified {
            top: top.path().to_owned(),
            own: top.path().to_owned(),
            reach: CgroupScope::Top,
        };
        assert_eq!(base(&unified), Ok(top.path().join("skillbox")));
        assert_eq!(
            read(&top.path().join("skillbox"), "cgroup.subtree_control"),
            CONTROLLERS
        );
    }

    #[test]
    fn writes_each_limit_and_reads_each_figure() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        fs::write(path.join("memory.swap.max"), "max").unwrap();
        let limits = ResourceLimits::clamp(&Resources::default(), None, None, &Maxima::default());
        set_process_limit(path, 128).unwrap();
        set_limits(path, &limits).unwrap();
        assert_eq!(read(path, "pids.max"), "128");
        assert_eq!(read(path, "memory.max"), (512 << 20).to_string());
        assert_eq!(read(path, "memory.swap.max"), "0");
        assert_eq!(read(path, "memory.oom.group"), "0");
        assert_eq!(read(path, "cpu.max"), "100000 100000");
        fs::write(path.join("cpu.stat"), "usage_usec 5000\nuser_usec 1\n").unwrap();
        fs::write(
            path.join("memory.events"),
            "oom 1\noom_kill 3\noom_group_kill 0\n",
        )
        .unwrap();
        fs::write(path.join("memory.peak"), "42\n").unwrap();
        let usage = usage(path);
        assert_eq!(
            (usage.cpu_ms, usage.oom_kills, usage.memory_peak_bytes),
            (5, 3, 42)
        );
    }
}
