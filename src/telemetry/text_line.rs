//! Log lines for people: date, level, what happened, and named fields.
//!
//! `2026-07-20T21:47:05Z INFO POST /v1/executions status=200 ms=361 skill=x outcome=success execution=…`

use std::fmt::{self, Write as _};

use serde_json::Value;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::{JsonFields, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent};
use tracing_subscriber::registry::LookupSpan;

use super::field;
use super::json::fields_of;

#[derive(Debug)]
pub(super) struct TextLine;

/// Fields in the order in which they appear, with shorter names. All others follow, except those of [`HIDDEN`].
const SHORT: [(&str, &str); 7] = [
    (field::STATUS, "status"),
    (field::DURATION_MS, "ms"),
    (field::CODE, "code"),
    (field::SKILL, "skill"),
    (field::OUTCOME, "outcome"),
    (field::EXECUTION_ID, "execution"),
    (field::CAUSE, "cause"),
];
/// Who asked is in JSON lines; these are told only of what failed.
const HIDDEN: [&str; 4] = [field::REQUEST_ID, field::PEER, field::TENANT, field::KEY_ID];
/// Part of the text of a line.
const IN_TEXT: [&str; 3] = ["message", field::REQUEST_METHOD, field::REQUEST_ROUTE];

impl<S> FormatEvent<S, JsonFields> for TextLine
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, JsonFields>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let fields = fields_of(context, event);
        let level = *event.metadata().level();
        let now = jiff::Timestamp::try_from(std::time::SystemTime::now()).unwrap_or_default();
        let (colour, plain) = match (writer.has_ansi_escapes(), level) {
            (false, _) => ("", ""),
            (true, Level::ERROR) => ("\u{1b}[31m", "\u{1b}[0m"),
            (true, Level::WARN) => ("\u{1b}[33m", "\u{1b}[0m"),
            (true, _) => ("\u{1b}[2m", "\u{1b}[0m"),
        };
        let mut line = format!("{} {colour}{level}{plain} ", now.strftime("%Y-%m-%dT%H:%M:%SZ"));
        match (
            fields.get(field::REQUEST_METHOD),
            fields.get(field::REQUEST_ROUTE),
        ) {
            (Some(Value::String(method)), Some(Value::String(route))) => {
                let _ = write!(line, "{method} {route}");
            }
            _ => line += fields.get("message").and_then(Value::as_str).unwrap_or_default(),
        }
        let mut shown: Vec<(&str, &Value)> = Vec::new();
        shown.extend(
            SHORT
                .iter()
                .filter_map(|(name, short)| Some((*short, fields.get(*name)?))),
        );
        let is_other = |name: &str| {
            let is_short = SHORT.iter().any(|(short, _)| *short == name);
            let is_hidden = HIDDEN.contains(&name) && level > Level::WARN;
            !is_short && !is_hidden && !IN_TEXT.contains(&name)
        };
        let others = fields.iter().filter(|(name, _)| is_other(name));
        shown.extend(others.map(|(name, value)| (name.as_str(), value)));
        for (name, value) in shown {
            let _ = match value {
                Value::Null => Ok(()),
                Value::String(text) if is_word(text) => write!(line, " {name}={text}"),
                Value::String(text) => write!(line, " {name}={text:?}"),
                other => write!(line, " {name}={other}"),
            };
        }
        // A line is one line, whatever a field contains.
        writeln!(writer, "{}", line.replace(['\n', '\r'], " "))
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'='))
}
