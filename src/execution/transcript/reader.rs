//! A reader of a transcript: a place in it, and what comes after that.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::{Bookmark, Phase, Stream, Told};
use crate::execution::{Execution, LogLine, Status};
use crate::limits;

/// Something that a reader has not heard yet.
#[derive(Clone, Debug, PartialEq)]
pub enum News {
    /// Where it stands.
    Status(Status),
    /// It printed something. Characters of UTF-8 are never cut.
    Printed {
        /// Where to.
        stream: Stream,
        /// What, at most [`limits::EVENT_BYTES_MAX`].
        bytes: Vec<u8>,
    },
    /// It logged something.
    Logged(LogLine),
    /// How it ended.
    Result(Arc<Execution>),
    /// There is nothing more to hear.
    End {
        /// Where the execution stands.
        status: Status,
        /// Why.
        reason: Reason,
    },
}

/// Why a reader hears nothing more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// All has been told.
    Finished,
    /// The process that tells it goes; another may go on from the same place.
    Shutdown,
}

/// The place is beyond what has been told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the execution has told less than that; send an id of its own events")]
pub struct TooFar;

/// Reads a transcript from a place on, at its own pace.
#[derive(Debug)]
pub struct Reader {
    told: watch::Receiver<Told>,
    over: CancellationToken,
    at: Bookmark,
    /// The last status that was told.
    status: Option<Status>,
    /// What comes before this moment is told together.
    pause_until: Option<Instant>,
}

impl Reader {
    pub(super) fn new(
        told: watch::Receiver<Told>,
        over: CancellationToken,
        at: Bookmark,
    ) -> Result<Self, TooFar> {
        let reaches = told.borrow().reaches(at);
        let reader = Self {
            told,
            over,
            at,
            status: None,
            pause_until: None,
        };
        reaches.then_some(reader).ok_or(TooFar)
    }

    /// The place after the last news.
    #[must_use]
    pub fn bookmark(&self) -> Bookmark {
        self.at
    }

    /// Where the execution stands now.
    #[must_use]
    pub fn status(&self) -> Status {
        self.told.borrow().status
    }

    /// Waits for what comes next; `None` after the end, or if who told it is gone without one. What comes in quick
    /// succession is told together. Nothing is lost if this is dropped.
    pub async fn next(&mut self) -> Option<News> {
        loop {
            if let Some(news) = self.take() {
                self.pause_until = Some(Instant::now() + limits::EVENTS_APART);
                return Some(news);
            }
            if self.at.phase == Phase::End || self.told.changed().await.is_err() {
                return None;
            }
            if let Some(until) = self.pause_until {
                tokio::select! {
                    () = sleep_until(until) => {}
                    () = self.over.cancelled() => {}
                }
            }
        }
    }

    /// Waits until the execution has ended; `None` if who told it is gone without an end.
    pub async fn ended(&mut self) -> Option<Arc<Execution>> {
        let told = self.told.wait_for(|told| told.end.is_some()).await.ok()?;
        told.end.clone()
    }

    /// What is new, if anything is.
    fn take(&mut self) -> Option<News> {
        let told = self.told.borrow_and_update();
        if self.at.phase <= Phase::Queued {
            let status = told.status;
            if self.status.replace(status) != Some(status) {
                let waits = status == Status::Queued;
                self.at.phase = if waits { Phase::Queued } else { Phase::Running };
                return Some(News::Status(status));
            }
        }
        for stream in [Stream::Stdout, Stream::Stderr] {
            let place = match stream {
                Stream::Stdout => &mut self.at.stdout,
                Stream::Stderr => &mut self.at.stderr,
            };
            let bytes = piece(after(told.printed(stream), *place), told.end.is_some());
            if !bytes.is_empty() {
                *place += bytes.len() as u64;
                let bytes = bytes.to_vec();
                return Some(News::Printed { stream, bytes });
            }
        }
        if let Some(line) = after(told.lines(), self.at.lines).first() {
            self.at.lines += 1;
            return Some(News::Logged(line.clone()));
        }
        let execution = told.end.as_ref()?;
        match self.at.phase {
            Phase::Start | Phase::Queued | Phase::Running => {
                self.at.phase = Phase::Result;
                Some(News::Result(Arc::clone(execution)))
            }
            Phase::Result => {
                self.at.phase = Phase::End;
                Some(News::End {
                    status: told.status,
                    reason: Reason::Finished,
                })
            }
            Phase::End => None,
        }
    }
}

impl Told {
    fn printed(&self, stream: Stream) -> &[u8] {
        let recorded = self.end.as_deref().map(|execution| &execution.outcome);
        match (recorded, stream) {
            (None, Stream::Stdout) => &self.stdout,
            (None, Stream::Stderr) => &self.stderr,
            (Some(None), _) => &[],
            (Some(Some(outcome)), Stream::Stdout) => &outcome.logs.stdout,
            (Some(Some(outcome)), Stream::Stderr) => &outcome.logs.stderr,
        }
    }

    fn lines(&self) -> &[LogLine] {
        match self.end.as_deref().map(|execution| &execution.outcome) {
            None => &self.lines,
            Some(None) => &[],
            Some(Some(outcome)) => &outcome.logs.lines,
        }
    }

    /// Whether anybody can have come to this place. Of an execution that was interrupted less may be known than was told.
    fn reaches(&self, at: Bookmark) -> bool {
        let has_ended = self.end.is_some();
        let is_lost = self.status == Status::Interrupted || (self.elsewhere && !has_ended);
        let is_within = at.stdout <= self.printed(Stream::Stdout).len() as u64
            && at.stderr <= self.printed(Stream::Stderr).len() as u64
            && at.lines <= self.lines().len() as u64;
        (is_within || is_lost) && (has_ended || at.phase < Phase::Result)
    }
}

/// What comes after so many.
fn after<T>(all: &[T], place: u64) -> &[T] {
    let place = usize::try_from(place).unwrap_or(usize::MAX);
    &all[place.min(all.len())..]
}

/// As much of `bytes` as is told at once: up to where a character may not have come whole, unless no more will come.
pub(super) fn piece(bytes: &[u8], is_all: bool) -> &[u8] {
    if is_all && bytes.len() <= limits::EVENT_BYTES_MAX {
        return bytes;
    }
    let bytes = &bytes[..bytes.len().min(limits::EVENT_BYTES_MAX)];
    // No character has more than four bytes, so whether the last one is whole is seen from these.
    for length in 1..=bytes.len().min(3) {
        let (before, last) = bytes.split_at(bytes.len() - length);
        if last[0] & 0b1100_0000 == 0b1000_0000 {
            continue;
        }
        return match std::str::from_utf8(last) {
            Err(error) if error.error_len().is_none() => before,
            Ok(_) | Err(_) => bytes,
        };
    }
    bytes
}
