//! The command line as a client of a real server.

use serde_json::json;

use crate::cli_shell::{Shell, examples, has_docker};
use crate::server::Server;

#[test]
fn publishes_runs_and_inspects_skill_on_server() {
    if !has_docker() {
        return;
    }
    let home = Shell::new();
    let server = Server::start(&home.folder().join("server"));
    // Another data folder: everything has to come from the server.
    let shell = Shell::new()
        .with("SKILLBOX_SERVER_URL", &server.url)
        .with("SKILLBOX_API_KEY", &server.key());
    let folder = examples().join("csv-report");
    let pushed = shell.run(&["skill", "push", folder.to_str().unwrap()]);
    assert_eq!(pushed.code, 0, "{}", pushed.stderr);
    assert!(
        shell
            .run(&["skill", "push", folder.to_str().unwrap()])
            .stderr
            .contains("unchanged")
    );
    assert_eq!(shell.json(&["skill", "show", "csv-report"])["language"], "node");

    let input = format!("@{}", folder.join("input.json").display());
    let envelope = shell.json(&["run", "csv-report", "--input", &input, "--out", "out"]);
    assert_eq!(envelope["output"]["rows"], 7);
    let report = std::fs::read_to_string(shell.folder().join("out/report.md")).unwrap();
    assert!(report.starts_with("# Orders in March"));

    let id = envelope["execution_id"].as_str().unwrap();
    assert_eq!(
        shell.run(&["exec", "logs", id]).stdout,
        "profiled 7 rows in 7 columns\n"
    );
    let timed = shell.run(&["exec", "logs", id, "--timestamps"]).stdout;
    let (time, text) = timed.split_once(' ').unwrap();
    assert_eq!(text, "stdout profiled 7 rows in 7 columns\n");
    assert!(
        time.len() == 24 && time.parse::<jiff::Timestamp>().is_ok(),
        "{timed}"
    );
    let only = shell
        .run(&["exec", "logs", id, "--timestamps", "--stream", "stdout"])
        .stdout;
    assert_eq!(only, format!("{time} profiled 7 rows in 7 columns\n"));
    let parts = &shell.json(&["exec", "logs", id, "--timestamps", "--format", "json"])["parts"];
    assert_eq!(parts[0]["text"], "profiled 7 rows in 7 columns\n");
    assert_eq!(shell.json(&["exec", "files", id])[0]["path"], "report.md");
    assert_eq!(
        shell.json(&["exec", "list", "--limit", "1"])[0]["execution_id"],
        id
    );
    assert_eq!(shell.run(&["exec", "cancel", id]).code, 0);
    assert_eq!(
        shell
            .run(&["skill", "pull", "csv-report", "--unpack", "fetched"])
            .code,
        0
    );
    assert_eq!(
        shell
            .run(&["skill", "delete", "csv-report", "--version", "1.0.0"])
            .code,
        0
    );
    assert_eq!(shell.json(&["skill", "list"]), json!([]));
    assert!(!shell.data().exists(), "a client keeps nothing");
}

#[test]
fn failures_and_rejections_have_same_exit_codes_on_server() {
    if !has_docker() {
        return;
    }
    let home = Shell::new();
    let server = Server::start(&home.folder().join("server"));
    let shell = Shell::new()
        .with("SKILLBOX_SERVER_URL", &server.url)
        .with("SKILLBOX_API_KEY", &server.key());
    shell.skill("fails", "lang: bash\n", "scripts/main.sh", "exit 7\n");
    assert_eq!(shell.run(&["skill", "push", "fails"]).code, 0);
    let said = shell.run(&["run", "fails"]);
    assert_eq!(said.code, 1, "{}", said.stderr);
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&said.stdout).unwrap()["exit_code"],
        7
    );
    assert_eq!(shell.run(&["run", "nosuch"]).code, 3);
    assert_eq!(shell.run(&["run", "fails", "--timeout", "1ms"]).code, 2);
    let wrong = shell.run(&["skill", "list", "--api-key", "skb_wrong"]);
    assert_eq!(wrong.code, 3, "{}", wrong.stderr);
    assert!(wrong.stderr.contains("SKILLBOX_API_KEY"), "{}", wrong.stderr);

    let made = shell.json(&["key", "create", "ci"]);
    let weak = shell.run(&["key", "list", "--api-key", made["api_key"].as_str().unwrap()]);
    assert_eq!(weak.code, 3, "{}", weak.stderr);
    assert!(weak.stderr.contains("admin"), "{}", weak.stderr);
}

/// On one machine the key in the data folder is enough, and only there.
#[test]
fn local_server_needs_no_key_from_owner() {
    let home = Shell::new();
    let data = home.folder().join("server");
    let server = Server::start(&data);
    let owner = Shell::new().with("SKILLBOX_SERVER_URL", &server.url);
    let data = data.to_str().unwrap();
    assert_eq!(owner.run(&["skill", "list", "--data-dir", data]).code, 0);
    let said = owner.run(&[
        "skill",
        "list",
        "--data-dir",
        data,
        "--server",
        "http://192.0.2.1",
    ]);
    assert_eq!(said.code, 3, "{}", said.stderr);
    assert!(said.stderr.contains("SKILLBOX_API_KEY"), "{}", said.stderr);
}

#[test]
fn reports_unreachable_server_as_unavailable() {
    let shell = Shell::new()
        .with("SKILLBOX_SERVER_URL", "http://127.0.0.1:1")
        .with("SKILLBOX_API_KEY", "skb_x");
    let said = shell.run(&["skill", "list"]);
    assert_eq!(said.code, 69, "{}", said.stderr);
    assert!(said.stderr.contains("http://127.0.0.1:1"), "{}", said.stderr);
}

/// `/readyz` names the failed component, the log names the cause, and the doctor distinguishes both from a wrong key.
#[test]
fn doctor_and_log_report_server_without_backend() {
    let home = Shell::new();
    let nowhere = [
        ("SKILLBOX_DOCKER_HOST", "unix:///nowhere.sock"),
        ("SKILLBOX_SANDBOX_BACKEND", "docker"),
    ];
    let server = Server::start_with(&home.folder().join("server"), &nowhere);
    let shell = Shell::new()
        .with("SKILLBOX_SERVER_URL", &server.url)
        .with("SKILLBOX_API_KEY", &server.key());
    let said = shell.run(&["doctor"]);
    assert_eq!(said.code, 1, "{}", said.stderr);
    assert!(said.stdout.contains("not ready: sandbox"), "{}", said.stdout);
    let log = server.log();
    assert!(
        log.contains("Not ready: sandbox: no container engine responds"),
        "{log}"
    );
}

/// Root beside a service with a user of its own: the folder is not root's, and the machine is checked nevertheless.
#[test]
fn doctor_does_not_touch_data_folder_of_service() {
    let shell = Shell::new()
        .with("SKILLBOX_SERVER_URL", "http://127.0.0.1:1")
        .with("SKILLBOX_API_KEY", "skb_x")
        .with("SKILLBOX_DOCKER_HOST", "unix:///nowhere.sock");
    let folder = if rustix::process::geteuid().is_root() {
        let folder = shell.folder().join("service");
        std::fs::create_dir(&folder).unwrap();
        std::os::unix::fs::chown(&folder, Some(65534), None).unwrap();
        folder
    } else {
        "/".into()
    };
    let said = shell.run(&["doctor", "--data-dir", folder.to_str().unwrap()]);
    assert_eq!(said.code, 1, "{}", said.stderr);
    let found = said.stdout;
    assert!(found.contains("use a temporary folder"), "{found}");
    assert!(
        // Nothing is wrong without an engine where the native sandbox serves.
        found.contains("✓ database")
            && (found.contains("✗ container engine") || found.contains("none is needed")),
        "{found}"
    );
    assert!(
        std::fs::read_dir(&folder)
            .unwrap()
            .all(|entry| entry.unwrap().file_name() != "skillbox.db")
    );
}
