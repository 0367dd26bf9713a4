//! What rooms tell those who count.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

/// Upper bounds of what the database takes, in seconds.
const SHORT: [f64; 12] = [
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5, 10.0,
];

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct KindLabels {
    kind: &'static str,
}

/// How long a database takes.
#[derive(Clone, Debug)]
pub struct Latency {
    pub(super) read: Histogram,
    pub(super) write: Histogram,
}

impl Default for Latency {
    fn default() -> Self {
        let new = || Histogram::new(SHORT);
        Self {
            read: new(),
            write: new(),
        }
    }
}

impl Latency {
    /// One read took this long, the wait for a connection included.
    pub fn read(&self, took: Duration) {
        self.read.observe(took.as_secs_f64());
    }

    /// One write took this long, the wait for the connection included.
    pub fn wrote(&self, took: Duration) {
        self.write.observe(took.as_secs_f64());
    }
}

/// How much was kept, by what it is.
#[derive(Clone, Debug, Default)]
pub struct StoredBytes(pub(super) Family<KindLabels, Counter>);

impl StoredBytes {
    /// Bytes of a `kind` of ours.
    pub fn add(&self, kind: &'static str, bytes: u64) {
        self.0.get_or_create(&KindLabels { kind }).inc_by(bytes);
    }
}

/// One execution that has ended.
#[derive(Clone, Copy, Debug)]
pub struct ExecutionCompletion<'a> {
    /// How, in the word of its result.
    pub status: &'static str,
    /// What ran it.
    pub backend: &'a str,
    /// What it is written in.
    pub language: &'static str,
    /// Its phases in their order, in milliseconds.
    pub phases: [(&'static str, f64); 4],
}

/// One request that was answered.
#[derive(Clone, Copy, Debug)]
pub struct RequestCompletion<'a> {
    /// Its method.
    pub method: &'a str,
    /// The route that it matched.
    pub route: &'a str,
    /// The answer's status.
    pub status: u16,
    /// Why it was refused, if it was.
    pub code: Option<&'static str>,
    /// Until the head of the answer was there.
    pub took: Duration,
}

/// A stream of events or logs, counted as open until this is dropped.
#[derive(Debug)]
pub struct OpenStream(Gauge);

impl OpenStream {
    pub(super) fn counted_in(streams: &Gauge) -> Self {
        streams.inc();
        Self(streams.clone())
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// What is so at this moment, rather than counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CurrentValues {
    /// Executions that run.
    pub running: u64,
    /// Executions that wait for their turn.
    pub queued: u64,
    /// Executions that may run at once.
    pub slots: u64,
    /// Sandboxes made in advance.
    pub warm: WarmPoolStats,
}

/// Sandboxes made in advance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WarmPoolStats {
    /// Executions that found one, since the process started.
    pub hits: u64,
    /// Executions for which one could have waited and none did.
    pub misses: u64,
    /// That wait now.
    pub waiting: u64,
    /// What is counted for those that wait.
    pub bytes: u64,
}

impl std::ops::Add for WarmPoolStats {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            hits: self.hits + other.hits,
            misses: self.misses + other.misses,
            waiting: self.waiting + other.waiting,
            bytes: self.bytes + other.bytes,
        }
    }
}
