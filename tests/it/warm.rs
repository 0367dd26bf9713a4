//! Warm sandboxes: a program in one cannot detect it, and each is used once.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use skillbox::auth::{Caller, Scope, Scopes};
use skillbox::engine::{NewKey, RunSpec};
use skillbox::execution::{Outcome, Status};
use skillbox::sandbox::WarmPoolSettings;
use skillbox::skill::{Language, Selector, SkillRef};

use crate::outcomes::{output, stderr, stdout, succeeded};
use crate::world::{Backend, World, archive, json, zip_of};

/// Enough for every test.
const POOL: WarmPoolSettings = WarmPoolSettings {
    slots: 8,
    memory_bytes: 256 << 20,
    idle: Duration::from_secs(300),
};

/// Everything about itself that a Python program can see and that is not an accident of the moment.
const PYTHON: &str = r#"
import atexit, json, os, re, resource, signal, sys, threading
fds = {}
for fd in sorted(map(int, os.listdir("/proc/self/fd"))):
    try:
        kind = os.fstat(fd).st_mode >> 12
        fds[fd] = [kind, os.get_inheritable(fd)]
    except OSError:
        pass
seen = {
    "flags": repr(sys.flags), "path": sys.path, "argv": sys.argv, "orig_argv": getattr(sys, "orig_argv", None),
    "executable": sys.executable, "prefix": sys.prefix, "warnoptions": sys.warnoptions, "xoptions": sys._xoptions,
    "main": sorted(vars(sys.modules["__main__"])), "name": __name__, "file": __file__,
    "spec": repr(__spec__), "loader": type(__loader__).__name__, "cached": repr(__cached__),
    "environ": {name: value for name, value in os.environ.items()},
    "proc_names": len(os.environ), "getenv": os.getenv("SKILL_NAME"),
    "cwd": os.getcwd(), "umask": os.umask(0o022), "fds": fds,
    "stdin": [repr(sys.stdin), sys.stdin.seekable(), sys.stdin.tell(), sys.stdin.encoding, sys.stdin.errors, sys.stdin.line_buffering],
    "stdout": [repr(sys.stdout), sys.stdout.seekable(), sys.stdout.encoding, sys.stdout.errors, sys.stdout.line_buffering],
    "stderr": [repr(sys.stderr), sys.stderr.seekable(), sys.stderr.errors, sys.stderr.line_buffering],
    "read": sys.stdin.read(), "signals": {str(n): str(signal.getsignal(n)) for n in range(1, 65) if n not in (32, 33)},
    "mask": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
    "threads": threading.active_count(), "ids": [os.getuid(), os.getgid(), os.getpgrp() == os.getpid(), os.getppid(), os.getpriority(0, 0)],
    "limits": {name: resource.getrlimit(getattr(resource, name)) for name in dir(resource) if name.startswith("RLIMIT_")},
    "hooks": [re.sub(" at 0x[0-9a-f]+", "", repr([sys.meta_path, sys.path_hooks, sys.excepthook, sys.displayhook])), sys.gettrace(), sys.getprofile()],
    "modules": sorted(name for name in sys.modules if "skillbox" in name or "custom" in name),
    "sandbox": sorted(os.listdir("/sandbox")), "workspace": sorted(os.listdir(".")),
    "recursion": sys.getrecursionlimit(), "switch": sys.getswitchinterval(), "utf8": sys.flags.utf8_mode,
    "no_new_privs": [line for line in open("/proc/self/status") if line.startswith(("NoNewPrivs", "Seccomp:", "Cap", "SigIgn", "SigBlk"))],
    "child": json.loads(os.popen("python3 -c 'import sys, os, json; print(json.dumps([sys.path, sorted(os.environ), sys.stdin.read()]))'").read()),
}
atexit.register(lambda: print("at exit"))
json.dump(seen, open(os.environ["SANDBOX_OUTPUT"], "w"))
"#;

const NODE: &str = r#"
const fs = require('fs'), path = require('path'), child = require('child_process');
const fds = {};
for (const fd of fs.readdirSync('/proc/self/fd').map(Number).sort((a, b) => a - b).slice(0, 3)) fds[fd] = fs.fstatSync(fd).mode >> 12;
const seen = {
  argv: process.argv, execArgv: process.execArgv, execPath: process.execPath, argv0: process.argv0, title: process.title,
  env: { ...process.env }, options: process.env.NODE_OPTIONS ?? null, cwd: process.cwd(), umask: process.umask(), fds,
  main: require.main === module, filename: __filename, paths: module.paths, children: module.children.length,
  cache: Object.keys(require.cache).length, parent: module.parent === null, globals: Object.getOwnPropertyNames(globalThis).sort(),
  stdin: fs.readFileSync(0, 'utf8'), listeners: process.eventNames().map(String).sort(), ids: [process.getuid(), process.getgid()],
  sandbox: fs.readdirSync('/sandbox').sort(), workspace: fs.readdirSync('.').sort(),
  child: child.execFileSync('node', ['-p', 'JSON.stringify([Object.keys(process.env).sort(), process.execArgv])'], { stdio: ['ignore', 'pipe', 'inherit'] }).toString(),
};
process.on('exit', () => console.log('at exit'));
fs.writeFileSync(process.env.SANDBOX_OUTPUT, JSON.stringify(seen));
"#;

/// What a Bash program can see of itself and of its sandbox.
const BASH: &str = r#"
processes=(/proc/[0-9]*) descriptors=(/proc/$$/fd/*)
line() { tr '\n\t"\\' '    '; }
tell() { printf '"%s":"%s"' "$1" "$(line)"; }
{
  printf '{'; tell args <<<"$*"
  printf ','; tell stdin
  printf ','; tell self <<<"$PWD $(umask) $- $PPID ${#processes[@]} $(ulimit -a | line)"
  printf ','; tell environment < <(env | sort)
  printf ','; tell files < <(ls -Al /sandbox /sandbox/ /workspace /tmp /root /dev/shm /blobs /skills | sed 's/ [A-Z][a-z]* .* ..:../ /')
  printf ','; tell descriptors <<<"${descriptors[*]##*/}"
  printf ','; tell status < <(grep -E '^(NoNewPrivs|Seccomp|Cap|SigIgn)' /proc/$$/status)
  printf '}'
} > "$SANDBOX_OUTPUT"
trap 'echo at exit' EXIT
"#;

/// Leaves to the end of the interpreter what it should have ended itself, also where modules know of it that were there before.
const LEFT_BEHIND: &str = r#"
import atexit, codecs, io, json, os, sys, weakref
class Left:
    def __init__(self, name):
        self.name = name
    def __del__(self):
        print("gone", self.name, json and json.__name__, Left and Left.__name__)
alone, cycle = Left("alone"), Left("cycle")
cycle.itself = cycle
kept = open("/sandbox/out/files/kept", "w")
kept.write("kept")
json.JSONEncoder.default = lambda self, value: str(value)
json.JSONEncoder.left = Left("class")
os.left, io.left, codecs.open = Left("os"), Left("io"), lambda path: kept
def generate():
    try:
        yield Left("generator")
    finally:
        print("finally")
generator = generate()
held = next(generator)
weakref.finalize(cycle, print, "finalized")
atexit.register(print, "at exit")
"#;

/// More than enough for a waiting sandbox to be made between two runs.
const TRIES: usize = 60;

async fn world() -> Option<World> {
    let world = World::on(super::BACKEND).await?;
    world.maintenance().keep_warm(POOL);
    Some(world)
}

fn ask() -> RunSpec {
    RunSpec {
        input: Some(json(r#"{"x": [1, "ü"]}"#)),
        args: vec![
            "--flag".to_owned(),
            "a b".to_owned(),
            String::new(),
            "ü".to_owned(),
        ],
        ..RunSpec::default()
    }
}

/// Published, because the warm pool ignores archives that run once.
async fn publish(world: &World, archive: std::fs::File) {
    world
        .skills()
        .publish(world.tenant(), archive, None)
        .await
        .unwrap();
}

async fn run(world: &World, ask: RunSpec) -> Outcome {
    world.run_latest("probe", ask).await.unwrap().outcome.unwrap()
}

/// The same program once in a sandbox of the moment and once in one that waited for it.
async fn cold_and_warm(
    world: &World,
    language: Language,
    program: &str,
    ask: fn() -> RunSpec,
) -> [Outcome; 2] {
    publish(world, archive(language, "", program)).await;
    let mut cold = None;
    for _ in 0..TRIES {
        let outcome = run(world, ask()).await;
        match (outcome.timings.warm, cold.take()) {
            (true, Some(cold)) => return [cold, outcome],
            (true, None) => panic!("the first run found a sandbox that was not made for it"),
            (false, _) => cold = Some(outcome),
        }
    }
    panic!("no sandbox was made in advance");
}

/// Runs what was published until it found a sandbox that had waited.
async fn assert_prints_cold_and_warm(world: &World, expected: &str) {
    for _ in 0..TRIES {
        let outcome = run(world, RunSpec::default()).await;
        assert_eq!(stdout(&outcome), expected, "{}", stderr(&outcome));
        if outcome.timings.warm {
            return;
        }
    }
    panic!("no sandbox was made in advance");
}

/// What both saw, member by member.
fn members(outcome: &Outcome) -> BTreeMap<String, Value> {
    serde_json::from_value(output(outcome)).unwrap()
}

async fn assert_nothing_is_told_apart(language: Language, program: &str) {
    let Some(world) = world().await else { return };
    let [cold, warm] = cold_and_warm(&world, language, program, ask).await;
    let (seen, seen_warm) = (members(&cold), members(&warm));
    for (name, value) in &seen {
        assert_eq!(Some(value), seen_warm.get(name), "{name}");
    }
    assert_eq!(seen.len(), seen_warm.len());
    assert_eq!((stdout(&cold), stderr(&cold)), (stdout(&warm), stderr(&warm)));
    assert_eq!(stdout(&warm), "at exit\n");
}

#[tokio::test]
async fn warm_python_program_sees_same_environment_as_cold() {
    assert_nothing_is_told_apart(Language::Python, PYTHON).await;
}

#[tokio::test]
async fn warm_node_program_sees_same_environment_as_cold() {
    assert_nothing_is_told_apart(Language::Node, NODE).await;
}

/// Nothing of it is started before: it is the sandbox that has waited.
#[tokio::test]
async fn warm_bash_program_sees_same_environment_as_cold() {
    assert_nothing_is_told_apart(Language::Bash, BASH).await;
}

/// Each way to end, with what is written about it.
#[tokio::test]
async fn warm_and_cold_runs_have_same_outcomes() {
    let Some(world) = world().await else { return };
    let programs = [
        (Language::Python, "def f():\n    raise ValueError('ü')\nf()\n"),
        (Language::Python, "import sys\nsys.exit(7)\n"),
        (Language::Python, "def f(:\n"),
        (
            Language::Python,
            "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\n",
        ),
        (Language::Python, "raise SystemExit('bye')\n"),
        (
            Language::Python,
            "import threading\nthreading.Thread(target=lambda: 1 / 0).start()\n",
        ),
        (Language::Python, LEFT_BEHIND),
        (
            Language::Node,
            "function f() { throw new TypeError('ü'); }\nf();\n",
        ),
        (Language::Node, "process.exitCode = 7;\n"),
        (Language::Node, "Promise.reject(new Error('no'));\n"),
        (
            Language::Node,
            "process.kill(process.pid, 'SIGTERM');\nsetInterval(() => {}, 1000);\n",
        ),
        (Language::Bash, "echo said; echo more >&2\nexit 7\n"),
        (Language::Bash, "kill -TERM $$\nsleep 60\n"),
    ];
    for (language, program) in programs {
        let [cold, warm] = cold_and_warm(&world, language, program, RunSpec::default).await;
        let told = |outcome: &Outcome| {
            (
                outcome.status,
                outcome.exit_code,
                outcome.error.clone(),
                outcome.files.clone(),
                stdout(outcome),
                stderr(outcome),
            )
        };
        // Threads of Python are named by an address where they have no other name.
        assert_eq!(told(&cold), told(&warm), "{program}");
    }
}

/// Modules of a skill's own by the names of standard ones are the program's: nothing of them runs before it does.
#[tokio::test]
async fn no_skill_code_runs_in_warm_pool() {
    let Some(world) = world().await else { return };
    let files = [
        (
            "SKILL.md",
            "---\nname: probe\ndescription: Brings its own\nlang: python\n---\n",
        ),
        (
            "scripts/main.py",
            "import json\nprint(json.OWN, len(open('/tmp/imported').read()))\n",
        ),
        (
            "scripts/json.py",
            "OWN = 'own'\nopen('/tmp/imported', 'a').write('x')\n",
        ),
    ];
    publish(&world, zip_of(&files)).await;
    assert_prints_cold_and_warm(&world, "own 1\n").await;
}

/// A warm sandbox whose interpreter has died is not used.
#[tokio::test]
async fn discards_warm_sandbox_whose_interpreter_died() {
    const NAME: &str = "mortal-while-it-waits";
    // An engine's processes may be on another machine.
    if super::BACKEND != Backend::Native {
        return;
    }
    let Some(world) = world().await else { return };
    let head = format!("---\nname: {NAME}\ndescription: Waits\nlang: python\n---\n");
    publish(
        &world,
        zip_of(&[("SKILL.md", &head), ("scripts/main.py", "print('ran')\n")]),
    )
    .await;
    let waiting = || {
        let named = |id: &u32| {
            let command = std::fs::read_to_string(format!("/proc/{id}/cmdline"));
            command.is_ok_and(|command| command.contains(NAME))
        };
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let ids = processes.filter_map(|process| process.file_name().to_str()?.parse().ok());
        ids.filter(named).collect::<Vec<u32>>()
    };
    let (mut killed, while_it_is_made) = (0, std::time::Duration::from_millis(200));
    for _ in 0..TRIES {
        tokio::time::sleep(while_it_is_made).await;
        for id in waiting() {
            let id = rustix::process::Pid::from_raw(i32::try_from(id).unwrap()).unwrap();
            killed += usize::from(rustix::process::kill_process(id, rustix::process::Signal::KILL).is_ok());
        }
        // Its PID 1 goes, too, in a moment.
        tokio::time::sleep(while_it_is_made).await;
        let ran = world.run_latest(NAME, RunSpec::default()).await.unwrap();
        assert_eq!(stdout(&succeeded(ran)), "ran\n");
        if killed > 3 {
            return;
        }
    }
    panic!("{killed} interpreters waited");
}

/// Code that mounts a skill is not that skill, and finds nothing that was made ready for it; nor the other way round.
#[tokio::test]
async fn skill_and_code_that_mounts_it_have_different_warm_keys() {
    let Some(world) = world().await else { return };
    let program = "test -d /sandbox/scripts && echo scripts\n";
    publish(&world, archive(Language::Bash, "", program)).await;
    let code = || RunSpec {
        mount_skills: vec!["probe".parse().unwrap()],
        ..RunSpec::of_code(Language::Bash, program.to_owned())
    };
    let mut warm = [0, 0];
    for _ in 0..TRIES {
        let outcome = world.run_request(code()).await.unwrap().outcome.unwrap();
        assert_eq!(stdout(&outcome), "", "as code");
        warm[0] += usize::from(outcome.timings.warm);
        let outcome = run(&world, RunSpec::default()).await;
        assert_eq!(stdout(&outcome), "scripts\n", "as a skill");
        warm[1] += usize::from(outcome.timings.warm);
        if warm.iter().all(|count| *count > 0) {
            return;
        }
    }
    panic!("no sandbox was made in advance: {warm:?}");
}

/// Decision 18: that another tenant has run the same content is not revealed by how fast it starts.
#[tokio::test(flavor = "multi_thread")]
async fn first_run_is_cold_although_another_tenant_ran_the_same_content() {
    let Some(world) = world().await else { return };
    let new = NewKey {
        name: "other".to_owned(),
        scopes: Scopes::new([Scope::Run, Scope::Skills]),
        expires_at: None,
    };
    let (_, key) = world.keys().create("other".parse().unwrap(), new).await.unwrap();
    let other = world.keys().authenticate(key.reveal()).await.unwrap();
    let run_as = async |caller: &Caller| {
        let skill = SkillRef {
            name: "probe".parse().unwrap(),
            selector: Selector::Latest,
        };
        let request = RunSpec {
            skill: Some(skill),
            ..RunSpec::default()
        };
        let execution = world.runs().run(caller.tenant(), request).await.unwrap();
        execution.outcome.unwrap().timings.warm
    };
    let until_warm = async |caller: &Caller| {
        for _ in 0..TRIES {
            if run_as(caller).await {
                return;
            }
        }
        panic!("no warm sandbox was created for {}", caller.tenant());
    };
    let run_code_as = async |caller: &Caller| {
        let request = RunSpec::of_code(Language::Python, "1".to_owned());
        let execution = world.runs().run(caller.tenant(), request).await.unwrap();
        execution.outcome.unwrap().timings.warm
    };
    let mut code_is_warm = false;
    for _ in 0..TRIES {
        code_is_warm = code_is_warm || run_code_as(&world.admin).await;
    }
    assert!(code_is_warm, "no warm sandbox was created for code");
    assert!(
        !run_code_as(&other).await,
        "a warm start revealed that another tenant ran code"
    );
    let content = || archive(Language::Python, "", "print()");
    publish(&world, content()).await;
    world
        .skills()
        .publish(other.tenant(), content(), None)
        .await
        .unwrap();
    assert!(!run_as(&world.admin).await);
    until_warm(&world.admin).await;
    // The first tenant's warm sandboxes remain: it gets one again afterwards.
    assert!(
        !run_as(&other).await,
        "a warm start revealed what another tenant ran"
    );
    until_warm(&world.admin).await;
    until_warm(&other).await;
}

/// Nothing that one run leaves is there for the next: no file, process, variable, module or random number.
#[tokio::test]
async fn warm_runs_see_nothing_of_earlier_runs() {
    const PROGRAM: &str = r#"
import json, os, random, subprocess, sys
seen = {
    "left": [path for path in ("/tmp/x", "/workspace/x", "/sandbox/x", "/dev/shm/x", "/root/x") if os.path.exists(path)],
    "module": hasattr(json, "left"), "processes": sorted(name for name in os.listdir("/proc") if name.isdigit()),
    "random": [random.random(), os.urandom(8).hex(), hash("x"), id(json)],
}
for path in ("/tmp/x", "/workspace/x", "/sandbox/x", "/dev/shm/x", "/root/x"):
    open(path, "w").write("left")
json.left = True
subprocess.Popen(["sleep", "60"])
json.dump(seen, open(os.environ["SANDBOX_OUTPUT"], "w"))
"#;
    let Some(world) = world().await else { return };
    let mut randoms = std::collections::HashSet::new();
    let mut warm = 0;
    publish(&world, archive(Language::Python, "", PROGRAM)).await;
    for _ in 0..TRIES {
        let outcome = run(&world, RunSpec::default()).await;
        assert_eq!(outcome.status, Status::Success, "{}", stderr(&outcome));
        let seen = output(&outcome);
        assert_eq!(seen["left"], serde_json::json!([]));
        assert_eq!(seen["module"], false);
        // PID 1 and itself.
        assert_eq!(seen["processes"].as_array().unwrap().len(), 2);
        assert!(randoms.insert(seen["random"].to_string()), "{}", seen["random"]);
        warm += usize::from(outcome.timings.warm);
        if warm >= 3 {
            return;
        }
    }
    panic!("no sandbox was made in advance");
}

/// The same where nothing was started.
#[tokio::test]
async fn warm_bash_runs_see_nothing_of_earlier_runs() {
    const PROGRAM: &str = r#"
ls -A /tmp /workspace /dev/shm /root | grep -x x
ls /sandbox | grep -x x
processes=(/proc/[0-9]*); echo ${#processes[@]}
touch {/tmp,/workspace,/sandbox,/dev/shm,/root}/x
sleep 60 &
"#;
    let Some(world) = world().await else { return };
    publish(&world, archive(Language::Bash, "", PROGRAM)).await;
    let mut warm = 0;
    for _ in 0..TRIES {
        let outcome = run(&world, RunSpec::default()).await;
        assert_eq!(outcome.status, Status::Success, "{}", stderr(&outcome));
        // PID 1 and itself.
        assert_eq!(stdout(&outcome), "2\n");
        warm += usize::from(outcome.timings.warm);
        if warm >= 3 {
            return;
        }
    }
    panic!("no sandbox was made in advance");
}

/// A module of the skill's own by the name of one that was imported ahead is the one that counts.
#[tokio::test]
async fn program_imports_own_modules_over_preloaded_ones() {
    let Some(world) = world().await else { return };
    let files = [
        (
            "SKILL.md",
            "---\nname: probe\ndescription: d\nlang: python\n---\n",
        ),
        ("scripts/json.py", "mine = True\n"),
        ("scripts/main.py", "import json\nprint(json.mine)\n"),
    ];
    publish(&world, zip_of(&files)).await;
    assert_prints_cold_and_warm(&world, "True\n").await;
}
