//! Code that comes with a request: every sample ends as its snapshot says, on both backends.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use skillbox::engine::{RunRequest, RunSpec};
use skillbox::execution::{Envelope, Status};
use skillbox::skill::{Language, SkillRef};

use crate::outcomes::{output, stderr};
use crate::world::{World, unpublished};

/// What every sample is given.
const INPUT: &str = r#"{"numbers": [1, 2, 3]}"#;

/// Code in a language.
pub(crate) fn code(language: Language, text: &str) -> RunSpec {
    RunSpec::of_code(language, text.to_owned())
}

async fn run(world: &World, request: impl Into<RunRequest>) -> Envelope {
    let execution = world.runs().run(world.tenant(), request).await.unwrap();
    // The response equals the record.
    let kept = world
        .executions()
        .get(world.tenant(), execution.new.id)
        .await
        .unwrap();
    assert_eq!(kept, execution);
    Envelope::from_execution(&execution, None)
}

/// The samples of a folder, by name.
pub(crate) fn samples(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let entries = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut samples: Vec<_> = entries.filter(|path| path.is_file()).collect();
    samples.sort();
    samples
}

/// A sample and how it is run: the extension gives the language, the first line the deadline.
pub(crate) fn sample(path: &Path) -> RunSpec {
    let text = std::fs::read_to_string(path).unwrap();
    let language = match path.extension().unwrap().to_str().unwrap() {
        "py" => Language::Python,
        "sh" => Language::Bash,
        _ => Language::Node,
    };
    let seconds = text
        .lines()
        .next()
        .and_then(|line| line.strip_prefix("# timeout: "));
    RunSpec {
        input: Some(crate::world::json(INPUT)),
        timeout: seconds.map(|seconds| Duration::from_secs(seconds.parse().unwrap())),
        ..code(language, &text)
    }
}

/// What of an envelope is the same each time.
pub(crate) fn told(envelope: &Envelope) -> Value {
    let whole = serde_json::to_value(envelope).unwrap();
    let mut told = serde_json::Map::new();
    for member in [
        "status",
        "output",
        "results",
        "results_truncated",
        "error",
        "exit_code",
        "files_list",
    ] {
        told.insert(member.to_owned(), whole[member].clone());
    }
    let mut logs = whole["logs"].clone();
    for line in logs["lines"].as_array_mut().unwrap() {
        line.as_object_mut().unwrap().remove("time");
    }
    told.insert("logs".to_owned(), logs);
    shortened(&mut told.into())
}

/// Without what differs between versions of an interpreter, and without the middle of what is long.
fn shortened(value: &mut Value) -> Value {
    match value {
        Value::String(text) => {
            let is_mark = |line: &str| !line.is_empty() && line.chars().all(|c| matches!(c, ' ' | '~' | '^'));
            let mut lines: Vec<_> = text.split('\n').filter(|line| !is_mark(line)).collect();
            while let Some(at) = lines.iter().position(|line| line.contains("File \"/usr/")) {
                lines.drain(at..(at + 2).min(lines.len()));
            }
            let text = lines.join("\n");
            let text = match text.split_once("  [Previous line repeated ") {
                Some((before, after)) => {
                    let (_, after) = after.split_once("]\n").unwrap();
                    format!("{before}  [Previous line repeated …]\n{after}")
                }
                None => text,
            };
            match text.char_indices().nth(1500) {
                Some((at, _)) => format!("{}… ({} bytes)", &text[..at], text.len() / 1000 * 1000).into(),
                None => text.into(),
            }
        }
        Value::Array(values) if values.len() > 20 => json!(format!("{} values", values.len())),
        Value::Array(values) => values.iter_mut().map(shortened).collect(),
        Value::Object(members) => members
            .iter_mut()
            .map(|(name, value)| (name.clone(), shortened(value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        other => other.clone(),
    }
}

/// Compares with the snapshot of the sample, which is the same on every backend.
pub(crate) fn assert_told(path: &Path, envelope: &Envelope) {
    let name = path.file_name().unwrap().to_str().unwrap();
    let settings = {
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path("../snapshots/run_code");
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings
    };
    settings.bind(|| insta::assert_snapshot!(name, format!("{:#}", told(envelope))));
}

#[tokio::test]
async fn every_sample_matches_snapshot() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    for path in samples("samples") {
        let spec = sample(&path);
        println!("{}", path.display());
        assert_told(&path, &run(&world, spec).await);
    }
}

/// A skill of functions, one that it uses, and code that uses both.
#[tokio::test]
async fn imports_mounted_skills_by_name() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    let python = [
        (
            "SKILL.md",
            "---\nname: sales-force.leads\ndescription: Leads\n---\n",
        ),
        ("skill.toml", "entrypoint = \"sync\"\n"),
        (
            "code/sync.py",
            "import pathlib\nfrom neighbour import twice\nfrom skills.sales_force.leads.deep.inner import VALUE\nasync def main(args):\n    text = (pathlib.Path(__file__).parent.parent / 'resources/x.txt').read_text()\n    return [twice(args['n']), VALUE, text, __name__]\n",
        ),
        ("code/neighbour.py", "def twice(n): return n * 2\n"),
        ("code/deep/inner.py", "VALUE = 7\n"),
        ("resources/x.txt", "resource"),
    ];
    let node = [
        ("SKILL.md", "---\nname: node-fn\ndescription: Node\n---\n"),
        ("skill.toml", ""),
        (
            "code/main.mjs",
            "import { log } from 'runtime';\nimport { twice } from './lib.mjs';\nimport { twice as same } from 'skills/node_fn/lib';\nexport async function main(args) { log.info('called'); return [twice(args.n), twice === same]; }\n",
        ),
        ("code/lib.mjs", "export const twice = (n) => n * 2;\n"),
    ];
    let mut mount_skills = Vec::new();
    for (files, expected) in [
        (
            &python[..],
            json!([42, 7, "resource", "skills.sales_force.leads.sync"]),
        ),
        (&node[..], json!([42, true])),
    ] {
        let (record, _) = world
            .skills()
            .publish(world.tenant(), crate::world::zip_of(files), None)
            .await
            .unwrap();
        mount_skills.push(record.name.to_string().parse().unwrap());
        let skill = SkillRef {
            name: record.name,
            selector: skillbox::skill::Selector::Latest,
        };
        let ask = RunSpec {
            input: Some(crate::world::json("{\"n\": 21}")),
            skill: Some(skill),
            ..RunSpec::default()
        };
        let envelope = run(&world, ask).await;
        assert_eq!(
            serde_json::to_value(&envelope.output).unwrap(),
            expected,
            "{envelope:#?}"
        );
    }
    assert_imported(&world, mount_skills).await;
}

async fn assert_imported(world: &World, mount_skills: Vec<skillbox::skill::SkillRef>) {
    for (language, text, expected) in [
        (
            Language::Python,
            "from skills.sales_force.leads.sync import main as sync\nfrom skills.sales_force import leads\n(await sync({'n': 4}))[0]",
            json!(8),
        ),
        (
            Language::Node,
            "import { main as f } from 'skills/node-fn/main';\nimport { main as g } from 'skills/node_fn/main.mjs';\n[await f({ n: 1 }), f === g]",
            json!([[2, true], true]),
        ),
    ] {
        let spec = RunSpec {
            mount_skills: mount_skills.clone(),
            ..code(language, text)
        };
        let envelope = run(world, spec).await;
        assert_eq!(
            serde_json::to_value(&envelope.output).unwrap(),
            expected,
            "{envelope:#?}"
        );
    }
}

/// A missing function and a failing one are reported as an exception without frames of the runtime.
#[tokio::test]
async fn failing_function_reports_place() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    let program = "def helper(d):\n    return d['missing']\n\ndef main(args):\n    return helper(args)\n";
    let skill_md = "---\nname: fails\ndescription: Fails\n---\n";
    for (module, name) in [
        (program, "KeyError"),
        ("x = 1\n", "AttributeError"),
        ("import nothing\n", "ModuleNotFoundError"),
    ] {
        let archive = unpublished(crate::world::zip_of(&[
            ("SKILL.md", skill_md),
            ("skill.toml", ""),
            ("code/main.py", module),
        ]));
        let request = RunRequest {
            archive,
            ..RunRequest::default()
        };
        let envelope = run(&world, request).await;
        let error = envelope.error.unwrap();
        let exception = error.exception.unwrap();
        assert_eq!(
            (error.code.as_str(), exception.name.as_str()),
            ("exception", name),
            "{exception:?}"
        );
        assert!(!exception.traceback.contains("/sandbox/runtime"), "{exception:?}");
    }
}

/// Errors of code in Node.js stand where they are in the code, with nothing of what is put around it.
#[tokio::test]
async fn node_error_names_place_in_code() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    for (text, place) in [
        ("let x = ;", "<code>:1\nlet x = ;\n        ^\n"),
        ("let a = 1;\nlet x = ;\n", "<code>:2\nlet x = ;\n        ^\n"),
        ("function f( {\n", "<code>:1\nfunction f( {\n"),
        ("f(1));\n", "<code>:1\nf(1));\n    ^\n"),
        ("await 1;\nif (1) {\n", "<code>:2\nif (1) {\n"),
        ("undefinedFn(1)", "at <code>:1:1"),
        ("\u{feff}undefinedFn(1);", "at <code>:1:1"),
        ("let a = 1; undefinedFn(a)", "at <code>:1:12"),
        ("const a = 1\n\nfunction f() { null.x }\nf()", "at <code>:4:1"),
    ] {
        let envelope = run(&world, code(Language::Node, text)).await;
        let traceback = envelope.error.unwrap().exception.unwrap().traceback;
        assert!(
            traceback.contains(place) && !traceback.contains("async") && !traceback.contains("})"),
            "{text:?}: {traceback}"
        );
    }
}

/// Node.js ends without a word when nothing can happen any more.
#[tokio::test]
async fn reports_await_that_never_resolves() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    let text = "await new Promise(() => {})";
    let envelope = run(&world, code(Language::Node, text)).await;
    assert!(
        envelope.logs.stderr.contains("never comes"),
        "{:?}",
        envelope.error
    );
    assert_eq!(envelope.status, Status::Failed);
}

/// What editors on Windows begin a file with is no part of the code.
#[tokio::test]
async fn every_language_ignores_byte_order_mark() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    for (language, text) in [
        (Language::Python, "\u{feff}print('well')"),
        (Language::Node, "\u{feff}console.log('well')"),
        (Language::Bash, "\u{feff}echo well"),
    ] {
        let envelope = run(&world, code(language, text)).await;
        assert_eq!(envelope.logs.stdout, "well\n", "{:?}", envelope.error);
    }
}

/// O-17: a flood is limited, and a pipe that is closed, or taken by other processes, does no harm.
#[tokio::test]
async fn limits_log_lines_without_failing_guest() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    let flood = r#"
import os, threading
from runtime import log
def work():
    pipe = os.open("/sandbox/log", os.O_WRONLY)
    for _ in range(2000):
        os.write(pipe, b"x" * 4000 + b"\n")
    os.write(pipe, b"no end" * 100_000)
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads: thread.start()
for n in range(3000): log.info("line", n=n)
for thread in threads: thread.join()
"survived"
"#;
    let envelope = run(&world, code(Language::Python, flood)).await;
    assert_eq!(envelope.status, Status::Success, "{:?}", envelope.error);
    let kept: usize = envelope.logs.lines.iter().map(|line| line.message.len()).sum();
    assert!(envelope.logs.lines_truncated && kept <= 256 * 1024 && !envelope.logs.lines.is_empty());

    let gone = r#"
import os
os.unlink("/sandbox/log")
from runtime import log
log.error("to standard error")
os.mkfifo("/sandbox/log")
"survived"
"#;
    let envelope = run(&world, code(Language::Python, gone)).await;
    assert_eq!(envelope.status, Status::Success, "{:?}", envelope.error);
    assert_eq!(envelope.logs.stderr, "ERROR to standard error\n");
}

/// What a program writes where a shim would is read as hostile, and read to its cap.
#[tokio::test]
async fn limits_forged_results() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    let forged = r#"
import os
path = "/sandbox/out/results.jsonl"
os.unlink(path)
line = b'{"result": {"text": "' + b"x" * 1_000_000 + b'"}}\n'
with open(path, "wb") as file:
    for _ in range(20):
        file.write(line)
"#;
    let envelope = run(&world, code(Language::Python, forged)).await;
    assert_eq!(envelope.status, Status::Success, "{:?}", envelope.error);
    assert!(
        envelope.results_truncated && envelope.results.len() == 16,
        "{}",
        envelope.results.len()
    );
    for instead in [
        "os.symlink('/etc/passwd', path)",
        "os.mkfifo(path)",
        "os.mkdir(path)",
    ] {
        let text = format!("import os\npath = '/sandbox/out/results.jsonl'\nos.unlink(path)\n{instead}\n");
        let envelope = run(&world, code(Language::Python, &text)).await;
        assert_eq!(
            (envelope.status, envelope.results.len()),
            (Status::Success, 0),
            "{instead}"
        );
    }
}

/// Whatever ran before, a plain program finds the helpers, too.
#[tokio::test]
async fn plain_programs_import_helpers() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    let python = "import json, os, sys\nfrom runtime import blobs, log\nlog.info('plain')\njson.dump([blobs.write_text('x'), os.access('/sandbox/runtime', os.W_OK)], open(os.environ['SANDBOX_OUTPUT'], 'w'))";
    let node = "const { blobs, log } = require('runtime');\nlog.info('plain');\nrequire('fs').writeFileSync(process.env.SANDBOX_OUTPUT, JSON.stringify([blobs.writeText('x'), false]));";
    for (language, program) in [(Language::Python, python), (Language::Node, node)] {
        let outcome = world
            .run(language, program, RunSpec::default())
            .await
            .outcome
            .unwrap();
        assert_eq!(outcome.status, Status::Success, "{}", stderr(&outcome));
        let id = "sha256:2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881";
        assert_eq!(output(&outcome), json!([id, false]));
        assert_eq!(outcome.logs.lines[0].message, "plain");
    }
}
