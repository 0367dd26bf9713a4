//! Where commands are carried out: by an engine inside this process, or by a server over REST.

mod blobs;
mod deps;
mod embedded;
mod remote;
mod run_body;
mod runs;
mod secrets;
mod tools;
mod watch;
mod webhooks;

use std::fs::File;
use std::io::Write;
use std::time::Duration;

use secrecy::{ExposeSecret as _, SecretString};

use crate::cli::console::Console;
use crate::cli::event_printer::OnEvent;
use crate::cli::exit::Exit;
use crate::cli::failure::{Failure, Result};
use crate::config::Config;
use crate::engine::{NewKey, RunRequest};
use crate::execution::{Envelope, FileLink, LogLine, Status, Summary};
use crate::http::{FreshKey, Key, Secret, Skill, SkillSummary, ToolDefinition};
use crate::ids::{ExecutionId, KeyId};
use crate::secret::SecretValue;
use crate::skill::{SecretName, Selector, SkillName, ToolFormat};
use crate::store::Kept;

pub(crate) use embedded::EmbeddedClient;
pub(crate) use remote::RemoteClient;

/// Carries out commands.
#[derive(Debug)]
pub(crate) enum Client {
    /// An engine of our own over the data folder.
    Embedded(EmbeddedClient),
    /// A server.
    Remote(RemoteClient),
}

/// Rows of a list, and whether there are more.
#[derive(Debug)]
pub(crate) struct Listed<T> {
    pub(crate) items: Vec<T>,
    pub(crate) more: bool,
}

/// Which executions to list.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExecutionListFilter {
    pub(crate) status: Option<Status>,
    pub(crate) skill: Option<SkillName>,
    pub(crate) rows: usize,
}

/// What a program printed.
#[derive(Debug)]
pub(crate) struct ProgramOutput {
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) truncated: bool,
    /// What it logged by the helper `log`.
    pub(crate) lines: Vec<LogLine>,
    pub(crate) lines_truncated: bool,
}

/// An archive that was published.
#[derive(Debug)]
pub(crate) struct PublishedArchive {
    pub(crate) skill: Skill,
    /// The same content was there already.
    pub(crate) again: bool,
}

/// How a run ended.
#[derive(Debug)]
pub(crate) struct RunResult {
    pub(crate) envelope: Envelope,
    /// Ctrl-C ended it.
    pub(crate) interrupted: bool,
}

macro_rules! on_client {
    ($client:expr, $inner:ident => $call:expr) => {
        match $client {
            Client::Embedded($inner) => $call,
            Client::Remote($inner) => $call,
        }
    };
}

impl Client {
    /// The configured server, or this process where none is.
    pub(crate) fn open(config: &Config, console: &Console) -> Result<Self> {
        match &config.server_url {
            Some(url) => server(config, url, console).map(Self::Remote),
            None => Self::embedded(config),
        }
    }

    /// This process, whatever is configured: for skills that are not published.
    pub(crate) fn embedded(config: &Config) -> Result<Self> {
        EmbeddedClient::open(config).map(Self::Embedded)
    }

    /// Ends what is left to the background.
    pub(crate) fn close(self) {
        match self {
            Self::Embedded(local) => local.close(),
            Self::Remote(_) => {}
        }
    }

    pub(crate) fn publish(&self, archive: File, name: Option<&SkillName>) -> Result<PublishedArchive> {
        on_client!(self, client => client.publish(archive, name))
    }

    pub(crate) fn skills(&self, rows: usize) -> Result<Listed<SkillSummary>> {
        on_client!(self, client => client.skills(rows))
    }

    pub(crate) fn versions(&self, name: &SkillName, rows: usize) -> Result<Listed<SkillSummary>> {
        on_client!(self, client => client.versions(name, rows))
    }

    pub(crate) fn skill(&self, name: &SkillName, selector: &Selector) -> Result<Skill> {
        on_client!(self, client => client.skill(name, selector))
    }

    /// All skills that can be called, as tools.
    pub(crate) fn tools(&self, format: ToolFormat) -> Result<Vec<ToolDefinition>> {
        on_client!(self, client => client.tools(format))
    }

    /// All skills, as a prompt lists them.
    pub(crate) fn prompt(&self) -> Result<String> {
        on_client!(self, client => client.prompt())
    }

    pub(crate) fn archive(&self, name: &SkillName, selector: &Selector, into: &mut File) -> Result<()> {
        on_client!(self, client => client.archive(name, selector, into))
    }

    pub(crate) fn delete(&self, name: &SkillName, version: &crate::skill::Version) -> Result<()> {
        on_client!(self, client => client.delete(name, version))
    }

    /// Runs something to its end; `hear` is told what it tells meanwhile.
    pub(crate) fn run(&self, request: RunRequest, on_event: Option<&mut OnEvent<'_>>) -> Result<RunResult> {
        match self {
            Self::Embedded(_) if request.spec.callback_url.is_some() => Err(Failure::new(
                Exit::Usage,
                "--callback-url: nothing stays here to tell anybody, and you see the end yourself; name a server by --server, or leave it out",
            )),
            Self::Embedded(local) => local.run(request, on_event),
            Self::Remote(remote) => remote.run(request, on_event),
        }
    }

    pub(crate) fn executions(&self, filter: &ExecutionListFilter) -> Result<Listed<Summary>> {
        on_client!(self, client => client.executions(filter))
    }

    pub(crate) fn execution(&self, id: ExecutionId) -> Result<Envelope> {
        on_client!(self, client => client.execution(id))
    }

    pub(crate) fn printed(&self, id: ExecutionId) -> Result<ProgramOutput> {
        on_client!(self, client => client.printed(id))
    }

    /// Tells all of an execution, from its beginning to its end.
    pub(crate) fn watch(&self, id: ExecutionId, on_event: &mut OnEvent<'_>) -> Result<()> {
        on_client!(self, client => client.watch(id, on_event))
    }

    /// Asks for an execution that nobody waits for.
    pub(crate) fn submit(&self, request: RunRequest) -> Result<Envelope> {
        match self {
            Self::Remote(remote) => remote.submit(request),
            Self::Embedded(_) => Err(Failure::new(
                Exit::Usage,
                "--async: nothing stays here to run it later; name a server by --server, or leave it out",
            )),
        }
    }

    /// An execution when it has ended, or as it stands after `within`.
    pub(crate) fn ended_within(&self, id: ExecutionId, within: Duration) -> Result<Envelope> {
        on_client!(self, client => client.ended_within(id, within))
    }

    pub(crate) fn cancel(&self, id: ExecutionId) -> Result<Envelope> {
        on_client!(self, client => client.cancel(id))
    }

    /// Copies one file artifact; what was promised of its size and digest is for the caller to check.
    pub(crate) fn file(&self, id: ExecutionId, file: &FileLink, into: &mut dyn Write) -> Result<()> {
        on_client!(self, client => client.file(id, file, into))
    }

    pub(crate) fn create_key(&self, new: NewKey) -> Result<FreshKey> {
        on_client!(self, client => client.create_key(new))
    }

    pub(crate) fn keys(&self, rows: usize) -> Result<Listed<Key>> {
        on_client!(self, client => client.keys(rows))
    }

    pub(crate) fn revoke_key(&self, id: KeyId) -> Result<Key> {
        on_client!(self, client => client.revoke_key(id))
    }

    pub(crate) fn rotate_key(&self, id: KeyId) -> Result<FreshKey> {
        on_client!(self, client => client.rotate_key(id))
    }

    pub(crate) fn set_secret(&self, name: &SecretName, value: &SecretValue) -> Result<Kept> {
        on_client!(self, client => client.set_secret(name, value))
    }

    pub(crate) fn secrets(&self, rows: usize) -> Result<Listed<Secret>> {
        on_client!(self, client => client.secrets(rows))
    }

    pub(crate) fn delete_secret(&self, name: &SecretName) -> Result<()> {
        on_client!(self, client => client.delete_secret(name))
    }
}

/// The server at `url`, with the key for it.
pub(crate) fn server(config: &Config, url: &str, console: &Console) -> Result<RemoteClient> {
    let remote = RemoteClient::new(url, key_for(config, url)?)?;
    if !remote.is_private() {
        console.say("warning: the API key travels unencrypted; use https");
    }
    Ok(remote)
}

/// The configured key; for a server on this machine the one in the data folder does.
fn key_for(config: &Config, url: &str) -> Result<SecretString> {
    if let Some(key) = &config.api_key {
        return Ok(key.expose_secret().into());
    }
    if remote::is_loopback(url)
        && let Some(key) = config.kept_admin_key()?
    {
        return Ok(key.reveal().into());
    }
    Err(Failure::refused(
        "no API key is configured for this server; set SKILLBOX_API_KEY",
    ))
}
