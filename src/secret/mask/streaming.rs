//! Masks a stream: the released text is always a prefix of the masked complete text.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use super::{ELLIPSIS, Mask, Needle, merge, replace};

/// Needs time linear in the length of the text.
#[derive(Default)]
pub struct StreamingMask {
    mask: Mask,
    /// For each needle, its bytes that match before `seen`.
    matched: Vec<usize>,
    /// Text that is not released yet.
    held: Vec<u8>,
    /// Bytes of `held` that were searched.
    seen: usize,
    /// Matches in `held`.
    found: Vec<Range<usize>>,
}

impl StreamingMask {
    /// Adds text, and returns the masked text that cannot change any more. A possible beginning of a secret is held back.
    pub fn push<'a>(&mut self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        if self.mask.is_empty() {
            return Cow::Borrowed(bytes);
        }
        self.held.extend_from_slice(bytes);
        // A needle may end early before an ellipsis, of which only the first bytes may have arrived.
        let begun = (1..ELLIPSIS.len())
            .rev()
            .find(|length| self.held.ends_with(&ELLIPSIS[..*length]));
        let until = self.held.len() - begun.unwrap_or_default();
        let mut found = std::mem::take(&mut self.found);
        for (needle, matched) in self.mask.needles.iter().zip(&mut self.matched) {
            Needle::walk(needle, &self.held, self.seen..until, matched, &mut found);
        }
        self.seen = until;
        self.found = merge(found);
        Cow::Owned(self.release(self.releasable()))
    }

    /// The length of the text before any partial or crossing match.
    fn releasable(&self) -> usize {
        let open = self.matched.iter().copied().max().unwrap_or_default();
        let certain = self.seen - open;
        let crossing = self
            .found
            .iter()
            .find(|range| range.start < certain && certain < range.end);
        crossing.map_or(certain, |range| range.start)
    }

    fn release(&mut self, until: usize) -> Vec<u8> {
        let within = self.found.partition_point(|range| range.end <= until);
        let rest = self.found.split_off(within);
        let masked = replace(&self.held[..until], &self.found).into_owned();
        self.held.drain(..until);
        self.seen -= until;
        self.found = rest;
        for range in &mut self.found {
            *range = range.start - until..range.end - until;
        }
        masked
    }
}

impl fmt::Debug for StreamingMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StreamingMask(***)")
    }
}

impl Mask {
    #[must_use]
    pub fn streaming(&self) -> StreamingMask {
        StreamingMask {
            mask: self.clone(),
            matched: vec![0; self.needles.len()],
            ..StreamingMask::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::secret::SecretValue;
    use crate::secret::mask::Truncation;

    fn mask(values: &[String]) -> Mask {
        let values: Vec<_> = values
            .iter()
            .filter_map(|value| SecretValue::new(value.clone()).ok())
            .collect();
        Mask::new(&values)
    }

    fn stream(mask: &Mask, pieces: &[&str]) -> Vec<String> {
        let mut growing = mask.streaming();
        let told = pieces
            .iter()
            .map(|piece| growing.push(piece.as_bytes()).into_owned());
        told.map(|told| String::from_utf8(told).unwrap()).collect()
    }

    /// O-21.
    #[test]
    fn masks_secrets_across_chunks() {
        let mask = mask(&["hunter2".to_owned(), "hunter".to_owned()]);
        for (pieces, expected) in [
            (&["a hun", "ter2 b\n"][..], &["a ", "*** b\n"][..]),
            (&["hunted\n", "x hunter", "!"], &["hunted\n", "x ", "***!"]),
            (&["x hunt", "…", " y…"], &["x ", "***…", " y…"]),
            (&["hunter2", "hunter2"], &["***", "***"]),
        ] {
            assert_eq!(stream(&mask, pieces), expected);
        }
        let halves = [&b"x hunt\xe2"[..], b"\x80", b"\xa6"];
        let mut growing = mask.streaming();
        let told_of = halves.map(|half| growing.push(half).into_owned());
        assert_eq!(told_of.concat(), "x ***…".as_bytes());
        assert_eq!(stream(&Mask::default(), &["a hun", "ter2"]), ["a hun", "ter2"]);
    }

    proptest! {
        /// O-21.
        #[test]
        fn streamed_text_is_a_prefix_of_the_masked_text(
            values in prop::collection::vec("[ab…\"]{4,9}", 0..4),
            text in "([ab…\"]|abab|\"|aaaa){0,60}",
            cuts in prop::collection::vec(0..400_usize, 0..8),
        ) {
            let (mask, text) = (mask(&values), text.as_bytes());
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let (mut growing, mut told) = (mask.streaming(), Vec::new());
            for pair in cuts.windows(2) {
                told.extend_from_slice(&growing.push(&text[pair[0]..pair[1]]));
                for end in pair[1]..=text.len() {
                    for truncation in [Truncation::End, Truncation::None] {
                        let whole = mask.mask(&text[..end], truncation);
                        prop_assert!(whole.starts_with(&told), "{:?} {:?}", told, whole);
                    }
                }
            }
            // No text is held back that no needle can match.
            let longest = mask.needles.iter().map(|needle| needle.text.len()).max();
            let masked = mask.mask(text, Truncation::None);
            let places = growing.found.len();
            prop_assert!(places > 0 || told.len() + longest.unwrap_or(0) >= masked.len());
        }
    }
}
