//! Streams output and log lines without secrets: always a prefix of the recorded text.

use std::borrow::Cow;

use crate::execution::{LogLine, Stream, Transcript};
use crate::limits;
use crate::secret::{Mask, StreamingMask, Truncation};

pub(super) struct OutputMasker<'a> {
    transcript: &'a Transcript,
    stream: Stream,
    mask: StreamingMask,
}

impl<'a> OutputMasker<'a> {
    pub(super) fn new(transcript: &'a Transcript, mask: &Mask, stream: Stream) -> Self {
        Self {
            transcript,
            stream,
            mask: mask.streaming(),
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        let certain = self.mask.push(bytes);
        if !certain.is_empty() {
            self.transcript.print(self.stream, &certain);
        }
    }
}

pub(super) struct LogLineMasker<'a> {
    transcript: &'a Transcript,
    mask: &'a Mask,
    /// An incomplete line.
    begun: Vec<u8>,
    /// A line that would be masked differently if it was the last one.
    held: Option<LogLine>,
    left: usize,
}

impl<'a> LogLineMasker<'a> {
    pub(super) fn new(transcript: &'a Transcript, mask: &'a Mask) -> Self {
        Self {
            transcript,
            mask,
            begun: Vec::new(),
            held: None,
            left: limits::LOG_LINES_MAX,
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
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

    /// The last line may be truncated, and is masked as such when it is recorded.
    fn line(&mut self, line: LogLine) {
        let is_certain = self.mask.is_empty()
            || matches!(
                self.mask.mask(line.message.as_bytes(), Truncation::End),
                Cow::Borrowed(_)
            );
        let before = self.held.replace(line);
        let certain = if is_certain { self.held.take() } else { None };
        for line in before.into_iter().chain(certain) {
            // Lines that will not be recorded are not streamed.
            if let Some(line) = self.mask.mask_value(line) {
                self.transcript.log(line);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;
    use crate::execution::{Bookmark, Logs, TranscriptEvent};
    use crate::secret::SecretValue;

    fn streamed(transcript: &Transcript) -> (Vec<u8>, Vec<LogLine>) {
        let mut reader = transcript.reader(Bookmark::default()).unwrap();
        let (mut printed, mut lines) = (Vec::new(), Vec::new());
        while let Some(Some(event)) = reader.next().now_or_never() {
            match event {
                TranscriptEvent::Printed { bytes, .. } => printed.extend(bytes),
                TranscriptEvent::Logged(line) => lines.push(line),
                TranscriptEvent::Status(_) | TranscriptEvent::Result(_) | TranscriptEvent::End { .. } => {}
            }
        }
        (printed, lines)
    }

    /// O-21: however the log is split, the streamed lines are a prefix of the recorded ones.
    #[test]
    fn streams_lines_once_their_mask_is_final() {
        let value = SecretValue::new("hunter2".to_owned()).unwrap();
        let text = b"{\"message\":\"first\"}\n\nplain \xff hunter2\nwith hunt\nlast, not ended";
        for (mask, certain) in [(Mask::new([&value]), 2), (Mask::default(), 3)] {
            for size in 1..text.len() {
                let transcript = Transcript::default();
                let mut logging = LogLineMasker::new(&transcript, &mask);
                text.chunks(size).for_each(|piece| logging.push(piece));
                let (_, lines) = streamed(&transcript);
                let mut recorded = Logs::default();
                recorded.take_lines(text, text.len() as u64);
                let recorded = recorded
                    .lines
                    .into_iter()
                    .map(|line| mask.mask_value(line).unwrap());
                // The third may end with the beginning of a secret.
                assert_eq!(lines, recorded.take(certain).collect::<Vec<_>>(), "{size}");
            }
        }
    }

    #[test]
    fn holds_back_what_may_become_a_secret() {
        let value = SecretValue::new("hunter2".to_owned()).unwrap();
        let (transcript, mask) = (Transcript::default(), Mask::new([&value]));
        let mut output = OutputMasker::new(&transcript, &mask, Stream::Stderr);
        for (bytes, expected) in [("a hunt", "a "), ("er2 b", "a *** b"), ("h", "a *** b")] {
            output.push(bytes.as_bytes());
            assert_eq!(String::from_utf8(streamed(&transcript).0).unwrap(), expected);
        }
    }
}
