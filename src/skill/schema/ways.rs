//! How often one place of a value is held against the parts of a schema: parts that name other parts multiply.
//!
//! The counter of looks bounds what a check does to a value. Parts that never look at it (`true`, or a title alone) would go
//! by uncounted, and sixty definitions that each name the next twice are 2^60 ways through nothing. So ways are counted
//! before a schema is taken.

use std::collections::HashMap;

use serde_json::Value;

use super::InvalidSchema;
use crate::limits;

/// Keywords whose schemas are held against the same place.
const LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
const SINGLE: [&str; 4] = ["not", "if", "then", "else"];
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];
/// Values of these are no schemas.
const DATA: [&str; 4] = ["const", "enum", "default", "examples"];

/// Refuses a schema in which any place meets more parts than the limit, parts that hold themselves in place, and references that
/// cannot be followed here.
pub(super) fn check(schema: &Value) -> Result<(), InvalidSchema> {
    let mut ways = Ways {
        root: schema,
        anchors: HashMap::new(),
        known: HashMap::new(),
    };
    ways.find_anchors(schema, true)?;
    ways.visit(schema)
}

struct Ways<'a> {
    root: &'a Value,
    anchors: HashMap<&'a str, &'a Value>,
    /// By the address of the part; `None` while it is being counted.
    known: HashMap<*const Value, Option<usize>>,
}

impl<'a> Ways<'a> {
    fn find_anchors(&mut self, schema: &'a Value, is_root: bool) -> Result<(), InvalidSchema> {
        match schema {
            Value::Object(members) => {
                for (key, value) in members {
                    match (key.as_str(), value) {
                        ("$anchor" | "$dynamicAnchor", Value::String(name)) => {
                            self.anchors.insert(name, schema);
                        }
                        ("$id", Value::String(_)) if !is_root => {
                            let message =
                                "`$id` below the root makes references hard to follow; leave it out";
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

    /// Counts the ways of every part of the schema.
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
                let message = "a part of it refers to itself at the same place, which never ends";
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
                "one value would be held against more than {max} parts of it; simplify it"
            )));
        }
        self.known.insert(address, Some(sum));
        Ok(sum)
    }

    /// What a reference names; nothing where the compiler will say that there is nothing.
    fn target(&self, reference: &str) -> Result<Option<&'a Value>, InvalidSchema> {
        // By its own name, too.
        let own = self.root["$id"].as_str().map(|id| id.trim_end_matches('#'));
        let local = own
            .and_then(|own| reference.strip_prefix(own))
            .unwrap_or(reference);
        let Some(fragment) = local.strip_prefix('#') else {
            let reference = crate::error::quoted(reference);
            let message = format!(
                "a schema refers to nothing outside itself, but {reference} is; put what it needs into `$defs`"
            );
            return Err(InvalidSchema(message));
        };
        if fragment.is_empty() {
            return Ok(Some(self.root));
        }
        if fragment.contains('%') {
            let message = "`$ref` holds `%`; write the name of the part as it is";
            return Err(InvalidSchema(message.to_owned()));
        }
        Ok(if fragment.starts_with('/') {
            self.root.pointer(fragment)
        } else {
            self.anchors.get(fragment).copied()
        })
    }
}
