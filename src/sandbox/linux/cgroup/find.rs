//! Finds out where this process may create cgroups. Pure: parses `/proc` texts.

use std::path::{Path, PathBuf};

use super::v1::Hierarchies;
use super::v2::Unified;

/// Cgroup support of this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::sandbox::linux) enum CgroupSetup {
    /// Controllers in separate hierarchies (version 1, or mixed).
    V1(Hierarchies),
    /// All controllers in one hierarchy.
    V2(Unified),
    /// Insufficient, for this reason.
    Unavailable(String),
}

/// Where this process may create cgroups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sandbox::linux) enum CgroupScope {
    /// At the top of each hierarchy.
    Top,
    /// Below its own cgroup.
    Own,
}

/// A mounted hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
struct HierarchyMount<'a> {
    kind: &'a str,
    /// The cgroup visible at the mount point.
    root: &'a str,
    place: PathBuf,
    controllers: Vec<&'a str>,
}

impl CgroupSetup {
    /// Reads the `/proc` of this process.
    pub(in crate::sandbox::linux) fn detect(reach: CgroupScope) -> Self {
        let read = |name| std::fs::read_to_string(Path::new("/proc/self").join(name)).unwrap_or_default();
        let unified =
            |place: &Path| std::fs::read_to_string(place.join("cgroup.controllers")).unwrap_or_default();
        Self::classify(&read("cgroup"), &read("mountinfo"), reach, unified)
    }

    /// Whether an ordinary user's process only lacks a cgroup of its own, which a service manager can give.
    pub(in crate::sandbox::linux) fn lacks_own_cgroup() -> bool {
        match Self::detect(CgroupScope::Own) {
            Self::V2(unified) => !unified.is_ours(),
            Self::V1(_) | Self::Unavailable(_) => false,
        }
    }

    /// Parses `/proc/self/cgroup` and `/proc/self/mountinfo`. `controllers_at` returns the controllers of a folder of
    /// version 2.
    fn classify(
        cgroup: &str,
        mountinfo: &str,
        reach: CgroupScope,
        controllers_at: impl Fn(&Path) -> String,
    ) -> Self {
        let mounted: Vec<_> = mountinfo.lines().filter_map(mounted).collect();
        let has_all = |unified: &&HierarchyMount<'_>| {
            let here = controllers_at(&unified.place);
            let mut wanted = ["memory", "pids", "cpu"].iter();
            wanted.all(|wanted| here.split_whitespace().any(|controller| controller == *wanted))
        };
        let mut unified = mounted.iter().filter(|mount| mount.kind == "cgroup2");
        if let Some(unified) = unified.find(has_all) {
            return Self::V2(Unified {
                top: unified.place.clone(),
                own: own(unified, cgroup, |line| line.starts_with("0:")),
                reach,
            });
        }
        let hierarchy = |controller: &str| {
            let mount = mounted
                .iter()
                .find(|mount| mount.kind == "cgroup" && mount.controllers.contains(&controller));
            let mount = mount.ok_or_else(|| {
                let remedy = match controller {
                    "memory" => "boot with cgroup_enable=memory (on a Raspberry Pi, in cmdline.txt)",
                    _ => "enable it in the kernel and mount it",
                };
                format!("this host has no cgroup controller `{controller}`; {remedy}")
            })?;
            Ok::<_, String>(match reach {
                CgroupScope::Top => mount.place.join("skillbox"),
                CgroupScope::Own => own(mount, cgroup, |line| {
                    line.split(':')
                        .nth(1)
                        .is_some_and(|names| names.split(',').any(|name| name == controller))
                }),
            })
        };
        let found = || {
            Ok::<_, String>(Hierarchies {
                memory: hierarchy("memory")?,
                pids: hierarchy("pids")?,
                cpu: hierarchy("cpu")?,
                cpuacct: hierarchy("cpuacct")?,
            })
        };
        found().map_or_else(Self::Unavailable, Self::V1)
    }
}

/// A line of `mountinfo(5)` about cgroups.
fn mounted(line: &str) -> Option<HierarchyMount<'_>> {
    let (before, after) = line.split_once(" - ")?;
    let mut after = after.split(' ');
    let kind = after.next().filter(|kind| kind.starts_with("cgroup"))?;
    let mut before = before.split(' ').skip(3);
    Some(HierarchyMount {
        kind,
        root: before.next()?,
        place: PathBuf::from(before.next()?),
        controllers: after.nth(1)?.split(',').collect(),
    })
}

/// This process's cgroup, as a folder below the mount point.
fn own(mount: &HierarchyMount<'_>, cgroup: &str, is_it: impl Fn(&str) -> bool) -> PathBuf {
    let path = cgroup
        .lines()
        .find(|line| is_it(line))
        .and_then(|line| line.splitn(3, ':').nth(2))
        .unwrap_or("/");
    // Outside its own cgroup namespace, a process has a path that starts with `..` and leads nowhere.
    let below = Path::new(path)
        .strip_prefix(mount.root)
        .ok()
        .filter(|path| !path.starts_with(".."));
    mount.place.join(below.unwrap_or(Path::new("")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = "\
25 24 0:22 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct
26 24 0:23 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
27 24 0:24 / /sys/fs/cgroup/pids rw,relatime shared:1 - cgroup cgroup rw,pids
28 24 0:25 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";
    const UNIFIED: &str = "30 24 0:25 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
    const OWN: &str = "9:cpu,cpuacct:/a\n8:pids:/b\n4:memory:/c/d\n0::/user.slice/x\n";

    fn classify(mountinfo: &str, reach: CgroupScope, controllers: &str) -> CgroupSetup {
        CgroupSetup::classify(OWN, mountinfo, reach, |_| controllers.to_owned())
    }

    #[test]
    fn hybrid_host_uses_its_v1_controllers() {
        let CgroupSetup::V1(top) = classify(HYBRID, CgroupScope::Top, "") else {
            panic!("not found");
        };
        assert_eq!(top.memory, Path::new("/sys/fs/cgroup/memory/skillbox"));
        assert_eq!(top.cpu, top.cpuacct);
        let CgroupSetup::V1(own) = classify(HYBRID, CgroupScope::Own, "") else {
            panic!("not found");
        };
        assert_eq!(own.memory, Path::new("/sys/fs/cgroup/memory/c/d"));
        assert_eq!(own.cpu, Path::new("/sys/fs/cgroup/cpu/a"));
    }

    #[test]
    fn finds_the_unified_hierarchy() {
        let found = classify(UNIFIED, CgroupScope::Own, "cpuset cpu io memory pids\n");
        let expected = Unified {
            top: "/sys/fs/cgroup".into(),
            own: "/sys/fs/cgroup/user.slice/x".into(),
            reach: CgroupScope::Own,
        };
        assert_eq!(found, CgroupSetup::V2(expected));
    }

    /// S-36: what is missing is named.
    #[test]
    fn names_missing_controller() {
        for (mounts, controllers) in [("", ""), (UNIFIED, "cpu pids"), (UNIFIED, "")] {
            let CgroupSetup::Unavailable(why) = classify(mounts, CgroupScope::Top, controllers) else {
                panic!("found in {mounts}");
            };
            assert!(why.contains("`memory`"), "{why}");
        }
    }

    #[test]
    fn resolves_a_namespaced_mount_from_its_root() {
        let line = "26 24 0:23 /c /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory";
        let mount = mounted(line).unwrap();
        let folder = own(&mount, OWN, |line| line.contains(":memory:"));
        assert_eq!(folder, Path::new("/sys/fs/cgroup/memory/d"));
    }
}
