//! Secrets: set, listed, deleted, and handed to the programs of skills that declare them. No use case answers a value; a program
//! that was given one may tell it.

use std::borrow::Cow;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::auth::{Caller, Scope};
use crate::engine::{Engine, PageRequest, clock, failure, require, rows};
use crate::error::{Code, Error};
use crate::execution::{Failure, JsonText, Logs, Outcome, Skipped};
use crate::ids::Tenant;
use crate::limits;
use crate::sandbox::Job;
use crate::secret::{Ending, Mask, Owner, SecretValue};
use crate::skill::{Permissions, SecretName};
use crate::store::{self, Kept, NewSecret, Page, SecretRecord};

impl Engine {
    /// Keeps a secret of the caller's tenant, in place of the one that has this name.
    pub async fn set_secret(
        &self,
        caller: &Caller,
        name: &SecretName,
        value: &SecretValue,
    ) -> Result<Kept, Error> {
        require(caller, &[Scope::Admin])?;
        let owner = Owner {
            tenant: caller.tenant(),
            name: name.as_str(),
        };
        let sealed = self.0.master_key.seal(owner, value);
        let new = NewSecret {
            tenant: caller.tenant().clone(),
            name: name.clone(),
            sealed: sealed.map_err(|error| Error::internal(error.to_string()))?,
            at: clock::now(),
        };
        let kept = self.0.store.put_secret(new, limits::SECRETS_MAX).await;
        let kept = kept.map_err(|error| match error {
            store::Error::Quota => {
                let message = format!("the limit is {} secrets; delete one first", limits::SECRETS_MAX);
                Error::new(Code::StorageFull, message)
            }
            error => failure::of_store(error, "secret"),
        })?;
        tracing::info!(secret = %name, tenant = %caller.tenant(), "Set secret {name}");
        Ok(kept)
    }

    /// The names of the caller's tenant's secrets.
    pub async fn secrets(&self, caller: &Caller, page: PageRequest) -> Result<Page<SecretRecord>, Error> {
        require(caller, &[Scope::Admin])?;
        let rows = rows(&page);
        let found = self.0.store.secrets(caller.tenant(), page.after, rows).await;
        found.map_err(|error| failure::of_store(error, "secret"))
    }

    /// Deletes a secret. Programs that have it already keep it until they end.
    pub async fn delete_secret(&self, caller: &Caller, name: &SecretName) -> Result<(), Error> {
        require(caller, &[Scope::Admin])?;
        let deleted = self.0.store.delete_secret(caller.tenant(), name).await;
        deleted.map_err(|error| failure::of_store(error, &format!("secret `{name}`")))?;
        tracing::info!(secret = %name, tenant = %caller.tenant(), "Deleted secret {name}");
        Ok(())
    }

    /// Gives a planned job what its skill declares, all of it or an error that names what is missing.
    pub(super) async fn grant(
        &self,
        tenant: &Tenant,
        job: &mut Job,
        permissions: &Permissions,
    ) -> Result<(), Error> {
        let granted = self.granted(tenant, &permissions.secrets).await?;
        job.mask = Mask::new(granted.iter().map(|(_, value)| value));
        let variables = granted
            .iter()
            .map(|(name, value)| (name.to_string(), value.reveal().to_owned()));
        job.env.extend(variables);
        Ok(())
    }

    async fn granted(
        &self,
        tenant: &Tenant,
        declared: &[SecretName],
    ) -> Result<Vec<(SecretName, SecretValue)>, Error> {
        let (mut granted, mut missing) = (Vec::new(), Vec::new());
        for name in declared {
            match self.0.store.sealed(tenant, name).await {
                Ok(sealed) => granted.push((name.clone(), self.unseal(tenant, name, &sealed)?)),
                Err(store::Error::NotFound) => missing.push(name.as_str()),
                Err(error) => return Err(failure::of_store(error, "secret")),
            }
        }
        if !missing.is_empty() {
            return Err(are_missing(&missing));
        }
        let bytes: usize = granted.iter().map(|(_, value)| value.reveal().len()).sum();
        if bytes > limits::SECRETS_GRANTED_BYTES_MAX {
            let max = limits::SECRETS_GRANTED_BYTES_MAX;
            return Err(Error::invalid(format!(
                "the skill's secrets have {bytes} bytes together, the limit is {max}; shorten one"
            )));
        }
        Ok(granted)
    }

    fn unseal(&self, tenant: &Tenant, name: &SecretName, sealed: &[u8]) -> Result<SecretValue, Error> {
        let owner = Owner {
            tenant,
            name: name.as_str(),
        };
        self.0.master_key.open(owner, sealed).map_err(|error| {
            tracing::error!(secret = %name, %tenant, "Secret {name} {error}");
            Error::new(Code::Conflict, format!("secret `{name}` {error}"))
        })
    }
}

/// What is recorded of an execution, without the secrets it was given. Names of files were masked where they came in.
pub(super) fn masked(outcome: Outcome, mask: &Mask) -> Outcome {
    if mask.is_empty() {
        return outcome;
    }
    // A program that was killed may have been in the middle of a word.
    let was_killed = outcome.exit_code.is_none();
    let text = |text: String| mask.mask_text(&text).into_owned();
    let results = masked_value(outcome.results, mask);
    Outcome {
        error: outcome.error.map(|failure| Failure {
            message: text(failure.message),
            exception: failure
                .exception
                .and_then(|exception| masked_value(exception, mask)),
            ..failure
        }),
        output: outcome.output.map(|output| masked_json(output, mask)),
        results_truncated: outcome.results_truncated || results.is_none(),
        results: results.unwrap_or_default(),
        logs: masked_logs(outcome.logs, mask, was_killed),
        skipped: outcome
            .skipped
            .into_iter()
            .map(|skipped| Skipped {
                path: text(skipped.path),
                ..skipped
            })
            .collect(),
        ..outcome
    }
}

/// The very same text where nothing is found in it.
fn masked_json(json: JsonText, mask: &Mask) -> JsonText {
    let parsed = match mask.mask_json(json.as_str()) {
        Cow::Borrowed(_) => return json,
        Cow::Owned(text) => JsonText::parse(text.as_bytes()),
    };
    parsed.expect("masked JSON is JSON, and no deeper than before")
}

/// Anything that is kept as JSON; `None` where a secret is one of our own words, and what is left no longer reads as what it was.
fn masked_value<T: Serialize + DeserializeOwned>(value: T, mask: &Mask) -> Option<T> {
    let json = serde_json::to_string(&value).ok()?;
    match mask.mask_json(&json) {
        Cow::Borrowed(_) => Some(value),
        Cow::Owned(masked) => serde_json::from_str(&masked).ok(),
    }
}

/// Streams count as many bytes as were left out of them before.
fn masked_logs(logs: Logs, mask: &Mask, was_killed: bool) -> Logs {
    let stream = |kept: Vec<u8>, total: u64| {
        let ending = if was_killed || total > kept.len() as u64 {
            Ending::Cut
        } else {
            Ending::Whole
        };
        let left_out = total.saturating_sub(kept.len() as u64);
        let masked = mask.mask(&kept, ending).into_owned();
        let total = masked.len() as u64 + left_out;
        (masked, total)
    };
    let (stdout, stdout_total) = stream(logs.stdout, logs.stdout_total);
    let (stderr, stderr_total) = stream(logs.stderr, logs.stderr_total);
    let lines = masked_value(logs.lines, mask);
    Logs {
        stdout,
        stderr,
        stdout_total,
        stderr_total,
        lines_truncated: logs.lines_truncated || lines.is_none(),
        lines: lines.unwrap_or_default(),
    }
}

fn are_missing(names: &[&str]) -> Error {
    let first = names[0];
    let names = names.join("`, `");
    Error::invalid(format!(
        "the skill declares secrets that are not set: `{names}`; an administrator sets them, for example by `skillbox secret set {first}`"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execution::{Exception, LogLine, RichResult, Status};

    fn outcome(exit_code: Option<i32>) -> Outcome {
        Outcome {
            status: Status::Failed,
            error: Some(Failure {
                code: "start_failed".to_owned(),
                message: "no hunter2 here".to_owned(),
                exception: Some(Exception {
                    value: "hunter2".to_owned(),
                    ..Exception::default()
                }),
            }),
            exit_code,
            output: JsonText::parse(b"{\"a\": \"hunter2\"}").ok(),
            logs: Logs {
                stdout: b"hunter2 hunt".to_vec(),
                stderr: b"hunter2 hunt".to_vec(),
                stdout_total: 12,
                stderr_total: 100,
                lines: vec![LogLine {
                    fields: JsonText::parse(br#"{"token": "hunter2"}"#).ok(),
                    ..LogLine::default()
                }],
                lines_truncated: false,
            },
            results: vec![RichResult {
                text: Some("'hunter2'".to_owned()),
                data: JsonText::parse(br#"["hunter2"]"#).ok(),
                ..RichResult::default()
            }],
            skipped: vec![Skipped {
                path: "a/hunter2".to_owned(),
                reason: "link".to_owned(),
            }],
            ..crate::engine::run::unrecorded()
        }
    }

    /// O-21.
    #[test]
    fn no_part_of_an_outcome_keeps_a_secret_and_none_claims_to_be_cut() {
        let value = SecretValue::new("hunter2".to_owned()).unwrap();
        let mask = Mask::new([&value]);
        let exited = masked(outcome(Some(1)), &mask);
        assert!(!format!("{exited:?}").contains("hunter2"));
        assert_eq!(exited.output.unwrap().as_str(), "{\"a\": \"***\"}");
        assert_eq!(
            (exited.logs.stdout.as_slice(), exited.logs.stdout_total),
            (&b"*** hunt"[..], 8)
        );
        // What was left out of it may go on with the rest of the value.
        assert_eq!(
            (exited.logs.stderr.as_slice(), exited.logs.stderr_total),
            (&b"*** ***"[..], 95)
        );
        let killed = masked(outcome(None), &mask);
        assert_eq!(
            (killed.logs.stdout.as_slice(), killed.logs.stdout_total),
            (&b"*** ***"[..], 7)
        );
    }
}
