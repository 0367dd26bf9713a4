//! `skillbox skill requirements`: packages of a published skill, beside its files.

use serde_json::json;

use crate::cli_shell::{CommandOutput, Shell, has_docker};
use crate::world::missing;

/// A skill that imports a package which it does not declare.
fn published() -> Option<Shell> {
    if !has_docker() {
        return None;
    }
    let shell = Shell::new().with_engine();
    shell.skill(
        "demo",
        "lang: python\nversion: 1.0.0\n",
        "scripts/main.py",
        "import six\nprint(six.PY3)\n",
    );
    assert_eq!(shell.run(&["skill", "push", "demo"]).code, 0);
    Some(shell)
}

fn has_no_index(output: &CommandOutput) -> bool {
    let is_unreachable = output.stderr.contains("cannot be reached");
    if is_unreachable {
        missing("packages", &output.stderr);
    }
    is_unreachable
}

#[test]
fn packages_are_added_listed_and_removed() {
    let Some(shell) = published() else { return };
    let lacking = shell.run(&["run", "demo"]);
    assert!(
        lacking
            .stderr
            .contains("`skillbox skill requirements demo add six`"),
        "{}",
        lacking.stderr
    );
    let added = shell.run(&["skill", "requirements", "demo", "add", "six>=1"]);
    if has_no_index(&added) {
        return;
    }
    assert_eq!(added.code, 0, "{}", added.stderr);
    assert!(added.stderr.contains("installing six"), "{}", added.stderr);
    assert!(
        added.stderr.contains("demo 1.0.0: packages installed"),
        "{}",
        added.stderr
    );
    let run = shell.json(&["run", "demo"]);
    assert_eq!(
        (&run["logs"]["stdout"], &run["requirements"]),
        (&json!("True\n"), &json!(["six>=1"]))
    );

    let all = ["skill", "requirements", "demo", "--format", "json"];
    let replaced = shell.run(&["skill", "requirements", "demo", "add", "Six<9"]);
    assert_eq!(replaced.code, 0, "{}", replaced.stderr);
    assert_eq!(
        shell.json(&all),
        json!({ "skill": "demo", "version": "1.0.0", "requirements": ["Six<9"] })
    );
    let unknown = shell.run(&["skill", "requirements", "demo", "remove", "sixs"]);
    assert!(
        unknown.code == 3 && unknown.stderr.contains("`sixs` was not added to demo"),
        "{}",
        unknown.stderr
    );
    let removed = shell.run(&["skill", "requirements", "demo", "remove", "six"]);
    assert!(
        removed.stderr.contains("no packages were added to demo 1.0.0"),
        "{}",
        removed.stderr
    );
    let wrong = shell.run(&["skill", "requirements", "demo", "add", "-e ."]);
    assert_ne!(wrong.code, 0);
    let missing = shell.run(&["skill", "requirements", "dmo"]);
    assert!(missing.stderr.contains("demo"), "{}", missing.stderr);
}

#[test]
fn push_adds_packages_and_the_next_one_keeps_them() {
    let Some(shell) = published() else { return };
    let args = ["skill", "push", "demo", "--bump", "patch", "--requirement", "six"];
    let pushed = shell.run(&args);
    if has_no_index(&pushed) {
        return;
    }
    assert_eq!(pushed.code, 0, "{}", pushed.stderr);
    assert_eq!(shell.json(&["run", "demo"])["logs"]["stdout"], "True\n");
    let next = shell.json(&["skill", "push", "demo", "--bump", "minor", "--format", "json"]);
    assert_eq!(
        (&next["version"], &next["requirements"]),
        (&json!("1.1.0"), &json!(["six"]))
    );
    let refused = shell.run(&["skill", "push", "demo", "--requirement", "requirements.txt"]);
    assert!(
        refused.stderr.contains("use --requirements requirements.txt"),
        "{}",
        refused.stderr
    );
}
