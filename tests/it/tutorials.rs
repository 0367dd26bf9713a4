//! The README, the tutorials and the documents for operators: their commands run, their agent answers, their picture can be recorded.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::cli_docs::{Replacement, output_of, read, runs};
use crate::cli_shell::{CommandOutput, command_output};
use crate::get_script::Releases;
use crate::scripted_model::{ScriptedModel, Turn};
use crate::server::Server;

/// Runs a document whose agent talks to this model.
fn with_model(name: &str, model: &ScriptedModel) -> Option<CommandOutput> {
    let service = Replacement {
        shown: "https://api.openai.com/v1",
        used: model.url.clone(),
    };
    output_of(name, &[service])
}

fn has_python() -> bool {
    let found = Command::new("python3").arg("--version").output().is_ok();
    if !found {
        crate::world::missing("python3", "the agent and the script of the picture use it");
    }
    found
}

fn output(tool_result: &str) -> Value {
    let result: Value = serde_json::from_str(tool_result).unwrap();
    assert_eq!(result["status"], "success", "{tool_result}");
    serde_json::from_str(result["output_preview"].as_str().unwrap()).unwrap()
}

fn tool_names(request: &Value) -> Vec<&str> {
    let tools = request["tools"].as_array().unwrap();
    tools
        .iter()
        .map(|tool| tool["function"]["name"].as_str().unwrap())
        .collect()
}

/// The agent gives the model the published skill and returns the answer that follows from the skill's output.
#[test]
fn commands_of_readme_run() {
    let model = ScriptedModel::start(vec![
        Turn::Calls(
            "text-summary",
            json!({"text": "One thing. Another thing. A third."}),
        ),
        Turn::Answers(|result| format!("It has {} words.", output(result)["statistics"]["words"])),
    ]);
    let Some(said) = with_model("README.md", &model) else {
        return;
    };
    assert!(said.stdout.ends_with("It has 6 words.\n"), "{}", said.stdout);
    let requests = model.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!(tool_names(&requests[0]), ["run_code", "my-skill", "text-summary"]);
}

/// The model asks for a tool that does not exist, then writes code with a mistake, reads both errors, and corrects itself.
#[test]
fn commands_of_agent_tutorial_run() {
    let model = ScriptedModel::start(vec![
        Turn::Calls("no-such-tool", json!({})),
        Turn::Calls("run_code", json!({"code": "fibonacci(20)"})),
        Turn::Calls(
            "run_code",
            json!({"code": "a, b = 0, 1\nfor _ in range(20):\n    a, b = b, a + b\na", "language": "python"}),
        ),
        Turn::Answers(|result| format!("It is {}.", output(result))),
    ]);
    let Some(said) = with_model("docs/tutorials/agent.md", &model) else {
        return;
    };
    assert!(said.stdout.ends_with("It is 6765.\n"), "{}", said.stdout);
    let requests = model.requests();
    let results = |index: usize| requests[index]["messages"].to_string();
    assert!(results(1).contains("invalid tool call"), "{}", results(1));
    assert!(
        results(2).contains("NameError: name 'fibonacci' is not defined"),
        "{}",
        results(2)
    );
}

/// The loop that the tutorial shows is the one that runs above, and as long as the README says.
#[test]
fn agent_tutorial_shows_loop_of_example() {
    let (tutorial, example) = (read("docs/tutorials/agent.md"), read("examples/agent/loop.py"));
    let (_, after) = tutorial.split_once("\n```python\n").unwrap();
    let (shown, _) = after.split_once("```\n").unwrap();
    assert!(shown.starts_with("def answer("), "{shown}");
    assert!(
        example.contains(&format!("\n\n{shown}\n\n")),
        "examples/agent/loop.py differs from:\n{shown}"
    );
    let readme = read("README.md").replace('\n', " ");
    let length = format!("its loop, which has {} lines", shown.lines().count());
    assert!(readme.contains(&length), "README.md lacks: {length}");
}

/// A missing setting, no server and a wrong key are one line each, not a traceback.
#[test]
fn agent_names_missing_settings_and_rejected_key() {
    if !has_python() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let server = Server::start(&home.path().join("data"));
    let agent = |server: &str, key: &str| {
        let mut command = Command::new("python3");
        command
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/agent/loop.py"))
            .arg("How many?")
            .env("SKILLBOX_SERVER_URL", server)
            .env("SKILLBOX_API_KEY", key)
            .env("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
            .env("OPENAI_API_KEY", "none");
        let said = command_output(command.output().unwrap());
        assert_eq!((said.code, said.stdout.as_str()), (1, ""), "{}", said.stderr);
        assert!(!said.stderr.contains("Traceback"), "{}", said.stderr);
        said.stderr
    };
    assert_eq!(agent(&server.url, ""), "set SKILLBOX_API_KEY\n");
    assert!(agent(&server.url, "skb_wrong").contains("the API key is not valid"));
    let no_server = agent("http://127.0.0.1:1", "skb_wrong");
    assert!(
        no_server.contains("no connection to http://127.0.0.1:1/v1/tools"),
        "{no_server}"
    );
    let no_model = agent(&server.url, &server.key());
    assert!(no_model.contains("/chat/completions: "), "{no_model}");
}

#[test]
fn commands_of_first_skill_tutorial_run() {
    runs("docs/tutorials/first-skill.md");
}

#[test]
fn commands_of_e2b_tutorial_run() {
    runs("docs/tutorials/from-e2b.md");
}

/// With releases of a server of this test, into a folder of this test.
#[test]
fn commands_of_installation_document_run() {
    let releases = Releases::open();
    releases.publish("0.1.0");
    std::fs::copy(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("get.sh"),
        releases.path("latest/download/get.sh"),
    )
    .unwrap();
    let replacements = [
        Replacement {
            shown: "curl -fsSLO https://github.com/skillbox-rs/skillbox/releases/",
            used: format!("export SKILLBOX_RELEASES_URL={0}\ncurl -fsSLO {0}/", releases.url),
        },
        Replacement {
            shown: "sh get.sh\n",
            used: "sh get.sh --dir $HOME/installed/bin\nPATH=$HOME/installed/bin:$PATH\ntype skillbox\n"
                .to_owned(),
        },
    ];
    let Some(said) = output_of("docs/INSTALL.md", &replacements) else {
        return;
    };
    assert!(
        said.stdout.contains("/installed/bin/skillbox\n"),
        "{}",
        said.stdout
    );
    assert!(said.stdout.contains("a python skill ran"), "{}", said.stdout);
}

#[test]
fn commands_of_operations_document_run() {
    runs("docs/OPERATIONS.md");
}

/// Blocks that no test runs, by their first line, and the reason.
const NOT_RUN: &[(&str, &str)] = &[
    ("cargo run --release -- run", "CI runs it before the tests"),
    ("./install.sh", "installer_installs_and_removes_its_files runs it"),
    (
        "cargo install --locked",
        "takes minutes; install.sh does the same, and CI checks static linking",
    ),
    ("gh attestation verify", "no release exists"),
    ("docker load", "tests/container-images.sh runs it"),
    (
        "docker run --detach",
        "tests/container-images.sh runs it with a port of the host",
    ),
    ("sudo ./install.sh --systemd", "needs systemd as root"),
    ("systemd-run ", "needs systemd as root"),
    (
        "docker rm -v",
        "would remove containers of tests that run at the same time",
    ),
    ("skillbox prove --warm", "takes minutes; the tests of prove do it"),
    ("curl -s $url/metrics", "part of docs/API.md, where it runs"),
    (
        "digest=$(sha256sum report.pdf",
        "runs in a sandbox; the tests of blobs do it",
    ),
    ("cargo build", "CI runs it before the tests"),
    ("rustup target add", "needs a download of other targets"),
];

fn documents(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            documents(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

/// A shell block is run, or the reason is above; a document with blocks that run has its test.
#[test]
fn every_shell_block_runs_or_has_a_reason() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = vec![
        root.join("README.md"),
        root.join("SECURITY.md"),
        root.join("CONTRIBUTING.md"),
    ];
    documents(&root.join("docs"), &mut paths);
    let tests = read("tests/it/cli_docs.rs") + &read("tests/it/tutorials.rs");
    let mut used = Vec::new();
    for path in paths {
        let name = path.strip_prefix(root).unwrap().display().to_string();
        let document = std::fs::read_to_string(&path).unwrap();
        let mut lines = document.lines();
        while let Some(line) = lines.next() {
            if line == "```sh test" {
                assert!(tests.contains(&format!("\"{name}\"")), "no test runs {name}");
            } else if line == "```sh clients" {
                // In the full run: it needs package indexes and minutes.
                assert!(read("tests/clients.sh").contains(&name), "no script runs {name}");
            } else if line == "```sh grpc" {
                assert!(
                    read("tests/grpc-clients.sh").contains(&name),
                    "no script runs {name}"
                );
            } else if ["```sh", "```bash", "```console"]
                .iter()
                .any(|shell| line.starts_with(shell))
            {
                let first = lines.next().unwrap();
                let reason = NOT_RUN.iter().position(|(begin, _)| first.starts_with(begin));
                used.push(reason.unwrap_or_else(|| panic!("{name}: mark `sh test`: {first}")));
            }
        }
    }
    for (index, (begin, _)) in NOT_RUN.iter().enumerate() {
        assert!(used.contains(&index), "no block begins with {begin}");
    }
}

/// The numbers of the README are those of the document that it names.
#[test]
fn readme_numbers_are_those_of_performance_document() {
    let (readme, performance) = (read("README.md"), read("docs/PERFORMANCE.md"));
    for (claim, source) in [
        ("takes 0.33 of the time", "| Python | 1.19 | 0.33 | 1.50, 0.48 |"),
        ("a cold run takes 1.19 of it", "| Python | 1.19 | 0.33 |"),
        (
            "a warm run takes 12 ms, and `docker run` takes 24 times as long",
            "| Python, as above | 12 ms, 0.41 of bare | 153 ms | bare: 29 ms; `docker run`: 24 times as long as warm |",
        ),
        (
            "11 MiB of memory after its start",
            "| server after its start | 11 MiB,",
        ),
        ("25 to 30 MiB at work", "| server at work | 25 to 30 MiB,"),
        (
            "After 10,000 runs the server has 3.0 MiB more memory than after 500",
            "| growth from 500 to 10,000 runs | 3.0 MiB ",
        ),
        (
            "sandbox takes 0.16 of the time that llm-sandbox needs",
            "and 0.16 warm",
        ),
        ("takes 0.59 to 0.60 of it", "0.59 to 0.60 of its time cold"),
    ] {
        let readme = readme.replace('\n', " ").replace("  ", " ");
        assert!(readme.contains(claim), "README.md lacks: {claim}");
        assert!(
            performance.contains(source),
            "docs/PERFORMANCE.md lacks: {source}"
        );
    }
}

/// The script that draws the README's picture still understands everything that Skillbox prints.
#[test]
fn picture_of_readme_can_be_recorded() {
    if !has_python() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("terminal.svg");
    let binaries = Path::new(env!("CARGO_BIN_EXE_skillbox")).parent().unwrap();
    let mut command = Command::new("python3");
    command
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/pictures/record.py"))
        .arg(&target)
        .env("PATH", format!("{}:/usr/bin:/bin", binaries.display()));
    let said = command_output(command.output().unwrap());
    for (needs, what) in [
        ("cannot be reached", "packages"),
        ("no native sandbox can be created", "linux"),
    ] {
        if said.stderr.contains(needs) {
            crate::world::missing(what, &said.stderr);
            return;
        }
    }
    assert_eq!(said.code, 0, "{}", said.stderr);
    let pictures = [
        std::fs::read_to_string(target).unwrap(),
        read("docs/pictures/terminal.svg"),
    ];
    for picture in pictures {
        for part in [
            "import pandas as pd",
            "Apr",
            "11 kept, 0 degraded, 0 breach",
            "data:image/png;base64,iVBOR",
        ] {
            assert!(picture.contains(part), "the picture lacks {part}");
        }
    }
}
