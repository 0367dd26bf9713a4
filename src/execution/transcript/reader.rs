//! Follows a transcript from a position.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::{Bookmark, Phase, Stream, Told};
use crate::execution::{ArrivalCursor, Arrivals, Execution, LogLine, LogSource, Status};
use crate::limits;

/// An event for a reader.
#[derive(Clone, Debug, PartialEq)]
pub enum TranscriptEvent {
    /// A changed state.
    Status(Status),
    /// Output. UTF-8 characters are never split.
    Printed {
        stream: Stream,
        /// At most [`limits::EVENT_BYTES_MAX`].
        bytes: Vec<u8>,
    },
    /// A log line.
    Logged(LogLine),
    /// The outcome.
    Result(Arc<Execution>),
    /// The last event.
    End { status: Status, reason: Reason },
}

/// Why no more events follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The execution has ended.
    Finished,
    /// The process stops; another may continue from the same position.
    Shutdown,
}

/// The position is beyond the transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the execution has fewer events; send the id of one of its events")]
pub struct BeyondEnd;

/// Reads at its own pace.
#[derive(Debug)]
pub struct Reader {
    told: watch::Receiver<Told>,
    over: CancellationToken,
    at: Bookmark,
    cursor: ArrivalCursor,
    /// The last status that was returned.
    status: Option<Status>,
    /// Output before this time is collected into one event.
    pause_until: Option<Instant>,
}

impl Reader {
    pub(super) fn new(
        told: watch::Receiver<Told>,
        over: CancellationToken,
        at: Bookmark,
    ) -> Result<Self, BeyondEnd> {
        let reaches = told.borrow().reaches(at);
        let reader = Self {
            told,
            over,
            at,
            cursor: ArrivalCursor::default(),
            status: None,
            pause_until: None,
        };
        reaches.then_some(reader).ok_or(BeyondEnd)
    }

    /// The position after the last event.
    #[must_use]
    pub fn bookmark(&self) -> Bookmark {
        self.at
    }

    /// The current state.
    #[must_use]
    pub fn status(&self) -> Status {
        self.told.borrow().status
    }

    /// The next event; `None` after the end, or if the writer was dropped. Events in quick succession are combined.
    /// Cancel-safe.
    pub async fn next(&mut self) -> Option<TranscriptEvent> {
        loop {
            if let Some(event) = self.take() {
                self.pause_until = Some(Instant::now() + limits::EVENTS_APART);
                return Some(event);
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

    /// Waits for the end; `None` if the writer was dropped before.
    pub async fn ended(&mut self) -> Option<Arc<Execution>> {
        let told = self.told.wait_for(|told| told.end.is_some()).await.ok()?;
        told.end.clone()
    }

    /// The next event, if one is available.
    fn take(&mut self) -> Option<TranscriptEvent> {
        let told = self.told.borrow_and_update();
        if self.at.phase <= Phase::Queued {
            let status = told.status;
            if self.status.replace(status) != Some(status) {
                let waits = status == Status::Queued;
                self.at.phase = if waits { Phase::Queued } else { Phase::Running };
                return Some(TranscriptEvent::Status(status));
            }
        }
        let read = [self.at.stdout, self.at.stderr, self.at.lines];
        let arrived = told.arrivals().next(&mut self.cursor, read);
        // A character that is split between two parts belongs to the first.
        let first = arrived.map(|(source, count)| (source, count.saturating_add(CHARACTER_BYTES_MAX)));
        let others = LogSource::ALL.map(|source| (source, u64::MAX));
        for (source, count) in arrived.into_iter().chain(first).chain(others) {
            if let Some(event) = self.at.take(source, count, &told) {
                return Some(event);
            }
        }
        let execution = told.end.as_ref()?;
        match self.at.phase {
            Phase::Start | Phase::Queued | Phase::Running => {
                self.at.phase = Phase::Result;
                Some(TranscriptEvent::Result(Arc::clone(execution)))
            }
            Phase::Result => {
                self.at.phase = Phase::End;
                Some(TranscriptEvent::End {
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

    fn arrivals(&self) -> &Arrivals {
        const NONE: &Arrivals = &Arrivals::NONE;
        match self.end.as_deref().map(|execution| &execution.outcome) {
            None => &self.arrivals,
            Some(None) => NONE,
            Some(Some(outcome)) => &outcome.logs.arrivals,
        }
    }

    /// Whether a reader can have reached this position. After an interruption, less may be known than was sent.
    fn reaches(&self, at: Bookmark) -> bool {
        let has_ended = self.end.is_some();
        let is_lost = self.status == Status::Interrupted || (self.of_other_process && !has_ended);
        let is_within = at.stdout <= self.printed(Stream::Stdout).len() as u64
            && at.stderr <= self.printed(Stream::Stderr).len() as u64
            && at.lines <= self.lines().len() as u64;
        (is_within || is_lost) && (has_ended || at.phase < Phase::Result)
    }
}

/// Further bytes of a character.
const CHARACTER_BYTES_MAX: u64 = 3;

impl Bookmark {
    /// What follows of a source, up to `count` bytes.
    fn take(&mut self, source: LogSource, count: u64, told: &Told) -> Option<TranscriptEvent> {
        let (stream, place) = match source {
            LogSource::Stdout => (Stream::Stdout, &mut self.stdout),
            LogSource::Stderr => (Stream::Stderr, &mut self.stderr),
            LogSource::Log => {
                let line = after(told.lines(), self.lines).first()?;
                self.lines += 1;
                return Some(TranscriptEvent::Logged(line.clone()));
            }
        };
        let left = after(told.printed(stream), *place);
        let count = usize::try_from(count).unwrap_or(usize::MAX).min(left.len());
        let is_all = count == left.len() && told.end.is_some();
        let bytes = piece(&left[..count], is_all).to_vec();
        *place += bytes.len() as u64;
        (!bytes.is_empty()).then_some(TranscriptEvent::Printed { stream, bytes })
    }
}

/// The rest after `n` items.
fn after<T>(all: &[T], place: u64) -> &[T] {
    let place = usize::try_from(place).unwrap_or(usize::MAX);
    &all[place.min(all.len())..]
}

/// The part of `bytes` that can be sent: up to an incomplete character, unless no more output follows.
pub(super) fn piece(bytes: &[u8], is_all: bool) -> &[u8] {
    if is_all && bytes.len() <= limits::EVENT_BYTES_MAX {
        return bytes;
    }
    let bytes = &bytes[..bytes.len().min(limits::EVENT_BYTES_MAX)];
    // A character has at most four bytes, so these show whether the last one is complete.
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
