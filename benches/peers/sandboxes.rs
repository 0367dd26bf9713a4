//! The peers that need no daemon: bubblewrap, and the OCI runtimes crun and runc with what a container of ours has.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use skillbox::sandbox::seccomp;

use crate::bubblewrap::{bubblewrap, links};
use crate::spoken::Spoken;

/// Whether a program is there and answers.
pub(crate) fn is_there(program: &str) -> bool {
    let found = Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    found.is_ok_and(|status| status.success())
}

/// The interpreter by bubblewrap.
pub(crate) fn bubblewrapped(spoken: &Spoken, folder: &Path) -> Command {
    let mut command = bubblewrap(folder);
    command.args(["--setenv", "SANDBOX_INPUT_FILE", "/skills/probe/input.json"]);
    command.args(["--setenv", "SANDBOX_OUTPUT", "/sandbox/output.json"]);
    command
        .arg(spoken.interpreter)
        .arg(format!("/skills/probe/{}", spoken.file));
    command
}

/// A bundle over this host's `/usr`, hardened as our containers are.
pub(crate) fn bundle(spoken: &Spoken, folder: &Path) -> PathBuf {
    use std::os::unix::fs::PermissionsExt as _;

    let bundle = folder.join("bundle");
    let root = bundle.join("rootfs");
    std::fs::create_dir_all(root.join("usr")).unwrap();
    for (link, to) in links() {
        std::os::unix::fs::symlink(to, root.join(link)).unwrap();
    }
    for place in [
        "proc",
        "dev",
        "tmp",
        "root",
        "workspace",
        "sandbox",
        "skills/probe",
        "etc/alternatives",
    ] {
        std::fs::create_dir_all(root.join(place)).unwrap();
        // What is mounted there gets this mode from runc, whatever its own.
        std::fs::set_permissions(root.join(place), std::fs::Permissions::from_mode(0o1777)).unwrap();
    }
    std::fs::write(root.join("etc/ld.so.cache"), "").unwrap();
    let text = configuration(spoken, folder).to_string();
    std::fs::write(bundle.join("config.json"), text).unwrap();
    bundle
}

fn configuration(spoken: &Spoken, folder: &Path) -> Value {
    let bind = |from: &str, to: &str| json!({"destination": to, "source": from, "type": "none", "options": ["rbind", "ro", "nosuid", "nodev"]});
    let tmpfs = |to: &str, options: &[&str]| {
        let all = [&["nosuid", "nodev", "noexec"], options].concat();
        json!({"destination": to, "source": "tmpfs", "type": "tmpfs", "options": all})
    };
    let mut mounts = vec![
        json!({"destination": "/proc", "source": "proc", "type": "proc"}),
        json!({"destination": "/dev", "source": "tmpfs", "type": "tmpfs", "options": ["nosuid", "strictatime", "mode=755", "size=65536k"]}),
        bind("/usr", "/usr"),
        bind(&folder.display().to_string(), "/skills/probe"),
    ];
    for file in ["/etc/ld.so.cache", "/etc/alternatives"] {
        mounts.push(bind(file, file));
    }
    for place in ["/dev/shm", "/tmp", "/root", "/workspace", "/sandbox"] {
        mounts.push(tmpfs(place, &["mode=1777", "size=67108864"]));
    }
    let namespaces = ["pid", "network", "ipc", "uts", "mount", "cgroup"].map(|kind| json!({"type": kind}));
    json!({
        "ociVersion": "1.0.2",
        "hostname": "sandbox",
        "root": {"path": "rootfs", "readonly": true},
        "mounts": mounts,
        "process": {
            "terminal": false,
            "user": {"uid": 65534, "gid": 65534},
            "cwd": "/workspace",
            "args": [spoken.interpreter, format!("/skills/probe/{}", spoken.file)],
            "env": ["PATH=/usr/bin:/bin", "SANDBOX_INPUT_FILE=/skills/probe/input.json", "SANDBOX_OUTPUT=/sandbox/output.json"],
            "capabilities": {"bounding": [], "effective": [], "permitted": []},
            "noNewPrivileges": true
        },
        "linux": {
            "namespaces": namespaces,
            "resources": {
                "devices": [{"allow": false, "access": "rwm"}],
                "memory": {"limit": 512 << 20, "swap": 512 << 20},
                "pids": {"limit": 128},
                "cpu": {"quota": 100_000, "period": 100_000}
            },
            "maskedPaths": ["/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/scsi"],
            "readonlyPaths": ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"],
            "seccomp": seccomp::docker_profile(std::env::consts::ARCH)
        }
    })
}

/// A process that does one thing for each line that it is sent, and answers with a line.
pub(crate) struct Driver {
    process: Child,
    /// There until dropped: its end is the word to end.
    asked: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Driver {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            asked: process.stdin.take(),
            answers: BufReader::new(process.stdout.take().unwrap()),
            process,
        }
    }

    /// A shell for which there is no unified cgroup hierarchy beside the older ones: crun refuses to see both.
    pub(crate) fn shell() -> Self {
        let script =
            "umount /sys/fs/cgroup/unified 2>/dev/null; while read -r line; do $line >&2; echo $?; done";
        Self::start(Command::new("unshare").args(["-m", "sh", "-c", script]))
    }

    pub(crate) fn ask(&mut self, line: &str) -> String {
        writeln!(self.asked.as_mut().unwrap(), "{line}").unwrap();
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        answer.trim().to_owned()
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.asked = None;
        let _ = self.process.wait();
    }
}
