//! Reads the sandbox's usage from its cgroup. Opened before the program starts, which may exhaust descriptors.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use crate::guest::wire::GuestUsage;
use crate::sys;

/// The open counters of this sandbox's cgroup; `None` if the host hides them.
#[derive(Debug)]
pub(super) struct Counters {
    memory_peak: Option<File>,
    oom: Option<File>,
    processes_peak: Option<File>,
    cpu: Option<(File, CpuUnit)>,
    /// CPU time in milliseconds before the run, in the warm pool.
    cpu_before_ms: u64,
}

#[derive(Debug, Clone, Copy)]
enum CpuUnit {
    /// `cpuacct.usage`: nanoseconds.
    Nanoseconds,
    /// `usage_usec` of `cpu.stat`: microseconds.
    UsageUsec,
}

impl Counters {
    /// Opens the existing counters, cgroup v2 names first.
    pub(super) fn open() -> Self {
        let root = Path::new("/sys/fs/cgroup");
        let open = |names: &[&str]| names.iter().find_map(|name| File::open(root.join(name)).ok());
        let cpu = open(&["cpu.stat"]).map(|file| (file, CpuUnit::UsageUsec));
        let cpu = cpu.or_else(|| {
            let file = open(&["cpuacct/cpuacct.usage", "cpu,cpuacct/cpuacct.usage"])?;
            Some((file, CpuUnit::Nanoseconds))
        });
        Self {
            memory_peak: open(&["memory.peak", "memory/memory.max_usage_in_bytes"]),
            oom: open(&["memory.events", "memory/memory.oom_control"]),
            processes_peak: open(&["pids.peak", "pids/pids.peak"]),
            cpu,
            cpu_before_ms: 0,
        }
    }

    /// Counts CPU time from now on.
    pub(super) fn restart_cpu_count(&mut self) {
        self.cpu_before_ms = self.read().cpu_ms;
    }

    /// Without a cgroup, the CPU time of reaped children.
    pub(super) fn read(&self) -> GuestUsage {
        let number = |file: &Option<File>| file.as_ref().and_then(|file| text(file)?.trim().parse().ok());
        let cpu_ms = self.cpu.as_ref().and_then(|(file, unit)| match unit {
            CpuUnit::Nanoseconds => Some(text(file)?.trim().parse::<u64>().ok()? / 1_000_000),
            CpuUnit::UsageUsec => Some(keyed(&text(file)?, "usage_usec")? / 1000),
        });
        let waited_for = || {
            sys::cpu_time()
                .ok()
                .and_then(|time| u64::try_from(time.as_millis()).ok())
        };
        GuestUsage {
            cpu_ms: (cpu_ms.or_else(waited_for).unwrap_or(0)).saturating_sub(self.cpu_before_ms),
            memory_peak_bytes: number(&self.memory_peak).unwrap_or(0),
            processes_peak: number(&self.processes_peak).unwrap_or(0),
            oom_kills: self
                .oom
                .as_ref()
                .and_then(|file| keyed(&text(file)?, "oom_kill"))
                .unwrap_or(0),
        }
    }
}

/// The whole file; cgroup files are far below the limit.
fn text(file: &File) -> Option<String> {
    let mut buffer = [0; 4096];
    let length = file.read_at(&mut buffer, 0).ok()?;
    Some(String::from_utf8_lossy(&buffer[..length]).into_owned())
}

/// The number after `key` in lines of `key number`.
fn keyed(text: &str, key: &str) -> Option<u64> {
    text.lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_whole_keys() {
        let text = "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n";
        assert_eq!(keyed(text, "oom_kill"), Some(3));
        assert_eq!(keyed(text, "oom"), None);
    }
}
