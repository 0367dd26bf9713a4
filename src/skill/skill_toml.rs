//! Parses `skill.toml` into the same tree as a front matter.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::quoted;
use crate::limits;
use crate::skill::document::{File, SkillMdError};
use crate::skill::yaml::{Node, Value};

/// Tables whose keys are equal to top-level keys.
const GROUPS: [&str; 3] = ["skill", "runtime", "function"];

/// Reads the keys in order, including those of [`GROUPS`].
pub(super) fn entries(bytes: &[u8]) -> Result<Vec<(String, Node)>, SkillMdError> {
    let refused =
        |line: Option<u32>, message: String| SkillMdError::new(line, message).in_file(File::SkillToml);
    let max = limits::FRONT_MATTER_BYTES_MAX;
    if bytes.len() > max {
        return Err(refused(None, format!("is larger than {} KiB", max / 1024)));
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let text = std::str::from_utf8(bytes).map_err(|error| {
        refused(
            Some(line(bytes, error.valid_up_to())),
            "is not UTF-8; save it as UTF-8".to_owned(),
        )
    })?;
    let table = DeTable::parse(text).map_err(|error| {
        let at = error.span().map(|span| line(bytes, span.start));
        refused(at, format!("is not valid TOML: {}", quoted(error.message())))
    })?;
    let lines = Lines(bytes);
    let mut entries = Vec::new();
    for (key, value) in table.into_inner() {
        let at = lines.of(key.span());
        match value.into_inner() {
            DeValue::Table(group) if GROUPS.contains(&key.get_ref().as_ref()) => {
                entries.extend(lines.entries(group));
            }
            value => entries.push((key.into_inner().into_owned(), lines.node(at, value))),
        }
    }
    entries.sort_by_key(|(_, node)| node.line);
    Ok(entries)
}

/// The text, to convert offsets into lines.
struct Lines<'a>(&'a [u8]);

impl Lines<'_> {
    fn of(&self, span: Range<usize>) -> u32 {
        line(self.0, span.start)
    }

    fn entries(&self, table: DeTable<'_>) -> Vec<(String, Node)> {
        let keyed = |(key, value): (Spanned<_>, Spanned<DeValue<'_>>)| {
            let at = self.of(key.span());
            let key: std::borrow::Cow<'_, str> = key.into_inner();
            (key.into_owned(), self.node(at, value.into_inner()))
        };
        table.into_iter().map(keyed).collect()
    }

    fn node(&self, line: u32, value: DeValue<'_>) -> Node {
        let scalar = |text: String, json| Value::Scalar { text, json };
        let value = match value {
            DeValue::String(text) => scalar(text.clone().into_owned(), text.into_owned().into()),
            DeValue::Boolean(truth) => scalar(truth.to_string(), truth.into()),
            DeValue::Integer(number) => {
                let parsed = i64::from_str_radix(number.as_str(), number.radix());
                let json = parsed.map_or_else(|_| number.as_str().into(), serde_json::Value::from);
                scalar(number.as_str().to_owned(), json)
            }
            DeValue::Float(number) => {
                let parsed = number
                    .as_str()
                    .parse()
                    .ok()
                    .and_then(serde_json::Number::from_f64);
                let json = parsed.map_or_else(|| number.as_str().into(), serde_json::Value::Number);
                scalar(number.as_str().to_owned(), json)
            }
            DeValue::Datetime(time) => scalar(time.to_string(), time.to_string().into()),
            DeValue::Array(items) => Value::List(
                items
                    .into_iter()
                    .map(|item| self.node(self.of(item.span()), item.into_inner()))
                    .collect(),
            ),
            DeValue::Table(table) => Value::Map(self.entries(table)),
        };
        Node { line, value }
    }
}

/// The line, from 1, of the byte at `offset`.
fn line(text: &[u8], offset: usize) -> u32 {
    let before = text.get(..offset).unwrap_or(text);
    let breaks = before.iter().filter(|byte| **byte == b'\n').count();
    u32::try_from(breaks).map_or(u32::MAX, |breaks| breaks.saturating_add(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flattens_groups() {
        let text = "name = 'a.b'\n[skill]\nversion = \"1.10.0\"\n[runtime]\ntimeout = 1.5\n[permissions]\nsecrets = ['A', {name = 'B'}]\n";
        let entries = entries(text.as_bytes()).unwrap();
        let told: Vec<_> = entries
            .iter()
            .map(|(key, node)| format!("{} {key}={}", node.line, node.to_json()))
            .collect();
        assert_eq!(
            told,
            [
                r#"1 name="a.b""#,
                r#"3 version="1.10.0""#,
                "5 timeout=1.5",
                r#"6 permissions={"secrets":["A",{"name":"B"}]}"#
            ]
        );
    }

    /// Z-17, Z-19 for TOML.
    #[test]
    fn names_line_of_invalid_toml() {
        let deep = format!("a = {}", "[".repeat(60_000));
        let large = "#".repeat(limits::FRONT_MATTER_BYTES_MAX + 1);
        for (text, part) in [
            ("a = 1\nb = \n", "skill.toml, line 2: is not valid TOML"),
            ("a = 1\na = 2\n", "skill.toml, line 2: is not valid TOML"),
            (deep.as_str(), "is not valid TOML"),
            (large.as_str(), "skill.toml: is larger than 64 KiB"),
        ] {
            let error = entries(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        let error = entries(b"a = 1\nb = '\xff'").unwrap_err().to_string();
        assert_eq!(error, "skill.toml, line 2: is not UTF-8; save it as UTF-8");
    }
}
