//! The documents: what they show runs, and their tables say what the program says.

use std::process::Command;

use crate::cli_shell::{Shell, has_docker, said};

fn read(name: &str) -> String {
    std::fs::read_to_string(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

/// All blocks that are marked `sh test`, as one script.
fn script(document: &str) -> String {
    let mut script = String::from("set -euo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n");
    let mut inside = false;
    for line in document.lines() {
        match line {
            "```sh test" => inside = true,
            "```" => inside = false,
            line if inside => script.extend([line, "\n"]),
            _ => {}
        }
    }
    script
}

fn runs(name: &str) {
    if !has_docker() {
        return;
    }
    if Command::new("curl").arg("--version").output().is_err() {
        crate::world::missing("curl", "the documents use it");
        return;
    }
    let shell = Shell::new().with_engine();
    let bin = shell.folder().join("bin");
    std::fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_skillbox"), bin.join("skillbox")).unwrap();
    let examples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    std::os::unix::fs::symlink(examples, shell.folder().join("examples")).unwrap();
    let free = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let script = script(&read(name)).replace("8080", &free.to_string());
    let template = shell.command(&[]);
    let mut command = Command::new("bash");
    command
        .arg("-c")
        .arg(&script)
        .current_dir(shell.folder())
        .env_clear();
    command.envs(
        template
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    command.env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
    let said = said(command.output().unwrap());
    assert_eq!(
        said.code, 0,
        "{name}:\n{script}\n{}\n{}",
        said.stdout, said.stderr
    );
    assert!(
        !said.stdout.contains("\"type\":\"urn:skillbox:problem"),
        "{name}: {}",
        said.stdout
    );
}

#[test]
fn what_the_readme_shows_runs() {
    runs("README.md");
}

#[test]
fn what_the_command_line_document_shows_runs() {
    runs("docs/CLI.md");
}

#[test]
fn what_the_api_document_shows_runs() {
    runs("docs/API.md");
}

#[test]
fn the_configuration_document_holds_every_setting() {
    let document = read("docs/CONFIGURATION.md");
    for setting in skillbox::config::SETTINGS {
        let default = if setting.default.is_empty() {
            "–".to_owned()
        } else {
            format!("`{}`", setting.default)
        };
        let about = setting.about.replace('|', "\\|");
        let row = format!(
            "| `{}` | `{}` | {default} | {about} |",
            setting.key, setting.variable
        );
        assert!(document.contains(&row), "docs/CONFIGURATION.md lacks:\n{row}");
    }
}

#[test]
fn the_command_line_document_holds_every_exit_code() {
    let document = read("docs/CLI.md");
    for exit in skillbox::cli::Exit::ALL {
        let (number, meaning) = exit.row();
        let row = format!("| {number} | {meaning} |");
        assert!(document.contains(&row), "docs/CLI.md lacks:\n{row}");
    }
}

#[test]
fn the_api_document_holds_every_route_and_every_code() {
    let document = read("docs/API.md");
    for (route, _) in skillbox::http::matrix().lines() {
        // The document writes `{path}` where the router needs a mark for the rest.
        let shown = route.replace("{*", "{");
        let named = document.contains(&format!("`{shown}`"))
            || document.contains(&format!("`{}`", shown.trim_start_matches("GET ")));
        assert!(named || shown.ends_with("/v1/keys"), "docs/API.md lacks {shown}");
    }
    for code in skillbox::error::Code::ALL {
        let row = format!("| `{}` | {} |", code.as_str(), code.http_status());
        assert!(document.contains(&row), "docs/API.md lacks {row}");
    }
}
