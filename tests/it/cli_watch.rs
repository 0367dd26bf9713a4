//! Executions watched from the command line.

use std::io::{BufRead as _, BufReader};
use std::process::Child;

use serde_json::Value;
use skillbox::ids::ExecutionId;
use skillbox::limits;

use crate::cli_hostile::{server, shell};
use crate::cli_shell::{Shell, has_docker, interrupt};
use crate::server::{Server, free_port};
use crate::terminal::on_terminal;

/// A server, and a user of it who has its key.
fn served(env: &[(&str, &str)]) -> (Shell, Server, Shell) {
    let home = Shell::new();
    let server = Server::start_with(&home.folder().join("server"), env);
    let shell = Shell::new()
        .with("SKILLBOX_SERVER_URL", &server.url)
        .with("SKILLBOX_API_KEY", &server.key());
    (home, server, shell)
}

const SLEEPS: &str = "import sys, time\nprint('one', flush=True)\nprint('aside', file=sys.stderr, flush=True)\ntime.sleep(100)";

/// Begins code that prints and sleeps; returns it and the execution's id once that runs.
fn begun(shell: &Shell) -> (Child, String) {
    std::fs::write(shell.folder().join("sleeps.py"), SLEEPS).unwrap();
    (shell.spawn(&["run", "--code", "sleeps.py"]), running(shell))
}

/// The execution that runs, as soon as there is one.
fn running(shell: &Shell) -> String {
    loop {
        let running = shell.json(&["exec", "list", "--status", "running"]);
        if let Some(id) = running[0]["execution_id"].as_str() {
            return id.to_owned();
        }
    }
}

fn line(child: &mut BufReader<impl std::io::Read>) -> String {
    let mut line = String::new();
    child.read_line(&mut line).unwrap();
    line
}

fn rest(mut from: impl std::io::Read) -> String {
    let mut text = String::new();
    from.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn streams_output_while_program_runs() {
    if !has_docker() {
        return;
    }
    let (_home, _server, shell) = served(&[]);
    let (mut run, id) = begun(&shell);
    let mut watch = shell.spawn(&["exec", "watch", &id]);
    let mut logs = shell.spawn(&["exec", "logs", "-f", &id]);
    let mut heard = BufReader::new(watch.stdout.take().unwrap());
    let mut followed = BufReader::new(logs.stdout.take().unwrap());
    // The program sleeps for longer than anybody waits here.
    assert_eq!(
        (line(&mut heard), line(&mut followed)),
        ("one\n".to_owned(), "one\n".to_owned())
    );
    assert_eq!(shell.run(&["exec", "cancel", &id]).code, 0);
    assert_eq!(watch.wait().unwrap().code(), Some(6));
    assert_eq!((rest(heard), rest(followed)), (String::new(), String::new()));
    let talk = rest(watch.stderr.take().unwrap());
    assert!(
        talk.starts_with(&format!("execution {id} is running\n")),
        "{talk}"
    );
    assert!(
        talk.contains("\naside\n") && talk.contains("execution cancelled: "),
        "{talk}"
    );
    assert_eq!(logs.wait().unwrap().code(), Some(0));
    assert_eq!(rest(logs.stderr.take().unwrap()), "aside\n");
    assert_eq!(run.wait().unwrap().code(), Some(6));
    let told = shell.run(&["exec", "watch", &id, "--format", "json"]);
    let envelope: Value = serde_json::from_str(&told.stdout).unwrap();
    assert_eq!((told.code, envelope["status"].as_str()), (6, Some("cancelled")));
    assert_eq!(
        shell
            .run(&["exec", "watch", &ExecutionId::generate().to_string()])
            .code,
        3
    );
}

/// A watch reconnects to the restarted server and repeats no event.
#[test]
fn watch_reconnects_after_server_restart() {
    if !has_docker() {
        return;
    }
    let port = free_port();
    let env = [("SKILLBOX_API_PORT", port.as_str())];
    let home = Shell::new();
    let server = Server::start_with(&home.folder().join("server"), &env);
    let shell = Shell::new()
        .with("SKILLBOX_SERVER_URL", &server.url)
        .with("SKILLBOX_API_KEY", &server.key());
    let (mut run, id) = begun(&shell);
    let mut wait = shell.spawn(&["exec", "wait", &id]);
    let mut watch = shell.spawn(&["exec", "watch", &id]);
    let mut heard = BufReader::new(watch.stdout.take().unwrap());
    assert_eq!(line(&mut heard), "one\n");
    let data = server.kill_9();
    let _again = Server::start_with(&data, &env);
    assert_eq!(watch.wait().unwrap().code(), Some(6));
    assert_eq!(rest(heard), "", "nothing comes twice");
    let talk = rest(watch.stderr.take().unwrap());
    assert!(talk.contains("execution interrupted: "), "{talk}");
    // Nor is anybody else's connection the execution.
    for waiting in [&mut wait, &mut run] {
        assert_eq!(waiting.wait().unwrap().code(), Some(6));
        let told = rest(waiting.stdout.take().unwrap());
        let envelope: Value = serde_json::from_str(&told).unwrap();
        assert_eq!(envelope["status"], "interrupted", "{told}");
    }
}

/// On a terminal, standard error appears while it is written, and once; the result follows.
#[test]
fn terminal_shows_logs_before_result() {
    if !has_docker() {
        return;
    }
    let (_home, _server, remote) = served(&[]);
    for shell in [remote, Shell::new().with_engine()] {
        let program = "import sys\nfrom runtime import log\nsys.stderr.write('said\\x1b[2J')\nsys.stderr.flush()\nlog.info('logged')\nsys.exit(3)";
        std::fs::write(shell.folder().join("says.py"), program).unwrap();
        let sent = on_terminal(&shell, &["run", "--code", "says.py"]);
        let (before, after) = sent.split_once("failed in ").unwrap();
        assert!(before.contains("said\\u{1b}[2J\r\n"), "{sent:?}");
        assert!(before.contains("INFO logged\r\n"), "{sent:?}");
        assert_eq!(sent.matches("said").count(), 1, "{sent:?}");
        assert!(after.contains("exited with code 3"), "{sent:?}");
        assert!(!sent.contains("said\u{1b}"), "W-12: {sent:?}");
        let piped = shell.run(&["run", "--code", "says.py"]);
        assert_eq!(piped.stderr.matches("said").count(), 1, "{}", piped.stderr);
    }
}

/// O-14: a server that sends what is no event, or an event without an end, is not believed for long.
#[test]
fn invalid_event_stream_ends_command() {
    let stream = "200 OK\r\ncontent-type: text/event-stream";
    let event = |name: &str, data: &str| format!("id: 1-0-0-running\nevent: {name}\ndata: {data}\n\n");
    let endless = usize::try_from(limits::ANSWER_BYTES_MAX).unwrap();
    for body in [
        format!("event: stdout\ndata: {}", "x".repeat(endless)),
        event("stdout", "{\"text\": 1}"),
        event("stdout", "{\"text\": \"\", \"base64\": \"?\"}"),
        event("result", "{}"),
    ] {
        let url = server(move |_| (stream, body.clone().into_bytes()));
        let id = ExecutionId::generate().to_string();
        let said = shell(&url).run(&["exec", "watch", &id]);
        assert_eq!(said.code, 69, "{}", said.stderr);
        assert!(
            said.stderr.contains("cannot parse the server's event"),
            "{}",
            said.stderr
        );
    }
}

/// An execution is submitted without waiting, and awaited later.
#[test]
fn waits_for_async_execution_by_id() {
    if !has_docker() {
        return;
    }
    let (_home, _server, shell) = served(&[]);
    std::fs::write(
        shell.folder().join("slow.py"),
        "import time\ntime.sleep(5)\nprint('done')\n40 + 2",
    )
    .unwrap();
    let asked = shell.run(&["run", "--code", "slow.py", "--async"]);
    assert_eq!(asked.code, 0, "{}", asked.stderr);
    let id: ExecutionId = asked.stdout.trim_end().parse().unwrap();
    let id = id.to_string();
    let early = shell.run(&["exec", "wait", &id, "--timeout", "0.2s"]);
    assert_eq!(early.code, 69, "{}", early.stderr);
    assert!(early.stderr.contains("exec cancel"), "{}", early.stderr);
    let ended = shell.run(&["exec", "wait", &id]);
    let envelope: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((ended.code, &envelope["output"]), (0, &Value::from(42)));
    let failed = shell.run(&[
        "exec",
        "wait",
        &shell.run(&["run", "--code", "gone.py", "--async"]).stdout,
    ]);
    assert_ne!(failed.code, 0);
    std::fs::write(shell.folder().join("fails.py"), "raise SystemExit(3)").unwrap();
    let asked = shell.json(&["run", "--code", "fails.py", "--async", "--format", "json"]);
    assert!(
        asked["queue"].is_object() || asked["status"] != "success",
        "{asked}"
    );
    let failed = shell.run(&["exec", "wait", asked["execution_id"].as_str().unwrap()]);
    assert_eq!(failed.code, 1, "{}", failed.stderr);
}

/// A local command has no server that would run it later.
#[test]
fn rejects_async_without_server() {
    let refused = Shell::new().run(&["run", "--code", "-", "--async"]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(refused.stderr.contains("--server"), "{}", refused.stderr);
}

/// Ctrl-C ends what a server runs, too; what it had printed is kept.
#[test]
fn ctrl_c_cancels_execution_on_server() {
    if !has_docker() {
        return;
    }
    let (_home, _server, shell) = served(&[]);
    let (run, id) = begun(&shell);
    let mut watch = shell.spawn(&["exec", "watch", &id]);
    let mut heard = BufReader::new(watch.stdout.take().unwrap());
    assert_eq!(line(&mut heard), "one\n");
    let pressed = std::time::Instant::now();
    interrupt(&run);
    let ended = run.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130));
    let (told, talk) = (String::from_utf8(ended.stdout), String::from_utf8(ended.stderr));
    let envelope: Value = serde_json::from_str(&told.unwrap()).unwrap();
    assert_eq!(
        (&envelope["status"], &envelope["execution_id"]),
        (&"cancelled".into(), &id.as_str().into())
    );
    assert!(talk.unwrap().contains("cancelled by Ctrl-C"));
    assert_eq!(watch.wait().unwrap().code(), Some(6));
    assert!(
        pressed.elapsed() < std::time::Duration::from_secs(5),
        "{:?}",
        pressed.elapsed()
    );
    let kept = shell.json(&["exec", "show", &id]);
    assert_eq!(
        (&kept["status"], &kept["logs"]["stdout"]),
        (&"cancelled".into(), &"one\n".into())
    );
}

/// As with `| head -1`: output without a reader is dropped, and the execution continues.
#[test]
fn closed_stdout_ends_only_the_command() {
    if !has_docker() {
        return;
    }
    let (_home, _server, shell) = served(&[]);
    let ticks = "import time\nwhile True:\n    print(1, flush=True)\n    time.sleep(0.05)\n";
    std::fs::write(shell.folder().join("ticks.py"), ticks).unwrap();
    let id = shell.run(&["run", "--code", "ticks.py", "--async"]).stdout;
    let id = id.trim();
    for command in [&["exec", "logs", "-f", id][..], &["exec", "watch", id]] {
        let mut reader = shell.spawn(command);
        let mut heard = BufReader::new(reader.stdout.take().unwrap());
        assert_eq!(line(&mut heard), "1\n");
        drop(heard);
        assert_eq!(reader.wait().unwrap().code(), Some(0), "{command:?}");
    }
    assert_eq!(running(&shell), id);
    assert_eq!(shell.run(&["exec", "cancel", id]).code, 0);
}
