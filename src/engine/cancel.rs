//! Cancels executions of this process, and of others by a request in the store for which the owner polls.

use std::sync::{Arc, Weak};

use tokio::time::{Instant, sleep, timeout};

use crate::engine::running::Registration;
use crate::engine::{Engine, EngineState, Executions, clock, outcome};
use crate::error::{Code, Error};
use crate::execution::{Execution, Reader, Status};
use crate::ids::{ExecutionId, Tenant};
use crate::limits;

impl Executions<'_> {
    /// Cancels an execution and waits until the outcome is recorded. An ended execution is returned as it is.
    pub async fn cancel(self, tenant: &Tenant, id: ExecutionId) -> Result<Execution, Error> {
        let execution = self.get(tenant, id).await?;
        if execution.status.is_final() {
            return Ok(execution);
        }
        let owner = execution.new.instance;
        let cancelled = if owner != self.engine.instance() && self.engine.instance.is_alive(owner) {
            self.cancel_elsewhere(tenant, id).await?
        } else {
            self.cancel_here(tenant, id).await?
        };
        if cancelled.status.is_final() {
            return Ok(cancelled);
        }
        Err(Error::new(
            Code::Busy,
            format!("execution `{id}` is being cancelled; check its state later"),
        ))
    }

    async fn cancel_here(self, tenant: &Tenant, id: ExecutionId) -> Result<Execution, Error> {
        if let Some(mut reader) = self.begin_cancel(tenant, id).await?
            && let Ok(ended) = timeout(limits::KILL_GRACE * 2 + limits::COLLECT_MAX, reader.ended()).await
        {
            match ended {
                Some(execution) => return Ok(Arc::unwrap_or_clone(execution)),
                // The owner failed to record the outcome.
                None => self.engine.maintenance().end_lost().await?,
            }
        }
        self.get(tenant, id).await
    }

    /// Cancels an execution of this process and returns a reader that reports the end. A queued execution has ended
    /// then; one without a live owner is recorded as lost.
    async fn begin_cancel(self, tenant: &Tenant, id: ExecutionId) -> Result<Option<Reader>, Error> {
        let is_queued = self.get(tenant, id).await?.status == Status::Queued;
        if is_queued
            && self
                .engine
                .runs()
                .leave_queue(tenant, id, outcome::cancelled())
                .await?
        {
            self.engine.admission.remove(tenant, id);
            // An execution with a slot may still be preparing.
            drop(self.engine.running.cancel(tenant, id));
            return Ok(None);
        }
        let reader = self.engine.running.cancel(tenant, id);
        if reader.is_none() {
            self.engine.maintenance().end_lost().await?;
        }
        Ok(reader)
    }

    /// Asks the process that owns an execution to cancel it, and waits for the end.
    async fn cancel_elsewhere(self, tenant: &Tenant, id: ExecutionId) -> Result<Execution, Error> {
        self.engine.store.request_cancel(tenant, id, clock::now()).await?;
        let patience = limits::CANCEL_POLL_EVERY + limits::KILL_GRACE * 2 + limits::COLLECT_MAX;
        self.await_end(tenant, id, Instant::now() + patience).await
    }

    /// Registers an execution that runs or is queued. While there is any, this process polls for cancel requests.
    pub(super) fn register(self, tenant: Tenant, id: ExecutionId) -> Registration {
        let registration = self.engine.running.register(tenant, id);
        if self.engine.running.begin_polling() {
            tokio::spawn(poll_cancel_requests(Arc::downgrade(&self.engine.0)));
        }
        registration
    }

    async fn serve_cancel_requests(self) -> Result<(), Error> {
        if !self.engine.instance.has_others() {
            return Ok(());
        }
        for (tenant, id) in self.engine.store.cancel_requests(self.engine.instance()).await? {
            // The process that requested it waits for the end.
            if let Err(error) = self.begin_cancel(&tenant, id).await {
                tracing::warn!(execution.id = %id, %error, "Execution {id} could not be cancelled; trying again");
            }
        }
        Ok(())
    }
}

/// Holds the engine only while polling, so that the process can end.
async fn poll_cancel_requests(engine: Weak<EngineState>) {
    loop {
        sleep(limits::CANCEL_POLL_EVERY).await;
        let Some(engine) = engine.upgrade().map(Engine) else {
            return;
        };
        if !engine.running.continue_polling() {
            return;
        }
        if let Err(error) = engine.executions().serve_cancel_requests().await {
            tracing::warn!(%error, "Cancel requests of other processes could not be read; trying again");
        }
    }
}
