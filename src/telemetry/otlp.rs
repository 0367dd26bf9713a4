//! Sends traces to an OpenTelemetry collector: OTLP over HTTP, protobuf.

use std::pin::Pin;
use std::time::{Duration, SystemTime};

use opentelemetry::propagation::{Extractor, TextMapPropagator as _};
use opentelemetry::trace::{Span as _, TraceContextExt as _, Tracer as _, TracerProvider as _};
use opentelemetry::{InstrumentationScope, KeyValue, global};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

pub const CAN_TRACE: bool = true;

/// Time limit of one request.
const COLLECTOR_MAX: Duration = Duration::from_secs(10);
/// Maximum size of a response.
const ANSWER_BYTES_MAX: u64 = 64 << 10;
const NAME: &str = "skillbox";

#[derive(Debug)]
pub struct Traces(SdkTracerProvider);

impl Traces {
    /// Sends from a thread of its own.
    pub(super) fn to(endpoint: &str) -> Result<(Self, SdkTracer), opentelemetry_otlp::ExporterBuildError> {
        let base = endpoint.trim_end_matches('/');
        let url = match base.ends_with("/v1/traces") {
            true => base.to_owned(),
            false => format!("{base}/v1/traces"),
        };
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(CollectorClient::new())
            .with_endpoint(url)
            .with_timeout(COLLECTOR_MAX)
            .build()?;
        let resource = Resource::builder().with_service_name(NAME);
        let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_resource(resource.with_attribute(version).build())
            .build();
        let tracer = provider.tracer(NAME);
        global::set_tracer_provider(provider.clone());
        Ok((Self(provider), tracer))
    }

    /// Sends the remaining traces. Blocks up to the time limit of a request.
    pub fn end(&self) {
        if let Err(error) = self.0.shutdown() {
            tracing::warn!(%error, "Sending the last traces failed");
        }
    }
}

/// Continues the trace of a request's headers.
pub fn continue_trace<'a>(span: &Span, header: impl Fn(&str) -> Option<&'a str>) {
    let given = Headers {
        parent: header("traceparent"),
        state: header("tracestate"),
    };
    if given.parent.is_some() {
        // Only a subscriber with traces can continue one.
        let _ = span.set_parent(TraceContextPropagator::new().extract(&given));
    }
}

struct Headers<'a> {
    parent: Option<&'a str>,
    state: Option<&'a str>,
}

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        match key {
            "traceparent" => self.parent,
            "tracestate" => self.state,
            _ => None,
        }
    }

    fn keys(&self) -> Vec<&str> {
        vec!["traceparent", "tracestate"]
    }
}

/// In milliseconds.
pub fn trace_phases(phases: &[(&'static str, f64)]) {
    let context = Span::current().context();
    if !context.span().span_context().is_sampled() {
        return;
    }
    let tracer = global::tracer_with_scope(InstrumentationScope::builder(NAME).build());
    let took = |milliseconds: f64| Duration::try_from_secs_f64(milliseconds / 1000.0).unwrap_or_default();
    let all: Duration = phases.iter().map(|(_, milliseconds)| took(*milliseconds)).sum();
    let now = SystemTime::now();
    let mut at = now.checked_sub(all).unwrap_or(now);
    for (name, milliseconds) in phases {
        let builder = tracer.span_builder(*name).with_start_time(at);
        at += took(*milliseconds);
        tracer
            .build_with_context(builder, &context)
            .end_with_timestamp(at);
    }
}

/// The HTTP client, as in the command line.
#[derive(Debug)]
struct CollectorClient(ureq::Agent);

impl CollectorClient {
    fn new() -> Self {
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(COLLECTOR_MAX))
            .http_status_as_error(false);
        Self(config.build().into())
    }

    fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (parts, body) = request.into_parts();
        let response = self.0.run(Request::from_parts(parts, body.to_vec()))?;
        let (parts, mut body) = response.into_parts();
        let bytes = body.with_config().limit(ANSWER_BYTES_MAX).read_to_vec()?;
        Ok(Response::from_parts(parts, bytes.into()))
    }
}

impl HttpClient for CollectorClient {
    /// Blocking, on the exporter's own thread.
    fn send_bytes<'a, 'b>(
        &'a self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async move { self.send(request) })
    }
}
