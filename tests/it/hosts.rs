//! Hosts of other kinds, made of this one in mount namespaces of their own: what works there, and what the operator reads.

use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::ordinary::ORDINARY;
use crate::world::missing;

/// A folder of that user with a skill in it.
struct Host {
    folder: tempfile::TempDir,
}

/// The name of a command on such a host.
const DEGRADED: &[(&str, &str)] = &[
    ("SKILLBOX_SANDBOX_BACKEND", "native"),
    ("SKILLBOX_NATIVE_ALLOW_DEGRADED", "true"),
];
const NATIVE: &[(&str, &str)] = &[("SKILLBOX_SANDBOX_BACKEND", "native")];

impl Host {
    /// `None`, and a word about it, where none can be made.
    fn new() -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            missing("linux", "only root can make a host of another kind");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let host = Self { folder };
        let scripts = host.path("any/scripts");
        std::fs::create_dir_all(&scripts).unwrap();
        let manifest = "---\nname: any\ndescription: Any\nlang: bash\n---\n";
        std::fs::write(host.path("any/SKILL.md"), manifest).unwrap();
        std::fs::write(scripts.join("main.sh"), "echo 4711 >$SANDBOX_OUTPUT\n").unwrap();
        let user = ORDINARY.parse().ok();
        chown(host.folder.path(), user, user).unwrap();
        Some(host)
    }

    fn path(&self, below: &str) -> PathBuf {
        self.folder.path().join(below)
    }

    /// Prepares a mount namespace by a script in which `"$@"` then runs the skill.
    fn run(&self, script: &str, environment: &[(&str, &str)]) -> Output {
        Command::new("unshare")
            .args([
                "--mount",
                "--propagation",
                "private",
                "sh",
                "-ec",
                script,
                "sh",
                env!("CARGO_BIN_EXE_skillbox"),
            ])
            .args(["run", "./any"])
            .current_dir(self.folder.path())
            .env("HOME", self.folder.path())
            .env("TMPDIR", self.folder.path())
            .env("FOLDER", self.folder.path())
            .env_remove("_SKILLBOX_IN_SCOPE")
            .envs(environment.iter().copied())
            .output()
            .unwrap()
    }

    /// As [`run`](Self::run), where nothing can run: returns what the operator reads.
    fn refusal(&self, script: &str, environment: &[(&str, &str)]) -> String {
        let output = self.run(script, environment);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(69), "{said}");
        said
    }
}

fn assert_ran(output: &Output) {
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && said.contains("\"output\": 4711"),
        "{said}\n{errors}"
    );
}

/// In a service with `NoNewPrivileges` and no capability to be had, namespaces and all steps work.
#[test]
fn unprivileged_service_creates_sandboxes() {
    let Some(host) = Host::new() else { return };
    let script =
        "exec setpriv --reuid 4711 --regid 4711 --clear-groups --no-new-privs --bounding-set=-all \"$@\"";
    assert_ran(&host.run(script, DEGRADED));
}

/// As root with exactly the capabilities that the error of a missing one lists.
#[test]
fn root_with_required_capabilities_creates_sandboxes() {
    let Some(host) = Host::new() else { return };
    // Without CAP_DAC_OVERRIDE root needs files of its own.
    let limited = |capabilities: &str| {
        format!(
            "chown -R 0:0 \"$FOLDER\"; exec setpriv --bounding-set=-all,{capabilities} --inh-caps=-all \"$@\""
        )
    };
    let required = "+setuid,+setgid,+sys_admin,+kill,+sys_ptrace";
    assert_ran(&host.run(&limited(required), NATIVE));
    for missing in required.split(',') {
        let rest: Vec<_> = required.split(',').filter(|name| *name != missing).collect();
        let said = host.refusal(&limited(&rest.join(",")), NATIVE);
        let name = format!("CAP_{}", missing[1..].to_uppercase());
        assert!(said.contains(&name), "{name}: {said}");
    }
}

/// A container engine masks parts of `/proc`; the kernel then refuses to mount a new one.
#[test]
fn names_masked_proc_inside_container() {
    let Some(host) = Host::new() else { return };
    for become_user in ["", "setpriv --reuid 4711 --regid 4711 --clear-groups"] {
        let script = format!(
            "mount --bind /proc/sys /proc/sys; mount -o remount,bind,ro /proc/sys; exec {become_user} \"$@\""
        );
        let said = host.refusal(&script, DEGRADED);
        assert!(said.contains("systempaths=unconfined"), "{said}");
    }
}

/// Root of a container has not the capabilities of root.
#[test]
fn names_missing_capabilities_inside_container() {
    let Some(host) = Host::new() else { return };
    let script = "exec setpriv --bounding-set=-sys_admin --inh-caps=-all \"$@\"";
    let said = host.refusal(script, DEGRADED);
    assert!(said.contains("CAP_SYS_ADMIN"), "{said}");
}

#[test]
fn names_setting_that_forbids_user_namespaces() {
    let Some(host) = Host::new() else { return };
    let script = "chmod 777 $FOLDER; exec unshare --user --map-user=4711 --keep-caps sh -ec 'echo 0 >/proc/sys/user/max_user_namespaces; exec \"$@\"' sh \"$@\"";
    let said = host.refusal(script, DEGRADED);
    assert!(said.contains("user.max_user_namespaces is 0"), "{said}");
}

/// Puts one hierarchy of version 2 where this host has another, and pretends that it has every controller.
const VERSION_2: &str = r#"
mount -t cgroup2 none /sys/fs/cgroup
echo "cpu memory pids" >"$FOLDER/controllers"
mount --bind "$FOLDER/controllers" /sys/fs/cgroup/cgroup.controllers
exec setpriv --reuid 4711 --regid 4711 --clear-groups "$@"
"#;

/// Without a user's service manager `systemd-run --user` would fail.
#[test]
fn names_only_what_works_without_cgroup_delegation() {
    let Some(host) = Host::new() else { return };
    let said = host.refusal(VERSION_2, NATIVE);
    assert!(said.contains("let root delegate a cgroup"), "{said}");
    assert!(said.contains("SKILLBOX_NATIVE_ALLOW_DEGRADED=true"), "{said}");
    assert!(!said.contains("systemd-run"), "{said}");
}

/// With a user's service manager the command restarts once in a scope, with its arguments and no word of them in
/// the scope's description.
#[test]
fn ordinary_user_with_systemd_gets_scope() {
    let Some(host) = Host::new() else { return };
    let programs = host.path("bin");
    std::fs::create_dir_all(&programs).unwrap();
    let record = host.path("asked");
    std::fs::write(&record, "").unwrap();
    chown(&record, ORDINARY.parse().ok(), None).unwrap();
    let fake = programs.join("systemd-run");
    std::fs::write(&fake, FAKE_SYSTEMD_RUN).unwrap();
    std::fs::set_permissions(&fake, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::create_dir_all(host.path("systemd")).unwrap();
    let manager = host.path("systemd/private");
    let _listening = UnixListener::bind(&manager).unwrap();
    chown(&manager, ORDINARY.parse().ok(), None).unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let runtime = host.folder.path().display().to_string();
    let with_manager = [("PATH", path.as_str()), ("XDG_RUNTIME_DIR", runtime.as_str())];

    // The fake gives no cgroup, so the restarted command reports what is missing and does not restart again.
    let said = host.refusal(VERSION_2, &[NATIVE, &with_manager].concat());
    assert!(said.contains("shares its cgroup"), "{said}");
    assert!(
        said.contains("systemd-run --user --scope -p Delegate=yes skillbox"),
        "{said}"
    );
    let asked = std::fs::read_to_string(&record).unwrap();
    let expected = format!(
        "--user --scope --quiet --collect --description=skillbox --property=Delegate=yes -- {} run ./any\n",
        env!("CARGO_BIN_EXE_skillbox")
    );
    assert_eq!(asked, expected);

    // Who wants no native sandbox needs no scope.
    let docker = [
        ("SKILLBOX_SANDBOX_BACKEND", "docker"),
        ("SKILLBOX_DOCKER_HOST", "unix:///nonexistent"),
    ];
    host.refusal(VERSION_2, &[&docker[..], &with_manager].concat());
    assert_eq!(std::fs::read_to_string(&record).unwrap(), expected);
}

/// Records what it is asked for and does as the real one does in the end: it becomes the command.
const FAKE_SYSTEMD_RUN: &str = r#"#!/bin/sh
echo "$@" >>"$FOLDER/asked"
while [ "$1" != -- ]; do shift; done
shift
exec "$@"
"#;

/// The unit that is installed lets native sandboxes be made: what would forbid it is absent.
#[test]
fn service_unit_allows_native_sandboxes() {
    let unit = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/systemd/skillbox.service");
    let unit = std::fs::read_to_string(unit).unwrap();
    let lines: Vec<_> = unit.lines().collect();
    assert!(lines.contains(&"Delegate=cpu memory pids"));
    let families = lines
        .iter()
        .find(|line| line.starts_with("RestrictAddressFamilies="));
    assert!(families.is_some_and(|line| line.contains("AF_NETLINK")));
    // Each with what it would break: namespaces, cgroups, a fresh /proc, the host's name, Node's compiler.
    for forbidding in [
        "RestrictNamespaces=",
        "ProtectControlGroups=",
        "ProtectKernelTunables=",
        "ProtectKernelLogs=",
        "ProcSubset=",
        "ProtectHostname=",
        "MemoryDenyWriteExecute=",
        "PrivateUsers=",
        "SystemCallFilter=@",
    ] {
        assert!(
            !lines.iter().any(|line| line.starts_with(forbidding)),
            "{forbidding}"
        );
    }
}
