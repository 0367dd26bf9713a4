//! Cancelling executions, also those of other processes: through a request in the store that the owner polls for.

use std::sync::{Arc, Weak};

use tokio::time::{Instant, sleep, timeout};

use crate::auth::Caller;
use crate::engine::running::Registration;
use crate::engine::{Engine, Inner, clock, outcome};
use crate::error::{Code, Error};
use crate::execution::{Execution, Reader, Status};
use crate::ids::{ExecutionId, Tenant};
use crate::limits;

impl Engine {
    /// Ends an execution and waits until that is recorded. One that has ended is returned as it is.
    pub async fn cancel(&self, caller: &Caller, id: ExecutionId) -> Result<Execution, Error> {
        let execution = self.execution(caller, id).await?;
        if execution.status.is_final() {
            return Ok(execution);
        }
        let owner = execution.new.instance;
        let cancelled = if owner != self.instance() && self.0.instance.is_alive(owner) {
            self.cancel_elsewhere(caller.tenant(), id).await?
        } else {
            self.cancel_here(caller.tenant(), id).await?
        };
        if cancelled.status.is_final() {
            return Ok(cancelled);
        }
        Err(Error::new(
            Code::Busy,
            format!("execution `{id}` was asked to end and has not yet; ask for its state later"),
        ))
    }

    async fn cancel_here(&self, tenant: &Tenant, id: ExecutionId) -> Result<Execution, Error> {
        if let Some(mut reader) = self.begin_cancel(tenant, id).await?
            && let Ok(ended) = timeout(limits::KILL_GRACE * 2 + limits::COLLECT_MAX, reader.ended()).await
        {
            match ended {
                Some(execution) => return Ok(Arc::unwrap_or_clone(execution)),
                // It ended, and its owner failed to record how.
                None => self.end_lost().await?,
            }
        }
        self.find_execution(tenant, id).await
    }

    /// Asks an execution of this process to end, and returns what reports its end. A queued execution has ended then; one that
    /// no live process runs is ended as lost.
    async fn begin_cancel(&self, tenant: &Tenant, id: ExecutionId) -> Result<Option<Reader>, Error> {
        let is_queued = self.find_execution(tenant, id).await?.status == Status::Queued;
        if is_queued && self.leave_queue(tenant, id, outcome::cancelled()).await? {
            self.0.admission.remove(tenant, id);
            // One that has a slot may still be preparing.
            drop(self.0.running.cancel(tenant, id));
            return Ok(None);
        }
        let reader = self.0.running.cancel(tenant, id);
        if reader.is_none() {
            self.end_lost().await?;
        }
        Ok(reader)
    }

    /// Asks the process that owns an execution to cancel it, and waits for the end.
    async fn cancel_elsewhere(&self, tenant: &Tenant, id: ExecutionId) -> Result<Execution, Error> {
        self.0.store.request_cancel(tenant, id, clock::now()).await?;
        let patience = limits::CANCEL_POLL_EVERY + limits::KILL_GRACE * 2 + limits::COLLECT_MAX;
        self.await_end(tenant, id, Instant::now() + patience).await
    }

    /// Registers an execution that runs or is queued. While there is any, this process polls for cancel requests.
    pub(super) fn register(&self, tenant: Tenant, id: ExecutionId) -> Registration {
        let registration = self.0.running.register(tenant, id);
        if self.0.running.begin_polling() {
            tokio::spawn(poll_cancel_requests(Arc::downgrade(&self.0)));
        }
        registration
    }

    async fn serve_cancel_requests(&self) -> Result<(), Error> {
        if !self.0.instance.has_others() {
            return Ok(());
        }
        for (tenant, id) in self.0.store.cancel_requests(self.instance()).await? {
            // The process that asked waits for the end.
            if let Err(error) = self.begin_cancel(&tenant, id).await {
                tracing::warn!(execution.id = %id, %error, "Execution {id} could not be cancelled; trying again");
            }
        }
        Ok(())
    }
}

/// Holds the engine only while it polls, so that the process can end.
async fn poll_cancel_requests(engine: Weak<Inner>) {
    loop {
        sleep(limits::CANCEL_POLL_EVERY).await;
        let Some(engine) = engine.upgrade().map(Engine) else {
            return;
        };
        if !engine.0.running.continue_polling() {
            return;
        }
        if let Err(error) = engine.serve_cancel_requests().await {
            tracing::warn!(%error, "Cancel requests of other processes could not be read; trying again");
        }
    }
}
