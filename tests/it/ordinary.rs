//! An ordinary user, and what a test of root's does to become it.

/// A user of this host that the tests make nothing for but cgroups.
pub(crate) const ORDINARY: &str = "4711";
/// Becomes that user for good, in no cgroup of its own.
pub(crate) const AS_ORDINARY: &[&str] = &[
    "setpriv",
    "--reuid",
    ORDINARY,
    "--regid",
    ORDINARY,
    "--clear-groups",
];

/// Delegates as a service manager does, for both versions of cgroups; then becomes the user for good.
pub(crate) const WITH_SUBTREE: &str = r#"
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
