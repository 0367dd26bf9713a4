//! The documents: what they show runs, and their tables say what the program says.

use std::process::Command;

use skillbox::limits;

use crate::cli_shell::{CommandOutput, Shell, command_output, has_docker};

pub(crate) fn read(name: &str) -> String {
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
            // The reader has another terminal for what follows.
            "skillbox serve" if inside => script.push_str(
                "skillbox serve &\nuntil curl -sf http://127.0.0.1:8080/healthz; do sleep 0.2; done\n",
            ),
            line if inside => script.extend([line, "\n"]),
            _ => {}
        }
    }
    script
}

/// What a document shows, and what a test uses instead.
pub(crate) struct Replacement {
    pub(crate) shown: &'static str,
    pub(crate) used: String,
}

pub(crate) fn runs(name: &str) {
    drop(output_of(name, &[]));
}

/// Runs the commands of a document; `None` where a program is missing.
pub(crate) fn output_of(name: &str, replacements: &[Replacement]) -> Option<CommandOutput> {
    if !has_docker() {
        return None;
    }
    for program in ["curl", "python3"] {
        if Command::new(program).arg("--version").output().is_err() {
            crate::world::missing(program, "the documents use it");
            return None;
        }
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
    let mut script = script(&read(name)).replace("8080", &free.to_string());
    for Replacement { shown, used } in replacements {
        assert!(script.contains(shown), "{name} lacks {shown}");
        script = script.replace(shown, used);
    }
    let template = shell.command(&[]);
    // With its whole group: a server that does not come up must not keep the test waiting for it.
    let mut command = Command::new("timeout");
    command
        .args(["120", "bash", "-c"])
        .arg(&script)
        .current_dir(shell.folder())
        .env_clear();
    command.envs(
        template
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    command.env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
    // Where it is for a user who has set nothing; the port may be taken on this machine.
    command.env("SKILLBOX_DATA_DIR", shell.folder().join(".skillbox"));
    command.env("SKILLBOX_API_PORT", free.to_string());
    let said = command_output(command.output().unwrap());
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
    Some(said)
}

#[test]
fn commands_of_skills_document_run() {
    runs("docs/SKILLS.md");
}

#[test]
fn commands_of_skill_specification_run() {
    runs("docs/SKILL-SPEC.md");
}

#[test]
fn commands_of_mcp_document_run() {
    runs("docs/MCP.md");
}

#[test]
fn commands_of_migration_document_run() {
    runs("docs/MIGRATION.md");
}

/// The numbers of the tables are those that hold.
#[test]
fn skill_specification_states_actual_limits() {
    let document = read("docs/SKILL-SPEC.md");
    let mib = |bytes: u64| bytes / limits::MIB;
    let kib = |bytes: usize| bytes / 1024;
    let rows = [
        format!(
            "| archive | {} MiB, {} files |",
            mib(limits::ARCHIVE_BYTES_MAX),
            grouped(limits::ARCHIVE_ENTRIES_MAX)
        ),
        format!("| its files unpacked | {} MiB |", mib(limits::UNPACKED_BYTES_MAX)),
        format!("| a path | {} bytes |", limits::ARCHIVE_PATH_BYTES_MAX),
        format!(
            "| `SKILL.md` | {} KiB |",
            grouped(usize::try_from(limits::SKILL_MD_BYTES_MAX / limits::KIB).unwrap())
        ),
        format!(
            "| front matter; `skill.toml` | {} KiB each |",
            kib(limits::FRONT_MATTER_BYTES_MAX)
        ),
        format!("| name | {} characters |", limits::SKILL_NAME_CHARS_MAX),
        format!("| version | {} characters |", limits::VERSION_CHARS_MAX),
        format!(
            "| description | {} characters |",
            grouped(limits::DESCRIPTION_CHARS_MAX)
        ),
        format!(
            "| compatibility | {} characters |",
            limits::COMPATIBILITY_CHARS_MAX
        ),
        format!("| scripts that are described | {} |", limits::ACTIONS_MAX),
        format!("| warnings that are kept | {} |", limits::WARNINGS_MAX),
        format!(
            "| timeout | {} s to {} s, {} s if absent |",
            limits::TIMEOUT_MIN.as_secs_f64(),
            limits::TIMEOUT_MAX.as_secs(),
            limits::TIMEOUT.as_secs()
        ),
        format!(
            "| memory | {} MiB to {} MiB unless",
            mib(limits::MEMORY_BYTES_MIN),
            mib(limits::MEMORY_BYTES)
        ),
        format!("| secrets of one skill | {} |", limits::SKILL_SECRETS_MAX),
        format!("| `mount_skills` | {} |", limits::MOUNTED_SKILLS_MAX),
        format!(
            "| packages of one program | {}; installed {} MiB unless the operator sets another `deps.set_size`, {} files |",
            limits::REQUIREMENTS_MAX,
            mib(limits::PACKAGES_BYTES),
            grouped(limits::PACKAGES_FILES_MAX)
        ),
        format!(
            "| a schema | {} KiB, {} levels deep, {} references, {} patterns |",
            kib(limits::SCHEMA_BYTES_MAX),
            limits::SCHEMA_DEPTH_MAX,
            limits::SCHEMA_REFERENCES_MAX,
            limits::SCHEMA_PATTERNS_MAX
        ),
        format!(
            "| checking one value | {} steps;",
            grouped(limits::SCHEMA_STEPS_MAX)
        ),
    ];
    for row in rows {
        assert!(document.contains(&row), "{row}");
    }
}

/// With a comma between thousands.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let from_the_end = digits.len();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (from_the_end - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[test]
fn commands_of_cli_document_run() {
    runs("docs/CLI.md");
}

#[test]
fn commands_of_run_code_document_run() {
    runs("docs/RUN-CODE.md");
}

#[test]
fn run_code_document_lists_every_sample() {
    let document = read("docs/RUN-CODE.md");
    for folder in ["samples", "samples/packages"] {
        for path in crate::native::run_code::samples(folder) {
            let name = path
                .strip_prefix(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/samples"))
                .unwrap();
            assert!(
                document.contains(&format!("[`{}`]", name.display())),
                "{}",
                name.display()
            );
        }
    }
}

/// What a request for code may say is what one for a skill may, but for what names the skill.
#[test]
fn run_code_document_lists_every_request_member() {
    let (api, code) = (read("docs/API.md"), read("docs/RUN-CODE.md"));
    let members = |document: &str, head: &str| {
        let table = document
            .split(head)
            .nth(1)
            .unwrap()
            .split("\n\n")
            .next()
            .unwrap()
            .to_owned();
        let names = table
            .lines()
            .filter_map(|row| Some(row.strip_prefix("| `")?.split(" | ").next()?.to_owned()));
        let names: Vec<_> = names
            .flat_map(|names| {
                names
                    .split(", ")
                    .map(|name| name.trim_matches('`').to_owned())
                    .collect::<Vec<_>>()
            })
            .collect();
        assert!(!names.is_empty(), "{head}");
        names
    };
    let known = members(&code, "| member | meaning |\n");
    let asked = api.split("| `code`, `language` |").nth(1).unwrap();
    for member in members(asked, "\n") {
        let of_skills = ["version", "script"].contains(&member.as_str());
        assert!(
            of_skills || known.contains(&member),
            "docs/RUN-CODE.md lacks {member}"
        );
    }
}

#[test]
fn commands_of_prove_document_run() {
    runs("docs/PROVE.md");
}

/// The receiver that is shown verifies what is sent.
#[test]
fn commands_of_webhooks_document_run() {
    runs("docs/WEBHOOKS.md");
}

#[test]
fn commands_of_api_document_run() {
    runs("docs/API.md");
}

#[test]
fn documented_configuration_file_is_accepted() {
    let document = read("docs/CONFIGURATION.md");
    let (_, after) = document.split_once("```yaml\n").unwrap();
    let (yaml, _) = after.split_once("```").unwrap();
    let shell = Shell::new();
    std::fs::write(shell.folder().join("config.yaml"), yaml).unwrap();
    let settings = shell.json(&["config", "--config", "config.yaml"]);
    let set = |row: &&serde_json::Value| row["source"].as_str().unwrap().starts_with("config.yaml:");
    let lines = yaml
        .lines()
        .filter(|line| !line.starts_with('#') && !line.ends_with(':'));
    assert_eq!(
        settings.as_array().unwrap().iter().filter(set).count(),
        lines.count()
    );
}

/// What stands under `Commands:` in the help of each group; the main help has groups before its topics.
#[test]
fn cli_document_lists_every_command() {
    let document = read("docs/CLI.md");
    let shell = Shell::new();
    for group in ["", "skill", "exec", "deps", "blob", "key", "secret", "webhook"] {
        let args: Vec<_> = [group, "--help"]
            .into_iter()
            .filter(|arg| !arg.is_empty())
            .collect();
        let help = shell.run(&args).stdout;
        let (start, end) = match group {
            "" => ("\nRun:\n", "\nTopics"),
            _ => ("Commands:\n", "\n\n"),
        };
        let (_, after) = help.split_once(start).unwrap();
        let (listed, _) = after.split_once(end).unwrap();
        let names = listed
            .lines()
            .filter_map(|line| line.strip_prefix("  "))
            .filter(|line| !line.starts_with(' '))
            .filter_map(|line| line.split(' ').next())
            .filter(|name| {
                ![
                    "help", "skill", "exec", "deps", "blob", "key", "secret", "webhook",
                ]
                .contains(name)
            });
        for name in names {
            let command = format!("{group} {name}");
            let command = command.trim_start();
            assert!(
                [" ", "`"]
                    .iter()
                    .any(|end| document.contains(&format!("`{command}{end}"))),
                "docs/CLI.md lacks {command}"
            );
        }
    }
}

#[test]
fn configuration_document_lists_every_setting() {
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
fn cli_document_lists_every_exit_code() {
    let document = read("docs/CLI.md");
    for exit in skillbox::cli::Exit::ALL {
        let (number, meaning) = exit.row();
        let row = format!("| {number} | {meaning} |");
        assert!(document.contains(&row), "docs/CLI.md lacks:\n{row}");
    }
}

#[test]
fn api_document_lists_every_route_and_error_code() {
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
