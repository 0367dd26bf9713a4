//! `skillbox serve` as an operator meets it: the banner, the first key, the end.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Child;

use crate::cli_shell::Shell;

/// Starts a server on a free port and reads its banner.
fn start(shell: &Shell, args: &[&str]) -> (Child, String) {
    let mut all = vec!["serve", "--port", "0"];
    all.extend_from_slice(args);
    let mut server = shell.spawn(&all);
    let mut banner = String::new();
    let mut lines = BufReader::new(server.stdout.as_mut().unwrap());
    while !banner.contains("  sandbox") {
        assert_ne!(
            lines.read_line(&mut banner).unwrap(),
            0,
            "no whole banner: {banner}"
        );
    }
    (server, banner)
}

fn end(mut server: Child) -> (i32, String) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(server.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let code = server.wait().unwrap().code().unwrap_or(-1);
    let mut log = String::new();
    server.stderr.take().unwrap().read_to_string(&mut log).unwrap();
    (code, log)
}

/// T-16: on standard output once, in the log never.
#[test]
fn prints_first_key_once_and_never_logs_it() {
    let shell = Shell::new()
        .with("SKILLBOX_DOCKER_HOST", "unix:///nowhere.sock")
        .with("SKILLBOX_SANDBOX_BACKEND", "docker")
        .with("SKILLBOX_LOG", "trace");
    let (server, banner) = start(&shell, &[]);
    let key = std::fs::read_to_string(shell.data().join("admin.key")).unwrap();
    let key = key.trim();
    assert!(banner.contains(key), "{banner}");
    assert!(banner.contains("NOT READY"), "{banner}");
    // W-09: a pipe may end in a log, so it gets no link that signs in.
    assert!(
        banner.contains("/ui/ ") && !banner.contains("#token="),
        "{banner}"
    );
    let (code, log) = end(server);
    assert_eq!(code, 0, "{log}");
    assert!(!log.contains(key) && log.contains("Serving on"));

    let (server, banner) = start(&shell, &[]);
    assert!(!banner.contains(key) && banner.contains("admin.key"), "{banner}");
    let (code, log) = end(server);
    assert_eq!(code, 0, "{log}");
    assert!(!log.contains(key));
}

/// F-26: for a backup: the database of a server that has ended is one file.
#[test]
fn stopped_server_leaves_single_database_file() {
    let shell = Shell::new().with("SKILLBOX_DOCKER_HOST", "unix:///nowhere.sock");
    let (server, _banner) = start(&shell, &[]);
    assert!(shell.data().join("skillbox.db-wal").exists());
    let (code, log) = end(server);
    assert_eq!(code, 0, "{log}");
    assert!(!shell.data().join("skillbox.db-wal").exists());
}

/// Where standard output is kept as a log, nothing is printed there.
#[test]
fn quiet_server_prints_nothing() {
    let shell = Shell::new()
        .with("SKILLBOX_DOCKER_HOST", "unix:///nowhere.sock")
        .with("SKILLBOX_SANDBOX_BACKEND", "docker");
    let mut server = shell.spawn(&["serve", "--port", "0", "--quiet"]);
    let mut log = String::new();
    let mut lines = BufReader::new(server.stderr.as_mut().unwrap());
    while !log.contains("Sandbox not ready") {
        assert_ne!(lines.read_line(&mut log).unwrap(), 0, "{log}");
    }
    let mut printed = String::new();
    let mut stdout = server.stdout.take().unwrap();
    assert_eq!(end(server).0, 0);
    stdout.read_to_string(&mut printed).unwrap();
    assert_eq!(printed, "");
    assert!(shell.data().join("admin.key").is_file());
}
