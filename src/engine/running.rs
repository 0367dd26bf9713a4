//! What goes on in this process: the executions that can still be cancelled and watched, and those whose end nobody has
//! recorded.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::execution::{Bookmark, Execution, Reader, Status, TooFar, Transcript};
use crate::ids::{ExecutionId, Tenant};

/// The executions of this process.
#[derive(Debug, Default)]
pub(super) struct RunningExecutions {
    live: Mutex<HashMap<ExecutionId, RunningExecution>>,
    unsaved: Mutex<Vec<(Tenant, ExecutionId)>>,
    /// Whether a task polls for cancel requests of other processes.
    is_polled: AtomicBool,
    /// Cancelled when the process ends: what runs, and what is about to.
    stop: CancellationToken,
    /// Cancelled when nobody is left who ends anything.
    closed: CancellationToken,
}

/// What is known of one.
#[derive(Debug)]
struct RunningExecution {
    tenant: Tenant,
    cancel: CancellationToken,
    transcript: Arc<Transcript>,
}

/// An execution among the running ones, until this is dropped.
#[derive(Debug)]
pub(super) struct Registration {
    running: Arc<RunningExecutions>,
    tenant: Tenant,
    id: ExecutionId,
    cancel: CancellationToken,
    transcript: Arc<Transcript>,
    /// Whether it may stand as running in the store.
    may_be_running: bool,
}

impl RunningExecutions {
    /// Enters an execution that runs, or waits for its turn.
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

    /// Asks an execution to end; `None` if it does not run here, else what hears of its end.
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

    /// Reads what an execution tells from a place on, if it runs here.
    pub(super) fn reader(
        &self,
        tenant: &Tenant,
        id: ExecutionId,
        from: Bookmark,
    ) -> Option<Result<Reader, TooFar>> {
        let live = locked(&self.live);
        let live = live.get(&id).filter(|live| live.tenant == *tenant)?;
        Some(live.transcript.reader(from))
    }

    /// Cancelled with all of them.
    pub(super) fn stopping(&self) -> CancellationToken {
        self.stop.child_token()
    }

    /// Whether all were asked to end.
    pub(super) fn is_stopping(&self) -> bool {
        self.stop.is_cancelled()
    }

    /// Asks all to end, those to come included.
    pub(super) fn stop(&self) {
        self.stop.cancel();
    }

    /// Sends away who follows what this process will not end.
    pub(super) fn close(&self) {
        self.closed.cancel();
    }

    /// Cancelled when they are.
    pub(super) fn closed(&self) -> CancellationToken {
        self.closed.clone()
    }

    /// The executions that are closed and may still stand as running; told once.
    pub(super) fn take_unsaved(&self) -> Vec<(Tenant, ExecutionId)> {
        std::mem::take(&mut *locked(&self.unsaved))
    }

    /// Gives one back.
    pub(super) fn add_unsaved(&self, tenant: Tenant, id: ExecutionId) {
        locked(&self.unsaved).push((tenant, id));
    }
}

impl Registration {
    /// From now on it may stand as running in the store.
    pub(super) fn set_running(&mut self) {
        self.may_be_running = true;
        self.transcript.stands(Status::Running);
    }

    /// Whether it may stand as running.
    pub(super) fn has_started(&self) -> bool {
        self.may_be_running
    }

    /// It waits for its turn.
    pub(super) fn set_queued(&self) {
        self.transcript.stands(Status::Queued);
    }

    /// Whose it is.
    pub(super) fn tenant(&self) -> &Tenant {
        &self.tenant
    }

    /// Which it is.
    pub(super) fn id(&self) -> ExecutionId {
        self.id
    }

    /// Cancelled when it is to end.
    pub(super) fn cancel(&self) -> CancellationToken {
        self.cancel.clone()
    }

    /// Takes what it tells.
    pub(super) fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    /// It ended so, which is recorded.
    pub(super) fn complete(mut self, execution: &Execution) {
        debug_assert!(execution.status.is_final(), "{:?} is no end", execution.status);
        self.may_be_running = false;
        // Who comes after this finds the record; who came before is told.
        locked(&self.running.live).remove(&self.id);
        if self.transcript.is_read() {
            self.transcript.end(execution.clone());
        }
    }
}

impl Drop for Registration {
    /// However it ended, by a panic or because the database is full: it is not forgotten as running.
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
