//! What happens without anybody asking: leftovers removed, old executions forgotten, health told, life ended in order.

use std::time::Duration;

use crate::blob;
use crate::engine::{Engine, failure};
use crate::error::{self, Code, Error};
use crate::ids::InstanceId;
use crate::limits;
use crate::store::Retention;

/// Whether this server can do its work.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, utoipa::ToSchema)]
pub struct Readiness {
    /// Whether every check passed.
    pub ready: bool,
    /// Each part.
    pub checks: Vec<Check>,
}

/// One part's health.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, utoipa::ToSchema)]
pub struct Check {
    /// `server`, `store`, `blob` or `sandbox`.
    #[schema(example = "sandbox")]
    pub name: &'static str,
    /// Whether it works.
    pub ok: bool,
    /// Why not, and what to do; `null` where it works.
    #[schema(required)]
    pub message: Option<String>,
    /// What lies behind the message, outermost first: for the log only.
    #[serde(skip)]
    pub cause: Option<String>,
}

/// Executions that one round of retention forgets at most; the next round goes on.
const FORGOTTEN_PER_ROUND: u32 = 1000;

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

impl Engine {
    /// Whether this server can do its work now.
    pub async fn readiness(&self) -> Readiness {
        let open = if self.0.admission.is_closed() {
            Err(Error::new(Code::Busy, "the server is shutting down"))
        } else {
            Ok(())
        };
        let checks = vec![
            Check::of("server", open),
            Check::of("store", self.0.store.ping().await),
            Check::of("blob", self.0.blob.ping().await),
            Check::of("sandbox", self.0.sandbox.check().await),
        ];
        Readiness {
            ready: checks.iter().all(|check| check.ok),
            checks,
        }
    }

    /// One round of upkeep; each part that fails is logged and tried again in the next round.
    pub async fn upkeep_round(&self) {
        let dead = self.0.instance.dead().unwrap_or_else(|error| {
            tracing::warn!(%error, "Could not look for dead processes");
            Vec::new()
        });
        let results = [
            ("interrupting", self.interrupt_dead().await),
            ("reconciling", self.reconcile(&dead).await),
            ("forgetting", self.forget_expired().await),
            ("evicting", self.evict_unused().await),
        ];
        for (part, result) in results {
            if let Err(error) = result {
                tracing::warn!(%error, source = ?std::error::Error::source(&error), "Upkeep failed while {part}");
            }
        }
    }

    /// Ends what dead processes left running.
    async fn interrupt_dead(&self) -> Result<(), Error> {
        let owners = self
            .0
            .store
            .instances()
            .await
            .map_err(|error| failure::of_store(error, "instance"))?;
        for owner in owners
            .into_iter()
            .filter(|owner| !self.0.instance.is_alive(*owner))
        {
            let ended = self.0.store.interrupt(owner, jiff::Timestamp::now()).await;
            for (_, id) in ended.map_err(|error| failure::of_store(error, "execution"))? {
                tracing::warn!(execution.id = %id, "Execution {id} was interrupted by the end of its process");
            }
        }
        Ok(())
    }

    /// Removes sandboxes that should not be there, then forgets the dead that left nothing.
    async fn reconcile(&self, dead: &[InstanceId]) -> Result<(), Error> {
        let removed = self
            .0
            .sandbox
            .reconcile(dead)
            .await
            .map_err(failure::of_sandbox)?;
        if removed > 0 {
            tracing::info!(removed, "Removed {removed} leftover sandboxes");
        }
        for id in dead {
            self.0.instance.forget(*id).map_err(failure::of_io)?;
        }
        Ok(())
    }

    /// Forgets executions beyond retention, artifacts first: a row without files is honest, files without a row are lost space.
    async fn forget_expired(&self) -> Result<(), Error> {
        let policy = &self.0.settings.retention;
        let ended_before = policy.age.and_then(|age| {
            let age = jiff::SignedDuration::try_from(age).ok()?;
            jiff::Timestamp::now().checked_sub(age).ok()
        });
        let retention = Retention {
            ended_before,
            per_tenant: policy.per_tenant,
        };
        let expired = self.0.store.expired(&retention, FORGOTTEN_PER_ROUND).await;
        for (tenant, execution) in expired.map_err(|error| failure::of_store(error, "execution"))? {
            let key = blob::Key::Artifacts {
                tenant: tenant.clone(),
                execution,
            };
            self.0
                .blob
                .delete(&key)
                .await
                .map_err(|error| failure::of_blob(error, "artifacts"))?;
            self.0
                .store
                .forget(&tenant, execution)
                .await
                .map_err(|error| failure::of_store(error, "execution"))?;
        }
        Ok(())
    }

    /// Removes unpacked skills that no version has any more.
    async fn evict_unused(&self) -> Result<(), Error> {
        self.0.cache.sweep().map_err(failure::of_io)?;
        for digest in self.0.cache.idle().map_err(failure::of_io)? {
            let used = self.0.store.digest_is_used(&digest).await;
            if !used.map_err(|error| failure::of_store(error, "skill"))? {
                self.0.cache.evict(&digest).map_err(failure::of_io)?;
            }
        }
        Ok(())
    }

    /// Lets nobody in any more, waits for what runs, then ends it as interrupted; returns when nothing is left.
    pub async fn shutdown(&self, within: Duration) {
        self.0.admission.close();
        self.0.tasks.close();
        if tokio::time::timeout(within, self.0.tasks.wait()).await.is_err() {
            tracing::warn!(
                "Interrupting executions that did not end within {} seconds",
                within.as_secs()
            );
            self.0.running.cancel_all();
            let last = limits::KILL_GRACE * 2 + limits::COLLECT_MAX;
            if tokio::time::timeout(last, self.0.tasks.wait()).await.is_err() {
                tracing::error!("Executions are left to the next process's upkeep");
            }
        }
        self.0.sandbox.settle().await;
    }
}
