//! `docs/TROUBLESHOOTING.md` quotes messages that Skillbox prints: each one is provoked here.

use std::process::Stdio;

use serde_json::json;

use crate::cli_docs::read;
use crate::cli_shell::{Shell, examples, has_docker};
use crate::server::Server;
use crate::world::missing;

/// The quoted messages of the tables.
fn quoted() -> Vec<String> {
    let document = read("docs/TROUBLESHOOTING.md");
    let (with_messages, _) = document.split_once("## Without a message").unwrap();
    let rows = with_messages.lines().filter_map(|line| line.strip_prefix("| `"));
    let messages: Vec<_> = rows
        .map(|row| row.split_once("` | ").unwrap().0.to_owned())
        .collect();
    assert!(messages.len() > 20, "{messages:?}");
    messages
}

/// A shell with the files that the commands below name.
fn shell() -> Shell {
    let shell = Shell::new().with_engine();
    shell.skill(
        "toolb",
        "metadata:\n  skillbox.lang: bash\n",
        "scripts/main.sh",
        "true\n",
    );
    for (name, code) in [
        ("pandas.py", "import pandas"),
        ("pil.py", "import PIL"),
        ("large.py", "x = bytearray(10**9)"),
        ("endless.py", "while True: pass"),
        (
            "network.py",
            "import urllib.request\nurllib.request.urlopen('http://example.com')",
        ),
        ("root.py", "open('/etc/x', 'w')"),
        ("root.rb", "puts 1"),
    ] {
        std::fs::write(shell.folder().join(name), code).unwrap();
    }
    shell
}

/// What commands without a server print.
fn local() -> String {
    let shell = shell();
    let text_summary = examples().join("text-summary");
    let mut said = String::new();
    let mut run = |shell: &Shell, args: &[&str]| {
        let output = shell.run(args);
        said.push_str(&output.stdout);
        said.push_str(&output.stderr);
    };
    run(&shell, &["skill", "push", text_summary.to_str().unwrap()]);
    for file in ["pandas.py", "pil.py", "large.py", "network.py", "root.py"] {
        run(&shell, &["run", file]);
    }
    run(&shell, &["run", "endless.py", "--timeout", "1s"]);
    run(&shell, &["run", "text-summary", "--input", r#"{"text": 5}"#]);
    run(&shell, &["run", "./toolb", "--input", "{text: 5}"]);
    run(&shell, &["run", "./toolb"]);
    run(&shell, &["run", "nosuch"]);
    run(&shell, &["run", "toolb"]);
    run(&shell, &["run", "tota.py"]);
    run(&shell, &["run", "root.rb"]);
    run(&shell, &["--server", "http://127.0.0.1:1", "skill", "list"]);
    let misspelt = Shell::new().with("SKILLBOX_MEMRY", "1Gi");
    run(&misspelt, &["skill", "list"]);
    let no_engine = self::shell()
        .with("SKILLBOX_DOCKER_HOST", "unix:///nonexistent.sock")
        .with("SKILLBOX_SANDBOX_BACKEND", "docker");
    run(&no_engine, &["run", "root.py"]);
    let no_image = self::shell()
        .with("SKILLBOX_IMAGE_PYTHON", "nosuch:1")
        .with("SKILLBOX_IMAGE_NODE", "nosuch:1")
        .with("SKILLBOX_IMAGE_BASH", "nosuch:1")
        .with("SKILLBOX_IMAGE_ALLOWLIST", "nosuch:1")
        .with("SKILLBOX_SANDBOX_BACKEND", "docker");
    run(&no_image, &["run", "root.py"]);
    let mut command = shell.command(&["run", "root.rb", "--lang", "bash"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let open = child.stdin.take();
    said.push_str(&String::from_utf8(child.wait_with_output().unwrap().stderr).unwrap());
    drop(open);
    said
}

/// What a shared and a newer data folder print.
fn folders() -> String {
    use std::os::unix::fs::PermissionsExt as _;
    let shell = Shell::new();
    shell.run(&["skill", "list"]);
    let database = rusqlite::Connection::open(shell.data().join("skillbox.db")).unwrap();
    database
        .execute_batch(
            "insert into refinery_schema_history select 99, name, applied_on, checksum from refinery_schema_history limit 1",
        )
        .unwrap();
    drop(database);
    let mut said = shell.run(&["skill", "list"]).stderr;
    std::fs::set_permissions(shell.data(), std::fs::Permissions::from_mode(0o777)).unwrap();
    said.push_str(&shell.run(&["skill", "list"]).stderr);
    said
}

/// What a server answers, and what a second one on its port prints.
fn remote() -> String {
    let home = Shell::new();
    let server = Server::start(&home.folder().join("server"));
    let port = server.url.rsplit(':').next().unwrap();
    let mut said = Shell::new().run(&["serve", "--port", port]).stderr;
    said = said.replace(port, "8080");
    let wrong = Shell::new()
        .with("SKILLBOX_SERVER_URL", &server.url)
        .with("SKILLBOX_API_KEY", "skb_wrong");
    said.push_str(&wrong.run(&["skill", "list"]).stderr);
    let created = server.post_json("/v1/keys", &json!({"name": "small", "scopes": ["run"]}));
    let small = Shell::new()
        .with("SKILLBOX_SERVER_URL", &server.url)
        .with("SKILLBOX_API_KEY", created.body["api_key"].as_str().unwrap());
    let folder = examples().join("text-summary");
    said.push_str(&small.run(&["skill", "push", folder.to_str().unwrap()]).stderr);
    for (path, body) in [
        ("/v1/executions", json!({"cod": "1"})),
        (
            "/v1/executions",
            json!({"code": "1", "requirements": ["nosuchpackage-zzz-1"]}),
        ),
    ] {
        said.push_str(&server.post_json(path, &body).body.to_string());
    }
    for arguments in [vec![], vec!["-H", "Host: skills.example.com"]] {
        let mut curl = std::process::Command::new("curl");
        curl.arg("-s")
            .args(arguments)
            .arg(format!("{}/v1/skills", server.url));
        said.push_str(&String::from_utf8(curl.output().unwrap().stdout).unwrap());
    }
    said
}

/// Messages of hosts that this one is not, by their parts and the source file that has them.
const OF_OTHER_HOSTS: &[(&str, &[&str])] = &[
    (
        "src/sandbox/linux/userns_settings.rs",
        &[
            "kernel.apparmor_restrict_unprivileged_userns",
            " is ",
            " on this host, which forbids user namespaces",
        ],
    ),
    (
        "src/sandbox/linux/advice.rs",
        &["memory and CPU of native sandboxes cannot be limited"],
    ),
];

fn is_in_sources(message: &str) -> bool {
    OF_OTHER_HOSTS.iter().any(|(file, parts)| {
        let source = read(file);
        let is_quoted = |part: &&str| message.contains(*part) && source.contains(*part);
        parts.iter().all(is_quoted)
    })
}

#[test]
fn quotes_messages_that_are_printed() {
    if !has_docker() {
        return;
    }
    if std::process::Command::new("curl")
        .arg("--version")
        .output()
        .is_err()
    {
        return missing("curl", "requests without a key need it");
    }
    let said = (local() + &folders() + &remote()).replace('`', "");
    let mut absent = quoted();
    absent.retain(|message| !said.contains(message.as_str()) && !is_in_sources(message));
    if absent.iter().any(|message| message.contains("with wheels")) && said.contains("cannot be reached") {
        missing("packages", "the index of Python packages cannot be reached");
        absent.retain(|message| !message.contains("with wheels"));
    }
    assert!(absent.is_empty(), "not printed: {absent:#?}\nprinted: {said}");
}
