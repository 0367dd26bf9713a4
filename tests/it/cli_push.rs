//! `skillbox skill push`: raised versions, conflicts, and archives of several skills.

use std::fs;
use std::io::{Read as _, Seek as _};

use crate::cli_shell::Shell;
use crate::world::zip_of;

const FRONT_MATTER: &str = "lang: bash\nversion: '1.0.0' # since 1.0.0\n";

fn push(shell: &Shell, args: &[&str]) -> crate::cli_shell::CommandOutput {
    let mut all = vec!["skill", "push"];
    all.extend_from_slice(args);
    shell.run(&all)
}

#[test]
fn conflict_names_the_line_and_bump_raises_it() {
    let shell = Shell::new();
    shell.skill("demo", FRONT_MATTER, "scripts/main.sh", "echo 1");
    let file = shell.folder().join("demo/SKILL.md");
    let before = fs::read_to_string(&file).unwrap();
    assert_eq!(push(&shell, &["demo"]).code, 0);
    shell.skill("demo", FRONT_MATTER, "scripts/main.sh", "echo 2");

    let conflict = push(&shell, &["./demo"]);
    assert_eq!(conflict.code, 3, "{}", conflict.stderr);
    for text in [
        "`demo` version `1.0.0`",
        "raise it in SKILL.md:5, or push with --bump patch",
    ] {
        assert!(conflict.stderr.contains(text), "{}", conflict.stderr);
    }

    let pushed = push(&shell, &["./demo", "--bump", "patch"]);
    assert_eq!(pushed.code, 0, "{}", pushed.stderr);
    assert!(
        pushed.stderr.contains("demo 1.0.1: published"),
        "{}",
        pushed.stderr
    );
    assert!(
        pushed.stderr.contains("SKILL.md:5: version 1.0.1"),
        "{}",
        pushed.stderr
    );
    let after = fs::read_to_string(&file).unwrap();
    assert_eq!(
        after,
        before.replace("'1.0.0'", "'1.0.1'"),
        "nothing else changes"
    );

    // Above what is published, whatever the folder says.
    fs::write(&file, &before).unwrap();
    assert!(
        push(&shell, &["demo", "--bump", "minor"])
            .stderr
            .contains("demo 1.1.0: published")
    );
    assert!(
        push(&shell, &["demo", "--bump", "major"])
            .stderr
            .contains("demo 2.0.0: published")
    );
}

#[test]
fn first_version_is_written_into_the_front_matter() {
    let shell = Shell::new();
    shell.skill("demo", "lang: bash\n", "scripts/main.sh", "echo 1");
    let pushed = push(&shell, &["demo", "--bump", "patch"]);
    assert!(
        pushed.stderr.contains("demo 0.1.0: published"),
        "{}",
        pushed.stderr
    );
    let text = fs::read_to_string(shell.folder().join("demo/SKILL.md")).unwrap();
    assert!(text.starts_with("---\nversion: 0.1.0\nname: demo\n"), "{text}");
}

#[test]
fn failed_push_restores_the_version() {
    let shell = Shell::new();
    shell.skill("demo", FRONT_MATTER, "scripts/main.sh", "echo 1");
    let file = shell.folder().join("demo/SKILL.md");
    let before = fs::read(&file).unwrap();
    let unreachable = ["--server", "http://127.0.0.1:1", "--api-key", "sbx_none"];
    let mut args = vec!["./demo", "--bump", "patch"];
    args.extend(unreachable);
    assert_ne!(push(&shell, &args).code, 0);
    assert_eq!(fs::read(&file).unwrap(), before);

    assert_eq!(
        fs::read_dir(shell.folder().join("demo")).unwrap().count(),
        2,
        "no temporary file is left"
    );
}

#[test]
fn archive_of_several_skills_needs_a_path() {
    let shell = Shell::new();
    let skill = |name: &str| {
        format!("---\nname: {name}\ndescription: Made by a test.\nlang: bash\nversion: 1.0.0\n---\nx\n")
    };
    let (one, two) = (skill("one"), skill("two"));
    let mut zip = zip_of(&[
        ("all/one/SKILL.md", &one),
        ("all/one/scripts/main.sh", "echo 1"),
        ("all/two/SKILL.md", &two),
        ("all/two/scripts/main.sh", "echo 2"),
    ]);
    let mut bytes = Vec::new();
    zip.rewind().unwrap();
    zip.read_to_end(&mut bytes).unwrap();
    fs::write(shell.folder().join("skills.zip"), bytes).unwrap();

    let refused = push(&shell, &["skills.zip"]);
    assert_eq!(refused.code, 3, "{}", refused.stderr);
    for text in ["`all/one/SKILL.md`, `all/two/SKILL.md`", "--path FOLDER"] {
        assert!(refused.stderr.contains(text), "{}", refused.stderr);
    }
    // With and without the archive's only top-level folder.
    for (path, name) in [("one", "one"), ("all/two", "two")] {
        let pushed = push(&shell, &["skills.zip", "--path", path]);
        assert!(
            pushed.stderr.contains(&format!("{name} 1.0.0: published")),
            "{}",
            pushed.stderr
        );
    }
    assert_eq!(
        shell.run(&["skill", "lint", "skills.zip", "--path", "two"]).code,
        0
    );
    let bumped = push(&shell, &["skills.zip", "--path", "two", "--bump", "patch"]);
    assert!(
        bumped.stderr.contains("instead of an archive"),
        "{}",
        bumped.stderr
    );
    for path in ["three", "../one"] {
        let refused = push(&shell, &["skills.zip", "--path", path]);
        assert!(
            refused.code == 3 && refused.stderr.contains("--path"),
            "{}",
            refused.stderr
        );
    }
    let run = shell.run(&["run", "./skills.zip", "--path", "three"]);
    assert!(run.stderr.contains("--path"), "{}", run.stderr);
}
