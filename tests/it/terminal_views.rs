//! What a person sees: recorded screens of terminals, with colour or none, and with a stream redirected.

use super::cli_shell::{Shell, has_docker};
use super::terminal::{Screen, TERMINAL, Terminal};
use super::world::missing;

const GREETS: &str = "import sys, time\nprint('hello', flush=True)\ntime.sleep(0.2)\nsys.stderr.write('careful\\n')\n{'answer': 6 * 7, 'of': [1, 2]}\n";
const FAILS: &str = "print('begun')\nraise ValueError('no such thing')\n";

/// A person with two programs, or `None` without an engine.
pub(crate) fn person() -> Option<Shell> {
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
pub(crate) fn check(name: &str, screen: &Screen) {
    let mut text = format!(
        "terminal:\n{}stdout:\n{}stderr:\n{}exit code {}\n",
        screen.terminal, screen.stdout, screen.stderr, screen.code
    );
    for (colour, name) in [
        ("\u{1b}[32m", "<green>"),
        ("\u{1b}[31m", "<red>"),
        ("\u{1b}[1m", "<bold>"),
        ("\u{1b}[0m", "</>"),
        ("\u{1b}[2K", ""),
        ("\r", ""),
    ] {
        text = text.replace(colour, name);
    }
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../snapshots/terminal");
    settings.set_prepend_module_to_snapshot(false);
    // What differs between runs and machines.
    for (pattern, name) in [
        // A progress indication appears after a second.
        (r"[\u{2800}-\u{28FF}] running +[0-9]+s", ""),
        ("[0-9a-f]{8}-[0-9a-f-]{27}", "[id]"),
        (r"\b[0-9a-f]{8}\b", "[id end]"),
        (r"\bnow\b|\b[0-9]+ s ago", "[ago]"),
        (r"\b[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z", "[moment]"),
        (r"\b[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]+Z", "[moment]"),
        (r"sha256:[0-9a-f]{64}", "[digest]"),
        (r"Docker [0-9.+a-z]+", "Docker [version]"),
        (r"\b[0-9]+ ms|\b[0-9.]+ s\b", "[time]"),
        // The width of a column depends on the time.
        (r"\[time\] {2,}", "[time]  "),
        (r"\b(native|docker)\b", "[backend]"),
    ] {
        settings.add_filter(pattern, name);
    }
    settings.bind(|| insta::assert_snapshot!(name, text));
}

pub(crate) const PLAIN: Terminal = Terminal {
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
        "run_failed_plain",
        &PLAIN.run(&shell, &["run", "--code", "fails.py"]),
    );
    // A table keeps the lines of a traceback.
    check(
        "run_failed_table_plain",
        &PLAIN.run(&shell, &["run", "--code", "fails.py", "--format", "table"]),
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
    // On a busy machine a progress indication comes first, and is erased.
    let printed = piped.terminal.rsplit("\u{1b}[2K").next().unwrap();
    assert_eq!(printed, "careful\r\n");
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

/// Output that arrives while a spinner is drawn stands in lines of its own, also where a line has not ended yet.
#[test]
fn spinner_is_erased_before_output() {
    let Some(shell) = person() else { return };
    let program = "import time\nprint('begun', end='', flush=True)\ntime.sleep(1.5)\nprint()\n\
                   for number in range(5):\n    print(number, flush=True)\n    time.sleep(0.7)\n";
    std::fs::write(shell.folder().join("slow.py"), program).unwrap();
    let screen = TERMINAL.run(&shell, &["run", "slow.py"]);
    assert!(screen.terminal.contains("running"), "{screen:?}");
    let lines = screen.lines();
    assert_eq!(lines[..6], ["begun", "0", "1", "2", "3", "4"], "{screen:?}");
    assert!(lines[6].starts_with("\u{2713} success in "), "{lines:?}");
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

/// Ids are short, and columns that do not fit are left out.
#[test]
fn tables_fit_terminal() {
    let Some(shell) = person() else { return };
    shell.json(&["run", "--code", "greets.py"]);
    for columns in [120, 80, 40] {
        let terminal = Terminal { columns, ..TERMINAL };
        let screen = terminal.run(&shell, &["exec", "list"]);
        check(&format!("exec_list_{columns}"), &screen);
        let width = screen.terminal.lines().map(|line| line.chars().count()).max();
        // Two escape sequences of the heading.
        assert!(width <= Some(usize::from(columns) + 8), "{screen:?}");
    }
    assert!(shell.run(&["exec", "list"]).stdout.lines().nth(1).unwrap().len() > 36);
}

/// An id is needed only where there are several, and only as much of it as tells them apart.
#[test]
fn ids_are_given_by_part_or_not_at_all() {
    let Some(shell) = person() else { return };
    let ids: Vec<String> = ["fails.py", "greets.py"]
        .map(|program| {
            let ran = shell.run(&["run", "--code", program]);
            let envelope: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
            envelope["execution_id"].as_str().unwrap().to_owned()
        })
        .into();
    let shown = |args: &[&str]| shell.json(args)["execution_id"].as_str().unwrap().to_owned();
    assert_eq!(shown(&["exec", "show"]), ids[1]);
    assert_eq!(shown(&["exec", "wait"]), ids[1]);
    for id in &ids {
        assert_eq!(&shown(&["exec", "show", &id[id.len() - 8..]]), id);
        assert_eq!(&shown(&["exec", "show", &id[..id.len() - 1]]), id);
    }
    let several = shell.run(&["exec", "show", &ids[0][..4]]);
    assert_eq!(several.code, 3, "{}", several.stderr);
    assert!(
        several.stderr.contains(&ids[0]) && several.stderr.contains(&ids[1]),
        "{}",
        several.stderr
    );
    let deleted = shell.run(&["exec", "delete"]);
    assert_eq!(deleted.code, 2, "{}", deleted.stderr);
}

/// A skill that asks for more than it gets is told so: by lint, by a run, and by the failure that follows.
#[test]
fn lowered_limits_are_named() {
    let Some(shell) = person() else { return };
    let front_matter = "lang: python\nversion: 1.0.0\nresources: {memory: 8Gi}\n";
    let eats = "held = [bytearray(64 << 20) for _ in range(64)]\n";
    shell.skill("eats", front_matter, "scripts/main.py", eats);
    let lint = shell.run(&["skill", "lint", "eats"]);
    assert!(
        lint.stdout
            .contains("the skill asks for 8 GiB; raise limits.memory"),
        "{}",
        lint.stdout
    );
    let envelope: serde_json::Value = serde_json::from_str(&shell.run(&["run", "./eats"]).stdout).unwrap();
    assert_eq!(envelope["limits"]["asked"]["memory_bytes"], 8_u64 << 30);
    assert_eq!(envelope["limits"]["granted"]["memory_bytes"], 512 << 20);
    let message = "out of memory: limit 512 MiB (the skill asks for 8 GiB; raise limits.memory)";
    assert_eq!(envelope["error"]["message"], message);
    check("run_out_of_memory", &TERMINAL.run(&shell, &["run", "./eats"]));
    check("run_out_of_memory_plain", &PLAIN.run(&shell, &["run", "./eats"]));
}

/// A typing error is answered with what was probably meant.
#[test]
fn typing_errors_are_answered_with_what_is_meant() {
    let Some(shell) = person() else { return };
    shell.skill(
        "eats-nothing",
        "lang: bash\nversion: 1.2.0\n",
        "scripts/main.sh",
        "true",
    );
    shell.run(&["skill", "push", "./eats-nothing"]);
    for (args, meant) in [
        (&["run", "eats-nothin"][..], "did you mean `eats-nothing`?"),
        (&["skill", "show", "eat-nothing"], "did you mean `eats-nothing`?"),
        (
            &["run", "eats-nothing", "--version", "1.3.0"],
            "its newest versions: 1.2.0",
        ),
        (&["skil", "list"], "similar subcommands exist: 'sdk', 'skill'"),
        (
            &["run", "--code", "greets.py", "--requirement", "requirements.txt"],
            "use --requirements requirements.txt",
        ),
    ] {
        let said = shell.run(args);
        assert_ne!(said.code, 0, "{args:?}");
        assert!(said.stderr.contains(meant), "{args:?}: {}", said.stderr);
    }
    let misspelt = shell.with("SKILLBOX_POOL_SLOT", "1");
    let warned = misspelt.run(&["skill", "list"]);
    assert_eq!(warned.code, 0);
    assert!(
        warned.stderr.contains("did you mean `SKILLBOX_POOL_SLOTS`?"),
        "{}",
        warned.stderr
    );
    let refused = misspelt.run(&["serve", "--port", "0"]);
    assert_eq!(refused.code, 78, "{}", refused.stderr);
}

/// Code runs by its file name alone.
#[test]
fn code_file_runs_by_its_name() {
    let Some(shell) = person() else { return };
    let answer = |args: &[&str]| shell.run(&[&["run", "--format", "value"], args].concat());
    assert_eq!(
        answer(&["greets.py"]).stdout,
        "{\"answer\": 42, \"of\": [1, 2]}\n"
    );
    std::fs::write(shell.folder().join("tool"), "6*7").unwrap();
    let asked = answer(&["./tool"]);
    assert_eq!(asked.code, 2);
    assert!(
        asked.stderr.contains("--lang python, node or bash"),
        "{}",
        asked.stderr
    );
    assert_eq!(answer(&["./tool", "--lang", "python"]).stdout, "42\n");
    std::fs::write(shell.folder().join("needs.py"), "import PIL").unwrap();
    let needs = shell.run(&["run", "needs.py"]);
    assert!(
        needs.stderr.contains("add it with `--requirement pillow`"),
        "{}",
        needs.stderr
    );
}

/// In a pipe, too: it may take minutes.
#[test]
fn installation_reports_begin_and_end() {
    let Some(shell) = person() else { return };
    std::fs::write(shell.folder().join("needs.py"), "import six; six.PY3").unwrap();
    let run = || shell.run(&["run", "./needs.py", "--requirement", "six", "--format", "value"]);
    let first = run();
    if first.stderr.contains("could not be installed") {
        return missing("packages", &first.stderr);
    }
    assert_eq!(first.stdout, "true\n", "{}", first.stderr);
    let lines: Vec<&str> = first.stderr.lines().collect();
    let [begin, arriving @ .., end] = &lines[..] else {
        panic!("{lines:?}")
    };
    assert_eq!(*begin, "installing six", "{lines:?}");
    // Every 5 s, so a fast index causes none.
    let is_progress = |line: &&str| line.starts_with("installing packages: ");
    assert!(arriving.iter().all(is_progress), "{lines:?}");
    assert!(end.starts_with("installed ") && end.ends_with(" s"), "{lines:?}");
    let again = run();
    assert!(!again.stderr.contains("install"), "{}", again.stderr);
}

/// `--out` saves the files, so the summary does not suggest it.
#[test]
fn run_suggests_saving_files_only_without_out() {
    let Some(shell) = person() else { return };
    std::fs::write(
        shell.folder().join("writes.py"),
        "open('a.txt', 'w').write('a')\n",
    )
    .unwrap();
    let kept = TERMINAL.run(&shell, &["run", "writes.py"]).terminal;
    assert!(kept.contains("save with `skillbox exec files "), "{kept}");
    let saved = TERMINAL
        .run(&shell, &["run", "writes.py", "--out", "saved"])
        .terminal;
    assert!(!saved.contains("save with"), "{saved}");
    assert!(saved.contains("saved 1 file to saved"), "{saved}");
}

#[test]
fn help_groups_commands_and_lists_topics() {
    let shell = Shell::new();
    check("help_80", &TERMINAL.run(&shell, &["--help"]));
    check("help_120_plain", &PLAIN.run(&shell, &["help"]));
    check("help_topic_80", &TERMINAL.run(&shell, &["help", "packages"]));
}
