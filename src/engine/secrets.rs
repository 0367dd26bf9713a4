//! Secrets: set, listed, deleted, and granted to skills that declare them. No use case returns a value, but a program
//! that received one may print it.

use std::borrow::Cow;

use crate::engine::{PageRequest, Secrets, clock, rows};
use crate::error::{Code, Error};
use crate::execution::{Exception, Failure, JsonText, Logs, Outcome, Raised, RichResult, Skipped};
use crate::ids::Tenant;
use crate::limits;
use crate::sandbox::Job;
use crate::secret::{Mask, Owner, SecretValue, Truncation};
use crate::skill::SecretName;
use crate::store::{self, NewSecret, Page, Saved, SecretRecord};

impl Secrets<'_> {
    /// Sets or replaces a secret.
    pub async fn set(self, tenant: &Tenant, name: &SecretName, value: &SecretValue) -> Result<Saved, Error> {
        name.check_new()
            .map_err(|error| Error::invalid(format!("name: {error}")))?;
        let owner = Owner {
            tenant,
            name: name.as_str(),
        };
        let sealed = self.engine.master_key.seal(owner, value);
        let new = NewSecret {
            tenant: tenant.clone(),
            name: name.clone(),
            sealed: sealed.map_err(|error| Error::internal(error.to_string()))?,
            at: clock::now(),
        };
        let kept = self.engine.store.put_secret(new, limits::SECRETS_MAX).await;
        let kept = kept.map_err(|error| match error {
            store::Error::Quota => {
                let message = format!("the limit is {} secrets; delete one first", limits::SECRETS_MAX);
                Error::new(Code::StorageFull, message)
            }
            error => error.into(),
        })?;
        tracing::info!(secret = %name, tenant = %tenant, "Set secret {name}");
        Ok(kept)
    }

    /// Sorted by name, without values.
    pub async fn list(self, tenant: &Tenant, page: PageRequest) -> Result<Page<SecretRecord>, Error> {
        let rows = rows(&page);
        Ok(self.engine.store.secrets(tenant, page.after, rows).await?)
    }

    /// Programs that have the secret keep it until they end.
    pub async fn delete(self, tenant: &Tenant, name: &SecretName) -> Result<(), Error> {
        self.engine.store.delete_secret(tenant, name).await?;
        tracing::info!(secret = %name, tenant = %tenant, "Deleted secret {name}");
        Ok(())
    }

    /// Grants the declared secrets to a job. An error names missing ones.
    pub(super) async fn grant(
        self,
        tenant: &Tenant,
        job: &mut Job,
        secrets: &[SecretName],
    ) -> Result<(), Error> {
        let granted = self.granted(tenant, secrets).await?;
        job.program.mask = Mask::new(granted.iter().map(|(_, value)| value));
        let variables = granted
            .iter()
            .map(|(name, value)| (name.to_string(), value.reveal().to_owned()));
        job.program.env.extend(variables);
        Ok(())
    }

    async fn granted(
        self,
        tenant: &Tenant,
        declared: &[SecretName],
    ) -> Result<Vec<(SecretName, SecretValue)>, Error> {
        let (mut granted, mut missing) = (Vec::new(), Vec::new());
        for name in declared {
            match self.engine.store.sealed_secret(tenant, name).await {
                Ok(sealed) => granted.push((name.clone(), self.unseal(tenant, name, &sealed)?)),
                Err(store::Error::NotFound(_)) => missing.push(name.as_str()),
                Err(error) => return Err(error.into()),
            }
        }
        if !missing.is_empty() {
            return Err(missing_secrets(&missing));
        }
        let bytes: usize = granted.iter().map(|(_, value)| value.reveal().len()).sum();
        if bytes > limits::SECRETS_GRANTED_BYTES_MAX {
            let max = limits::SECRETS_GRANTED_BYTES_MAX;
            return Err(Error::invalid(format!(
                "the skill's secrets have {bytes} bytes in total, the limit is {max}; shorten one"
            )));
        }
        Ok(granted)
    }

    fn unseal(self, tenant: &Tenant, name: &SecretName, sealed: &[u8]) -> Result<SecretValue, Error> {
        let owner = Owner {
            tenant,
            name: name.as_str(),
        };
        self.engine.master_key.open(owner, sealed).map_err(|error| {
            tracing::error!(secret = %name, %tenant, "Secret {name} {error}");
            Error::new(Code::Conflict, format!("secret `{name}` {error}"))
        })
    }
}

/// Masks secrets in an outcome. On a blocking thread, since it may take long.
pub(super) async fn masked(outcome: Outcome, mask: &Mask) -> Result<Outcome, Error> {
    if mask.is_empty() {
        return Ok(outcome);
    }
    let mask = mask.clone();
    let masked = tokio::task::spawn_blocking(move || without_secrets(outcome, &mask)).await;
    masked.map_err(Error::internal)
}

/// Names of files were masked when they were received.
fn without_secrets(outcome: Outcome, mask: &Mask) -> Outcome {
    // A killed program may have printed a part of a secret last.
    let was_killed = outcome.exit_code.is_none();
    let results = outcome
        .results
        .into_iter()
        .map(|result| without_pieces(result, mask));
    let results = mask.mask_value(results.collect::<Vec<_>>());
    Outcome {
        error: outcome.error.map(|failure| masked_failure(failure, mask)),
        output: outcome.output.map(|output| masked_json(output, mask)),
        results_truncated: outcome.results_truncated || results.is_none(),
        results: results.unwrap_or_default(),
        logs: masked_logs(outcome.logs, mask, was_killed),
        skipped: outcome
            .skipped
            .into_iter()
            .map(|skipped| Skipped {
                path: mask.mask_text(&skipped.path).into_owned(),
                ..skipped
            })
            .collect(),
        ..outcome
    }
}

/// A text of the maximum length may have been truncated within a secret.
fn masked_text(text: &str, kept_bytes: usize, mask: &Mask) -> String {
    let ending = if text.len() < kept_bytes {
        Truncation::None
    } else {
        Truncation::BothEnds
    };
    String::from_utf8_lossy(&mask.mask(text.as_bytes(), ending)).into_owned()
}

fn masked_failure(failure: Failure, mask: &Mask) -> Failure {
    let value = limits::EXCEPTION_VALUE_KEPT_BYTES;
    let Some(exception) = failure.exception else {
        return Failure {
            message: masked_text(&failure.message, value, mask),
            ..failure
        };
    };
    // The message starts with the exception, which may have been truncated.
    let before = Failure::from(Raised::Exception(exception.clone())).message;
    let exception = Exception {
        name: masked_text(&exception.name, limits::EXCEPTION_NAME_KEPT_BYTES, mask),
        value: masked_text(&exception.value, value, mask),
        traceback: masked_text(&exception.traceback, limits::TRACEBACK_KEPT_BYTES, mask),
    };
    let added = failure.message.strip_prefix(&before).map(str::to_owned);
    let message = match added {
        Some(added) => Failure::from(Raised::Exception(exception.clone())).message + &added,
        None => failure.message,
    };
    Failure {
        message: mask.mask_text(&message).into_owned(),
        exception: Some(exception),
        ..failure
    }
}

/// Characters, and thus at least bytes, of a result's text that the helpers keep.
const RESULT_TEXT_KEPT_BYTES: usize = 1024 * 1024;

/// Large parts of a result may have been truncated.
fn without_pieces(result: RichResult, mask: &Mask) -> RichResult {
    let text = |text: Option<String>| text.map(|text| masked_text(&text, RESULT_TEXT_KEPT_BYTES, mask));
    RichResult {
        text: text(result.text),
        markdown: text(result.markdown),
        ..result
    }
}

/// Unchanged if it contains no secret.
fn masked_json(json: JsonText, mask: &Mask) -> JsonText {
    let parsed = match mask.mask_json(json.as_str()) {
        Cow::Borrowed(_) => return json,
        Cow::Owned(text) => JsonText::parse(text.as_bytes()),
    };
    parsed.expect("masked JSON is JSON, and no deeper than before")
}

/// Adjusts the totals by what masking removed.
fn masked_logs(logs: Logs, mask: &Mask, was_killed: bool) -> Logs {
    let stream = |kept: Vec<u8>, total: u64| {
        let ending = if was_killed || total > kept.len() as u64 {
            Truncation::End
        } else {
            Truncation::None
        };
        let left_out = total.saturating_sub(kept.len() as u64);
        let masked = mask.mask(&kept, ending).into_owned();
        let total = masked.len() as u64 + left_out;
        (masked, total)
    };
    let (stdout, stdout_total) = stream(logs.stdout, logs.stdout_total);
    let (stderr, stderr_total) = stream(logs.stderr, logs.stderr_total);
    let mut lines = logs.lines;
    // The last line may have been truncated anywhere.
    if let Some(last) = lines.last_mut().filter(|_| logs.lines_truncated || was_killed) {
        let masked = mask.mask(last.message.as_bytes(), Truncation::End);
        last.message = String::from_utf8_lossy(&masked).into_owned();
    }
    let count = lines.len();
    // Line by line, as subscribers received them.
    let lines: Vec<_> = lines
        .into_iter()
        .filter_map(|line| mask.mask_value(line))
        .collect();
    Logs {
        stdout,
        stderr,
        stdout_total,
        stderr_total,
        lines_truncated: logs.lines_truncated || lines.len() < count,
        arrivals: logs.arrivals,
        lines,
    }
}

fn missing_secrets(names: &[&str]) -> Error {
    let first = names[0];
    let names = names.join("`, `");
    Error::invalid(format!(
        "the skill declares secrets that are not set: `{names}`; an administrator can set them, for example with `skillbox secret set {first}`"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execution::{LogLine, Status};

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
                ..Logs::default()
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
            ..crate::engine::outcome::unsaved()
        }
    }

    /// O-21.
    #[test]
    fn masks_every_part_of_an_outcome_without_marking_it_truncated() {
        let value = SecretValue::new("hunter2".to_owned()).unwrap();
        let mask = Mask::new([&value]);
        let exited = without_secrets(outcome(Some(1)), &mask);
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
        let killed = without_secrets(outcome(None), &mask);
        assert_eq!(
            (killed.logs.stdout.as_slice(), killed.logs.stdout_total),
            (&b"*** ***"[..], 7)
        );
    }

    /// O-21: each field at its bound, with a secret across its cut end, and across the cut beginning of a traceback.
    #[test]
    fn masks_secrets_at_truncation() {
        let value = SecretValue::new("hunter2-and-more".to_owned()).unwrap();
        let cut = |bytes: usize| format!("{}hunter2", "x".repeat(bytes - 7));
        let exception = Exception {
            name: cut(limits::EXCEPTION_NAME_KEPT_BYTES),
            value: cut(limits::EXCEPTION_VALUE_KEPT_BYTES),
            traceback: format!("and-more{}", cut(limits::TRACEBACK_KEPT_BYTES)),
        };
        let failure = Failure::from(Raised::Exception(exception));
        let whole = outcome(Some(1));
        let line = |message: &str| LogLine {
            message: message.to_owned(),
            fields: JsonText::parse("{\"token\": \"hunter2…\"}".as_bytes()).ok(),
            ..LogLine::default()
        };
        let outcome = Outcome {
            error: Some(Failure {
                message: format!("{}; not all could be read", failure.message),
                ..failure
            }),
            results: vec![RichResult {
                text: Some(cut(RESULT_TEXT_KEPT_BYTES)),
                markdown: Some(cut(RESULT_TEXT_KEPT_BYTES)),
                ..RichResult::default()
            }],
            logs: Logs {
                lines: vec![line("hunter2… [cut]"), line("{\"message\": \"hunter2")],
                lines_truncated: true,
                ..whole.logs
            },
            output: None,
            ..whole
        };
        let mask = Mask::new([&value]);
        let masked = without_secrets(outcome, &mask);
        let error = masked.error.as_ref().unwrap();
        assert!(error.message.ends_with("***; not all could be read"));
        assert!(error.exception.as_ref().unwrap().traceback.starts_with("***x"));
        for (what, text) in [
            ("error", format!("{error:?}")),
            ("results", format!("{:?}", masked.results)),
            ("lines", format!("{:?}", masked.logs.lines)),
        ] {
            assert!(!text.contains("hunter2") && !text.contains("and-more"), "{what}");
        }
    }
}
