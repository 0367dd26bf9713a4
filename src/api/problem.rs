//! Errors as RFC 9457 problem documents with a stable code.

use serde::{Deserialize, Serialize};
use utoipa::openapi::{Object, Type};

use crate::error::{Code, Error, Fault};

/// Body of every error response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Problem {
    /// Kind of problem; as stable as `code`.
    #[serde(rename = "type")]
    #[schema(example = "urn:skillbox:problem:not_found")]
    pub kind: String,
    /// Kind of problem in words.
    #[schema(example = "Not found")]
    pub title: String,
    /// HTTP status.
    #[schema(example = 404)]
    pub status: u16,
    /// What is wrong and what to do.
    #[schema(example = "skill `data-analysis` not found")]
    pub detail: String,
    /// Stable code.
    #[schema(schema_with = codes)]
    pub code: String,
    /// Request id, as in `X-Request-Id` and in the server's log.
    #[schema(example = "019a0000-0000-7000-8000-000000000000")]
    pub request_id: String,
    /// Whether the same request may succeed later.
    #[schema(example = false)]
    pub retryable: bool,
    /// Seconds to wait before a retry, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u64>,
    /// The first 10 places at which the input violates the skill's schema.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<Fault>,
}

fn codes() -> Object {
    Object::builder()
        .schema_type(Type::String)
        .description(Some("The stable code to switch on."))
        .enum_values(Some(Code::ALL.map(Code::as_str)))
        .examples(["not_found"])
        .build()
}

impl Problem {
    #[must_use]
    pub fn new(error: &Error, request_id: &str) -> Self {
        let code = error.code();
        // Rounded up, so that a client that waits this long is not early.
        let retry_after = error.retry_after().map(|wait| {
            wait.as_secs()
                .saturating_add(u64::from(wait.subsec_nanos() > 0))
                .max(1)
        });
        Self {
            kind: format!("urn:skillbox:problem:{}", code.as_str()),
            title: code.title().to_owned(),
            status: code.http_status(),
            detail: error.public_message().to_owned(),
            code: code.as_str().to_owned(),
            request_id: request_id.to_owned(),
            retryable: code.retryable(),
            retry_after,
            errors: error.faults().to_vec(),
        }
    }
}
