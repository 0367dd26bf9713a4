//! A skill's name.

use std::fmt;
use std::str::FromStr;

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

use crate::ids::{is_label, serde_as_text};
use crate::limits;
use crate::skill::title;

/// Labels of `[a-z0-9][a-z0-9-]*` joined by dots, at most 64 characters: safe as a path segment, as an object key and
/// in a container name.
///
/// Names contain no `_`, so imports, which write `-` as `_`, are unambiguous.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SkillName(String);

/// The rule for a skill's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "skill name must be 1 to 64 characters: labels of a-z, 0-9 and '-' that do not start with '-', joined by '.' (for example `data-analysis` or `salesforce.leads`)"
)]
pub struct InvalidName;

impl SkillName {
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl SkillName {
    /// Each parent in the tree of imports, with the label that follows: `a` and `b_c` for `a.b-c`.
    pub fn above(&self) -> impl Iterator<Item = (&str, String)> {
        let dots = self.0.match_indices('.').map(|(at, _)| at);
        dots.map(|at| {
            let label = self.0[at + 1..].split('.').next().unwrap_or_default();
            (&self.0[..at], label.replace('-', "_"))
        })
    }

    /// The name for a skill without one, from its folder or archive.
    #[must_use]
    pub fn of_folder(folder: &str) -> Option<Self> {
        match Self::nearest(folder) {
            Ok((name, _)) => Some(name),
            Err(InvalidName) => title::name_of(folder, None),
        }
    }

    /// The name in `text`, or the nearest name to a title (`PDF Processing`, `my_skill`, `ns:résumé`, `-a/b+c`), and
    /// whether `text` equals it.
    pub(super) fn nearest(text: &str) -> Result<(Self, bool), InvalidName> {
        if let Ok(name) = text.parse() {
            return Ok((name, true));
        }
        near(text).parse().map(|name| (name, false))
    }
}

/// The letters and digits of a title in lower case and without accents, joined by `-`. Empty if `text` is not a
/// title.
fn near(text: &str) -> String {
    let plain: String = text.nfd().filter(|c| !is_combining_mark(*c)).collect();
    let plain = plain.trim_matches([' ', '_', '-', '+', '/']);
    let of_a_title = |c: char| c.is_ascii_alphanumeric() || " ._-&,+/()':!?#*|\"–—".contains(c);
    let ends = |c: char| c.is_ascii_alphanumeric() || ")!?'\"".contains(c);
    let is_title = plain.starts_with(|c: char| c.is_ascii_alphanumeric()) && plain.ends_with(ends);
    let mut near = String::with_capacity(plain.len());
    let is_path = plain
        .split('/')
        .any(|part| part.starts_with('.') || part.ends_with('.'));
    if !is_title || is_path || !plain.chars().all(of_a_title) {
        return near;
    }
    for c in plain.chars() {
        match c {
            '.' => near.push('.'),
            c if c.is_ascii_alphanumeric() => near.push(c.to_ascii_lowercase()),
            _ if near.ends_with(['-', '.']) => {}
            _ => near.push('-'),
        }
    }
    near.truncate(near.trim_end_matches('-').len());
    near
}

impl FromStr for SkillName {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let max = limits::SKILL_NAME_CHARS_MAX;
        if text.len() <= max && text.split('.').all(|label| is_label(label, max)) {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidName)
        }
    }
}

impl fmt::Display for SkillName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
serde_as_text!(SkillName);

#[cfg(test)]
mod tests {
    use super::*;

    /// Z-22, W-15: one anchored ASCII rule.
    #[test]
    fn rejects_misleading_names() {
        let wrong = [
            "",
            ".",
            "..",
            "../x",
            "a/b",
            "-rf",
            "a.",
            ".a",
            "a..b",
            "a.-b",
            "A",
            "skill ",
            " skill",
            "a\0",
            "%2e%2e",
            "dаta",
            "ｄata",
            "a\u{200b}b",
            "a_b",
            "a\n",
        ];
        for name in wrong {
            assert_eq!(name.parse::<SkillName>(), Err(InvalidName), "{name:?}");
        }
        for name in [
            "", "-", "..", "../x", "a/../b", "a/./b", "/..", "a\\b", "%2e%2e", "a\0", "dаta", "a\n", "a\t",
            "a.",
        ] {
            assert_eq!(SkillName::nearest(name), Err(InvalidName), "{name:?}");
        }
        assert!("x".repeat(65).parse::<SkillName>().is_err());
        for right in ["a", "data-analysis", "salesforce.leads", "0x", &"x".repeat(64)] {
            assert_eq!(
                right.parse::<SkillName>().map(|n| n.to_string()).as_deref(),
                Ok(right)
            );
        }
    }

    #[test]
    fn finds_nearest_valid_name() {
        for (text, nearest) in [
            ("-pdf-tools", "pdf-tools"),
            ("--pdf", "pdf"),
            ("team/pdf-tools", "team-pdf-tools"),
            ("/pdf/", "pdf"),
            ("c++", "c"),
            ("C++ & Rust", "c-rust"),
            ("+pdf+docx+", "pdf-docx"),
            (" pdf  tools ", "pdf-tools"),
            ("pdf / docx", "pdf-docx"),
        ] {
            let (name, is_exact) = SkillName::nearest(text).unwrap();
            assert_eq!((name.as_str(), is_exact), (nearest, false), "{text:?}");
        }
    }
}
