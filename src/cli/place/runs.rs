//! Executions as they are asked for, now or later, and waited for.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use ureq::http::Method;

use super::asked;
use super::remote::{Call, Sent, read_json};
use super::watch::EVENTS;
use super::{Local, Ran, Remote};
use crate::cli::exit::Exit;
use crate::cli::failure::{Failure, Result};
use crate::cli::progress::Spinner;
use crate::cli::watched::{Hear, Told};
use crate::engine::Ask;
use crate::execution::{Envelope, Stream};
use crate::ids::ExecutionId;
use crate::limits;
use crate::server::Signals;

impl Remote {
    pub(crate) fn run(
        &self,
        (name, mut what): (String, serde_json::Value),
        ask: &Ask,
        mut hear: Option<&mut Hear<'_>>,
    ) -> Result<Ran> {
        what["blobs"] = self.kept(&ask.blobs)?;
        let sent = Sent::json(asked::body(what, ask)?.into_bytes());
        let spinner = Cell::new(Some(Spinner::start(format!("running {name} on {}", self.base))));
        // Told as it goes on also where nobody listens: what breaks off on the way is asked for again.
        let call = Call {
            answer_max: limits::CLIENT_RUN_MAX,
            accept: EVENTS,
            ..Call::new(Method::POST, "/v1/executions")
        };
        let (id, mut envelope) = (Mutex::new(None), None);
        let act = || {
            self.run_told(&call, sent, &mut |told| {
                match &told {
                    Told::Status(of, ..) => *locked(&id) = Some(*of),
                    Told::Result(result) => envelope = Some((**result).clone()),
                    Told::Printed(..) | Told::Logged(_) => {}
                }
                let Some(hear) = &mut hear else { return Ok(()) };
                if !matches!(told, Told::Status(..) | Told::Printed(Stream::Stdout, _)) {
                    spinner.take();
                }
                hear(told)
            })
        };
        let interrupted = self.cancelling_on_ctrl_c(&id, act)?;
        let none = || Failure::new(Exit::Unavailable, "the server told no result");
        Ok(Ran {
            envelope: envelope.ok_or_else(none)?,
            interrupted,
        })
    }

    /// Acts, and tells whether Ctrl-C came meanwhile: it ends the execution that runs, whose end is then waited for. A second one ends
    /// this process, as the first does where nothing runs yet: what waits for its turn leaves with the connection.
    fn cancelling_on_ctrl_c(
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
                // Where it fails there is the second Ctrl-C.
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

    pub(super) fn submit(&self, mut what: serde_json::Value, ask: &Ask) -> Result<Envelope> {
        what["blobs"] = self.kept(&ask.blobs)?;
        what["mode"] = "async".into();
        let sent = Sent::json(asked::body(what, ask)?.into_bytes());
        read_json(self.send(&Call::new(Method::POST, "/v1/executions"), sent)?)
    }

    pub(super) fn ended_within(&self, id: ExecutionId, within: Duration) -> Result<Envelope> {
        let query = [("wait", within.as_secs_f64().to_string())];
        self.json(&Call {
            query: &query,
            answer_max: limits::CLIENT_RUN_MAX,
            ..Call::new(Method::GET, &format!("/v1/executions/{id}"))
        })
    }
}

impl Local {
    pub(super) fn ended_within(&self, id: ExecutionId, within: Duration) -> Result<Envelope> {
        let ended = self.engine().execution_within(self.caller(), id, within);
        Ok(Envelope::from_execution(&self.wait(ended)?, None))
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
