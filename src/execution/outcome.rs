//! How an execution ended, and everything that is told about it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::execution::{Exception, JsonText, LogLine, RichResult};
use crate::ids::Digest;

/// The state of an execution. All but the first two are final, and there is exactly one final state per execution.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Waits for a slot.
    Queued,
    /// Has a sandbox.
    Running,
    /// The program exited with 0 and its output, if any, is valid.
    Success,
    /// The program failed, or its output is not valid.
    Failed,
    /// The deadline passed.
    Timeout,
    /// The program's main process was killed for want of memory.
    Oom,
    /// Somebody cancelled it.
    Cancelled,
    /// Refused by policy after it was recorded.
    Denied,
    /// The server stopped or lost the sandbox while it ran.
    Interrupted,
}

impl Status {
    /// Every status.
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

    /// The name in the API and the store.
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

    /// The status of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == name)
    }

    /// Whether nothing can change it any more.
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

/// Why an execution is not a `success`: a stable code and a sentence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Failure {
    /// `exception`, `output_not_json`, `exit_code`, `signal`, `output_invalid`, `output_too_large`, `start_failed`, `timeout`, `oom`, `cancelled`, `interrupted`, `sandbox_lost`, `artifacts_not_stored`, `sandbox_unavailable`, `storage_full`, `internal`.
    pub code: String,
    /// What happened and what to do.
    pub message: String,
    /// `name`, `value` and `traceback`, where called code raised an exception.
    #[serde(flatten)]
    #[schema(value_type = ExceptionIfAny)]
    pub exception: Option<Exception>,
}

/// Where called code raised an exception: all of it, or nothing.
#[derive(utoipa::ToSchema)]
#[expect(dead_code, reason = "a description, of which no value is ever made")]
struct ExceptionIfAny {
    /// Its type, such as `ZeroDivisionError`.
    name: Option<String>,
    /// What it says.
    value: Option<String>,
    /// Where it came from, without our own frames.
    traceback: Option<String>,
}

/// What was kept of the program's two streams and its log. The head is kept, exact up to the cap.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Logs {
    /// Standard output, as bytes: it need not be UTF-8.
    pub stdout: Vec<u8>,
    /// Standard error, as bytes.
    pub stderr: Vec<u8>,
    /// Bytes the program wrote to standard output in all; one more than was kept where nobody could count them.
    pub stdout_total: u64,
    /// As for standard output.
    pub stderr_total: u64,
    /// What it logged by the helper `log`.
    pub lines: Vec<LogLine>,
    /// Whether it logged more than `lines`.
    pub lines_truncated: bool,
}

impl Logs {
    /// Takes what was kept of the log, of so many bytes in all; a line that was cut short is none.
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

    /// Whether anything was left out of the streams.
    #[must_use]
    pub fn truncated(&self) -> bool {
        self.stdout_total > self.stdout.len() as u64 || self.stderr_total > self.stderr.len() as u64
    }
}

/// One file artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Path below `out/files`, `/`-separated. Backslashes and bytes that are not UTF-8 are written `\xNN`.
    pub path: String,
    /// Size in bytes.
    pub size: u64,
    /// Digest of the content.
    pub sha256: Digest,
    /// Where the content starts in the execution's tar object, in bytes.
    pub offset: u64,
}

/// A blob that a program made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct OutputBlob {
    /// Its id: the digest of its content.
    #[schema(value_type = String, example = "sha256:…")]
    pub blob_id: Digest,
    /// Size in bytes.
    pub size: u64,
}

/// A file that was written but not collected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Skipped {
    /// As in [`FileEntry::path`]; the head of one that is too long.
    pub path: String,
    /// `link`, `special`, `too_large`, `too_many`, `too_deep`, `unreadable`, `duplicate`, or `name` if its path is too long. Of a
    /// blob also `name` or `content` if the one is not the digest of the other, `quota`, or `not_stored`.
    pub reason: String,
}

/// What the sandbox used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Usage {
    /// CPU time of the whole sandbox, in milliseconds.
    pub cpu_ms: u64,
    /// Highest memory use, in bytes; 0 where the host cannot tell.
    pub memory_peak_bytes: u64,
    /// Most processes at once; 0 where the host cannot tell.
    pub processes_peak: u64,
    /// Processes of the sandbox that were killed for want of memory.
    pub oom_kills: u64,
}

/// Where the time went, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Timings {
    /// Waiting for a slot.
    pub queue_ms: f64,
    /// Making the sandbox until the program was started.
    pub sandbox_ms: f64,
    /// The program itself.
    pub run_ms: f64,
    /// Reading back output and files.
    pub collect_ms: f64,
    /// Whether the sandbox had been made before, and Python or Node.js, if it runs, been started.
    #[serde(default)]
    pub warm: bool,
}

/// A span in milliseconds, to the microsecond: a longer fraction is noise to read, and is not read back as it was written.
#[must_use]
pub fn milliseconds(span: Duration) -> f64 {
    (span.as_secs_f64() * 1_000_000.0).round() / 1000.0
}

/// The end of an execution as it is recorded, once.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// A final status.
    pub status: Status,
    /// Why it is not a success.
    pub error: Option<Failure>,
    /// The exit code, where the program exited by itself.
    pub exit_code: Option<i32>,
    /// The output, where it is valid; kept whatever the status.
    pub output: Option<JsonText>,
    /// What called code has shown.
    pub results: Vec<RichResult>,
    /// Whether it has shown more.
    pub results_truncated: bool,
    /// The two streams.
    pub logs: Logs,
    /// Files in the execution's tar object.
    pub files: Vec<FileEntry>,
    /// The first files that were not collected.
    pub skipped: Vec<Skipped>,
    /// How many files were not collected in all.
    pub skipped_total: u64,
    /// Blobs that were stored.
    pub blobs: Vec<OutputBlob>,
    /// What was used.
    pub usage: Usage,
    /// Where the time went.
    pub timings: Timings,
    /// When it ended.
    pub finished_at: jiff::Timestamp,
}

impl Outcome {
    /// An end of which nothing else is known.
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
