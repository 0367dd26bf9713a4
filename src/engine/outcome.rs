//! Outcomes of executions.

use crate::engine::missing_file::lacked_file;
use crate::engine::missing_package::missing_package;
use crate::engine::network_use::lacked_network;
use crate::engine::{clock, failure};
use crate::error::{Code, Error};
use crate::execution::{self, Failure, NewExecution, Outcome, Status, Timings, milliseconds};
use crate::limits;
use crate::sandbox::{Completion, Job, ProgramOutput, Report};

/// The outcome of an execution without a report.
pub(super) fn failed(error: &Error) -> Outcome {
    // The record does not have all of it.
    if let Some(cause) = error.hidden() {
        tracing::warn!(cause, "Execution failed: {}", error.public_message());
    }
    without_report(
        Status::Failed,
        Failure {
            code: error.code().as_str().to_owned(),
            message: error.public_message().to_owned(),
            exception: None,
        },
    )
}

/// The outcome of a queued execution that was rejected when it got its slot.
pub(super) fn rejected(error: &Error) -> Outcome {
    let is_policy = matches!(
        error.code(),
        Code::Invalid
            | Code::Forbidden
            | Code::NotFound
            | Code::Conflict
            | Code::TooLarge
            | Code::StorageFull
    );
    Outcome {
        status: if is_policy { Status::Denied } else { Status::Failed },
        ..failed(error)
    }
}

/// The outcome of an execution that was cancelled in the queue.
pub(super) fn cancelled() -> Outcome {
    without_report(
        Status::Cancelled,
        Failure {
            code: "cancelled".to_owned(),
            message: "the execution was cancelled in the queue".to_owned(),
            exception: None,
        },
    )
}

/// The outcome of an execution whose real outcome could not be recorded.
pub(super) fn unsaved() -> Outcome {
    without_report(
        Status::Interrupted,
        Failure {
            code: "interrupted".to_owned(),
            message: "the execution ended, but its outcome could not be recorded; run it again".to_owned(),
            exception: None,
        },
    )
}

fn without_report(status: Status, error: Failure) -> Outcome {
    Outcome {
        error: Some(error),
        ..Outcome::bare(status, clock::now())
    }
}

/// O-16: unavailable files are not listed, and the execution is not a success.
pub(super) fn without_artifacts(outcome: Outcome, error: &Error) -> Outcome {
    let message = format!("the program's files could not be stored: {error}");
    Outcome {
        status: if outcome.status == Status::Success {
            Status::Failed
        } else {
            outcome.status
        },
        error: Some(match outcome.error {
            Some(failure) => Failure {
                message: format!("{}; {message}", failure.message),
                ..failure
            },
            None => Failure {
                code: "artifacts_not_stored".to_owned(),
                message,
                exception: None,
            },
        }),
        files: Vec::new(),
        ..outcome
    }
}

/// Says of a limit that ended the program whether more was asked for.
pub(super) fn name_cuts(mut outcome: Outcome, new: &NewExecution) -> Outcome {
    let limits = new.limits();
    let cut = match outcome.status {
        Status::Oom => limits.memory_cut(),
        Status::Timeout => limits.timeout_cut(),
        _ => None,
    };
    if let Some((error, cut)) = outcome.error.as_mut().zip(cut) {
        error.message = format!("{} ({cut})", error.message);
    }
    outcome
}

fn what_was_printed(report: &Report) -> &'static str {
    match (&report.logs.stderr[..], &report.logs.stdout[..]) {
        ([], []) => "stdout and stderr are empty",
        ([], _) => "see its stdout",
        (_, _) => "see its stderr",
    }
}

/// The status, and the failure if it is not `success`.
fn classify(report: &Report, job: &Job, shutting_down: bool) -> (Status, Option<Failure>) {
    let granted = &job.sandbox.limits;
    let (status, code, message) = match (&report.end, &report.output) {
        (Completion::Exited(0), ProgramOutput::Missing | ProgramOutput::Json(_)) => {
            return (Status::Success, None);
        }
        (Completion::Exited(0), ProgramOutput::Invalid(reason)) => {
            (Status::Failed, "output_invalid", reason.clone())
        }
        (Completion::Exited(0), ProgramOutput::TooLarge(bytes)) => {
            let max = limits::OUTPUT_BYTES_MAX;
            let message = format!("output.json has {bytes} bytes, the limit is {max}; write files instead");
            (Status::Failed, "output_too_large", message)
        }
        (Completion::Exited(1), _) if report.shown.raised.is_some() => {
            return (Status::Failed, report.shown.raised.clone().map(Failure::from));
        }
        (Completion::Exited(code), _) => {
            let said = what_was_printed(report);
            let message = format!("the program exited with code {code}; {said}");
            (Status::Failed, "exit_code", message)
        }
        (Completion::Signaled(signal), _) => {
            let message = format!("the program was killed by signal {signal}");
            (Status::Failed, "signal", message)
        }
        (Completion::TimedOut, _) => {
            let seconds = granted.timeout.as_secs_f64();
            let message = format!("the program ran longer than its {seconds} s");
            (Status::Timeout, "timeout", message)
        }
        (Completion::OutOfMemory, _) => {
            let message = format!("out of memory: limit {}", execution::size(granted.memory_bytes));
            (Status::Oom, "oom", message)
        }
        (Completion::Cancelled, _) if shutting_down => {
            let message = "interrupted by Ctrl-C, a signal or a shutdown of Skillbox".to_owned();
            (Status::Interrupted, "interrupted", message)
        }
        (Completion::Cancelled, _) => {
            let message = "the execution was cancelled".to_owned();
            (Status::Cancelled, "cancelled", message)
        }
        (Completion::NotStarted(reason), _) => (Status::Failed, "start_failed", reason.clone()),
        (Completion::NotStored, _) => (
            Status::Failed,
            "storage_full",
            failure::storage_full().to_string(),
        ),
        (Completion::EngineLost(reason), _) => (Status::Failed, "sandbox_unavailable", reason.clone()),
        (Completion::Lost(reason), _) => (Status::Interrupted, "sandbox_lost", reason.clone()),
    };
    let code = code.to_owned();
    // P9: truncation is reported; a lost sandbox has a failure of its own.
    let message = if report.complete || matches!(report.end, Completion::Lost(_) | Completion::EngineLost(_))
    {
        message
    } else {
        format!("{message}; its results are incomplete")
    };
    let exception = None;
    (
        status,
        Some(Failure {
            code,
            message,
            exception,
        }),
    )
}

/// Says how to get the package that a program lacked.
fn name_missing_package(failure: Failure, report: &Report, job: &Job) -> Failure {
    let Some(package) = missing_package(&failure, &report.logs.stderr) else {
        return failure;
    };
    let declare = match &job.sandbox.skill {
        // A published one.
        Some(skill) if job.recurs => {
            let name = &skill.name;
            format!(
                "add {package} to the skill with `skillbox skill requirements {name} add {package}`, or to one run"
            )
        }
        Some(_) => format!("declare {package} in the skill's package list, or add it"),
        None => "add it".to_owned(),
    };
    Failure {
        message: format!(
            "{}; {declare} with `--requirement {package}` (`requirements` of a request)",
            failure.message
        ),
        ..failure
    }
}

pub(super) fn from_report(report: Report, job: &Job, shutting_down: bool) -> Outcome {
    let (status, error) = classify(&report, job, shutting_down);
    let error = error.map(|failure| {
        let advice = if lacked_network(&failure, &report.logs.stderr) {
            "programs have no network, see `skillbox help sandbox`"
        } else if lacked_file(&failure, &report.logs.stderr) {
            "programs see only the files of their request: send it with `--file PATH` (`files` of a request)"
        } else {
            return name_missing_package(failure, &report, job);
        };
        let message = format!("{}; {advice}", failure.message);
        Failure { message, ..failure }
    });
    let exit_code = if let Completion::Exited(code) = report.end {
        Some(code)
    } else {
        None
    };
    // Regardless of the status: a program that was killed may have written its complete output (O-20).
    let output = if let ProgramOutput::Json(text) = report.output {
        Some(text)
    } else {
        None
    };
    Outcome {
        status,
        error,
        exit_code,
        output,
        results: report.shown.results,
        results_truncated: report.shown.truncated,
        logs: report.logs,
        files: report.files,
        skipped: report.skipped,
        skipped_total: report.skipped_total,
        blobs: Vec::new(),
        usage: report.usage,
        timings: Timings {
            queue_ms: 0.0,
            sandbox_ms: milliseconds(report.sandbox_time),
            run_ms: milliseconds(report.run_time),
            collect_ms: milliseconds(report.collect_time),
            warm: report.warm,
        },
        finished_at: clock::now(),
    }
}
