//! What a program prints and logs, told to those who watch as it comes: without secrets, and the very beginning of what will
//! be recorded.

use std::borrow::Cow;

use crate::execution::{LogLine, Stream, Transcript};
use crate::limits;
use crate::secret::{Ending, GrowingMask, Mask};

/// Tells what goes to one of its two streams.
pub(super) struct Printing<'a> {
    transcript: &'a Transcript,
    stream: Stream,
    mask: GrowingMask,
}

impl<'a> Printing<'a> {
    pub(super) fn new(transcript: &'a Transcript, mask: &Mask, stream: Stream) -> Self {
        Self {
            transcript,
            stream,
            mask: mask.growing(),
        }
    }

    /// Takes what was kept.
    pub(super) fn tell(&mut self, bytes: &[u8]) {
        let certain = self.mask.push(bytes);
        if !certain.is_empty() {
            self.transcript.print(self.stream, &certain);
        }
    }
}

/// Tells the lines of its log.
pub(super) struct Logging<'a> {
    transcript: &'a Transcript,
    mask: &'a Mask,
    /// The beginning of a line.
    begun: Vec<u8>,
    /// A line that reads otherwise if it was the last.
    held: Option<LogLine>,
    /// Lines that may still come.
    left: usize,
}

impl<'a> Logging<'a> {
    pub(super) fn new(transcript: &'a Transcript, mask: &'a Mask) -> Self {
        Self {
            transcript,
            mask,
            begun: Vec::new(),
            held: None,
            left: limits::LOG_LINES_MAX,
        }
    }

    /// Takes what was kept.
    pub(super) fn tell(&mut self, bytes: &[u8]) {
        self.begun.extend_from_slice(bytes);
        let Some(last) = memchr::memrchr(b'\n', bytes) else {
            return;
        };
        let rest = self.begun.split_off(self.begun.len() - bytes.len() + last + 1);
        for line in std::mem::replace(&mut self.begun, rest).split(|byte| *byte == b'\n') {
            if !line.is_empty() && self.left > 0 {
                self.left -= 1;
                self.line(LogLine::parse(line));
            }
        }
    }

    /// The last of all may have been cut, and is masked as such when it is recorded.
    fn line(&mut self, line: LogLine) {
        let is_certain = self.mask.is_empty()
            || matches!(
                self.mask.mask(line.message.as_bytes(), Ending::Cut),
                Cow::Borrowed(_)
            );
        let before = self.held.replace(line);
        let certain = if is_certain { self.held.take() } else { None };
        for line in before.into_iter().chain(certain) {
            // One that is left out of the record is not told, either.
            if let Some(line) = self.mask.mask_value(line) {
                self.transcript.log(line);
            }
        }
    }
}
