//! State shared by all handlers, and the settings of the API.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Instant;

use axum::http::uri::Authority;
use tokio::sync::Mutex;
use tracing::Instrument as _;

use super::budget::{Budget, BudgetShare};
use super::serve::ConnectionLimits;
use super::throttle::Throttle;
use super::ui::StaticFiles;
use crate::engine::{Engine, Readiness};
use crate::error::{Code, Error};
use crate::ids::Tenant;
use crate::limits;
#[cfg(feature = "mcp")]
use crate::mcp::RunningCalls;
use crate::telemetry::{OpenStream, field};

/// Settings of the API.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Public URL of this server, such as `https://skillbox.example`, for links. Its host name is accepted.
    pub server_url: Option<String>,
    /// Further accepted host names, in addition to loopback names; `*` accepts all.
    pub allowed_hosts: Vec<String>,
    pub dashboard: Dashboard,
    pub metrics: MetricsRoute,
    pub connections: ConnectionLimits,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dashboard {
    /// At `/ui/`, with sessions.
    #[default]
    Served,
    /// Not served; sessions are not accepted.
    Closed,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MetricsRoute {
    /// At `/metrics`.
    #[default]
    Served,
    /// Not served.
    Closed,
}

/// An open event or log stream.
#[derive(Debug)]
pub(crate) struct StreamPermit {
    _permit: BudgetShare,
    _counted: OpenStream,
}

#[derive(Debug)]
pub(crate) struct ApiState {
    pub(crate) engine: Engine,
    throttle: Throttle,
    /// Memory for request bodies.
    pub(crate) bodies: Budget,
    /// Memory for responses that clients have not read yet.
    pub(crate) answers: Budget,
    /// Slots for uploads.
    pub(crate) uploads: Budget,
    /// Slots for event and log streams.
    readers: Budget,
    pub(crate) metrics: MetricsRoute,
    pub(crate) dashboard: Dashboard,
    pub(crate) ui: StaticFiles,
    #[cfg(feature = "mcp")]
    pub(crate) mcp_calls: RunningCalls,
    server_url: Option<String>,
    /// Readiness checks need no key, so one result is cached for all requests.
    readiness: Mutex<Option<(Instant, Readiness)>>,
}

impl ApiState {
    pub(crate) fn new(engine: Engine, settings: &Settings) -> Self {
        let server_url = settings.server_url.as_deref();
        Self {
            engine,
            throttle: Throttle::default(),
            bodies: Budget::new("large requests", limits::BODIES_BYTES_MAX),
            answers: Budget::new("large responses", limits::ANSWERS_BYTES_MAX),
            uploads: Budget::new("uploads", limits::UPLOADS_MAX),
            readers: Budget::new("event or log streams", settings.connections.readers_max()),
            metrics: settings.metrics,
            dashboard: settings.dashboard,
            ui: StaticFiles::embedded(),
            #[cfg(feature = "mcp")]
            mcp_calls: RunningCalls::default(),
            server_url: server_url.map(|url| url.trim_end_matches('/').to_owned()),
            readiness: Mutex::new(None),
        }
    }

    /// Takes a slot for an event or log stream.
    pub(crate) fn stream_permit(&self, tenant: &Tenant) -> Result<StreamPermit, Error> {
        Ok(StreamPermit {
            _permit: self.readers.hold(tenant, 1)?,
            _counted: self.engine.metrics().stream_opens(),
        })
    }

    pub(crate) fn has_failed_storage(&self) -> bool {
        self.engine.maintenance().storage_failed().is_cancelled()
    }

    /// The base of links: the configured URL, else the checked host of the request.
    pub(crate) fn base_url(&self, host: &Authority) -> String {
        self.server_url
            .clone()
            .unwrap_or_else(|| format!("http://{host}"))
    }

    pub(crate) fn server_url(&self) -> Option<&str> {
        self.server_url.as_deref()
    }

    /// Counts a wrong key or token, and replaces the error if there were too many.
    pub(crate) fn count_wrong_key(&self, source: Option<IpAddr>, rejected: Error) -> Error {
        let source = source.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        match self.throttle.wrong_key(source, Instant::now()) {
            Ok(()) => rejected,
            Err(wait) => Error::new(
                Code::RateLimited,
                "too many invalid API keys from this address; wait, then send a valid one",
            )
            .with_retry_after(wait),
        }
    }

    /// Readiness, cached for a moment. Logs changes with their causes.
    pub(crate) async fn readiness(&self) -> Readiness {
        let mut known = self.readiness.lock().await;
        if let Some((at, readiness)) = &*known
            && at.elapsed() < limits::READINESS_AGE_MAX
        {
            return readiness.clone();
        }
        let readiness = self.engine.maintenance().readiness().await;
        let before = known.replace((Instant::now(), readiness.clone()));
        log_change(before.map(|(_, readiness)| readiness).as_ref(), &readiness);
        readiness
    }
}

fn log_change(before: Option<&Readiness>, now: &Readiness) {
    let was_ready = before.is_none_or(|before| before.ready);
    if now.ready && !was_ready {
        tracing::info!("Ready again");
    }
    let failures = now
        .checks
        .iter()
        .filter(|check| !check.ok && before.is_none_or(|before| !before.checks.contains(check)));
    for check in failures {
        let why = check.message.as_deref().unwrap_or_default();
        tracing::warn!({ field::CAUSE } = check.cause, "Not ready: {}: {why}", check.name);
    }
}

/// Completes `work` even if the client disconnects, and holds `held` until then, since a disconnect must not release
/// resources that are in use.
pub(crate) async fn run_detached<T: Send + 'static>(
    held: impl Send + 'static,
    work: impl Future<Output = Result<T, Error>> + Send + 'static,
) -> Result<T, Error> {
    let task = async move {
        let done = work.await;
        drop(held);
        done
    };
    tokio::spawn(task.in_current_span())
        .await
        .map_err(Error::internal)?
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::{Semaphore, oneshot};

    use super::*;

    #[tokio::test]
    async fn holds_resources_until_detached_work_ends() {
        let slots = Arc::new(Semaphore::new(1));
        let slot = Arc::clone(&slots).try_acquire_owned().unwrap();
        let (begin, begun) = oneshot::channel();
        let (release, released) = oneshot::channel::<()>();
        let work = run_detached(slot, async move {
            begin.send(()).unwrap();
            released.await.map_err(Error::internal)
        });
        let client = tokio::spawn(work);
        begun.await.unwrap();
        client.abort();
        assert!(client.await.unwrap_err().is_cancelled());
        assert_eq!(slots.available_permits(), 0);
        release.send(()).unwrap();
        assert!(slots.acquire().await.is_ok());
    }
}
