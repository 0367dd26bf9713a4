//! What all handlers share, and what the operator sets for this door.

use std::time::Instant;

use axum::http::uri::Authority;
use tokio::sync::Mutex;
use tracing::Instrument as _;

use super::budget::{Budget, BudgetShare};
use super::throttle::Throttle;
use crate::engine::{Engine, Readiness};
use crate::error::Error;
use crate::ids::Tenant;
use crate::limits;
use crate::telemetry::{OpenStream, field};

/// What the operator sets for this door.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Where clients reach this server, such as `https://skillbox.example`; links start with it. Its host name is answered for.
    pub server_url: Option<String>,
    /// Further host names that are answered for, besides loopback names; `*` stands for every name.
    pub allowed_hosts: Vec<String>,
    /// Whether administrators may read metrics.
    pub metrics: MetricsRoute,
}

/// Whether administrators may read metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum MetricsRoute {
    /// At `/metrics`.
    #[default]
    Served,
    /// Nobody may.
    Closed,
}

/// Somebody who watches an execution, until dropped.
#[derive(Debug)]
pub(crate) struct StreamPermit {
    _permit: BudgetShare,
    _counted: OpenStream,
}

/// The state of every handler.
#[derive(Debug)]
pub(crate) struct ApiState {
    pub(crate) engine: Engine,
    pub(crate) throttle: Throttle,
    /// Memory for request bodies.
    pub(crate) bodies: Budget,
    /// Memory for answers that clients have not taken yet.
    pub(crate) answers: Budget,
    /// Places for archives that are being received.
    pub(crate) uploads: Budget,
    /// Places for those who watch executions.
    readers: Budget,
    pub(crate) metrics: MetricsRoute,
    server_url: Option<String>,
    /// Anybody may ask whether we are ready, so one answer serves all for a moment.
    readiness: Mutex<Option<(Instant, Readiness)>>,
}

impl ApiState {
    pub(crate) fn new(engine: Engine, settings: &Settings) -> Self {
        let server_url = settings.server_url.as_deref();
        Self {
            engine,
            throttle: Throttle::default(),
            bodies: Budget::new("large requests", limits::BODIES_BYTES_MAX),
            answers: Budget::new("large answers", limits::ANSWERS_BYTES_MAX),
            uploads: Budget::new("uploads", limits::UPLOADS_MAX),
            readers: Budget::new("streams of events or logs", limits::READERS_MAX),
            metrics: settings.metrics,
            server_url: server_url.map(|url| url.trim_end_matches('/').to_owned()),
            readiness: Mutex::new(None),
        }
    }

    /// A place for one who watches an execution, counted as long as it is held.
    pub(crate) fn stream_permit(&self, tenant: &Tenant) -> Result<StreamPermit, Error> {
        Ok(StreamPermit {
            _permit: self.readers.hold(tenant, 1)?,
            _counted: self.engine.metrics().stream_opens(),
        })
    }

    /// What links start with: the configured URL, else the (checked) name that this request was sent to.
    pub(crate) fn base_url(&self, host: &Authority) -> String {
        self.server_url
            .clone()
            .unwrap_or_else(|| format!("http://{host}"))
    }

    /// Whether the server can do its work, as of a moment ago. A change is logged, with what lies behind it.
    pub(crate) async fn readiness(&self) -> Readiness {
        let mut known = self.readiness.lock().await;
        if let Some((at, readiness)) = &*known
            && at.elapsed() < limits::READINESS_AGE_MAX
        {
            return readiness.clone();
        }
        let readiness = self.engine.readiness().await;
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
    let news = now
        .checks
        .iter()
        .filter(|check| !check.ok && before.is_none_or(|before| !before.checks.contains(check)));
    for check in news {
        let why = check.message.as_deref().unwrap_or_default();
        tracing::warn!({ field::CAUSE } = check.cause, "Not ready: {}: {why}", check.name);
    }
}

/// Does `work` to its end even if the client goes away, and keeps `held` as long: whoever hangs up does not get back at
/// once what its request still takes.
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
    async fn a_client_that_goes_away_gives_nothing_back_before_the_work_ends() {
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
