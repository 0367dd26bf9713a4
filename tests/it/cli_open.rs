//! `skillbox open` and the banner of `serve`: links that sign a browser in.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use crate::cli_shell::Shell;
use crate::server::{Server, eventually, free_port};
use crate::terminal::{TERMINAL, Terminal};

/// A server over the data folder of `shell`, which then finds it by its configuration.
fn serve(shell: Shell) -> (Shell, Server) {
    let port = free_port();
    let server = Server::start_with(&shell.data(), &[("SKILLBOX_API_PORT", &port)]);
    (shell.with("SKILLBOX_API_PORT", &port), server)
}

/// Status of a sign-in with the token of `link`.
fn sign_in(server: &Server, link: &str) -> u16 {
    let prefix = format!("{}/ui/#token=", server.url);
    let token = link
        .trim()
        .strip_prefix(&prefix)
        .unwrap_or_else(|| panic!("{link}"));
    let reply = server.post_json("/v1/session", &json!({"token": token}));
    reply.status
}

/// W-09.
#[test]
fn open_prints_link_that_signs_in_once() {
    let (shell, server) = serve(Shell::new());
    let printed = shell.run(&["open"]);
    assert_eq!((printed.code, printed.stderr.as_str()), (0, ""));
    assert_eq!(sign_in(&server, &printed.stdout), 201);
    assert_eq!(sign_in(&server, &printed.stdout), 401);

    // By its address and a key, from another data folder.
    let other = Shell::new()
        .with("SKILLBOX_SERVER_URL", &server.url)
        .with("SKILLBOX_API_KEY", &server.key());
    let link = other.json(&["open", "--print"]);
    assert!(link["expires_at"].is_string());
    assert_eq!(sign_in(&server, link["url"].as_str().unwrap()), 201);
    assert!(!server.log().contains("#token="), "{}", server.log());
}

#[test]
fn open_without_server_says_what_to_do() {
    let shell = Shell::new().with("SKILLBOX_API_PORT", &free_port());
    // Creates the key, without which the command would stop earlier.
    shell.run(&["key", "list"]);
    let refused = shell.run(&["open"]);
    assert_eq!(refused.code, 69, "{}", refused.stderr);
    assert!(
        refused.stderr.contains("start it with `skillbox serve`"),
        "{}",
        refused.stderr
    );
    let refused = shell.with("SKILLBOX_API_PORT", "0").run(&["open"]);
    assert!(refused.stderr.contains("--server"), "{}", refused.stderr);
}

/// Only for a person on a terminal with a desktop, and never with `--print`.
#[test]
fn open_starts_browser_on_desktop() {
    let (shell, server) = serve(Shell::new());
    let bin = shell.folder().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let opened = shell.folder().join("opened");
    let program = bin.join("xdg-open");
    let script = format!(
        "#!/bin/sh\nprintf '%s' \"$*\" > {0}.new && mv {0}.new {0}\n",
        opened.display()
    );
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", bin.display());
    let shell = shell.with("PATH", &path).with("DISPLAY", ":9");
    let plain = Terminal {
        has_colour: false,
        ..TERMINAL
    };
    for args in [&["open", "--print"][..], &["open", "--format", "json"]] {
        assert_eq!(plain.run(&shell, args).code, 0);
    }
    assert_eq!(shell.run(&["open"]).code, 0);
    let screen = plain.run(&shell, &["open"]);
    eventually("a browser is started", || opened.exists());
    let link = std::fs::read_to_string(&opened).unwrap();
    assert_eq!(screen.terminal.trim(), link, "only the last one");
    assert_eq!(sign_in(&server, &link), 201);
}

/// W-09: a person reads a terminal, a log keeps what it gets.
#[test]
fn serve_prints_link_to_terminal() {
    let shell = Shell::new().with("SKILLBOX_SANDBOX_BACKEND", "docker");
    let banner = TERMINAL.run_until(&shell, &["serve", "--port", "0"], "  sandbox");
    let line = banner.lines().find(|line| line.contains("  dashboard")).unwrap();
    assert!(line.contains("/ui/#token="), "{banner}");
    let closed = shell.with("SKILLBOX_DASHBOARD", "off");
    let banner = TERMINAL.run_until(&closed, &["serve", "--port", "0"], "  sandbox");
    assert!(!banner.contains("/ui/"), "{banner}");
}
