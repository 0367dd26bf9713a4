//! An engine inside this process, over the data folder that a server would use.

use std::cell::Cell;
use std::io::Write;
use std::ops::Range;
use std::time::Duration;

use secrecy::ExposeSecret as _;
use tokio::io::AsyncReadExt as _;
use tokio::runtime::Runtime;

use super::deps::progress_message;
use super::watch::RunEvents;
use super::{InstallReports, Listed, RunResult, listed};
use crate::api::{List, executions, page_request};
use crate::auth::Caller;
use crate::blob::Object;
use crate::cli::event_printer::{OnEvent, RunEvent};
use crate::cli::exit::Exit;
use crate::cli::failure::{Failure, Result};
use crate::cli::progress::Spinner;
use crate::config::Config;
use crate::engine::{Engine, PageRequest, Readiness, RunOptions, RunRequest};
use crate::error;
use crate::execution::{Envelope, Stream};
use crate::server::{self, AdminKey, Assembled, Signals};

#[derive(Debug)]
pub(crate) struct EmbeddedClient {
    runtime: Runtime,
    engine: Engine,
    caller: Caller,
    /// Something ran: clean up after dead processes before closing.
    ran: Cell<bool>,
}

/// Background work must not delay the shell prompt for long.
const CLOSING_MAX: Duration = Duration::from_secs(10);
const PROGRESS_WAITING: usize = 64;

impl EmbeddedClient {
    pub(crate) fn open(config: &Config) -> Result<Self> {
        let runtime = server::runtime()?;
        let assembled = runtime.block_on(server::assemble(config))?;
        Self::over(runtime, assembled, config)
    }

    /// Authenticates as administrator.
    pub(crate) fn over(runtime: Runtime, assembled: Assembled, config: &Config) -> Result<Self> {
        let Assembled { engine, folder } = assembled;
        let caller = runtime.block_on(async {
            let key = match (server::find_or_create_admin_key(&engine, &folder).await?, &config.api_key) {
                (AdminKey::Created(key) | AdminKey::Existing(key), _) => key.reveal().to_owned(),
                (AdminKey::Unknown, Some(key)) => key.expose_secret().to_owned(),
                (AdminKey::Unknown, None) => {
                    let file = folder.admin_key_path();
                    return Err(Failure::refused(format!(
                        "`{}` contains no valid key and SKILLBOX_API_KEY is not set; put a key of scope `admin` into one of them, or create one with `skillbox key recover`",
                        file.display()
                    )));
                }
            };
            Ok(engine.keys().authenticate(&key).await?)
        })?;
        Ok(Self {
            runtime,
            engine,
            caller,
            ran: Cell::new(false),
        })
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    pub(crate) fn caller(&self) -> &Caller {
        &self.caller
    }

    pub(crate) fn readiness(&self) -> Readiness {
        self.wait(self.engine.maintenance().readiness())
    }

    #[cfg(feature = "mcp")]
    pub(super) fn mark_as_ran(&self) {
        self.ran.set(true);
    }

    pub(crate) fn wait<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }

    /// Waits for a call of the API.
    pub(super) fn call<T>(
        &self,
        call: impl Future<Output = std::result::Result<T, error::Error>>,
    ) -> Result<T> {
        Ok(self.wait(call)?)
    }

    pub(crate) fn close(self) {
        let Self {
            runtime, engine, ran, ..
        } = self;
        runtime.block_on(async {
            let closing = async {
                if ran.get() {
                    engine.maintenance().run().await;
                }
                engine.maintenance().shutdown(Duration::ZERO).await;
            };
            let _ = tokio::time::timeout(CLOSING_MAX, closing).await;
        });
        server::end_runtime(runtime);
    }

    /// A list of at most `rows` rows, read page by page.
    pub(super) fn list<T>(
        &self,
        rows: usize,
        list: impl AsyncFn(&Engine, &Caller, PageRequest) -> std::result::Result<List<T>, error::Error>,
    ) -> Result<Listed<T>> {
        listed(rows, |limit, token| {
            let page = page_request(Some(&limit.to_string()), token.as_deref())?;
            self.call(list(&self.engine, &self.caller, page))
        })
    }

    pub(crate) fn run(
        &self,
        request: RunRequest,
        on_event: Option<&mut OnEvent<'_>>,
        reports: InstallReports,
    ) -> Result<RunResult> {
        self.ran.set(true);
        self.runtime
            .block_on(self.run_until_signal(request, on_event, reports))
    }

    /// Ctrl-C cancels the execution and waits until its sandbox is removed; a second Ctrl-C ends this process.
    async fn run_until_signal(
        &self,
        request: RunRequest,
        mut on_event: Option<&mut OnEvent<'_>>,
        reports: InstallReports,
    ) -> Result<RunResult> {
        let mut signals = Signals::new()?;
        let (sender, mut progress) = tokio::sync::mpsc::channel(PROGRESS_WAITING);
        let mut spinner = Some(Spinner::start("running"));
        let request = RunRequest {
            progress: Some(sender),
            ..request
        };
        let (watcher, watched) = tokio::sync::oneshot::channel();
        let options = RunOptions::default();
        let watcher = on_event.is_some().then_some(watcher);
        let run = executions::run(&self.engine, &self.caller, request, options, watcher);
        let mut telling = RunEvents::once(watched);
        tokio::pin!(run);
        let mut interrupted = false;
        loop {
            tokio::select! {
                biased;
                told = telling.next(), if on_event.is_some() => if let Some(on_event) = &mut on_event {
                    if !matches!(told, RunEvent::Status(..) | RunEvent::Printed(Stream::Stdout, _)) {
                        spinner = None;
                    }
                    on_event(told)?;
                },
                execution = &mut run => {
                    let execution = match execution {
                        // Ctrl-C before the start: our own shutdown rejected the execution.
                        Err(_) if interrupted => {
                            return Err(Failure::new(Exit::Interrupted, "interrupted by Ctrl-C"));
                        }
                        ran => ran?,
                    };
                    let envelope = Envelope::from_execution(&execution, None);
                    return Ok(RunResult { envelope, interrupted });
                }
                Some(progress) = progress.recv() => if let Some(spinner) = &spinner {
                    let message = progress_message(progress);
                    match reports {
                        InstallReports::Printed => spinner.report(message),
                        InstallReports::Silent => spinner.say(message.into_text()),
                    }
                },
                () = signals.next() => {
                    if interrupted {
                        Exit::Interrupted.at_once();
                    }
                    interrupted = true;
                    if let Some(spinner) = &spinner {
                        spinner.say("ending".to_owned());
                    }
                    tokio::spawn(end(self.engine.clone()));
                }
            }
        }
    }
}

/// Interrupts running executions. Does not wait for preparations such as an image pull.
async fn end(engine: Engine) {
    let ended = tokio::time::timeout(CLOSING_MAX, engine.maintenance().shutdown(Duration::ZERO)).await;
    if ended.is_err() {
        Exit::Interrupted.at_once();
    }
}

/// Copies a range of a stored object.
pub(super) async fn copy_object(object: Object, range: Range<u64>, into: &mut dyn Write) -> Result<()> {
    const CHUNK: usize = 64 * 1024;
    let reader = object.into_reader(range).await;
    let mut reader = reader.map_err(|error| Failure::internal("opening a stored file", error))?;
    let mut buffer = vec![0; CHUNK];
    loop {
        let read = reader
            .read(&mut buffer)
            .await
            .map_err(|error| Failure::internal("reading a stored file", error))?;
        if read == 0 {
            return Ok(());
        }
        into.write_all(&buffer[..read])
            .map_err(|error| Failure::internal("writing a file", error))?;
    }
}
