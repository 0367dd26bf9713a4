//! State of this server: its backend, its slots, its queue and its warm pool.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::Mutex;

use crate::engine::admission::Load;
use crate::engine::warm_use::{WarmCounts, WarmUse};
use crate::engine::{Engine, Overview, clock};
use crate::error::Error;
use crate::execution::{ExecutionCounts, NewExecution, Outcome};
use crate::ids::Tenant;
use crate::limits;
use crate::sandbox::{Outlook, Sandbox};
use crate::store::BlobQuota;

/// Whose executions are counted.
#[derive(Clone, Copy, Debug)]
pub enum Tenants<'a> {
    All,
    One(&'a Tenant),
}

impl Tenants<'_> {
    pub(super) fn include(self, tenant: &Tenant) -> bool {
        match self {
            Self::All => true,
            Self::One(only) => only == tenant,
        }
    }
}

#[derive(Clone, Debug)]
pub struct ServerState {
    pub started_at: jiff::Timestamp,
    pub backend: Arc<Outlook>,
    pub load: Load,
    /// Warm sandboxes, of all tenants.
    pub warm: u64,
    /// Of the last hour.
    pub warm_use: WarmCounts,
}

/// What a tenant uses.
#[derive(Clone, Debug)]
pub struct TenantUsage {
    /// Bytes of skills and executions.
    pub storage: u64,
    pub blobs: BlobQuota,
    pub secrets: u64,
    /// Bytes.
    pub packages: u64,
    /// Executions that wait in this process and that no client waits for.
    pub queued: usize,
    /// Of the last 24 hours.
    pub day: ExecutionCounts,
}

/// What an overview remembers.
#[derive(Debug)]
pub(super) struct Observed {
    started_at: jiff::Timestamp,
    warm_use: WarmUse,
    /// One check serves all requests for a moment.
    outlook: Mutex<Option<(Instant, Arc<Outlook>)>>,
}

impl Default for Observed {
    fn default() -> Self {
        Self {
            started_at: clock::now(),
            warm_use: WarmUse::new(Instant::now()),
            outlook: Mutex::default(),
        }
    }
}

impl Observed {
    async fn outlook(&self, sandbox: &Sandbox) -> Arc<Outlook> {
        let mut known = self.outlook.lock().await;
        if let Some((at, outlook)) = &*known
            && at.elapsed() < limits::READINESS_AGE_MAX
        {
            return Arc::clone(outlook);
        }
        let outlook = Arc::new(sandbox.outlook().await);
        *known = Some((Instant::now(), Arc::clone(&outlook)));
        outlook
    }
}

impl Overview<'_> {
    pub async fn server(self, tenants: Tenants<'_>) -> ServerState {
        let observed = &self.engine.observed;
        ServerState {
            started_at: observed.started_at,
            backend: observed.outlook(&self.engine.sandbox).await,
            load: self.engine.admission.load(tenants),
            warm: self.engine.sandbox.warm_pool_stats().waiting,
            warm_use: observed.warm_use.last_hour(tenants, Instant::now()),
        }
    }
}

impl Overview<'_> {
    pub async fn usage(self, tenant: &Tenant) -> Result<TenantUsage, Error> {
        let store = &self.engine.store;
        Ok(TenantUsage {
            storage: store.storage_used(tenant).await?,
            blobs: store.blobs_used(tenant).await?,
            secrets: store.secret_count(tenant).await?,
            packages: store.packages_used(tenant).await?,
            queued: self.engine.admission.queued(tenant),
            day: self.last_day(tenant).await?,
        })
    }
}

impl Engine {
    /// Counts whether an execution with a sandbox found a warm one.
    pub(super) fn count_warm(&self, new: &NewExecution, outcome: &Outcome) {
        if new.backend.is_none() {
            return;
        }
        let hits = u64::from(outcome.timings.warm);
        let counts = WarmCounts {
            hits,
            misses: 1 - hits,
        };
        self.observed.warm_use.add(&new.tenant, counts, Instant::now());
    }
}
