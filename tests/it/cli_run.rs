//! `skillbox run` with an engine inside: results, files and exit codes of real containers.

use serde_json::{Value, json};

use crate::cli_shell::{Shell, examples, has_docker, interrupt};

/// Each example does on a real container what its expected output says.
#[test]
fn examples_return_expected_output() {
    if !has_docker() {
        return;
    }
    let shell = Shell::new().with_engine();
    for (name, files) in [
        ("text-summary", &[][..]),
        ("csv-report", &["report.md"]),
        ("log-triage", &["problems.log"]),
    ] {
        let folder = examples().join(name);
        let input = format!("@{}", folder.join("input.json").display());
        let envelope = shell.json(&["run", folder.to_str().unwrap(), "--input", &input, "--out", name]);
        let expected = std::fs::read_to_string(folder.join("expected-output.json")).unwrap();
        let expected: Value = serde_json::from_str(&expected).unwrap();
        assert_eq!(envelope["output"], expected, "{name}");
        assert_eq!(envelope["files_list"], json!(files), "{name}");
        for file in files {
            assert!(shell.folder().join(name).join(file).is_file(), "{file}");
        }
    }
}

#[test]
fn reads_sent_file_and_returns_report() {
    if !has_docker() {
        return;
    }
    let shell = Shell::new().with_engine();
    std::fs::write(shell.folder().join("sales.csv"), "a;b\n1;x\n2;y\n").unwrap();
    let folder = examples().join("csv-report");
    let input = r#"{"path": "data/in.csv", "format": "html"}"#;
    let args = [
        "run",
        folder.to_str().unwrap(),
        "--input",
        input,
        "--file",
        "data/in.csv=sales.csv",
        "--out",
        "out",
    ];
    let envelope = shell.json(&args);
    assert_eq!(envelope["output"]["rows"], 2);
    let report = std::fs::read_to_string(shell.folder().join("out/report.html")).unwrap();
    assert!(report.starts_with("<!doctype html>"));
}

#[test]
fn each_status_has_exit_code_and_message() {
    if !has_docker() {
        return;
    }
    let shell = Shell::new().with_engine();
    let eat = "a = []\nwhile True:\n    a.append(bytearray(8 << 20))\n";
    for (name, front_matter, program, code) in [
        ("fails", "lang: python\n", "import sys\nsys.exit('no luck')\n", 1),
        (
            "sleeps",
            "lang: python\ntimeout: 1\n",
            "import time\ntime.sleep(60)\n",
            4,
        ),
        ("eats", "lang: python\nresources: {memory: 64Mi}\n", eat, 5),
    ] {
        shell.skill(name, front_matter, "scripts/main.py", program);
        let said = shell.run(&["run", &format!("./{name}")]);
        assert_eq!(said.code, code, "{name}: {}", said.stderr);
        let envelope: Value = serde_json::from_str(&said.stdout).unwrap();
        let (status, message) = match code {
            4 => ("timeout", "the program ran longer than its 1 s"),
            5 => ("oom", "out of memory: limit 64 MiB"),
            _ => ("failed", "no luck"),
        };
        assert_eq!(envelope["status"], status);
        assert!(said.stderr.contains(message), "{}", said.stderr);
    }
}

/// What a beginner runs into: the message stands above the stack, and what was printed is no output.
#[test]
fn stderr_shows_exception_and_hints_at_missing_output() {
    if !has_docker() {
        return;
    }
    let shell = Shell::new().with_engine();
    shell.skill("throws", "lang: node\n", "scripts/main.js", "null.missing\n");
    let said = shell.run(&["run", "./throws"]);
    assert!(said.stderr.contains("TypeError: Cannot read"), "{}", said.stderr);

    shell.skill("prints", "lang: bash\n", "scripts/main.sh", "echo '{}'\n");
    let said = shell.run(&["run", "./prints"]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert!(said.stderr.contains("SANDBOX_OUTPUT"), "{}", said.stderr);
}

#[test]
fn arguments_input_and_numbers_arrive_unchanged() {
    if !has_docker() {
        return;
    }
    let shell = Shell::new().with_engine();
    let program = "printf '{\"args\": \"%s\", \"input\": %s}' \"$*\" \"$(cat \"$SANDBOX_INPUT_FILE\")\" > \"$SANDBOX_OUTPUT\"\n";
    shell.skill("echoes", "lang: bash\n", "scripts/main.sh", program);
    let said = shell.run(&[
        "run",
        "./echoes",
        "--input",
        "{\"n\": 9007199254740993.10}",
        "--",
        "--flag",
        "ü",
    ]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert!(
        said.stdout.contains(r#""input": {"n": 9007199254740993.10}"#),
        "{}",
        said.stdout
    );
    assert!(said.stdout.contains("--flag ü"), "{}", said.stdout);
}

#[test]
fn fetches_logs_and_files_of_earlier_run() {
    if !has_docker() {
        return;
    }
    let shell = Shell::new().with_engine();
    let program = "echo out; echo err >&2; echo kept > \"$SANDBOX_FILES_DIR/a b.txt\"\n";
    shell.skill("leaves", "lang: bash\n", "scripts/main.sh", program);
    let id = shell.json(&["run", "./leaves"])["execution_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let logs = shell.run(&["exec", "logs", &id]);
    assert_eq!((logs.stdout.as_str(), logs.stderr.as_str()), ("out\n", "err\n"));
    assert_eq!(shell.json(&["exec", "files", &id])[0]["path"], "a b.txt");
    assert_eq!(shell.run(&["exec", "files", &id, "--out", "out"]).code, 0);
    assert_eq!(
        std::fs::read_to_string(shell.folder().join("out/a b.txt")).unwrap(),
        "kept\n"
    );
    let listed = shell.json(&["exec", "list", "--status", "success", "--skill", "leaves"]);
    assert_eq!(listed[0]["execution_id"], id.as_str());
    assert_eq!(shell.json(&["exec", "list", "--status", "failed"]), json!([]));
}

#[test]
fn ctrl_c_cancels_execution_and_keeps_record() {
    if !has_docker() {
        return;
    }
    let shell = Shell::new().with_engine();
    shell.skill("sleeps", "lang: bash\n", "scripts/main.sh", "sleep 60\n");
    let started = std::time::Instant::now();
    let run = shell.spawn(&["run", "./sleeps"]);
    while shell.json(&["exec", "list", "--status", "running"]) == json!([]) {
        assert!(started.elapsed().as_secs() < 30, "it did not start");
    }
    interrupt(&run);
    let said = crate::cli_shell::command_output(run.wait_with_output().unwrap());
    assert_eq!(said.code, 130, "{}", said.stderr);
    assert!(said.stderr.contains("Ctrl-C"), "{}", said.stderr);
    let envelope: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(envelope["status"], "interrupted");
    assert!(started.elapsed().as_secs() < 40);
}

/// An execution that Ctrl-C prevented from starting was not rejected.
#[test]
fn ctrl_c_at_any_moment_is_reported_as_interrupt() {
    use std::os::unix::process::ExitStatusExt as _;
    if !has_docker() {
        return;
    }
    let shell = Shell::new().with_engine();
    shell.skill("sleeps", "lang: bash\n", "scripts/main.sh", "sleep 60\n");
    for moment in [20, 40, 60, 80, 120, 200, 400] {
        let run = shell.spawn(&["run", "./sleeps"]);
        std::thread::sleep(std::time::Duration::from_millis(moment));
        interrupt(&run);
        let ended = run.wait_with_output().unwrap();
        let talk = String::from_utf8_lossy(&ended.stderr);
        // Before it listens for signals the kernel ends it.
        let is_told = ended.status.code() == Some(130) || ended.status.signal() == Some(2);
        assert!(is_told, "after {moment} ms: {} {talk}", ended.status);
    }
}

#[test]
fn doctor_passes_on_this_machine() {
    if !has_docker() {
        return;
    }
    let shell = Shell::new().with_engine();
    let findings = shell.json(&["doctor"]);
    let findings = findings.as_array().unwrap();
    assert!(
        findings.iter().all(|finding| finding["state"] != "failed"),
        "{findings:?}"
    );
    assert_eq!(
        findings.iter().filter(|finding| finding["part"] == "run").count(),
        3
    );
}

#[test]
fn doctor_names_missing_engine() {
    let shell = Shell::new()
        .with("SKILLBOX_DOCKER_HOST", "unix:///nowhere.sock")
        .with("SKILLBOX_SANDBOX_BACKEND", "docker");
    let said = shell.run(&["doctor"]);
    assert_eq!(said.code, 1, "{}", said.stderr);
    assert!(said.stdout.contains("✗ container engine"), "{}", said.stdout);
    shell.skill("any", "lang: bash\n", "scripts/main.sh", "");
    assert_eq!(shell.run(&["run", "./any"]).code, 69);
}

/// An engine that lacks an image is no failure where native sandboxes run the programs.
#[test]
fn doctor_says_which_backend_runs_each_language_without_an_image() {
    if !has_docker() {
        return;
    }
    let images = crate::world::images();
    let allowed = ["nosuch.invalid/python:1", &images.node, &images.bash].join(",");
    let shell = Shell::new()
        .with_engine()
        .with("SKILLBOX_SANDBOX_BACKEND", "auto")
        .with("SKILLBOX_IMAGE_PYTHON", "nosuch.invalid/python:1")
        .with("SKILLBOX_IMAGE_ALLOWLIST", &allowed);
    let said = shell.run(&["doctor"]);
    if !said.stdout.contains("a test sandbox was created") {
        return crate::world::missing("linux", &said.stdout);
    }
    assert_eq!(said.code, 0, "{}", said.stdout);
    for part in [
        "! image",
        "until then native sandboxes run these programs",
        "a python skill ran in native",
        "a bash skill ran in docker",
    ] {
        assert!(said.stdout.contains(part), "{part}: {}", said.stdout);
    }
}
