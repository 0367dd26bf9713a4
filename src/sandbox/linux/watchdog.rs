//! Watches a sandbox without a cgroup: kills it if it exceeds its memory, pauses it if it exceeds its CPU share.
//!
//! Reads the sandbox's own `/proc`, which lists only processes of its PID namespace, oldest first, so that children
//! forked meanwhile are found. `SECURITY.md` says what it cannot see.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use rustix::process::{Signal, pidfd_send_signal};
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;

use super::process_view::{ProcessStat, ProcessView};
use super::spawn::FirstProcess;
use crate::execution::{ResourceLimits, Usage};
use crate::limits;
use crate::sandbox::protocol::GuestReport;

/// Promises that a watchdog keeps only in part.
pub(super) const DEGRADED: &[&str] = &["P6", "P7"];
/// Why, for results.
pub(super) const REASON: &str =
    "configured; P6 and P7 are degraded: no cgroups are available, and sandbox.native.allow_degraded is set";

/// Watches one sandbox until it is stopped or dropped.
#[derive(Debug)]
pub(super) struct Watchdog {
    /// Dropping the sender stops the watchdog.
    stop: Sender<()>,
    watching: JoinHandle<Observed>,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Observed {
    pub(super) usage: Usage,
    /// Whether the sandbox was killed for exceeding its memory.
    pub(super) exceeded: bool,
}

/// Whether this host permits watching a complete sandbox.
pub(super) fn can_watch(process: &FirstProcess) -> io::Result<()> {
    let view = ProcessView::of(process.id)?;
    let processes = view.processes()?;
    view.memory(&processes, 0).map(drop)
}

impl Watchdog {
    /// On a thread that may block.
    pub(super) fn start(
        process: &FirstProcess,
        limits: &ResourceLimits,
        tasks: &TaskTracker,
    ) -> io::Result<Self> {
        let (stop, stopped) = channel();
        let watch = WatchLoop {
            id: process.id,
            process: process.process()?,
            memory_bytes: limits.memory_bytes,
            cpu_millis: limits.cpu_millis,
            observed: Observed::default(),
            used: CpuTime::default(),
            stopped: Vec::new(),
        };
        let watching = tasks.spawn_blocking(move || watch.run(&stopped));
        Ok(Self { stop, watching })
    }

    /// Returns its observations.
    pub(super) async fn stop(self) -> Observed {
        drop(self.stop);
        self.watching.await.unwrap_or_default()
    }
}

struct WatchLoop {
    id: rustix::process::Pid,
    process: OwnedFd,
    memory_bytes: u64,
    cpu_millis: u32,
    observed: Observed,
    used: CpuTime,
    /// Processes paused by this watchdog, by their ids inside.
    stopped: Vec<(u32, OwnedFd)>,
}

/// CPU time that never decreases: the time of children is lost if their parent does not reap them.
#[derive(Debug, Default)]
struct CpuTime {
    total: Duration,
    last: Duration,
}

impl CpuTime {
    fn add_sample(&mut self, sum: Duration) {
        self.total += sum.saturating_sub(self.last);
        self.last = sum;
    }
}

impl WatchLoop {
    fn run(mut self, stop: &Receiver<()>) -> Observed {
        let (mut view, mut failures, mut since) = (None, 0, Instant::now());
        let (began, mut pause) = (Instant::now(), limits::WATCH_FIRST_AFTER);
        while let Err(RecvTimeoutError::Timeout) = stop.recv_timeout(pause) {
            if view.is_none() {
                // The sandbox is not complete yet. That this host permits watching was checked before.
                view = ProcessView::of(self.id).ok();
                since = Instant::now();
            }
            let Some(view) = &view else {
                if began.elapsed() > limits::SANDBOX_START_MAX {
                    self.kill();
                }
                continue;
            };
            pause = limits::WATCH_EVERY;
            match self.check(view, since.elapsed()) {
                Ok(()) => failures = 0,
                Err(error) => {
                    tracing::debug!(%error, "Sandbox not watched in this round");
                    failures += 1;
                    if failures >= limits::WATCH_FAILURES_MAX {
                        tracing::warn!(%error, "Sandbox killed: watching failed");
                        self.kill();
                    }
                }
            }
            if self.observed.exceeded {
                break;
            }
        }
        self.observed
    }

    fn check(&mut self, view: &ProcessView, elapsed: Duration) -> io::Result<()> {
        let processes = view.processes()?;
        let memory = view.memory(&processes, self.memory_bytes)?;
        self.used
            .add_sample(processes.iter().map(|process| process.cpu).sum());
        let usage = &mut self.observed.usage;
        usage.memory_peak_bytes = usage.memory_peak_bytes.max(memory);
        usage.processes_peak = usage
            .processes_peak
            .max(processes.iter().map(|process| process.threads).sum());
        usage.cpu_ms = u64::try_from(self.used.total.as_millis()).unwrap_or(u64::MAX);
        if memory > self.memory_bytes {
            self.observed.exceeded = true;
            usage.oom_kills += 1;
            self.kill();
        } else if self.used.total > share(self.cpu_millis, elapsed) {
            self.stop(view, &processes);
        } else {
            self.resume();
        }
        Ok(())
    }

    /// Killing PID 1 kills all processes inside.
    fn kill(&self) {
        let _ = pidfd_send_signal(&self.process, Signal::KILL);
    }

    /// Pauses all processes but PID 1, which collects. New processes are paused in the next round.
    fn stop(&mut self, view: &ProcessView, processes: &[ProcessStat]) {
        for process in processes.iter().filter(|process| process.can_be_stopped()) {
            // It has ended.
            let Ok(handle) = view.handle(process) else {
                continue;
            };
            if pidfd_send_signal(&handle, Signal::STOP).is_ok()
                && self.stopped.iter().all(|(id, _)| *id != process.id)
            {
                self.stopped.push((process.id, handle));
            }
        }
    }

    fn resume(&mut self) {
        for (_, handle) in self.stopped.drain(..) {
            let _ = pidfd_send_signal(&handle, Signal::CONT);
        }
    }
}

/// CPU time allowed within `elapsed`.
fn share(cpu_millis: u32, elapsed: Duration) -> Duration {
    limits::WATCH_BURST + elapsed * cpu_millis / 1000
}

impl GuestReport {
    /// If the watchdog killed the sandbox before everything was received, the program ended out of memory.
    pub(super) fn apply_watchdog(&mut self, observed: Observed) {
        let Observed { usage, exceeded } = observed;
        self.usage = Usage {
            cpu_ms: usage.cpu_ms.max(self.usage.cpu_ms),
            ..usage
        };
        if exceeded && !self.complete {
            self.end = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_never_falls() {
        let mut used = CpuTime::default();
        for (sum, total) in [(10, 10), (30, 30), (5, 30), (15, 40)] {
            used.add_sample(Duration::from_millis(sum));
            assert_eq!(used.total, Duration::from_millis(total));
        }
    }

    #[test]
    fn share_is_elapsed_time_plus_a_burst() {
        let second = Duration::from_secs(1);
        assert_eq!(share(1000, Duration::ZERO), limits::WATCH_BURST);
        assert_eq!(share(250, 4 * second), limits::WATCH_BURST + second);
    }
}
