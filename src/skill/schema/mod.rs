//! JSON Schemas of a skill's input and output, compiled and applied at a limited cost.
//!
//! Schemas cannot load other documents: the crate is built without resolvers.

mod complexity;
mod step_limit;
#[cfg(test)]
mod tests;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::Value;

use crate::error::{Fault, quoted};
use crate::limits;

use step_limit::{CountedJson, CountedValue, with_step_limit};

const STEPS: usize = limits::SCHEMA_STEPS_MAX;
const STEPS_FOR_FAULTS: usize = STEPS / 8;

#[derive(Debug)]
pub struct Schema(Validator<CountedJson>);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidSchema(String);

impl Schema {
    /// Compiles `schema`: draft 2020-12, unless its `$schema` names another.
    ///
    /// Rejects references to other documents, patterns with look-around or back references, and schemas above the limits.
    pub fn compile(schema: &Value) -> Result<Self, InvalidSchema> {
        Size::of(schema)?;
        if Draft::default().detect(schema) == Draft::Unknown {
            let named = quoted(schema["$schema"].as_str().unwrap_or_default());
            let message = format!("$schema {named} is not supported; omit it for draft 2020-12");
            return Err(InvalidSchema(message));
        }
        std::thread::scope(|scope| {
            let compile =
                || with_step_limit(STEPS, || complexity::check(schema).and_then(|()| build(schema)));
            let thread = std::thread::Builder::new()
                .name("schema".to_owned())
                .stack_size(limits::SCHEMA_STACK_BYTES);
            let compiled = thread.spawn_scoped(scope, compile).map(|thread| thread.join());
            match compiled {
                Ok(Ok(Ok(compiled))) => compiled.map(Self),
                Ok(Ok(Err(_)) | Err(_)) => {
                    Err(InvalidSchema("it cannot be compiled; simplify it".to_owned()))
                }
                Err(error) => Err(InvalidSchema(format!(
                    "no thread available to compile it: {error}"
                ))),
            }
        })
    }

    /// The first [`limits::SCHEMA_FAULTS_MAX`] violations in a JSON text.
    ///
    /// Integers are compared exactly within 64 bits, other numbers as doubles; larger numbers violate every schema. The last of
    /// two members with one name counts.
    #[must_use]
    pub fn faults(&self, text: &str) -> Vec<Fault> {
        let value: Value = match serde_json::from_str(text) {
            Ok(value) => value,
            Err(error) => return vec![fault("", &format!("it cannot be checked: {error}"))],
        };
        match with_step_limit(STEPS, || self.0.is_valid(CountedValue(&value))) {
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
            let errors = self.0.iter_errors(CountedValue(&value));
            let faults = errors
                .take(limits::SCHEMA_FAULTS_MAX)
                .map(|error| masked_fault(&error));
            faults.collect::<Vec<_>>()
        };
        let first = || {
            self.0
                .validate(CountedValue(&value))
                .err()
                .map(|error| vec![masked_fault(&error)])
        };
        // Describing faults costs more than finding them: if there are very many, only one is described, or none.
        let faults = with_step_limit(STEPS_FOR_FAULTS, listed).ok();
        faults
            .or_else(|| with_step_limit(STEPS_FOR_FAULTS, first).ok().flatten())
            .unwrap_or_else(|| vec![fault("", "it does not match the schema")])
    }
}

fn build(schema: &Value) -> Result<Validator<CountedJson>, InvalidSchema> {
    let patterns = PatternOptions::regex()
        .size_limit(limits::SCHEMA_PATTERN_BYTES)
        .dfa_size_limit(limits::SCHEMA_PATTERN_BYTES);
    let options = jsonschema::options_for::<CountedJson>()
        .offline()
        .with_pattern_options(patterns)
        .should_validate_formats(false);
    options.build(schema).map_err(|error| {
        let Fault { pointer, message } = masked_fault(&error);
        let hint = match error.kind() {
            ValidationErrorKind::Referencing(_) => {
                "; a schema cannot refer to other documents: copy the part into `$defs`"
            }
            _ if message.contains("regex") => "; patterns cannot use look-around or back references",
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

/// Counts of keywords that are expensive to compile.
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

/// Without the value, which may be large or confidential.
fn masked_fault(error: &jsonschema::ValidationError<'_>) -> Fault {
    let mut message = error.masked().to_string();
    if let ValidationErrorKind::OneOfNotValid { context } | ValidationErrorKind::AnyOf { context } =
        error.kind()
    {
        let of_each = context.iter().filter_map(|errors| errors.first()).enumerate();
        let of_each = of_each.take(limits::SCHEMA_FAULTS_MAX);
        let of_each: Vec<_> = of_each
            .map(|(index, error)| format!("{}: {}", index + 1, error.masked()))
            .collect();
        message = format!("{message} ({})", of_each.join("; "));
    }
    fault(error.instance_path().as_str(), &message)
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
