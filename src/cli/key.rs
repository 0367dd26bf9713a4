//! `skillbox key`: create, list, revoke and replace API keys.

use clap::Subcommand;

use crate::api::keys::{CreateKey, FreshKey, KeyInfo};
use crate::auth::Scope;
use crate::cli::client::Client;
use crate::cli::console::{Console, Format, Rows};
use crate::cli::exec::rows;
use crate::cli::exit::Exit;
use crate::cli::failure::Result;
use crate::cli::id_argument::IdArgument;
use crate::config::Config;
use crate::ids::{KeyId, Tenant};
use crate::limits;
use crate::server::{self, Assembled};

#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    #[command(flatten)]
    Managed(KeyManagement),
    /// Create a new administrator key in the data folder if every other key is lost
    #[command(after_help = "\
The folder's owner needs no key for it. Whatever server is configured, this works on the data folder of this machine.

Example:
  skillbox key recover")]
    Recover,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeyManagement {
    /// Create an API key; its secret is printed once
    #[command(after_help = "Example:\n  skillbox key create ci --scope run --expires 2030-01-01T00:00:00Z")]
    Create {
        /// Name of the key
        name: String,
        /// Scope: run, skills or admin; may be repeated
        #[arg(long = "scope", value_parser = scope, default_value = "run")]
        scopes: Vec<Scope>,
        /// Tenant of the key; by default your own
        #[arg(long)]
        tenant: Option<Tenant>,
        /// Expiry, such as 2030-01-01T00:00:00Z
        #[arg(long, value_name = "TIME", value_parser = moment_given)]
        expires: Option<jiff::Timestamp>,
    },
    /// List keys, newest first, including revoked ones
    #[command(after_help = "Example:\n  skillbox key list --format json")]
    List {
        /// Maximum number of rows
        #[arg(long, default_value_t = limits::PAGE_ROWS as usize, value_parser = rows)]
        limit: usize,
    },
    /// Revoke a key permanently, with immediate effect
    #[command(after_help = "Example:\n  skillbox key revoke 5e1f09ab")]
    Revoke {
        /// ID of the key, as shown by `key list`, or its first or last digits
        id: IdArgument<KeyId>,
    },
    /// Replace a key by a new one with the same name, scopes and expiry; the old key stops working immediately
    #[command(after_help = "Example:\n  skillbox key rotate 5e1f09ab")]
    Rotate {
        /// ID of the key, as shown by `key list`, or its first or last digits
        id: IdArgument<KeyId>,
    },
}

fn scope(text: &str) -> std::result::Result<Scope, String> {
    text.parse()
        .map_err(|_| format!("one of {}", Scope::ALL.map(Scope::as_str).join(", ")))
}

fn moment_given(text: &str) -> std::result::Result<jiff::Timestamp, String> {
    text.parse()
        .map_err(|_| "must be a date and a time with a zone, such as 2030-01-01T00:00:00Z".to_owned())
}

impl KeyManagement {
    pub(crate) fn makes_key(&self) -> bool {
        matches!(self, Self::Create { .. } | Self::Rotate { .. })
    }
}

pub(crate) fn key(command: KeyManagement, client: &Client, console: &Console) -> Result<Exit> {
    match command {
        KeyManagement::Create {
            name,
            scopes,
            tenant,
            expires,
        } => {
            let new = CreateKey {
                name,
                scopes,
                tenant,
                expires_at: expires,
            };
            print_fresh(&client.create_key(new)?, console)?;
        }
        KeyManagement::List { limit } => {
            let listed = client.keys(limit)?;
            console.data(Format::Table, &listed.items, |keys| Rows {
                heading: &["key", "name", "hint", "scopes", "tenant", "created", "expires"],
                rows: keys.iter().map(|key| row(key, console)).collect(),
                optional: &["hint", "tenant", "created", "scopes"],
            })?;
            if listed.more {
                console.say("more rows exist; raise --limit");
            }
        }
        KeyManagement::Revoke { id } => {
            let id = find(id, client)?;
            let key = client.revoke_key(id)?;
            console.success(format!("key {id} ({}) is revoked", key.name));
        }
        KeyManagement::Rotate { id } => print_fresh(&client.rotate_key(find(id, client)?)?, console)?,
    }
    Ok(Exit::Success)
}

pub(crate) fn recover(config: &Config, console: &Console) -> Result<Exit> {
    let runtime = server::runtime()?;
    let recovered = runtime.block_on(async {
        let Assembled { engine, folder } = server::assemble(config).await?;
        server::recover_key(&engine, &folder).await?;
        Ok::<_, server::Error>(folder.admin_key_path())
    });
    server::end_runtime(runtime);
    let file = recovered?;
    console.success(format!("new administrator key saved in {}", file.display()));
    console
        .say("if the lost key may have leaked, revoke it with `skillbox key list` and `skillbox key revoke`");
    Ok(Exit::Success)
}

fn find(id: IdArgument<KeyId>, client: &Client) -> Result<KeyId> {
    id.find("key", || {
        let listed = client.keys(limits::ID_SEARCH_ROWS)?;
        Ok(listed.items.iter().map(|key| key.key_id).collect())
    })
}

fn print_fresh(fresh: &FreshKey, console: &Console) -> Result<()> {
    if console.format() == Some(Format::Value) {
        return console.text(&format!("{}\n", fresh.api_key));
    }
    console.data(Format::Json, fresh, |fresh| Rows {
        heading: &["key", "name", "secret"],
        rows: vec![vec![
            fresh.key.key_id.to_string(),
            fresh.key.name.clone(),
            fresh.api_key.clone(),
        ]],
        ..Rows::default()
    })?;
    console.say("save the key now: it is not shown again");
    Ok(())
}

fn row(key: &KeyInfo, console: &Console) -> Vec<String> {
    let scopes: Vec<_> = key.scopes.iter().map(|scope| scope.as_str()).collect();
    let ends = match (key.revoked_at, key.expires_at) {
        (Some(at), _) => format!("revoked {}", console.moment(at)),
        (None, Some(at)) => console.moment(at),
        (None, None) => "never".to_owned(),
    };
    vec![
        console.id(key.key_id),
        key.name.clone(),
        key.hint.clone(),
        scopes.join(","),
        key.tenant.to_string(),
        console.moment(key.created_at),
        ends,
    ]
}
