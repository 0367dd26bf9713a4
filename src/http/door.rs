//! What all handlers share, and what the operator sets for this door.

use std::sync::Arc;
use std::time::Instant;

use axum::http::uri::Authority;
use tokio::sync::{Mutex, Semaphore};

use super::body::Budget;
use super::throttle::Throttle;
use crate::engine::{Engine, Readiness};
use crate::limits;

/// What the operator sets for this door.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Where clients reach this server, such as `https://skillbox.example`; links start with it. Its host name is answered for.
    pub server_url: Option<String>,
    /// Further host names that are answered for, besides loopback names; `*` stands for every name.
    pub allowed_hosts: Vec<String>,
}

/// The state of every handler.
#[derive(Debug)]
pub(crate) struct Door {
    pub(crate) engine: Engine,
    pub(crate) throttle: Throttle,
    /// Memory for request bodies.
    pub(crate) budget: Budget,
    /// Places for archives that are being received.
    pub(crate) uploads: Arc<Semaphore>,
    server_url: Option<String>,
    /// Anybody may ask whether we are ready, so one answer serves all for a moment.
    readiness: Mutex<Option<(Instant, Readiness)>>,
}

impl Door {
    pub(crate) fn new(engine: Engine, server_url: Option<&str>) -> Self {
        Self {
            engine,
            throttle: Throttle::default(),
            budget: Budget::new(limits::BODIES_BYTES_MAX),
            uploads: Arc::new(Semaphore::new(limits::UPLOADS_MAX)),
            server_url: server_url.map(|url| url.trim_end_matches('/').to_owned()),
            readiness: Mutex::new(None),
        }
    }

    /// What links start with: the configured URL, else the (checked) name that this request was sent to.
    pub(crate) fn base_url(&self, asked: &Authority) -> String {
        self.server_url
            .clone()
            .unwrap_or_else(|| format!("http://{asked}"))
    }

    /// Whether the server can do its work, as of a moment ago.
    pub(crate) async fn readiness(&self) -> Readiness {
        let mut known = self.readiness.lock().await;
        if let Some((at, readiness)) = &*known
            && at.elapsed() < limits::READINESS_AGE_MAX
        {
            return readiness.clone();
        }
        let readiness = self.engine.readiness().await;
        // The asker may be anybody and learns only which part; the operator learns why.
        for check in readiness.checks.iter().filter(|check| !check.ok) {
            let why = check.message.as_deref().unwrap_or_default();
            tracing::warn!("Not ready: {}: {why}", check.name);
        }
        *known = Some((Instant::now(), readiness.clone()));
        readiness
    }
}
