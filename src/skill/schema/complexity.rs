//! Limits how many parts of a schema apply to one place of a value: references to parts multiply.
//!
//! The step limit counts accesses to a value. Parts without access (`true`, a title) are not counted, and sixty definitions that
//! each name the next one twice are 2^60 evaluations. So they are counted before a schema is accepted.

use std::collections::HashMap;

use serde_json::Value;

use super::InvalidSchema;
use crate::limits;

/// Keywords whose schemas apply to the same place.
const LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
const SINGLE: [&str; 4] = ["not", "if", "then", "else"];
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];
/// Keywords whose values are not schemas.
const DATA: [&str; 4] = ["const", "enum", "default", "examples"];

/// Rejects schemas with too many parts for one place, endless recursion, or references that cannot be resolved here.
pub(super) fn check(schema: &Value) -> Result<(), InvalidSchema> {
    let mut counter = PartCounter {
        root: schema,
        anchors: HashMap::new(),
        known: HashMap::new(),
    };
    counter.find_anchors(schema, true)?;
    counter.visit(schema)
}

struct PartCounter<'a> {
    root: &'a Value,
    anchors: HashMap<&'a str, &'a Value>,
    /// By the address of the part; `None` while it is counted.
    known: HashMap<*const Value, Option<usize>>,
}

impl<'a> PartCounter<'a> {
    fn find_anchors(&mut self, schema: &'a Value, is_root: bool) -> Result<(), InvalidSchema> {
        match schema {
            Value::Object(members) => {
                for (key, value) in members {
                    match (key.as_str(), value) {
                        ("$anchor" | "$dynamicAnchor", Value::String(name)) => {
                            self.anchors.insert(name, schema);
                        }
                        ("$id", Value::String(_)) if !is_root => {
                            let message = "`$id` is supported at the root only; remove it";
                            return Err(InvalidSchema(message.to_owned()));
                        }
                        (key, _) if DATA.contains(&key) => {}
                        (_, value) => self.find_anchors(value, false)?,
                    }
                }
                Ok(())
            }
            Value::Array(items) => items.iter().try_for_each(|item| self.find_anchors(item, false)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
        }
    }

    fn visit(&mut self, schema: &'a Value) -> Result<(), InvalidSchema> {
        match schema {
            Value::Object(members) => {
                self.count(schema)?;
                let parts = members.iter().filter(|(key, _)| !DATA.contains(&key.as_str()));
                parts.map(|(_, part)| part).try_for_each(|part| self.visit(part))
            }
            Value::Array(items) => items.iter().try_for_each(|item| self.visit(item)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
        }
    }

    fn count(&mut self, schema: &'a Value) -> Result<usize, InvalidSchema> {
        let Value::Object(members) = schema else {
            return Ok(1);
        };
        let address = std::ptr::from_ref(schema);
        match self.known.get(&address) {
            Some(Some(known)) => return Ok(*known),
            Some(None) => {
                let message =
                    "a part of it refers to itself at the same place, without end; remove the reference";
                return Err(InvalidSchema(message.to_owned()));
            }
            None => self.known.insert(address, None),
        };
        let mut sum: usize = 1;
        for (key, value) in members {
            let parts: Vec<&Value> = match (key.as_str(), value) {
                (key, Value::Array(items)) if LISTS.contains(&key) => items.iter().collect(),
                (key, part) if SINGLE.contains(&key) => vec![part],
                ("dependentSchemas" | "dependencies", Value::Object(parts)) => parts.values().collect(),
                (key, Value::String(reference)) if REFERENCES.contains(&key) => {
                    self.target(reference)?.into_iter().collect()
                }
                _ => continue,
            };
            for part in parts {
                sum = sum.saturating_add(self.count(part)?);
            }
        }
        let max = limits::SCHEMA_WAYS_MAX;
        if sum > max {
            return Err(InvalidSchema(format!(
                "more than {max} parts of it apply to one value; simplify it"
            )));
        }
        self.known.insert(address, Some(sum));
        Ok(sum)
    }

    /// The part that a reference names; `None` if it does not exist, which the compiler reports.
    fn target(&self, reference: &str) -> Result<Option<&'a Value>, InvalidSchema> {
        // A reference may contain the schema's own `$id`.
        let own = self.root["$id"].as_str().map(|id| id.trim_end_matches('#'));
        let local = own
            .and_then(|own| reference.strip_prefix(own))
            .unwrap_or(reference);
        let Some(fragment) = local.strip_prefix('#') else {
            let reference = crate::error::quoted(reference);
            let message = format!(
                "a schema cannot refer to other documents, but has the reference {reference}; copy the part into `$defs`"
            );
            return Err(InvalidSchema(message));
        };
        if fragment.is_empty() {
            return Ok(Some(self.root));
        }
        if fragment.contains('%') {
            let message = "`$ref` contains `%`; write the name of the part without encoding";
            return Err(InvalidSchema(message.to_owned()));
        }
        Ok(if fragment.starts_with('/') {
            self.root.pointer(fragment)
        } else {
            self.anchors.get(fragment).copied()
        })
    }
}
