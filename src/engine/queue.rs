//! Queued executions and repeated requests, recorded before they get a slot.

use tracing::Instrument as _;

use crate::engine::admission::{Lane, Request, Slot, Ticket};
use crate::engine::plan::PlannedRun;
use crate::engine::request::RequestDraft;
use crate::engine::run::{Attached, RecordedState, span};
use crate::engine::running::Registration;
use crate::engine::{RunOptions, RunRequest, RunSpec, Runs, clock, outcome};
use crate::error::{Code, Error};
use crate::execution::{Bookmark, Execution, NewExecution, Outcome, QueuePlace, Status};
use crate::ids::{Digest, ExecutionId, IdempotencyKey, Tenant};
use crate::limits;
use crate::sandbox::Urgency;
use crate::skill::Selector;
use crate::store::{self, Enqueued, KeyedRequest, QueueRecovery, Queued};

impl Runs<'_> {
    /// Records a request and returns at once; it runs when it gets a slot, also after a restart.
    pub async fn submit(
        self,
        tenant: &Tenant,
        request: impl Into<RunRequest>,
        options: RunOptions,
    ) -> Result<Execution, Error> {
        let request = request.into();
        self.engine.rate.take(tenant, std::time::Instant::now())?;
        // A caller that disconnects here has submitted nothing, so the limit on connections limits waiting
        // submissions.
        let permit = self.engine.submissions.acquire(tenant).await?;
        let slot_request = Request {
            tenant: tenant.clone(),
            lane: Lane::Queued,
            execution: None,
        };
        self.engine.admission.yield_to_interactive(&slot_request).await;
        let (engine, tenant) = (self.engine.clone(), tenant.clone());
        let submit = async move {
            let _until_recorded = permit;
            Box::pin(engine.runs().submit_attached(&tenant, request, options)).await
        };
        self.engine.run_detached(submit.instrument(span())).await
    }

    async fn submit_attached(
        self,
        tenant: &Tenant,
        request: RunRequest,
        options: RunOptions,
    ) -> Result<Execution, Error> {
        let stored = request.to_stored()?;
        let key = options.idempotency_key.map(|key| keyed(key, &stored));
        if let Some(id) = self.find_repeated(tenant, key.as_ref()).await? {
            return self.engine.executions().get(tenant, id).await;
        }
        let draft = RequestDraft::of(&request, self.engine.settings.keep_request);
        let mut planned = Box::pin(self.accept(tenant, request)).await?;
        planned.key = options.key;
        self.keep_request(draft, &mut planned).await?;
        planned.record_span();
        let stored = RunSpec::pin_mounts(stored, &planned.job.sandbox.mounted)?;
        let waiting = self.enter_queue(&planned.tenant, planned.id(), Lane::Queued)?;
        match self.enqueue(&planned, Some(stored), key).await? {
            Enqueue::Recorded(execution) => {
                self.run_when_granted(waiting);
                Ok(*execution)
            }
            Enqueue::Repeated(id) => self.engine.executions().get(&planned.tenant, id).await,
        }
    }

    /// Runs an execution, unless the same was requested before: then waits for that one.
    pub(super) async fn run_once(
        self,
        mut planned: PlannedRun,
        keyed: KeyedRequest,
        attached: Attached,
    ) -> Result<Execution, Error> {
        let (tenant, id) = (planned.tenant.clone(), planned.id());
        let waiting = self.enter_queue(&tenant, id, Lane::Interactive)?;
        if let Enqueue::Repeated(id) = self.enqueue(&planned, None, Some(keyed)).await? {
            drop((waiting, planned));
            return self.join(&tenant, id, attached).await;
        }
        let WaitingExecution {
            ticket,
            mut registration,
        } = waiting;
        let Attached { gone, watcher } = attached;
        planned.recorded = RecordedState::Queued;
        planned.follow(watcher);
        let slot = gone.run_until_cancelled(self.engine.admission.wait(ticket)).await;
        let slot = slot.unwrap_or_else(|| Err(Error::new(Code::Busy, "the caller left the queue")));
        let ran = match slot {
            Ok(slot) => Box::pin(self.execute(planned, slot, &mut registration, &gone)).await,
            Err(error) => Err(error),
        };
        let error = match ran {
            Ok(execution) => {
                registration.complete(&execution);
                return Ok(execution);
            }
            Err(error) => error,
        };
        match self.engine.store.delete_queued(&tenant, id).await {
            // It never ran: delete it, so that the request can be repeated.
            Ok(true) => {
                self.engine.publish_deletion(&tenant, id);
                Err(error)
            }
            // Cancelled while it waited, or ended. Maintenance closes a row that still says `running`.
            Ok(false) => match self.engine.executions().get(&tenant, id).await {
                Ok(execution) if execution.status.is_final() => {
                    registration.complete(&execution);
                    Ok(execution)
                }
                Ok(_) | Err(_) => Err(error),
            },
            Err(_) => {
                let (engine, outcome) = (self.engine.clone(), outcome::rejected(&error));
                self.engine
                    .tasks
                    .spawn(async move { engine.runs().end_queued(registration, outcome).await });
                Err(error)
            }
        }
    }

    /// The execution of the same request, if one was recorded under this key.
    pub(super) async fn find_repeated(
        self,
        tenant: &Tenant,
        key: Option<&KeyedRequest>,
    ) -> Result<Option<ExecutionId>, Error> {
        let Some(key) = key else { return Ok(None) };
        Ok(self.engine.store.execution_by_key(tenant, key.clone()).await?)
    }

    /// Waits for an execution that an earlier request started.
    pub(super) async fn join(
        self,
        tenant: &Tenant,
        id: ExecutionId,
        attached: Attached,
    ) -> Result<Execution, Error> {
        let Attached { gone, watcher } = attached;
        if let Some(watcher) = watcher
            && let Ok(subscription) = self
                .engine
                .executions()
                .follow(tenant, id, Bookmark::default())
                .await
        {
            let _ = watcher.send(subscription);
        }
        self.engine.executions().await_other(tenant, id, &gone).await
    }

    fn request_slot(self, tenant: &Tenant, id: ExecutionId, lane: Lane) -> Result<Ticket, Error> {
        self.engine.admission.request(Request {
            tenant: tenant.clone(),
            lane,
            execution: Some(id),
        })
    }

    /// Enters the queue, and registers the execution so that it can be watched and cancelled.
    fn enter_queue(self, tenant: &Tenant, id: ExecutionId, lane: Lane) -> Result<WaitingExecution, Error> {
        let ticket = self.request_slot(tenant, id, lane)?;
        let registration = self.engine.executions().register(tenant.clone(), id);
        registration.set_queued();
        Ok(WaitingExecution { ticket, registration })
    }

    async fn enqueue(
        self,
        planned: &PlannedRun,
        request: Option<Vec<u8>>,
        key: Option<KeyedRequest>,
    ) -> Result<Enqueue, Error> {
        let execution = planned.new_execution(self.engine, None);
        let queued = Queued {
            execution: NewExecution {
                kept_request: planned.kept_request.clone(),
                ..execution.clone()
            },
            request,
            key,
        };
        match self.engine.store.enqueue(queued).await {
            Ok(Enqueued::New) => {
                self.engine.publish_live(&execution, Status::Queued);
                Ok(Enqueue::Recorded(Box::new(Execution {
                    new: execution,
                    status: Status::Queued,
                    outcome: None,
                })))
            }
            Ok(Enqueued::Duplicate(id)) => Ok(Enqueue::Repeated(id)),
            Err(store::Error::Quota) => {
                let mebibytes = limits::QUEUED_BYTES_MAX / limits::MIB;
                let message = format!(
                    "queued requests of this tenant would exceed {mebibytes} MiB in total; send data as blobs, or try again when some have ended"
                );
                Err(Error::new(Code::RateLimited, message).with_retry_after(limits::QUEUE_RETRY_AFTER))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Runs a recorded execution in the background when it gets a slot.
    fn run_when_granted(self, waiting: WaitingExecution) {
        let engine = self.engine.clone();
        self.engine
            .tasks
            .spawn(async move { engine.runs().run_queued(waiting).await });
    }

    /// Runs a recorded execution when it gets a slot. After a temporary failure it waits again; any other failure is recorded as
    /// its outcome, unless the process shuts down.
    async fn run_queued(self, waiting: WaitingExecution) {
        let WaitingExecution {
            mut ticket,
            mut registration,
        } = waiting;
        let (tenant, id) = (registration.tenant().clone(), registration.id());
        let mut tries = 0;
        let error = loop {
            let ended = match ticket.slot().await {
                Some(slot) => Box::pin(self.execute_queued(slot, &mut registration).instrument(span())).await,
                // Cancelled, or the process shuts down: the next one finds it in the database.
                None => self.engine.executions().get(&tenant, id).await,
            };
            let error = match ended {
                Ok(execution) if execution.status.is_final() => return registration.complete(&execution),
                Ok(_) => return,
                Err(error) => error,
            };
            let can_retry = !registration.has_started() && !registration.cancel().is_cancelled();
            if tries == limits::QUEUED_RETRIES_MAX || !can_retry || !is_temporary(&error) {
                break error;
            }
            tracing::warn!(execution.id = %id, %error, "Execution {id} cannot start yet; queued again");
            let pause = limits::QUEUED_RETRY_AFTER * 2_u32.pow(tries);
            tries += 1;
            let cancel = registration.cancel();
            let _ = cancel.run_until_cancelled(tokio::time::sleep(pause)).await;
            // It was admitted before, so only a shutdown rejects it.
            let Ok(again) = self.request_slot(&tenant, id, Lane::Recovered) else {
                return;
            };
            ticket = again;
        };
        tracing::warn!(execution.id = %id, %error, source = ?std::error::Error::source(&error), "Execution {id} rejected when it got its slot");
        self.end_queued(registration, outcome::rejected(&error)).await;
    }

    /// Ends a queued execution that will never run. Retries until the process shuts down; the next process finds it otherwise.
    async fn end_queued(self, registration: Registration, outcome: Outcome) {
        let (tenant, id) = (registration.tenant().clone(), registration.id());
        let stopping = self.engine.running.stopping();
        while !stopping.is_cancelled() {
            let left = self.leave_queue(&tenant, id, outcome.clone()).await;
            let ended = match left {
                Ok(_) => self.engine.executions().get(&tenant, id).await,
                Err(error) => Err(error),
            };
            match ended {
                Ok(execution) if execution.status.is_final() => return registration.complete(&execution),
                // Maintenance closes a row that still says `running`.
                Ok(_) => return,
                Err(error) if error.code() == Code::NotFound => return,
                Err(error) => {
                    tracing::warn!(execution.id = %id, %error, "Outcome of execution {id} not recorded; trying again");
                }
            }
            let _ = stopping
                .run_until_cancelled(tokio::time::sleep(limits::QUEUED_RETRY_AFTER))
                .await;
        }
    }

    async fn execute_queued(self, slot: Slot, registration: &mut Registration) -> Result<Execution, Error> {
        let (tenant, id) = (registration.tenant().clone(), registration.id());
        let (tenant, execution) = (&tenant, self.engine.executions().get(&tenant, id).await?);
        if execution.status.is_final() {
            return Ok(execution);
        }
        let recorded = execution.new;
        let request = self.engine.store.queued_request(tenant, id).await?;
        let mut spec = RunSpec::from_stored(&request)?;
        // Recorded with the execution, and checked again before use.
        spec.callback_url = None;
        // The version that was current when the execution was recorded.
        if let (Some(skill), Some(version)) = (&mut spec.skill, &recorded.version) {
            skill.selector = Selector::Version(version.clone());
        }
        let mut planned = Box::pin(self.accept(tenant, spec.into())).await?;
        if Some(planned.digest) != recorded.digest {
            let message =
                "the skill's version was deleted and published again while this waited; run it again";
            return Err(Error::new(Code::Conflict, message));
        }
        planned.job.program.execution = id;
        planned.job.urgency = Urgency::Deferred;
        planned.accepted_at = recorded.created_at;
        planned.callback_url = recorded.callback_url;
        planned.key = recorded.key;
        planned.recorded = RecordedState::Queued;
        planned.record_span();
        let cancel = registration.cancel();
        Box::pin(self.execute(planned, slot, registration, &cancel)).await
    }

    /// Takes over the queues of dead processes, in order.
    pub async fn recover_queue(self) -> Result<(), Error> {
        let owners = self.engine.store.queue_owners().await?;
        for owner in owners
            .into_iter()
            .filter(|owner| !self.engine.instance.is_alive(*owner))
        {
            let recovery = QueueRecovery {
                dead: owner,
                new_owner: self.engine.instance.id(),
                at: clock::now(),
            };
            let recovered = self.engine.store.recover_queue(recovery).await?;
            if !recovered.is_empty() {
                tracing::info!(
                    "Recovered {} queued executions of an earlier process",
                    recovered.len()
                );
            }
            for (tenant, execution) in recovered {
                self.run_when_granted(self.enter_queue(&tenant, execution, Lane::Recovered)?);
            }
        }
        Ok(())
    }

    pub(super) async fn leave_queue(
        self,
        tenant: &Tenant,
        id: ExecutionId,
        outcome: Outcome,
    ) -> Result<bool, Error> {
        let waited = self.engine.executions().get(tenant, id).await?.new;
        let left = self
            .engine
            .store
            .finish_queued(tenant, id, outcome.clone())
            .await?;
        if left {
            self.engine.count_end(&waited, &outcome);
            self.engine.publish_end(&waited, &outcome);
            self.engine.webhooks().notify_sender(&waited);
        }
        Ok(left)
    }

    /// The position of a queued execution; `None` if it does not wait in this process.
    #[must_use]
    pub fn queue_place(self, execution: &Execution) -> Option<QueuePlace> {
        let new = &execution.new;
        let is_queued = execution.status == Status::Queued;
        let place = is_queued.then(|| self.engine.admission.position(&new.tenant, new.id))??;
        let waited = clock::since(new.created_at).as_millis();
        Some(QueuePlace {
            position: place.position,
            waiting: place.waiting,
            waited_ms: u64::try_from(waited).unwrap_or(u64::MAX),
        })
    }
}

/// Whether a retry may succeed: an engine that restarts, a locked database.
fn is_temporary(error: &Error) -> bool {
    matches!(
        error.code(),
        Code::SandboxUnavailable | Code::Busy | Code::Internal
    )
}

pub(super) fn keyed(key: IdempotencyKey, request: &[u8]) -> KeyedRequest {
    KeyedRequest {
        key,
        fingerprint: Digest::of(request),
        since: oldest_key(),
    }
}

/// Keys that were recorded before this have expired.
pub(super) fn oldest_key() -> jiff::Timestamp {
    let life = jiff::SignedDuration::try_from(limits::IDEMPOTENCY_KEY_LIFE).unwrap_or_default();
    clock::now().checked_sub(life).unwrap_or(jiff::Timestamp::MIN)
}

/// A recorded execution that waits for a slot.
struct WaitingExecution {
    ticket: Ticket,
    registration: Registration,
}

enum Enqueue {
    Recorded(Box<Execution>),
    /// An earlier identical request recorded this one.
    Repeated(ExecutionId),
}
