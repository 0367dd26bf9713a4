//! What a server counts and measures, and how Prometheus reads it.
//!
//! Label values are few and our own words: never a tenant, a skill, a path or anything else that a caller chooses.

use std::sync::atomic::Ordering;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
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

/// Upper bounds of what takes as long as a program, in seconds.
const LONG: [f64; 17] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 600.0,
];
/// No sandbox could be made.
pub const NO_SANDBOX: &str = "no_sandbox";
/// It vanished before it could report.
pub const LOST: &str = "lost";
/// Its program could not be started.
pub const NOT_STARTED: &str = "not_started";
/// The receiver has taken it.
pub const DELIVERED: &str = "delivered";
/// The receiver wants no more.
pub const GONE: &str = "gone";
/// There is another attempt to come.
pub const TRIED_AGAIN: &str = "tried_again";
/// It was the last one.
pub const GIVEN_UP: &str = "given_up";

type Histograms<L> = Family<L, Histogram, fn() -> Histogram>;

fn long() -> Histogram {
    Histogram::new(LONG)
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ExecutionLabels {
    status: &'static str,
    backend: String,
    language: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ProgramLabels {
    backend: String,
    language: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct PhaseLabels {
    phase: &'static str,
    backend: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ReasonLabels {
    reason: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RequestLabels {
    method: &'static str,
    route: String,
    status: u16,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RouteLabels {
    method: &'static str,
    route: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct CodeLabels {
    code: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct InstallLabels {
    language: &'static str,
    result: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OutcomeLabels {
    outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct BuildLabels {
    version: &'static str,
    otlp: &'static str,
}

/// Everything that one server counts: a value, so that two servers in one process count apart.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    executions: Family<ExecutionLabels, Counter>,
    execution_seconds: Histograms<ProgramLabels>,
    phase_seconds: Histograms<PhaseLabels>,
    sandbox_failures: Family<ReasonLabels, Counter>,
    requests: Family<RequestLabels, Counter>,
    request_seconds: Histograms<RouteLabels>,
    refusals: Family<CodeLabels, Counter>,
    installs: Family<InstallLabels, Counter>,
    install_seconds: Histogram,
    webhook_attempts: Family<OutcomeLabels, Counter>,
    streams: Gauge,
    gauges: Gauges,
    process: ProcessMetrics,
}

/// Set when they are read.
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
    /// Nothing counted yet, but by those who count for themselves.
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

    /// The names and their words; `docs/OBSERVABILITY.md` has the same.
    #[rustfmt::skip]
    fn register(&mut self, store: &Latency, kept: &StoredBytes) {
        let (r, g) = (&mut self.registry, &self.gauges);
        let build = Family::<BuildLabels, Gauge>::default();
        let otlp = if cfg!(feature = "otlp") { "yes" } else { "no" };
        let version = env!("CARGO_PKG_VERSION");
        build.get_or_create(&BuildLabels { version, otlp }).set(1);
        r.register("skillbox_build_info", "Always 1; the labels say what runs", build);
        r.register("skillbox_executions", "Executions that have ended", self.executions.clone());
        r.register("skillbox_execution_seconds", "How long executions took, the wait for their turn included",
            self.execution_seconds.clone());
        r.register("skillbox_execution_phase_seconds", "The same by phase: queue, sandbox, run, collect",
            self.phase_seconds.clone());
        r.register("skillbox_executions_running", "Executions that run now", g.running.clone());
        r.register("skillbox_executions_queued", "Executions that wait for their turn now", g.queued.clone());
        r.register("skillbox_execution_slots", "Executions that may run at once", g.slots.clone());
        r.register("skillbox_sandbox_failures", "Executions that got no sandbox, or lost it", self.sandbox_failures.clone());
        r.register("skillbox_warm_hits", "Executions that found a sandbox made in advance", g.warm_hits.clone());
        r.register("skillbox_warm_misses", "Executions for which one could have waited and none did", g.warm_misses.clone());
        r.register("skillbox_warm_sandboxes", "Sandboxes that wait now", g.warm_waiting.clone());
        r.register("skillbox_warm_bytes", "Memory that is counted for them against pool.memory", g.warm_bytes.clone());
        r.register("skillbox_http_requests", "Requests that were answered", self.requests.clone());
        r.register("skillbox_http_request_seconds", "Until the head of the answer was there", self.request_seconds.clone());
        r.register("skillbox_refusals", "Requests that were refused, by the code of the problem document", self.refusals.clone());
        r.register("skillbox_streams_open", "Streams of events or followed logs that are open now", self.streams.clone());
        r.register("skillbox_webhook_attempts", "Attempts to tell receivers of ends, by what came of them",
            self.webhook_attempts.clone());
        r.register("skillbox_kept_bytes", "Bytes that were written to be kept", kept.0.clone());
        r.register("skillbox_store_read_seconds", "How long the database took to read, the wait for a connection included",
            store.read.clone());
        r.register("skillbox_store_write_seconds", "How long the database took to write durably, the wait included",
            store.write.clone());
        r.register("skillbox_package_installs", "Sets of packages that were installed, or could not be", self.installs.clone());
        r.register("skillbox_package_install_seconds", "How long that took", self.install_seconds.clone());
        self.process.register(r);
    }

    /// Labels that are known are there from the start: a rate of what has never been counted would have no first value.
    fn begin(&self) {
        for reason in [NO_SANDBOX, LOST, NOT_STARTED] {
            drop(self.sandbox_failures.get_or_create(&ReasonLabels { reason }));
        }
        for outcome in [DELIVERED, GONE, TRIED_AGAIN, GIVEN_UP] {
            drop(self.webhook_attempts.get_or_create(&OutcomeLabels { outcome }));
        }
        for language in ["python", "node"] {
            for result in ["kept", "failed"] {
                drop(self.installs.get_or_create(&InstallLabels { language, result }));
            }
        }
    }

    /// Counts an execution that has ended.
    pub fn ended(&self, ended: &ExecutionCompletion<'_>) {
        let ExecutionCompletion { status, language, .. } = *ended;
        let backend = || ended.backend.to_owned();
        let labels = ExecutionLabels {
            status,
            backend: backend(),
            language,
        };
        self.executions.get_or_create(&labels).inc();
        for (phase, milliseconds) in ended.phases {
            let labels = PhaseLabels {
                phase,
                backend: backend(),
            };
            self.phase_seconds
                .get_or_create(&labels)
                .observe(milliseconds / 1000.0);
        }
        let all: f64 = ended
            .phases
            .iter()
            .map(|(_, milliseconds)| milliseconds / 1000.0)
            .sum();
        let labels = ProgramLabels {
            backend: backend(),
            language,
        };
        self.execution_seconds.get_or_create(&labels).observe(all);
    }

    /// Counts an execution that got no sandbox or lost it; the reason is one of ours.
    pub fn sandbox_failed(&self, reason: &'static str) {
        self.sandbox_failures
            .get_or_create(&ReasonLabels { reason })
            .inc();
    }

    /// Counts an attempt to install packages.
    pub fn installed(&self, language: &'static str, result: Result<(), ()>, took: Duration) {
        let result = if result.is_ok() { "kept" } else { "failed" };
        self.installs
            .get_or_create(&InstallLabels { language, result })
            .inc();
        self.install_seconds.observe(took.as_secs_f64());
    }

    /// Counts an attempt to deliver a webhook; the outcome is one of ours.
    pub fn webhook_tried(&self, outcome: &'static str) {
        self.webhook_attempts
            .get_or_create(&OutcomeLabels { outcome })
            .inc();
    }

    /// Counts a stream of events or logs for as long as it is open.
    #[must_use]
    pub fn stream_opens(&self) -> OpenStream {
        OpenStream::counted_in(&self.streams)
    }

    /// Counts a request that was answered.
    pub fn answered(&self, answered: &RequestCompletion<'_>) {
        let method = method(answered.method);
        let route = || answered.route.to_owned();
        let labels = RequestLabels {
            method,
            route: route(),
            status: answered.status,
        };
        self.requests.get_or_create(&labels).inc();
        let labels = RouteLabels {
            method,
            route: route(),
        };
        self.request_seconds
            .get_or_create(&labels)
            .observe(answered.took.as_secs_f64());
        if let Some(code) = answered.code {
            self.refusals.get_or_create(&CodeLabels { code }).inc();
        }
    }

    /// Everything in the text format of Prometheus, version 0.0.4.
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

/// Methods are the caller's words until they are one of these.
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
    fn an_execution_is_counted_and_measured_by_phase() {
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
    fn every_sample_is_described_under_its_own_name() {
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
    fn what_is_so_now_is_asked_for_when_it_is_read() {
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
