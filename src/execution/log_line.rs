//! Lines of the helper `log`: structured, and untrusted like everything from a sandbox.

use serde::{Deserialize, Serialize};

use crate::execution::JsonText;
use crate::limits;

/// Level of a log line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Details for the author.
    Debug,
    /// Normal operation.
    #[default]
    Info,
    /// Something unusual.
    Warning,
    /// An error.
    Error,
}

impl Level {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "DEBUG",
            Self::Info => "INFO",
            Self::Warning => "WARNING",
            Self::Error => "ERROR",
        }
    }
}

/// A line of the log.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default)]
pub struct LogLine {
    /// Time by the program's clock; `null` if absent.
    #[schema(value_type = Option<String>, format = DateTime, required)]
    pub time: Option<jiff::Timestamp>,
    /// Level.
    pub level: Level,
    /// Message.
    pub message: String,
    /// Additional fields; `null` if absent.
    #[schema(value_type = Option<serde_json::Value>, required)]
    pub fields: Option<JsonText>,
}

impl LogLine {
    /// A line in another format becomes a message.
    #[must_use]
    pub fn parse_all(bytes: &[u8]) -> Vec<Self> {
        bytes
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .take(limits::LOG_LINES_MAX)
            .map(Self::parse)
            .collect()
    }

    /// `line` has no line break.
    #[must_use]
    pub fn parse(line: &[u8]) -> Self {
        serde_json::from_slice(line).unwrap_or_else(|_| Self {
            message: String::from_utf8_lossy(line).into_owned(),
            ..Self::default()
        })
    }
}

impl LogLine {
    /// Level, message and fields as text.
    #[must_use]
    pub fn untimed(&self) -> String {
        let untimed = Self {
            time: None,
            ..self.clone()
        };
        untimed.to_string()
    }
}

impl std::fmt::Display for LogLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(time) = self.time {
            write!(f, "{time:.3} ")?;
        }
        write!(f, "{} {}", self.level.as_str(), self.message)?;
        match &self.fields {
            Some(fields) => write!(f, " {fields}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_structured_and_plain_lines() {
        let lines = LogLine::parse_all(
            b"{\"time\":\"2026-01-02T03:04:05.5Z\",\"level\":\"error\",\"message\":\"no\",\"fields\":{\"n\":1.10}}\nplain \xff\n\n{\"level\":\"loud\",\"message\":\"x\"}\n",
        );
        assert_eq!(lines.len(), 3);
        assert_eq!(
            lines[0].to_string(),
            "2026-01-02T03:04:05.500Z ERROR no {\"n\":1.10}"
        );
        assert_eq!(lines[1].to_string(), "INFO plain \u{fffd}");
        // A level that there is not makes it no line of ours.
        assert!(lines[2].message.contains("loud"));
    }

    #[test]
    fn limits_the_number_of_lines() {
        let many = "x\n".repeat(limits::LOG_LINES_MAX + 5);
        assert_eq!(LogLine::parse_all(many.as_bytes()).len(), limits::LOG_LINES_MAX);
    }
}
