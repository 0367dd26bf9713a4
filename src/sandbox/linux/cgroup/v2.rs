//! Version 2: one hierarchy, and a sandbox is born in its cgroup.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::find::Reach;
use super::{keyed, number, write};
use crate::execution::{ResourceLimits, Usage};

/// The hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::sandbox::linux) struct Unified {
    /// Its mount point.
    pub(super) top: PathBuf,
    /// This process's own cgroup.
    pub(super) own: PathBuf,
    pub(super) reach: Reach,
}

/// Microseconds over which CPU is rationed.
const PERIOD: u64 = 100_000;
const CONTROLLERS: &str = "+memory +pids +cpu";
/// This process moves in here: a cgroup with processes of its own hands no controllers on.
const SERVER: &str = "skillbox-server";

/// The folder in which sandboxes' cgroups can be made, with its controllers handed on: below this process's own cgroup
/// where that was delegated, else at the top.
pub(super) fn base(unified: &Unified) -> Result<PathBuf, String> {
    let Unified { top, own, reach } = unified;
    if own != top && (*reach == Reach::Own || is_delegated(own)) {
        // A server that was started again by one that moved is in the leaf already.
        let own = if own.ends_with(SERVER) {
            own.parent().unwrap_or(own)
        } else {
            own
        };
        return hand_on(own).map(|()| own.to_owned()).map_err(|error| {
            format!(
                "this process's cgroup `{}` is not delegated to it ({error}); start it by systemd-run --user --scope -p Delegate=yes, or as root",
                own.display()
            )
        });
    }
    let base = top.join("skillbox");
    let handed = fs::create_dir_all(&base)
        .and_then(|()| write(top, "cgroup.subtree_control", CONTROLLERS))
        .and_then(|()| write(&base, "cgroup.subtree_control", CONTROLLERS));
    handed
        .map(|()| base)
        .map_err(|error| format!("cgroups cannot be made at the top ({error}); run as root"))
}

/// Whether the service manager left this cgroup to us; it says so in an attribute.
fn is_delegated(own: &Path) -> bool {
    ["trusted.delegate", "user.delegate"].iter().any(|name| {
        let mut value = [0; 8];
        rustix::fs::getxattr(own, *name, &mut value[..]).is_ok_and(|length| value[..length] == *b"1")
    })
}

/// Hands the controllers of our own cgroup on to its children, which first needs it to be without processes.
fn hand_on(own: &Path) -> io::Result<()> {
    let server = own.join(SERVER);
    fs::create_dir_all(&server)?;
    let processes = fs::read_to_string(own.join("cgroup.procs"))?;
    for process in processes.lines() {
        write(&server, "cgroup.procs", process)?;
    }
    write(own, "cgroup.subtree_control", CONTROLLERS)
}

/// Hands the controllers of a folder of ours on to the sandboxes' cgroups in it.
pub(super) fn enable(home: &Path) -> Result<(), String> {
    write(home, "cgroup.subtree_control", CONTROLLERS)
        .map_err(|error| format!("the cgroup controllers cannot be handed on: {error}"))
}

pub(super) fn bound_processes(folder: &Path, most: u32) -> io::Result<()> {
    write(folder, "pids.max", most)?;
    // One process dies for want of memory, not all: the program may go on.
    write(folder, "memory.oom.group", 0)
}

pub(super) fn bound(folder: &Path, limits: &ResourceLimits) -> io::Result<()> {
    write(folder, "memory.max", limits.memory_bytes)?;
    // A kernel without swap has no such file.
    if folder.join("memory.swap.max").exists() {
        write(folder, "memory.swap.max", 0)?;
    }
    let quota = u64::from(limits.cpu_millis) * PERIOD / 1000;
    write(folder, "cpu.max", format!("{quota} {PERIOD}"))
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

    #[test]
    fn an_ordinary_users_own_cgroup_is_emptied_into_a_leaf_and_handed_on() {
        let top = tempfile::tempdir().unwrap();
        let own = top.path().join("user.slice/x.scope");
        fs::create_dir_all(&own).unwrap();
        fs::write(own.join("cgroup.procs"), "4711\n").unwrap();
        let unified = Unified {
            top: top.path().to_owned(),
            own: own.clone(),
            reach: Reach::Own,
        };
        assert_eq!(base(&unified), Ok(own.clone()));
        assert_eq!(read(&own.join(SERVER), "cgroup.procs"), "4711");
        assert_eq!(read(&own, "cgroup.subtree_control"), CONTROLLERS);
    }

    #[test]
    fn root_makes_its_subtree_at_the_top() {
        let top = tempfile::tempdir().unwrap();
        let unified = Unified {
            top: top.path().to_owned(),
            own: top.path().to_owned(),
            reach: Reach::Top,
        };
        assert_eq!(base(&unified), Ok(top.path().join("skillbox")));
        assert_eq!(
            read(&top.path().join("skillbox"), "cgroup.subtree_control"),
            CONTROLLERS
        );
    }

    #[test]
    fn every_bound_is_written_and_every_figure_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        fs::write(path.join("memory.swap.max"), "max").unwrap();
        let limits = ResourceLimits::clamp(&Resources::default(), None, None, &Maxima::default());
        bound_processes(path, 128).unwrap();
        bound(path, &limits).unwrap();
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
