//! A text that is masked while it grows: what is told of it is the beginning of what it will be when it is masked as a whole,
//! however it goes on and wherever it ends.

use std::borrow::Cow;
use std::fmt;

use super::{ELLIPSIS, Mask, Needle, joined, replace};

/// Masks a text as it comes, in time that is linear in its length.
#[derive(Default)]
pub struct GrowingMask {
    mask: Mask,
    /// How much of each needle stands before `seen`.
    matched: Vec<usize>,
    /// The end of the text, of which nothing was told yet.
    held: Vec<u8>,
    /// How much of it was looked at.
    seen: usize,
    /// Where needles lie in it.
    found: Vec<(usize, usize)>,
}

impl GrowingMask {
    /// Takes more of the text; returns what of the masked text is certain now. Held back is what may be the beginning of a
    /// secret, and a place of secrets that may not have ended.
    pub fn push<'a>(&mut self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        if self.mask.is_empty() {
            return Cow::Borrowed(bytes);
        }
        self.held.extend_from_slice(bytes);
        // A needle may end early before an ellipsis, which may not have come whole.
        let begun = (1..ELLIPSIS.len())
            .rev()
            .find(|length| self.held.ends_with(&ELLIPSIS[..*length]));
        let until = self.held.len() - begun.unwrap_or_default();
        let mut found = std::mem::take(&mut self.found);
        for (needle, matched) in self.mask.needles.iter().zip(&mut self.matched) {
            Needle::walk(needle, &self.held, self.seen..until, matched, &mut found);
        }
        self.seen = until;
        self.found = joined(found);
        Cow::Owned(self.tell(self.certain()))
    }

    /// Up to where nothing that comes can change what is there: no needle that is still to be found begins before it, and none
    /// that was found lies across it.
    fn certain(&self) -> usize {
        let open = self.matched.iter().copied().max().unwrap_or_default();
        let certain = self.seen - open;
        let across = |(start, end): &&(usize, usize)| *start < certain && certain < *end;
        self.found
            .iter()
            .find(across)
            .map_or(certain, |(start, _)| *start)
    }

    fn tell(&mut self, until: usize) -> Vec<u8> {
        let within = self.found.partition_point(|(_, end)| *end <= until);
        let rest = self.found.split_off(within);
        let told = replace(&self.held[..until], &self.found).into_owned();
        self.held.drain(..until);
        self.seen -= until;
        self.found = rest;
        for (start, end) in &mut self.found {
            (*start, *end) = (*start - until, *end - until);
        }
        told
    }
}

impl fmt::Debug for GrowingMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GrowingMask(***)")
    }
}

impl Mask {
    /// This mask for a text that is still growing.
    #[must_use]
    pub fn growing(&self) -> GrowingMask {
        GrowingMask {
            mask: self.clone(),
            matched: vec![0; self.needles.len()],
            ..GrowingMask::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::secret::SecretValue;
    use crate::secret::mask::Ending;

    fn mask(values: &[String]) -> Mask {
        let values: Vec<_> = values
            .iter()
            .filter_map(|value| SecretValue::new(value.clone()).ok())
            .collect();
        Mask::new(&values)
    }

    fn told(mask: &Mask, pieces: &[&str]) -> Vec<String> {
        let mut growing = mask.growing();
        let told = pieces
            .iter()
            .map(|piece| growing.push(piece.as_bytes()).into_owned());
        told.map(|told| String::from_utf8(told).unwrap()).collect()
    }

    /// O-21: live, too, and across the pieces.
    #[test]
    fn a_secret_that_comes_in_pieces_is_never_told() {
        let mask = mask(&["hunter2".to_owned(), "hunter".to_owned()]);
        for (pieces, expected) in [
            (&["a hun", "ter2 b\n"][..], &["a ", "*** b\n"][..]),
            (&["hunted\n", "x hunter", "!"], &["hunted\n", "x ", "***!"]),
            (&["x hunt", "…", " y…"], &["x ", "***…", " y…"]),
            (&["hunter2", "hunter2"], &["***", "***"]),
        ] {
            assert_eq!(told(&mask, pieces), expected);
        }
        let halves = [&b"x hunt\xe2"[..], b"\x80", b"\xa6"];
        let mut growing = mask.growing();
        let told_of = halves.map(|half| growing.push(half).into_owned());
        assert_eq!(told_of.concat(), "x ***…".as_bytes());
        assert_eq!(told(&Mask::default(), &["a hun", "ter2"]), ["a hun", "ter2"]);
    }

    proptest! {
        /// O-21.
        #[test]
        fn what_is_told_is_the_beginning_of_what_is_recorded_wherever_it_was_cut(
            values in prop::collection::vec("[ab…\"]{4,9}", 0..4),
            text in "([ab…\"]|abab|\"|aaaa){0,60}",
            cuts in prop::collection::vec(0..400_usize, 0..8),
        ) {
            let (mask, text) = (mask(&values), text.as_bytes());
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let (mut growing, mut told) = (mask.growing(), Vec::new());
            for pair in cuts.windows(2) {
                told.extend_from_slice(&growing.push(&text[pair[0]..pair[1]]));
                for end in pair[1]..=text.len() {
                    for ending in [Ending::Cut, Ending::Whole] {
                        let whole = mask.mask(&text[..end], ending);
                        prop_assert!(whole.starts_with(&told), "{:?} {:?}", told, whole);
                    }
                }
            }
            // Nothing is held that no needle can reach.
            let longest = mask.needles.iter().map(|needle| needle.text.len()).max();
            let masked = mask.mask(text, Ending::Whole);
            let places = growing.found.len();
            prop_assert!(places > 0 || told.len() + longest.unwrap_or(0) >= masked.len());
        }
    }
}
