//! Logging, with the names of all log fields.

mod json;
mod measurements;
mod metrics;
#[cfg_attr(not(feature = "otlp"), path = "no_otlp.rs")]
mod otlp;
mod process;
mod text_format;
mod text_line;

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

/// Names of log fields.
///
/// ```ignore
/// tracing::info!({ field::EXECUTION_ID } = %id, "Finished execution {id}");
/// ```
pub mod field {
    /// As in `X-Request-Id` and in problem documents.
    pub const REQUEST_ID: &str = "request.id";
    pub const REQUEST_METHOD: &str = "request.method";
    /// The route without the query, which may contain the signature of a link.
    pub const REQUEST_ROUTE: &str = "request.route";
    pub const PEER: &str = "peer";
    pub const STATUS: &str = "status";
    pub const CODE: &str = "code";
    /// Causes of an error, outermost first.
    pub const CAUSE: &str = "cause";
    pub const DURATION_MS: &str = "duration_ms";
    pub const TENANT: &str = "tenant";
    /// Public id of the caller's API key.
    pub const KEY_ID: &str = "key.id";
    pub const EXECUTION_ID: &str = "execution.id";
    pub const DELIVERY_ID: &str = "delivery.id";
    pub const SKILL: &str = "skill";
    /// Status of an execution that has ended.
    pub const OUTCOME: &str = "outcome";
    pub const VERSION: &str = "version";
    pub const DIGEST: &str = "digest";
    pub const IMAGE: &str = "image";
    pub const CONTAINER_ID: &str = "container.id";
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LogFormat {
    /// Human-readable.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// `refinery_core` logs each known migration, even if none is due; `rmcp` logs messages, which contain inputs.
const ALWAYS: &str = "refinery_core=warn,rmcp=off";

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("log.level (SKILLBOX_LOG) is not a level or a filter such as `warn,skillbox=debug`")]
    Filter(#[source] tracing_subscriber::filter::ParseError),
    #[cfg(feature = "otlp")]
    #[error("telemetry.otlp_endpoint (SKILLBOX_OTLP_ENDPOINT) cannot be used")]
    Collector(#[source] opentelemetry_otlp::ExporterBuildError),
    #[error("logging is already set up")]
    Twice(#[source] tracing_subscriber::util::TryInitError),
}

/// Logs to standard error, filtered by `directives` in the syntax of `EnvFilter`.
pub fn init(directives: &str, format: LogFormat) -> Result<(), Error> {
    subscriber(lines(directives, format)?, std::io::stderr)
        .try_init()
        .map_err(Error::Twice)
}

/// As [`init`], and sends traces to the collector at `endpoint`, regardless of the log level.
#[cfg(feature = "otlp")]
pub fn init_with_traces(directives: &str, format: LogFormat, endpoint: &str) -> Result<Traces, Error> {
    use tracing_subscriber::Layer as _;
    use tracing_subscriber::filter::{LevelFilter, Targets};

    let (traces, tracer) = Traces::to(endpoint).map_err(Error::Collector)?;
    // Only our own spans: those of libraries would include every frame.
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
            .with(
                written
                    .json()
                    .with_ansi(lines.colour)
                    .event_format(text_line::TextLine)
                    .with_filter(lines.filter),
            )
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

/// Checks the syntax of directives.
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
        LogFormat::Text => Box::new(
            registry.with(
                layer
                    .json()
                    .with_ansi(lines.colour)
                    .event_format(text_line::TextLine),
            ),
        ),
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
    fn writes_json_lines_with_fields_of_spans() {
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
    fn writes_text_lines_with_named_fields() {
        let text = logged(LogFormat::Text, "info", || {
            let span = tracing::info_span!(
                "request",
                { field::REQUEST_ID } = "r-1",
                { field::EXECUTION_ID } = "e-1"
            );
            let _inside = span.enter();
            tracing::info!(
                { field::REQUEST_METHOD } = "POST",
                { field::REQUEST_ROUTE } = "/v1/executions",
                { field::DURATION_MS } = 361,
                { field::STATUS } = 200,
                { field::OUTCOME } = "success",
                "Answered POST"
            );
            tracing::warn!(path = "a b\nc", "Disk is full");
        });
        let lines: Vec<&str> = text
            .lines()
            .map(|line| &line[line.find('Z').unwrap()..])
            .collect();
        assert_eq!(
            lines,
            [
                "Z INFO POST /v1/executions status=200 ms=361 outcome=success execution=e-1",
                r#"Z WARN Disk is full execution=e-1 request.id=r-1 path="a b\nc""#,
            ]
        );
    }

    #[test]
    fn hides_migration_logs() {
        let log = || {
            tracing::info!(target: "refinery_core::traits", "no migrations to apply");
            tracing::debug!("detail");
        };
        assert_eq!(logged(LogFormat::Text, "info", log), "");
        assert!(!logged(LogFormat::Text, "debug", log).contains("migrations"));
        assert!(logged(LogFormat::Text, "debug", log).contains("detail"));
    }

    #[test]
    fn names_the_setting_of_an_invalid_filter() {
        let refused = filter("skillbox=loud").unwrap_err();
        assert!(refused.to_string().contains("SKILLBOX_LOG"), "{refused}");
    }
}
