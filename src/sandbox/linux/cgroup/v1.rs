//! Cgroup version 1: one hierarchy per controller; processes are moved in after the fork.

use std::io;
use std::path::{Path, PathBuf};

use rustix::process::Pid;

use super::{Weight, keyed, number, write};
use crate::execution::{ResourceLimits, Usage};

/// Folder for new cgroups per controller; two may be equal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::sandbox::linux) struct Hierarchies {
    pub(super) memory: PathBuf,
    pub(super) pids: PathBuf,
    pub(super) cpu: PathBuf,
    pub(super) cpuacct: PathBuf,
}

/// CPU period in microseconds.
const PERIOD: u64 = 100_000;

impl Hierarchies {
    /// Distinct folders, memory's first.
    pub(super) fn bases(&self) -> Vec<PathBuf> {
        let mut bases = vec![self.memory.clone()];
        for base in [&self.pids, &self.cpu, &self.cpuacct] {
            if !bases.contains(base) {
                bases.push(base.clone());
            }
        }
        bases
    }

    /// The folder of `base` in a list in the order of [`Self::bases`].
    fn of<'a>(&self, folders: &'a [PathBuf], base: &Path) -> &'a Path {
        let at = self.bases().iter().position(|known| known == base).unwrap_or(0);
        &folders[at]
    }

    pub(super) fn set_process_limit(&self, folders: &[PathBuf], most: u32) -> io::Result<()> {
        write(self.of(folders, &self.pids), "pids.max", most)
    }

    pub(super) fn set_limits(&self, folders: &[PathBuf], limits: &ResourceLimits) -> io::Result<()> {
        let memory = self.of(folders, &self.memory);
        write(memory, "memory.limit_in_bytes", limits.memory_bytes)?;
        // Memory and swap. A kernel without swap accounting lacks this file; its host probably has no swap.
        if memory.join("memory.memsw.limit_in_bytes").exists() {
            write(memory, "memory.memsw.limit_in_bytes", limits.memory_bytes)?;
        } else {
            write(memory, "memory.swappiness", 0)?;
        }
        let cpu = self.of(folders, &self.cpu);
        write(cpu, "cpu.cfs_period_us", PERIOD)?;
        let quota = u64::from(limits.cpu_millis) * PERIOD / 1000;
        write(cpu, "cpu.cfs_quota_us", quota)
    }

    pub(super) fn set_weight(&self, folders: &[PathBuf], weight: Weight) -> io::Result<()> {
        let shares = match weight {
            Weight::Little => 64,
            Weight::Quarter => 256,
            Weight::Whole => 1024,
        };
        write(self.of(folders, &self.cpu), "cpu.shares", shares)
    }

    pub(super) fn add_process(&self, folders: &[PathBuf], pid: Pid) -> io::Result<()> {
        folders
            .iter()
            .try_for_each(|folder| write(folder, "cgroup.procs", pid.as_raw_nonzero()))
    }

    pub(super) fn usage(&self, folders: &[PathBuf]) -> Usage {
        let memory = self.of(folders, &self.memory);
        let cpu = number(self.of(folders, &self.cpuacct), "cpuacct.usage");
        Usage {
            cpu_ms: cpu.unwrap_or(0) / 1_000_000,
            memory_peak_bytes: number(memory, "memory.max_usage_in_bytes").unwrap_or(0),
            processes_peak: number(self.of(folders, &self.pids), "pids.peak").unwrap_or(0),
            oom_kills: keyed(memory, "memory.oom_control", "oom_kill").unwrap_or(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::execution::Maxima;
    use crate::skill::Resources;

    #[test]
    fn controllers_that_share_a_hierarchy_share_a_folder() {
        let root = tempfile::tempdir().unwrap();
        let base = |name: &str| root.path().join(name);
        let hierarchies = Hierarchies {
            memory: base("memory"),
            pids: base("pids"),
            cpu: base("cpu"),
            cpuacct: base("cpu"),
        };
        let folders = hierarchies.bases();
        assert_eq!(folders.len(), 3);
        for folder in &folders {
            fs::create_dir(folder).unwrap();
        }
        fs::write(base("memory").join("memory.memsw.limit_in_bytes"), "").unwrap();
        let limits = ResourceLimits::clamp(&Resources::default(), None, None, &Maxima::default());
        hierarchies.set_process_limit(&folders, 128).unwrap();
        hierarchies.set_limits(&folders, &limits).unwrap();
        let read = |name: &str| fs::read_to_string(root.path().join(name)).unwrap();
        assert_eq!(read("pids/pids.max"), "128");
        assert_eq!(read("memory/memory.limit_in_bytes"), (512 << 20).to_string());
        assert_eq!(
            read("memory/memory.memsw.limit_in_bytes"),
            (512 << 20).to_string()
        );
        assert_eq!(read("cpu/cpu.cfs_quota_us"), "100000");
        hierarchies.set_weight(&folders, Weight::Little).unwrap();
        assert_eq!(read("cpu/cpu.shares"), "64");
        fs::write(
            base("memory").join("memory.oom_control"),
            "under_oom 0\noom_kill 2\n",
        )
        .unwrap();
        fs::write(base("cpu").join("cpuacct.usage"), "7000000\n").unwrap();
        let usage = hierarchies.usage(&folders);
        assert_eq!(
            (usage.oom_kills, usage.cpu_ms, usage.memory_peak_bytes),
            (2, 7, 0)
        );
    }
}
