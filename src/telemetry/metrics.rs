//! Metrics of a server for Prometheus.
//!
//! Label values are few and fixed: never a tenant, a skill, a path or anything else that a caller chooses.

use std::borrow::Cow;
use std::sync::atomic::Ordering;
use std::time::Duration;

use prometheus_client::encoding::text::encode_registry;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::measurements::{
    CurrentValues, ExecutionCompletion, Latency, OpenStream, RequestCompletion, StoredBytes,
};
use super::process::ProcessMetrics;
use super::text_format::classic;

/// Histogram buckets for durations of programs, in seconds.
const LONG: [f64; 17] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 600.0,
];
/// No sandbox could be created.
pub const NO_SANDBOX: &str = "no_sandbox";
/// The sandbox ended without a report.
pub const LOST: &str = "lost";
/// The program could not be started.
pub const NOT_STARTED: &str = "not_started";
/// The receiver accepted the webhook.
pub const DELIVERED: &str = "delivered";
/// The receiver stopped it.
pub const GONE: &str = "gone";
/// A retry follows.
pub const TRIED_AGAIN: &str = "tried_again";
/// The last attempt failed.
pub const GIVEN_UP: &str = "given_up";

/// Names and values of the labels of a sample.
type Labels<const N: usize> = [(&'static str, Cow<'static, str>); N];
type Counters<const N: usize> = Family<Labels<N>, Counter>;
type Histograms<const N: usize> = Family<Labels<N>, Histogram, fn() -> Histogram>;

fn long() -> Histogram {
    Histogram::new(LONG)
}

/// A value, not a static, so that two servers in one process count separately.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    executions: Counters<3>,
    execution_seconds: Histograms<2>,
    phase_seconds: Histograms<2>,
    sandbox_failures: Counters<1>,
    requests: Counters<3>,
    request_seconds: Histograms<2>,
    refusals: Counters<1>,
    installs: Counters<2>,
    install_seconds: Histogram,
    webhook_attempts: Counters<1>,
    streams: Gauge,
    gauges: Gauges,
    process: ProcessMetrics,
}

/// Gauges, set when they are read.
#[derive(Debug, Default)]
struct Gauges {
    running: Gauge,
    queued: Gauge,
    slots: Gauge,
    warm_hits: Counter,
    warm_misses: Counter,
    warm_waiting: Gauge,
    warm_bytes: Gauge,
}

impl Metrics {
    #[must_use]
    pub fn new(store: &Latency, kept: &StoredBytes) -> Self {
        let mut metrics = Self {
            registry: Registry::default(),
            executions: Family::default(),
            execution_seconds: Family::new_with_constructor(long),
            phase_seconds: Family::new_with_constructor(long),
            sandbox_failures: Family::default(),
            requests: Family::default(),
            request_seconds: Family::new_with_constructor(long),
            refusals: Family::default(),
            installs: Family::default(),
            install_seconds: long(),
            webhook_attempts: Family::default(),
            streams: Gauge::default(),
            gauges: Gauges::default(),
            process: ProcessMetrics::default(),
        };
        metrics.register(store, kept);
        metrics.begin();
        metrics
    }

    /// Names and descriptions, as in `docs/OBSERVABILITY.md`.
    #[rustfmt::skip]
    fn register(&mut self, store: &Latency, kept: &StoredBytes) {
        let (r, g) = (&mut self.registry, &self.gauges);
        let build = Family::<Labels<2>, Gauge>::default();
        let otlp = if cfg!(feature = "otlp") { "yes" } else { "no" };
        let version = env!("CARGO_PKG_VERSION");
        build.get_or_create(&[("version", version.into()), ("otlp", otlp.into())]).set(1);
        r.register("skillbox_build_info", "Always 1, with the version in the labels", build);
        r.register("skillbox_executions", "Ended executions", self.executions.clone());
        r.register("skillbox_execution_seconds", "Duration of executions, including time in the queue",
            self.execution_seconds.clone());
        r.register("skillbox_execution_phase_seconds", "Duration of each phase: queue, sandbox, run, collect",
            self.phase_seconds.clone());
        r.register("skillbox_executions_running", "Running executions", g.running.clone());
        r.register("skillbox_executions_queued", "Queued executions", g.queued.clone());
        r.register("skillbox_execution_slots", "Maximum number of running executions", g.slots.clone());
        r.register("skillbox_sandbox_failures", "Executions whose sandbox could not be created or was lost", self.sandbox_failures.clone());
        r.register("skillbox_warm_hits", "Executions that used a warm sandbox", g.warm_hits.clone());
        r.register("skillbox_warm_misses", "Executions that could have used a warm sandbox but found none", g.warm_misses.clone());
        r.register("skillbox_warm_sandboxes", "Warm sandboxes", g.warm_waiting.clone());
        r.register("skillbox_warm_bytes", "Memory accounted for warm sandboxes, limited by pool.memory", g.warm_bytes.clone());
        r.register("skillbox_http_requests", "HTTP requests", self.requests.clone());
        r.register("skillbox_http_request_seconds", "Time until the response headers were ready", self.request_seconds.clone());
        r.register("skillbox_refusals", "Rejected requests, by the code of the problem document", self.refusals.clone());
        r.register("skillbox_streams_open", "Open event and log streams", self.streams.clone());
        r.register("skillbox_webhook_attempts", "Webhook delivery attempts",
            self.webhook_attempts.clone());
        r.register("skillbox_kept_bytes", "Bytes written to storage", kept.0.clone());
        r.register("skillbox_store_read_seconds", "Duration of database reads, including the wait for a connection",
            store.read.clone());
        r.register("skillbox_store_write_seconds", "Duration of durable database writes, including the wait for the connection",
            store.write.clone());
        r.register("skillbox_package_installs", "Package installations", self.installs.clone());
        r.register("skillbox_package_install_seconds", "Duration of package installations", self.install_seconds.clone());
        self.process.register(r);
    }

    /// Creates counters with known labels at zero, so that rates are correct from the start.
    fn begin(&self) {
        for reason in [NO_SANDBOX, LOST, NOT_STARTED] {
            drop(self.sandbox_failures.get_or_create(&[("reason", reason.into())]));
        }
        for outcome in [DELIVERED, GONE, TRIED_AGAIN, GIVEN_UP] {
            drop(
                self.webhook_attempts
                    .get_or_create(&[("outcome", outcome.into())]),
            );
        }
        for language in ["python", "node"] {
            for result in ["kept", "failed"] {
                drop(
                    self.installs
                        .get_or_create(&[("language", language.into()), ("result", result.into())]),
                );
            }
        }
    }

    pub fn ended(&self, ended: &ExecutionCompletion<'_>) {
        let backend = || ("backend", Cow::Owned(ended.backend.to_owned()));
        let language = || ("language", ended.language.into());
        let labels = [("status", ended.status.into()), backend(), language()];
        self.executions.get_or_create(&labels).inc();
        let mut total = 0.0;
        for (phase, milliseconds) in ended.phases {
            let seconds = milliseconds / 1000.0;
            total += seconds;
            let labels = [("phase", phase.into()), backend()];
            self.phase_seconds.get_or_create(&labels).observe(seconds);
        }
        let labels = [backend(), language()];
        self.execution_seconds.get_or_create(&labels).observe(total);
    }

    pub fn sandbox_failed(&self, reason: &'static str) {
        self.sandbox_failures
            .get_or_create(&[("reason", reason.into())])
            .inc();
    }

    pub fn installed(&self, language: &'static str, result: Result<(), ()>, took: Duration) {
        let result = if result.is_ok() { "kept" } else { "failed" };
        self.installs
            .get_or_create(&[("language", language.into()), ("result", result.into())])
            .inc();
        self.install_seconds.observe(took.as_secs_f64());
    }

    pub fn webhook_tried(&self, outcome: &'static str) {
        self.webhook_attempts
            .get_or_create(&[("outcome", outcome.into())])
            .inc();
    }

    /// Counts an open stream until the result is dropped.
    #[must_use]
    pub fn stream_opens(&self) -> OpenStream {
        OpenStream::counted_in(&self.streams)
    }

    pub fn answered(&self, answered: &RequestCompletion<'_>) {
        let method = || ("method", method(answered.method).into());
        let route = || ("route", Cow::Owned(answered.route.to_owned()));
        let labels = [method(), route(), ("status", answered.status.to_string().into())];
        self.requests.get_or_create(&labels).inc();
        self.request_seconds
            .get_or_create(&[method(), route()])
            .observe(answered.took.as_secs_f64());
        if let Some(code) = answered.code {
            self.refusals.get_or_create(&[("code", code.into())]).inc();
        }
    }

    /// All metrics in the text format of Prometheus, version 0.0.4.
    #[must_use]
    pub fn text(&self, now: &CurrentValues) -> String {
        let gauge = |gauge: &Gauge, value: u64| gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        gauge(&self.gauges.running, now.running);
        gauge(&self.gauges.queued, now.queued);
        gauge(&self.gauges.slots, now.slots);
        gauge(&self.gauges.warm_waiting, now.warm.waiting);
        gauge(&self.gauges.warm_bytes, now.warm.bytes);
        let counter = |counter: &Counter, value: u64| counter.inner().store(value, Ordering::Relaxed);
        counter(&self.gauges.warm_hits, now.warm.hits);
        counter(&self.gauges.warm_misses, now.warm.misses);
        self.process.update();
        let mut text = String::new();
        encode_registry(&mut text, &self.registry).expect("a text takes all that is written");
        classic(&text)
    }
}

/// Limits the label to known methods.
fn method(given: &str) -> &'static str {
    let known = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    known.into_iter().find(|known| *known == given).unwrap_or("other")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::telemetry::WarmPoolStats;

    fn metrics() -> Metrics {
        Metrics::new(&Latency::default(), &StoredBytes::default())
    }

    #[test]
    fn counts_executions_and_measures_phases() {
        let metrics = metrics();
        metrics.ended(&ExecutionCompletion {
            status: "success",
            backend: "native",
            language: "python",
            phases: [("queue", 0.0), ("sandbox", 2.0), ("run", 20.0), ("collect", 1.0)],
        });
        let text = metrics.text(&CurrentValues::default());
        for line in [
            "skillbox_executions_total{status=\"success\",backend=\"native\",language=\"python\"} 1",
            "skillbox_execution_seconds_sum{backend=\"native\",language=\"python\"} 0.023",
            "skillbox_execution_seconds_bucket{le=\"0.025\",backend=\"native\",language=\"python\"} 1",
            "skillbox_execution_phase_seconds_count{phase=\"run\",backend=\"native\"} 1",
        ] {
            assert!(
                text.lines().any(|found| found == line),
                "{line} is not in\n{text}"
            );
        }
    }

    #[test]
    fn describes_every_sample() {
        let metrics = metrics();
        metrics.answered(&RequestCompletion {
            method: "BREW",
            route: "/v1/skills",
            status: 405,
            code: Some("method_not_allowed"),
            took: Duration::from_millis(1),
        });
        let text = metrics.text(&CurrentValues::default());
        let described: HashSet<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next())
            .collect();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let name = line.split(['{', ' ']).next().unwrap();
            let part_of = |suffix| {
                name.strip_suffix(suffix)
                    .is_some_and(|name| described.contains(name))
            };
            let known = described.contains(name) || ["_sum", "_count", "_bucket"].into_iter().any(part_of);
            assert!(known, "{line}");
        }
        assert!(
            text.contains("method=\"other\",route=\"/v1/skills\",status=\"405\"} 1"),
            "{text}"
        );
        assert!(!text.contains("BREW") && !text.contains("# EOF"));
    }

    #[test]
    fn updates_gauges_when_read() {
        let metrics = metrics();
        let now = |running, hits| CurrentValues {
            running,
            warm: WarmPoolStats {
                hits,
                ..WarmPoolStats::default()
            },
            ..CurrentValues::default()
        };
        assert!(
            metrics
                .text(&now(3, 5))
                .contains("\nskillbox_executions_running 3\n")
        );
        let text = metrics.text(&now(0, 6));
        assert!(
            text.contains("\nskillbox_executions_running 0\n")
                && text.contains("\nskillbox_warm_hits_total 6\n")
        );
    }
}
