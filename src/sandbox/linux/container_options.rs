//! Which options of `docker run` native sandboxes lack where Skillbox itself runs in a container.

use std::fs;
use std::path::Path;

use rustix::io::Errno;

use super::identity::missing_capabilities;

/// What decides about the options, read from this process.
#[derive(Debug)]
struct ContainerFacts {
    missing_capabilities: Vec<&'static str>,
    /// Whether system calls that sandboxes need are refused.
    filtered: bool,
    /// The AppArmor profile of this process.
    apparmor: String,
    mountinfo: String,
}

/// The missing options, as to paste behind `docker run`, or nothing outside of containers.
pub fn missing_container_options() -> Vec<String> {
    let inside = ["/.dockerenv", "/run/.containerenv"];
    let read = |file: &str| fs::read_to_string(file).unwrap_or_default();
    let mountinfo = read("/proc/self/mountinfo");
    if !inside.iter().any(|file| Path::new(file).exists()) || !has_container_root(&mountinfo) {
        return Vec::new();
    }
    missing(&ContainerFacts {
        // An ordinary user gets no capability by `--cap-add`.
        missing_capabilities: match rustix::process::geteuid().is_root() {
            true => missing_capabilities(),
            false => Vec::new(),
        },
        filtered: is_filtered(&read("/proc/self/status")),
        apparmor: read("/proc/self/attr/apparmor/current"),
        mountinfo,
    })
}

/// Virtual machines that were made from an image of a container still have its marker file, but a disk as root.
fn has_container_root(mountinfo: &str) -> bool {
    let mut roots = mountinfo
        .lines()
        .filter_map(mount)
        .filter(|mount| mount.place == "/");
    let is_disk =
        |root: &Mount<'_>| root.source == "/" && matches!(root.kind, "ext2" | "ext3" | "ext4" | "xfs");
    roots.next_back().is_none_or(|root| !is_disk(&root))
}

/// Docker's own profile refuses `pivot_root` whatever the capabilities. The call names no folder, so it changes nothing.
fn is_filtered(status: &str) -> bool {
    let has_filter = status.lines().any(|line| {
        line.split_once(':')
            .is_some_and(|(key, value)| key == "Seccomp" && value.trim() == "2")
    });
    has_filter && rustix::process::pivot_root("/proc/self/no-such-folder", "/") == Err(Errno::PERM)
}

fn missing(facts: &ContainerFacts) -> Vec<String> {
    let capability = |name: &&str| format!("--cap-add {}", name.trim_start_matches("CAP_"));
    let mut options: Vec<_> = facts.missing_capabilities.iter().map(capability).collect();
    if facts.filtered {
        options.push("--security-opt seccomp=unconfined".to_owned());
    }
    if !matches!(facts.apparmor.trim(), "" | "unconfined") {
        options.push("--security-opt apparmor=unconfined".to_owned());
    }
    let mounts: Vec<_> = facts.mountinfo.lines().filter_map(mount).collect();
    if mounts.iter().any(|mount| mount.place.starts_with("/proc/")) {
        options.push("--security-opt systempaths=unconfined".to_owned());
    }
    let is_writable = |mount: &&Mount<'_>| mount.kind.starts_with("cgroup") && mount.writable;
    if mounts.iter().find(is_writable).is_none() {
        options.push("--cgroupns host --volume /sys/fs/cgroup:/sys/fs/cgroup".to_owned());
    }
    options
}

struct Mount<'a> {
    /// The mounted folder of the file system.
    source: &'a str,
    place: &'a str,
    writable: bool,
    kind: &'a str,
}

/// A line of `mountinfo(5)`.
fn mount(line: &str) -> Option<Mount<'_>> {
    let (before, after) = line.split_once(" - ")?;
    let mut before = before.split(' ').skip(3);
    Some(Mount {
        source: before.next()?,
        place: before.next()?,
        writable: before.next()?.split(',').any(|option| option == "rw"),
        kind: after.split(' ').next()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULT: &str = "\
900 800 0:50 / /proc rw,nosuid - proc proc rw
901 900 0:50 /bus /proc/bus ro,nosuid - proc proc rw
902 800 0:26 / /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw,nsdelegate
";
    const OPEN: &str = "\
900 800 0:50 / /proc rw,nosuid - proc proc rw
902 800 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup rw,nsdelegate
";

    fn facts(mountinfo: &str) -> ContainerFacts {
        ContainerFacts {
            missing_capabilities: Vec::new(),
            filtered: false,
            apparmor: "unconfined\n".to_owned(),
            mountinfo: mountinfo.to_owned(),
        }
    }

    #[test]
    fn names_each_option_that_a_container_lacks() {
        let closed = ContainerFacts {
            missing_capabilities: vec!["CAP_SYS_ADMIN", "CAP_SYS_PTRACE"],
            filtered: true,
            apparmor: "docker-default (enforce)\n".to_owned(),
            ..facts(DEFAULT)
        };
        let expected = [
            "--cap-add SYS_ADMIN",
            "--cap-add SYS_PTRACE",
            "--security-opt seccomp=unconfined",
            "--security-opt apparmor=unconfined",
            "--security-opt systempaths=unconfined",
            "--cgroupns host --volume /sys/fs/cgroup:/sys/fs/cgroup",
        ];
        assert_eq!(missing(&closed), expected);
    }

    #[test]
    fn names_no_option_that_is_set() {
        assert_eq!(missing(&facts(OPEN)), Vec::<String>::new());
    }

    #[test]
    fn machine_with_a_disk_as_root_is_no_container() {
        assert!(!has_container_root(
            "22 1 254:0 / / rw,relatime - ext4 /dev/root rw\n"
        ));
        for root in [
            "800 700 0:48 / / rw,relatime - overlay overlay rw,lowerdir=x\n",
            "800 700 254:0 /vfs/dir/1 / rw,relatime - ext4 /dev/vda rw\n",
        ] {
            assert!(has_container_root(root), "{root}");
        }
    }

    #[test]
    fn process_without_filter_is_not_filtered() {
        assert!(!is_filtered("Name:\tx\nSeccomp:\t0\n"));
    }
}
