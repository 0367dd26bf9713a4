//! How the program starts, and how it refuses to (F-24).

use std::os::unix::fs::PermissionsExt as _;

use crate::cli_shell::Shell;

/// The one line of a refusal.
fn refusal(shell: &Shell, args: &[&str]) -> String {
    let said = shell.run(args);
    assert_eq!(said.code, 78, "{args:?}: {}", said.stderr);
    assert_eq!(said.stderr.lines().count(), 1, "{}", said.stderr);
    assert_eq!(said.stdout, "");
    said.stderr
}

#[test]
fn help_version_and_completions_need_no_setup() {
    let shell = Shell::new();
    let help = shell.run(&["--help"]);
    assert_eq!(help.code, 0);
    assert!(help.stdout.contains("Exit codes:"), "{}", help.stdout);
    let topic = shell.run(&["help", "exit-codes"]);
    assert!(topic.stdout.contains(" 69  unavailable now"), "{}", topic.stdout);
    let both = shell.run(&["help", "config"]).stdout;
    assert!(both.contains("Usage: skillbox config") && both.contains("/etc/skillbox/config.yaml"));
    let nested = shell.run(&["help", "exec", "logs"]).stdout;
    assert!(nested.contains("--timestamps"), "{nested}");
    let unknown = shell.run(&["help", "packges"]);
    assert_eq!(unknown.code, 2);
    assert!(
        unknown.stderr.contains("did you mean `packages`?"),
        "{}",
        unknown.stderr
    );
    assert_eq!(shell.run(&["man-pages", "man"]).code, 0);
    let page = std::fs::read_to_string(shell.folder().join("man/skillbox-help-sandbox.1")).unwrap();
    assert!(
        page.starts_with(".TH skillbox-help-sandbox 1 ") && page.contains("\n\\&Each run"),
        "{page}"
    );
    assert_eq!(
        shell.run(&["version"]).stdout,
        format!("skillbox {}\n", env!("CARGO_PKG_VERSION"))
    );
    for name in ["bash", "zsh", "fish"] {
        assert!(
            shell.run(&["completions", name]).stdout.contains("skillbox"),
            "{name}"
        );
    }
    assert!(!shell.data().exists());
}

#[test]
fn invalid_command_line_exits_with_2() {
    let shell = Shell::new();
    for args in [
        &[][..],
        &["fly"],
        &["run"],
        &["run", "No_Name"],
        &["exec", "show", "x"],
        &["key", "create", "ci", "--expires", "30d"],
        &["run", "./x", "--version", "1.0.0"],
    ] {
        let said = shell.run(args);
        assert_eq!(said.code, 2, "{args:?}: {}", said.stderr);
        assert_eq!(said.stdout, "", "{args:?}");
    }
}

/// F-24.
#[test]
fn every_command_rejects_invalid_setting_by_name() {
    for (name, value, subject) in [
        ("SKILLBOX_API_PORT", "many", "api.port"),
        ("SKILLBOX_DOCKER_HOST", "docker.example", "sandbox.docker_host"),
        ("SKILLBOX_SANDBOX_BACKEND", "podman", "sandbox.backend"),
        ("SKILLBOX_DB_DSN", "postgres://user:geheim@host/db", "db.dsn"),
        ("SKILLBOX_S3_ENDPOINT", "http://127.0.0.1:9000", "s3.endpoint"),
        ("SKILLBOX_CONFIG", "/nowhere.yaml", "/nowhere.yaml"),
    ] {
        let shell = Shell::new().with(name, value);
        for args in [&["serve"][..], &["skill", "list"], &["config"]] {
            let line = refusal(&shell, args);
            assert!(line.starts_with(&format!("error: {subject}: ")), "{line}");
            assert!(!line.contains("geheim"), "{line}");
        }
        assert!(
            !shell.data().exists(),
            "{name}: nothing is made before the configuration is good"
        );
    }
}

/// F-24.
#[test]
fn rejects_unknown_key_and_names_file() {
    let shell = Shell::new();
    std::fs::create_dir(shell.folder().join(".skillbox")).unwrap();
    std::fs::write(shell.folder().join(".skillbox/config.yaml"), "api:\n  prot: 1\n").unwrap();
    let line = refusal(&shell, &["serve"]);
    assert!(
        line.contains(".skillbox/config.yaml") && line.contains("`api.prot`"),
        "{line}"
    );
}

/// F-24.
#[test]
fn rejects_data_folder_writable_by_others() {
    let shell = Shell::new();
    std::fs::create_dir(shell.data()).unwrap();
    std::fs::set_permissions(shell.data(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let line = refusal(&shell, &["serve"]);
    assert!(line.contains("data_dir") && line.contains("chmod 700"), "{line}");
    assert_eq!(std::fs::read_dir(shell.data()).unwrap().count(), 0);
}

/// F-24.
#[test]
fn reports_used_port_with_fix() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let said = Shell::new().run(&["serve", "--port", &port]);
    assert_eq!(said.code, 69, "{}", said.stderr);
    assert!(said.stderr.contains("SKILLBOX_API_PORT"), "{}", said.stderr);
}

#[test]
fn config_masks_secrets() {
    let shell = Shell::new()
        .with("SKILLBOX_API_KEY", "geheim")
        .with("SKILLBOX_REDIS_URL", "redis://:geheim@h");
    for format in ["json", "table", "yaml"] {
        let said = shell.run(&["config", "--format", format]);
        assert_eq!(said.code, 0);
        assert!(
            said.stdout.contains("***") && said.stdout.contains("SKILLBOX_API_KEY"),
            "{}",
            said.stdout
        );
        assert!(
            !said.stdout.contains("geheim") && !said.stderr.contains("geheim"),
            "{format}"
        );
        assert!(
            said.stderr.contains("has no effect: Skillbox uses no Redis"),
            "{}",
            said.stderr
        );
    }
}
