//! What a person sees: recorded screens of terminals, with colour or none, and with a stream redirected.

use super::cli_shell::{Shell, has_docker};
use super::terminal::{Screen, TERMINAL, Terminal};

const GREETS: &str =
    "import sys\nprint('hello')\nsys.stderr.write('careful\\n')\n{'answer': 6 * 7, 'of': [1, 2]}\n";
const FAILS: &str = "print('begun')\nraise ValueError('no such thing')\n";

/// A person with two programs, or `None` without an engine.
fn person() -> Option<Shell> {
    if !has_docker() {
        return None;
    }
    let shell = Shell::new().with_engine();
    for (name, program) in [("greets.py", GREETS), ("fails.py", FAILS)] {
        std::fs::write(shell.folder().join(name), program).unwrap();
    }
    Some(shell)
}

/// Compares what a command printed to the recorded screen `name`.
fn check(name: &str, screen: &Screen) {
    let mut text = format!(
        "terminal:\n{}stdout:\n{}stderr:\n{}exit code {}\n",
        screen.terminal, screen.stdout, screen.stderr, screen.code
    );
    for (colour, name) in [
        ("\u{1b}[32m", "<green>"),
        ("\u{1b}[31m", "<red>"),
        ("\u{1b}[1m", "<bold>"),
        ("\u{1b}[0m", "</>"),
        ("\r\n", "\n"),
    ] {
        text = text.replace(colour, name);
    }
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../snapshots/terminal");
    settings.set_prepend_module_to_snapshot(false);
    // What differs between runs and machines.
    for (pattern, name) in [
        ("[0-9a-f]{8}-[0-9a-f-]{27}", "[id]"),
        (r"\b[0-9]+ ms|\b[0-9.]+ s\b", "[time]"),
        (r"\b(native|docker)\b", "[backend]"),
    ] {
        settings.add_filter(pattern, name);
    }
    settings.bind(|| insta::assert_snapshot!(name, text));
}

const PLAIN: Terminal = Terminal {
    columns: 120,
    has_colour: false,
    ..TERMINAL
};

/// The program's output, its result and a summary, each once.
#[test]
fn run_shows_output_then_result_then_summary() {
    let Some(shell) = person() else { return };
    check(
        "run_succeeded",
        &TERMINAL.run(&shell, &["run", "--code", "greets.py"]),
    );
    check(
        "run_succeeded_plain",
        &PLAIN.run(&shell, &["run", "--code", "greets.py"]),
    );
    check(
        "run_failed",
        &TERMINAL.run(&shell, &["run", "--code", "fails.py"]),
    );
    check(
        "run_quiet",
        &TERMINAL.run(&shell, &["run", "--quiet", "--code", "greets.py"]),
    );
}

/// Standard output alone decides between a person and a program.
#[test]
fn redirected_stdout_gets_data() {
    let Some(shell) = person() else { return };
    let to_pipe = Terminal {
        has_stdout: false,
        ..TERMINAL
    };
    let piped = to_pipe.run(&shell, &["run", "--code", "greets.py"]);
    let envelope: serde_json::Value = serde_json::from_str(&piped.stdout).unwrap();
    assert_eq!(envelope["output"]["answer"], 42);
    assert_eq!(envelope["logs"]["stdout"], "hello\n");
    assert_eq!(piped.terminal, "careful\r\n");
    let errors_to_pipe = Terminal {
        has_stderr: false,
        ..TERMINAL
    };
    check(
        "run_stderr_redirected",
        &errors_to_pipe.run(&shell, &["run", "--code", "greets.py"]),
    );
}

#[test]
fn format_value_prints_output_alone() {
    let Some(shell) = person() else { return };
    std::fs::write(shell.folder().join("text.py"), "'two\\nlines'").unwrap();
    let run = |code: &str| shell.run(&["run", "--code", code, "--format", "value"]);
    assert_eq!(run("text.py").stdout, "two\nlines\n");
    assert_eq!(run("greets.py").stdout, "{\"answer\": 42, \"of\": [1, 2]}\n");
    let failed = run("fails.py");
    assert_eq!((failed.stdout.as_str(), failed.code), ("", 1));
    let listed = shell.run(&["exec", "list", "--format", "value"]);
    assert_eq!(listed.code, 2, "{}", listed.stderr);
}

/// The same view of a run that has ended.
#[test]
fn show_wait_and_watch_share_view() {
    let Some(shell) = person() else { return };
    let envelope = shell.json(&["run", "--code", "greets.py"]);
    let id = envelope["execution_id"].as_str().unwrap();
    for command in ["show", "wait", "watch"] {
        let shown = TERMINAL.run(&shell, &["exec", command, id]);
        check("exec_succeeded", &shown);
    }
}
