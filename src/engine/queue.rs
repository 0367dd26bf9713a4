//! Executions that nobody waits for, and requests that are sent again: recorded before their turn comes.

use tokio_util::sync::CancellationToken;

use crate::auth::Caller;
use crate::engine::admission::{Comer, Entered, Lane, Slot};
use crate::engine::run::{Accepted, Standing, Turn};
use crate::engine::{Engine, Manner, OnDisconnect, RunRequest, What, clock, ended, failure, stored};
use crate::error::{Code, Error};
use crate::execution::{Execution, QueuePlace, Status};
use crate::ids::{Digest, ExecutionId, IdempotencyKey, Tenant};
use crate::limits;
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
        let (engine, caller) = (self.clone(), caller.clone());
        self.to_the_end(async move { Box::pin(engine.submit_attached(&caller, request, manner)).await })
            .await
    }

    async fn submit_attached(
        &self,
        caller: &Caller,
        request: RunRequest,
        manner: Manner,
    ) -> Result<Execution, Error> {
        self.0.rate.take(caller.tenant(), std::time::Instant::now())?;
        let kept = stored::write(&request.what, &request.ask)?;
        let accepted = self.accept(caller, request).await?;
        let key = manner.key.map(|key| self.keyed(key, &kept));
        let entered = self.enter(&accepted, Lane::Queued)?;
        let execution = match self.enqueue(&accepted, (Some(kept), key)).await? {
            Recorded::Now(execution) => execution,
            Recorded::Before(id) => return self.find_execution(&accepted.tenant, id).await,
        };
        let (engine, id) = (self.clone(), execution.new.id);
        let tenant = accepted.tenant;
        self.0
            .tasks
            .spawn(async move { engine.run_queued(&tenant, id, entered).await });
        Ok(execution)
    }

    /// Runs what is asked for, unless the same was asked for before: then that is waited for.
    pub(super) async fn run_once(
        &self,
        (accepted, keyed): (Accepted, KeyedRequest),
        (on_disconnect, gone): (OnDisconnect, &CancellationToken),
    ) -> Result<Execution, Error> {
        let entered = self.enter(&accepted, Lane::Caller)?;
        let (tenant, id) = (accepted.tenant.clone(), accepted.found.plan.job.execution);
        if let Recorded::Before(id) = self.enqueue(&accepted, (None, Some(keyed))).await? {
            drop((entered, accepted));
            return self.follow(&tenant, id, gone).await;
        }
        let turn = gone.run_until_cancelled(self.0.admission.wait(entered)).await;
        let turn = turn.unwrap_or_else(|| Err(Error::new(Code::Busy, "the caller left the queue")));
        let ran = match turn {
            Ok(slot) => {
                let turn = Turn {
                    _slot: slot,
                    standing: Standing::Queued,
                    on_disconnect,
                };
                self.execute(accepted, turn, gone).await
            }
            Err(error) => Err(error),
        };
        match ran {
            Ok(execution) => Ok(execution),
            // It never ran: as if it had not been asked for, so that asking again is no repetition.
            Err(error) => match self.0.store.withdraw(&tenant, id).await {
                Ok(true) => {
                    self.0.ends.has_come(id);
                    Err(error)
                }
                // Cancelled while it waited, or recorded as it ended.
                Ok(false) => self.find_execution(&tenant, id).await.map_err(|_| error),
                Err(_) => Err(error),
            },
        }
    }

    fn enter(&self, accepted: &Accepted, lane: Lane) -> Result<Entered, Error> {
        self.0.admission.enter(Comer {
            tenant: accepted.tenant.clone(),
            lane,
            execution: Some(accepted.found.plan.job.execution),
        })
    }

    async fn enqueue(
        &self,
        accepted: &Accepted,
        (request, key): (Option<Vec<u8>>, Option<KeyedRequest>),
    ) -> Result<Recorded, Error> {
        let execution = self.new_execution((&accepted.tenant, accepted.accepted_at), &accepted.found, None);
        let queued = Queued {
            execution: execution.clone(),
            request,
            key,
        };
        match self.0.store.enqueue(queued).await {
            Ok(Enqueued::New) => Ok(Recorded::Now(Execution {
                new: execution,
                status: Status::Queued,
                outcome: None,
            })),
            Ok(Enqueued::Known(id)) => Ok(Recorded::Before(id)),
            Err(store::Error::Conflict(store::Conflict::OtherRequest)) => Err(Error::new(
                Code::KeyReused,
                "Idempotency-Key: was sent with another request before; use a new key for each request",
            )),
            Err(store::Error::Quota) => {
                let mebibytes = limits::QUEUED_BYTES_MAX / limits::MIB;
                let message = format!(
                    "requests of yours that wait would have more than {mebibytes} MiB together; send data as blobs, or try again when some have ended"
                );
                Err(Error::new(Code::RateLimited, message).with_retry_after(limits::QUEUE_RETRY_AFTER))
            }
            Err(error) => Err(failure::of_store(error, "execution")),
        }
    }

    /// A key and what it stands for.
    pub(super) fn keyed(&self, key: IdempotencyKey, request: &[u8]) -> KeyedRequest {
        let life = jiff::SignedDuration::try_from(limits::IDEMPOTENCY_KEY_LIFE).unwrap_or_default();
        KeyedRequest {
            key,
            fingerprint: Digest::of(request),
            since: clock::now().checked_sub(life).unwrap_or(jiff::Timestamp::MIN),
        }
    }

    /// Runs a recorded execution when its turn comes. Whatever goes wrong is recorded as its end.
    async fn run_queued(&self, tenant: &Tenant, id: ExecutionId, entered: Entered) {
        let Some(slot) = entered.turn().await else {
            // Cancelled, or the process ends: the next one finds it in the database.
            return;
        };
        if let Err(error) = Box::pin(self.execute_queued(tenant, id, slot)).await {
            tracing::warn!(execution.id = %id, %error, source = ?std::error::Error::source(&error), "Execution {id} was not let in");
            let left = self.0.store.leave_queue(tenant, id, ended::denied(&error)).await;
            if let Err(error) = left {
                tracing::error!(execution.id = %id, ?error, "The end of execution {id} was not recorded; it is tried again at the next start");
            }
            self.0.ends.has_come(id);
        }
    }

    async fn execute_queued(&self, tenant: &Tenant, id: ExecutionId, slot: Slot) -> Result<(), Error> {
        let recorded = self.find_execution(tenant, id).await?.new;
        let request = self.0.store.queued_request(tenant, id).await;
        let (what, ask) = match request {
            Ok(request) => stored::read(&request)?,
            // Cancelled a moment ago.
            Err(store::Error::NotFound) => return Ok(()),
            Err(error) => return Err(failure::of_store(error, "execution")),
        };
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
        let mut accepted = self.accept(&caller, request).await?;
        if Some(accepted.found.digest) != recorded.digest {
            let message =
                "the skill's version was deleted and published anew while this waited; run it again";
            return Err(Error::new(Code::Conflict, message));
        }
        accepted.found.plan.job.execution = id;
        accepted.accepted_at = recorded.created_at;
        let turn = Turn {
            _slot: slot,
            standing: Standing::Queued,
            on_disconnect: OnDisconnect::Continue,
        };
        self.execute(accepted, turn, &CancellationToken::new())
            .await
            .map(drop)
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
                let entered = self.0.admission.enter(Comer {
                    tenant: tenant.clone(),
                    lane: Lane::Adopted,
                    execution: Some(execution),
                })?;
                let engine = self.clone();
                self.0
                    .tasks
                    .spawn(async move { engine.run_queued(&tenant, execution, entered).await });
            }
        }
        Ok(())
    }

    /// Ends an execution that waits; `false` if it has started or ended.
    pub(super) async fn cancel_queued(&self, tenant: &Tenant, id: ExecutionId) -> Result<bool, Error> {
        let left = self.0.store.leave_queue(tenant, id, ended::cancelled()).await;
        let left = left.map_err(|error| failure::of_store(error, "execution"))?;
        if left {
            self.0.admission.send_away(tenant, id);
            self.0.ends.has_come(id);
        }
        Ok(left)
    }

    /// Where a queued execution stands; `None` for one that does not wait in this process.
    #[must_use]
    pub fn queue_place(&self, execution: &Execution) -> Option<QueuePlace> {
        let new = &execution.new;
        let is_queued = execution.status == Status::Queued;
        let place = is_queued.then(|| self.0.admission.place(&new.tenant, new.id))??;
        let waited = clock::since(new.created_at).as_millis();
        Some(QueuePlace {
            position: place.position,
            waiting: place.waiting,
            waited_ms: u64::try_from(waited).unwrap_or(u64::MAX),
        })
    }

    /// How much is going on.
    #[must_use]
    pub fn load(&self) -> Load {
        Load {
            running: self.0.admission.running(),
            waiting: self.0.admission.waiting(),
        }
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
        let life = jiff::SignedDuration::try_from(limits::IDEMPOTENCY_KEY_LIFE).unwrap_or_default();
        let before = clock::now().checked_sub(life).unwrap_or(jiff::Timestamp::MIN);
        let forgotten = self.0.store.forget_idempotency_keys(before).await;
        forgotten.map_err(|error| failure::of_store(error, "keys of requests"))
    }
}

/// How much is going on in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Slots that are taken.
    pub running: usize,
    /// Callers and executions that wait for one.
    pub waiting: usize,
}

/// An execution that is recorded.
enum Recorded {
    Now(Execution),
    /// By an earlier request that was the same.
    Before(ExecutionId),
}
