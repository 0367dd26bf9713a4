//! `skillbox tools`, with a server and without: both say the same.

use serde_json::{Value, json};

use crate::cli_shell::{Shell, examples};
use crate::server::Server;

fn push(shell: &Shell, name: &str) {
    let said = shell.run(&["skill", "push", examples().join(name).to_str().unwrap()]);
    assert_eq!(said.code, 0, "{}", said.stderr);
}

/// Two that can be called, and one between them that cannot.
fn fill(shell: &Shell) {
    for name in ["lead-scoring", "incident-review", "text-summary"] {
        push(shell, name);
    }
}

/// What `skillbox tools` says of the skills for each product.
fn told(shell: &Shell) -> Vec<Value> {
    let mut all: Vec<_> = ["mcp", "openai", "anthropic"]
        .iter()
        .map(|product| shell.json(&["tools", "--for", product]))
        .collect();
    let prompt = shell.run(&["tools", "--for", "prompt"]);
    assert_eq!(prompt.code, 0, "{}", prompt.stderr);
    all.push(prompt.stdout.into());
    all
}

#[test]
fn lists_skills_as_tools_locally_and_on_server() {
    let local = Shell::new();
    fill(&local);
    let home = Shell::new();
    let server = Server::start(&home.folder().join("server"));
    let remote = Shell::new()
        .with("SKILLBOX_SERVER_URL", &server.url)
        .with("SKILLBOX_API_KEY", &server.key());
    assert_eq!(remote.json(&["tools"]), json!([]));
    fill(&remote);

    let told_locally = told(&local);
    assert_eq!(told_locally, told(&remote));
    let names: Vec<_> = told_locally[0]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| &tool["name"])
        .collect();
    assert_eq!(names, ["lead-scoring", "text-summary"]);
    assert_eq!(
        told_locally[1][0]["function"]["parameters"]["properties"]["top"]["default"],
        5
    );
    let prompt = told_locally[3].as_str().unwrap();
    assert_eq!(
        prompt.matches("<skill>").count(),
        3,
        "instructions are in the prompt"
    );
    assert!(prompt.contains("<location>/skills/incident-review/SKILL.md</location>"));
    assert!(
        local
            .run(&["tools", "--format", "table"])
            .stdout
            .contains("lead-scoring")
    );
}
