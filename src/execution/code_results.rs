//! Parses rich results and the exception of called code as hostile input.

use std::collections::BTreeMap;

use base64::Engine as _;
use serde::{Deserialize, Serialize};

use crate::execution::{Failure, JsonText, ResultForm, check_depth};
use crate::limits;

/// A rich result, in all formats that the code provided.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default)]
pub struct RichResult {
    /// Text, such as its `repr`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// HTML.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub html: Option<String>,
    /// Markdown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub markdown: Option<String>,
    /// SVG.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub svg: Option<String>,
    /// PNG in base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub png: Option<String>,
    /// JPEG in base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jpeg: Option<String>,
    /// PDF in base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pdf: Option<String>,
    /// LaTeX.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latex: Option<String>,
    /// JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub json: Option<JsonText>,
    /// JavaScript.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub javascript: Option<String>,
    /// Values of a table: column name to values.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub data: Option<JsonText>,
    /// Values of a chart.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub chart: Option<JsonText>,
    /// Whether it is the return value of `main` or of the last expression.
    pub is_main_result: bool,
    /// Members that were truncated or removed because of their size.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub truncated: Vec<String>,
    /// URL of each form, which works without a key until it expires. Only in answers of a server.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(required = false)]
    pub urls: BTreeMap<String, String>,
}

/// How the code ended early.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Exception {
    /// Type, such as `ZeroDivisionError`.
    pub name: String,
    /// Message.
    pub value: String,
    /// Traceback without our own frames.
    pub traceback: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Raised {
    Exception(Exception),
    /// The return value is not JSON, for this reason.
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

#[derive(Clone, Debug, Default, PartialEq)]
pub struct CodeResults {
    pub results: Vec<RichResult>,
    /// Whether `results` is incomplete.
    pub truncated: bool,
    pub raised: Option<Raised>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Result(Box<RichResult>),
    Exception(Exception),
    NotJson(String),
    Truncated(serde::de::IgnoredAny),
}

impl CodeResults {
    /// Parses `results.jsonl`. Invalid lines are skipped and set `truncated`.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Self {
        let mut parsed = Self::default();
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let fits = parsed.results.len() < limits::RESULTS_MAX;
            match read(line) {
                Some(Line::Result(result)) if fits => parsed.results.push(result.checked()),
                Some(Line::Exception(exception)) => {
                    parsed
                        .raised
                        .get_or_insert(Raised::Exception(exception.bounded()));
                }
                Some(Line::NotJson(mut reason)) => {
                    cut(&mut reason, limits::EXCEPTION_VALUE_BYTES_MAX);
                    parsed.raised.get_or_insert(Raised::NotJson(reason));
                }
                Some(Line::Result(_) | Line::Truncated(_)) | None => parsed.truncated = true,
            }
        }
        parsed
    }
}

fn read(line: &[u8]) -> Option<Line> {
    // One level for the line and one for the result.
    check_depth(line, limits::JSON_DEPTH_MAX - 2).ok()?;
    serde_json::from_slice(line).ok()
}

impl RichResult {
    /// Removes images with invalid base64, and unknown names in `truncated`.
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
        // Links are made for answers, and never read from a program.
        self.urls.clear();
        let is_form = |name: &str| ResultForm::ALL.iter().any(|form| form.as_str() == name);
        self.truncated.retain(|name| is_form(name));
        self.truncated.sort_unstable();
        self.truncated.dedup();
        self
    }
}

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
    fn parses_results_line_by_line() {
        let shown = CodeResults::parse(
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
    fn reports_invalid_result_lines_as_truncated() {
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
            let shown = CodeResults::parse(bytes);
            assert_eq!((shown.results.len(), shown.truncated), (0, true));
        }
    }

    #[test]
    fn removes_images_that_are_not_base64() {
        let line = br#"{"result": {"png": "<script>", "jpeg": "AAAA", "truncated": ["html", "evil"], "urls": {"jpeg": "https://evil.example/"}}}"#;
        let result = CodeResults::parse(line).results.remove(0);
        assert_eq!((result.png, result.jpeg.as_deref()), (None, Some("AAAA")));
        assert_eq!(result.truncated, ["html", "png"]);
        assert!(result.urls.is_empty());
    }

    #[test]
    fn limits_results_and_exception_texts() {
        let many = "{\"result\": {\"text\": \"x\"}}\n".repeat(limits::RESULTS_MAX + 1);
        let shown = CodeResults::parse(many.as_bytes());
        assert_eq!(
            (shown.results.len(), shown.truncated),
            (limits::RESULTS_MAX, true)
        );
        let long = format!(
            "{{\"exception\": {{\"name\": \"{}\", \"value\": \"\", \"traceback\": \"\"}}}}",
            "ü".repeat(limits::EXCEPTION_NAME_BYTES_MAX)
        );
        let Some(Raised::Exception(exception)) = CodeResults::parse(long.as_bytes()).raised else {
            panic!("an exception");
        };
        assert_eq!(exception.name.len(), limits::EXCEPTION_NAME_BYTES_MAX);
    }
}
