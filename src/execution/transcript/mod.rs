//! What one execution has told so far: kept once, bounded, and read by any number of readers that hold nothing but a place in
//! it. A reader that is slow costs nothing; one that comes late, or again, misses nothing.

mod bookmark;
mod reader;

use std::sync::Arc;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::execution::{Execution, LogLine, Status};
use crate::limits;

pub use bookmark::{Bookmark, InvalidBookmark, Phase};
pub use reader::{News, Reader, Reason, TooFar};

/// One of the two that a program prints to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// The one who writes it. When this is dropped before the [`end`](Self::end), its readers are told that nothing more comes.
#[derive(Debug)]
pub struct Transcript {
    told: watch::Sender<Told>,
    over: CancellationToken,
}

/// All that was told.
#[derive(Debug)]
struct Told {
    status: Status,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    lines: Vec<LogLine>,
    /// What was recorded in the end: from then on it stands for all of the above.
    end: Option<Arc<Execution>>,
    /// Whether more may have been told than is known here.
    elsewhere: bool,
}

impl Default for Transcript {
    /// Of an execution that runs and has told nothing.
    fn default() -> Self {
        let told = Told {
            status: Status::Running,
            stdout: Vec::new(),
            stderr: Vec::new(),
            lines: Vec::new(),
            end: None,
            elsewhere: false,
        };
        Self {
            told: watch::Sender::new(told),
            over: CancellationToken::new(),
        }
    }
}

impl Transcript {
    /// Of an execution that is not ours: what it told is not known, but its end will be.
    #[must_use]
    pub fn elsewhere() -> Self {
        let transcript = Self::default();
        transcript.told.send_modify(|told| told.elsewhere = true);
        transcript
    }

    /// Tells where the execution stands.
    pub fn stands(&self, status: Status) {
        self.told
            .send_if_modified(|told| std::mem::replace(&mut told.status, status) != status);
    }

    /// Tells what was printed, up to [`limits::LOG_BYTES_MAX`]; it must be the beginning of what will be recorded.
    pub fn print(&self, stream: Stream, bytes: &[u8]) {
        self.told.send_if_modified(|told| {
            let printed = match stream {
                Stream::Stdout => &mut told.stdout,
                Stream::Stderr => &mut told.stderr,
            };
            let max = usize::try_from(limits::LOG_BYTES_MAX).unwrap_or(usize::MAX);
            let taken = bytes.len().min(max.saturating_sub(printed.len()));
            printed.extend_from_slice(&bytes[..taken]);
            taken > 0
        });
    }

    /// Tells a line that was logged, up to [`limits::LOG_LINES_MAX`] of them; as for [`print`](Self::print).
    pub fn log(&self, line: LogLine) {
        self.told.send_if_modified(|told| {
            let fits = told.lines.len() < limits::LOG_LINES_MAX;
            if fits {
                told.lines.push(line);
            }
            fits
        });
    }

    /// Tells how it ended, as recorded.
    pub fn end(&self, execution: Execution) {
        self.told.send_modify(|told| {
            (told.stdout, told.stderr, told.lines) = Default::default();
            told.status = execution.status;
            told.end = Some(Arc::new(execution));
        });
        self.over.cancel();
    }

    /// Whether anybody reads it.
    #[must_use]
    pub fn is_read(&self) -> bool {
        self.told.receiver_count() > 0
    }

    /// A reader that goes on from `from`.
    ///
    /// # Errors
    ///
    /// The place is beyond what has been told.
    pub fn reader(&self, from: Bookmark) -> Result<Reader, TooFar> {
        Reader::new(self.told.subscribe(), self.over.clone(), from)
    }
}

#[cfg(test)]
mod tests;
