//! `skillbox mcp`: messages on standard input and output, with the embedded engine and with a server.

use std::io::{BufRead, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::cli_shell::Shell;
use crate::server::Server;

/// A client that started the command.
struct StdioClient {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    generation: &'static str,
}

const LEGACY: &str = "2025-11-25";
const STATELESS: &str = "2026-07-28";
const SLEEPS: &str = "from runtime import log\nlog.info('begun')\nimport time\ntime.sleep(100)";

fn native() -> Shell {
    Shell::new().with("SKILLBOX_SANDBOX_BACKEND", "native")
}

impl StdioClient {
    fn start(shell: &Shell, args: &[&str], generation: &'static str) -> Self {
        let mut command: Command = shell.command(&[&["mcp"], args].concat());
        let spawned = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn();
        let mut process = spawned.unwrap();
        let mut client = Self {
            input: process.stdin.take(),
            output: BufReader::new(process.stdout.take().unwrap()),
            process,
            generation,
        };
        if generation == LEGACY {
            let hello = json!({ "protocolVersion": LEGACY, "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } });
            let answer = client.ask(0, "initialize", hello);
            assert_eq!(answer["result"]["protocolVersion"], LEGACY, "{answer}");
            client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        }
        client
    }

    fn send(&mut self, message: &Value) {
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{message}").unwrap();
    }

    fn begin(&mut self, id: u32, method: &str, mut params: Value) {
        if self.generation == STATELESS {
            params["_meta"]["io.modelcontextprotocol/protocolVersion"] = STATELESS.into();
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
        }
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
    }

    /// The next message. Whatever the command prints is one.
    fn next(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        let message: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("no message: {line:?}"));
        assert_eq!(message["jsonrpc"], "2.0");
        message
    }

    fn answer_to(&mut self, id: u32) -> Value {
        loop {
            let message = self.next();
            if message["id"] == id {
                return message;
            }
        }
    }

    fn ask(&mut self, id: u32, method: &str, params: Value) -> Value {
        self.begin(id, method, params);
        self.answer_to(id)
    }

    fn call(&mut self, id: u32, tool: &str, arguments: Value) -> Value {
        self.ask(id, "tools/call", json!({ "name": tool, "arguments": arguments }))["result"].clone()
    }

    fn end(mut self) {
        drop(self.input.take());
        assert!(self.process.wait().unwrap().success());
    }
}

/// What a client does in its life; the same with an engine of its own and with a server.
fn session(shell: &Shell, generation: &'static str) {
    let mut client = StdioClient::start(shell, &[], generation);
    let listed = client.ask(1, "tools/list", json!({}));
    let names: Vec<_> = listed["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| &tool["name"])
        .collect();
    assert_eq!(
        names,
        ["run_skill", "run_code", "list_skills", "read_file", "greeter"],
        "{generation}"
    );
    let ran = client.call(2, "greeter", json!({ "name": "World" }));
    assert!(
        ran["content"][0]["text"].as_str().unwrap().contains("World"),
        "{ran}"
    );
    let code = "open('/sandbox/out/files/big.txt', 'w').write('y' * 20000)\nprint('ü')";
    let ran = client.call(3, "run_code", json!({ "code": code }));
    assert_eq!(ran["content"][0]["text"], "ü\n", "{ran}");
    let link = ran["content"]
        .as_array()
        .unwrap()
        .iter()
        .find(|block| block["type"] == "resource_link")
        .unwrap();
    let read = client.ask(4, "resources/read", json!({ "uri": link["uri"] }));
    assert_eq!(read["result"]["contents"][0]["text"], "y".repeat(20000));
    let skills = client.ask(5, "skills/list", json!({}));
    assert_eq!(
        skills["result"]["skills"][0]["uri"], "skill://greeter/SKILL.md",
        "{skills}"
    );
    let wrong = client.ask(6, "no/such/method", json!({}));
    assert_eq!(wrong["error"]["code"], -32601, "{wrong}");

    // A long run is cancelled, and the client goes on.
    let params =
        json!({ "name": "run_code", "arguments": { "code": SLEEPS }, "_meta": { "progressToken": 1 } });
    client.begin(7, "tools/call", params);
    while client.next()["params"]["message"] != "begun" {}
    client.send(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 7 } }),
    );
    let ran = client.call(8, "run_code", json!({ "code": "print('next')" }));
    assert_eq!(ran["content"][0]["text"], "next\n");
    crate::server::eventually("it is cancelled", || {
        let listed = shell.json(&["exec", "list", "--status", "cancelled"]);
        listed.as_array().is_some_and(|rows| rows.len() == 1)
    });
    client.end();
}

fn push_greeter(shell: &Shell) {
    assert_eq!(shell.run(&["skill", "init", "greeter"]).code, 0);
    let pushed = shell.run(&["skill", "push", "greeter"]);
    assert_eq!(pushed.code, 0, "{}", pushed.stderr);
}

#[test]
fn serves_client_with_own_engine() {
    for generation in [LEGACY, STATELESS] {
        let shell = native();
        push_greeter(&shell);
        session(&shell, generation);
    }
}

#[test]
fn relays_messages_to_server() {
    for generation in [LEGACY, STATELESS] {
        let home = native();
        let server = Server::start_with(
            &home.folder().join("server"),
            &[("SKILLBOX_SANDBOX_BACKEND", "native")],
        );
        let shell = native()
            .with("SKILLBOX_SERVER_URL", &server.url)
            .with("SKILLBOX_API_KEY", &server.key());
        push_greeter(&shell);
        session(&shell, generation);
    }
}

#[test]
fn reports_unusable_server_and_broken_lines_as_messages() {
    let shell = native()
        .with("SKILLBOX_SERVER_URL", "http://127.0.0.1:1")
        .with("SKILLBOX_API_KEY", "skb_x");
    let mut client = StdioClient::start(&shell, &[], STATELESS);
    client.begin(1, "tools/list", json!({}));
    let answer = client.next();
    assert!(
        answer["error"]["message"]
            .as_str()
            .unwrap()
            .contains("does not respond"),
        "{answer}"
    );
    let input = client.input.as_mut().unwrap();
    writeln!(input, "no message").unwrap();
    assert_eq!(client.next()["error"]["code"], -32700);
    client.end();
}

#[test]
fn pins_skills_and_ends_with_its_client() {
    let shell = native();
    push_greeter(&shell);
    let mut client = StdioClient::start(&shell, &["--skills", "absent"], STATELESS);
    let listed = client.ask(1, "tools/list", json!({}));
    assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), 4, "{listed}");
    client.end();
}

#[test]
fn prints_entry_for_each_client() {
    let shell = Shell::new()
        .with("SKILLBOX_SERVER_URL", "https://box.example/")
        .with("SKILLBOX_API_KEY", "skb_x");
    let entry = |args: &[&str]| {
        let said = shell.run(&[&["mcp", "config"], args].concat());
        assert_eq!((said.code, said.stderr.as_str()), (0, ""));
        serde_json::from_str::<Value>(&said.stdout).unwrap()
    };
    assert_eq!(
        entry(&["claude-code"]),
        json!({ "mcpServers": { "skillbox": { "type": "http", "url": "https://box.example/mcp",
            "headers": { "Authorization": "Bearer ${SKILLBOX_API_KEY}" } } } })
    );
    let cursor = entry(&["cursor", "--with-key", "--skills", "pdf"]);
    let server = &cursor["mcpServers"]["skillbox"];
    assert_eq!(server["url"], "https://box.example/mcp?skills=pdf");
    assert_eq!(server["headers"]["Authorization"], "Bearer skb_x");
    assert_eq!(entry(&["vscode"])["inputs"][0]["password"], true);
    assert_eq!(
        entry(&["claude-desktop"])["mcpServers"]["skillbox"]["args"],
        json!(["mcp"])
    );
    let local = Shell::new().run(&["mcp", "config", "claude-code"]);
    assert!(
        local.stdout.contains("http://127.0.0.1:8080/mcp"),
        "{}",
        local.stdout
    );
    assert_eq!(shell.run(&["mcp", "config", "emacs"]).code, 2);
}
