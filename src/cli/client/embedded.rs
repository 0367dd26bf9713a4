//! Commands carried out by an engine inside this process, over the same data folder as a server's.

use std::cell::Cell;
use std::fs::File;
use std::io::Write;
use std::time::Duration;

use secrecy::ExposeSecret as _;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::runtime::Runtime;

use super::deps::progress_message;
use super::watch::RunEvents;
use super::{ExecutionListFilter, Listed, ProgramOutput, PublishedArchive, RunResult};
use crate::auth::Caller;
use crate::cli::event_printer::{OnEvent, RunEvent};
use crate::cli::exit::Exit;
use crate::cli::failure::{Failure, Result};
use crate::cli::progress::Spinner;
use crate::config::Config;
use crate::engine::{Engine, NewKey, PageRequest, Readiness, RunOptions, RunRequest};
use crate::execution::{Envelope, FileLink, Stream, Summary};
use crate::http::{FreshKey, Key, Skill, SkillSummary};
use crate::ids::{ExecutionId, KeyId};
use crate::limits;
use crate::server::{self, AdminKey, Assembled, Signals};
use crate::skill::{Selector, SkillName, Version};
use crate::store::{ExecutionFilter, Page, Published, SkillRecord};

/// An engine of our own.
#[derive(Debug)]
pub(crate) struct EmbeddedClient {
    runtime: Runtime,
    engine: Engine,
    caller: Caller,
    /// Something ran: leftovers of dead processes are worth a look.
    ran: Cell<bool>,
}

/// What is left to the background must not keep the shell waiting for long.
const CLOSING_MAX: Duration = Duration::from_secs(10);
const PROGRESS_WAITING: usize = 64;

impl EmbeddedClient {
    pub(crate) fn open(config: &Config) -> Result<Self> {
        let runtime = server::runtime()?;
        let assembled = runtime.block_on(server::assemble(config))?;
        Self::over(runtime, assembled, config)
    }

    /// Enters as administrator.
    pub(crate) fn over(runtime: Runtime, assembled: Assembled, config: &Config) -> Result<Self> {
        let Assembled { engine, folder } = assembled;
        let caller = runtime.block_on(async {
            let key = match (server::find_or_create_admin_key(&engine, &folder).await?, &config.api_key) {
                (AdminKey::Created(key) | AdminKey::Existing(key), _) => key.reveal().to_owned(),
                (AdminKey::Unknown, Some(key)) => key.expose_secret().to_owned(),
                (AdminKey::Unknown, None) => {
                    let file = folder.admin_key_path();
                    return Err(Failure::refused(format!(
                        "`{}` holds no valid key and SKILLBOX_API_KEY is not set; put a key of scope `admin` into one of them, or make a fresh one with `skillbox key recover`",
                        file.display()
                    )));
                }
            };
            Ok(engine.authenticate(&key).await?)
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
        self.runtime.block_on(self.engine.readiness())
    }

    /// Waits for something of the engine's.
    pub(crate) fn wait<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }

    pub(crate) fn close(self) {
        let Self {
            runtime, engine, ran, ..
        } = self;
        runtime.block_on(async {
            let closing = async {
                if ran.get() {
                    engine.upkeep_round().await;
                }
                engine.shutdown(Duration::ZERO).await;
            };
            let _ = tokio::time::timeout(CLOSING_MAX, closing).await;
        });
        server::end_runtime(runtime);
    }

    pub(crate) fn publish(&self, archive: File, name: Option<&SkillName>) -> Result<PublishedArchive> {
        let name = name.map(SkillName::as_str);
        let (record, published) = self
            .runtime
            .block_on(self.engine.publish(&self.caller, archive, name))?;
        Ok(PublishedArchive {
            skill: record.into(),
            again: matches!(published, Published::Same(_)),
        })
    }

    pub(crate) fn skills(&self, rows: usize) -> Result<Listed<SkillSummary>> {
        Ok(self.latest(rows)?.map(|record| SkillSummary::from(&record)))
    }

    pub(super) fn latest(&self, rows: usize) -> Result<Listed<SkillRecord>> {
        self.runtime.block_on(listed(rows, async |page| {
            self.engine.skills(&self.caller, page).await
        }))
    }

    pub(crate) fn versions(&self, name: &SkillName, rows: usize) -> Result<Listed<SkillSummary>> {
        let pages = async |page| self.engine.skill_versions(&self.caller, name, page).await;
        Ok(self
            .runtime
            .block_on(listed(rows, pages))?
            .map(|record| SkillSummary::from(&record)))
    }

    pub(crate) fn skill(&self, name: &SkillName, selector: &Selector) -> Result<Skill> {
        Ok(self
            .runtime
            .block_on(self.engine.skill(&self.caller, name, selector))?
            .into())
    }

    pub(crate) fn archive(&self, name: &SkillName, selector: &Selector, into: &mut File) -> Result<()> {
        self.runtime.block_on(async {
            let (_, object) = self.engine.skill_archive(&self.caller, name, selector).await?;
            let size = object.size();
            let reader = object
                .into_reader(0..size)
                .await
                .map_err(|error| Failure::internal("reading the archive", error))?;
            copy(reader, into).await
        })
    }

    pub(crate) fn delete(&self, name: &SkillName, version: &Version) -> Result<()> {
        Ok(self
            .runtime
            .block_on(self.engine.delete_skill(&self.caller, name, version))?)
    }

    pub(crate) fn run(&self, request: RunRequest, on_event: Option<&mut OnEvent<'_>>) -> Result<RunResult> {
        self.ran.set(true);
        self.runtime.block_on(self.run_until_signal(request, on_event))
    }

    /// Ctrl-C ends the execution and waits until nothing of it is left; a second one ends this process.
    async fn run_until_signal(
        &self,
        request: RunRequest,
        mut on_event: Option<&mut OnEvent<'_>>,
    ) -> Result<RunResult> {
        let mut signals = Signals::new()?;
        let (sender, mut progress) = tokio::sync::mpsc::channel(PROGRESS_WAITING);
        let mut spinner = Some(Spinner::start("running"));
        let request = RunRequest {
            progress: Some(sender),
            ..request
        };
        let (watcher, watched) = tokio::sync::oneshot::channel();
        let run = self
            .engine
            .run_watched(&self.caller, request, RunOptions::default(), Some(watcher));
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
                        // What Ctrl-C kept from beginning was refused by our own shutdown.
                        Err(_) if interrupted => {
                            return Err(Failure::new(Exit::Interrupted, "ended by Ctrl-C"));
                        }
                        ran => ran?,
                    };
                    let envelope = Envelope::from_execution(&execution, None);
                    return Ok(RunResult { envelope, interrupted });
                }
                Some(progress) = progress.recv() => if let Some(spinner) = &spinner {
                    spinner.say(progress_message(progress));
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

    pub(crate) fn executions(&self, filter: &ExecutionListFilter) -> Result<Listed<Summary>> {
        let rows = filter.rows;
        let filter = ExecutionFilter {
            status: filter.status,
            skill: filter.skill.clone(),
            ..ExecutionFilter::default()
        };
        let pages = async |page| self.engine.executions(&self.caller, filter.clone(), page).await;
        Ok(self
            .runtime
            .block_on(listed(rows, pages))?
            .map(|execution| Summary::from(&execution)))
    }

    pub(crate) fn execution(&self, id: ExecutionId) -> Result<Envelope> {
        let execution = self.runtime.block_on(self.engine.execution(&self.caller, id))?;
        Ok(Envelope::from_execution(&execution, None))
    }

    pub(crate) fn printed(&self, id: ExecutionId) -> Result<ProgramOutput> {
        let execution = self.runtime.block_on(self.engine.execution(&self.caller, id))?;
        let logs = execution.outcome.map(|outcome| outcome.logs).unwrap_or_default();
        Ok(ProgramOutput {
            truncated: logs.truncated(),
            stdout: logs.stdout,
            stderr: logs.stderr,
            lines: logs.lines,
            lines_truncated: logs.lines_truncated,
        })
    }

    pub(crate) fn cancel(&self, id: ExecutionId) -> Result<Envelope> {
        let execution = self.runtime.block_on(self.engine.cancel(&self.caller, id))?;
        Ok(Envelope::from_execution(&execution, None))
    }

    pub(crate) fn file(&self, id: ExecutionId, file: &FileLink, into: &mut dyn Write) -> Result<()> {
        self.runtime.block_on(async {
            let found = self
                .engine
                .artifact_file(self.caller.tenant(), id, &file.path)
                .await?;
            let range = found.range();
            let reader = found
                .object
                .into_reader(range)
                .await
                .map_err(|error| Failure::internal("reading the file", error))?;
            copy(reader, into).await
        })
    }

    pub(crate) fn create_key(&self, new: NewKey) -> Result<FreshKey> {
        let (record, key) = self.runtime.block_on(self.engine.create_key(&self.caller, new))?;
        Ok(FreshKey::new(&record, &key))
    }

    pub(crate) fn keys(&self, rows: usize) -> Result<Listed<Key>> {
        let listed = self.runtime.block_on(listed(rows, async |page| {
            self.engine.keys(&self.caller, page).await
        }))?;
        Ok(listed.map(|record| Key::from(&record)))
    }

    pub(crate) fn revoke_key(&self, id: KeyId) -> Result<Key> {
        Ok(Key::from(
            &self.runtime.block_on(self.engine.revoke_key(&self.caller, id))?,
        ))
    }

    pub(crate) fn rotate_key(&self, id: KeyId) -> Result<FreshKey> {
        let (record, key) = self.runtime.block_on(self.engine.rotate_key(&self.caller, id))?;
        Ok(FreshKey::new(&record, &key))
    }
}

/// Interrupts what runs. What has not started yet, such as a pull, is not waited for: nothing of it needs us.
async fn end(engine: Engine) {
    let ended = tokio::time::timeout(CLOSING_MAX, engine.shutdown(Duration::ZERO)).await;
    if ended.is_err() {
        Exit::Interrupted.at_once();
    }
}

impl<T> Listed<T> {
    pub(super) fn map<U>(self, change: impl FnMut(T) -> U) -> Listed<U> {
        Listed {
            items: self.items.into_iter().map(change).collect(),
            more: self.more,
        }
    }
}

/// Page after page until `rows` are there.
pub(super) async fn listed<T>(
    rows: usize,
    mut pages: impl AsyncFnMut(PageRequest) -> std::result::Result<Page<T>, crate::error::Error>,
) -> Result<Listed<T>> {
    let mut items = Vec::new();
    let mut after = None;
    loop {
        let missing = u32::try_from(rows - items.len())
            .unwrap_or(u32::MAX)
            .min(limits::PAGE_ROWS_MAX);
        let page = pages(PageRequest { after, rows: missing }).await?;
        items.extend(page.items);
        after = page.next;
        if after.is_none() || items.len() >= rows {
            return Ok(Listed {
                items,
                more: after.is_some(),
            });
        }
    }
}

pub(super) async fn copy(mut reader: impl AsyncRead + Unpin, into: &mut dyn Write) -> Result<()> {
    const CHUNK: usize = 64 * 1024;
    let mut buffer = vec![0; CHUNK];
    loop {
        let read = reader
            .read(&mut buffer)
            .await
            .map_err(|error| Failure::internal("reading a kept file", error))?;
        if read == 0 {
            return Ok(());
        }
        into.write_all(&buffer[..read])
            .map_err(|error| Failure::internal("writing a file", error))?;
    }
}
