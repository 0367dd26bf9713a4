//! What a user can do whose memory and CPU limits have no cgroups.

use std::env;
use std::os::unix::net::UnixStream;
use std::path::Path;

use super::Degraded;
use super::cgroup::CgroupSetup;

/// Whether the user's service manager listens; otherwise `systemd-run --user` would fail.
#[must_use]
pub fn has_user_manager() -> bool {
    env::var_os("XDG_RUNTIME_DIR")
        .is_some_and(|folder| UnixStream::connect(Path::new(&folder).join("systemd/private")).is_ok())
}

/// Whether this process could keep every promise in a cgroup made by `systemd-run --user --scope -p Delegate=yes`.
#[must_use]
pub fn wants_a_scope() -> bool {
    !rustix::process::geteuid().is_root() && CgroupSetup::lacks_own_cgroup()
}

/// How to get a cgroup of version 2 of one's own.
pub(super) fn own_cgroup() -> &'static str {
    if has_user_manager() {
        "start Skillbox with systemd-run --user --scope -p Delegate=yes skillbox ..., or as root"
    } else {
        "run as root, or let root delegate a cgroup to this user"
    }
}

/// The error without cgroups: the reason, then on a line of its own how to run without them.
pub(super) fn without_cgroups(why: &str, degraded: Degraded) -> String {
    let remedy = match degraded {
        Degraded::UnusedByAuto => {
            "SKILLBOX_NATIVE_ALLOW_DEGRADED is set, but has no effect with the backend `auto`; set SKILLBOX_SANDBOX_BACKEND=native, too"
        }
        Degraded::Refused | Degraded::Allowed => {
            "to run now with best-effort memory and CPU limits: SKILLBOX_SANDBOX_BACKEND=native SKILLBOX_NATIVE_ALLOW_DEGRADED=true skillbox ..."
        }
    };
    format!("memory and CPU of native sandboxes cannot be limited: {why}\n{remedy}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_both_variables_or_the_missing_one() {
        let neither = without_cgroups("no cgroups", Degraded::Refused);
        assert_eq!(neither.lines().count(), 2, "{neither}");
        assert!(
            neither.contains("SKILLBOX_SANDBOX_BACKEND=native SKILLBOX_NATIVE_ALLOW_DEGRADED=true skillbox"),
            "{neither}"
        );
        let one = without_cgroups("no cgroups", Degraded::UnusedByAuto);
        assert!(one.contains("no effect with the backend `auto`"), "{one}");
        assert!(!one.contains("SKILLBOX_NATIVE_ALLOW_DEGRADED=true"), "{one}");
    }
}
