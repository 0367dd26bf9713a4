//! Measurements that modules report to the metrics.

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

/// Histogram buckets for database times, in seconds.
const SHORT: [f64; 12] = [
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5, 10.0,
];

/// Durations of database operations.
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
    /// Includes the wait for a connection.
    pub fn read(&self, took: Duration) {
        self.read.observe(took.as_secs_f64());
    }

    /// Includes the wait for the connection.
    pub fn wrote(&self, took: Duration) {
        self.write.observe(took.as_secs_f64());
    }
}

/// Stored bytes by kind.
#[derive(Clone, Debug, Default)]
pub struct StoredBytes(pub(super) Family<[(&'static str, &'static str); 1], Counter>);

impl StoredBytes {
    pub fn add(&self, kind: &'static str, bytes: u64) {
        self.0.get_or_create(&[("kind", kind)]).inc_by(bytes);
    }
}

#[derive(Clone, Copy, Debug)]
pub struct ExecutionCompletion<'a> {
    pub status: &'static str,
    pub backend: &'a str,
    pub language: &'static str,
    /// In order, in milliseconds.
    pub phases: [(&'static str, f64); 4],
}

#[derive(Clone, Copy, Debug)]
pub struct RequestCompletion<'a> {
    pub method: &'a str,
    pub route: &'a str,
    pub status: u16,
    pub code: Option<&'static str>,
    /// Until the response head was ready.
    pub took: Duration,
}

/// An open event or log stream.
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

/// Current values, for gauges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CurrentValues {
    pub running: u64,
    pub queued: u64,
    pub slots: u64,
    pub warm: WarmPoolStats,
}

/// Statistics of the warm pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WarmPoolStats {
    /// Executions that found a warm sandbox, since the process started.
    pub hits: u64,
    /// Executions that could have used a warm sandbox and found none.
    pub misses: u64,
    /// Warm sandboxes now.
    pub waiting: u64,
    /// Memory accounted for warm sandboxes.
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
