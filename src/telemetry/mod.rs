//! Logging: set up once, field names in one place.

mod json;
mod measurements;
mod metrics;
#[cfg_attr(not(feature = "otlp"), path = "no_otlp.rs")]
mod otlp;
mod process;
mod text_format;

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

pub use measurements::{
    CurrentValues, ExecutionCompletion, Latency, OpenStream, RequestCompletion, StoredBytes, WarmPoolStats,
};
pub use metrics::{DELIVERED, GIVEN_UP, GONE, LOST, Metrics, NO_SANDBOX, NOT_STARTED, TRIED_AGAIN};

#[cfg(feature = "otlp")]
pub use otlp::Traces;
pub use otlp::{CAN_TRACE, continue_trace, trace_phases};

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
    /// A webhook.
    pub const DELIVERY_ID: &str = "delivery.id";
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
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// `refinery_core` reports each migration it looks at, even when there is nothing to do.
const ALWAYS: &str = "refinery_core=warn";

/// Logging could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The filter cannot be read.
    #[error("log.level (SKILLBOX_LOG) is not a level or a filter such as `warn,skillbox=debug`")]
    Filter(#[source] tracing_subscriber::filter::ParseError),
    /// The collector cannot be named like this.
    #[cfg(feature = "otlp")]
    #[error("telemetry.otlp_endpoint (SKILLBOX_OTLP_ENDPOINT) cannot be used")]
    Collector(#[source] opentelemetry_otlp::ExporterBuildError),
    /// It was set up before.
    #[error("logging is already set up")]
    Twice(#[source] tracing_subscriber::util::TryInitError),
}

/// Sends log lines to standard error: those that `directives` choose, in the syntax of `EnvFilter`.
///
/// # Errors
///
/// The directives cannot be read, or logging is already set up.
pub fn init(directives: &str, format: LogFormat) -> Result<(), Error> {
    subscriber(lines(directives, format)?, std::io::stderr)
        .try_init()
        .map_err(Error::Twice)
}

/// The same, and sends traces to the collector at `endpoint`, whatever is logged.
///
/// # Errors
///
/// As of [`init`], or the endpoint is no URL.
#[cfg(feature = "otlp")]
pub fn init_with_traces(directives: &str, format: LogFormat, endpoint: &str) -> Result<Traces, Error> {
    use tracing_subscriber::Layer as _;
    use tracing_subscriber::filter::{LevelFilter, Targets};

    let (traces, tracer) = Traces::to(endpoint).map_err(Error::Collector)?;
    // Our own spans: those of libraries would tell of every frame.
    let ours = Targets::new().with_target("skillbox", LevelFilter::INFO);
    let layer = tracing_opentelemetry::layer()
        .with_tracer(tracer)
        .with_location(false)
        .with_threads(false)
        .with_tracked_inactivity(false);
    let lines = lines(directives, format)?;
    let registry = tracing_subscriber::registry().with(layer.with_filter(ours));
    let written = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    match lines.format {
        LogFormat::Text => registry
            .with(written.with_ansi(lines.colour).with_filter(lines.filter))
            .try_init(),
        LogFormat::Json => registry
            .with(
                written
                    .json()
                    .event_format(json::FlatJson)
                    .with_filter(lines.filter),
            )
            .try_init(),
    }
    .map_err(Error::Twice)?;
    Ok(traces)
}

/// Says what is wrong with directives.
///
/// # Errors
///
/// They cannot be read.
pub fn check(directives: &str) -> Result<(), String> {
    let read = EnvFilter::try_new(directives).map(drop);
    read.map_err(|error| error.to_string())
}

fn lines(directives: &str, format: LogFormat) -> Result<Lines, Error> {
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    Ok(Lines {
        format,
        filter: filter(directives)?,
        colour: std::io::stderr().is_terminal() && !no_color,
    })
}

fn filter(directives: &str) -> Result<EnvFilter, Error> {
    EnvFilter::try_new(format!("{ALWAYS},{directives}")).map_err(Error::Filter)
}

/// Which lines are written, and how they look.
struct Lines {
    format: LogFormat,
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
        LogFormat::Text => Box::new(registry.with(layer.with_ansi(lines.colour))),
        LogFormat::Json => Box::new(registry.with(layer.json().event_format(json::FlatJson))),
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

    fn logged(format: LogFormat, directives: &str, log: impl FnOnce()) -> String {
        let memory = Memory::default();
        let writer = memory.clone();
        let lines = Lines {
            format,
            filter: filter(directives).unwrap(),
            colour: false,
        };
        let subscriber = subscriber(lines, move || writer.clone());
        tracing::subscriber::with_default(subscriber, log);
        String::from_utf8(memory.0.lock().unwrap().clone()).unwrap()
    }

    #[test]
    fn a_json_line_is_one_object_with_the_named_fields() {
        let text = logged(LogFormat::Json, "info", || {
            let span = tracing::info_span!("request", { field::REQUEST_ID } = "r-1");
            let _inside = span.enter();
            let span = tracing::info_span!("execution", { field::EXECUTION_ID } = tracing::field::Empty);
            let _deeper = span.enter();
            span.record(field::EXECUTION_ID, "e-1");
            tracing::info!({ field::SKILL } = "text-summary", "Ran \"text-summary\"");
        });
        let line: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(line["skill"], "text-summary");
        assert_eq!(line["request.id"], "r-1");
        assert_eq!(line["execution.id"], "e-1");
        assert_eq!(line["message"], "Ran \"text-summary\"");
        assert_eq!(
            (&line["level"], &line["target"]),
            (&"INFO".into(), &module_path!().into())
        );
        assert!(line["timestamp"].is_string() && text.lines().count() == 1);
    }

    #[test]
    fn migrations_are_not_reported_line_by_line() {
        let log = || {
            tracing::info!(target: "refinery_core::traits", "no migrations to apply");
            tracing::debug!("detail");
        };
        assert_eq!(logged(LogFormat::Text, "info", log), "");
        assert!(!logged(LogFormat::Text, "debug", log).contains("migrations"));
        assert!(logged(LogFormat::Text, "debug", log).contains("detail"));
    }

    #[test]
    fn a_wrong_filter_is_named() {
        let refused = filter("skillbox=loud").unwrap_err();
        assert!(refused.to_string().contains("SKILLBOX_LOG"), "{refused}");
    }
}
