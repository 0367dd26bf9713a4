//! bubblewrap with the namespaces and mounts of a sandbox of ours.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A command that lacks only its program, which finds this folder at `/skills/probe`: namespaces and mounts like ours, without
/// cgroups, seccomp, Landlock and records.
pub(crate) fn bubblewrap(folder: &Path) -> Command {
    let mut command = Command::new("bwrap");
    for part in ["user", "pid", "net", "ipc", "uts", "cgroup"] {
        command.arg(format!("--unshare-{part}"));
    }
    command.args(["--die-with-parent", "--new-session", "--hostname", "sandbox"]);
    command.args(["--uid", "65534", "--gid", "65534", "--cap-drop", "ALL"]);
    command.args(["--ro-bind", "/usr", "/usr"]);
    for (link, to) in links() {
        command.arg("--symlink").arg(to).arg(format!("/{link}"));
    }
    for file in ["/etc/ld.so.cache", "/etc/alternatives"] {
        command.args(["--ro-bind-try", file, file]);
    }
    command.args(["--dev", "/dev", "--proc", "/proc"]);
    for place in ["/dev/shm", "/tmp", "/root", "/workspace", "/sandbox"] {
        command.args(["--tmpfs", place]);
    }
    command.arg("--ro-bind").arg(folder).arg("/skills/probe");
    command.args(["--remount-ro", "/", "--chdir", "/workspace"]);
    command
}

/// Links at the root of this host that lead into `/usr`.
pub(crate) fn links() -> impl Iterator<Item = (&'static str, PathBuf)> {
    let names = ["bin", "sbin", "lib", "lib32", "lib64", "libx32"];
    names
        .into_iter()
        .filter_map(|name| Some((name, std::fs::read_link(format!("/{name}")).ok()?)))
}
