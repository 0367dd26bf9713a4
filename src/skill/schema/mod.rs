//! JSON Schemas of a skill's input and output: checked before they are kept, and never at more than a fixed cost.
//!
//! No schema reaches anything outside itself: the crate is built without resolvers.

mod measured;
#[cfg(test)]
mod tests;
mod ways;

use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::Value;

use crate::error::{Fault, quoted};
use crate::limits;

use measured::{Measured, Measuring, measured};

const STEPS: usize = limits::SCHEMA_STEPS_MAX;
const STEPS_TO_TELL: usize = STEPS / 8;

/// A JSON Schema that values can be held against.
#[derive(Debug)]
pub struct Schema(Validator<Measuring>);

/// Why a schema is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidSchema(String);

impl Schema {
    /// Compiles `schema`: draft 2020-12, unless its `$schema` names another.
    ///
    /// # Errors
    ///
    /// No valid schema, one that refers to another document, a pattern with look-around or back references, or more of it
    /// than the limits allow.
    pub fn compile(schema: &Value) -> Result<Self, InvalidSchema> {
        Size::of(schema)?;
        if Draft::default().detect(schema) == Draft::Unknown {
            let named = quoted(schema["$schema"].as_str().unwrap_or_default());
            let message = format!("$schema {named} is not known; leave it out for draft 2020-12");
            return Err(InvalidSchema(message));
        }
        std::thread::scope(|scope| {
            let compile = || measured(STEPS, || ways::check(schema).and_then(|()| build(schema)));
            let thread = std::thread::Builder::new()
                .name("schema".to_owned())
                .stack_size(limits::SCHEMA_STACK_BYTES);
            let compiled = thread.spawn_scoped(scope, compile).map(|thread| thread.join());
            match compiled {
                Ok(Ok(Ok(compiled))) => compiled.map(Self),
                Ok(Ok(Err(_)) | Err(_)) => {
                    Err(InvalidSchema("it cannot be compiled; simplify it".to_owned()))
                }
                Err(error) => Err(InvalidSchema(format!("no thread to compile it: {error}"))),
            }
        })
    }

    /// Where the JSON `text` does not fit and why, the first [`limits::SCHEMA_FAULTS_MAX`]; empty if it fits.
    ///
    /// Whole numbers are compared exactly within 64 bits, all others as the nearest double. What no double can hold fits no
    /// schema, and of two members with one name the last counts.
    #[must_use]
    pub fn faults(&self, text: &str) -> Vec<Fault> {
        let value: Value = match serde_json::from_str(text) {
            Ok(value) => value,
            Err(error) => return vec![fault("", &format!("it cannot be checked: {error}"))],
        };
        match measured(STEPS, || self.0.is_valid(Measured(&value))) {
            Ok(true) => return Vec::new(),
            Ok(false) => {}
            Err(_) => {
                return vec![fault(
                    "",
                    "checking it takes too long; simplify the schema or the value",
                )];
            }
        }
        let listed = || {
            let errors = self.0.iter_errors(Measured(&value));
            let told = errors.take(limits::SCHEMA_FAULTS_MAX).map(|error| told(&error));
            told.collect::<Vec<_>>()
        };
        let first = || {
            self.0
                .validate(Measured(&value))
                .err()
                .map(|error| vec![told(&error)])
        };
        // To tell costs more than to know: of very many faults only one is told, or none.
        let faults = measured(STEPS_TO_TELL, listed).ok();
        faults
            .or_else(|| measured(STEPS_TO_TELL, first).ok().flatten())
            .unwrap_or_else(|| vec![fault("", "it does not fit")])
    }
}

fn build(schema: &Value) -> Result<Validator<Measuring>, InvalidSchema> {
    let patterns = PatternOptions::regex()
        .size_limit(limits::SCHEMA_PATTERN_BYTES)
        .dfa_size_limit(limits::SCHEMA_PATTERN_BYTES);
    let options = jsonschema::options_for::<Measuring>()
        .offline()
        .with_pattern_options(patterns)
        .should_validate_formats(false);
    options.build(schema).map_err(|error| {
        let Fault { pointer, message } = told(&error);
        let hint = match error.kind() {
            jsonschema::error::ValidationErrorKind::Referencing(_) => {
                "; a schema refers to nothing outside itself: put what it needs into `$defs`"
            }
            _ if message.contains("regex") => "; patterns have no look-around and no back references here",
            _ => "",
        };
        let place = if pointer.is_empty() {
            String::new()
        } else {
            format!("at {}: ", quoted(&pointer))
        };
        InvalidSchema(format!("{place}{message}{hint}"))
    })
}

/// What may make a schema slow before any value is held against it.
#[derive(Default)]
struct Size {
    references: usize,
    patterns: usize,
}

impl Size {
    fn of(schema: &Value) -> Result<(), InvalidSchema> {
        let bytes = schema.to_string().len();
        let max = limits::SCHEMA_BYTES_MAX;
        if bytes > max {
            return Err(InvalidSchema(format!("it has {bytes} bytes, the limit is {max}")));
        }
        let mut size = Self::default();
        size.add(schema, limits::SCHEMA_DEPTH_MAX)?;
        let bounds = [
            ("references", size.references, limits::SCHEMA_REFERENCES_MAX),
            ("patterns", size.patterns, limits::SCHEMA_PATTERNS_MAX),
        ];
        match bounds.into_iter().find(|(_, found, max)| found > max) {
            Some((what, found, max)) => Err(InvalidSchema(format!(
                "it has {found} {what}, the limit is {max}"
            ))),
            None => Ok(()),
        }
    }

    fn add(&mut self, value: &Value, levels: usize) -> Result<(), InvalidSchema> {
        let Some(below) = levels.checked_sub(1) else {
            let max = limits::SCHEMA_DEPTH_MAX;
            return Err(InvalidSchema(format!("it is nested deeper than {max} levels")));
        };
        match value {
            Value::Object(members) => members.iter().try_for_each(|(key, value)| {
                match (key.as_str(), value) {
                    ("$ref" | "$dynamicRef" | "$recursiveRef", _) => self.references += 1,
                    ("pattern", _) => self.patterns += 1,
                    ("patternProperties", Value::Object(patterns)) => self.patterns += patterns.len(),
                    _ => {}
                }
                self.add(value, below)
            }),
            Value::Array(items) => items.iter().try_for_each(|item| self.add(item, below)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
        }
    }
}

/// Without the value itself, which may be large or not for everybody's eyes.
fn told(error: &jsonschema::ValidationError<'_>) -> Fault {
    fault(error.instance_path().as_str(), &error.masked().to_string())
}

fn fault(pointer: &str, message: &str) -> Fault {
    let cut = |text: &str| {
        let mut shown: String = text.chars().take(limits::FAULT_CHARS_MAX).collect();
        if shown.len() < text.len() {
            shown.push('…');
        }
        shown.replace(char::is_control, " ")
    };
    Fault {
        pointer: cut(pointer),
        message: cut(message),
    }
}
