//! What goes on in this process: the executions that can still be cancelled and watched, those whose end nobody has recorded,
//! and whoever follows one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::auth::{Caller, Scope};
use crate::engine::{Engine, require};
use crate::error::Error;
use crate::execution::{Bookmark, Execution, News, Phase, Reader, Reason, Status, TooFar, Transcript};
use crate::ids::{ExecutionId, Tenant};
use crate::limits;
use crate::store;

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

    /// The executions that are over and may still stand as running; told once.
    pub(super) fn take_unrecorded(&self) -> Vec<(Tenant, ExecutionId)> {
        std::mem::take(&mut *locked(&self.unrecorded))
    }

    /// Gives them back.
    pub(super) fn keep_unrecorded(&self, ids: &[(Tenant, ExecutionId)]) {
        locked(&self.unrecorded).extend_from_slice(ids);
    }
}

impl Entered {
    /// From now on it may stand as running in the store.
    pub(super) fn begins(&mut self) {
        self.may_stand = true;
        self.transcript.stands(Status::Running, None);
    }

    /// It waits for its turn.
    pub(super) fn waits(&self) {
        self.transcript.stands(Status::Queued, None);
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
        self.may_stand = false;
        // Under one lock: who comes later finds the record, and who is here is told.
        let mut live = locked(&self.running.live);
        live.remove(&self.id);
        if self.transcript.is_read() {
            self.transcript.end(execution.clone());
        }
    }
}

impl Drop for Entered {
    /// However it ended, by a panic or because the database is full: it is not forgotten as running.
    fn drop(&mut self) {
        if self.may_stand {
            locked(&self.running.unrecorded).push((self.tenant.clone(), self.id));
        }
        locked(&self.running.live).remove(&self.id);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Hears all that an execution tells from a place on, whoever runs it, until there is an end.
#[derive(Debug)]
pub struct Follow {
    engine: Engine,
    tenant: Tenant,
    id: ExecutionId,
    reader: Reader,
    /// Written by ourselves where the execution does not run here: all that can be seen of it is how it ended.
    record: Option<Transcript>,
    is_over: bool,
}

impl Engine {
    /// Follows an execution from a place on: while it runs, and as well when it has ended.
    pub async fn follow(&self, caller: &Caller, id: ExecutionId, from: Bookmark) -> Result<Follow, Error> {
        require(caller, &[Scope::Run])?;
        self.follow_for(caller.tenant(), id, from).await
    }

    /// The same for whoever may follow it.
    pub(super) async fn follow_for(
        &self,
        tenant: &Tenant,
        id: ExecutionId,
        from: Bookmark,
    ) -> Result<Follow, Error> {
        let reader = |reader: Result<Reader, TooFar>| {
            reader.map_err(|error| Error::invalid(format!("last_event_id: {error}")))
        };
        if let Some(live) = self.0.running.reader(tenant, id, from) {
            return Ok(self.following(tenant, id, reader(live)?));
        }
        let execution = self.find_execution(tenant, id).await?;
        // It may have begun since we looked.
        if !execution.status.is_final()
            && let Some(live) = self.0.running.reader(tenant, id, from)
        {
            return Ok(self.following(tenant, id, reader(live)?));
        }
        let record = Transcript::elsewhere();
        take(&record, execution);
        let follow = self.following(tenant, id, reader(record.reader(from))?);
        Ok(Follow {
            record: Some(record),
            ..follow
        })
    }

    /// Follows an execution of this process from its beginning.
    pub(super) fn follow_entered(&self, entered: &Entered) -> Follow {
        let reader = entered.transcript.reader(Bookmark::default());
        let reader = reader.expect("the beginning is never too far");
        self.following(&entered.tenant, entered.id, reader)
    }

    fn following(&self, tenant: &Tenant, id: ExecutionId, reader: Reader) -> Follow {
        Follow {
            engine: self.clone(),
            tenant: tenant.clone(),
            id,
            reader,
            record: None,
            is_over: false,
        }
    }
}

impl Follow {
    /// Which execution.
    #[must_use]
    pub fn id(&self) -> ExecutionId {
        self.id
    }

    /// The place after the last news.
    #[must_use]
    pub fn bookmark(&self) -> Bookmark {
        self.reader.bookmark()
    }

    /// Waits for what comes next. The last is always [`News::End`]; after it comes `None`. Nothing is lost if this is dropped.
    pub async fn next(&mut self) -> Option<News> {
        if self.is_over || self.bookmark().phase == Phase::End {
            return None;
        }
        let news = self.news().await;
        self.is_over = matches!(news, News::End { .. });
        Some(news)
    }

    async fn news(&mut self) -> News {
        let over = self.engine.0.running.over.clone();
        loop {
            tokio::select! {
                biased;
                news = self.reader.next() => match news {
                    Some(news) => return news,
                    // Who ran it could not record its end; somebody will.
                    None => self.go_on_elsewhere(),
                },
                () = look_again(&self.engine, (&self.tenant, self.id), self.record.as_ref()) => return self.leave(),
                () = over.cancelled() => return self.leave(),
            }
        }
    }

    fn leave(&self) -> News {
        News::End {
            status: self.reader.status(),
            reason: Reason::Shutdown,
        }
    }

    fn go_on_elsewhere(&mut self) {
        let record = Transcript::elsewhere();
        if let Ok(reader) = record.reader(self.bookmark()) {
            self.reader = reader;
        }
        self.record = Some(record);
    }
}

/// Looks now and then whether what runs elsewhere has ended; ends when it was forgotten.
async fn look_again(engine: &Engine, (tenant, id): (&Tenant, ExecutionId), record: Option<&Transcript>) {
    let Some(record) = record else {
        return std::future::pending().await;
    };
    loop {
        tokio::time::sleep(limits::ELSEWHERE_LOOK_EVERY).await;
        match engine.0.store.execution(tenant, id).await {
            Ok(execution) => take(record, execution),
            Err(store::Error::NotFound) => return,
            // It is asked again.
            Err(_) => {}
        }
    }
}

fn take(record: &Transcript, execution: Execution) {
    if execution.status.is_final() {
        record.end(execution);
    } else {
        record.stands(execution.status, None);
    }
}
