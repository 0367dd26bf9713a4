//! `skillbox skill dev`: runs a skill at every change of its files.

use std::io::{BufRead as _, BufReader};
use std::process::Child;
use std::sync::mpsc;
use std::time::Duration;

use crate::cli_shell::{Shell, has_docker, interrupt};

/// Far longer than a run takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// The lines of a stream as they arrive.
fn lines(stream: impl std::io::Read + Send + 'static) -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    lines
}

struct Watching {
    child: Child,
    stdout: mpsc::Receiver<String>,
    stderr: mpsc::Receiver<String>,
}

impl Watching {
    fn start(shell: &Shell, args: &[&str]) -> Self {
        let mut child = shell.spawn(args);
        let stdout = lines(child.stdout.take().unwrap());
        let stderr = lines(child.stderr.take().unwrap());
        Self {
            child,
            stdout,
            stderr,
        }
    }

    /// What it reports until it waits for a change.
    fn until_it_waits(&self) -> Vec<String> {
        let mut reported = Vec::new();
        loop {
            let line = self
                .stderr
                .recv_timeout(PATIENCE)
                .unwrap_or_else(|_| panic!("{reported:?}"));
            if line.contains("Ctrl-C ends") {
                return reported;
            }
            reported.push(line);
        }
    }
}

#[test]
fn runs_again_when_a_file_changes_until_ctrl_c() {
    if !has_docker() {
        return;
    }
    let shell = Shell::new().with_engine();
    shell.skill("demo", "lang: python\n", "scripts/main.py", "");
    let folder = shell.folder().join("demo");
    let program = |answer: &str| {
        let code = format!(
            "import json, os\nnumber = json.load(open(os.environ['SANDBOX_INPUT_FILE']))\n\
             json.dump({answer}, open(os.environ['SANDBOX_OUTPUT'], 'w'))\n"
        );
        std::fs::write(folder.join("scripts/main.py"), code).unwrap();
    };
    program("number + 1");
    let input = shell.folder().join("input.json");
    std::fs::write(&input, "1").unwrap();
    let args = [
        "skill",
        "dev",
        "./demo",
        "--input",
        "@input.json",
        "--format",
        "value",
    ];
    let mut watching = Watching::start(&shell, &args);
    let output = |watching: &Watching| watching.stdout.recv_timeout(PATIENCE).unwrap();
    watching.until_it_waits();
    assert_eq!(output(&watching), "2");

    program("number + 10");
    let reported = watching.until_it_waits();
    assert!(
        reported.contains(&"scripts/main.py changed".to_owned()),
        "{reported:?}"
    );
    assert_eq!(output(&watching), "11");

    // A mistake is reported, and the next change runs again.
    program("number +");
    let reported = watching.until_it_waits().join("\n");
    assert!(reported.contains("SyntaxError"), "{reported}");
    let skill_md = std::fs::read(folder.join("SKILL.md")).unwrap();
    std::fs::remove_file(folder.join("SKILL.md")).unwrap();
    let reported = watching.until_it_waits().join("\n");
    assert!(
        reported.contains("SKILL.md changed") && reported.contains("has no SKILL.md"),
        "{reported}"
    );
    std::fs::write(folder.join("SKILL.md"), skill_md).unwrap();
    watching.until_it_waits();
    program("number + 20");
    watching.until_it_waits();
    std::fs::write(&input, "100").unwrap();
    let reported = watching.until_it_waits();
    assert!(
        reported.contains(&"input.json changed".to_owned()),
        "{reported:?}"
    );
    while output(&watching) != "120" {}

    interrupt(&watching.child);
    assert_eq!(watching.child.wait().unwrap().code(), Some(0));
}

#[test]
fn rejects_what_cannot_be_run_again() {
    let shell = Shell::new();
    shell.skill("demo", "lang: bash\n", "scripts/main.sh", "echo 1");
    let stdin = shell.run(&["skill", "dev", "./demo", "--input", "-"]);
    assert!(
        stdin.code == 2 && stdin.stderr.contains("use @FILE"),
        "{}",
        stdin.stderr
    );
    assert_eq!(shell.run(&["skill", "package", "demo"]).code, 0);
    let archive = shell.run(&["skill", "dev", "demo.zip"]);
    assert!(
        archive.code == 3 && archive.stderr.contains("only a folder can be watched"),
        "{}",
        archive.stderr
    );
}
