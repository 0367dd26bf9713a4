//! Executions of this process: those that can be cancelled and watched, and those whose outcome is not recorded yet.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::execution::{BeyondEnd, Bookmark, Execution, Reader, Status, Transcript};
use crate::ids::{ExecutionId, Tenant};

#[derive(Debug, Default)]
pub(super) struct RunningExecutions {
    live: Mutex<HashMap<ExecutionId, RunningExecution>>,
    unsaved: Mutex<Vec<(Tenant, ExecutionId)>>,
    /// Whether a task polls for cancel requests of other processes.
    is_polled: AtomicBool,
    /// Cancelled at shutdown, with all current and future executions.
    stop: CancellationToken,
    /// Cancelled when this process records no more outcomes.
    closed: CancellationToken,
}

#[derive(Debug)]
struct RunningExecution {
    tenant: Tenant,
    cancel: CancellationToken,
    transcript: Arc<Transcript>,
}

/// The entry of an execution, removed when dropped.
#[derive(Debug)]
pub(super) struct Registration {
    running: Arc<RunningExecutions>,
    tenant: Tenant,
    id: ExecutionId,
    cancel: CancellationToken,
    transcript: Arc<Transcript>,
    /// Whether the store may have it as `running`.
    may_be_running: bool,
}

impl RunningExecutions {
    pub(super) fn register(self: &Arc<Self>, tenant: Tenant, id: ExecutionId) -> Registration {
        let (cancel, transcript) = (self.stop.child_token(), Arc::new(Transcript::default()));
        let live = RunningExecution {
            tenant: tenant.clone(),
            cancel: cancel.clone(),
            transcript: Arc::clone(&transcript),
        };
        locked(&self.live).insert(id, live);
        Registration {
            running: Arc::clone(self),
            tenant,
            id,
            cancel,
            transcript,
            may_be_running: false,
        }
    }

    /// Cancels an execution and returns a reader of its end; `None` if it does not run here.
    pub(super) fn cancel(&self, tenant: &Tenant, id: ExecutionId) -> Option<Reader> {
        let reader = self.reader(tenant, id, Bookmark::default())?.ok();
        if let Some(live) = locked(&self.live).get(&id) {
            live.cancel.cancel();
        }
        reader
    }

    /// Whether the caller must start the task that polls for cancel requests.
    pub(super) fn begin_polling(&self) -> bool {
        !self.is_polled.swap(true, Ordering::AcqRel)
    }

    /// Whether that task continues; it ends with the last execution.
    pub(super) fn continue_polling(&self) -> bool {
        // Locked until decided: an execution that registers later starts the next task.
        let live = locked(&self.live);
        let continues = !live.is_empty() || !locked(&self.unsaved).is_empty();
        if !continues {
            self.is_polled.store(false, Ordering::Release);
        }
        continues
    }

    /// A reader of the events from a position on; `None` if the execution does not run here.
    pub(super) fn reader(
        &self,
        tenant: &Tenant,
        id: ExecutionId,
        from: Bookmark,
    ) -> Option<Result<Reader, BeyondEnd>> {
        let live = locked(&self.live);
        let live = live.get(&id).filter(|live| live.tenant == *tenant)?;
        Some(live.transcript.reader(from))
    }

    pub(super) fn stopping(&self) -> CancellationToken {
        self.stop.child_token()
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stop.is_cancelled()
    }

    /// Cancels all current and future executions.
    pub(super) fn stop(&self) {
        self.stop.cancel();
    }

    /// Ends the subscriptions to executions whose end this process will not record.
    pub(super) fn close(&self) {
        self.closed.cancel();
    }

    pub(super) fn closed(&self) -> CancellationToken {
        self.closed.clone()
    }

    /// Returns and removes the executions that have ended but may be recorded as running.
    pub(super) fn take_unsaved(&self) -> Vec<(Tenant, ExecutionId)> {
        std::mem::take(&mut *locked(&self.unsaved))
    }

    pub(super) fn add_unsaved(&self, tenant: Tenant, id: ExecutionId) {
        locked(&self.unsaved).push((tenant, id));
    }
}

impl Registration {
    pub(super) fn set_running(&mut self) {
        self.may_be_running = true;
        self.transcript.set_status(Status::Running);
    }

    pub(super) fn has_started(&self) -> bool {
        self.may_be_running
    }

    pub(super) fn set_queued(&self) {
        self.transcript.set_status(Status::Queued);
    }

    pub(super) fn tenant(&self) -> &Tenant {
        &self.tenant
    }

    pub(super) fn id(&self) -> ExecutionId {
        self.id
    }

    pub(super) fn cancel(&self) -> CancellationToken {
        self.cancel.clone()
    }

    pub(super) fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    /// Reports the recorded outcome.
    pub(super) fn complete(mut self, execution: &Execution) {
        debug_assert!(execution.status.is_final(), "{:?} is no end", execution.status);
        self.may_be_running = false;
        // Later subscribers find the record; existing ones are notified.
        locked(&self.running.live).remove(&self.id);
        if self.transcript.is_read() {
            self.transcript.end(execution.clone());
        }
    }
}

impl Drop for Registration {
    /// Also after a panic or with a full database, so that the row does not stay `running`.
    fn drop(&mut self) {
        if self.may_be_running {
            self.running.add_unsaved(self.tenant.clone(), self.id);
        }
        locked(&self.running.live).remove(&self.id);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
