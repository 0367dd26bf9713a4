//! An ordinary user, and what a test of root's does to become it.

use std::process::Command;
use std::sync::Mutex;

use crate::attempts::print_forgiven;

/// A user of this host that the tests make nothing for but cgroups.
pub(crate) const ORDINARY: &str = "4711";
/// Becomes that user permanently, in no cgroup of its own.
pub(crate) const AS_ORDINARY: &[&str] = &[
    "setpriv",
    "--reuid",
    ORDINARY,
    "--regid",
    ORDINARY,
    "--clear-groups",
];

/// Becomes that user with a cgroup subtree of its own.
pub(crate) const AS_DELEGATED: &[&str] = &["sh", "-c", WITH_SUBTREE, "sh", ORDINARY];

/// Delegates as a service manager does, for both versions of cgroups; then becomes the user permanently.
const WITH_SUBTREE: &str = r#"
user=$1; shift
for hierarchy in /sys/fs/cgroup /sys/fs/cgroup/memory /sys/fs/cgroup/pids /sys/fs/cgroup/cpu /sys/fs/cgroup/cpuacct; do
    [ -e "$hierarchy/cgroup.procs" ] || continue
    own=$hierarchy/skillbox-test-$$
    mkdir "$own" || exit 1
    chown "$user" "$own" "$own/cgroup.procs"
    [ -e "$own/cgroup.subtree_control" ] && chown "$user" "$own/cgroup.subtree_control"
    echo $$ >"$own/cgroup.procs" || exit 1
done
setpriv --reuid "$user" --regid "$user" --clear-groups "$@"
code=$?
for hierarchy in /sys/fs/cgroup /sys/fs/cgroup/memory /sys/fs/cgroup/pids /sys/fs/cgroup/cpu /sys/fs/cgroup/cpuacct; do
    [ -e "$hierarchy/cgroup.procs" ] || continue
    echo $$ >"$hierarchy/cgroup.procs"
    find "$hierarchy/skillbox-test-$$" -depth -type d -exec rmdir {} + 2>/dev/null
done
exit $code
"#;

/// The shared tests whose result depends on the user: identity, mounts, cgroups or the watchdog, signals, file modes and
/// owners, the warm pool, the builder's tunnel. The others differ in what the guest does, and run as root only.
const PRIVILEGE_SENSITIVE: [&str; 10] = [
    "native::deps::",
    "native::published::",
    "native::run::",
    "native::sandbox_confinement::",
    "native::sandbox_dependencies::",
    "native::sandbox_exhaustion::",
    "native::sandbox_inputs::",
    "native::sandbox_output::",
    "native::sandbox_survivors::",
    "native::warm::",
];

/// A folder of the ordinary user's. The caller is root.
pub(crate) fn home_of_ordinary() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::chown(folder.path(), ORDINARY.parse().ok(), ORDINARY.parse().ok()).unwrap();
    folder
}

/// Runs the privilege-sensitive tests on native sandboxes as the user that `way` becomes.
pub(crate) fn assert_native_tests_pass(way: &[&str], env: &[(&str, &str)]) {
    // Each of these keeps a small machine busy; two at once would make one another late.
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock();
    let home = home_of_ordinary();
    let ran = Command::new(way[0])
        .args(&way[1..])
        .arg(std::env::current_exe().unwrap())
        .args(["--test-threads", "2"])
        .args(PRIVILEGE_SENSITIVE)
        .env("TMPDIR", home.path())
        .env("HOME", home.path())
        .env("SKILLBOX_TEST_REQUIRE", "linux")
        .env("RUST_BACKTRACE", "0")
        .envs(env.iter().copied())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    let errors = String::from_utf8_lossy(&ran.stderr);
    // What failed comes last, after the names of all that did not.
    let end = said.find("\nfailures:").map_or(&*said, |at| &said[at..]);
    assert!(
        ran.status.success() && said.contains("test result: ok.") && !said.contains("skipped:"),
        "{end}\n{errors}"
    );
    for module in PRIVILEGE_SENSITIVE {
        assert!(said.contains(&format!("test {module}")), "no test in {module}");
    }
    let forgiven = errors.lines().filter(|line| line.starts_with("forgiven: "));
    print_forgiven(&forgiven.map(str::to_owned).collect::<Vec<_>>());
}
