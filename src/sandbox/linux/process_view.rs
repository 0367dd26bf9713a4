//! Processes and scratch of a sandbox as the host sees them, through the sandbox's own `/proc` and mounts.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::fs::{AtFlags, Dir, Mode, OFlags, fstatfs, openat, statat};
use rustix::process::Pid;

use super::plan::{HOST, SCRATCH};
use crate::limits;

#[derive(Debug)]
pub(super) struct ProcessView {
    processes: OwnedFd,
    scratch: Vec<OwnedFd>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProcessStat {
    /// Id inside.
    pub(super) id: u32,
    /// CPU time of the process and of the children that it reaped.
    pub(super) cpu: Duration,
    pub(super) threads: u64,
    state: char,
    /// Anonymous and shared memory: at least its share.
    memory_bytes: u64,
}

impl ProcessStat {
    pub(super) fn can_be_stopped(&self) -> bool {
        self.id != 1 && !matches!(self.state, 'T' | 't' | 'Z' | 'X')
    }
}

/// `f_type` of file systems in memory.
const TMPFS: i64 = 0x0102_1994;
/// `f_type` of `/proc`.
const PROC: i64 = 0x9fa0;
/// Larger than any file of `/proc` that is read here.
const TEXT_BYTES_MAX: u64 = 16 * 1024;

impl ProcessView {
    /// Fails until the sandbox of this first process is complete.
    pub(super) fn of(first: Pid) -> io::Result<Self> {
        let root = format!("/proc/{}/root", first.as_raw_nonzero());
        let root = folder(&rustix::fs::CWD, &root, OFlags::empty())?;
        if statat(&root, &HOST[1..], AtFlags::SYMLINK_NOFOLLOW).is_ok() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let scratch: Vec<_> = SCRATCH
            .iter()
            .map(|path| folder(&root, &path[1..], OFlags::NOFOLLOW))
            .collect::<Result<_, _>>()?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let processes = openat(&root, "proc", flags, Mode::empty())?;
        // Unless its mounts are locked, they are not those of the final namespace.
        let is = |place: &OwnedFd, kind| fstatfs(place).is_ok_and(|of| of.f_type == kind);
        if !is(&processes, PROC) || !scratch.iter().all(|place| is(place, TMPFS)) {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(Self { processes, scratch })
    }

    /// All processes, oldest first. A process that ends meanwhile is omitted.
    pub(super) fn processes(&self) -> io::Result<Vec<ProcessStat>> {
        let mut processes = Vec::new();
        for entry in Dir::read_from(&self.processes)?.take(limits::WATCHED_ENTRIES_MAX) {
            let entry = entry?;
            let id = entry.file_name().to_str().ok().and_then(|name| name.parse().ok());
            let Some(id) = id else { continue };
            match self.process(id) {
                Ok(process) => processes.push(process),
                Err(error) if has_gone(&error) => {}
                Err(error) => return Err(error),
            }
        }
        if processes.is_empty() {
            return Err(io::Error::other("not even its first process is seen"));
        }
        Ok(processes)
    }

    /// Memory of these processes and of all scratch, in bytes. Returns the cheap upper limit if it is at most
    /// `enough`; otherwise counts shared pages once.
    pub(super) fn memory(&self, processes: &[ProcessStat], enough: u64) -> io::Result<u64> {
        let mut scratch = 0;
        for place in &self.scratch {
            let of = fstatfs(place)?;
            scratch += of.f_blocks.saturating_sub(of.f_bfree) * u64::try_from(of.f_bsize).unwrap_or(0);
        }
        let at_most = scratch + processes.iter().map(|process| process.memory_bytes).sum::<u64>();
        if at_most <= enough {
            return Ok(at_most);
        }
        Ok(scratch + processes.iter().map(|process| self.share(process)).sum::<u64>())
    }

    /// A descriptor for signals.
    pub(super) fn handle(&self, process: &ProcessStat) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        openat(&self.processes, process.id.to_string(), flags, Mode::empty()).map_err(Into::into)
    }

    fn process(&self, id: u32) -> io::Result<ProcessStat> {
        let (stat, status) = (self.text(id, "stat")?, self.text(id, "status")?);
        parse(id, &stat, &status).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// A process that hides its shared memory counts in full.
    fn share(&self, process: &ProcessStat) -> u64 {
        match self.text(process.id, "smaps_rollup") {
            Ok(text) => kibibytes(&text, &["Pss_Anon", "SwapPss"]) + shared(process.id, &text, "Pss_Shmem"),
            Err(error) if has_gone(&error) => 0,
            Err(_) => process.memory_bytes,
        }
    }

    fn text(&self, id: u32, file: &str) -> io::Result<String> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = openat(&self.processes, format!("{id}/{file}"), flags, Mode::empty())?;
        let mut bytes = Vec::new();
        File::from(file).take(TEXT_BYTES_MAX).read_to_end(&mut bytes)?;
        // A program chooses its own name.
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

fn folder(at: &impl AsFd, path: &str, more: OFlags) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(at.as_fd(), path, flags | more, Mode::empty()).map_err(Into::into)
}

fn has_gone(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ESRCH))
}

/// From `stat` and `status` of `proc(5)`.
fn parse(id: u32, stat: &str, status: &str) -> Option<ProcessStat> {
    // The process chooses its name, which is in parentheses and may contain some.
    let (_, after_name) = stat.rsplit_once(") ")?;
    let fields: Vec<_> = after_name.split(' ').collect();
    let state = fields.first()?.chars().next()?;
    let ticks = fields
        .get(11..15)?
        .iter()
        .map(|field| field.parse::<u64>().ok())
        .sum::<Option<u64>>()?;
    Some(ProcessStat {
        id,
        cpu: Duration::from_millis(ticks * 1000 / rustix::param::clock_ticks_per_second().max(1)),
        threads: number(status, "Threads"),
        state,
        memory_bytes: kibibytes(status, &["RssAnon", "VmSwap"]) + shared(id, status, "RssShmem"),
    })
}

/// Shared memory in bytes. For PID 1, it is only the server's program.
fn shared(id: u32, text: &str, key: &str) -> u64 {
    if id == 1 { 0 } else { kibibytes(text, &[key]) }
}

/// The sum of these lines in bytes. The kernel omits zeros.
fn kibibytes(text: &str, keys: &[&str]) -> u64 {
    keys.iter().map(|key| number(text, key) * limits::KIB).sum()
}

/// The number in the line of `key`.
fn number(text: &str, key: &str) -> u64 {
    text.lines()
        .find_map(|line| {
            line.strip_prefix(key)?
                .strip_prefix(':')?
                .split_whitespace()
                .next()?
                .parse()
                .ok()
        })
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "7 (a) R (b)) S 1 7 7 0 -1 4194304 100 0 0 0 150 50 20 30 20 0 3 0 1 2 3";
    const STATUS: &str = "Name:\ta) R (b)\nThreads:\t3\nRssAnon:\t  1024 kB\nRssFile:\t 9 kB\nRssShmem:\t   1 kB\nVmSwap:\t 2 kB\n";

    #[test]
    fn parses_stat_with_any_process_name() {
        let process = parse(7, STAT, STATUS).unwrap();
        let ticks = Duration::from_millis(250_000 / rustix::param::clock_ticks_per_second());
        assert_eq!((process.id, process.threads, process.cpu), (7, 3, ticks));
        assert_eq!(process.memory_bytes, 1027 * limits::KIB);
        assert!(process.can_be_stopped());
    }

    #[test]
    fn pid_1_and_stopped_processes_are_not_stopped() {
        for (id, stat) in [
            (1, STAT.to_owned()),
            (7, STAT.replace(") S ", ") T ")),
            (7, STAT.replace(") S ", ") Z ")),
        ] {
            assert!(!parse(id, &stat, STATUS).unwrap().can_be_stopped(), "{id} {stat}");
        }
    }

    #[test]
    fn memory_of_pid_1_excludes_its_program() {
        let first = parse(1, STAT, STATUS).unwrap();
        assert_eq!(first.memory_bytes, 1026 * limits::KIB);
    }

    #[test]
    fn truncated_stat_is_rejected() {
        for stat in ["", "7", "7 (a", "7 (a) S 1 2", "7 (a) "] {
            assert_eq!(parse(7, stat, STATUS), None, "{stat}");
        }
    }

    #[test]
    fn process_outside_a_sandbox_has_no_view() {
        assert!(ProcessView::of(rustix::process::getpid()).is_err());
    }
}
