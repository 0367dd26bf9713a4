//! Executions that nobody waits for, and requests that are sent again: recorded before their turn comes.

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::auth::{Caller, Scope};
use crate::engine::admission::{Lane, Request, Slot, Ticket};
use crate::engine::run::{Accepted, Standing, Turn, Watcher, span};
use crate::engine::running::Registration;
use crate::engine::{
    Engine, Manner, OnDisconnect, RunRequest, What, clock, failure, outcome, queued_request, require,
};
use crate::error::{Code, Error};
use crate::execution::{Bookmark, Execution, NewExecution, Outcome, QueuePlace, Status};
use crate::ids::{Digest, ExecutionId, IdempotencyKey, Tenant};
use crate::limits;
use crate::sandbox::Urgency;
use crate::skill::Selector;
use crate::store::{self, Enqueued, KeyedRequest, Queued};

impl Engine {
    /// Records what is asked for and returns at once; it runs when its turn comes, also if the server is started again meanwhile.
    pub async fn submit(
        &self,
        caller: &Caller,
        request: RunRequest,
        manner: Manner,
    ) -> Result<Execution, Error> {
        self.0.rate.take(caller.tenant(), std::time::Instant::now())?;
        // Whoever goes away before that has not asked: what waits here is bounded by who is there.
        let turn = self.0.submissions.acquire(caller.tenant()).await?;
        let slot_request = Request {
            tenant: caller.tenant().clone(),
            lane: Lane::Queued,
            execution: None,
        };
        self.0.admission.yield_to_interactive(&slot_request).await;
        let (engine, caller) = (self.clone(), caller.clone());
        let submit = async move {
            let _until_recorded = turn;
            Box::pin(engine.submit_attached(&caller, request, manner)).await
        };
        self.to_the_end(submit.instrument(span())).await
    }

    async fn submit_attached(
        &self,
        caller: &Caller,
        request: RunRequest,
        manner: Manner,
    ) -> Result<Execution, Error> {
        let kept = queued_request::write(&request.what, &request.ask)?;
        let key = manner.key.map(|key| keyed(key, &kept));
        if let Some(id) = self.asked_before(caller, key.as_ref()).await? {
            return self.find_execution(caller.tenant(), id).await;
        }
        let accepted = Box::pin(self.accept(caller, request)).await?;
        accepted.name_span();
        let kept = queued_request::pinned(kept, &accepted.found.plan.job.mounted)?;
        let lined_up = self.line_up((&accepted.tenant, accepted.id()), Lane::Queued)?;
        match self.enqueue(&accepted, (Some(kept), key)).await? {
            Recorded::Now(execution) => {
                self.run_in_turn(lined_up);
                Ok(*execution)
            }
            Recorded::Before(id) => self.find_execution(&accepted.tenant, id).await,
        }
    }

    /// Runs what is asked for, unless the same was asked for before: then that is waited for.
    pub(super) async fn run_once(
        &self,
        (accepted, keyed): (Accepted, KeyedRequest),
        (on_disconnect, watcher): (OnDisconnect, Watcher),
        gone: &CancellationToken,
    ) -> Result<Execution, Error> {
        let (tenant, id) = (accepted.tenant.clone(), accepted.id());
        let (place, mut registration) = self.line_up((&tenant, id), Lane::Interactive)?;
        if let Recorded::Before(id) = self.enqueue(&accepted, (None, Some(keyed))).await? {
            drop((place, registration, accepted));
            return self.join(&tenant, id, (gone, watcher)).await;
        }
        let turn = gone.run_until_cancelled(self.0.admission.wait(place)).await;
        let turn = turn.unwrap_or_else(|| Err(Error::new(Code::Busy, "the caller left the queue")));
        let ran = match turn {
            Ok(slot) => {
                let turn = Turn {
                    slot,
                    standing: Standing::Queued,
                    on_disconnect,
                    watcher,
                };
                Box::pin(self.execute(accepted, turn, (&mut registration, gone))).await
            }
            Err(error) => Err(error),
        };
        let error = match ran {
            Ok(execution) => {
                registration.complete(&execution);
                return Ok(execution);
            }
            Err(error) => error,
        };
        match self.0.store.withdraw(&tenant, id).await {
            // It never ran: as if it had not been asked for, so that asking again is no repetition.
            Ok(true) => Err(error),
            // Cancelled while it waited, or recorded as it ended. What stands as running is ended by who looks after that.
            Ok(false) => match self.find_execution(&tenant, id).await {
                Ok(execution) if execution.status.is_final() => {
                    registration.complete(&execution);
                    Ok(execution)
                }
                Ok(_) | Err(_) => Err(error),
            },
            Err(_) => {
                let (engine, outcome) = (self.clone(), outcome::rejected(&error));
                self.0
                    .tasks
                    .spawn(async move { engine.end_queued(registration, outcome).await });
                Err(error)
            }
        }
    }

    /// The execution of the same request, if one was asked for under this key: whatever has changed since, that is its answer.
    pub(super) async fn asked_before(
        &self,
        caller: &Caller,
        key: Option<&KeyedRequest>,
    ) -> Result<Option<ExecutionId>, Error> {
        let Some(key) = key else { return Ok(None) };
        require(caller, &[Scope::Run])?;
        let known = self.0.store.asked_before(caller.tenant(), key.clone()).await;
        known.map_err(of_keyed)
    }

    /// Waits with whoever asked for the same before.
    pub(super) async fn join(
        &self,
        tenant: &Tenant,
        id: ExecutionId,
        (gone, watcher): (&CancellationToken, Watcher),
    ) -> Result<Execution, Error> {
        if let Ok(follow) = self.follow_for(tenant, id, Bookmark::default()).await {
            let _ = watcher.send(follow);
        }
        self.await_other(tenant, id, gone).await
    }

    fn enter_line(&self, (tenant, id): (&Tenant, ExecutionId), lane: Lane) -> Result<Ticket, Error> {
        self.0.admission.request(Request {
            tenant: tenant.clone(),
            lane,
            execution: Some(id),
        })
    }

    /// A place in the line, and among what can be watched and cancelled.
    fn line_up(
        &self,
        (tenant, id): (&Tenant, ExecutionId),
        lane: Lane,
    ) -> Result<(Ticket, Registration), Error> {
        let place = self.enter_line((tenant, id), lane)?;
        let registration = self.0.running.register(tenant.clone(), id);
        registration.set_queued();
        Ok((place, registration))
    }

    async fn enqueue(
        &self,
        accepted: &Accepted,
        (request, key): (Option<Vec<u8>>, Option<KeyedRequest>),
    ) -> Result<Recorded, Error> {
        let execution = NewExecution {
            callback_url: accepted.callback_url.clone(),
            ..self.new_execution((&accepted.tenant, accepted.accepted_at), &accepted.found, None)
        };
        let queued = Queued {
            execution: execution.clone(),
            request,
            key,
        };
        match self.0.store.enqueue(queued).await {
            Ok(Enqueued::New) => Ok(Recorded::Now(Box::new(Execution {
                new: execution,
                status: Status::Queued,
                outcome: None,
            }))),
            Ok(Enqueued::Known(id)) => Ok(Recorded::Before(id)),
            Err(store::Error::Quota) => {
                let mebibytes = limits::QUEUED_BYTES_MAX / limits::MIB;
                let message = format!(
                    "requests of yours that wait would have more than {mebibytes} MiB together; send data as blobs, or try again when some have ended"
                );
                Err(Error::new(Code::RateLimited, message).with_retry_after(limits::QUEUE_RETRY_AFTER))
            }
            Err(error) => Err(of_keyed(error)),
        }
    }

    /// Lets a recorded execution wait for its turn; nobody waits with it.
    fn run_in_turn(&self, (place, registration): (Ticket, Registration)) {
        let engine = self.clone();
        self.0
            .tasks
            .spawn(async move { engine.run_queued(registration, place).await });
    }

    /// Runs a recorded execution when its turn comes. What may be otherwise in a moment is waited for in the line; whatever else goes
    /// wrong is recorded as its end, unless the process ends.
    async fn run_queued(&self, mut registration: Registration, mut ticket: Ticket) {
        let (tenant, id) = (registration.tenant().clone(), registration.id());
        let mut tries = 0;
        let error = loop {
            let ended = match ticket.slot().await {
                Some(slot) => Box::pin(self.execute_queued(slot, &mut registration).instrument(span())).await,
                // Cancelled, or the process ends: the next one finds it in the database.
                None => self.find_execution(&tenant, id).await,
            };
            let error = match ended {
                Ok(execution) if execution.status.is_final() => return registration.complete(&execution),
                Ok(_) => return,
                Err(error) => error,
            };
            let is_early = !registration.has_started() && !registration.cancel().is_cancelled();
            if tries == limits::QUEUED_AGAIN_MAX || !is_early || !may_pass(&error) {
                break error;
            }
            tracing::warn!(execution.id = %id, %error, "Execution {id} cannot begin yet; it waits again");
            let pause = limits::QUEUED_AGAIN_AFTER * 2_u32.pow(tries);
            tries += 1;
            let cancel = registration.cancel();
            let _ = cancel.run_until_cancelled(tokio::time::sleep(pause)).await;
            // It was let in before; only the process's end keeps it out.
            let Ok(again) = self.enter_line((&tenant, id), Lane::Recovered) else {
                return;
            };
            ticket = again;
        };
        tracing::warn!(execution.id = %id, %error, source = ?std::error::Error::source(&error), "Execution {id} was not let in");
        self.end_queued(registration, outcome::rejected(&error)).await;
    }

    /// Ends one that waits and never will run. Nobody else knows of it: this tries until the process ends, whose successor finds it.
    async fn end_queued(&self, registration: Registration, outcome: Outcome) {
        let (tenant, id) = (registration.tenant().clone(), registration.id());
        let stopping = self.0.running.stopping();
        while !stopping.is_cancelled() {
            let left = self.leave_queue(&tenant, id, outcome.clone()).await;
            let ended = match left {
                Ok(_) => self.find_execution(&tenant, id).await,
                Err(error) => Err(error),
            };
            match ended {
                Ok(execution) if execution.status.is_final() => return registration.complete(&execution),
                // It stands as running, and is ended by who looks after those.
                Ok(_) => return,
                Err(error) if error.code() == Code::NotFound => return,
                Err(error) => {
                    tracing::warn!(execution.id = %id, %error, "The end of execution {id} could not be recorded; trying again");
                }
            }
            let _ = stopping
                .run_until_cancelled(tokio::time::sleep(limits::QUEUED_AGAIN_AFTER))
                .await;
        }
    }

    async fn execute_queued(&self, slot: Slot, registration: &mut Registration) -> Result<Execution, Error> {
        let (tenant, id) = (registration.tenant().clone(), registration.id());
        let (tenant, execution) = (&tenant, self.find_execution(&tenant, id).await?);
        if execution.status.is_final() {
            return Ok(execution);
        }
        let recorded = execution.new;
        let request = self.0.store.queued_request(tenant, id).await;
        let request = request.map_err(|error| failure::of_store(error, "what it was to be given"))?;
        let (what, mut ask) = queued_request::read(&request)?;
        // Written down with the execution, and judged once more when it is sent.
        ask.callback_url = None;
        // What was latest then.
        let what = match (what, &recorded.version) {
            (What::Skill { name, .. }, Some(version)) => What::Skill {
                name,
                selector: Selector::Version(version.clone()),
            },
            (what, _) => what,
        };
        let request = RunRequest {
            what,
            ask,
            progress: None,
        };
        let caller = Caller::of_accepted(tenant.clone());
        let mut accepted = Box::pin(self.accept(&caller, request)).await?;
        if Some(accepted.found.digest) != recorded.digest {
            let message =
                "the skill's version was deleted and published anew while this waited; run it again";
            return Err(Error::new(Code::Conflict, message));
        }
        accepted.found.plan.job.execution = id;
        accepted.found.plan.job.urgency = Urgency::Deferred;
        accepted.accepted_at = recorded.created_at;
        accepted.callback_url = recorded.callback_url;
        accepted.name_span();
        let (nobody, _) = oneshot::channel();
        let turn = Turn {
            slot,
            standing: Standing::Queued,
            on_disconnect: OnDisconnect::Continue,
            watcher: nobody,
        };
        let cancel = registration.cancel();
        Box::pin(self.execute(accepted, turn, (registration, &cancel))).await
    }

    /// Lets what waited in dead processes wait in this one, in the order it came.
    pub async fn resume_queue(&self) -> Result<(), Error> {
        let of_store = |error| failure::of_store(error, "execution");
        let owners = self.0.store.queue_owners().await.map_err(of_store)?;
        for owner in owners
            .into_iter()
            .filter(|owner| !self.0.instance.is_alive(*owner))
        {
            let adopted = self
                .0
                .store
                .adopt(owner, self.0.instance.id(), clock::now())
                .await;
            let adopted = adopted.map_err(of_store)?;
            if !adopted.is_empty() {
                tracing::info!("{} executions of an earlier process wait again", adopted.len());
            }
            for (tenant, execution) in adopted {
                self.run_in_turn(self.line_up((&tenant, execution), Lane::Recovered)?);
            }
        }
        Ok(())
    }

    /// Ends an execution that waits; `false` if it has started or ended.
    pub(super) async fn cancel_queued(&self, tenant: &Tenant, id: ExecutionId) -> Result<bool, Error> {
        let left = self.leave_queue(tenant, id, outcome::cancelled()).await?;
        if left {
            self.0.admission.remove(tenant, id);
            // One that has its turn may be at its preparations.
            drop(self.0.running.cancel(tenant, id));
        }
        Ok(left)
    }

    async fn leave_queue(&self, tenant: &Tenant, id: ExecutionId, outcome: Outcome) -> Result<bool, Error> {
        let waited = self.find_execution(tenant, id).await?.new;
        let left = self.0.store.leave_queue(tenant, id, outcome.clone()).await;
        let left = left.map_err(|error| failure::of_store(error, "execution"))?;
        if left {
            self.count_end(&waited, &outcome);
            self.webhook_is_due(&waited);
        }
        Ok(left)
    }

    /// Where a queued execution stands; `None` for one that does not wait in this process.
    #[must_use]
    pub fn queue_place(&self, execution: &Execution) -> Option<QueuePlace> {
        let new = &execution.new;
        let is_queued = execution.status == Status::Queued;
        let place = is_queued.then(|| self.0.admission.position(&new.tenant, new.id))??;
        let waited = clock::since(new.created_at).as_millis();
        Some(QueuePlace {
            position: place.position,
            waiting: place.waiting,
            waited_ms: u64::try_from(waited).unwrap_or(u64::MAX),
        })
    }

    /// Refuses a tenant that keeps as much as it may, or would with so many bytes more.
    pub(super) async fn check_storage(&self, tenant: &Tenant, more: u64) -> Result<(), Error> {
        let Some(max) = self.0.settings.tenant_storage else {
            return Ok(());
        };
        let used = self.0.store.storage_used(tenant).await;
        let used = used.map_err(|error| failure::of_store(error, "storage"))?;
        if used < max && more <= max - used {
            return Ok(());
        }
        let mebibytes = |bytes: u64| bytes.div_ceil(limits::MIB);
        Err(Error::new(
            Code::StorageFull,
            format!(
                "your skills and what your executions left have {} of at most {} MiB; delete versions of skills, or wait until old executions are forgotten",
                mebibytes(used),
                mebibytes(max)
            ),
        ))
    }

    /// Keys of requests hold for a day.
    pub(super) async fn forget_keys(&self) -> Result<(), Error> {
        let forgotten = self.0.store.forget_idempotency_keys(a_life_ago()).await;
        forgotten.map_err(|error| failure::of_store(error, "keys of requests"))
    }
}

fn of_keyed(error: store::Error) -> Error {
    match error {
        store::Error::Conflict(store::Conflict::OtherRequest) => Error::new(
            Code::KeyReused,
            "Idempotency-Key: was sent with another request before; use a new key for each request",
        ),
        error => failure::of_store(error, "execution"),
    }
}

/// Whether what went wrong may be right in a moment: an engine that starts again, a database that others hold.
fn may_pass(error: &Error) -> bool {
    matches!(
        error.code(),
        Code::SandboxUnavailable | Code::Busy | Code::Internal
    )
}

/// A key and what it stands for.
pub(super) fn keyed(key: IdempotencyKey, request: &[u8]) -> KeyedRequest {
    KeyedRequest {
        key,
        fingerprint: Digest::of(request),
        since: a_life_ago(),
    }
}

/// Keys of requests that were made before this hold no more.
fn a_life_ago() -> jiff::Timestamp {
    let life = jiff::SignedDuration::try_from(limits::IDEMPOTENCY_KEY_LIFE).unwrap_or_default();
    clock::now().checked_sub(life).unwrap_or(jiff::Timestamp::MIN)
}

/// An execution that is recorded.
enum Recorded {
    Now(Box<Execution>),
    /// By an earlier request that was the same.
    Before(ExecutionId),
}
