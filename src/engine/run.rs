//! One execution from request to record. A recorded execution always ends in exactly one final state.

use std::time::Instant;

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;
use tracing::field::{Empty, display};

use crate::blob;
use crate::bundle::artifacts::ArtifactTar;
use crate::engine::admission::Slot;
use crate::engine::blobs::with_blobs;
use crate::engine::deps::{self, InstallWaiter};
use crate::engine::outcome::{failed, from_report, name_cuts, without_artifacts};
use crate::engine::plan::PlannedRun;
use crate::engine::request::RequestDraft;
use crate::engine::running::Registration;
use crate::engine::secrets::masked;
use crate::engine::subscription::Subscription;
use crate::engine::{Engine, RunOptions, RunRequest, Runs, clock, failure, metrics, queue};
use crate::error::{Code, Error};
use crate::execution::{
    ChosenBackend, Execution, FileEntry, NewExecution, Outcome, Status, Timings, milliseconds,
};
use crate::ids::{ExecutionId, Tenant};
use crate::limits;
use crate::sandbox::{BackendChoice, Job, ProgressSender, RunContext};
use crate::store::{self, Store};
use crate::telemetry::field;

/// The span of one execution.
pub(super) fn span() -> tracing::Span {
    tracing::info_span!(
        "execution",
        { field::EXECUTION_ID } = Empty,
        { field::SKILL } = Empty
    )
}

/// Receives a subscription once the execution is recorded.
pub(super) type Watcher = oneshot::Sender<Subscription>;

/// How an execution is recorded before it gets a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordedState {
    Nothing,
    Queued,
}

impl RecordedState {
    /// Records the execution as running and then calls `on_visible`; `false` if it has left the queue.
    async fn set_running(
        self,
        store: &Store,
        new: NewExecution,
        on_visible: impl FnOnce() + Send,
    ) -> Result<bool, store::Error> {
        match self {
            Self::Nothing => store.insert_running(new, on_visible).await.map(|()| true),
            // Only after the row has changed: a row that still says `queued` would run again after a crash.
            Self::Queued => {
                let started = store.start_queued(new).await?;
                if started {
                    on_visible();
                }
                Ok(started)
            }
        }
    }
}

impl PlannedRun {
    /// Adds the ids to the current span.
    pub(super) fn record_span(&self) {
        let span = tracing::Span::current();
        span.record(field::EXECUTION_ID, display(self.id()));
        span.record(field::SKILL, self.name.as_ref().map(display));
    }

    pub(super) fn new_execution(&self, engine: &Engine, backend: Option<&BackendChoice>) -> NewExecution {
        NewExecution {
            id: self.job.program.execution,
            tenant: self.tenant.clone(),
            skill: self.name.clone(),
            version: self.version.clone(),
            digest: Some(self.digest),
            language: self.language,
            image: self.job.sandbox.image.to_string(),
            backend: backend.map(|choice| ChosenBackend {
                name: choice.kind.as_str().to_owned(),
                reason: choice.reason.clone(),
                degraded: choice.degraded.iter().map(ToString::to_string).collect(),
            }),
            limits: self.job.sandbox.limits,
            asked: self.asked,
            instance: engine.instance(),
            created_at: self.accepted_at,
            workdir: Some(self.workdir),
            requirements: Some(self.all_requirements()),
            key: self.key.clone(),
            callback_url: self.callback_url.clone(),
            kept_request: None,
        }
    }
}

impl Runs<'_> {
    /// Runs a request to its end even if the caller disconnects; one that disconnects while it waits leaves the queue. A
    /// failing skill is not an error but an outcome.
    pub async fn run(self, tenant: &Tenant, request: impl Into<RunRequest>) -> Result<Execution, Error> {
        self.run_watched(tenant, request.into(), RunOptions::default(), None)
            .await
    }

    /// As [`run`](Self::run); `watcher` receives a subscription once the execution is recorded.
    pub async fn run_watched(
        self,
        tenant: &Tenant,
        request: RunRequest,
        options: RunOptions,
        watcher: Option<oneshot::Sender<Subscription>>,
    ) -> Result<Execution, Error> {
        let (engine, tenant) = (self.engine.clone(), tenant.clone());
        let gone = CancellationToken::new();
        let _cancelled_with_caller = gone.clone().drop_guard();
        // Boxed: the future is large and would be copied on the caller's stack.
        let run = async move {
            Box::pin(
                engine
                    .runs()
                    .run_attached(&tenant, request, options, Attached { gone, watcher }),
            )
            .await
        };
        self.engine.run_detached(run.instrument(span())).await
    }

    async fn run_attached(
        self,
        tenant: &Tenant,
        request: RunRequest,
        options: RunOptions,
        attached: Attached,
    ) -> Result<Execution, Error> {
        self.engine.rate.take(tenant, Instant::now())?;
        let keyed = match options.idempotency_key {
            Some(key) => Some(queue::keyed(key, &request.to_stored()?)),
            None => None,
        };
        if let Some(id) = self.find_repeated(tenant, keyed.as_ref()).await? {
            return self.join(tenant, id, attached).await;
        }
        let draft = RequestDraft::of(&request, self.engine.settings.keep_request);
        // Each part is boxed on its own, because they run one after the other.
        let mut planned = Box::pin(self.accept(tenant, request)).await?;
        self.keep_request(draft, &mut planned).await?;
        planned.on_disconnect = options.on_disconnect;
        planned.key = options.key;
        planned.record_span();
        if let Some(keyed) = keyed {
            return Box::pin(self.run_once(planned, keyed, attached)).await;
        }
        let Attached { gone, watcher } = attached;
        planned.follow(watcher);
        let slot = self
            .engine
            .admission
            .admit_unless_gone(&planned.tenant, &gone)
            .await?;
        // Register before the insert, so that every `running` row has an owner.
        let mut registration = self
            .engine
            .executions()
            .register(planned.tenant.clone(), planned.id());
        let execution = Box::pin(self.execute(planned, slot, &mut registration, &gone)).await?;
        // Only now, so that every waiter finds the recorded outcome.
        registration.complete(&execution);
        Ok(execution)
    }

    /// Checks and plans a request. Nothing is recorded yet, so every rejection is an error to the caller.
    pub(super) async fn accept(self, tenant: &Tenant, request: RunRequest) -> Result<PlannedRun, Error> {
        let RunRequest {
            mut spec,
            archive,
            blob_contents,
            progress,
        } = request;
        spec.check()?;
        if !self.engine.settings.deps.requests && !spec.requirements.is_empty() {
            return Err(deps::packages_forbidden());
        }
        self.engine.check_storage(tenant, 0).await?;
        let callback_url = self
            .engine
            .webhooks()
            .parse_callback(spec.callback_url.as_deref())?;
        let mut planned = self.resolve(tenant, archive, &mut spec).await?;
        let secrets = std::mem::take(&mut planned.secrets);
        self.engine
            .secrets()
            .grant(tenant, &mut planned.job, &secrets)
            .await?;
        self.engine
            .blobs()
            .add_inputs(tenant, &mut planned.job, &spec.blobs, blob_contents)
            .await?;
        Ok(PlannedRun {
            requirements: spec.requirements,
            progress,
            accepted_at: clock::now(),
            callback_url,
            ..planned
        })
    }

    /// Runs an accepted execution in its slot and records the outcome.
    pub(super) async fn execute(
        self,
        mut planned: PlannedRun,
        _slot: Slot,
        registration: &mut Registration,
        gone: &CancellationToken,
    ) -> Result<Execution, Error> {
        let queue_ms = milliseconds(clock::since(planned.accepted_at));
        // In the slot, since validation may take as long as a short program.
        planned.schemas.check_input(&planned.job.program.input).await?;
        let progress = planned.progress.take();
        let choice = self.prepare(&planned.job, progress.as_ref()).await?;
        let waiting = InstallWaiter {
            progress: progress.as_ref(),
            gone,
        };
        self.engine.packages().add(&mut planned, &choice, waiting).await?;
        let watcher = planned.watcher.take().filter(|watcher| !watcher.is_closed());
        // Nobody knows of it yet: neither a stream of events nor an idempotency key.
        let is_unknown = watcher.is_none() && planned.recorded == RecordedState::Nothing;
        let kept_request = planned.kept_request.take();
        let planned = planned;
        let new = planned.new_execution(self.engine, Some(&choice));
        registration.set_running();
        let registration = &*registration;
        // The sandbox is prepared meanwhile; its program waits for the row.
        let (start_signal, start) = oneshot::channel();
        let record_running = async {
            let on_visible = || {
                // A failed receiver reports its error itself.
                let _ = start_signal.send(());
            };
            let recorded = planned.recorded;
            let inserted = NewExecution {
                kept_request,
                ..new.clone()
            };
            let is_running = recorded
                .set_running(&self.engine.store, inserted, on_visible)
                .await?;
            if is_running {
                self.engine.publish_live(&new, Status::Running);
            }
            if is_running && let Some(watcher) = watcher {
                let _ = watcher.send(self.engine.executions().follow_here(registration));
            }
            Ok::<_, Error>(is_running)
        };
        // Boxed: making and watching a sandbox is the largest part of the future.
        let run = Box::pin(self.run_in_sandbox(&planned, &choice, registration, start));
        let both = async { tokio::join!(record_running, run) };
        let cancel = registration.cancel();
        let (is_running, (outcome, fault)) = tokio::select! {
            done = both => done,
            never = planned.on_disconnect.watch(gone, &cancel) => match never {},
        };
        if !is_running? {
            // Cancelled just before it got its slot.
            return self.engine.executions().get(&planned.tenant, new.id).await;
        }
        self.engine.count_failure(fault);
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(error) if is_unknown && self.engine.store.withdraw(&new.tenant, new.id).await? => {
                self.engine.publish_deletion(&new.tenant, new.id);
                return Err(error);
            }
            Err(error) => failed(&error),
        };
        let outcome = planned.schemas.check_output(outcome).await;
        let timings = Timings {
            queue_ms,
            ..outcome.timings
        };
        let outcome = name_cuts(Outcome { timings, ..outcome }, &new);
        let mut outcome = masked(outcome, &planned.job.program.mask).await?;
        let transcript = registration.transcript();
        outcome.logs.arrivals = transcript.arrivals(&outcome.logs, outcome.finished_at);
        self.record(new, outcome).await
    }

    pub(super) async fn prepare(
        self,
        job: &Job,
        progress: Option<&ProgressSender>,
    ) -> Result<BackendChoice, Error> {
        let prepared = self.engine.sandbox.prepare(job, progress);
        match self.engine.running.stopping().run_until_cancelled(prepared).await {
            Some(prepared) => prepared.map_err(failure::of_sandbox),
            None => Err(Error::new(Code::Busy, "the server is shutting down")),
        }
    }

    /// Runs the job and stores its artifacts. Failures become outcomes, except that of a sandbox whose program never
    /// started; a sandbox failure to count is returned, too.
    async fn run_in_sandbox(
        self,
        planned: &PlannedRun,
        choice: &BackendChoice,
        registration: &Registration,
        start: oneshot::Receiver<()>,
    ) -> (Result<Outcome, Error>, Option<&'static str>) {
        let (tenant, job) = (&planned.tenant, &planned.job);
        let tar = || ArtifactTar::create_in(&self.engine.settings.tmp_dir);
        let (mut artifacts, mut blobs) = (tar(), tar());
        let context = RunContext {
            artifacts: &mut artifacts,
            blobs: &mut blobs,
            cancel: registration.cancel(),
            start,
            transcript: registration.transcript(),
        };
        let report = self.engine.sandbox.run(choice, job, context).await;
        let fault = metrics::fault_of(report.as_ref().map_err(drop));
        let report = match report {
            Ok(report) => report,
            Err(error) => {
                tracing::error!(execution.id = %job.program.execution, ?error, "No sandbox for execution {}", job.program.execution);
                return (Err(failure::of_sandbox(error)), fault);
            }
        };
        let shutting_down = self.engine.running.is_stopping();
        let stored = self
            .store_artifacts(tenant, job.program.execution, artifacts, &report.files)
            .await;
        let (kept, not_kept) = self
            .engine
            .blobs()
            .take_outputs(tenant, blobs, &report.blobs)
            .await;
        let outcome = with_blobs(from_report(report, job, shutting_down), kept, not_kept);
        let outcome = match stored {
            Ok(()) => outcome,
            Err(error) => {
                tracing::error!(execution.id = %job.program.execution, ?error, "Artifacts of execution {} were not stored", job.program.execution);
                without_artifacts(outcome, &error)
            }
        };
        (Ok(outcome), fault)
    }

    async fn store_artifacts(
        self,
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
        self.engine
            .blob
            .put(&key, file)
            .await
            .map(drop)
            .map_err(|error| failure::of_blob(error, "artifacts"))
    }

    /// Records the outcome. If another process recorded one first, that one is returned.
    async fn record(self, new: NewExecution, outcome: Outcome) -> Result<Execution, Error> {
        let id = new.id;
        let ours = self.finish(&new, &outcome).await;
        if !ours? {
            return Ok(self.engine.store.execution(&new.tenant, id).await?);
        }
        self.engine.count_end(&new, &outcome);
        self.engine.publish_end(&new, &outcome);
        self.engine.webhooks().notify_sender(&new);
        tracing::info!(execution.id = %id, status = outcome.status.as_str(), "Finished execution {id}");
        Ok(Execution {
            status: outcome.status,
            new,
            outcome: Some(outcome),
        })
    }

    /// Retries for long, because an unrecorded outcome is lost (F-13).
    async fn finish(self, new: &NewExecution, outcome: &Outcome) -> Result<bool, store::Error> {
        let give_up = Instant::now() + limits::RECORD_MAX;
        loop {
            match self
                .engine
                .store
                .finish(&new.tenant, new.id, outcome.clone())
                .await
            {
                // Another attempt ends in time.
                Err(store::Error::Busy) if Instant::now() + limits::STORE_WAIT_MAX < give_up => {
                    tracing::warn!(execution.id = %new.id, "The database is busy; trying again to record execution {}", new.id);
                    tokio::time::sleep(limits::RECORD_RETRY_AFTER).await;
                }
                done => return done,
            }
        }
    }
}

/// The connection of the caller.
pub(super) struct Attached {
    pub(super) gone: CancellationToken,
    pub(super) watcher: Option<Watcher>,
}
