//! The settings by which distributions forbid what a native sandbox is made of, and the way out of each.

use std::fs;
use std::io;

use super::identity::Privilege;
use crate::sandbox::Error;

/// One setting that forbids user namespaces where it has this value.
struct Setting {
    name: &'static str,
    value: &'static str,
    /// What to do, without the alternatives that are the same for all.
    remedy: &'static str,
    /// Whether it is meant for root as well.
    concerns: Concerns,
}

#[derive(PartialEq, Eq)]
enum Concerns {
    Everybody,
    OrdinaryUsers,
}

const SETTINGS: &[Setting] = &[
    Setting {
        name: "user.max_user_namespaces",
        value: "0",
        remedy: "`sysctl -w user.max_user_namespaces=16384`",
        concerns: Concerns::Everybody,
    },
    // Debian before 11, Arch's hardened kernel.
    Setting {
        name: "kernel.unprivileged_userns_clone",
        value: "0",
        remedy: "`sysctl -w kernel.unprivileged_userns_clone=1`",
        concerns: Concerns::OrdinaryUsers,
    },
    // Ubuntu since 23.10: they can be made, and give no capability.
    Setting {
        name: "kernel.apparmor_restrict_unprivileged_userns",
        value: "1",
        remedy: "an AppArmor profile with `userns,` for this program, or `sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`",
        concerns: Concerns::OrdinaryUsers,
    },
];

/// Why no process could be made, and what to do.
pub(super) fn refused(error: &io::Error) -> Error {
    let by_errno = || match error.raw_os_error() {
        Some(libc::ENOSPC) => {
            "this user, or one above it, has as many namespaces as user.max_user_namespaces and its like allow: end some, or raise it with sysctl"
        }
        Some(libc::EACCES) => {
            "this process may not start others in its own cgroups: give it a delegated one (systemd-run --user --scope -p Delegate=yes)"
        }
        _ => {
            "inside a container, its seccomp profile must allow clone3 with user namespaces; in a service, RestrictNamespaces must be off; otherwise set sandbox.backend to docker"
        }
    };
    let why = hint().unwrap_or_else(|| by_errno().to_owned());
    Error::Unavailable(format!("no native sandbox can be made ({error}); {why}"))
}

/// The setting of this host that is in the way, if one is.
pub(super) fn hint() -> Option<String> {
    check(Privilege::of_this_process().ok()?, |file| {
        fs::read_to_string(file).ok()
    })
}

/// Reads settings by `read`, which takes a path of `/proc`.
fn check(privilege: Privilege, read: impl Fn(&str) -> Option<String>) -> Option<String> {
    let concerns_us = |setting: &&Setting| match setting.concerns {
        Concerns::Everybody => true,
        Concerns::OrdinaryUsers => privilege != Privilege::Root,
    };
    let forbids = |setting: &&Setting| {
        let file = format!("/proc/sys/{}", setting.name.replace('.', "/"));
        read(&file).is_some_and(|text| text.trim() == setting.value)
    };
    let found = SETTINGS.iter().filter(concerns_us).find(forbids)?;
    let as_root = match found.concerns {
        Concerns::Everybody => "",
        Concerns::OrdinaryUsers => ", or run the server as root",
    };
    Some(format!(
        "{} is {} on this host, which forbids user namespaces: change that as root with {} (a file in /etc/sysctl.d keeps it){as_root}, or set sandbox.backend to docker",
        found.name, found.value, found.remedy
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORDINARY: Privilege = Privilege::Ordinary { uid: 1000, gid: 1000 };

    /// A `/proc/sys` with these files.
    fn host<'a>(files: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<String> + 'a {
        |path| {
            let found = files
                .iter()
                .find(|(file, _)| path.strip_prefix("/proc/sys/") == Some(file));
            found.map(|(_, text)| format!("{text}\n"))
        }
    }

    #[test]
    fn each_setting_is_named_with_its_way_out() {
        let hosts = [
            ("user/max_user_namespaces", "0", "user.max_user_namespaces=16384"),
            (
                "kernel/unprivileged_userns_clone",
                "0",
                "kernel.unprivileged_userns_clone=1",
            ),
            (
                "kernel/apparmor_restrict_unprivileged_userns",
                "1",
                "kernel.apparmor_restrict_unprivileged_userns=0",
            ),
        ];
        for (file, value, remedy) in hosts {
            let files = [(file, value)];
            let said = check(ORDINARY, host(&files)).unwrap();
            assert!(
                said.starts_with(&format!("{} is {value}", file.replace('/', "."))),
                "{said}"
            );
            assert!(
                said.contains(remedy) && said.contains("sandbox.backend"),
                "{said}"
            );
        }
    }

    #[test]
    fn a_host_that_forbids_nothing_is_not_accused() {
        let open = [
            ("user/max_user_namespaces", "63432"),
            ("kernel/unprivileged_userns_clone", "1"),
            ("kernel/apparmor_restrict_unprivileged_userns", "0"),
        ];
        for files in [&open[..], &[]] {
            assert_eq!(check(ORDINARY, host(files)), None);
            assert_eq!(check(Privilege::Root, host(files)), None);
        }
    }

    #[test]
    fn what_only_binds_ordinary_users_is_not_named_to_root() {
        let files = [
            ("kernel/unprivileged_userns_clone", "0"),
            ("kernel/apparmor_restrict_unprivileged_userns", "1"),
        ];
        assert_eq!(check(Privilege::Root, host(&files)), None);
        let none = [("user/max_user_namespaces", "0")];
        assert!(check(Privilege::Root, host(&none)).is_some());
    }
}
