//! What a caller is told when a request cannot be served, and the one table from a code to HTTP.
//!
//! A failing skill is not an error: it is an outcome with a status.

use std::time::Duration;

use crate::limits;

/// The stable machine-readable reason; clients switch on [`Code::as_str`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Code {
    /// The request is wrong; the message names the field and the remedy.
    Invalid,
    /// No valid API key.
    Unauthenticated,
    /// The key lacks the scope, or the link is not valid.
    Forbidden,
    /// It is not there, or belongs to another tenant: the two look the same.
    NotFound,
    /// The path exists, the method does not.
    MethodNotAllowed,
    /// The client took too long to send its request.
    RequestTimeout,
    /// Something is in the way: other content under this name, or another process.
    Conflict,
    /// An `Idempotency-Key` that was sent with another request.
    KeyReused,
    /// Above a documented size.
    TooLarge,
    /// A content type or encoding that is not taken here.
    UnsupportedMediaType,
    /// A range of bytes that the file does not have.
    RangeNotSatisfiable,
    /// A `Host` that this server does not answer for.
    Misdirected,
    /// Too many requests from this caller.
    RateLimited,
    /// Too much at once: the slots and the queue, or a bound on memory; try again later.
    Busy,
    /// No sandbox can be made on this host now; the message says why.
    SandboxUnavailable,
    /// The packages that a program asks for could not be installed; the message says why.
    DependenciesFailed,
    /// The disk or the quota is full.
    StorageFull,
    /// Our fault; the log has the cause under the request id.
    Internal,
}

impl Code {
    /// Every code, for tables and documents.
    pub const ALL: [Self; 18] = [
        Self::Invalid,
        Self::Unauthenticated,
        Self::Forbidden,
        Self::NotFound,
        Self::MethodNotAllowed,
        Self::RequestTimeout,
        Self::Conflict,
        Self::KeyReused,
        Self::TooLarge,
        Self::UnsupportedMediaType,
        Self::RangeNotSatisfiable,
        Self::Misdirected,
        Self::RateLimited,
        Self::Busy,
        Self::SandboxUnavailable,
        Self::DependenciesFailed,
        Self::StorageFull,
        Self::Internal,
    ];

    /// The name in the `code` member of an error body, and the HTTP status.
    const fn row(self) -> (&'static str, u16, &'static str) {
        match self {
            Self::Invalid => ("invalid", 400, "Invalid request"),
            Self::Unauthenticated => ("unauthenticated", 401, "Not authenticated"),
            Self::Forbidden => ("forbidden", 403, "Not allowed"),
            Self::NotFound => ("not_found", 404, "Not found"),
            Self::MethodNotAllowed => ("method_not_allowed", 405, "Method not allowed"),
            Self::RequestTimeout => ("request_timeout", 408, "Request timed out"),
            Self::Conflict => ("conflict", 409, "Conflict"),
            Self::KeyReused => ("key_reused", 422, "Idempotency key reused"),
            Self::TooLarge => ("too_large", 413, "Too large"),
            Self::UnsupportedMediaType => ("unsupported_media_type", 415, "Unsupported media type"),
            Self::RangeNotSatisfiable => ("range_not_satisfiable", 416, "Range not satisfiable"),
            Self::Misdirected => ("misdirected", 421, "Misdirected request"),
            Self::RateLimited => ("rate_limited", 429, "Too many requests"),
            Self::Busy => ("busy", 503, "Busy"),
            Self::SandboxUnavailable => ("sandbox_unavailable", 503, "No sandbox available"),
            Self::DependenciesFailed => ("dependencies_failed", 422, "Packages not installed"),
            Self::StorageFull => ("storage_full", 507, "Storage full"),
            Self::Internal => ("internal", 500, "Internal error"),
        }
    }

    /// The stable name, as in `"code": "not_found"`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.row().0
    }

    /// The HTTP status.
    #[must_use]
    pub const fn http_status(self) -> u16 {
        self.row().1
    }

    /// The short title of a problem document.
    #[must_use]
    pub const fn title(self) -> &'static str {
        self.row().2
    }

    /// Whether the same request may succeed later without a change.
    #[must_use]
    pub const fn retryable(self) -> bool {
        matches!(
            self,
            Self::RequestTimeout
                | Self::RateLimited
                | Self::Busy
                | Self::SandboxUnavailable
                | Self::StorageFull
        )
    }
}

/// One place of a JSON value that is not as it must be.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, utoipa::ToSchema)]
pub struct Fault {
    /// Where, as a JSON pointer; empty for the whole value.
    #[schema(example = "/rows/0/price")]
    pub pointer: String,
    /// What is wrong there.
    #[schema(example = "value is not of type \"number\"")]
    pub message: String,
}

/// What lies behind an [`Error`]: for the log only.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// A request that cannot be served. `Display` is for the caller, `source` for the log.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    code: Code,
    message: String,
    retry_after: Option<Duration>,
    faults: Vec<Fault>,
    #[source]
    source: Option<Cause>,
}

impl Error {
    /// An error with a message that is safe to show to the caller.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            retry_after: None,
            faults: Vec::new(),
            source: None,
        }
    }

    /// The request is wrong; `message` names the field and the remedy.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(Code::Invalid, message)
    }

    /// `what` is not there for this caller.
    pub fn not_found(what: impl std::fmt::Display) -> Self {
        Self::new(Code::NotFound, format!("{what} not found"))
    }

    /// Our fault: the caller sees nothing but the request id, the log gets `source`.
    pub fn internal(source: impl Into<Cause>) -> Self {
        Self {
            code: Code::Internal,
            message: "internal error; the server's log has the cause under this request id".to_owned(),
            retry_after: None,
            faults: Vec::new(),
            source: Some(source.into()),
        }
    }

    /// Keeps the cause for the log.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Cause>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Tells the caller when to come back.
    #[must_use]
    pub fn with_retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// Adds each place of a value that is wrong.
    #[must_use]
    pub fn with_faults(mut self, faults: Vec<Fault>) -> Self {
        self.faults = faults;
        self
    }

    /// Each place of a value that is wrong, where that is known.
    #[must_use]
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// The stable reason.
    #[must_use]
    pub fn code(&self) -> Code {
        self.code
    }

    /// When to come back, if that is known.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        let soon = (self.code == Code::Busy).then_some(Duration::from_secs(1));
        self.retry_after.or(soon)
    }
}

/// What lies behind `error`, outermost first, on one line: for the log.
#[must_use]
pub fn causes(error: &dyn std::error::Error) -> Option<String> {
    let mut chain = Vec::new();
    let mut next = error.source();
    while let Some(cause) = next {
        chain.push(cause.to_string());
        next = cause.source();
    }
    (!chain.is_empty()).then(|| chain.join(": ").replace(char::is_control, " "))
}

/// The innermost cause, where the outer ones only say that a client has failed.
#[must_use]
pub fn root_cause<'a>(error: &'a (dyn std::error::Error + 'static)) -> &'a (dyn std::error::Error + 'static) {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause
}

/// Somebody else's text, fit for a message or a log line: what cannot be seen is escaped, what is long is cut.
#[must_use]
pub fn quoted(text: &str) -> String {
    let mut shown = String::new();
    for c in text.chars().take(limits::QUOTED_CHARS_MAX) {
        if matches!(c, '\'' | '"') {
            shown.push(c)
        } else {
            shown.extend(c.escape_debug())
        }
    }
    let more = if text.chars().nth(limits::QUOTED_CHARS_MAX).is_some() {
        "…"
    } else {
        ""
    };
    format!("`{shown}{more}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quotation_is_short_and_cannot_forge_a_line() {
        assert_eq!(quoted("it's\nb\u{202e}"), "`it's\\nb\\u{202e}`");
        assert!(quoted(&"x".repeat(10_000)).len() < 200);
    }

    #[test]
    fn causes_are_one_line_in_order() {
        let error = Error::internal(std::io::Error::other("disk\nERROR forged line"));
        assert_eq!(causes(&error).unwrap(), "disk ERROR forged line");
        assert_eq!(causes(&Error::invalid("no cause")), None);
    }

    #[test]
    fn every_code_has_its_own_name() {
        let names: std::collections::BTreeSet<_> = Code::ALL.iter().map(|c| c.as_str()).collect();
        assert_eq!(names.len(), Code::ALL.len());
    }

    #[test]
    fn an_internal_error_does_not_show_its_cause() {
        let error = Error::internal("dsn=postgres://secret");
        assert!(!error.to_string().contains("secret"));
    }
}
