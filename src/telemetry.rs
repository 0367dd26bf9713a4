//! Logging: set up once, field names in one place.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Names of log fields, so that one thing has one name in every line.
///
/// ```ignore
/// tracing::info!({ field::EXECUTION_ID } = %id, "Finished execution {id}");
/// ```
pub mod field {
    /// The id of one HTTP request, as in `X-Request-Id` and in every problem document.
    pub const REQUEST_ID: &str = "request.id";
    /// The method of an HTTP request.
    pub const REQUEST_METHOD: &str = "request.method";
    /// The route a request matched, never its query: a signed link's signature is there.
    pub const REQUEST_ROUTE: &str = "request.route";
    /// The peer's address.
    pub const PEER: &str = "peer";
    /// The status of an answer.
    pub const STATUS: &str = "status";
    /// The stable code of an error.
    pub const CODE: &str = "code";
    /// The chain of causes of an error, outermost first.
    pub const CAUSE: &str = "cause";
    /// How long something took, in milliseconds.
    pub const DURATION_MS: &str = "duration_ms";
    /// The tenant.
    pub const TENANT: &str = "tenant";
    /// The public id of the caller's API key.
    pub const KEY_ID: &str = "key.id";
    /// An execution.
    pub const EXECUTION_ID: &str = "execution.id";
    /// A skill's name.
    pub const SKILL: &str = "skill";
    /// A skill's version.
    pub const VERSION: &str = "version";
    /// A content digest.
    pub const DIGEST: &str = "digest";
    /// An image.
    pub const IMAGE: &str = "image";
    /// A container of the engine.
    pub const CONTAINER_ID: &str = "container.id";
}

/// How log lines look.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// The variable that names the format.
const FORMAT_VARIABLE: &str = "SKILLBOX_LOG_FORMAT";
/// The variable that holds the filter, in the syntax of `tracing_subscriber::EnvFilter`.
const FILTER_VARIABLE: &str = "SKILLBOX_LOG";
/// `refinery_core` reports each migration it looks at, even when there is nothing to do.
const ALWAYS: &str = "refinery_core=warn";

/// Logging could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The format has no such value.
    #[error("{FORMAT_VARIABLE} is `{0}`; it must be `text` or `json`")]
    Format(String),
    /// The filter cannot be read.
    #[error("{FILTER_VARIABLE} is not a log filter such as `info` or `warn,skillbox=debug`")]
    Filter(#[source] tracing_subscriber::filter::ParseError),
    /// It was set up before.
    #[error("logging is already set up")]
    Twice(#[source] tracing_subscriber::util::TryInitError),
}

impl Format {
    /// The format of this name; an empty name means the default.
    pub fn from_name(name: &str) -> Result<Self, Error> {
        match name {
            "" | "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            other => Err(Error::Format(other.chars().take(32).collect())),
        }
    }
}

/// Sends log lines to standard error, from `level` up unless `SKILLBOX_LOG` says otherwise, in the format that `SKILLBOX_LOG_FORMAT` names.
pub fn init(level: tracing::Level) -> Result<(), Error> {
    let variable = |name| std::env::var(name).unwrap_or_default();
    let lines = Lines {
        format: Format::from_name(&variable(FORMAT_VARIABLE))?,
        filter: filter(&variable(FILTER_VARIABLE), level)?,
        colour: std::io::stderr().is_terminal() && variable("NO_COLOR").is_empty(),
    };
    subscriber(lines, std::io::stderr)
        .try_init()
        .map_err(Error::Twice)
}

/// What is logged: `directives`, or `level` and up if there are none.
fn filter(directives: &str, level: tracing::Level) -> Result<EnvFilter, Error> {
    let directives = match directives {
        "" => format!("{level},{ALWAYS}"),
        chosen => format!("{ALWAYS},{chosen}"),
    };
    EnvFilter::try_new(directives).map_err(Error::Filter)
}

/// Which lines are written, and how they look.
struct Lines {
    format: Format,
    filter: EnvFilter,
    colour: bool,
}

fn subscriber<W>(lines: Lines, writer: W) -> Box<dyn tracing::Subscriber + Send + Sync>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let layer = tracing_subscriber::fmt::layer().with_writer(writer);
    let registry = tracing_subscriber::registry().with(lines.filter);
    match lines.format {
        Format::Text => Box::new(registry.with(layer.with_ansi(lines.colour))),
        Format::Json => Box::new(registry.with(layer.json().flatten_event(true).with_current_span(true))),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Memory(Arc<Mutex<Vec<u8>>>);

    impl Write for Memory {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn logged(format: Format, directives: &str, log: impl FnOnce()) -> String {
        let memory = Memory::default();
        let writer = memory.clone();
        let lines = Lines {
            format,
            filter: filter(directives, tracing::Level::INFO).unwrap(),
            colour: false,
        };
        let subscriber = subscriber(lines, move || writer.clone());
        tracing::subscriber::with_default(subscriber, log);
        String::from_utf8(memory.0.lock().unwrap().clone()).unwrap()
    }

    #[test]
    fn a_json_line_is_one_object_with_the_named_fields() {
        let text = logged(Format::Json, "", || {
            let span = tracing::info_span!("request", { field::REQUEST_ID } = "r-1");
            let _inside = span.enter();
            tracing::info!({ field::SKILL } = "text-summary", "Ran text-summary");
        });
        let line: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(line["skill"], "text-summary");
        assert_eq!(line["span"]["request.id"], "r-1");
        assert_eq!(line["message"], "Ran text-summary");
    }

    #[test]
    fn migrations_are_not_reported_line_by_line() {
        let log = || {
            tracing::info!(target: "refinery_core::traits", "no migrations to apply");
            tracing::debug!("detail");
        };
        assert_eq!(logged(Format::Text, "", log), "");
        assert!(!logged(Format::Text, "debug", log).contains("migrations"));
        assert!(logged(Format::Text, "debug", log).contains("detail"));
    }

    #[test]
    fn a_wrong_format_or_filter_is_named() {
        assert!(
            Format::from_name("xml")
                .unwrap_err()
                .to_string()
                .contains("SKILLBOX_LOG_FORMAT")
        );
        assert!(
            filter("skillbox=loud", tracing::Level::INFO)
                .unwrap_err()
                .to_string()
                .contains("SKILLBOX_LOG")
        );
        assert_eq!(Format::from_name("").unwrap(), Format::Text);
    }
}
