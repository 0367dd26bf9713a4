//! `skillbox exec rerun`: requests of executions, run again on this machine and on a server.

use crate::cli_shell::Shell;
use crate::server::Server;
use crate::world::{Backend, World};

/// No number and no space may be written another way.
const INPUT: &str = r#"{"n": 1e400,  "x":0.10}"#;

/// Runs code that hands its input back, and then its request again.
fn reruns(shell: &Shell) {
    let code = "cat \"$SANDBOX_INPUT_FILE\" > \"$SANDBOX_OUTPUT\"";
    std::fs::write(shell.folder().join("echo.sh"), code).unwrap();
    let first = shell.run(&["run", "echo.sh", "--input", INPUT, "--format", "json"]);
    assert_eq!(first.code, 0, "{}", first.stderr);
    for options in [&["exec", "rerun"][..], &["exec", "rerun", "--latest"]] {
        let again = shell.run(&[options, &["--format", "json"]].concat());
        assert_eq!(again.code, 0, "{}", again.stderr);
        assert!(again.stdout.contains(INPUT), "{}", again.stdout);
    }
    let listed = shell.json(&["exec", "list"]);
    assert_eq!(listed.as_array().unwrap().len(), 3);
    // The exit code is that of the program's run, not of the command.
    std::fs::write(shell.folder().join("fails.sh"), "exit 3").unwrap();
    let failed = shell.run(&["run", "fails.sh"]);
    let again = shell.run(&["exec", "rerun"]);
    assert!(failed.code != 0 && again.code == failed.code, "{}", again.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_requests_again_here_and_on_a_server() {
    if World::on(Backend::Native).await.is_none() {
        return;
    }
    reruns(&Shell::new().with("SKILLBOX_SANDBOX_BACKEND", "native"));
    let home = tempfile::tempdir().unwrap();
    let server = Server::start_with(home.path(), &[("SKILLBOX_SANDBOX_BACKEND", "native")]);
    let remote = Shell::new()
        .with("SKILLBOX_SERVER_URL", &server.url)
        .with("SKILLBOX_API_KEY", &server.key());
    reruns(&remote);
}

#[tokio::test(flavor = "multi_thread")]
async fn explains_why_a_request_cannot_run_again() {
    if World::on(Backend::Native).await.is_none() {
        return;
    }
    let shell = Shell::new()
        .with("SKILLBOX_SANDBOX_BACKEND", "native")
        .with("SKILLBOX_KEEP_REQUEST", "off");
    std::fs::write(shell.folder().join("x.sh"), "echo").unwrap();
    assert_eq!(shell.run(&["run", "x.sh"]).code, 0);
    let refused = shell.run(&["exec", "rerun"]);
    assert_ne!(refused.code, 0);
    for part in [
        "was not kept",
        "executions.keep_request",
        "send the request again",
    ] {
        assert!(refused.stderr.contains(part), "{}", refused.stderr);
    }
}
