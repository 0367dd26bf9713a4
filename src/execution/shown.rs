//! What called code shows besides its output: rich results, and what it raised. It comes from inside a sandbox, so nothing of it is believed.

use base64::Engine as _;
use serde::{Deserialize, Serialize};

use crate::execution::{Failure, JsonText, check_depth};
use crate::limits;

/// One thing that code has shown, in as many forms as it has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default)]
pub struct RichResult {
    /// As text, such as its `repr`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// As HTML.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub html: Option<String>,
    /// As Markdown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub markdown: Option<String>,
    /// As SVG.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub svg: Option<String>,
    /// As PNG in base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub png: Option<String>,
    /// As JPEG in base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jpeg: Option<String>,
    /// As PDF in base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pdf: Option<String>,
    /// As LaTeX.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latex: Option<String>,
    /// As JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub json: Option<JsonText>,
    /// As JavaScript.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub javascript: Option<String>,
    /// The values of a table: each column's name with its values.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub data: Option<JsonText>,
    /// The values of a chart.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub chart: Option<JsonText>,
    /// Whether it is what the code came to: the value of `main` or of its last expression.
    pub is_main_result: bool,
    /// The members that were cut or left out because they were too large.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub truncated: Vec<String>,
}

/// What ended code early.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Exception {
    /// Its type, such as `ZeroDivisionError`.
    pub name: String,
    /// What it says.
    pub value: String,
    /// Where it came from, without our own frames.
    pub traceback: String,
}

/// Why a call came to nothing, in the words of whoever called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Raised {
    /// The code raised an exception.
    Exception(Exception),
    /// What it returned is not JSON, for this reason.
    NotJson(String),
}

impl From<Raised> for Failure {
    fn from(raised: Raised) -> Self {
        match raised {
            Raised::Exception(exception) => Self {
                code: "exception".to_owned(),
                message: match exception.value.as_str() {
                    "" => exception.name.clone(),
                    value => format!("{}: {value}", exception.name),
                },
                exception: Some(exception),
            },
            Raised::NotJson(message) => Self {
                code: "output_not_json".to_owned(),
                message,
                exception: None,
            },
        }
    }
}

/// All of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shown {
    /// What was shown, in order.
    pub results: Vec<RichResult>,
    /// Whether anything was left out of `results`.
    pub truncated: bool,
    /// Why it came to nothing.
    pub raised: Option<Raised>,
}

/// One line of `results.jsonl`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Result(Box<RichResult>),
    Exception(Exception),
    NotJson(String),
    /// There was more.
    Truncated(serde::de::IgnoredAny),
}

impl Shown {
    /// Reads `results.jsonl`; what is no line of ours is left out, and that is said.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Self {
        let mut shown = Self::default();
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let room = shown.results.len() < limits::RESULTS_MAX;
            match read(line) {
                Some(Line::Result(result)) if room => shown.results.push(result.checked()),
                Some(Line::Exception(exception)) => {
                    shown.raised.get_or_insert(Raised::Exception(exception.bounded()));
                }
                Some(Line::NotJson(mut reason)) => {
                    cut(&mut reason, limits::EXCEPTION_VALUE_BYTES_MAX);
                    shown.raised.get_or_insert(Raised::NotJson(reason));
                }
                Some(Line::Result(_) | Line::Truncated(_)) | None => shown.truncated = true,
            }
        }
        shown
    }
}

fn read(line: &[u8]) -> Option<Line> {
    // One level for the line, one for the result.
    check_depth(line, limits::JSON_DEPTH_MAX - 2).ok()?;
    serde_json::from_slice(line).ok()
}

impl RichResult {
    /// Keeps of the images what is base64, and of the notes what names a member.
    fn checked(mut self) -> Self {
        for (name, image) in [
            ("png", &mut self.png),
            ("jpeg", &mut self.jpeg),
            ("pdf", &mut self.pdf),
        ] {
            let is_base64 = |text: &String| base64::engine::general_purpose::STANDARD.decode(text).is_ok();
            if image.take_if(|text| !is_base64(text)).is_some() {
                self.truncated.push(name.to_owned());
            }
        }
        self.truncated.retain(|name| MEMBERS.contains(&name.as_str()));
        self.truncated.sort_unstable();
        self.truncated.dedup();
        self
    }
}

/// The forms of a result.
const MEMBERS: [&str; 12] = [
    "text",
    "html",
    "markdown",
    "svg",
    "png",
    "jpeg",
    "pdf",
    "latex",
    "json",
    "javascript",
    "data",
    "chart",
];

impl Exception {
    fn bounded(mut self) -> Self {
        cut(&mut self.name, limits::EXCEPTION_NAME_BYTES_MAX);
        cut(&mut self.value, limits::EXCEPTION_VALUE_BYTES_MAX);
        cut(&mut self.traceback, limits::TRACEBACK_BYTES_MAX);
        self
    }
}

fn cut(text: &mut String, bytes_max: usize) {
    text.truncate(text.floor_char_boundary(bytes_max));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_read_line_by_line() {
        let shown = Shown::parse(
            br#"{"result": {"text": "1", "png": "AAAA", "json": {"n": 1.10}, "is_main_result": true, "further": 1}}
{"exception": {"name": "ValueError", "value": "x", "traceback": "t"}}
{"exception": {"name": "Later", "value": "", "traceback": ""}}"#,
        );
        assert_eq!(shown.results.len(), 1);
        assert_eq!(shown.results[0].json.as_ref().unwrap().as_str(), "{\"n\": 1.10}");
        assert!(shown.results[0].is_main_result && !shown.truncated);
        assert!(matches!(shown.raised, Some(Raised::Exception(e)) if e.name == "ValueError"));
    }

    #[test]
    fn what_is_no_line_of_ours_is_left_out_and_that_is_said() {
        let deep = format!("{{\"result\": {{\"json\": {}}}}}", "[".repeat(100_000));
        for bytes in [
            "{".as_bytes(),
            deep.as_bytes(),
            b"\xff",
            b"{\"result\": {\"text\": 1}}",
            b"{\"result\": {\"text\": \"a\", \"text\": \"b\"}}",
            b"{\"else\": 1}",
            b"{\"truncated\": true}",
        ] {
            let shown = Shown::parse(bytes);
            assert_eq!((shown.results.len(), shown.truncated), (0, true));
        }
    }

    #[test]
    fn an_image_that_is_not_base64_is_named_and_left_out() {
        let line = br#"{"result": {"png": "<script>", "jpeg": "AAAA", "truncated": ["html", "evil"]}}"#;
        let result = Shown::parse(line).results.remove(0);
        assert_eq!((result.png, result.jpeg.as_deref()), (None, Some("AAAA")));
        assert_eq!(result.truncated, ["html", "png"]);
    }

    #[test]
    fn results_and_words_are_bounded() {
        let many = "{\"result\": {\"text\": \"x\"}}\n".repeat(limits::RESULTS_MAX + 1);
        let shown = Shown::parse(many.as_bytes());
        assert_eq!(
            (shown.results.len(), shown.truncated),
            (limits::RESULTS_MAX, true)
        );
        let long = format!(
            "{{\"exception\": {{\"name\": \"{}\", \"value\": \"\", \"traceback\": \"\"}}}}",
            "ü".repeat(limits::EXCEPTION_NAME_BYTES_MAX)
        );
        let Some(Raised::Exception(exception)) = Shown::parse(long.as_bytes()).raised else {
            panic!("an exception");
        };
        assert_eq!(exception.name.len(), limits::EXCEPTION_NAME_BYTES_MAX);
    }
}
