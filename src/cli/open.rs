//! `skillbox open`: signs a browser in to the dashboard with a link that works once.

use std::process::{Command, Stdio};

use clap::Args;

use crate::api::sessions::SignInUrl;
use crate::cli::client;
use crate::cli::console::{Console, Format, Rows};
use crate::cli::exit::Exit;
use crate::cli::failure::{Failure, Result};
use crate::config::Config;
use crate::server;

#[derive(Debug, Args)]
#[command(after_help = "\
The link works once, within 10 minutes, and signs in with the API key of this command. On a desktop it is also opened in the
browser, whose command line other users of this machine can see for a moment: there, use --print.

Examples:
  skillbox open
  skillbox open --print --server https://skillbox.example")]
pub(crate) struct OpenArgs {
    /// Print the link and open no browser
    #[arg(long)]
    print: bool,
}

pub(crate) fn open(args: &OpenArgs, config: &Config, console: &Console) -> Result<Exit> {
    let url = match &config.server_url {
        Some(url) => url.clone(),
        None => local_url(config)?,
    };
    let link = client::server(config, &url, console)?.create_sign_in_link()?;
    if console.format().is_some() {
        console.data(Format::Json, &link, |link| {
            Rows::facts([
                ("url", link.url.clone()),
                ("expires", console.moment(link.expires_at)),
            ])
        })?;
        return Ok(Exit::Success);
    }
    console.text(&format!("{}\n", link.url))?;
    if !args.print && console.is_for_person() {
        open_browser(&link);
    }
    Ok(Exit::Success)
}

/// The server that `skillbox serve` starts with this configuration.
pub(super) fn local_url(config: &Config) -> Result<String> {
    if config.listen.port() == 0 {
        return Err(Failure::new(
            Exit::Usage,
            "api.port is 0, so the server's port is unknown; name the server with --server",
        ));
    }
    Ok(format!("http://{}", server::reachable(config.listen)))
}

/// The link is printed already, so a desktop that cannot open it is no error.
fn open_browser(link: &SignInUrl) {
    let Some(program) = opener() else { return };
    if is_address(&link.url) {
        let _ = Command::new(program)
            .arg(&link.url)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
    }
}

/// A server's answer becomes an argument: only an address, never an option or a file.
fn is_address(url: &str) -> bool {
    let has_scheme = ["http://", "https://"]
        .iter()
        .any(|scheme| url.starts_with(scheme));
    has_scheme && url.bytes().all(|byte| byte.is_ascii_graphic())
}

/// The desktop's program that opens addresses; `None` without a desktop.
fn opener() -> Option<&'static str> {
    let is_set = |variable: &str| std::env::var_os(variable).is_some_and(|value| !value.is_empty());
    if cfg!(target_os = "macos") {
        Some("open")
    } else if cfg!(unix) && (is_set("DISPLAY") || is_set("WAYLAND_DISPLAY")) {
        Some("xdg-open")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// W-12: a hostile server chooses neither a program nor its options.
    #[test]
    fn opens_only_addresses() {
        for address in [
            "http://localhost:8080/ui/#token=a-B_9",
            "https://box.example/ui/#token=x",
        ] {
            assert!(is_address(address), "{address}");
        }
        for other in [
            "--help",
            "-a http://x",
            "file:///etc/passwd",
            "javascript:alert(1)",
            "HTTP://x",
            "http://x y",
            "http://x\n--help",
            "http://\u{202e}",
            "/bin/sh",
            "",
        ] {
            assert!(!is_address(other), "{other:?}");
        }
    }
}
