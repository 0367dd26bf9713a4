//! One execution through the whole engine, in a real container.

use std::time::Duration;

use skillbox::engine::{RunRequest, RunSpec};
use skillbox::error::Code;
use skillbox::execution::Status;
use skillbox::sandbox::InputFile;
use skillbox::skill::{Language, Selector, SkillRef};

use crate::outcomes::{output, stderr, stdout};
use crate::world::{World, archive, json, unpublished};

const ECHO: &str = r#"
import json, os, pathlib, sys
value = json.load(open(os.environ["SANDBOX_INPUT_FILE"]))
print("to stdout"); print("to stderr", file=sys.stderr)
files = pathlib.Path(os.environ["SANDBOX_FILES_DIR"])
(files / "sub").mkdir()
(files / "sub" / "a b.txt").write_text("hello")
result = {"value": value, "args": sys.argv[1:], "file": pathlib.Path("data/in.txt").read_text(), "stdin": json.load(sys.stdin)}
json.dump(result, open(os.environ["SANDBOX_OUTPUT"], "w"))
"#;

#[tokio::test]
async fn passes_input_args_and_files_and_returns_output_logs_and_files() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    let file = InputFile {
        path: "data/in.txt".to_owned(),
        content: "inside".into(),
    };
    let ask = RunSpec {
        input: Some(json(r#"{"x": 1.10}"#)),
        args: vec!["--flag".to_owned(), "ü".to_owned()],
        files: vec![file],
        ..RunSpec::default()
    };
    let execution = world.run(Language::Python, ECHO, ask).await;
    let outcome = execution.outcome.as_ref().unwrap();
    assert_eq!(
        outcome.status,
        Status::Success,
        "{:?} {}",
        outcome.error,
        stderr(outcome)
    );
    let result = output(outcome);
    assert_eq!(result["value"]["x"], 1.1);
    assert_eq!(result["stdin"], result["value"]);
    assert_eq!(result["args"], serde_json::json!(["--flag", "ü"]));
    assert_eq!(result["file"], "inside");
    assert_eq!(
        (stdout(outcome).as_str(), stderr(outcome).as_str()),
        ("to stdout\n", "to stderr\n")
    );
    assert_eq!(outcome.files.len(), 1);
    assert_eq!(
        (outcome.files[0].path.as_str(), outcome.files[0].size),
        ("sub/a b.txt", 5)
    );
    // A watchdog may find nothing left to look at.
    let is_watched = std::env::var_os(crate::world::DEGRADED).is_some();
    assert!(
        (outcome.usage.memory_peak_bytes > 0 || is_watched) && outcome.usage.cpu_ms > 0,
        "{:?}",
        outcome.usage
    );

    let found = world
        .executions()
        .artifact_file(world.tenant(), execution.new.id, "sub/a b.txt")
        .await
        .unwrap();
    let range = found.range();
    let mut reader = found.object.into_reader(range).await.unwrap();
    let mut content = String::new();
    tokio::io::AsyncReadExt::read_to_string(&mut reader, &mut content)
        .await
        .unwrap();
    assert_eq!(content, "hello");
    let recorded = world
        .executions()
        .get(world.tenant(), execution.new.id)
        .await
        .unwrap();
    assert_eq!(
        recorded.outcome.unwrap().output.map(|text| text.to_string()),
        outcome.output.as_ref().map(ToString::to_string)
    );
}

#[tokio::test]
async fn every_language_runs() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    let node = "require('fs').writeFileSync(process.env.SANDBOX_OUTPUT, JSON.stringify({node: process.argv.length}))";
    let bash = r#"printf '{"bash": "%s"}' "$SKILL_NAME" > "$SANDBOX_OUTPUT""#;
    let node = world
        .run(Language::Node, node, RunSpec::default())
        .await
        .outcome
        .unwrap();
    assert_eq!(output(&node), serde_json::json!({"node": 2}));
    let bash = world
        .run(Language::Bash, bash, RunSpec::default())
        .await
        .outcome
        .unwrap();
    assert_eq!(output(&bash), serde_json::json!({"bash": "probe"}));
}

#[tokio::test]
async fn runs_published_skill_by_name_version_and_digest() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    let file = archive(
        Language::Bash,
        "version: 1.2.0\n",
        "echo '\"one\"' > $SANDBOX_OUTPUT",
    );
    let (record, _) = world.skills().publish(world.tenant(), file, None).await.unwrap();
    for selector in [
        Selector::Latest,
        Selector::Version(record.version.clone()),
        Selector::Digest(record.digest),
    ] {
        let skill = SkillRef {
            name: record.name.clone(),
            selector,
        };
        let request = RunSpec {
            skill: Some(skill),
            ..RunSpec::default()
        };
        let execution = world.runs().run(world.tenant(), request).await.unwrap();
        assert_eq!(output(execution.outcome.as_ref().unwrap()), "one");
        assert_eq!(execution.new.version, Some(record.version.clone()));
    }
}

/// O-19: each way to end has its own status and code.
#[tokio::test]
async fn each_outcome_has_own_status_and_code() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    let hog = "a = []\nwhile True: a.append(bytearray(8 << 20))";
    let programs = [
        ("import sys; sys.exit(3)", Status::Failed, "exit_code"),
        ("import sys; sys.exit(137)", Status::Failed, "exit_code"),
        ("import os; os.kill(os.getpid(), 9)", Status::Failed, "signal"),
        (hog, Status::Oom, "oom"),
        (
            "open('/sandbox/out/output.json','w').write('{')",
            Status::Failed,
            "output_invalid",
        ),
    ];
    for (program, status, code) in programs {
        let outcome = world.python(program).await;
        let failure = outcome
            .error
            .clone()
            .unwrap_or_else(|| panic!("{program}: no error"));
        assert_eq!(
            (outcome.status, failure.code.as_str()),
            (status, code),
            "{program}: {failure:?} {:?}",
            outcome.usage
        );
    }
    let ask = RunSpec {
        timeout: Some(Duration::from_secs(3)),
        ..RunSpec::default()
    };
    let late = "import time; print('early', flush=True); open('/sandbox/out/output.json','w').write('1')\nwhile True: pass";
    let outcome = world.run(Language::Python, late, ask).await.outcome.unwrap();
    assert_eq!(outcome.status, Status::Timeout);
    assert_eq!(stdout(&outcome), "early\n");
    // O-20: what was written in time is kept.
    assert_eq!(output(&outcome), 1);
}

/// O-20.
#[tokio::test]
async fn written_output_is_kept_however_the_program_ends() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    let endings = [
        ("import sys; sys.exit(3)", Status::Failed),
        ("import os; os.kill(os.getpid(), 9)", Status::Failed),
        ("a = []\nwhile True: a.append(bytearray(8 << 20))", Status::Oom),
        ("while True: pass", Status::Timeout),
    ];
    for (ending, status) in endings {
        let program = format!(
            "with open('/sandbox/out/output.json', 'w') as out: out.write('{{\"done\": 1}}')\n{ending}"
        );
        let ask = RunSpec {
            timeout: (status == Status::Timeout).then(|| Duration::from_secs(3)),
            ..RunSpec::default()
        };
        let outcome = world.run(Language::Python, &program, ask).await.outcome.unwrap();
        assert_eq!(outcome.status, status, "{ending}: {:?}", outcome.error);
        // A watchdog, where no cgroup can be had, kills the whole sandbox, which then sends nothing.
        if status == Status::Oom && std::env::var_os(crate::world::DEGRADED).is_some() {
            continue;
        }
        assert_eq!(output(&outcome), serde_json::json!({"done": 1}), "{ending}");
    }
}

/// C-11 and the cancel route: a cancelled execution is recorded as such, once, however often it is asked.
#[tokio::test(flavor = "multi_thread")]
async fn cancelled_execution_ends_within_a_second() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    let (engine, admin) = (world.engine.clone(), world.admin.clone());
    let file = archive(
        Language::Python,
        "",
        "print('on', flush=True)\nimport time; time.sleep(60)",
    );
    let run = tokio::spawn(async move {
        let archive = unpublished(file);
        engine
            .runs()
            .run(
                admin.tenant(),
                RunRequest {
                    archive,
                    ..RunRequest::from(RunSpec::default())
                },
            )
            .await
            .unwrap()
    });
    let id = loop {
        let page = skillbox::engine::PageRequest { after: None, rows: 1 };
        let running = world
            .executions()
            .list(world.tenant(), Default::default(), page)
            .await
            .unwrap();
        if let Some(execution) = running.items.first() {
            break execution.new.id;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    let cancelled = world.executions().cancel(world.tenant(), id).await.unwrap();
    assert_eq!(cancelled.status, Status::Cancelled);
    assert_eq!(
        world
            .executions()
            .cancel(world.tenant(), id)
            .await
            .unwrap()
            .status,
        Status::Cancelled
    );
    assert_eq!(run.await.unwrap().status, Status::Cancelled);
}

/// F-05: executions that do not end in time are recorded as interrupted; new ones are rejected.
#[tokio::test(flavor = "multi_thread")]
async fn shutdown_interrupts_unfinished_executions() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    let (engine, admin) = (world.engine.clone(), world.admin.clone());
    let file = archive(Language::Bash, "", "sleep 60");
    let run = tokio::spawn(async move {
        let archive = unpublished(file);
        let request = RunRequest {
            archive,
            ..RunRequest::from(RunSpec::default())
        };
        engine.runs().run(admin.tenant(), request).await.unwrap()
    });
    let page = || skillbox::engine::PageRequest { after: None, rows: 1 };
    let listed = async || {
        let found = world
            .executions()
            .list(world.tenant(), Default::default(), page())
            .await;
        found.unwrap().items
    };
    while listed().await.is_empty() {
        tokio::task::yield_now().await;
    }
    world.maintenance().shutdown(Duration::ZERO).await;
    assert_eq!(run.await.unwrap().status, Status::Interrupted);
    assert_eq!(listed().await[0].status, Status::Interrupted);
    let refused = world.try_run(Language::Bash, "true", RunSpec::default()).await;
    assert_eq!(refused.unwrap_err().code(), Code::Busy);
}

/// A-07: an input of any accepted size arrives byte for byte; above the limit it is rejected.
#[tokio::test]
async fn input_of_any_size_arrives_byte_for_byte() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    let program = "import hashlib, json, os
data = open(os.environ['SANDBOX_INPUT_FILE'], 'rb').read()
json.dump({'size': len(data), 'sha256': hashlib.sha256(data).hexdigest()}, open(os.environ['SANDBOX_OUTPUT'], 'w'))";
    let cap = usize::try_from(skillbox::limits::INPUT_BYTES_MAX).unwrap();
    for size in [2, 131_056, 131_057, 131_058, 1 << 20, cap] {
        let text = format!("\"{}\"", "y".repeat(size - 2));
        let digest = skillbox::ids::Digest::of(text.as_bytes()).hex();
        let ask = RunSpec {
            input: Some(json(&text)),
            ..RunSpec::default()
        };
        let outcome = world.run(Language::Python, program, ask).await.outcome.unwrap();
        assert_eq!(
            output(&outcome),
            serde_json::json!({"size": size, "sha256": digest})
        );
    }
    let text = format!("\"{}\"", "y".repeat(cap - 1));
    let ask = RunSpec {
        input: Some(json(&text)),
        ..RunSpec::default()
    };
    let refused = world.try_run(Language::Python, program, ask).await.unwrap_err();
    assert_eq!(refused.code(), Code::TooLarge);
}
