//! A toolbox at the command line: its scripts are named, their arguments are taken, and hints are only given where they help.

use crate::cli_shell::{Shell, has_docker};

fn toolbox(shell: &Shell) {
    let front_matter = "permissions: {}\n";
    shell.skill(
        "tools",
        front_matter,
        "scripts/count.py",
        "# /// script\n# dependencies = []\n# ///\nimport sys\nprint(sys.argv[1:])\n",
    );
}

#[test]
fn passes_arguments_after_script_with_and_without_separator() {
    if !has_docker() {
        return;
    }
    let shell = Shell::new().with_engine();
    toolbox(&shell);
    for args in [
        &["a.csv", "--timeout", "9s", "--", "-o", "x"][..],
        &["--timeout", "9s", "--", "a.csv", "-o", "x"],
    ] {
        let command = [&["run", "./tools", "--script", "scripts/count.py"], args].concat();
        let said = shell.run(&command);
        assert_eq!(said.code, 0, "{args:?}: {}", said.stderr);
        assert!(
            said.stdout.contains("['a.csv', '-o', 'x']"),
            "{args:?}: {}",
            said.stdout
        );
        // What it printed is all that there is to say.
        assert!(!said.stderr.contains("SANDBOX_OUTPUT"), "{}", said.stderr);
    }
}

#[test]
fn suggests_script_option_for_unexpected_argument() {
    let shell = Shell::new();
    toolbox(&shell);
    let said = shell.run(&["run", "./tools", "scripts/count.py"]);
    assert_eq!(said.code, 2, "{}", said.stderr);
    for part in [
        "unexpected argument `scripts/count.py`",
        "--script PATH",
        "after --",
    ] {
        assert!(said.stderr.contains(part), "{part}: {}", said.stderr);
    }
}

#[test]
fn shows_toolbox_with_scripts() {
    let shell = Shell::new();
    let text = "# /// script\n# dependencies = ['rich', 'click<9']\n# ///\n";
    shell.skill("tools", "", "scripts/count.py", text);
    std::fs::write(shell.folder().join("tools/scripts/more.sh"), "true\n").unwrap();
    let said = shell.run(&["skill", "push", "./tools"]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    let shown = shell.run(&["skill", "show", "tools", "--format", "table"]).stdout;
    for part in ["toolbox", "scripts/count.py, scripts/more.sh", "click<9, rich"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

#[test]
fn lint_and_push_warn_about_key_and_password_files() {
    let shell = Shell::new();
    toolbox(&shell);
    for path in [".env", "scripts/id_rsa", ".env.example"] {
        std::fs::write(shell.folder().join("tools").join(path), "x").unwrap();
    }
    let findings = shell.run(&["skill", "lint", "./tools"]).stdout;
    let pushed = shell.run(&["skill", "push", "./tools"]);
    assert_eq!(pushed.code, 0, "{}", pushed.stderr);
    for said in [findings, pushed.stderr] {
        assert!(
            said.contains("`.env` looks like") && said.contains("`scripts/id_rsa` looks like"),
            "{said}"
        );
        assert!(!said.contains(".env.example"), "{said}");
    }
}
