//! Runs and submits executions on a server.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::json;
use tokio::sync::oneshot;
use ureq::http::Method;

use super::remote::{ApiCall, RequestBody};
use super::run_body;
use super::watch::EVENTS;
use super::{RemoteClient, RunResult};
use crate::api::{CreateExecution, Mode};
use crate::cli::event_printer::{OnEvent, RunEvent};
use crate::cli::exit::Exit;
use crate::cli::failure::{Failure, Result};
use crate::cli::progress::Spinner;
use crate::engine::{RerunVersion, RunRequest};
use crate::execution::{Envelope, Stream};
use crate::ids::ExecutionId;
use crate::limits;
use crate::server::Signals;
use crate::skill::SkillName;

impl RemoteClient {
    pub(crate) fn run(&self, request: RunRequest, on_event: Option<&mut OnEvent<'_>>) -> Result<RunResult> {
        let body = self.body(request)?;
        let name = body.skill.as_ref().map_or("code", SkillName::as_str);
        let spinner = Spinner::start(format!("running {name} on {}", self.base));
        let sent = RequestBody::json(&run_body::to_json(&body)?);
        self.run_at("/v1/executions", sent, spinner, on_event)
    }

    /// Runs the request of an execution again.
    pub(crate) fn rerun(
        &self,
        id: ExecutionId,
        version: RerunVersion,
        on_event: Option<&mut OnEvent<'_>>,
    ) -> Result<RunResult> {
        let spinner = Spinner::start(format!("running the request of {id} on {}", self.base));
        let sent = RequestBody::json(&json!({ "version": version }));
        self.run_at(&format!("/v1/executions/{id}/rerun"), sent, spinner, on_event)
    }

    fn run_at(
        &self,
        path: &str,
        sent: RequestBody,
        spinner: Spinner,
        mut on_event: Option<&mut OnEvent<'_>>,
    ) -> Result<RunResult> {
        let spinner = Cell::new(Some(spinner));
        // Ask for events even if nothing is printed: an interrupted stream can be resumed, an interrupted response cannot.
        let call = ApiCall {
            answer_max: limits::CLIENT_RUN_MAX,
            accept: EVENTS,
            ..ApiCall::new(Method::POST, path)
        };
        let (id, mut envelope) = (Mutex::new(None), None);
        let act = || {
            self.run_with_events(&call, sent, &mut |told| {
                match &told {
                    RunEvent::Status(of, ..) => *locked(&id) = Some(*of),
                    RunEvent::Result(result) => envelope = Some((**result).clone()),
                    RunEvent::Printed(..) | RunEvent::Logged(_) => {}
                }
                let Some(on_event) = &mut on_event else {
                    return Ok(());
                };
                if !matches!(told, RunEvent::Status(..) | RunEvent::Printed(Stream::Stdout, _)) {
                    spinner.take();
                }
                on_event(told)
            })
        };
        let interrupted = self.cancel_on_ctrl_c(&id, act)?;
        let none = || Failure::new(Exit::Unavailable, "the server sent no result");
        Ok(RunResult {
            envelope: envelope.ok_or_else(none)?,
            interrupted,
        })
    }

    /// Returns whether Ctrl-C cancelled the execution meanwhile. A second Ctrl-C ends this process, as does the first
    /// before the execution starts: a queued execution leaves the queue when its connection closes.
    fn cancel_on_ctrl_c(
        &self,
        id: &Mutex<Option<ExecutionId>>,
        act: impl FnOnce() -> Result<()>,
    ) -> Result<bool> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::internal("listening for Ctrl-C", error))?;
        let mut signals = {
            let _context = runtime.enter();
            Signals::new()?
        };
        let interrupted = AtomicBool::new(false);
        let (done, over) = oneshot::channel::<()>();
        let acted = std::thread::scope(|scope| {
            let listen = async {
                signals.next().await;
                let Some(id) = *locked(id) else {
                    Exit::Interrupted.at_once();
                };
                interrupted.store(true, Ordering::Relaxed);
                // If this fails, the user can press Ctrl-C again.
                let _ = self.cancel(id);
                signals.next().await;
                Exit::Interrupted.at_once();
            };
            scope.spawn(move || {
                runtime.block_on(async {
                    tokio::select! {
                        _ = over => {}
                        () = listen => {}
                    }
                });
            });
            let acted = act();
            drop(done);
            acted
        });
        acted.map(|()| interrupted.load(Ordering::Relaxed))
    }

    pub(super) fn submit(&self, request: RunRequest) -> Result<Envelope> {
        let body = CreateExecution {
            mode: Mode::Async,
            ..self.body(request)?
        };
        self.post("/v1/executions", &run_body::to_json(&body)?)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
