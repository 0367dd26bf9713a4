//! One execution from request to record. Once recorded it always ends in exactly one final state.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::auth::{Caller, Scope};
use crate::blob;
use crate::bundle::artifacts::ArtifactTar;
use crate::engine::blobs::with_blobs;
use crate::engine::deps::Waiting;
use crate::engine::find::Found;
use crate::engine::plan::Plan;
use crate::engine::secrets::masked;
use crate::engine::{Engine, RunRequest, clock, failure, require};
use crate::error::{Code, Error};
use crate::execution::{
    Execution, Failure, FileEntry, Logs, NewExecution, Outcome, Status, Timings, Usage, milliseconds,
};
use crate::ids::{ExecutionId, Tenant};
use crate::limits;
use crate::sandbox::{Choice, End, Job, Output, ProgressSender, Report, Run};
use crate::store;

/// The executions of this process: those that can still be cancelled, and those whose end nobody has recorded.
#[derive(Debug, Default)]
pub(super) struct Running {
    live: Mutex<HashMap<ExecutionId, CancellationToken>>,
    unrecorded: Mutex<Vec<(Tenant, ExecutionId)>>,
    /// Cancelled when the process ends: what runs, and what is about to.
    stop: CancellationToken,
}

/// An execution among the running ones, until this is dropped.
#[derive(Debug)]
struct Entered<'a> {
    running: &'a Running,
    tenant: Tenant,
    id: ExecutionId,
    cancel: CancellationToken,
    is_recorded: bool,
}

impl Running {
    fn enter(&self, tenant: Tenant, id: ExecutionId) -> Entered<'_> {
        let cancel = self.stop.child_token();
        locked(&self.live).insert(id, cancel.clone());
        Entered {
            running: self,
            tenant,
            id,
            cancel,
            is_recorded: false,
        }
    }

    /// Asks an execution to end; `false` if it does not run here.
    pub(super) fn cancel(&self, id: ExecutionId) -> bool {
        locked(&self.live)
            .get(&id)
            .map(CancellationToken::cancel)
            .is_some()
    }

    /// Cancelled with all of them.
    pub(super) fn stopping(&self) -> CancellationToken {
        self.stop.child_token()
    }

    /// Asks all to end, those to come included.
    pub(super) fn stop(&self) {
        self.stop.cancel();
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

impl Drop for Entered<'_> {
    /// However it ended, by a panic or because the database is full: it is not forgotten as running.
    fn drop(&mut self) {
        if !self.is_recorded {
            locked(&self.running.unrecorded).push((self.tenant.clone(), self.id));
        }
        locked(&self.running.live).remove(&self.id);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Engine {
    /// Runs a skill to its end, even when the caller goes away; one that goes before its turn leaves the queue. A failing
    /// skill is no error: its execution says so.
    pub async fn run(&self, caller: &Caller, request: RunRequest) -> Result<Execution, Error> {
        let (engine, caller) = (self.clone(), caller.clone());
        let gone = CancellationToken::new();
        let _goes_with_the_caller = gone.clone().drop_guard();
        // Boxed, for it is large, and would be copied on the stack of whoever asks.
        self.to_the_end(async move { Box::pin(engine.run_attached(&caller, request, &gone)).await })
            .await
    }

    async fn run_attached(
        &self,
        caller: &Caller,
        request: RunRequest,
        gone: &CancellationToken,
    ) -> Result<Execution, Error> {
        require(caller, &[Scope::Run])?;
        let RunRequest {
            what,
            mut ask,
            progress,
        } = request;
        ask.check()?;
        let callback_url = self.accept_callback(ask.callback_url.as_deref())?;
        let asked_blobs = std::mem::take(&mut ask.blobs);
        let mut found = self.find(caller, what, &ask).await?;
        let job = &mut found.plan.job;
        self.grant(caller.tenant(), job, &found.permissions).await?;
        self.lend_blobs(caller.tenant(), job, asked_blobs).await?;
        let asked_at = Instant::now();
        let _slot = self.0.admission.admit_unless(caller.tenant(), gone).await?;
        let queue_ms = milliseconds(asked_at.elapsed());
        // In its turn: a check may take as long as a short program.
        found.plan.schemas.check_input(&found.plan.job.input).await?;
        let choice = self.prepare(&found.plan.job, progress.as_ref()).await?;
        let waiting = Waiting {
            progress: progress.as_ref(),
            gone,
        };
        let planned = (&mut found.plan, &choice);
        self.add_packages(caller.tenant(), planned, &ask.requirements, waiting)
            .await?;
        let Plan { job, schemas, .. } = &found.plan;
        // Before the row: one that is there always has somebody who ends it.
        let mut entered = self.0.running.enter(caller.tenant().clone(), job.execution);
        let new = NewExecution {
            callback_url,
            ..self.new_execution(caller, &found, &choice)
        };
        // The sandbox is made meanwhile; the program waits for the row.
        let (word, go) = oneshot::channel();
        let begin = async {
            self.0.store.begin(new.clone()).await?;
            // Who waits for it may have failed by now, and says so itself.
            let _ = word.send(());
            Ok(())
        };
        let perform = self.perform(caller.tenant(), (job, &choice), (&entered.cancel, go));
        let (begun, outcome) = tokio::join!(begin, perform);
        begun.map_err(|error| failure::of_store(error, "execution"))?;
        let outcome = schemas.judge(outcome).await;
        let timings = Timings {
            queue_ms,
            ..outcome.timings
        };
        let outcome = masked(Outcome { timings, ..outcome }, &job.mask).await?;
        let execution = self.record(new, outcome).await?;
        entered.is_recorded = true;
        // It leaves only now: whoever waits for the end of a cancelled execution finds it recorded.
        Ok(execution)
    }

    /// Makes ready what may take long; ends when the process does.
    pub(super) async fn prepare(
        &self,
        job: &Job,
        progress: Option<&ProgressSender>,
    ) -> Result<Choice, Error> {
        let prepared = self.0.sandbox.prepare(job, progress);
        match self.0.running.stop.run_until_cancelled(prepared).await {
            Some(prepared) => prepared.map_err(failure::of_sandbox),
            None => Err(Error::new(Code::Busy, "the server is shutting down")),
        }
    }

    fn new_execution(&self, caller: &Caller, found: &Found, choice: &Choice) -> NewExecution {
        let job = &found.plan.job;
        NewExecution {
            id: job.execution,
            tenant: caller.tenant().clone(),
            skill: found.name.clone(),
            version: found.version.clone(),
            digest: Some(found.digest),
            language: found.plan.language,
            image: job.image.to_string(),
            backend: choice.kind.as_str().to_owned(),
            backend_reason: choice.reason.clone(),
            degraded: choice.degraded.iter().map(ToString::to_string).collect(),
            limits: job.limits,
            instance: self.0.instance.id(),
            created_at: clock::now(),
            callback_url: None,
        }
    }

    /// Runs the job and stores its artifacts. Whatever goes wrong becomes an outcome.
    async fn perform(
        &self,
        tenant: &Tenant,
        (job, choice): (&Job, &Choice),
        (cancel, go): (&CancellationToken, oneshot::Receiver<()>),
    ) -> Outcome {
        let tar = || ArtifactTar::create_in(&self.0.settings.tmp_dir);
        let (mut artifacts, mut blobs) = (tar(), tar());
        let run = Run {
            artifacts: &mut artifacts,
            blobs: &mut blobs,
            cancel: cancel.clone(),
            go,
        };
        let report = match self.0.sandbox.run(choice, job, run).await {
            Ok(report) => report,
            Err(error) => {
                tracing::error!(execution.id = %job.execution, ?error, "Execution {} got no sandbox", job.execution);
                return lost(&failure::of_sandbox(error));
            }
        };
        let shutting_down = self.0.running.stop.is_cancelled();
        let stored = self
            .store_artifacts(tenant, job.execution, artifacts, &report.files)
            .await;
        let (kept, not_kept) = self.take_blobs(tenant, blobs, &report.blobs).await;
        let outcome = with_blobs(outcome(report, job, shutting_down), kept, not_kept);
        match stored {
            Ok(()) => outcome,
            Err(error) => {
                tracing::error!(execution.id = %job.execution, ?error, "Artifacts of execution {} were not stored", job.execution);
                without_artifacts(outcome, &error)
            }
        }
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
        if new.callback_url.is_some() {
            self.0.webhooks_due.notify_one();
        }
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

/// An outcome without a report: the program has not run, or nobody knows.
fn lost(error: &Error) -> Outcome {
    without_report(
        Status::Failed,
        Failure {
            code: error.code().as_str().to_owned(),
            message: error.to_string(),
            exception: None,
        },
    )
}

/// The outcome of an execution whose own could not be recorded.
pub(super) fn unrecorded() -> Outcome {
    without_report(
        Status::Interrupted,
        Failure {
            code: "interrupted".to_owned(),
            message: "it ended and the server could not record how; run it again".to_owned(),
            exception: None,
        },
    )
}

fn without_report(status: Status, error: Failure) -> Outcome {
    Outcome {
        status,
        error: Some(error),
        exit_code: None,
        output: None,
        results: Vec::new(),
        results_truncated: false,
        logs: Logs::default(),
        files: Vec::new(),
        skipped: Vec::new(),
        skipped_total: 0,
        blobs: Vec::new(),
        usage: Usage::default(),
        timings: Timings::default(),
        finished_at: clock::now(),
    }
}

/// O-16: files that cannot be had are not listed, and the execution is no success.
fn without_artifacts(outcome: Outcome, error: &Error) -> Outcome {
    let message = format!("the program's files could not be stored: {error}");
    Outcome {
        status: if outcome.status == Status::Success {
            Status::Failed
        } else {
            outcome.status
        },
        error: Some(match outcome.error {
            Some(failure) => Failure {
                message: format!("{}; {message}", failure.message),
                ..failure
            },
            None => Failure {
                code: "artifacts_not_stored".to_owned(),
                message,
                exception: None,
            },
        }),
        files: Vec::new(),
        ..outcome
    }
}

/// Judges how the program ended: the status, and why it is no success.
fn judge(report: &Report, job: &Job, shutting_down: bool) -> (Status, Option<Failure>) {
    let granted = &job.limits;
    let (status, code, message) = match (&report.end, &report.output) {
        (End::Exited(0), Output::Missing | Output::Json(_)) => return (Status::Success, None),
        (End::Exited(0), Output::Invalid(reason)) => (Status::Failed, "output_invalid", reason.clone()),
        (End::Exited(0), Output::TooLarge(bytes)) => {
            let max = limits::OUTPUT_BYTES_MAX;
            let message =
                format!("output.json has {bytes} bytes, the limit is {max}; write large results to files");
            (Status::Failed, "output_too_large", message)
        }
        (End::Exited(1), _) if report.shown.raised.is_some() => {
            return (Status::Failed, report.shown.raised.clone().map(Failure::from));
        }
        (End::Exited(code), _) => {
            let said = match (&report.logs.stderr[..], &report.logs.stdout[..]) {
                ([], []) => "it wrote nothing to stdout and stderr",
                ([], _) => "its stdout may say why",
                (_, _) => "its stderr may say why",
            };
            let message = format!("the program exited with code {code}; {said}");
            (Status::Failed, "exit_code", message)
        }
        (End::Signaled(signal), _) => {
            let message = format!("the program was ended by signal {signal}");
            (Status::Failed, "signal", message)
        }
        (End::TimedOut, _) => {
            let seconds = granted.timeout.as_secs_f64();
            let message = format!("the program ran longer than its {seconds} s");
            (Status::Timeout, "timeout", message)
        }
        (End::OutOfMemory, _) => {
            let mebibytes = granted.memory_bytes / limits::MIB;
            let message = format!("the program needed more than its {mebibytes} MiB of memory");
            (Status::Oom, "oom", message)
        }
        (End::Cancelled, _) if shutting_down => {
            let message = "the server stopped while the program ran".to_owned();
            (Status::Interrupted, "interrupted", message)
        }
        (End::Cancelled, _) => {
            let message = "the execution was cancelled".to_owned();
            (Status::Cancelled, "cancelled", message)
        }
        (End::NotStarted(reason), _) => (Status::Failed, "start_failed", reason.clone()),
        (End::Lost(reason), _) => (Status::Interrupted, "sandbox_lost", reason.clone()),
    };
    let code = code.to_owned();
    // P9: what was cut short is said; a lost sandbox says so itself.
    let message = if report.complete || matches!(report.end, End::Lost(_)) {
        message
    } else {
        format!("{message}; not all that it left could be read")
    };
    let exception = None;
    (
        status,
        Some(Failure {
            code,
            message,
            exception,
        }),
    )
}

/// What is recorded of a report.
fn outcome(report: Report, job: &Job, shutting_down: bool) -> Outcome {
    let (status, error) = judge(&report, job, shutting_down);
    let exit_code = if let End::Exited(code) = report.end {
        Some(code)
    } else {
        None
    };
    // Kept whatever the status: a program that was killed late may have written all it had to say (O-20).
    let output = if let Output::Json(text) = report.output {
        Some(text)
    } else {
        None
    };
    Outcome {
        status,
        error,
        exit_code,
        output,
        results: report.shown.results,
        results_truncated: report.shown.truncated,
        logs: report.logs,
        files: report.files,
        skipped: report.skipped,
        skipped_total: report.skipped_total,
        blobs: Vec::new(),
        usage: report.usage,
        timings: Timings {
            queue_ms: 0.0,
            sandbox_ms: milliseconds(report.sandbox_time),
            run_ms: milliseconds(report.run_time),
            collect_ms: milliseconds(report.collect_time),
            warm: report.warm,
        },
        finished_at: clock::now(),
    }
}
