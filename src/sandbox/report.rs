//! From what was heard of a guest to a report: the same for every backend.

use tokio::time::Instant;

use crate::guest::wire;
use crate::sandbox::session::Heard;
use crate::sandbox::{End, Report};

/// Tells what was heard. A guest that never said how its program ended counts as lost; its backend may know better.
pub(super) fn report(heard: Heard, asked_at: Instant) -> Report {
    let now = Instant::now();
    let started_at = heard.started_at.unwrap_or(now);
    let ended_at = heard.ended_at.unwrap_or(now).max(started_at);
    let out_of_memory = heard.usage.oom_kills > 0;
    let lost = || End::Lost("not all of the sandbox's results could be read".to_owned());
    let end = match heard.end {
        Some(wire::End::Exited(_) | wire::End::Signaled(_)) if !heard.complete => lost(),
        Some(wire::End::Exited(code)) => End::Exited(code),
        Some(wire::End::Signaled(9)) if out_of_memory => End::OutOfMemory,
        Some(wire::End::Signaled(signal)) => End::Signaled(signal),
        Some(wire::End::TimedOut) => End::TimedOut,
        Some(wire::End::Cancelled) => End::Cancelled,
        Some(wire::End::NotStarted(reason)) => End::NotStarted(reason),
        None => lost(),
    };
    Report {
        end,
        output: heard.output,
        shown: heard.shown,
        logs: heard.logs,
        files: heard.files,
        skipped: heard.skipped,
        skipped_total: heard.skipped_total,
        blobs: heard.blobs,
        // What never started has left nothing.
        complete: heard.complete || heard.started_at.is_none(),
        usage: heard.usage,
        sandbox_time: started_at.saturating_duration_since(asked_at),
        run_time: ended_at - started_at,
        collect_time: now - ended_at,
        warm: heard.warm,
    }
}
