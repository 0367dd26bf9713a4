//! Validates input and output against the schemas of a skill.

use serde_json::Value;

use crate::error::{Error, Fault, quoted};
use crate::execution::{Failure, JsonText, Outcome, Status};
use crate::skill::{InvalidSchema, Manifest, Schema};

#[derive(Debug, Default)]
pub(super) struct Schemas {
    input: Option<Value>,
    output: Option<Value>,
}

impl Schemas {
    /// Only for the declared program or function: scripts have inputs and outputs of their own.
    pub(super) fn of(manifest: &Manifest) -> Self {
        Self {
            input: manifest.input_schema.clone(),
            output: manifest.output_schema.clone(),
        }
    }

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

    /// A successful run with an invalid output becomes a failure that keeps the output. No output counts as `null`.
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

/// On a blocking thread, since large values take long.
async fn faults(schema: &Value, value: &JsonText) -> Result<Result<Vec<Fault>, InvalidSchema>, Error> {
    let (schema, value) = (schema.clone(), value.clone());
    let checked = tokio::task::spawn_blocking(move || {
        let schema = Schema::compile(&schema)?;
        Ok(schema.faults(value.as_str()))
    });
    checked.await.map_err(Error::internal)
}

/// The first faults as a sentence.
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
        "{what} violates the skill's `{what}_schema`{place}: {message}{more}"
    ))
}
