//! Standard input of a command that no option reads: it becomes that of the program, without waiting for pipes that stay open.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::cli_shell::{CommandOutput, Shell, command_output};
use crate::terminal_views::person;

const LINES: &str = "import sys\nlen(sys.stdin.readlines())\n";

fn shell() -> Option<Shell> {
    let shell = person()?;
    std::fs::write(shell.folder().join("lines.py"), LINES).unwrap();
    Some(shell)
}

/// Runs a command line with `skillbox` as `$0`.
fn by_sh(shell: &Shell, script: &str) -> CommandOutput {
    let skillbox = shell.command(&[]);
    let mut command = Command::new("sh");
    command
        .args(["-c", script, env!("CARGO_BIN_EXE_skillbox")])
        .current_dir(shell.folder())
        .env_clear();
    command.envs(
        skillbox
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    command_output(command.output().unwrap())
}

#[test]
fn piped_and_redirected_input_reaches_program() {
    let Some(shell) = shell() else { return };
    std::fs::write(shell.folder().join("list"), "a\nb\nc\n").unwrap();
    for script in [
        "cat list | $0 run lines.py --format value",
        "$0 run lines.py --format value < list",
        "{ printf 'a\nb\n'; sleep 1; echo c; } | $0 run lines.py --format value",
    ] {
        let ran = by_sh(&shell, script);
        assert_eq!(
            (ran.stdout.as_str(), ran.stderr.as_str()),
            ("3\n", ""),
            "{script}"
        );
    }
    let given = by_sh(&shell, "cat list | $0 run lines.py --stdin '' --format value");
    assert_eq!(given.stdout, "0\n");
    let nothing = by_sh(&shell, "$0 run lines.py --format value < /dev/null");
    assert_eq!((nothing.stdout.as_str(), nothing.stderr.as_str()), ("0\n", ""));
}

/// A loop goes on with its second line after the command.
#[test]
fn file_at_standard_input_keeps_its_position() {
    let Some(shell) = shell() else { return };
    std::fs::write(shell.folder().join("list"), "a\nb\nc\n").unwrap();
    let script = "while read -r name; do $0 run lines.py --format value; done < list";
    let ran = by_sh(&shell, script);
    assert_eq!(ran.stdout, "2\n1\n0\n", "{}", ran.stderr);
}

/// As cron, CI and ssh leave it.
#[test]
fn open_pipe_without_data_does_not_delay_a_run() {
    let Some(shell) = shell() else { return };
    let mut command = shell.command(&["run", "lines.py", "--format", "value"]);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let open = child.stdin.take();
    let said = command_output(child.wait_with_output().unwrap());
    drop(open);
    assert_eq!(said.stdout, "0\n", "{}", said.stderr);
    assert!(said.stderr.contains("add --stdin -"), "{}", said.stderr);
}

#[test]
fn pipe_that_begins_but_never_ends_is_an_error() {
    let Some(shell) = shell() else { return };
    let mut command = shell.command(&["run", "lines.py"]);
    command.stdin(Stdio::piped()).stderr(Stdio::piped());
    let began = Instant::now();
    let mut child = command.spawn().unwrap();
    let mut open = child.stdin.take().unwrap();
    open.write_all(b"a\n").unwrap();
    let said = command_output(child.wait_with_output().unwrap());
    drop(open);
    assert_eq!(said.code, 2, "{}", said.stderr);
    assert!(
        said.stderr.contains("wait for its end with --stdin -"),
        "{}",
        said.stderr
    );
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}
