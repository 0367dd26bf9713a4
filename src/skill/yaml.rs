//! Parses YAML into a tree with the spelling and line of each scalar, within limits.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Number;
use serde_saphyr::{
    DuplicateKeyPolicy, MergeKeyPolicy, MessageFormatter, NonFiniteFloatPolicy, Options, Spanned,
    UserMessageFormatter,
};

use crate::limits;

/// A value with its line.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    /// Line in the parsed text, from 1; in a mapping the line of the key.
    pub(super) line: u32,
    pub(super) value: Value,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Null,
    /// `text` is the spelling (`1.10`, `no`), `json` the YAML value.
    Scalar {
        text: String,
        json: serde_json::Value,
    },
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

/// A YAML error.
#[derive(Debug)]
pub(super) struct YamlError {
    /// Line in the parsed text, from 1, if known.
    pub(super) line: Option<u32>,
    /// Message of the parser, which may quote the text at any length.
    pub(super) message: String,
}

impl Node {
    /// As JSON, with YAML's types.
    pub(super) fn to_json(&self) -> serde_json::Value {
        match &self.value {
            Value::Null => serde_json::Value::Null,
            Value::Scalar { json, .. } => json.clone(),
            Value::List(items) => items.iter().map(Self::to_json).collect(),
            Value::Map(entries) => entries
                .iter()
                .map(|(k, node)| (k.clone(), node.to_json()))
                .collect(),
        }
    }

    /// Scalars as they are written, other values as JSON.
    pub(super) fn to_text(&self) -> String {
        match &self.value {
            Value::Scalar { text, .. } => text.clone(),
            Value::Null => String::new(),
            Value::List(_) | Value::Map(_) => self.to_json().to_string(),
        }
    }

    /// The type for error messages.
    pub(super) fn kind(&self) -> &'static str {
        match self.value {
            Value::Null => "nothing",
            Value::Scalar { .. } => "text",
            Value::List(_) => "a list",
            Value::Map(_) => "a mapping",
        }
    }
}

/// Reads one YAML document. Aliases are resolved within limits; duplicate keys, merge keys and unknown tags are
/// rejected.
pub(super) fn parse(source: &str) -> Result<Node, YamlError> {
    let root: Spanned<Raw> =
        serde_saphyr::from_str_with_options(source, options()).map_err(|error| YamlError {
            line: error.location().map(|at| narrow(at.line())),
            message: UserMessageFormatter
                .format_message(error.without_snippet())
                .into_owned(),
        })?;
    Ok(node(root, source))
}

fn options() -> Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_reader_input_bytes: Some(limits::FRONT_MATTER_BYTES_MAX),
            max_events: limits::YAML_EVENTS_MAX,
            max_nodes: limits::YAML_EVENTS_MAX,
            max_aliases: limits::YAML_ALIASES_MAX,
            max_anchors: limits::YAML_ALIASES_MAX,
            max_recorded_anchor_events: limits::YAML_REPLAYED_MAX,
            max_recorded_anchor_bytes: limits::FRONT_MATTER_BYTES_MAX,
            max_depth: limits::YAML_DEPTH_MAX,
            flow_nesting_limit: limits::YAML_DEPTH_MAX,
            max_documents: 2,
            max_total_scalar_bytes: 4 * limits::FRONT_MATTER_BYTES_MAX,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: limits::YAML_REPLAYED_MAX,
            max_replay_stack_depth: limits::YAML_DEPTH_MAX,
            max_alias_expansions_per_anchor: limits::YAML_ALIASES_MAX,
        },
        duplicate_keys: DuplicateKeyPolicy::Error,
        merge_keys: MergeKeyPolicy::Error,
        reject_unsupported_tags: true,
        strict_booleans: true,
        non_finite_float_policy: NonFiniteFloatPolicy::Reject,
        with_snippet: false,
    }
}

/// Deserialized: only the source still has the spelling of numbers.
#[derive(Debug)]
enum Raw {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Spanned<Self>>),
    Map(Vec<(Spanned<String>, Spanned<Self>)>),
}

fn node(spanned: Spanned<Raw>, source: &str) -> Node {
    let scalar = |json: serde_json::Value| Value::Scalar {
        text: written(&spanned.defined, source).map_or_else(|| json.to_string(), str::to_owned),
        json,
    };
    let value = match spanned.value {
        Raw::Null => Value::Null,
        Raw::Bool(value) => scalar(value.into()),
        Raw::Number(value) => scalar(value.into()),
        Raw::Text(text) => Value::Scalar {
            json: text.clone().into(),
            text,
        },
        Raw::List(items) => Value::List(items.into_iter().map(|item| node(item, source)).collect()),
        Raw::Map(entries) => Value::Map(
            entries
                .into_iter()
                .map(|(key, item)| keyed(key, item, source))
                .collect(),
        ),
    };
    Node {
        line: narrow(spanned.referenced.line()),
        value,
    }
}

fn keyed(key: Spanned<String>, item: Spanned<Raw>, source: &str) -> (String, Node) {
    let Node { value, .. } = node(item, source);
    (
        key.value,
        Node {
            line: narrow(key.referenced.line()),
            value,
        },
    )
}

/// The scalar at `location` as it is written.
fn written<'a>(location: &serde_saphyr::Location, source: &'a str) -> Option<&'a str> {
    let start = usize::try_from(location.span().byte_offset()?).ok()?;
    let length = usize::try_from(location.span().byte_len()?).ok()?;
    source.get(start..start.checked_add(length)?).map(str::trim)
}

fn narrow(line: u64) -> u32 {
    u32::try_from(line).unwrap_or(u32::MAX)
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_unit<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Raw, E> {
        Ok(Raw::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Raw, E> {
        Ok(Raw::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Raw, E> {
        Ok(Raw::Number(value.into()))
    }

    fn visit_i128<E>(self, value: i128) -> Result<Raw, E> {
        Ok(Number::from_i128(value).map_or_else(|| Raw::Text(value.to_string()), Raw::Number))
    }

    fn visit_u128<E>(self, value: u128) -> Result<Raw, E> {
        Ok(Number::from_u128(value).map_or_else(|| Raw::Text(value.to_string()), Raw::Number))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Raw, E> {
        Ok(Number::from_f64(value).map_or_else(|| Raw::Text(value.to_string()), Raw::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Raw, E> {
        Ok(Raw::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Raw, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Raw::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Raw, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            map.push(entry);
        }
        Ok(Raw::Map(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(source: &str) -> Vec<(String, Node)> {
        match parse(source).unwrap().value {
            Value::Map(entries) => entries,
            other => panic!("{other:?}"),
        }
    }

    /// Z-20.
    #[test]
    fn scalars_keep_spelling_and_line() {
        let source = "a: 1.10\r\nb: no\r\nc: 0o17\nd: 1_000\ne: 2024-01-02\nf: true # x\ng: 'é'\nh: 007\nk: 0x1F\n\
                      l: \"1.0\"\nm: &x 1.50\nn: *x\n";
        let seen: Vec<_> = map(source)
            .into_iter()
            .map(|(key, node)| match node.value {
                Value::Scalar { text, .. } => format!("{} {key}={text}", node.line),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(
            seen.join("\n"),
            "1 a=1.10\n2 b=no\n3 c=0o17\n4 d=1_000\n5 e=2024-01-02\n6 f=true\n7 g=é\n8 h=007\n9 k=0x1F\n\
             10 l=1.0\n11 m=1.50\n12 n=1.50"
        );
    }

    #[test]
    fn rejects_misleading_yaml_with_its_line() {
        let wrong = [
            ("a: 1\na: 2\n", 2, "duplicate"),
            ("a:\n  b: 1\n  b: 2\n", 3, "duplicate"),
            ("x: &a {p: 1}\ny:\n  <<: *a\n", 3, "merge key"),
            ("a: 1\nb: !foo 1", 2, "unsupported tag"),
            ("a: 1\n---\nb: 2\n", 3, "document"),
            ("a: 1\nb: c: d\n", 2, "mapping values are not allowed"),
            ("? [1,2]\n: x\n", 1, "string"),
            ("a: &x [*x]", 1, ""),
            ("a: 1e999", 1, ""),
        ];
        for (source, line, part) in wrong {
            let error = parse(source).unwrap_err();
            assert_eq!(error.line, Some(line), "{source:?}: {}", error.message);
            assert!(error.message.contains(part), "{source:?}: {}", error.message);
        }
    }
}
