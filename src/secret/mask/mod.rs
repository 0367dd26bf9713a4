//! Masking: `***` in place of secrets in what a program printed, wrote and was called.
//!
//! It finds values as they are and as JSON writes them. Whoever wants to get one past it encodes or splits it; it keeps
//! accidents out of records, not enemies.

mod growing;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use memchr::memmem;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::limits;
use crate::secret::SecretValue;

pub use growing::GrowingMask;

/// What stands where a secret stood.
const MASKED: &str = "***";

/// Finds the secrets of one execution; finds nothing by default.
#[derive(Clone, Default)]
pub struct Mask {
    /// Each value in all its spellings.
    needles: Arc<[Needle]>,
    /// The values alone: inside decoded JSON there is one spelling.
    plain: Arc<[Needle]>,
}

/// What is looked for.
struct Needle {
    text: Vec<u8>,
    /// For each beginning of it, how much of its end is a shorter beginning; known once something like it was seen.
    borders: OnceLock<Vec<usize>>,
}

/// How a text ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Where its author ended it.
    Whole,
    /// Anywhere: what it ends with may be the beginning of a secret.
    Cut,
    /// As its beginning, which may be the end of a secret: it was cut out of something longer.
    Piece,
}

/// What our helpers write where they cut something: before it a secret may end early.
const ELLIPSIS: &[u8] = "…".as_bytes();

impl Mask {
    /// A mask for these values. Those of fewer than [`limits::MASKED_BYTES_MIN`] bytes are left: text is full of them.
    pub fn new<'a>(values: impl IntoIterator<Item = &'a SecretValue>) -> Self {
        let (mut needles, mut plain) = (Vec::new(), Vec::new());
        // Programs strip what they read: without white space around it it is the same secret.
        let texts = values.into_iter().map(SecretValue::reveal);
        for text in texts.flat_map(|text| [text, text.trim()]) {
            if text.len() >= limits::MASKED_BYTES_MIN {
                plain.push(text.as_bytes().to_vec());
                needles.extend(spellings(text).map(String::into_bytes));
            }
        }
        for list in [&mut plain, &mut needles] {
            list.sort_unstable();
            list.dedup();
        }
        let needles_of = |texts: Vec<Vec<u8>>| texts.into_iter().map(Needle::from).collect();
        Self {
            needles: needles_of(needles),
            plain: needles_of(plain),
        }
    }

    /// Whether there is nothing to find.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.needles.is_empty()
    }

    /// `text` with each occurrence of a secret masked; occurrences that overlap become one.
    #[must_use]
    pub fn mask<'a>(&self, text: &'a [u8], ending: Ending) -> Cow<'a, [u8]> {
        replace(text, &found(&self.needles, text, ending))
    }

    /// As [`mask`](Self::mask), for text that is whole.
    #[must_use]
    pub fn mask_text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.mask(text.as_bytes(), Ending::Whole) {
            // Needles are text, so what is left between them is text, too.
            Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
            Cow::Borrowed(_) => Cow::Borrowed(text),
        }
    }

    /// JSON `text`, masked and still JSON: within strings as they read, whatever their spelling; a number that holds a
    /// secret becomes a string. What holds none stays byte for byte.
    #[must_use]
    pub fn mask_json<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.is_empty() {
            return Cow::Borrowed(text);
        }
        let masked = self.mask_tokens(text);
        // A secret that is a piece of JSON itself lies across tokens.
        if found(&self.needles, masked.as_bytes(), Ending::Whole).is_empty() {
            return masked;
        }
        let across = self.mask_text(&masked).into_owned();
        if serde_json::from_str::<serde::de::IgnoredAny>(&across).is_ok() {
            Cow::Owned(across)
        } else {
            Cow::Owned(format!("\"{MASKED}\""))
        }
    }

    /// Anything that is kept as JSON; `None` where a secret is one of our own words, and what is left no longer reads as what it
    /// was.
    #[must_use]
    pub fn mask_value<T: Serialize + DeserializeOwned>(&self, value: T) -> Option<T> {
        if self.is_empty() {
            return Some(value);
        }
        let json = serde_json::to_string(&value).ok()?;
        match self.mask_json(&json) {
            Cow::Borrowed(_) => Some(value),
            Cow::Owned(masked) => serde_json::from_str(&masked).ok(),
        }
    }

    fn mask_tokens<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut masked = String::new();
        let (mut kept, mut rest) = (0, text);
        while let Some(token) = next_token(rest) {
            let start = text.len() - rest.len() + token.start;
            let end = start + token.length;
            rest = &text[end..];
            if let Some(instead) = self.instead_of(&text[start..end]) {
                masked.push_str(&text[kept..start]);
                masked.push_str(&instead);
                kept = end;
            }
        }
        if kept == 0 {
            return Cow::Borrowed(text);
        }
        masked.push_str(&text[kept..]);
        Cow::Owned(masked)
    }

    /// What stands for this string or literal of JSON, if it holds a secret.
    fn instead_of(&self, token: &str) -> Option<String> {
        let decoded = match serde_json::from_str::<String>(token) {
            Ok(decoded) => decoded,
            Err(_) => token.to_owned(),
        };
        let found = found(&self.plain, decoded.as_bytes(), Ending::Whole);
        if found.is_empty() {
            return None;
        }
        let masked = replace(decoded.as_bytes(), &found);
        serde_json::to_string(&String::from_utf8_lossy(&masked)).ok()
    }
}

impl fmt::Debug for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mask(***)")
    }
}

impl From<Vec<u8>> for Needle {
    fn from(text: Vec<u8>) -> Self {
        let borders = OnceLock::new();
        Self { text, borders }
    }
}

/// As it is, and as JSON writers spell it: with and without escapes for what is not ASCII, and for slashes.
fn spellings(text: &str) -> impl Iterator<Item = String> {
    let quoted = serde_json::to_string(text).unwrap_or_default();
    let escaped = quoted.trim_start_matches('"');
    let escaped = escaped.strip_suffix('"').unwrap_or(escaped).to_owned();
    let ascii = escaped.chars().fold(String::new(), |mut ascii, c| {
        if c.is_ascii() {
            ascii.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                ascii.push_str(&format!("\\u{unit:04x}"));
            }
        }
        ascii
    });
    let slashes = escaped.replace('/', "\\/");
    let mut all = vec![text.to_owned(), escaped, ascii, slashes];
    all.sort_unstable();
    all.dedup();
    all.into_iter()
}

/// Where the needles lie, in order, none overlapping another.
fn found(needles: &[Needle], text: &[u8], ending: Ending) -> Vec<(usize, usize)> {
    let mut all = Vec::new();
    for needle in needles {
        needle.find(text, ending, &mut all);
    }
    joined(all)
}

/// In order, and those that overlap as one.
fn joined(mut all: Vec<(usize, usize)>) -> Vec<(usize, usize)> {
    all.sort_unstable();
    let mut joined: Vec<(usize, usize)> = Vec::new();
    for place in all {
        push(place, &mut joined, 0);
    }
    joined
}

/// Adds a place that begins no earlier than those after `first`. Places that overlap are joined at once, for there may be as
/// many as a text has bytes.
fn push(place: (usize, usize), into: &mut Vec<(usize, usize)>, first: usize) {
    match into[first..].last_mut() {
        Some(last) if place.0 < last.1 => last.1 = last.1.max(place.1),
        _ => into.push(place),
    }
}

impl Needle {
    /// Every place of it, also where it overlaps itself, in time that is linear whatever it and the text are (Knuth, Morris and
    /// Pratt); and the longest beginning of it that stands where something was cut.
    fn find(&self, text: &[u8], ending: Ending, into: &mut Vec<(usize, usize)>) {
        let needle = &self.text;
        if ending == Ending::Piece {
            let length = end_at_the_start(needle, text);
            if length >= limits::MASKED_BYTES_MIN {
                into.push((0, length));
            }
        }
        let beginning = &needle[..limits::MASKED_BYTES_MIN.min(needle.len())];
        let is_cut_inside =
            || memmem::find(text, ELLIPSIS).is_some() && memmem::find(text, beginning).is_some();
        let from = match ending {
            // As a rule there is none, and this is the fastest way to know.
            _ if memmem::find(text, needle).is_some() || is_cut_inside() => 0,
            Ending::Cut | Ending::Piece => text.len().saturating_sub(needle.len()),
            Ending::Whole => return,
        };
        let mut matched = 0;
        self.walk(text, from..text.len(), &mut matched, into);
        if ending != Ending::Whole && matched >= limits::MASKED_BYTES_MIN {
            into.push((text.len() - matched, text.len()));
        }
    }

    /// Goes on through `text` where so much of the needle stands before it. Says how much of it stands at the end.
    fn walk(&self, text: &[u8], range: Range<usize>, matched: &mut usize, into: &mut Vec<(usize, usize)>) {
        let (needle, first) = (&self.text, into.len());
        let mut at = range.start;
        while at < range.end {
            if *matched == 0 {
                match memchr::memchr(needle[0], &text[at..range.end]) {
                    Some(next) => at += next,
                    None => return,
                }
            }
            if *matched >= limits::MASKED_BYTES_MIN && text[at..].starts_with(ELLIPSIS) {
                push((at - *matched, at), into, first);
            }
            let borders = self.borders.get_or_init(|| borders(needle));
            while *matched > 0 && needle[*matched] != text[at] {
                *matched = borders[*matched - 1];
            }
            *matched += usize::from(needle[*matched] == text[at]);
            at += 1;
            if *matched == needle.len() {
                push((at - *matched, at), into, first);
                *matched = borders[*matched - 1];
            }
        }
    }
}

/// How much of the end of `needle` the text begins with.
fn end_at_the_start(needle: &[u8], text: &[u8]) -> usize {
    let start = &text[..text.len().min(needle.len() - 1)];
    let borders = borders(start);
    let mut matched = 0;
    for byte in &needle[1..] {
        while matched > 0 && (matched == start.len() || start[matched] != *byte) {
            matched = borders[matched - 1];
        }
        matched += usize::from(start.get(matched) == Some(byte));
    }
    matched
}

/// For each beginning of `needle`, how much of its end is a shorter beginning.
fn borders(needle: &[u8]) -> Vec<usize> {
    let mut borders = vec![0; needle.len()];
    let mut matched = 0;
    for at in 1..needle.len() {
        while matched > 0 && needle[matched] != needle[at] {
            matched = borders[matched - 1];
        }
        matched += usize::from(needle[matched] == needle[at]);
        borders[at] = matched;
    }
    borders
}

fn replace<'a>(text: &'a [u8], found: &[(usize, usize)]) -> Cow<'a, [u8]> {
    if found.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut masked = Vec::with_capacity(text.len());
    let mut kept = 0;
    for (start, end) in found {
        masked.extend_from_slice(&text[kept..*start]);
        masked.extend_from_slice(MASKED.as_bytes());
        kept = *end;
    }
    masked.extend_from_slice(&text[kept..]);
    Cow::Owned(masked)
}

/// A string or a literal of JSON, by its place.
struct Token {
    start: usize,
    length: usize,
}

fn next_token(text: &str) -> Option<Token> {
    let bytes = text.as_bytes();
    let between = |byte: &u8| byte.is_ascii_whitespace() || b"[]{}:,".contains(byte);
    let start = bytes.iter().position(|byte| !between(byte))?;
    let rest = &bytes[start..];
    let length = if rest[0] == b'"' {
        let mut escaped = false;
        let closing = rest[1..].iter().position(|byte| {
            let closes = *byte == b'"' && !escaped;
            escaped = *byte == b'\\' && !escaped;
            closes
        });
        closing.map_or(rest.len(), |at| at + 2)
    } else {
        let end = |byte: &u8| between(byte) || *byte == b'"';
        rest.iter().position(end).unwrap_or(rest.len())
    };
    Some(Token { start, length })
}

#[cfg(test)]
mod tests;
