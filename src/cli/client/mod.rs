//! Executes commands with an engine inside this process or with a server over REST.

mod blobs;
mod deps;
mod embedded;
mod executions;
mod keys;
#[cfg(feature = "mcp")]
mod mcp;
mod remote;
mod run_body;
mod runs;
mod secrets;
mod sessions;
mod skills;
mod tools;
mod watch;
mod webhooks;

use secrecy::{ExposeSecret as _, SecretString};

use crate::api::List;
use crate::cli::console::Console;
use crate::cli::failure::{Failure, Result};
use crate::config::Config;
use crate::limits;

pub(crate) use embedded::EmbeddedClient;
pub(crate) use executions::{ExecutionListFilter, InstallReports, RunResult};
pub(crate) use remote::RemoteClient;

#[derive(Debug)]
pub(crate) enum Client {
    /// An engine inside this process, over the data folder.
    Embedded(EmbeddedClient),
    Remote(RemoteClient),
}

/// Rows of a list, and whether more exist.
#[derive(Debug)]
pub(crate) struct Listed<T> {
    pub(crate) items: Vec<T>,
    pub(crate) more: bool,
}

/// Empty pages of one list after which reading stops.
const EMPTY_PAGES_MAX: usize = 50;

/// Reads pages until `rows` rows are there. A server may send empty pages, but not without end.
fn listed<T>(
    rows: usize,
    mut read_page: impl FnMut(usize, Option<String>) -> Result<List<T>>,
) -> Result<Listed<T>> {
    let (mut items, mut token, mut empty_pages) = (Vec::new(), None, 0);
    loop {
        let missing = (rows - items.len()).min(limits::PAGE_ROWS_MAX as usize);
        let page = read_page(missing, token.take())?;
        empty_pages += usize::from(page.items.is_empty());
        items.extend(page.items.into_iter().take(missing));
        token = page.next_page_token;
        if token.is_none() || empty_pages == EMPTY_PAGES_MAX || items.len() >= rows {
            return Ok(Listed {
                items,
                more: token.is_some(),
            });
        }
    }
}

impl Client {
    /// Connects to the configured server, or starts an engine if none is configured.
    pub(crate) fn open(config: &Config, console: &Console) -> Result<Self> {
        match &config.server_url {
            Some(url) => server(config, url, console).map(Self::Remote),
            None => Self::embedded(config),
        }
    }

    /// Starts an engine regardless of the configuration, for unpublished skills.
    pub(crate) fn embedded(config: &Config) -> Result<Self> {
        EmbeddedClient::open(config).map(Self::Embedded)
    }

    pub(crate) fn close(self) {
        match self {
            Self::Embedded(local) => local.close(),
            Self::Remote(_) => {}
        }
    }
}

pub(crate) fn server(config: &Config, url: &str, console: &Console) -> Result<RemoteClient> {
    let remote = RemoteClient::new(url, key_for(config, url)?)?;
    if !remote.is_private() {
        console.say("warning: the API key travels unencrypted; use https");
    }
    Ok(remote)
}

/// The configured key. A server on this machine also accepts the key in the data folder.
pub(crate) fn key_for(config: &Config, url: &str) -> Result<SecretString> {
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
