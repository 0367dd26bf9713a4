//! Webhooks at the command line, here and on a server.

use crate::cli_shell::{CommandOutput, Shell};
use crate::server::Server;

fn are_managed(shell: &Shell) {
    let secret = shell.run(&["webhook", "secret"]);
    assert_eq!(secret.code, 0, "{}", secret.stderr);
    assert!(secret.stdout.starts_with("whsec_"), "{}", secret.stdout);
    assert_eq!(shell.run(&["webhook", "secret"]).stdout, secret.stdout);
    let rotated = shell.run(&["webhook", "rotate"]);
    assert_ne!(rotated.stdout, secret.stdout);
    assert!(rotated.stderr.contains("also signs until"), "{}", rotated.stderr);
    let shown = shell.json(&["webhook", "secret"]);
    assert_eq!(shown["secret"], rotated.stdout.trim());
    assert!(shown["previous_until"].is_string());
    assert_eq!(shell.json(&["webhook", "deliveries"]), serde_json::json!([]));
    let never = "019a0000-0000-7000-8000-000000000000";
    assert_eq!(shell.run(&["webhook", "deliveries", never]).code, 3);
    assert_eq!(shell.run(&["webhook", "redeliver", never]).code, 3);
}

fn asked_to_tell(shell: &Shell, url: &str) -> CommandOutput {
    shell.run(&["run", "--code", "x.py", "--callback-url", url])
}

/// Nobody would be there to tell anything.
#[test]
fn manages_webhooks_locally_and_requests_them_only_on_servers() {
    let shell = Shell::new();
    are_managed(&shell);
    let refused = asked_to_tell(&shell, "https://hooks.example/");
    assert_eq!(refused.code, 3, "there is no such file: {}", refused.stderr);
    std::fs::write(shell.folder().join("x.py"), "1").unwrap();
    let refused = asked_to_tell(&shell, "https://hooks.example/");
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(refused.stderr.contains("--server"), "{}", refused.stderr);
}

#[test]
fn manages_webhooks_on_server() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("data"));
    let shell = Shell::new()
        .with("SKILLBOX_SERVER_URL", &server.url)
        .with("SKILLBOX_API_KEY", &server.key());
    are_managed(&shell);
    std::fs::write(shell.folder().join("x.py"), "1").unwrap();
    let refused = asked_to_tell(&shell, "https://10.0.0.1/");
    assert_eq!(refused.code, 3, "{}", refused.stderr);
    assert!(refused.stderr.contains("--callback-url: "), "{}", refused.stderr);
    assert!(!server.log().contains("whsec_"));
}
