//! Recorded screens of commands that are not `run` itself: mistakes, publishing, packages, logs, tests of the sandbox.

use std::fs;

use super::cli_shell::Shell;
use super::terminal::{Screen, TERMINAL, Terminal};
use super::terminal_views::{PLAIN, check, person};

/// On 80 columns with colour, on 120 without, and with standard output redirected.
fn check_everywhere(name: &str, shell: &Shell, args: &[&str]) {
    let redirected = Terminal {
        has_stdout: false,
        ..TERMINAL
    };
    for (form, terminal) in [("80", TERMINAL), ("120_plain", PLAIN), ("redirected", redirected)] {
        check(&format!("{name}_{form}"), &terminal.run(shell, args));
    }
}

fn publish(shell: &Shell, version: &str, program: &str) {
    let front_matter = format!("lang: python\nversion: {version}\n");
    shell.skill("greeter", &front_matter, "scripts/main.py", program);
}

/// B.5, B.6: what a program lacks, and files that are something else than they are named as.
#[test]
fn mistakes_of_a_run_name_their_remedy() {
    let Some(shell) = person() else { return };
    fs::write(shell.folder().join("needs.py"), "import PIL\n").unwrap();
    fs::write(shell.folder().join("notes"), "no program\n").unwrap();
    let needs = ["run", "needs.py"];
    check("missing_package_80", &TERMINAL.run(&shell, &needs));
    check("missing_package_120_plain", &PLAIN.run(&shell, &needs));
    for (name, args) in [
        ("missing_language", ["run", "./notes"].as_slice()),
        ("missing_file", &["run", "greets.py", "--file", "nosuch.csv"]),
        (
            "requirements_file_as_package",
            &["run", "greets.py", "--requirement", "requirements.txt"],
        ),
        ("unknown_skill", &["run", "greter"]),
    ] {
        check_everywhere(name, &shell, args);
    }
}

/// B.6, B.3: what is too large, and parts of ids that no execution has.
#[test]
fn wrong_arguments_name_their_limit_and_remedy() {
    let Some(shell) = person() else { return };
    let large = fs::File::create(shell.folder().join("large.bin")).unwrap();
    large.set_len(300 << 20).unwrap();
    check_everywhere(
        "file_too_large",
        &shell,
        &["run", "greets.py", "--file", "large.bin"],
    );
    check_everywhere(
        "timeout_too_short",
        &shell,
        &["run", "greets.py", "--timeout", "1ms"],
    );
    check_everywhere("id_of_none", &shell, &["exec", "show", "dddddddddd"]);
    let mistyped = Shell::new().with("SKILLBOX_IMAGE_PYTHN", "python:3.12-slim");
    check_everywhere("variable_unknown", &mistyped, &["skill", "list"]);
}

/// B.5, B.4: all errors at once; and what a push accepts, though a program may fail.
#[test]
fn lint_shows_errors_and_warnings() {
    let Some(shell) = person() else { return };
    let wrong = "timeout: soon\nresources: {memory: 1 cow}\nimage: '!'\nmetadata:\n  skillbox.lang: cobol\n";
    shell.skill("wrong", wrong, "scripts/main.py", "print(1)\n");
    check_everywhere("lint_errors", &shell, &["skill", "lint", "wrong"]);
    let doubtful = "lang: bash\nresources: {memory: 8Gi}\nmetadata:\n  skillbox.version: 1.0.0\n";
    shell.skill(
        "doubtful",
        doubtful,
        "scripts/main.sh",
        "if true; then\n  echo 1\n",
    );
    fs::write(
        shell.folder().join("doubtful/scripts/table.py"),
        "import pandas\n",
    )
    .unwrap();
    check_everywhere("lint_warnings", &shell, &["skill", "lint", "doubtful"]);
}

/// B.7, C.5: versions and packages of published skills.
#[test]
fn publishing_shows_versions_and_packages() {
    let Some(shell) = person() else { return };
    publish(&shell, "1.0.0", "print(1)\n");
    // The width of a table depends on the time of the push.
    let push = ["skill", "push", "greeter", "--format", "json"];
    check("push_80", &TERMINAL.run(&shell, &push));
    check_everywhere("push_again", &shell, &push);
    publish(&shell, "1.0.0", "print(2)\n");
    check_everywhere("push_conflict", &shell, &["skill", "push", "greeter"]);
    let bump = [push.as_slice(), &["--bump", "minor"]].concat();
    check("push_bump_120_plain", &PLAIN.run(&shell, &bump));
    check_everywhere(
        "skill_requirements",
        &shell,
        &["skill", "requirements", "greeter"],
    );
    check_everywhere(
        "version_unknown",
        &shell,
        &["run", "greeter", "--version", "9.9.9"],
    );
}

/// B.8: settings and commands that are almost right.
#[test]
fn mistyped_settings_and_commands_are_recognised() {
    let Some(shell) = person() else { return };
    let text = "redis_url: redis://x\nlimits:\n  memry: 1Gi\n";
    fs::write(shell.folder().join("typo.yaml"), text).unwrap();
    check_everywhere("config_key", &shell, &["config", "--config", "typo.yaml"]);
    check_everywhere("command", &shell, &["skil", "list"]);
    check_everywhere("deps_prune", &shell, &["deps", "prune"]);
}

/// B.9: each promise has a title. Progress depends on the speed of the machine, so it is left out.
#[test]
fn prove_titles_promises() {
    let Some(shell) = person() else { return };
    let args = ["prove", "--backend", "docker", "--only", "S-23a"];
    for (form, terminal) in [("80", TERMINAL), ("120_plain", PLAIN)] {
        let screen = Terminal {
            has_stderr: false,
            ..terminal
        };
        let screen = Screen {
            stderr: String::new(),
            ..screen.run(&shell, &args)
        };
        check(&format!("prove_{form}"), &screen);
    }
}

/// B.10: pieces of all streams in the order of their arrival.
#[test]
fn logs_have_times_of_arrival() {
    let Some(shell) = person() else { return };
    let program = "import sys, time\nfor number in range(2):\n    print(number, flush=True)\n    time.sleep(0.3)\n    \
                   print('then', number, file=sys.stderr)\n    time.sleep(0.3)\n";
    fs::write(shell.folder().join("turns.py"), program).unwrap();
    shell.json(&["run", "--code", "turns.py"]);
    check_everywhere("exec_logs", &shell, &["exec", "logs", "--timestamps"]);
}
