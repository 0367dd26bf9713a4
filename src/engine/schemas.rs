//! What a skill says of its input and its output is held against both.

use serde_json::Value;

use crate::error::{Error, Fault, quoted};
use crate::execution::{Failure, JsonText, Outcome, Status};
use crate::skill::{InvalidSchema, Manifest, Schema};

/// The schemas that hold for one call.
#[derive(Debug, Default)]
pub(super) struct Schemas {
    input: Option<Value>,
    output: Option<Value>,
}

impl Schemas {
    /// Those of a skill's own program or function; its scripts have inputs and outputs of their own.
    pub(super) fn of(manifest: &Manifest) -> Self {
        Self {
            input: manifest.input_schema.clone(),
            output: manifest.output_schema.clone(),
        }
    }

    /// Refuses an input that does not fit, and says where.
    pub(super) async fn check_input(&self, input: &JsonText) -> Result<(), Error> {
        let Some(schema) = &self.input else {
            return Ok(());
        };
        let faults = faults(schema, input).await?;
        let faults = faults.map_err(|error| {
            Error::invalid(format!(
                "`input_schema` of the skill: {error}; correct it and push it again"
            ))
        })?;
        match sentence("input", &faults) {
            Some(sentence) => Err(Error::invalid(sentence).with_faults(faults)),
            None => Ok(()),
        }
    }

    /// A success whose output does not fit is none; the output is kept. No output counts as `null`.
    pub(super) async fn check_output(&self, outcome: Outcome) -> Outcome {
        let (Some(schema), Status::Success) = (&self.output, outcome.status) else {
            return outcome;
        };
        let nothing = JsonText::parse(b"null").ok();
        let Some(output) = outcome.output.as_ref().or(nothing.as_ref()) else {
            return outcome;
        };
        let message = match faults(schema, output).await {
            Ok(Ok(faults)) => sentence("output", &faults),
            Ok(Err(error)) => Some(format!("`output_schema` of the skill: {error}")),
            Err(error) => Some(error.to_string()),
        };
        let Some(message) = message else {
            return outcome;
        };
        Outcome {
            status: Status::Failed,
            error: Some(Failure {
                code: "output_schema".to_owned(),
                message,
                exception: None,
            }),
            ..outcome
        }
    }
}

/// Off the async threads: a large value takes its time.
async fn faults(schema: &Value, value: &JsonText) -> Result<Result<Vec<Fault>, InvalidSchema>, Error> {
    let (schema, value) = (schema.clone(), value.clone());
    let checked = tokio::task::spawn_blocking(move || {
        let schema = Schema::compile(&schema)?;
        Ok(schema.faults(value.as_str()))
    });
    checked.await.map_err(Error::internal)
}

/// The first of `faults` in words.
fn sentence(what: &str, faults: &[Fault]) -> Option<String> {
    let (Fault { pointer, message }, more) = faults.split_first()?;
    let place = match pointer.as_str() {
        "" => String::new(),
        pointer => format!(" at {}", quoted(pointer)),
    };
    let more = match more.len() {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    Some(format!(
        "{what} does not fit the skill's `{what}_schema`{place}: {message}{more}"
    ))
}
