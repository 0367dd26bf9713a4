//! Secrets in real sandboxes: who sees them, what of them is kept, and that afterwards they are nowhere.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use serde_json::json;
use skillbox::engine::{RunRequest, RunSpec};
use skillbox::error::{Code, Error};
use skillbox::execution::{Execution, Outcome, Status};
use skillbox::secret::SecretValue;
use skillbox::skill::Language;

use crate::outcomes::{output, stderr, stdout};
use crate::server::Server;
use crate::world::{Backend, World, archive, docker_settings, unpublished};

const DECLARED: &str = "version: 1.0.0\npermissions:\n  secrets: [API_TOKEN]\n";

async fn set(world: &World, name: &str, value: &str) {
    let (name, value) = (name.parse().unwrap(), SecretValue::new(value.to_owned()).unwrap());
    world.secrets().set(world.tenant(), &name, &value).await.unwrap();
}

async fn run(world: &World, front_matter: &str, program: &str, ask: RunSpec) -> Result<Execution, Error> {
    world
        .run_archive(archive(Language::Python, front_matter, program), ask)
        .await
}

async fn ended(world: &World, front_matter: &str, program: &str) -> Outcome {
    run(world, front_matter, program, RunSpec::default())
        .await
        .unwrap()
        .outcome
        .unwrap()
}

/// As long as the planted secret of the catalogue, and never the same.
fn planted() -> String {
    let mut random = [0_u8; 32];
    getrandom::fill(&mut random).unwrap();
    skillbox::ids::Digest::of(&random).hex()
}

/// A-08: each value arrives unchanged, under its own name and no other.
#[tokio::test]
async fn declared_secret_arrives_verbatim_and_adds_no_other_variable() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    let odd = "line\nPATH=/evil\nLD_PRELOAD=x='\"$(touch /tmp/x)`id`\\%s%n\u{202e}ü\t=end\n";
    let long = "x".repeat(skillbox::limits::SECRET_BYTES_MAX);
    set(&world, "API_TOKEN", odd).await;
    set(&world, "LONG", &long).await;
    // Its size and digest: the text itself would be masked.
    let program = "import hashlib, json, os
said = {name: [len(value.encode()), hashlib.sha256(value.encode()).hexdigest()] for name, value in os.environ.items()}
json.dump(said, open(os.environ['SANDBOX_OUTPUT'], 'w'))";
    let front_matter = "permissions: {secrets: [API_TOKEN, LONG]}\n";
    let (with, without) = (
        output(&ended(&world, front_matter, program).await),
        output(&ended(&world, "", program).await),
    );
    for (name, value) in [("API_TOKEN", odd), ("LONG", &long)] {
        let digest = skillbox::ids::Digest::of(value.as_bytes()).hex();
        assert_eq!(with[name], json!([value.len(), digest]), "{name}");
    }
    let mut names: Vec<_> = with.as_object().unwrap().keys().collect();
    names.retain(|name| !["API_TOKEN", "LONG"].contains(&name.as_str()));
    assert_eq!(names, without.as_object().unwrap().keys().collect::<Vec<_>>());
    assert_eq!(with["PATH"], without["PATH"]);
}

/// A-08: as much as can be declared still fits into what `execve` takes, beside all else that may be there.
#[tokio::test]
async fn starts_program_with_largest_environment_and_arguments() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    let names: Vec<_> = (0..8).map(|n| format!("S{n}")).collect();
    for name in &names {
        // What JSON escapes takes most room on its way in.
        set(&world, name, &"\u{1}".repeat(skillbox::limits::SECRET_BYTES_MAX)).await;
    }
    let front_matter = format!("permissions: {{secrets: [{}]}}\n", names.join(","));
    let ask = || RunSpec {
        args: vec!["\u{1}".repeat(skillbox::limits::ARG_BYTES_MAX); 8],
        ..RunSpec::default()
    };
    let program = "import os, sys; print(sum(len(os.environ[f'S{n}']) for n in range(8)), len(sys.argv))";
    let outcome = run(&world, &front_matter, program, ask())
        .await
        .unwrap()
        .outcome
        .unwrap();
    assert_eq!(
        stdout(&outcome),
        "524288 9\n",
        "{:?} {}",
        outcome.error,
        stderr(&outcome)
    );
    set(&world, "S8", "one more").await;
    let front_matter = front_matter.replace("S7]", "S7,S8]");
    let refused = run(&world, &front_matter, program, ask()).await.unwrap_err();
    assert!(refused.to_string().contains("the limit is 524288"), "{refused}");
}

/// S-30: neither an undeclared one, nor another skill's, nor another tenant's.
#[tokio::test]
async fn exposes_only_declared_secrets_of_own_tenant() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    let (mine, undeclared) = (planted(), planted());
    set(&world, "API_TOKEN", &mine).await;
    set(&world, "OTHER_TOKEN", &undeclared).await;
    let program = "import os, pathlib
seen = [p.read_bytes() for pattern in ('environ', 'cmdline') for p in pathlib.Path('/proc').glob('[0-9]*/' + pattern) if os.access(p, os.R_OK)]
for folder in ('/sandbox', '/workspace', '/tmp', '/skills', '/blobs'):
    seen += [p.read_bytes() for p in pathlib.Path(folder).rglob('*') if p.is_file()]
known = b'\\n'.join(seen) + repr(dict(os.environ)).encode()
print('API_TOKEN' in os.environ, 'OTHER_TOKEN' in os.environ, b'OTHER_TOKEN' in known, UNDECLARED.encode() in known)"
        .replace("UNDECLARED", &format!("{:?}[::-1]", undeclared.chars().rev().collect::<String>()));
    let outcome = ended(&world, DECLARED, &program).await;
    // The program itself names it, once.
    let own = stdout(&outcome);
    assert_eq!(own, "True False True False\n", "{}", stderr(&outcome));
    assert_eq!(
        stdout(&ended(&world, "", "import os; print('API_TOKEN' in os.environ)").await),
        "False\n"
    );

    let key = skillbox::engine::NewKey {
        name: "other".to_owned(),
        scopes: skillbox::auth::Scopes::new([skillbox::auth::Scope::Admin]),
        expires_at: None,
    };
    let (_, key) = world.keys().create("other".parse().unwrap(), key).await.unwrap();
    let stranger = world.keys().authenticate(key.reveal()).await.unwrap();
    let archive = unpublished(archive(Language::Python, DECLARED, "print()"));
    let request = RunRequest {
        archive,
        ..RunRequest::from(RunSpec::default())
    };
    let refused = world.runs().run(stranger.tenant(), request).await.unwrap_err();
    assert!(refused.to_string().contains("`API_TOKEN`"), "{refused}");
}

#[tokio::test]
async fn reports_missing_secret_before_start_and_record() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    set(&world, "THERE", "value").await;
    let front_matter = "permissions: {secrets: [THERE, GONE, LOST]}\n";
    let refused = run(&world, front_matter, "print()", RunSpec::default())
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::Invalid);
    let text = refused.to_string();
    assert!(
        text.contains("`GONE`, `LOST`") && text.contains("skillbox secret set GONE"),
        "{text}"
    );
    assert!(world.has_recorded_nothing().await);
}

/// O-21: plainly, in pieces, as JSON writes it, in names of files, and where the log is cut in the middle of it.
#[tokio::test]
async fn masks_secret_in_all_stored_texts() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    let secret = format!("{}\"\\/ü", planted());
    set(&world, "API_TOKEN", &secret).await;
    let program = r#"import json, os, sys, time
token = os.environ['API_TOKEN']
print('plain', token, flush=True)
for char in token:
    sys.stderr.write(char); sys.stderr.flush(); time.sleep(0.002)
print(json.dumps(token), json.dumps(token, ensure_ascii=False))
json.dump({'token': token, token: [1, 'x' + token]}, open(os.environ['SANDBOX_OUTPUT'], 'w'))
name = os.path.join(os.environ['SANDBOX_FILES_DIR'], 'a-' + token.replace('/', '')[:64])
open(name, 'w').write('content')
os.symlink('/etc/passwd', name + '-link')
sys.exit(3)"#;
    let hex = &secret[..64];
    // Paths cannot hold the whole of it.
    set(&world, "SECOND", hex).await;
    let front_matter = "permissions: {secrets: [API_TOKEN, SECOND]}\n";
    let outcome = ended(&world, front_matter, program).await;
    assert_eq!(
        stdout(&outcome),
        "plain ***\n\"***\" \"***\"\n",
        "{}",
        stderr(&outcome)
    );
    assert_eq!(stderr(&outcome), "***");
    assert!(!outcome.logs.truncated());
    assert_eq!(output(&outcome), json!({"token": "***", "***": [1, "x***"]}));
    assert_eq!(outcome.files[0].path, "a-***");
    assert_eq!(outcome.skipped[0].path, "a-***-link");
    assert!(!format!("{outcome:?}").contains(&hex[..8]), "{outcome:?}");

    let flood = "import os, sys
token = os.environ['SECOND']
sys.stdout.write('x' * (1048576 - 40) + token + 'rest')";
    let outcome = ended(&world, front_matter, flood).await;
    assert!(outcome.logs.truncated());
    let kept = stdout(&outcome);
    assert!(kept.ends_with("xx***"), "{}", &kept[kept.len() - 50..]);
}

/// Every regular file below `folder` that was changed since `since` and holds `needle`.
fn holders(folder: &Path, since: SystemTime, needle: &str) -> Vec<PathBuf> {
    let finder = memchr::memmem::Finder::new(needle.as_bytes());
    let mut pending = vec![folder.to_owned()];
    let mut found = Vec::new();
    while let Some(path) = pending.pop() {
        let Ok(metadata) = std::fs::symlink_metadata(&path) else {
            continue;
        };
        if metadata.is_dir() {
            let entries = std::fs::read_dir(&path).into_iter().flatten();
            pending.extend(entries.filter_map(|entry| Some(entry.ok()?.path())));
        } else if metadata.is_file()
            && metadata.modified().is_ok_and(|at| at >= since)
            && std::fs::read(&path).is_ok_and(|bytes| finder.find(&bytes).is_some())
        {
            found.push(path);
        }
    }
    found
}

/// Processes of this machine whose arguments hold `needle`.
fn arguments_with(needle: &str) -> usize {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .filter(|line| memchr::memmem::find(line, needle.as_bytes()).is_some())
        .count()
}

/// Where the engine keeps what it knows, if it runs on this machine.
async fn engine_state() -> Vec<PathBuf> {
    let info = crate::sandbox_oracles::connect().await.info().await.unwrap();
    let root = info.docker_root_dir.map(PathBuf::from);
    let socket = docker_settings().host.unwrap_or_default();
    let run = Path::new(socket.trim_start_matches("unix://"))
        .parent()
        .map(Path::to_owned);
    let own = run.filter(|run| run.ends_with("skillbox-test-engine"));
    root.into_iter().chain(own).filter(|path| path.is_dir()).collect()
}

/// What the engine reports about the container of the execution, which is made while its row is written.
async fn inspected(id: &str) -> String {
    let name = format!("skillbox-run-{id}");
    let engine = crate::sandbox_oracles::connect().await;
    let asked = Instant::now();
    loop {
        match engine.inspect_container(&name, None).await {
            Ok(container) => return serde_json::to_string(&container).unwrap(),
            Err(error) => assert!(asked.elapsed() < Duration::from_secs(30), "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

const HOLDING: &str = "import os, time
print('holding', len(os.environ['API_TOKEN']), flush=True)
print(os.environ['API_TOKEN'], flush=True)
time.sleep(30)";

/// S-31, S-32, O-f: after a normal end, a failure, a crash, a timeout and `kill -9` of the server the secret is in no file, whichever.
#[tokio::test(flavor = "multi_thread")]
async fn secret_is_nowhere_after_run() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    let since = SystemTime::now() - Duration::from_secs(2);
    let secret = planted();
    set(&world, "API_TOKEN", &secret).await;
    let seconds = |seconds| RunSpec {
        timeout: Some(Duration::from_secs(seconds)),
        ..RunSpec::default()
    };
    for (program, status) in [
        ("import os; print(os.environ['API_TOKEN'])", Status::Success),
        (
            "import os; raise SystemExit(os.environ['API_TOKEN'])",
            Status::Failed,
        ),
        (
            "import os; print(os.environ['API_TOKEN'], flush=True); os.abort()",
            Status::Failed,
        ),
        (
            "import ctypes, os; token = os.environ['API_TOKEN'] * 2; ctypes.string_at(0)",
            Status::Failed,
        ),
        (HOLDING, Status::Timeout),
    ] {
        let time = if status == Status::Timeout { 2 } else { 60 };
        let outcome = run(&world, DECLARED, program, seconds(time))
            .await
            .unwrap()
            .outcome
            .unwrap();
        assert_eq!(outcome.status, status, "{program}: {:?}", outcome.error);
        assert!(!format!("{outcome:?}").contains(&secret), "{program}");
    }
    let places = match super::BACKEND {
        Backend::Docker => engine_state().await,
        Backend::Native => Vec::new(),
    };
    killed_while_it_runs(&secret, since, places.clone()).await;
    let mut searched = vec![
        world.folder.path().to_owned(),
        std::env::current_dir().unwrap().join("core"),
    ];
    searched.extend(places);
    for place in &searched {
        assert_eq!(
            holders(place, since, &secret),
            Vec::<PathBuf>::new(),
            "{}",
            place.display()
        );
    }
    // The search finds what is there.
    std::fs::write(world.folder.path().join("tmp/planted"), format!("\0{secret}\n")).unwrap();
    assert_eq!(holders(world.folder.path(), since, &secret).len(), 1);
}

/// A server that is killed during an execution, examined before and after.
async fn killed_while_it_runs(secret: &str, since: SystemTime, places: Vec<PathBuf>) {
    let secret = secret.to_owned();
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let backend = match super::BACKEND {
        Backend::Docker => "docker",
        Backend::Native => "native",
    };
    // As the world of these tests has it.
    let degraded = std::env::var_os(crate::world::DEGRADED).map_or("false", |_| "true");
    let start = move |data: PathBuf| {
        let env = [
            ("SKILLBOX_SANDBOX_BACKEND", backend),
            ("SKILLBOX_NATIVE_ALLOW_DEGRADED", degraded),
        ];
        Server::start_with(&data, &env)
    };
    let (server, id) = tokio::task::spawn_blocking({
        let (data, secret) = (data.clone(), secret.clone());
        move || {
            let server = start(data);
            put(&server, &secret);
            server.publish(archive(Language::Python, DECLARED, HOLDING));
            let id = running(&server);
            (server, id)
        }
    })
    .await
    .unwrap();
    if super::BACKEND == Backend::Docker {
        let told = inspected(&id).await;
        assert!(
            told.contains(&id) && !told.contains(&secret) && !told.contains("API_TOKEN"),
            "{told}"
        );
    }
    assert_eq!(arguments_with(&secret), 0);
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", server.process.id())).unwrap();
    let none = ["Max", "core", "file", "size", "0", "0", "bytes"];
    assert!(
        limits.lines().any(|line| line.split_whitespace().eq(none)),
        "{limits}"
    );
    let mut searched = places;
    searched.push(folder.path().to_owned());
    for place in &searched {
        assert!(
            holders(place, since, &secret).is_empty(),
            "while it runs: {}",
            place.display()
        );
    }
    server.kill_9();
    assert!(holders(folder.path(), since, &secret).is_empty(), "killed");
    let server = tokio::task::spawn_blocking(move || start(data)).await.unwrap();
    let said = server.get(&format!("/v1/executions/{id}")).unwrap().body;
    assert!(!said.to_string().contains(&secret), "{said}");
    assert!(holders(folder.path(), since, &secret).is_empty(), "restarted");
}

fn put(server: &Server, secret: &str) {
    let request = ureq::put(format!("{}/v1/secrets/API_TOKEN", server.url))
        .header("authorization", format!("Bearer {}", server.key()))
        .header("content-type", "application/json");
    let answer = request
        .send(json!({ "value": secret }).to_string().as_bytes())
        .unwrap();
    assert_eq!(answer.status(), 201);
}

/// Starts the skill and waits until it runs.
fn running(server: &Server) -> String {
    let (url, key) = (format!("{}/v1/executions", server.url), server.key());
    std::thread::spawn(move || {
        let request = ureq::post(url).header("authorization", format!("Bearer {key}"));
        let _ = request
            .header("content-type", "application/json")
            .send(json!({"skill": "probe", "timeout": 60}).to_string().as_bytes());
    });
    let started = Instant::now();
    loop {
        assert!(
            started.elapsed() < Duration::from_secs(30),
            "it did not start: {}",
            server.log()
        );
        let listed = server.get("/v1/executions?status=running").unwrap().body;
        if let Some(id) = listed["items"][0]["execution_id"].as_str() {
            // The row is there a moment before its program.
            std::thread::sleep(Duration::from_millis(500));
            return id.to_owned();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// O-21: helpers in the sandbox cut what is too long before anybody masks it.
#[tokio::test]
async fn masks_secret_at_truncations_by_helper() {
    let Some(world) = World::on(super::BACKEND).await else {
        return;
    };
    let secret = planted();
    set(&world, "API_TOKEN", &secret).await;
    let skill_md = format!("---\nname: cuts\ndescription: Cuts\n{DECLARED}---\n");
    // Each leaves twelve characters of the secret, but for the log lines, which say that they were cut.
    let python = "import os
from IPython.display import display
from runtime import log
def main(args):
    secret = os.environ['API_TOKEN']
    log.info('x' * 2480 + secret + 'y' * 2456)
    log.info('fields', value=type('T', (), {'__repr__': lambda self: 'x' * 988 + secret})())
    display('x' * (1024 * 1024 - 13) + secret)
    raise ValueError('x' * (8000 - 12) + secret)
";
    let node = "const { log } = require('runtime');
exports.main = () => {
  const secret = process.env.API_TOKEN;
  log.info('x'.repeat(2480) + secret + 'y'.repeat(2456));
  display('x'.repeat(1024 * 1024 - 12) + secret);
  throw new RangeError('x'.repeat(8000 - 12) + secret);
};
";
    for (name, program) in [("code/main.py", python), ("code/main.js", node)] {
        let files = [
            ("SKILL.md", skill_md.as_str()),
            ("skill.toml", ""),
            (name, program),
        ];
        let archive = crate::world::zip_of(&files);
        let execution = world.run_archive(archive, RunSpec::default()).await.unwrap();
        let outcome = execution.outcome.unwrap();
        let told = format!(
            "{:?} {:?} {:?}",
            outcome.error, outcome.results, outcome.logs.lines
        );
        assert_eq!(
            outcome.error.as_ref().unwrap().code,
            "exception",
            "{:.2000}",
            told
        );
        assert_eq!(outcome.results.len(), 1);
        assert!(
            !outcome.logs.lines.is_empty() && !told.contains("yyy"),
            "cut in the secret"
        );
        assert!(!told.contains(&secret[..6]), "{name}");
    }
}
