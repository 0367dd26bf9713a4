//! Mistakes at a command line: each message names what to do instead.

use std::fs;

use crate::cli_shell::{Shell, has_docker};
use crate::world::missing;

/// Runs a command that must fail with this exit code and say all of `parts`.
fn fails(shell: &Shell, args: &[&str], code: i32, parts: &[&str]) {
    let said = shell.run(args);
    assert_eq!(said.code, code, "{args:?}: {}", said.stderr);
    for part in parts {
        assert!(said.stderr.contains(part), "{args:?}: {part}: {}", said.stderr);
    }
}

#[test]
fn deletions_ask_for_all_or_a_count_first() {
    let shell = Shell::new();
    fails(
        &shell,
        &["exec", "prune", "--older-than", "7d"],
        2,
        &["--dry-run", "--yes"],
    );
    fails(&shell, &["deps", "prune"], 2, &["--all", "skillbox deps list"]);
    let none = shell.run(&["exec", "list"]);
    assert_eq!(
        (none.code, none.stdout.as_str(), none.stderr.as_str()),
        (0, "", "no executions\n")
    );
    assert_eq!(shell.json(&["exec", "list"]), serde_json::json!([]));
}

/// A key that is made but not shown would be lost.
#[test]
fn format_value_is_refused_first_or_prints_the_new_key() {
    let shell = Shell::new();
    let value = |command: &'static str| {
        command
            .split(' ')
            .chain(["--format", "value"])
            .collect::<Vec<_>>()
    };
    for command in ["skill init demo", "key list", "doctor"] {
        fails(&shell, &value(command), 2, &["--format value", "key create"]);
    }
    assert!(!shell.folder().join("demo").exists());
    let made = shell.run(&value("key create ci --scope run")).stdout;
    assert!(made.starts_with("skb_") && made.lines().count() == 1, "{made}");
}

#[test]
fn files_of_unknown_languages_ask_for_lang() {
    let shell = Shell::new();
    for name in ["prog.rb", "o.ts", "Notes.txt"] {
        fs::write(shell.folder().join(name), "puts 1\n").unwrap();
        fails(
            &shell,
            &["run", name],
            2,
            &[name, "is not .py, .js or .sh", "--lang python, node or bash"],
        );
    }
    fs::write(shell.folder().join("total.py"), "1\n").unwrap();
    fails(
        &shell,
        &["run", "totl.py"],
        3,
        &["no such file", "did you mean `total.py`?"],
    );
    fails(
        &shell,
        &["run", "total.py", "x", "y"],
        2,
        &["unexpected argument `x`", "skillbox run total.py -- "],
    );
    fails(
        &shell,
        &["skill", "dev", "nosuch"],
        3,
        &["no such file or folder: `nosuch`"],
    );
    fails(&shell, &["rnu"], 2, &["'run'"]);
}

#[test]
fn file_of_any_name_runs_with_lang() {
    if !has_docker() {
        return;
    }
    let shell = Shell::new().with_engine();
    for name in ["notes.txt", "notes"] {
        fs::write(shell.folder().join(name), "6 * 7\n").unwrap();
        let ran = shell.run(&["run", name, "--lang", "python", "--format", "value"]);
        assert_eq!(ran.stdout, "42\n", "{name}: {}", ran.stderr);
    }
}

#[test]
fn secret_value_is_neither_an_argument_nor_asked_for_without_terminal() {
    let shell = Shell::new();
    for args in [
        &["secret", "set", "TOKEN"][..],
        &["secret", "set", "TOKEN", "hunter2"],
    ] {
        fails(&shell, args, 2, &["--value-file -"]);
        assert!(!shell.run(args).stderr.contains("hunter2"));
    }
}

#[test]
fn folder_with_server_options_is_to_be_published_first() {
    let shell = Shell::new().with("SKILLBOX_SERVER_URL", "http://127.0.0.1:1");
    shell.skill("greeter", "lang: bash\n", "scripts/main.sh", "true\n");
    for option in [&["--callback-url", "https://example.com/"][..], &["--async"]] {
        let args = [&["run", "./greeter"], option].concat();
        fails(
            &shell,
            &args,
            2,
            &[option[0], "runs on this machine", "skillbox skill push ./greeter"],
        );
    }
}

#[test]
fn several_packages_in_one_option_are_recognised() {
    let shell = Shell::new();
    fs::write(shell.folder().join("one.py"), "1\n").unwrap();
    for several in ["pandas,matplotlib", "pandas matplotlib"] {
        fails(
            &shell,
            &["run", "one.py", "--requirement", several],
            2,
            &["more than one package", "repeat the option"],
        );
    }
    fails(
        &shell,
        &["run", "one.py", "--requirements", "pandas"],
        3,
        &["--requirements: no such file", "`--requirement pandas`"],
    );
}

/// M11: the spelling comes first, and the operator last.
#[test]
fn unknown_package_is_a_spelling_mistake_first() {
    if !has_docker() {
        return;
    }
    let shell = Shell::new().with_engine();
    fs::write(shell.folder().join("one.py"), "1\n").unwrap();
    let said = shell.run(&["run", "one.py", "--requirement", "nosuchpackage-zzz-1"]);
    if !said.stderr.contains("from versions: none") {
        return missing("packages", &said.stderr);
    }
    let message = "could not be installed: no package `nosuchpackage-zzz-1` with wheels in the index: check the spelling";
    assert!(said.stderr.contains(message), "{}", said.stderr);
}

#[test]
fn lint_says_whether_a_push_accepts_the_skill() {
    let shell = Shell::new();
    shell.skill("greeter", "lang: bash\n", "scripts/main.sh", "true\n");
    let accepted = shell.run(&["skill", "lint", "greeter"]);
    assert_eq!(accepted.code, 0, "{accepted:?}");
    if accepted.stdout.contains(" error ") {
        let last = accepted.stderr.lines().last().unwrap();
        assert!(last.starts_with("a push accepts this skill"), "{accepted:?}");
    } else {
        panic!("the key `lang` is none of Agent Skills: {accepted:?}");
    }
    shell.skill("wrong", "timeout: soon\n", "scripts/main.sh", "true\n");
    let refused = shell.run(&["skill", "lint", "wrong"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(
        refused.stderr.contains("a push rejects this skill"),
        "{refused:?}"
    );
}

/// A program that needs a network is told once that there is none.
#[test]
fn program_without_network_is_told_so() {
    if !has_docker() {
        return;
    }
    let shell = Shell::new().with_engine();
    let programs = [
        (
            "net.py",
            "import urllib.request\nurllib.request.urlopen('http://example.com')\n",
        ),
        ("net.mjs", "await fetch('http://example.com')\n"),
    ];
    for (name, program) in programs {
        fs::write(shell.folder().join(name), program).unwrap();
        let ran = shell.run(&["run", name, "--format", "json"]);
        let envelope: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        let message = envelope["error"]["message"].as_str().unwrap();
        assert!(
            message.ends_with("programs have no network, see `skillbox help sandbox`"),
            "{name}: {message}"
        );
    }
}

#[test]
fn version_and_data_folder_are_data_too() {
    let shell = Shell::new();
    assert_eq!(
        shell.json(&["version"]),
        serde_json::json!({"version": env!("CARGO_PKG_VERSION")})
    );
    let mut command = shell.command(&["config", "--format", "json"]);
    command.env_remove("SKILLBOX_DATA_DIR");
    let output = command.output().unwrap();
    let settings: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let row = settings
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["key"] == "data_dir");
    assert!(
        row.unwrap()["value"].as_str().unwrap().ends_with("skillbox"),
        "{row:?}"
    );
}
