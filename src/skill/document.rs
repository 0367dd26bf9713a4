//! Splits SKILL.md into the front matter between its `---` lines and the instructions.

use std::borrow::Cow;
use std::fmt;

use crate::limits;

/// The declaration files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum File {
    SkillMd,
    SkillToml,
}

impl File {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SkillMd => "SKILL.md",
            Self::SkillToml => "skill.toml",
        }
    }
}

/// An error in SKILL.md or skill.toml.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct SkillMdError {
    pub file: File,
    /// Line from 1, if known.
    pub line: Option<u32>,
    /// What is wrong and what to do.
    pub message: String,
}

impl SkillMdError {
    pub(super) fn new(line: impl Into<Option<u32>>, message: impl Into<String>) -> Self {
        Self {
            file: File::SkillMd,
            line: line.into(),
            message: message.into(),
        }
    }

    pub(super) fn in_file(self, file: File) -> Self {
        Self { file, ..self }
    }
}

impl fmt::Display for SkillMdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}, line {line}: {}", self.file.as_str(), self.message),
            None => write!(f, "{}: {}", self.file.as_str(), self.message),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Document<'a> {
    /// From the start of the file, so that line numbers match, to before the closing `---` line. Text above the
    /// opening line is blank.
    pub(super) front_matter: Cow<'a, str>,
    /// Everything after the closing line, trimmed.
    pub(super) body: &'a str,
    /// Ignored text above the front matter.
    pub(super) passed_over: Option<&'static str>,
}

impl<'a> Document<'a> {
    /// Accepts a UTF-8 byte order mark and CRLF. Blank lines, comments and the mark of a code block may precede the
    /// front matter, because editors and generators write them.
    pub(super) fn split(bytes: &'a [u8]) -> Result<Self, SkillMdError> {
        let text = decode(bytes)?;
        let above = Above::of(text);
        let mut lines = text[above.bytes..].split_inclusive('\n');
        let opening = lines.next().unwrap_or_default();
        if opening.trim_end() != "---" {
            return Err(SkillMdError::new(
                1,
                "must start with a line `---`, then `name:` and `description:`, then a line `---`",
            ));
        }
        let mut end = above.bytes + opening.len();
        for line in lines {
            if line.trim_end() == "---" {
                return Self {
                    front_matter: above.blanked(text, end),
                    body: above.without_fence(text[end + line.len()..].trim()),
                    passed_over: above.passed_over(),
                }
                .bounded();
            }
            end += line.len();
        }
        Err(SkillMdError::new(
            1,
            "the front matter is not closed; add a line `---` after it",
        ))
    }

    /// The whole file as instructions, if nothing in it looks like a front matter.
    pub(super) fn without_front_matter(bytes: &'a [u8]) -> Option<Self> {
        let text = decode(bytes).ok()?;
        let starts = text[Above::of(text).bytes..].starts_with("---");
        (!starts).then(|| Self {
            front_matter: Cow::Borrowed(""),
            body: text.trim(),
            passed_over: None,
        })
    }

    fn bounded(self) -> Result<Self, SkillMdError> {
        let max = limits::FRONT_MATTER_BYTES_MAX;
        if self.front_matter.len() > max {
            return Err(SkillMdError::new(
                1,
                format!(
                    "the front matter is {} bytes, more than {max}; move text below it",
                    self.front_matter.len()
                ),
            ));
        }
        Ok(self)
    }
}

/// Text above the front matter.
#[derive(Debug, Default)]
struct Above<'a> {
    bytes: usize,
    has_comment: bool,
    /// The backticks of a code block around the front matter or the whole file.
    fence: &'a str,
}

impl<'a> Above<'a> {
    fn of(text: &'a str) -> Self {
        let mut above = Self::default();
        loop {
            let rest = &text[above.bytes..];
            let line = rest.split_inclusive('\n').next().unwrap_or_default();
            let plain = line.trim();
            if !line.is_empty() && plain.is_empty() {
                above.bytes += line.len();
            } else if let Some(comment) = rest.strip_prefix("<!--") {
                let Some(end) = comment.find("-->") else {
                    return above;
                };
                above.has_comment = true;
                above.bytes += "<!--".len() + end + "-->".len();
            } else if above.fence.is_empty() && plain.starts_with("```") {
                above.fence = &plain[..plain.len() - plain.trim_start_matches('`').len()];
                above.bytes += line.len();
            } else {
                return above;
            }
        }
    }

    /// The file up to `end`, with only the line breaks of the ignored text.
    fn blanked(&self, text: &'a str, end: usize) -> Cow<'a, str> {
        match self.bytes {
            0 => Cow::Borrowed(&text[..end]),
            bytes => {
                let lines = text[..bytes].matches('\n').count();
                Cow::Owned("\n".repeat(lines) + &text[bytes..end])
            }
        }
    }

    /// Removes the closing line of the code block, which is the first or the last line.
    fn without_fence(&self, body: &'a str) -> &'a str {
        if self.fence.is_empty() {
            return body;
        }
        let (first, below) = body.split_once('\n').unwrap_or((body, ""));
        let (above, last) = body.rsplit_once('\n').unwrap_or(("", body));
        if first.trim_end() == self.fence {
            below.trim()
        } else if last.trim_end() == self.fence {
            above.trim()
        } else {
            body
        }
    }

    fn passed_over(&self) -> Option<&'static str> {
        if !self.fence.is_empty() {
            Some("the mark of a code block")
        } else if self.has_comment {
            Some("a comment")
        } else {
            (self.bytes > 0).then_some("blank lines")
        }
    }
}

fn decode(bytes: &[u8]) -> Result<&str, SkillMdError> {
    if bytes.len() as u64 > limits::SKILL_MD_BYTES_MAX {
        let max = limits::SKILL_MD_BYTES_MAX / limits::KIB;
        return Err(SkillMdError::new(
            None,
            format!("is larger than {max} KiB; move text into references/"),
        ));
    }
    if bytes.is_empty() {
        return Err(SkillMdError::new(
            None,
            "is empty; it needs at least `name` and `description`",
        ));
    }
    let utf16 = [&[0xff, 0xfe][..], &[0xfe, 0xff], b"-\0", b"\0-"];
    if utf16.iter().any(|mark| bytes.starts_with(mark)) {
        return Err(SkillMdError::new(None, "is UTF-16; save it as UTF-8"));
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let text = std::str::from_utf8(bytes).map_err(|error| {
        SkillMdError::new(
            line_of(&bytes[..error.valid_up_to()]),
            "is not UTF-8; save it as UTF-8",
        )
    })?;
    match text.find('\0') {
        Some(at) => Err(SkillMdError::new(
            line_of(&bytes[..at]),
            "holds a NUL byte; it must be plain text",
        )),
        None => Ok(text),
    }
}

/// The line, from 1, of the byte after `before`.
fn line_of(before: &[u8]) -> u32 {
    let breaks = before.iter().filter(|byte| **byte == b'\n').count();
    u32::try_from(breaks).map_or(u32::MAX, |breaks| breaks.saturating_add(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Z-17.
    #[test]
    fn accepts_byte_order_mark_and_windows_line_ends() {
        let plain = Document::split(b"---\nname: a\n---\nBody\n").unwrap();
        assert_eq!(
            plain,
            Document {
                front_matter: "---\nname: a\n".into(),
                body: "Body",
                passed_over: None,
            }
        );
        let windows = Document::split(b"\xef\xbb\xbf---\r\nname: a\r\n--- \r\n\r\nBody\r\n").unwrap();
        assert_eq!(
            windows,
            Document {
                front_matter: "---\r\nname: a\r\n".into(),
                body: "Body",
                passed_over: None,
            }
        );
    }

    /// What editors, generators and copies out of a chat leave above the front matter.
    #[test]
    fn skips_text_above_the_front_matter() {
        let odd = [
            (
                "\n \n---\nname: a\n---\nBody\n",
                "\n\n---\nname: a\n",
                "blank lines",
            ),
            (
                "<!-- made\nby x -->\n---\nname: a\n---\n\nBody",
                "\n\n---\nname: a\n",
                "a comment",
            ),
            (
                "```skill\n---\nname: a\n---\nBody\n```\n",
                "\n---\nname: a\n",
                "the mark of a code block",
            ),
            (
                "````yaml\r\n---\r\nname: a\r\n---\r\n````\r\nBody",
                "\n---\r\nname: a\r\n",
                "the mark of a code block",
            ),
        ];
        for (text, front_matter, passed_over) in odd {
            let document = Document::split(text.as_bytes()).unwrap();
            assert_eq!(document.front_matter, front_matter, "{text:?}");
            assert_eq!(
                (document.body, document.passed_over),
                ("Body", Some(passed_over)),
                "{text:?}"
            );
        }
        let inner = "```\n---\na: b\n---\nBody\n```sh\nls\n```\nmore";
        assert!(
            Document::split(inner.as_bytes())
                .unwrap()
                .body
                .ends_with("```\nmore")
        );
        assert_eq!(
            Document::without_front_matter(b"# Title\n").unwrap().body,
            "# Title"
        );
        assert!(Document::without_front_matter(b"---\nname: a\n").is_none());
    }

    /// Z-17.
    #[test]
    fn names_the_fault_of_an_invalid_skill_md() {
        let utf16: Vec<u8> = "---\nname: a".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let huge = vec![b'-'; 10 << 20];
        let wide = format!("---\na: {}\n---\n", "x".repeat(limits::FRONT_MATTER_BYTES_MAX));
        let wrong: [(&[u8], Option<u32>, &str); 11] = [
            (b"", None, "empty"),
            (b"\xef\xbb\xbf", Some(1), "must start with a line `---`"),
            (b"# Title\n", Some(1), "must start with a line `---`"),
            (
                b"<!-- x\n---\nname: a\n---\n",
                Some(1),
                "must start with a line `---`",
            ),
            (b"```\n# Title\n```\n", Some(1), "must start with a line `---`"),
            (b"---\nname: a\n", Some(1), "not closed"),
            (&utf16, None, "UTF-16"),
            (b"---\nname: \xff\n---\n", Some(2), "not UTF-8"),
            (b"---\nname: a\n---\nx\0", Some(4), "NUL"),
            (&huge, None, "larger than 1024 KiB"),
            (wide.as_bytes(), Some(1), "more than 65536"),
        ];
        for (bytes, line, part) in wrong {
            let error = Document::split(bytes).unwrap_err();
            assert_eq!(error.line, line, "{error}");
            assert!(error.to_string().contains(part), "{error}");
        }
    }
}
