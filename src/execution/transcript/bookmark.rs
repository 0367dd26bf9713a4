//! Positions in a transcript, valid in any process.

use std::fmt;
use std::str::FromStr;

/// A position in a transcript. As text: `<bytes of stdout>-<bytes of stderr>-<log lines>-<phase>`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bookmark {
    /// Bytes of standard output before it.
    pub stdout: u64,
    /// Bytes of standard error before it.
    pub stderr: u64,
    /// Log lines before it.
    pub lines: u64,
    pub phase: Phase,
}

/// The last state that the reader received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// None.
    #[default]
    Start,
    /// Queued.
    Queued,
    /// Running, or no longer queued.
    Running,
    /// The result.
    Result,
    /// The end.
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the id of an event, such as 120-0-3-running")]
pub struct InvalidBookmark;

impl Phase {
    const ALL: [Self; 5] = [Self::Start, Self::Queued, Self::Running, Self::Result, Self::End];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Result => "result",
            Self::End => "end",
        }
    }
}

impl fmt::Display for Bookmark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            stdout,
            stderr,
            lines,
            phase,
        } = self;
        write!(f, "{stdout}-{stderr}-{lines}-{}", phase.as_str())
    }
}

impl FromStr for Bookmark {
    type Err = InvalidBookmark;

    fn from_str(text: &str) -> Result<Self, InvalidBookmark> {
        let mut parts = text.split('-');
        let mut number = || {
            let digits = parts
                .next()
                .filter(|part| part.bytes().all(|b| b.is_ascii_digit()))?;
            digits.parse().ok()
        };
        let numbers = (number(), number(), number());
        let (Some(stdout), Some(stderr), Some(lines)) = numbers else {
            return Err(InvalidBookmark);
        };
        let name = parts.next().ok_or(InvalidBookmark)?;
        let phase = Phase::ALL.into_iter().find(|phase| phase.as_str() == name);
        match (phase, parts.next()) {
            (Some(phase), None) => Ok(Self {
                stdout,
                stderr,
                lines,
                phase,
            }),
            (_, _) => Err(InvalidBookmark),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_malformed_bookmarks() {
        for phase in Phase::ALL {
            let bookmark = Bookmark {
                stdout: u64::MAX,
                stderr: 0,
                lines: 7,
                phase,
            };
            assert_eq!(bookmark.to_string().parse(), Ok(bookmark));
        }
        for wrong in [
            "",
            "1",
            "1-2-3",
            "1-2-3-",
            "1-2-3-gone",
            "1-2-3-end-",
            "-1-2-3-end",
            "+1-2-3-end",
            "1--3-end",
            "1-2-99999999999999999999-end",
            " 1-2-3-end",
            "1-2-3-END",
        ] {
            assert_eq!(wrong.parse::<Bookmark>(), Err(InvalidBookmark), "{wrong:?}");
        }
    }
}
