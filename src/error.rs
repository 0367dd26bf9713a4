//! API errors, and the table of their codes.
//!
//! A failing skill is not an error but an outcome with a status.

use std::time::Duration;

use crate::limits;

/// The stable machine-readable reason.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Code {
    /// The request is wrong; the message names the field and the remedy.
    Invalid,
    /// No valid API key.
    Unauthenticated,
    /// The key lacks the scope, or the link is not valid.
    Forbidden,
    /// It does not exist, or belongs to another tenant, which looks the same.
    NotFound,
    /// The path exists, the method does not.
    MethodNotAllowed,
    /// The client took too long to send its request.
    RequestTimeout,
    /// Different content under this name, or a conflicting process.
    Conflict,
    /// The `Idempotency-Key` was used for a different request.
    KeyReused,
    /// Above a documented size.
    TooLarge,
    /// A content type or encoding that is not accepted here.
    UnsupportedMediaType,
    /// A range beyond the end of the file.
    RangeNotSatisfiable,
    /// A `Host` that this server does not accept.
    Misdirected,
    /// Too many requests from this caller.
    RateLimited,
    /// The queue or a memory budget is exhausted; try again later.
    Busy,
    /// No sandbox can be created on this host now; the message contains the reason.
    SandboxUnavailable,
    /// Packages could not be installed; the message contains the reason.
    DependenciesFailed,
    /// The disk or the quota is full.
    StorageFull,
    /// A fault of the server; the log has the cause under the request id.
    Internal,
}

impl Code {
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

    /// Name in the `code` member, HTTP status and title.
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

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.row().0
    }

    #[must_use]
    pub const fn http_status(self) -> u16 {
        self.row().1
    }

    #[must_use]
    pub const fn title(self) -> &'static str {
        self.row().2
    }

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

/// A place at which a JSON value is invalid.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, utoipa::ToSchema)]
pub struct Fault {
    /// JSON pointer; empty for the whole value.
    #[schema(example = "/rows/0/price")]
    pub pointer: String,
    /// What is wrong.
    #[schema(example = "value is not of type \"number\"")]
    pub message: String,
}

pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// `Display` is for the caller, `source` for the log. If the caller is not on this machine, [`Self::public_message`] is for the
/// caller.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    code: Code,
    message: String,
    public: Option<String>,
    retry_after: Option<Duration>,
    faults: Vec<Fault>,
    #[source]
    source: Option<Cause>,
}

impl Error {
    /// `message` must be safe to show to the caller.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            public: None,
            retry_after: None,
            faults: Vec::new(),
            source: None,
        }
    }

    /// `message` names the field and the remedy.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(Code::Invalid, message)
    }

    pub fn not_found(what: impl std::fmt::Display) -> Self {
        Self::new(Code::NotFound, format!("{what} not found"))
    }

    /// A fault of the server. The caller sees only the request id.
    pub fn internal(source: impl Into<Cause>) -> Self {
        Self {
            code: Code::Internal,
            message: "internal error; the server's log has the cause under this request id".to_owned(),
            public: None,
            retry_after: None,
            faults: Vec::new(),
            source: Some(source.into()),
        }
    }

    /// Hides absolute paths and addresses, which are of this machine, from callers over the network.
    #[must_use]
    pub fn with_hidden_paths(mut self) -> Self {
        let public = without_paths(&self.message);
        self.public = (public != self.message).then_some(public);
        self
    }

    #[must_use]
    pub fn with_source(mut self, source: impl Into<Cause>) -> Self {
        self.source = Some(source.into());
        self
    }

    #[must_use]
    pub fn with_retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    #[must_use]
    pub fn with_faults(mut self, faults: Vec<Fault>) -> Self {
        self.faults = faults;
        self
    }

    #[must_use]
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// The message for callers over the network and for stored results.
    #[must_use]
    pub fn public_message(&self) -> &str {
        self.public.as_deref().unwrap_or(&self.message)
    }

    /// The message and the causes that such callers do not see, on one line for the log.
    #[must_use]
    pub fn hidden(&self) -> Option<String> {
        let message = self
            .public
            .as_ref()
            .map(|_| self.message.replace(char::is_control, " "));
        let all: Vec<_> = message.into_iter().chain(causes(self)).collect();
        (!all.is_empty()).then(|| all.join(": "))
    }

    #[must_use]
    pub fn code(&self) -> Code {
        self.code
    }

    /// Time after which a retry may succeed, if known.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        let soon = (self.code == Code::Busy).then_some(Duration::from_secs(1));
        self.retry_after.or(soon)
    }
}

/// The text with `…` for each word that has an absolute path or an address.
fn without_paths(text: &str) -> String {
    let is_path = |word: &&str| {
        let starts = word.match_indices('/').map(|(at, _)| &word[..at]);
        let mut before = starts.map(|before| before.chars().next_back());
        before.any(|before| before.is_none_or(|c| !c.is_alphanumeric() && !"._-".contains(c)))
    };
    let words = text
        .split(' ')
        .map(|word| if is_path(&word) { "…" } else { word });
    words.collect::<Vec<_>>().join(" ")
}

/// The causes of `error` on one line, outermost first, for the log.
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

/// The innermost cause, for errors whose outer messages only say that a client failed.
#[must_use]
pub fn root_cause<'a>(error: &'a (dyn std::error::Error + 'static)) -> &'a (dyn std::error::Error + 'static) {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause
}

/// Foreign text for a message or a log line: invisible characters are escaped, long text is truncated.
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

/// `; did you mean `port`?` for the known text that is most similar, if one is similar at all.
#[must_use]
pub fn did_you_mean<'a>(unknown: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    const SIMILAR: f64 = 0.85;
    let similar = known
        .into_iter()
        .map(|known| (strsim::jaro_winkler(unknown, known), known))
        .filter(|(similarity, _)| *similarity >= SIMILAR)
        .max_by(|(one, _), (other, _)| one.total_cmp(other));
    similar.map_or_else(String::new, |(_, known)| {
        format!("; did you mean {}?", quoted(known))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotations_are_short_and_on_one_line() {
        assert_eq!(quoted("it's\nb\u{202e}"), "`it's\\nb\\u{202e}`");
        assert!(quoted(&"x".repeat(10_000)).len() < 200);
    }

    /// T-21.
    #[test]
    fn public_message_hides_paths_from_all_but_the_log() {
        let error = |message: &str| Error::new(Code::SandboxUnavailable, message).with_hidden_paths();
        let hidden = error("no engine (tried unix:///run/a.sock: gone), `/srv/x` cannot be\nread");
        assert_eq!(
            hidden.public_message(),
            "no engine (tried … gone), … cannot be\nread"
        );
        assert_eq!(
            hidden.hidden().unwrap(),
            "no engine (tried unix:///run/a.sock: gone), `/srv/x` cannot be read"
        );
        for plain in [
            "image `ghcr.io/a/b:1` and/or text",
            "`node` is not installed; 1/2",
        ] {
            assert_eq!(
                (error(plain).public_message(), error(plain).hidden()),
                (plain, None)
            );
        }
    }

    #[test]
    fn causes_are_one_line_in_order() {
        let error = Error::internal(std::io::Error::other("disk\nERROR forged line"));
        assert_eq!(causes(&error).unwrap(), "disk ERROR forged line");
        assert_eq!(causes(&Error::invalid("no cause")), None);
    }

    #[test]
    fn error_codes_are_unique() {
        let names: std::collections::BTreeSet<_> = Code::ALL.iter().map(|c| c.as_str()).collect();
        assert_eq!(names.len(), Code::ALL.len());
    }

    #[test]
    fn internal_error_hides_its_cause() {
        let error = Error::internal("dsn=postgres://secret");
        assert!(!error.to_string().contains("secret"));
    }
}
