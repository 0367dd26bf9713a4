//! Outcomes of executions.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::execution::{Arrivals, Exception, JsonText, LogLine, RichResult};
use crate::ids::Digest;

/// State of an execution. All but the first two are final, and an execution has exactly one final state.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Waits for a slot.
    Queued,
    /// Has a sandbox.
    Running,
    /// The program exited with 0 and its output, if any, is valid.
    Success,
    /// The program failed, or its output is invalid.
    Failed,
    /// The deadline passed.
    Timeout,
    /// The main process was killed because the sandbox was out of memory.
    Oom,
    /// Cancelled by a caller.
    Cancelled,
    /// Rejected by policy after it was recorded.
    Denied,
    /// The server stopped or lost the sandbox.
    Interrupted,
}

impl Status {
    pub const ALL: [Self; 9] = [
        Self::Queued,
        Self::Running,
        Self::Success,
        Self::Failed,
        Self::Timeout,
        Self::Oom,
        Self::Cancelled,
        Self::Denied,
        Self::Interrupted,
    ];

    /// Name in the API and the store.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Success => "success",
            Self::Failed => "failed",
            Self::Timeout => "timeout",
            Self::Oom => "oom",
            Self::Cancelled => "cancelled",
            Self::Denied => "denied",
            Self::Interrupted => "interrupted",
        }
    }

    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == name)
    }

    #[must_use]
    pub const fn is_final(self) -> bool {
        !matches!(self, Self::Queued | Self::Running)
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why an execution is not a `success`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Failure {
    /// `exception`, `output_not_json`, `exit_code`, `signal`, `output_invalid`, `output_too_large`, `start_failed`, `timeout`, `oom`, `cancelled`, `interrupted`, `sandbox_lost`, `artifacts_not_stored`, `sandbox_unavailable`, `storage_full`, `internal`.
    pub code: String,
    /// What happened and what to do.
    pub message: String,
    /// The exception of called code.
    #[serde(flatten)]
    #[schema(value_type = ExceptionIfAny)]
    pub exception: Option<Exception>,
}

/// All of it or nothing.
#[derive(utoipa::ToSchema)]
#[expect(dead_code, reason = "a description, of which no value is ever made")]
struct ExceptionIfAny {
    /// Type, such as `ZeroDivisionError`.
    name: Option<String>,
    /// Message.
    value: Option<String>,
    /// Traceback without our own frames.
    traceback: Option<String>,
}

/// Recorded streams and log of a program: the start, exact up to the limit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Logs {
    /// Standard output; may be invalid UTF-8.
    pub stdout: Vec<u8>,
    /// Standard error; may be invalid UTF-8.
    pub stderr: Vec<u8>,
    /// Bytes written to standard output; one more than recorded if the number is unknown.
    pub stdout_total: u64,
    /// Bytes written to standard error; see `stdout_total`.
    pub stderr_total: u64,
    /// Lines of the helper `log`.
    pub lines: Vec<LogLine>,
    /// Whether further lines were discarded.
    pub lines_truncated: bool,
    /// When parts arrived; empty for executions of earlier releases.
    pub arrivals: Arrivals,
}

impl Logs {
    /// Parses the recorded part of a log with this total size; a truncated line is dropped.
    pub fn take_lines(&mut self, kept: &[u8], total: u64) {
        let cut = total > kept.len() as u64;
        let end = kept.iter().rposition(|byte| *byte == b'\n');
        let whole = if cut { &kept[..end.unwrap_or(0)] } else { kept };
        self.lines = LogLine::parse_all(whole);
        let count = whole
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .count();
        self.lines_truncated = cut || count > self.lines.len();
    }

    /// Whether output was discarded.
    #[must_use]
    pub fn truncated(&self) -> bool {
        self.stdout_total > self.stdout.len() as u64 || self.stderr_total > self.stderr.len() as u64
    }
}

/// A file artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Path below `out/files` with `/`. Backslashes and invalid UTF-8 are written `\xNN`.
    pub path: String,
    /// Size in bytes.
    pub size: u64,
    /// Digest of the content.
    pub sha256: Digest,
    /// Offset of the content in the execution's tar.
    pub offset: u64,
}

/// A blob that a program returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct OutputBlob {
    /// Digest of the content.
    #[schema(value_type = String, format = "digest", example = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")]
    pub blob_id: Digest,
    /// Size in bytes.
    pub size: u64,
}

/// A file that was written but not collected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Skipped {
    /// As in [`FileEntry::path`]; the start of a long path.
    pub path: String,
    /// `link`, `special`, `too_large`, `too_many`, `too_deep`, `unreadable`, `duplicate`, or `name` if its path is
    /// too long. For a blob also `name` or `content` if the name is not the digest of the content, `quota`, or
    /// `not_stored`.
    pub reason: String,
}

/// Resource usage of a sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Usage {
    /// CPU time in milliseconds.
    pub cpu_ms: u64,
    /// Peak memory in bytes; 0 if unknown.
    pub memory_peak_bytes: u64,
    /// Peak number of processes; 0 if unknown.
    pub processes_peak: u64,
    /// Processes killed because the sandbox was out of memory.
    pub oom_kills: u64,
}

/// Duration of each phase in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Timings {
    /// Waiting for a slot.
    pub queue_ms: f64,
    /// Creating the sandbox, until the program was started.
    pub sandbox_ms: f64,
    /// Running the program.
    pub run_ms: f64,
    /// Receiving output and files.
    pub collect_ms: f64,
    /// Whether a warm sandbox was used.
    #[serde(default)]
    pub warm: bool,
}

/// Milliseconds with microsecond precision, which is stored without loss.
#[must_use]
pub fn milliseconds(span: Duration) -> f64 {
    (span.as_secs_f64() * 1_000_000.0).round() / 1000.0
}

/// The recorded end of an execution.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// A final status.
    pub status: Status,
    /// Why it is not a success.
    pub error: Option<Failure>,
    /// Exit code, if the program exited by itself.
    pub exit_code: Option<i32>,
    /// The output if it is valid, whatever the status.
    pub output: Option<JsonText>,
    pub results: Vec<RichResult>,
    /// Whether results were discarded.
    pub results_truncated: bool,
    pub logs: Logs,
    /// Files in the execution's tar.
    pub files: Vec<FileEntry>,
    /// First files that were not collected.
    pub skipped: Vec<Skipped>,
    /// Number of files that were not collected.
    pub skipped_total: u64,
    /// Stored blobs.
    pub blobs: Vec<OutputBlob>,
    pub usage: Usage,
    pub timings: Timings,
    pub finished_at: jiff::Timestamp,
}

impl Outcome {
    /// An outcome with a status only.
    #[must_use]
    pub fn bare(status: Status, finished_at: jiff::Timestamp) -> Self {
        Self {
            status,
            error: None,
            exit_code: None,
            output: None,
            results: Vec::new(),
            results_truncated: false,
            logs: Logs::default(),
            files: Vec::new(),
            skipped: Vec::new(),
            skipped_total: 0,
            blobs: Vec::new(),
            usage: Usage::default(),
            timings: Timings::default(),
            finished_at,
        }
    }
}
