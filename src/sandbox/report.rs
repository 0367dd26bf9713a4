//! Converts the guest's report to the result of a job, for every backend.

use tokio::time::Instant;

use crate::guest::wire;
use crate::sandbox::protocol::GuestReport;
use crate::sandbox::{Completion, Report};

/// A guest without a final report counts as lost; the backend may know the cause.
pub(super) fn report(guest_report: GuestReport, requested_at: Instant) -> Report {
    let now = Instant::now();
    let started_at = guest_report.started_at.unwrap_or(now);
    let ended_at = guest_report.ended_at.unwrap_or(now).max(started_at);
    let out_of_memory = guest_report.usage.oom_kills > 0;
    let lost = || {
        if guest_report.not_stored {
            Completion::NotStored
        } else {
            Completion::Lost("the sandbox's results are incomplete".to_owned())
        }
    };
    let end = match guest_report.end {
        Some(wire::ProgramEnd::Exited(_) | wire::ProgramEnd::Signaled(_)) if !guest_report.complete => lost(),
        Some(wire::ProgramEnd::Exited(code)) => Completion::Exited(code),
        Some(wire::ProgramEnd::Signaled(9)) if out_of_memory => Completion::OutOfMemory,
        Some(wire::ProgramEnd::Signaled(signal)) => Completion::Signaled(signal),
        Some(wire::ProgramEnd::TimedOut) => Completion::TimedOut,
        Some(wire::ProgramEnd::Cancelled) => Completion::Cancelled,
        Some(wire::ProgramEnd::NotStarted(reason)) => Completion::NotStarted(reason),
        None => lost(),
    };
    Report {
        end,
        output: guest_report.output,
        shown: guest_report.shown,
        logs: guest_report.logs,
        files: guest_report.files,
        skipped: guest_report.skipped,
        skipped_total: guest_report.skipped_total,
        blobs: guest_report.blobs,
        // A program that never started has no results.
        complete: guest_report.complete || guest_report.started_at.is_none(),
        usage: guest_report.usage,
        sandbox_time: started_at.saturating_duration_since(requested_at),
        run_time: ended_at - started_at,
        collect_time: now - ended_at,
        warm: guest_report.warm,
    }
}
