//! One execution from request to record. Once recorded it always ends in exactly one final state.

use std::time::Instant;

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;
use tracing::field::{Empty, display};

use crate::auth::{Caller, Scope};
use crate::blob;
use crate::bundle::artifacts::ArtifactTar;
use crate::engine::admission::Slot;
use crate::engine::blobs::with_blobs;
use crate::engine::deps::Waiting;
use crate::engine::outcome::{failed, from_report, without_artifacts};
use crate::engine::plan::Plan;
use crate::engine::resolve::Found;
use crate::engine::running::Registration;
use crate::engine::secrets::masked;
use crate::engine::subscription::Subscription;
use crate::engine::{
    Engine, Manner, OnDisconnect, RunRequest, clock, failure, metrics, queue, queued_request, require,
};
use crate::error::{Code, Error};
use crate::execution::{ChosenBackend, Execution, FileEntry, NewExecution, Outcome, Timings, milliseconds};
use crate::ids::{ExecutionId, Tenant};
use crate::limits;
use crate::sandbox::{BackendChoice, Job, ProgressSender, Run};
use crate::store::{self, Store};
use crate::telemetry::field;
use crate::webhook::CallbackUrl;

/// What may run when its turn comes.
pub(super) struct Accepted {
    pub(super) tenant: Tenant,
    pub(super) found: Found,
    pub(super) requirements: Vec<String>,
    pub(super) progress: Option<ProgressSender>,
    pub(super) accepted_at: jiff::Timestamp,
    /// Where its end is told.
    pub(super) callback_url: Option<CallbackUrl>,
}

impl Accepted {
    /// The execution that it will be.
    pub(super) fn id(&self) -> ExecutionId {
        self.found.plan.job.execution
    }

    /// Names it in all that is logged from here on.
    pub(super) fn name_span(&self) {
        let span = tracing::Span::current();
        span.record(field::EXECUTION_ID, display(self.id()));
        span.record(field::SKILL, self.found.name.as_ref().map(display));
    }
}

/// The turn of one execution.
pub(super) struct Turn {
    pub(super) slot: Slot,
    /// What is recorded of it before.
    pub(super) standing: Standing,
    pub(super) on_disconnect: OnDisconnect,
    /// Gets what follows it once it is recorded as running.
    pub(super) watcher: Watcher,
}

/// What is logged within it belongs to one execution.
pub(super) fn span() -> tracing::Span {
    tracing::info_span!(
        "execution",
        { field::EXECUTION_ID } = Empty,
        { field::SKILL } = Empty
    )
}

/// Who wants to hear what an execution tells.
pub(super) type Watcher = oneshot::Sender<Subscription>;

/// What is recorded of an execution before its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Nothing.
    New,
    /// That it waits.
    Queued,
}

impl Standing {
    /// Records that it runs, and calls `recorded` then; `false` if it has left the queue.
    async fn begin(
        self,
        store: &Store,
        new: NewExecution,
        recorded: impl FnOnce() + Send,
    ) -> Result<bool, store::Error> {
        match self {
            Self::New => store.begin_telling(new, recorded).await.map(|()| true),
            // It must not be taken for one that waits, and run again, after whatever happens.
            Self::Queued => {
                let started = store.start(new).await?;
                if started {
                    recorded();
                }
                Ok(started)
            }
        }
    }
}

impl Engine {
    /// Runs a skill to its end, even when the caller goes away; one that goes before its turn leaves the queue. A failing
    /// skill is no error: its execution says so.
    pub async fn run(&self, caller: &Caller, request: RunRequest) -> Result<Execution, Error> {
        self.run_as(caller, request, Manner::default()).await
    }

    /// The same, and the caller says under which key it is asked for and what becomes of it when the caller goes away.
    pub async fn run_as(
        &self,
        caller: &Caller,
        request: RunRequest,
        manner: Manner,
    ) -> Result<Execution, Error> {
        let (nobody, _) = oneshot::channel();
        self.run_watched(caller, (request, manner), nobody).await
    }

    /// As [`run_as`](Self::run_as); `watcher` gets what follows the execution once it is recorded, and nothing if it never is.
    pub async fn run_watched(
        &self,
        caller: &Caller,
        asked: (RunRequest, Manner),
        watcher: oneshot::Sender<Subscription>,
    ) -> Result<Execution, Error> {
        let (engine, caller) = (self.clone(), caller.clone());
        let gone = CancellationToken::new();
        let _goes_with_the_caller = gone.clone().drop_guard();
        // Boxed, for it is large, and would be copied on the stack of whoever asks.
        let run = async move { Box::pin(engine.run_attached(&caller, asked, (&gone, watcher))).await };
        self.to_the_end(run.instrument(span())).await
    }

    async fn run_attached(
        &self,
        caller: &Caller,
        (request, manner): (RunRequest, Manner),
        (gone, watcher): (&CancellationToken, Watcher),
    ) -> Result<Execution, Error> {
        self.0.rate.take(caller.tenant(), Instant::now())?;
        let keyed = match manner.key {
            Some(key) => Some(queue::keyed(
                key,
                &queued_request::write(&request.what, &request.ask)?,
            )),
            None => None,
        };
        if let Some(id) = self.asked_before(caller, keyed.as_ref()).await? {
            return self.join(caller.tenant(), id, (gone, watcher)).await;
        }
        // Boxed like the whole, each part for itself: they follow one another.
        let accepted = Box::pin(self.accept(caller, request)).await?;
        accepted.name_span();
        if let Some(keyed) = keyed {
            let manner = (manner.on_disconnect, watcher);
            return Box::pin(self.run_once((accepted, keyed), manner, gone)).await;
        }
        let slot = self.0.admission.admit_unless_gone(&accepted.tenant, gone).await?;
        let turn = Turn {
            slot,
            standing: Standing::New,
            on_disconnect: manner.on_disconnect,
            watcher,
        };
        // Before the row: one that is there always has somebody who ends it.
        let mut registration = self.0.running.register(accepted.tenant.clone(), accepted.id());
        let execution = Box::pin(self.execute(accepted, turn, (&mut registration, gone))).await?;
        // It leaves only now: whoever waits for its end finds it recorded.
        registration.complete(&execution);
        Ok(execution)
    }

    /// Checks and plans what is asked for. Nothing is recorded yet: every refusal is the caller's.
    pub(super) async fn accept(&self, caller: &Caller, request: RunRequest) -> Result<Accepted, Error> {
        require(caller, &[Scope::Run])?;
        let RunRequest {
            what,
            mut ask,
            progress,
        } = request;
        ask.check()?;
        self.check_storage(caller.tenant(), 0).await?;
        let callback_url = self.accept_callback(ask.callback_url.as_deref())?;
        let asked_blobs = std::mem::take(&mut ask.blobs);
        let mut found = self.find(caller, what, &ask).await?;
        let job = &mut found.plan.job;
        self.grant(caller.tenant(), job, &found.permissions).await?;
        self.lend_blobs(caller.tenant(), job, asked_blobs).await?;
        Ok(Accepted {
            tenant: caller.tenant().clone(),
            found,
            requirements: ask.requirements,
            progress,
            accepted_at: clock::now(),
            callback_url,
        })
    }

    /// Runs what was accepted and has its turn, and records how it ended.
    pub(super) async fn execute(
        &self,
        accepted: Accepted,
        turn: Turn,
        (registration, gone): (&mut Registration, &CancellationToken),
    ) -> Result<Execution, Error> {
        let Accepted {
            tenant,
            mut found,
            requirements,
            progress,
            accepted_at,
            callback_url,
        } = accepted;
        let Turn {
            slot: _until_the_end,
            standing,
            on_disconnect,
            watcher,
        } = turn;
        let queue_ms = milliseconds(clock::since(accepted_at));
        // In its turn: a check may take as long as a short program.
        found.plan.schemas.check_input(&found.plan.job.input).await?;
        let choice = self.prepare(&found.plan.job, progress.as_ref()).await?;
        let waiting = Waiting {
            progress: progress.as_ref(),
            gone,
        };
        let planned = (&mut found.plan, &choice);
        self.add_packages(&tenant, planned, &requirements, waiting)
            .await?;
        let Plan { job, schemas, .. } = &found.plan;
        let new = NewExecution {
            callback_url,
            ..self.new_execution((&tenant, accepted_at), &found, Some(&choice))
        };
        registration.set_running();
        let registration = &*registration;
        // The sandbox is made meanwhile; the program waits for the row.
        let (word, go) = oneshot::channel();
        let begin = async {
            let go = || {
                // Who waits for it may have failed by now, and says so itself.
                let _ = word.send(());
            };
            let begun = standing.begin(&self.0.store, new.clone(), go).await?;
            if begun && !watcher.is_closed() {
                let _ = watcher.send(self.subscribe_to(registration));
            }
            Ok(begun)
        };
        // Boxed: what makes and watches a sandbox is the largest part of all.
        let perform = Box::pin(self.perform(&tenant, (job, &choice), (registration, go)));
        let both = async { tokio::join!(begin, perform) };
        let cancel = registration.cancel();
        let (begun, (outcome, fault)) = tokio::select! {
            done = both => done,
            never = on_disconnect.follow(gone, &cancel) => match never {},
        };
        if !begun.map_err(|error| failure::of_store(error, "execution"))? {
            // Cancelled just before its turn came.
            return self.find_execution(&tenant, new.id).await;
        }
        self.count_failure(fault);
        let outcome = schemas.check_output(outcome).await;
        let timings = Timings {
            queue_ms,
            ..outcome.timings
        };
        let outcome = masked(Outcome { timings, ..outcome }, &job.mask).await?;
        self.record(new, outcome).await
    }

    /// Makes ready what may take long; ends when the process does.
    pub(super) async fn prepare(
        &self,
        job: &Job,
        progress: Option<&ProgressSender>,
    ) -> Result<BackendChoice, Error> {
        let prepared = self.0.sandbox.prepare(job, progress);
        match self.0.running.stopping().run_until_cancelled(prepared).await {
            Some(prepared) => prepared.map_err(failure::of_sandbox),
            None => Err(Error::new(Code::Busy, "the server is shutting down")),
        }
    }

    pub(super) fn new_execution(
        &self,
        (tenant, created_at): (&Tenant, jiff::Timestamp),
        found: &Found,
        choice: Option<&BackendChoice>,
    ) -> NewExecution {
        let job = &found.plan.job;
        NewExecution {
            id: job.execution,
            tenant: tenant.clone(),
            skill: found.name.clone(),
            version: found.version.clone(),
            digest: Some(found.digest),
            language: found.plan.language,
            image: job.image.to_string(),
            backend: choice.map(|choice| ChosenBackend {
                name: choice.kind.as_str().to_owned(),
                reason: choice.reason.clone(),
                degraded: choice.degraded.iter().map(ToString::to_string).collect(),
            }),
            limits: job.limits,
            instance: self.0.instance.id(),
            created_at,
            callback_url: None,
        }
    }

    /// Runs the job and stores its artifacts. Whatever goes wrong becomes an outcome; what the sandbox failed at comes with it.
    async fn perform(
        &self,
        tenant: &Tenant,
        (job, choice): (&Job, &BackendChoice),
        (registration, go): (&Registration, oneshot::Receiver<()>),
    ) -> (Outcome, Option<&'static str>) {
        let tar = || ArtifactTar::create_in(&self.0.settings.tmp_dir);
        let (mut artifacts, mut blobs) = (tar(), tar());
        let run = Run {
            artifacts: &mut artifacts,
            blobs: &mut blobs,
            cancel: registration.cancel(),
            go,
            transcript: registration.transcript(),
        };
        let report = self.0.sandbox.run(choice, job, run).await;
        let fault = metrics::fault_of(report.as_ref().map_err(drop));
        let report = match report {
            Ok(report) => report,
            Err(error) => {
                tracing::error!(execution.id = %job.execution, ?error, "Execution {} got no sandbox", job.execution);
                return (failed(&failure::of_sandbox(error)), fault);
            }
        };
        let shutting_down = self.0.running.is_stopping();
        let stored = self
            .store_artifacts(tenant, job.execution, artifacts, &report.files)
            .await;
        let (kept, not_kept) = self.take_blobs(tenant, blobs, &report.blobs).await;
        let outcome = with_blobs(from_report(report, job, shutting_down), kept, not_kept);
        let outcome = match stored {
            Ok(()) => outcome,
            Err(error) => {
                tracing::error!(execution.id = %job.execution, ?error, "Artifacts of execution {} were not stored", job.execution);
                without_artifacts(outcome, &error)
            }
        };
        (outcome, fault)
    }

    async fn store_artifacts(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
        tar: ArtifactTar,
        files: &[FileEntry],
    ) -> Result<(), Error> {
        if files.is_empty() {
            return Ok(());
        }
        let (file, _) = tar.finish().map_err(failure::of_io)?;
        let key = blob::Key::Artifacts {
            tenant: tenant.clone(),
            execution,
        };
        self.0
            .blob
            .put(&key, file)
            .await
            .map(drop)
            .map_err(|error| failure::of_blob(error, "artifacts"))
    }

    /// Records the end. If somebody else ended it meanwhile, theirs counts and ours is not told.
    async fn record(&self, new: NewExecution, outcome: Outcome) -> Result<Execution, Error> {
        let id = new.id;
        let ours = self.finish(&new, &outcome).await;
        if !ours.map_err(|error| failure::of_store(error, "execution"))? {
            let recorded = self.0.store.execution(&new.tenant, id).await;
            return recorded.map_err(|error| failure::of_store(error, "execution"));
        }
        self.count_end(&new, &outcome);
        self.webhook_is_due(&new);
        tracing::info!(execution.id = %id, status = outcome.status.as_str(), "Finished execution {id}");
        Ok(Execution {
            status: outcome.status,
            new,
            outcome: Some(outcome),
        })
    }

    /// Tries for long: what is not recorded is lost, and the program would have to run again (F-13).
    async fn finish(&self, new: &NewExecution, outcome: &Outcome) -> Result<bool, store::Error> {
        let give_up = Instant::now() + limits::RECORD_MAX;
        loop {
            match self.0.store.finish(&new.tenant, new.id, outcome.clone()).await {
                Err(store::Error::Busy) if Instant::now() < give_up => {
                    tracing::warn!(execution.id = %new.id, "The database is busy; trying again to record execution {}", new.id);
                    tokio::time::sleep(limits::RECORD_AGAIN_AFTER).await;
                }
                done => return done,
            }
        }
    }
}
