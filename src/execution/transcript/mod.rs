//! The transcript of a running execution: stored once, limited, and followed by any number of readers, each of which
//! is only a position. Slow and late readers miss nothing.

mod bookmark;
mod reader;

use std::sync::Arc;

use jiff::Timestamp;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::execution::{Arrivals, Execution, LogLine, LogSource, Logs, Status};
use crate::limits;

pub use bookmark::{Bookmark, InvalidBookmark, Phase};
pub use reader::{BeyondEnd, Reader, Reason, TranscriptEvent};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    Stdout,
    Stderr,
}

impl From<Stream> for LogSource {
    fn from(stream: Stream) -> Self {
        match stream {
            Stream::Stdout => Self::Stdout,
            Stream::Stderr => Self::Stderr,
        }
    }
}

/// The writer. If dropped before [`end`](Self::end), readers are notified that no more events follow.
#[derive(Debug)]
pub struct Transcript {
    told: watch::Sender<Told>,
    over: CancellationToken,
}

/// Events so far.
#[derive(Debug)]
struct Told {
    status: Status,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    lines: Vec<LogLine>,
    arrivals: Arrivals,
    /// The recorded execution, which replaces the events.
    end: Option<Arc<Execution>>,
    /// Whether another process may have sent more events.
    of_other_process: bool,
}

impl Default for Transcript {
    /// Of a running execution, without events.
    fn default() -> Self {
        let told = Told {
            status: Status::Running,
            stdout: Vec::new(),
            stderr: Vec::new(),
            lines: Vec::new(),
            arrivals: Arrivals::default(),
            end: None,
            of_other_process: false,
        };
        Self {
            told: watch::Sender::new(told),
            over: CancellationToken::new(),
        }
    }
}

impl Transcript {
    /// Of an execution in another process, of which only the end will be known.
    #[must_use]
    pub fn of_other_process() -> Self {
        let transcript = Self::default();
        transcript.told.send_modify(|told| told.of_other_process = true);
        transcript
    }

    /// Sends a state.
    pub fn set_status(&self, status: Status) {
        self.told
            .send_if_modified(|told| std::mem::replace(&mut told.status, status) != status);
    }

    /// Sends output up to [`limits::LOG_BYTES_MAX`]. It must be the start of the recorded output.
    pub fn print(&self, stream: Stream, bytes: &[u8]) {
        self.told.send_if_modified(|told| {
            let printed = match stream {
                Stream::Stdout => &mut told.stdout,
                Stream::Stderr => &mut told.stderr,
            };
            let max = usize::try_from(limits::LOG_BYTES_MAX).unwrap_or(usize::MAX);
            let taken = bytes.len().min(max.saturating_sub(printed.len()));
            printed.extend_from_slice(&bytes[..taken]);
            told.arrivals.add(stream.into(), taken as u64, Timestamp::now());
            taken > 0
        });
    }

    /// Sends a log line, up to [`limits::LOG_LINES_MAX`]. It must be the start of the recorded log.
    pub fn log(&self, line: LogLine) {
        self.told.send_if_modified(|told| {
            let fits = told.lines.len() < limits::LOG_LINES_MAX;
            if fits {
                told.lines.push(line);
                told.arrivals.add(LogSource::Log, 1, Timestamp::now());
            }
            fits
        });
    }

    /// When the parts of `logs` arrived. Since events are a prefix of the record, positions in both are the same; what was
    /// held back until the end arrives at the end.
    #[must_use]
    pub fn arrivals(&self, logs: &Logs, end: Timestamp) -> Arrivals {
        let mut arrivals = self.told.borrow().arrivals.clone();
        arrivals.complete(logs, end);
        arrivals
    }

    /// Sends the recorded outcome.
    pub fn end(&self, execution: Execution) {
        self.told.send_modify(|told| {
            (told.stdout, told.stderr, told.lines, told.arrivals) = Default::default();
            told.status = execution.status;
            told.end = Some(Arc::new(execution));
        });
        self.over.cancel();
    }

    /// Whether it has readers.
    #[must_use]
    pub fn is_read(&self) -> bool {
        self.told.receiver_count() > 0
    }

    /// A reader from a position on; an error if the position is beyond the transcript.
    pub fn reader(&self, from: Bookmark) -> Result<Reader, BeyondEnd> {
        Reader::new(self.told.subscribe(), self.over.clone(), from)
    }
}

#[cfg(test)]
mod tests;
