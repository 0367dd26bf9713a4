//! The start-up banner: address, data folder, backends, key.

use std::io::{IsTerminal as _, Write as _};
use std::net::SocketAddr;
use std::time::Duration;

use crate::api::sessions;
use crate::auth::ApiKey;
use crate::config::{Config, DataFolder};
use crate::engine::Engine;
use crate::error;
use crate::http::Dashboard;
use crate::server::AdminKey;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Greeting {
    /// On standard output.
    Banner,
    /// For example in a log, which must not contain the first key.
    Quiet,
}

pub(super) struct Facts<'a> {
    pub(super) config: &'a Config,
    pub(super) address: SocketAddr,
    pub(super) grpc: Option<SocketAddr>,
    pub(super) folder: &'a DataFolder,
    pub(super) key: &'a AdminKey,
    pub(super) engine: &'a Engine,
}

/// A backend that does not respond must not delay the banner.
const CHECK_MAX: Duration = Duration::from_secs(5);

/// Prints where the server is at once, and its backend as soon as that is known.
pub(super) async fn greet(greeting: Greeting, facts: &Facts<'_>) {
    let print = |text: String| {
        if greeting == Greeting::Banner {
            // The server runs even if its standard output is closed.
            let _ = std::io::stdout().lock().write_all(text.as_bytes());
        }
    };
    print(text(facts) + &dashboard(greeting, facts).await);
    tracing::info!(address = %facts.address, data = %facts.folder.path().display(), "Serving on {}", facts.address);
    let sandbox = tokio::time::timeout(CHECK_MAX, facts.engine.sandbox().check()).await;
    let sandbox = match sandbox {
        Ok(Ok(kind)) => Ok(kind.as_str()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("the sandbox backend does not respond".to_owned()),
    };
    if let Err(why) = &sandbox {
        tracing::warn!("Sandbox not ready: {}", why.replace('\n', "; "));
    }
    let degraded = facts.engine.sandbox().degraded().join(" and ");
    if !degraded.is_empty() {
        tracing::warn!(
            "Sandbox degraded: memory and CPU limits ({degraded}) are best effort without cgroups; results are marked, `skillbox doctor` shows the reason"
        );
    }
    print(line("sandbox", &sandbox_state(facts.engine, &sandbox)));
}

/// Where the dashboard is. Only a terminal gets a link that signs in: other output ends up in logs.
async fn dashboard(greeting: Greeting, facts: &Facts<'_>) -> String {
    if facts.config.dashboard == Dashboard::Closed {
        return String::new();
    }
    let url = base_url(facts);
    let is_read = greeting == Greeting::Banner && std::io::stdout().is_terminal();
    let link = match facts.key {
        AdminKey::Created(key) | AdminKey::Existing(key) if is_read => {
            sign_in_link(facts.engine, key, &url).await
        }
        AdminKey::Created(_) | AdminKey::Existing(_) | AdminKey::Unknown => Ok(None),
    };
    match link {
        Ok(Some(link)) => line(
            "dashboard",
            &format!("{link}  (works once, for 10 minutes; then `skillbox open`)"),
        ),
        Ok(None) => line(
            "dashboard",
            &format!("{url}/ui/  (`skillbox open` prints a link that signs in)"),
        ),
        Err(error) => {
            tracing::warn!(%error, "No sign-in link created");
            String::new()
        }
    }
}

async fn sign_in_link(engine: &Engine, key: &ApiKey, url: &str) -> Result<Option<String>, error::Error> {
    let caller = engine.keys().authenticate(key.reveal()).await?;
    let link = sessions::create_link(engine, &caller, url).await?;
    Ok(Some(link.url))
}

fn base_url(facts: &Facts<'_>) -> String {
    let configured = facts.config.server_url.as_deref();
    configured.map_or_else(
        || format!("http://{}", reachable(facts.address)),
        |url| url.trim_end_matches('/').to_owned(),
    )
}

fn line(name: &str, value: &str) -> String {
    format!("  {name:<21}{value}\n")
}

fn text(facts: &Facts<'_>) -> String {
    let Facts {
        config: _,
        address,
        grpc,
        folder,
        key,
        engine: _,
    } = facts;
    let url = base_url(facts);
    let mut text = format!("Skillbox {}\n", env!("CARGO_PKG_VERSION"));
    text += &line("API", &format!("{url}  (documented at {url}/openapi.json)"));
    if let Some(grpc) = grpc {
        let schema = format!("{url}/proto/skillbox/v1/skillbox.proto");
        text += &line(
            "gRPC API",
            &format!("{}  (described at {schema})", reachable(*grpc)),
        );
    }
    text += &line("data", &folder.path().display().to_string());
    let file = folder.admin_key_path();
    let told = match key {
        AdminKey::Created(key) => format!(
            "{}  (shown only once; stored in {})",
            key.reveal(),
            file.display()
        ),
        AdminKey::Existing(_) => format!("in {}", file.display()),
        AdminKey::Unknown => {
            "none in the data folder; use an existing key, or run `skillbox key recover`".to_owned()
        }
    };
    text += &line("administrator's key", &told);
    if !matches!(key, AdminKey::Unknown) {
        text += &line(
            "try",
            &format!(
                r#"curl -s {url}/v1/executions -H "Authorization: Bearer $(cat {})" -H 'Content-Type: application/json' -d '{{"code": "6 * 7", "language": "python"}}'"#,
                file.display()
            ),
        );
    }
    if !address.ip().is_loopback() {
        text += &line(
            "note",
            "open to the network without TLS: put a TLS proxy in front, and name it in server_url or allowed_hosts",
        );
    }
    text
}

/// `native: ready`; of `auto`, that it chose.
fn sandbox_state(engine: &Engine, sandbox: &Result<&str, String>) -> String {
    let configured = engine.sandbox().name();
    let degraded = match engine.sandbox().degraded() {
        [] => String::new(),
        promises => format!("; DEGRADED: {}", promises.join(", ")),
    };
    match sandbox {
        Ok(kind) if *kind == configured => format!("{kind}: ready{degraded}"),
        Ok(kind) => format!("{kind}: ready{degraded} (chosen by {configured})"),
        Err(why) => format!("{configured}: NOT READY: {why}\n  run `skillbox doctor` for details"),
    }
}

/// An address for clients, which cannot connect to 0.0.0.0.
#[must_use]
pub fn reachable(address: SocketAddr) -> SocketAddr {
    if !address.ip().is_unspecified() {
        return address;
    }
    let loopback: std::net::IpAddr = match address {
        SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
        SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
    };
    SocketAddr::new(loopback, address.port())
}
