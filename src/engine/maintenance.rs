//! Maintenance: removes leftovers and expired data, reports health, shuts down.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::blob;
use crate::engine::{Maintenance, cache::SkillCache, clock, failure, outcome, queue};
use crate::error::{self, Code, Error};
use crate::ids::{ExecutionId, InstanceId, Tenant};
use crate::limits;
use crate::sandbox::WarmPoolSettings;
use crate::store::{self, Retention};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Readiness {
    pub ready: bool,
    pub checks: Vec<Check>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// `server`, `store`, `blob` or `sandbox`.
    pub name: &'static str,
    pub ok: bool,
    /// Cause and remedy for users.
    pub message: Option<String>,
    /// Further causes, for the log only.
    pub cause: Option<String>,
}

impl Check {
    fn of<E: std::error::Error>(name: &'static str, result: Result<(), E>) -> Self {
        let error = result.err();
        Self {
            name,
            ok: error.is_none(),
            message: error.as_ref().map(ToString::to_string),
            cause: error.as_ref().and_then(|error| error::causes(error)),
        }
    }
}

impl Maintenance<'_> {
    pub async fn readiness(self) -> Readiness {
        let open = if self.engine.admission.is_closed() {
            Err(Error::new(Code::Busy, "the server is shutting down"))
        } else {
            Ok(())
        };
        let checks = vec![
            Check::of("server", open),
            Check::of("store", self.engine.store.ping().await),
            Check::of("blob", self.engine.blob.ping().await),
            Check::of("sandbox", self.engine.sandbox.check().await.map(drop)),
        ];
        Readiness {
            ready: checks.iter().all(|check| check.ok),
            checks,
        }
    }

    /// Cancelled when the store accepts nothing any more: then the process must end.
    #[must_use]
    pub fn storage_failed(self) -> CancellationToken {
        self.engine.store.failed().clone()
    }

    /// Releases caches that later calls fill again.
    pub fn trim_memory(self) {
        self.engine.store.release_memory();
    }

    /// Waits until the next round. Meanwhile grants the slot that is reserved for interactive requests when no more
    /// arrive.
    pub async fn wait(self) {
        let began = std::time::Instant::now();
        while began.elapsed() < limits::MAINTENANCE_EVERY {
            tokio::time::sleep(limits::SLOT_RESERVED_FOR).await;
            self.engine.admission.grant_free_slots();
        }
    }

    /// A part that fails is logged and retried in the next round.
    pub async fn run(self) {
        if let Err(error) = self.engine.store.ping().await {
            tracing::warn!(%error, source = ?std::error::Error::source(&error), "The database does not answer");
        }
        let dead = self.engine.instance.dead().unwrap_or_else(|error| {
            tracing::warn!(%error, "Dead processes not found");
            Vec::new()
        });
        let results = [
            ("ending lost executions", self.end_lost().await),
            ("reconciling", self.reconcile(&dead).await),
            ("counting executions", self.count_ended().await),
            ("deleting old counts", self.delete_old_counts().await),
            ("forgetting", self.forget_expired().await),
            ("deleting idempotency keys", self.forget_idempotency_keys().await),
            ("deleting sessions", self.engine.sessions().delete_ended().await),
            ("deleting audit entries", self.engine.audit().delete_old().await),
            ("pruning blobs", self.engine.blobs().prune().await),
            ("sweeping blobs", self.engine.blobs().sweep().await),
            ("evicting", self.evict_unused().await),
            ("evicting packages", self.engine.packages().evict().await),
        ];
        if let Err(error) = self.engine.store.keep_reserve().await {
            tracing::debug!(%error, "No disk space to set aside");
        }
        for (part, result) in results {
            if let Err(error) = result {
                tracing::warn!(%error, source = ?std::error::Error::source(&error), "Maintenance failed while {part}");
            }
        }
    }

    async fn forget_idempotency_keys(self) -> Result<(), Error> {
        let oldest = queue::oldest_key();
        Ok(self.engine.store.delete_idempotency_keys(oldest).await?)
    }

    /// Ends executions that are recorded as running but run in no process.
    pub(super) async fn end_lost(self) -> Result<(), Error> {
        self.close_unsaved().await?;
        self.interrupt_dead().await?;
        self.engine.webhooks_due.notify_one();
        Ok(())
    }

    /// Interrupts running executions of dead processes.
    async fn interrupt_dead(self) -> Result<(), Error> {
        let owners = self.engine.store.running_instances().await?;
        for owner in owners
            .into_iter()
            .filter(|owner| !self.engine.instance.is_alive(*owner))
        {
            for (tenant, id) in self.engine.store.interrupt_running(owner, clock::now()).await? {
                tracing::warn!(execution.id = %id, "Execution {id} interrupted: its process ended");
                self.delete_artifacts(&tenant, id).await?;
                self.engine.publish_recorded(&tenant, id).await?;
            }
        }
        Ok(())
    }

    /// Ends executions of this process whose outcome could not be recorded.
    async fn close_unsaved(self) -> Result<(), Error> {
        let mut closed = Ok(());
        for (tenant, id) in self.engine.running.take_unsaved() {
            match self.engine.store.finish(&tenant, id, outcome::unsaved()).await {
                Ok(true) => {
                    self.delete_artifacts(&tenant, id).await?;
                    self.engine.publish_recorded(&tenant, id).await?;
                }
                Err(store::Error::NotFound(_)) => self.delete_artifacts(&tenant, id).await?,
                // It was recorded after all.
                Ok(false) => {}
                Err(error) => {
                    self.engine.running.add_unsaved(tenant, id);
                    closed = Err(error.into());
                }
            }
        }
        closed
    }

    /// Removes leftover sandboxes, then forgets dead processes.
    async fn reconcile(self, dead: &[InstanceId]) -> Result<(), Error> {
        let removed = self
            .engine
            .sandbox
            .reconcile(dead)
            .await
            .map_err(failure::of_sandbox)?;
        if removed > 0 {
            tracing::info!(removed, "Removed {removed} leftover sandboxes");
        }
        for id in dead {
            self.engine.instance.forget(*id).map_err(failure::of_io)?;
        }
        Ok(())
    }

    /// Deletes executions beyond retention, for a limited time: the next round goes on, and other maintenance is not
    /// delayed. A failure does not stop the deletion of the others.
    async fn forget_expired(self) -> Result<(), Error> {
        let give_up = std::time::Instant::now() + limits::RETENTION_ROUND_MAX;
        let policy = &self.engine.settings.retention;
        let ended_before = policy.age.and_then(|age| {
            let age = jiff::SignedDuration::try_from(age).ok()?;
            clock::now().checked_sub(age).ok()
        });
        let retention = Retention {
            ended_before,
            per_tenant: policy.per_tenant,
        };
        let rows = limits::EXPIRED_PER_QUERY;
        loop {
            let expired = self.engine.store.expired_executions(&retention, rows).await?;
            let mut forgotten = Ok(());
            for (tenant, execution) in &expired {
                forgotten = forgotten.and(self.forget(tenant, *execution).await);
            }
            forgotten?;
            if expired.len() < rows as usize || std::time::Instant::now() >= give_up {
                return Ok(());
            }
        }
    }

    /// Files that were stored for an outcome that was never recorded.
    async fn delete_artifacts(self, tenant: &Tenant, execution: ExecutionId) -> Result<(), Error> {
        let key = blob::Key::Artifacts {
            tenant: tenant.clone(),
            execution,
        };
        let deleted = self.engine.blob.delete(&key).await;
        deleted.map_err(|error| failure::of_blob(error, "artifacts"))
    }

    /// Artifacts first: files without a row are never found again.
    pub(super) async fn forget(self, tenant: &Tenant, execution: ExecutionId) -> Result<(), Error> {
        self.delete_artifacts(tenant, execution).await?;
        let store = &self.engine.store;
        let mut deleted = store.delete_execution(tenant, execution).await;
        if matches!(deleted, Err(store::Error::Full)) && store.give_up_reserve() {
            deleted = store.delete_execution(tenant, execution).await;
        }
        match deleted {
            // Another process was faster.
            Ok(()) | Err(store::Error::NotFound(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Evicts unused skills from the cache.
    async fn evict_unused(self) -> Result<(), Error> {
        for digest in self.engine.skills().on_cache(SkillCache::idle).await? {
            if !self.engine.store.skill_digest_is_used(&digest).await? {
                self.engine
                    .skills()
                    .on_cache(move |cache| cache.evict(&digest))
                    .await?;
            }
        }
        self.engine.skills().on_cache(SkillCache::sweep).await
    }

    /// Enables the warm pool.
    pub fn keep_warm(self, pool: WarmPoolSettings) {
        self.engine.sandbox.set_warm_pool(pool);
    }

    /// Rejects new requests, waits for running executions, then interrupts them. Returns when none runs.
    pub async fn shutdown(self, within: Duration) {
        self.engine.admission.close();
        self.engine.tasks.close();
        if tokio::time::timeout(within, self.engine.tasks.wait())
            .await
            .is_err()
        {
            tracing::warn!(
                "Interrupting executions that did not end within {} seconds",
                within.as_secs()
            );
            self.engine.running.stop();
            let last = limits::KILL_GRACE * 2 + limits::COLLECT_MAX;
            if tokio::time::timeout(last, self.engine.tasks.wait())
                .await
                .is_err()
            {
                tracing::error!("Executions still running; the next process ends them");
            }
        }
        self.engine.running.close();
        self.engine.sandbox.drain().await;
    }
}
