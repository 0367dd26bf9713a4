//! Secrets at the command line, here and on a server: read from files and pipes, never from arguments.

use std::io::Write as _;
use std::process::Stdio;

use crate::cli_shell::{CommandOutput, Shell, command_output};
use crate::server::Server;

fn piped(shell: &Shell, args: &[&str], input: &str) -> CommandOutput {
    let mut command = shell.command(args);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    command_output(child.wait_with_output().unwrap())
}

fn is_managed(shell: &Shell) {
    let set = piped(
        shell,
        &["secret", "set", "API_TOKEN", "--value-file", "-"],
        "hunter2\n",
    );
    assert_eq!((set.code, set.stdout.as_str()), (0, ""), "{}", set.stderr);
    assert!(set.stderr.contains("set secret API_TOKEN") && !set.stderr.contains("hunter2"));
    std::fs::write(shell.folder().join("key.pem"), "-----BEGIN\nabc\n").unwrap();
    let replaced = shell.run(&["secret", "set", "API_TOKEN", "--value-file", "key.pem", "--exact"]);
    assert!(replaced.stderr.contains("replaced"), "{}", replaced.stderr);
    let listed = shell.json(&["secret", "list"]);
    assert_eq!(
        (listed[0]["name"].as_str(), listed[1].is_null()),
        (Some("API_TOKEN"), true)
    );
    assert_eq!(listed[0]["value"], serde_json::Value::Null);
    let refused = shell.run(&["secret", "set", "PATH", "--value-file", "key.pem"]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    let empty = piped(shell, &["secret", "set", "EMPTY", "--value-file", "-"], "\n");
    assert_eq!(empty.code, 3, "{}", empty.stderr);
    let asked = shell.run(&["secret", "set", "API_TOKEN"]);
    assert!(
        asked.code == 2 && asked.stderr.contains("--value-file -"),
        "{}",
        asked.stderr
    );
    assert_eq!(shell.run(&["secret", "delete", "API_TOKEN"]).code, 0);
    assert_eq!(shell.run(&["secret", "delete", "API_TOKEN"]).code, 3);
}

#[test]
fn manages_secrets_locally() {
    let shell = Shell::new();
    is_managed(&shell);
    let key = std::fs::read_to_string(shell.data().join("master.key")).unwrap();
    assert_eq!(key.trim().len(), 44);
}

#[test]
fn manages_secrets_on_server() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("data"));
    let shell = Shell::new()
        .with("SKILLBOX_SERVER_URL", &server.url)
        .with("SKILLBOX_API_KEY", &server.key());
    is_managed(&shell);
    assert!(!server.log().contains("hunter2"));
}

/// A wrong key is an error that says what to do, and never a wrong value.
#[test]
fn other_master_key_cannot_decrypt_secrets() {
    let shell = Shell::new();
    let set = piped(
        &shell,
        &["secret", "set", "API_TOKEN", "--value-file", "-"],
        "hunter2",
    );
    assert_eq!(set.code, 0, "{}", set.stderr);
    let front_matter = "lang: bash\npermissions: {secrets: [API_TOKEN]}\n";
    shell.skill("teller", front_matter, "scripts/main.sh", "true");
    let other = "0011223344556677001122334455667700112233445566770011223344556677";
    let with_other = |key: &str| {
        let mut command = shell.command(&["run", "./teller"]);
        command_output(command.env("SKILLBOX_MASTER_KEY", key).output().unwrap())
    };
    let refused = with_other(other);
    assert_eq!(refused.code, 3, "{}", refused.stderr);
    assert!(
        refused
            .stderr
            .contains("`API_TOKEN` was sealed with another master key"),
        "{}",
        refused.stderr
    );
    assert!(!refused.stderr.contains(other));
    for wrong in ["short-key", &"0".repeat(64)] {
        let refused = with_other(wrong);
        assert_eq!(refused.code, 78, "{}", refused.stderr);
        assert!(refused.stderr.contains("secrets.master_key") && !refused.stderr.contains(wrong));
    }
}
