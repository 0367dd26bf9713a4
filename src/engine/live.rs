//! What goes on in this process: the executions that can still be cancelled and watched, and those whose end nobody has
//! recorded.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::execution::{Bookmark, Execution, Reader, Status, TooFar, Transcript};
use crate::ids::{ExecutionId, Tenant};

/// The executions of this process.
#[derive(Debug, Default)]
pub(super) struct Running {
    live: Mutex<HashMap<ExecutionId, Live>>,
    unrecorded: Mutex<Vec<(Tenant, ExecutionId)>>,
    /// Cancelled when the process ends: what runs, and what is about to.
    stop: CancellationToken,
    /// Cancelled when nobody is left who ends anything.
    over: CancellationToken,
}

/// What is known of one.
#[derive(Debug)]
struct Live {
    tenant: Tenant,
    cancel: CancellationToken,
    transcript: Arc<Transcript>,
}

/// An execution among the running ones, until this is dropped.
#[derive(Debug)]
pub(super) struct Entered {
    running: Arc<Running>,
    tenant: Tenant,
    id: ExecutionId,
    cancel: CancellationToken,
    transcript: Arc<Transcript>,
    /// Whether it may stand as running in the store.
    may_stand: bool,
}

impl Running {
    /// Enters an execution that runs, or waits for its turn.
    pub(super) fn enter(self: &Arc<Self>, tenant: Tenant, id: ExecutionId) -> Entered {
        let (cancel, transcript) = (self.stop.child_token(), Arc::new(Transcript::default()));
        let live = Live {
            tenant: tenant.clone(),
            cancel: cancel.clone(),
            transcript: Arc::clone(&transcript),
        };
        locked(&self.live).insert(id, live);
        Entered {
            running: Arc::clone(self),
            tenant,
            id,
            cancel,
            transcript,
            may_stand: false,
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
        self.over.cancel();
    }

    /// Cancelled when they are.
    pub(super) fn over(&self) -> CancellationToken {
        self.over.clone()
    }

    /// The executions that are over and may still stand as running; told once.
    pub(super) fn take_unrecorded(&self) -> Vec<(Tenant, ExecutionId)> {
        std::mem::take(&mut *locked(&self.unrecorded))
    }

    /// Gives one back.
    pub(super) fn keep_unrecorded(&self, execution: (Tenant, ExecutionId)) {
        locked(&self.unrecorded).push(execution);
    }
}

impl Entered {
    /// From now on it may stand as running in the store.
    pub(super) fn begins(&mut self) {
        self.may_stand = true;
        self.transcript.stands(Status::Running);
    }

    /// Whether it may stand as running.
    pub(super) fn has_begun(&self) -> bool {
        self.may_stand
    }

    /// It waits for its turn.
    pub(super) fn waits(&self) {
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
    pub(super) fn leave(mut self, execution: &Execution) {
        debug_assert!(execution.status.is_final(), "{:?} is no end", execution.status);
        self.may_stand = false;
        // Who comes after this finds the record; who came before is told.
        locked(&self.running.live).remove(&self.id);
        if self.transcript.is_read() {
            self.transcript.end(execution.clone());
        }
    }
}

impl Drop for Entered {
    /// However it ended, by a panic or because the database is full: it is not forgotten as running.
    fn drop(&mut self) {
        if self.may_stand {
            self.running.keep_unrecorded((self.tenant.clone(), self.id));
        }
        locked(&self.running.live).remove(&self.id);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
