//! Replaces secrets by `***` in output, logs and file names.
//!
//! It finds values as they are and in JSON spellings. It prevents accidents only: a program can encode or split a secret.

mod streaming;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use memchr::memmem;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::limits;
use crate::secret::SecretValue;

pub use streaming::StreamingMask;

const MASKED: &str = "***";

/// The secrets of one execution; none by default.
#[derive(Clone, Default)]
pub struct Mask {
    /// Each value in all its spellings.
    needles: Arc<[Needle]>,
    /// The values alone, for decoded JSON strings.
    plain: Arc<[Needle]>,
}

struct Needle {
    text: Vec<u8>,
    /// Computed at the first partial match.
    borders: OnceLock<Vec<usize>>,
}

/// Where a text was cut. A cut end may be the beginning of a secret, a cut beginning the end of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truncation {
    None,
    End,
    BothEnds,
}

/// The helper modules of programs write it where they truncate; a secret may end early before it.
const ELLIPSIS: &[u8] = "…".as_bytes();

impl Mask {
    /// Ignores values of fewer than [`limits::MASKED_BYTES_MIN`] bytes, which occur everywhere.
    pub fn new<'a>(values: impl IntoIterator<Item = &'a SecretValue>) -> Self {
        let (mut needles, mut plain) = (Vec::new(), Vec::new());
        // Programs often trim values.
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

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.needles.is_empty()
    }

    /// Masks each occurrence; overlapping occurrences become one.
    #[must_use]
    pub fn mask<'a>(&self, text: &'a [u8], truncation: Truncation) -> Cow<'a, [u8]> {
        replace(text, &find_all(&self.needles, text, truncation))
    }

    #[must_use]
    pub fn mask_text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.mask(text.as_bytes(), Truncation::None) {
            // Needles are UTF-8, so the bytes between them are too.
            Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
            Cow::Borrowed(_) => Cow::Borrowed(text),
        }
    }

    /// Masks inside of JSON strings, in any spelling; a number that contains a secret becomes a string. The result is JSON.
    /// Text without secrets stays byte for byte.
    #[must_use]
    pub fn mask_json<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.is_empty() {
            return Cow::Borrowed(text);
        }
        let masked = self.mask_tokens(text);
        // A secret that contains JSON syntax spans several tokens.
        if find_all(&self.needles, masked.as_bytes(), Truncation::None).is_empty() {
            return masked;
        }
        let across = self.mask_text(&masked).into_owned();
        if serde_json::from_str::<serde::de::IgnoredAny>(&across).is_ok() {
            Cow::Owned(across)
        } else {
            Cow::Owned(format!("\"{MASKED}\""))
        }
    }

    /// Masks the JSON form of a value; `None` if the masked JSON is no valid `T` (a secret equals a field name).
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
            if let Some(token) = self.masked_token(&text[start..end]) {
                masked.push_str(&text[kept..start]);
                masked.push_str(&token);
                kept = end;
            }
        }
        if kept == 0 {
            return Cow::Borrowed(text);
        }
        masked.push_str(&text[kept..]);
        Cow::Owned(masked)
    }

    /// The masked form of a JSON string or literal, if it contains a secret.
    fn masked_token(&self, token: &str) -> Option<String> {
        let decoded = match serde_json::from_str::<String>(token) {
            Ok(decoded) => decoded,
            Err(_) => token.to_owned(),
        };
        let found = find_all(&self.plain, decoded.as_bytes(), Truncation::None);
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

/// The text itself and its JSON forms, with and without escapes for slashes and characters beyond ASCII.
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

/// Sorted ranges without overlaps.
fn find_all(needles: &[Needle], text: &[u8], truncation: Truncation) -> Vec<Range<usize>> {
    let mut all = Vec::new();
    for needle in needles {
        needle.find(text, truncation, &mut all);
    }
    merge(all)
}

/// Sorts ranges and merges overlapping ones.
fn merge(mut all: Vec<Range<usize>>) -> Vec<Range<usize>> {
    all.sort_unstable_by_key(|range| (range.start, range.end));
    let mut merged = Vec::new();
    for range in all {
        push(range, &mut merged, 0);
    }
    merged
}

/// Adds a range that starts no earlier than those from index `first` on. Overlaps are merged at once, because there may be one
/// match per byte.
fn push(range: Range<usize>, into: &mut Vec<Range<usize>>, first: usize) {
    match into[first..].last_mut() {
        Some(last) if range.start < last.end => last.end = last.end.max(range.end),
        _ => into.push(range),
    }
}

impl Needle {
    /// Finds all matches in linear time (Knuth, Morris, Pratt), and the longest partial match at each cut.
    fn find(&self, text: &[u8], truncation: Truncation, into: &mut Vec<Range<usize>>) {
        let needle = &self.text;
        if truncation == Truncation::BothEnds {
            let length = suffix_at_start(needle, text);
            if length >= limits::MASKED_BYTES_MIN {
                into.push(0..length);
            }
        }
        let beginning = &needle[..limits::MASKED_BYTES_MIN.min(needle.len())];
        let is_cut_inside =
            || memmem::find(text, ELLIPSIS).is_some() && memmem::find(text, beginning).is_some();
        let from = match truncation {
            // Usually no needle occurs; this search is the fastest.
            _ if memmem::find(text, needle).is_some() || is_cut_inside() => 0,
            Truncation::End | Truncation::BothEnds => text.len().saturating_sub(needle.len()),
            Truncation::None => return,
        };
        let mut matched = 0;
        self.walk(text, from..text.len(), &mut matched, into);
        if truncation != Truncation::None && matched >= limits::MASKED_BYTES_MIN {
            into.push(text.len() - matched..text.len());
        }
    }

    /// Continues a search in which `matched` bytes of the needle precede `range`, and updates `matched`.
    fn walk(&self, text: &[u8], range: Range<usize>, matched: &mut usize, into: &mut Vec<Range<usize>>) {
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
                push(at - *matched..at, into, first);
            }
            let borders = self.borders.get_or_init(|| borders(needle));
            while *matched > 0 && needle[*matched] != text[at] {
                *matched = borders[*matched - 1];
            }
            *matched += usize::from(needle[*matched] == text[at]);
            at += 1;
            if *matched == needle.len() {
                push(at - *matched..at, into, first);
                *matched = borders[*matched - 1];
            }
        }
    }
}

/// The length of the longest suffix of `needle` at the start of `text`.
fn suffix_at_start(needle: &[u8], text: &[u8]) -> usize {
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

/// For each prefix of `needle`, the length of its longest border.
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

fn replace<'a>(text: &'a [u8], found: &[Range<usize>]) -> Cow<'a, [u8]> {
    if found.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut masked = Vec::with_capacity(text.len());
    let mut kept = 0;
    for range in found {
        masked.extend_from_slice(&text[kept..range.start]);
        masked.extend_from_slice(MASKED.as_bytes());
        kept = range.end;
    }
    masked.extend_from_slice(&text[kept..]);
    Cow::Owned(masked)
}

/// The position of a JSON string or literal.
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
