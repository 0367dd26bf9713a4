//! Kernel settings by which distributions forbid user namespaces, with the remedy for each.

use std::fs;
use std::io;

use super::identity::Privilege;
use crate::sandbox::Error;

/// Value that forbids user namespaces.
struct UsernsSetting {
    name: &'static str,
    value: &'static str,
    /// Remedy, in addition to the common alternatives.
    remedy: &'static str,
    applies_to: AppliesTo,
}

#[derive(PartialEq, Eq)]
enum AppliesTo {
    Everyone,
    OrdinaryUsers,
}

const SETTINGS: &[UsernsSetting] = &[
    UsernsSetting {
        name: "user.max_user_namespaces",
        value: "0",
        remedy: "`sysctl -w user.max_user_namespaces=16384`",
        applies_to: AppliesTo::Everyone,
    },
    // Debian (on by default since 11), Arch's hardened kernel. Root creates the first namespace of a sandbox, but the second
    // one, which locks its mounts, is created inside without root's rights.
    UsernsSetting {
        name: "kernel.unprivileged_userns_clone",
        value: "0",
        remedy: "`sysctl -w kernel.unprivileged_userns_clone=1`",
        applies_to: AppliesTo::Everyone,
    },
    // Ubuntu since 23.10: namespaces can be created, but give no capability.
    UsernsSetting {
        name: "kernel.apparmor_restrict_unprivileged_userns",
        value: "1",
        remedy: "an AppArmor profile with `userns,` for this program, or `sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`",
        applies_to: AppliesTo::OrdinaryUsers,
    },
];

/// Why no process could be forked, with the remedy.
pub(super) fn refused(error: &io::Error) -> Error {
    let by_errno = || match error.raw_os_error() {
        Some(libc::ENOSPC) => {
            "this user, or a parent user namespace, has reached user.max_user_namespaces or a similar limit: end some, or raise it with sysctl"
        }
        Some(libc::EACCES) => {
            "this process may not start others in its own cgroups: run it as root, or in a delegated cgroup"
        }
        _ => {
            "inside a container, its seccomp profile must allow clone3 with user namespaces; in a service, RestrictNamespaces must be off; otherwise set sandbox.backend to docker"
        }
    };
    let why = hint().unwrap_or_else(|| by_errno().to_owned());
    Error::Unavailable(format!("no native sandbox can be created ({error}); {why}"))
}

/// The setting of this host that forbids user namespaces, if any.
pub(super) fn hint() -> Option<String> {
    blocking_setting(Privilege::of_this_process().ok()?, |file| {
        fs::read_to_string(file).ok()
    })
}

/// Reads settings through `read`, which takes a path of `/proc`.
fn blocking_setting(privilege: Privilege, read: impl Fn(&str) -> Option<String>) -> Option<String> {
    let applies_to_us = |setting: &&UsernsSetting| match setting.applies_to {
        AppliesTo::Everyone => true,
        AppliesTo::OrdinaryUsers => privilege != Privilege::Root,
    };
    let forbids = |setting: &&UsernsSetting| {
        let file = format!("/proc/sys/{}", setting.name.replace('.', "/"));
        read(&file).is_some_and(|text| text.trim() == setting.value)
    };
    let found = SETTINGS.iter().filter(applies_to_us).find(forbids)?;
    let as_root = match found.applies_to {
        AppliesTo::Everyone => "",
        AppliesTo::OrdinaryUsers => ", or run the server as root",
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
    fn names_each_setting_with_its_remedy() {
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
            let said = blocking_setting(ORDINARY, host(&files)).unwrap();
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
    fn names_no_setting_where_nothing_is_forbidden() {
        let open = [
            ("user/max_user_namespaces", "63432"),
            ("kernel/unprivileged_userns_clone", "1"),
            ("kernel/apparmor_restrict_unprivileged_userns", "0"),
        ];
        for files in [&open[..], &[]] {
            assert_eq!(blocking_setting(ORDINARY, host(files)), None);
            assert_eq!(blocking_setting(Privilege::Root, host(files)), None);
        }
    }

    #[test]
    fn names_settings_for_ordinary_users_to_them_only() {
        let files = [("kernel/apparmor_restrict_unprivileged_userns", "1")];
        assert_eq!(blocking_setting(Privilege::Root, host(&files)), None);
        for name in ["user/max_user_namespaces", "kernel/unprivileged_userns_clone"] {
            let files = [(name, "0")];
            assert!(
                blocking_setting(Privilege::Root, host(&files)).is_some(),
                "{name}"
            );
        }
    }
}
