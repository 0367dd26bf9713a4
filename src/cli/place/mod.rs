//! Where commands are carried out: by an engine inside this process, or by a server over REST.

mod asked;
mod blobs;
mod deps;
mod kept;
mod local;
mod remote;
mod runs;
mod tools;
mod watch;
mod webhooks;

use std::fs::File;
use std::io::Write;
use std::time::Duration;

use secrecy::{ExposeSecret as _, SecretString};

use crate::auth::Scopes;
use crate::cli::console::Console;
use crate::cli::exit::Exit;
use crate::cli::failure::{Failure, Result};
use crate::cli::watched::Hear;
use crate::config::Config;
use crate::engine::{Ask, NewKey, What};
use crate::execution::{Envelope, FileLink, LogLine, Status, Summary};
use crate::http::{FreshKey, Key, Secret, Skill, SkillSummary, ToolDefinition};
use crate::ids::{ExecutionId, KeyId};
use crate::secret::SecretValue;
use crate::skill::{SecretName, Selector, SkillName, ToolFormat};
use crate::store::Kept;

pub(crate) use local::Local;
pub(crate) use remote::Remote;

/// Carries out commands.
#[derive(Debug)]
pub(crate) enum Place {
    /// An engine of our own over the data folder.
    Here(Local),
    /// A server.
    There(Remote),
}

/// Rows of a list, and whether there are more.
#[derive(Debug)]
pub(crate) struct Listed<T> {
    pub(crate) items: Vec<T>,
    pub(crate) more: bool,
}

/// Which executions to list.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) status: Option<Status>,
    pub(crate) skill: Option<SkillName>,
    pub(crate) rows: usize,
}

/// What a program printed.
#[derive(Debug)]
pub(crate) struct Printed {
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) truncated: bool,
    /// What it logged by the helper `log`.
    pub(crate) lines: Vec<LogLine>,
    pub(crate) lines_truncated: bool,
}

/// An archive that was published.
#[derive(Debug)]
pub(crate) struct Pushed {
    pub(crate) skill: Skill,
    /// The same content was there already.
    pub(crate) again: bool,
}

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) envelope: Envelope,
    /// Ctrl-C ended it.
    pub(crate) interrupted: bool,
}

/// An API key as asked for.
#[derive(Debug)]
pub(crate) struct KeyWanted {
    pub(crate) name: String,
    pub(crate) scopes: Scopes,
    pub(crate) tenant: Option<crate::ids::Tenant>,
    pub(crate) expires_at: Option<jiff::Timestamp>,
}

macro_rules! at {
    ($place:expr, $it:ident => $call:expr) => {
        match $place {
            Place::Here($it) => $call,
            Place::There($it) => $call,
        }
    };
}

impl Place {
    /// The configured server, or this process where none is.
    pub(crate) fn open(config: &Config, console: &Console) -> Result<Self> {
        match &config.server_url {
            Some(url) => server(config, url, console).map(Self::There),
            None => Self::here(config),
        }
    }

    /// This process, whatever is configured: for skills that are not published.
    pub(crate) fn here(config: &Config) -> Result<Self> {
        Local::open(config).map(Self::Here)
    }

    /// Ends what is left to the background.
    pub(crate) fn close(self) {
        match self {
            Self::Here(local) => local.close(),
            Self::There(_) => {}
        }
    }

    pub(crate) fn publish(&self, archive: File, name: Option<&SkillName>) -> Result<Pushed> {
        at!(self, place => place.publish(archive, name))
    }

    pub(crate) fn skills(&self, rows: usize) -> Result<Listed<SkillSummary>> {
        at!(self, place => place.skills(rows))
    }

    pub(crate) fn versions(&self, name: &SkillName, rows: usize) -> Result<Listed<SkillSummary>> {
        at!(self, place => place.versions(name, rows))
    }

    pub(crate) fn skill(&self, name: &SkillName, selector: &Selector) -> Result<Skill> {
        at!(self, place => place.skill(name, selector))
    }

    /// All skills that can be called, as tools.
    pub(crate) fn tools(&self, format: ToolFormat) -> Result<Vec<ToolDefinition>> {
        at!(self, place => place.tools(format))
    }

    /// All skills, as a prompt lists them.
    pub(crate) fn prompt(&self) -> Result<String> {
        at!(self, place => place.prompt())
    }

    pub(crate) fn archive(&self, name: &SkillName, selector: &Selector, into: &mut File) -> Result<()> {
        at!(self, place => place.archive(name, selector, into))
    }

    pub(crate) fn delete(&self, name: &SkillName, version: &crate::skill::Version) -> Result<()> {
        at!(self, place => place.delete(name, version))
    }

    /// Runs something to its end; `hear` is told what it tells meanwhile.
    pub(crate) fn run(&self, what: What, ask: Ask, hear: Option<&mut Hear<'_>>) -> Result<Ran> {
        match (self, what) {
            (Self::Here(_), _) if ask.callback_url.is_some() => Err(Failure::new(
                Exit::Usage,
                "--callback-url: nothing stays here to tell anybody, and you see the end yourself; name a server by --server, or leave it out",
            )),
            (Self::Here(local), what) => local.run(what, ask, hear),
            (Self::There(remote), what) => remote.run(asked::what(what)?, &ask, hear),
        }
    }

    pub(crate) fn executions(&self, wanted: &Wanted) -> Result<Listed<Summary>> {
        at!(self, place => place.executions(wanted))
    }

    pub(crate) fn execution(&self, id: ExecutionId) -> Result<Envelope> {
        at!(self, place => place.execution(id))
    }

    pub(crate) fn printed(&self, id: ExecutionId) -> Result<Printed> {
        at!(self, place => place.printed(id))
    }

    /// Tells all of an execution, from its beginning to its end.
    pub(crate) fn watch(&self, id: ExecutionId, hear: &mut Hear<'_>) -> Result<()> {
        at!(self, place => place.watch(id, hear))
    }

    /// Asks for an execution that nobody waits for.
    pub(crate) fn submit(&self, what: What, ask: &Ask) -> Result<Envelope> {
        match (self, asked::what(what)?) {
            (Self::There(remote), (_, what)) => remote.submit(what, ask),
            (Self::Here(_), _) => Err(Failure::new(
                Exit::Usage,
                "--async: nothing stays here to run it later; name a server by --server, or leave it out",
            )),
        }
    }

    /// An execution when it has ended, or as it stands after `within`.
    pub(crate) fn ended_within(&self, id: ExecutionId, within: Duration) -> Result<Envelope> {
        at!(self, place => place.ended_within(id, within))
    }

    pub(crate) fn cancel(&self, id: ExecutionId) -> Result<Envelope> {
        at!(self, place => place.cancel(id))
    }

    /// Copies one file artifact; what was promised of its size and digest is for the caller to check.
    pub(crate) fn file(&self, id: ExecutionId, file: &FileLink, into: &mut dyn Write) -> Result<()> {
        at!(self, place => place.file(id, file, into))
    }

    pub(crate) fn create_key(&self, wanted: KeyWanted) -> Result<FreshKey> {
        at!(self, place => place.create_key(wanted))
    }

    pub(crate) fn keys(&self, rows: usize) -> Result<Listed<Key>> {
        at!(self, place => place.keys(rows))
    }

    pub(crate) fn revoke_key(&self, id: KeyId) -> Result<Key> {
        at!(self, place => place.revoke_key(id))
    }

    pub(crate) fn rotate_key(&self, id: KeyId) -> Result<FreshKey> {
        at!(self, place => place.rotate_key(id))
    }

    pub(crate) fn set_secret(&self, name: &SecretName, value: &SecretValue) -> Result<Kept> {
        at!(self, place => place.set_secret(name, value))
    }

    pub(crate) fn secrets(&self, rows: usize) -> Result<Listed<Secret>> {
        at!(self, place => place.secrets(rows))
    }

    pub(crate) fn delete_secret(&self, name: &SecretName) -> Result<()> {
        at!(self, place => place.delete_secret(name))
    }
}

impl From<KeyWanted> for NewKey {
    fn from(wanted: KeyWanted) -> Self {
        let KeyWanted {
            name,
            scopes,
            tenant,
            expires_at,
        } = wanted;
        Self {
            name,
            scopes,
            tenant,
            expires_at,
        }
    }
}

/// The server at `url`, with the key for it.
pub(crate) fn server(config: &Config, url: &str, console: &Console) -> Result<Remote> {
    let remote = Remote::new(url, key_for(config, url)?)?;
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
