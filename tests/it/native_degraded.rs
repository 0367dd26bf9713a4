//! Native sandboxes of an ordinary user who has no cgroups: refused, or watched if the operator accepts that; and hosts
//! that forbid user namespaces.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use skillbox::skill::Language;

use crate::ordinary::{AS_ORDINARY, assert_native_tests_pass, home_of_ordinary};
use crate::terminal::TERMINAL;
use crate::world::missing;

const ACCEPTED: &[(&str, &str)] = &[
    ("SKILLBOX_SANDBOX_BACKEND", "native"),
    ("SKILLBOX_NATIVE_ALLOW_DEGRADED", "true"),
];

/// A folder of the ordinary user, or `None` (with a printed reason) where no process can become that user.
fn home() -> Option<tempfile::TempDir> {
    if !rustix::process::geteuid().is_root() {
        missing("linux", "only root can become an ordinary user without cgroups");
        return None;
    }
    Some(home_of_ordinary())
}

/// Runs the binary below `prefix`, at home.
fn skillbox(prefix: &[&str], home: &Path, arguments: &[&str], env: &[(&str, &str)]) -> Output {
    command(prefix, home, arguments)
        .envs(env.iter().copied())
        .output()
        .unwrap()
}

fn command(prefix: &[&str], home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(prefix[0]);
    command
        .args(&prefix[1..])
        .arg(env!("CARGO_BIN_EXE_skillbox"))
        .args(arguments)
        .current_dir(home)
        .env("HOME", home)
        .env("TMPDIR", home);
    command
}

/// Writes a skill named `any`; `front_matter` adds lines.
fn write_skill(home: &Path, language: Language, front_matter: &str, program: &str) {
    let skill = home.join("any");
    let entrypoint = skill.join(language.default_entrypoint());
    std::fs::create_dir_all(entrypoint.parent().unwrap()).unwrap();
    let text = format!("---\nname: any\ndescription: Any\nlang: {language}\n{front_matter}---\n");
    std::fs::write(skill.join("SKILL.md"), text).unwrap();
    std::fs::write(entrypoint, program).unwrap();
}

/// Runs a Python program in the degraded form and returns its envelope.
fn python(front_matter: &str, program: &str) -> Option<Value> {
    let home = home()?;
    write_skill(home.path(), Language::Python, front_matter, program);
    let ran = skillbox(AS_ORDINARY, home.path(), &["run", "./any"], ACCEPTED);
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    let envelope: Value = serde_json::from_slice(&ran.stdout).unwrap_or_else(|_| panic!("{said}"));
    assert_eq!(
        envelope["degraded"],
        serde_json::json!(["P6", "P7"]),
        "{envelope:#}"
    );
    assert!(!said.contains("degraded"), "{said}");
    Some(envelope)
}

/// S-36: an ordinary user without cgroups gets no sandbox, unless the operator accepts less, which every result then says.
#[test]
fn without_cgroups_runs_only_if_degraded_is_allowed() {
    let Some(home) = home() else { return };
    write_skill(home.path(), Language::Bash, "", "ulimit -d >$SANDBOX_OUTPUT\n");
    let refusing = [
        ("SKILLBOX_SANDBOX_BACKEND", "native"),
        ("SKILLBOX_NATIVE_ALLOW_DEGRADED", "false"),
    ];
    let refused = skillbox(AS_ORDINARY, home.path(), &["run", "./any"], &refusing);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(69), "{said}");
    assert!(said.contains("cannot be limited"), "{said}");
    let last = said.lines().last().unwrap();
    let advice = "best-effort memory and CPU limits: SKILLBOX_SANDBOX_BACKEND=native SKILLBOX_NATIVE_ALLOW_DEGRADED=true";
    assert!(last.contains(advice), "{said}");
    // There is no user bus here.
    assert!(!said.contains("systemd-run"), "{said}");
    let accepted = skillbox(AS_ORDINARY, home.path(), &["run", "./any"], ACCEPTED);
    let said = String::from_utf8_lossy(&accepted.stdout).into_owned();
    assert!(accepted.status.success(), "{said}");
    assert!(said.contains("P6 and P7 are degraded"), "{said}");
    // In KiB: the bound of one process, and the stacks of as many threads as there may be.
    assert!(said.contains("\"output\": 1572864"), "{said}");
}

/// Runs the tests of every backend as an ordinary user without cgroups: all promises but what P6 loses are kept.
#[test]
fn without_cgroups_other_promises_are_kept() {
    if home().is_some() {
        assert_native_tests_pass(AS_ORDINARY, &[(crate::world::DEGRADED, "yes")]);
    }
}

/// S-36: what an operator accepts for the native sandbox by name is not accepted for `auto`.
#[test]
fn auto_never_selects_degraded_sandbox() {
    let Some(home) = home() else { return };
    write_skill(home.path(), Language::Bash, "", "true\n");
    let env = [
        ("SKILLBOX_SANDBOX_BACKEND", "auto"),
        ("SKILLBOX_DOCKER_HOST", "unix:///nobody/listens"),
        ("SKILLBOX_NATIVE_ALLOW_DEGRADED", "true"),
    ];
    let refused = skillbox(AS_ORDINARY, home.path(), &["run", "./any"], &env);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(69), "{said}");
    let lines: Vec<_> = said.lines().collect();
    assert_eq!(lines[0], "error: no sandbox can be created on this host");
    assert!(
        lines[1].starts_with("  docker: no container engine responds"),
        "{said}"
    );
    assert!(lines[2].starts_with("  native: memory and CPU"), "{said}");
    assert!(
        lines[3].contains("no effect with the backend `auto`; set SKILLBOX_SANDBOX_BACKEND=native, too"),
        "{said}"
    );
}

/// An ordinary user without an engine, cgroups and a user bus finds a command that works.
#[test]
fn ordinary_user_without_any_backend_is_told_a_command_that_works() {
    let Some(home) = home() else { return };
    std::fs::write(home.path().join("six.py"), "6 * 7\n").unwrap();
    let none = [
        ("SKILLBOX_SANDBOX_BACKEND", "auto"),
        ("SKILLBOX_DOCKER_HOST", "unix:///nobody/listens"),
    ];
    let refused = skillbox(AS_ORDINARY, home.path(), &["run", "six.py"], &none);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(69), "{said}");
    let advice = said.lines().last().unwrap();
    let (_, variables) = advice.split_once(": ").unwrap();
    let variables: Vec<_> = variables
        .split(' ')
        .filter_map(|word| word.split_once('='))
        .collect();
    let ran = skillbox(AS_ORDINARY, home.path(), &["run", "six.py"], &variables);
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let doctor = skillbox(AS_ORDINARY, home.path(), &["doctor"], &none);
    let found = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(found.contains("SKILLBOX_NATIVE_ALLOW_DEGRADED=true"), "{found}");
    assert!(
        !found.contains("docker run") && !found.contains("systemd-run"),
        "{found}"
    );
}

/// What is degraded is in the last line, in words, and memory that ran out is no truncated output.
#[test]
fn summary_of_degraded_run_says_so_in_words() {
    let Some(home) = home() else { return };
    std::fs::write(home.path().join("six.py"), "6 * 7\n").unwrap();
    std::fs::write(home.path().join("large.py"), "x = bytearray(10 ** 9)\n").unwrap();
    let on_terminal = |file: &str| {
        let mut command = command(AS_ORDINARY, home.path(), &["run", file]);
        command.envs(ACCEPTED.iter().copied()).stdin(Stdio::null());
        TERMINAL.run_command(command)
    };
    let succeeded = on_terminal("six.py");
    assert!(
        succeeded
            .terminal
            .contains(" \u{b7} native (best-effort memory and CPU limits)"),
        "{succeeded:?}"
    );
    let failed = on_terminal("large.py");
    assert_eq!(failed.code, 5, "{failed:?}");
    assert!(failed.terminal.contains("out of memory in "), "{failed:?}");
    assert!(!failed.terminal.contains("truncated"), "{failed:?}");
}

/// The table for the operator names what is degraded and by what it is held.
#[test]
fn doctor_shows_degraded_promises() {
    let Some(home) = home() else { return };
    let told = skillbox(AS_ORDINARY, home.path(), &["doctor"], ACCEPTED);
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&told.stdout),
        String::from_utf8_lossy(&told.stderr)
    );
    for promise in ["P6 memory is bounded", "P7 CPU is bounded"] {
        let line = said.lines().find(|line| line.contains(&format!("{promise}:")));
        assert!(line.is_some_and(|line| line.contains("watchdog")), "{said}");
    }
    assert_eq!(said.matches("(degraded)").count(), 2, "{said}");
}

/// The server warns at start, on the terminal and in its log.
#[test]
fn degraded_server_warns_at_start() {
    let Some(home) = home() else { return };
    let log = home.path().join("log");
    let file = std::fs::File::create(&log).unwrap();
    let mut server = Command::new(AS_ORDINARY[0])
        .args(&AS_ORDINARY[1..])
        .args([env!("CARGO_BIN_EXE_skillbox"), "serve"])
        .env("SKILLBOX_DATA_DIR", home.path().join("data"))
        .env("SKILLBOX_API_PORT", "0")
        .env("SKILLBOX_LOG", "skillbox=info")
        .env("HOME", home.path())
        .env("TMPDIR", home.path())
        .envs(ACCEPTED.iter().copied())
        .stdin(Stdio::null())
        .stdout(file.try_clone().unwrap())
        .stderr(file)
        .spawn()
        .unwrap();
    let said = || std::fs::read_to_string(&log).unwrap();
    let started = Instant::now();
    while !said().contains("native: ready") && started.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(20));
    }
    server.kill().unwrap();
    server.wait().unwrap();
    let said = said();
    assert!(said.contains("native: ready; DEGRADED: P6, P7"), "{said}");
    assert!(
        said.lines()
            .any(|line| line.contains("WARN") && line.contains("P6 and P7")),
        "{said}"
    );
}

/// R-03, P6: each process is far below the bound, all together are above.
#[test]
fn memory_of_many_processes_above_limit_is_oom() {
    let program = r"
import os, time
for _ in range(6):
    if os.fork() == 0:
        held = bytearray(40 << 20)
        held[::4096] = b'x' * len(held[::4096])
        break
time.sleep(20)
";
    let Some(envelope) = python("resources: {memory: 128Mi}\ntimeout: 15s\n", program) else {
        return;
    };
    assert_eq!(envelope["status"], "oom", "{envelope:#}");
    let usage = &envelope["usage"];
    assert!(
        usage["memory_peak_bytes"].as_u64().unwrap() > 128 << 20,
        "{usage}"
    );
    assert_eq!(usage["oom_kills"], 1, "{usage}");
    assert!(envelope["duration_ms"].as_u64().unwrap() < 15_000, "{envelope:#}");
}

/// P6: what is shared is counted once. Six children share what their parent holds, and none has any of its own.
#[test]
fn shared_memory_counts_once() {
    let program = r"
import os, time
held = bytearray(80 << 20)
held[::4096] = b'x' * len(held[::4096])
children = []
for _ in range(6):
    child = os.fork()
    if child == 0:
        time.sleep(1)
        os._exit(0)
    children.append(child)
for child in children:
    os.waitpid(child, 0)
";
    let Some(envelope) = python("resources: {memory: 192Mi}\n", program) else {
        return;
    };
    assert_eq!(envelope["status"], "success", "{envelope:#}");
}

/// R-04, P6: scratch is memory.
#[test]
fn scratch_counts_as_memory() {
    let program = r"
import os, time
for place in ['/workspace', '/sandbox', '/tmp', '/dev/shm']:
    with open(place + '/filler', 'wb', buffering=0) as file:
        try:
            while True:
                file.write(bytes(1 << 20))
        except OSError:
            pass
held = bytearray(48 << 20)
held[::4096] = b'x' * len(held[::4096])
time.sleep(20)
";
    let Some(envelope) = python("resources: {memory: 128Mi}\ntimeout: 15s\n", program) else {
        return;
    };
    assert_eq!(envelope["status"], "oom", "{envelope:#}");
}

/// P6: memory that no process has mapped and no mount shows cannot be had, as on a kernel without it.
#[test]
fn memory_outside_accounting_is_unavailable() {
    let program = r"
import ctypes, json, os
libc = ctypes.CDLL(None, use_errno=True)
def errno(call, *arguments):
    return ctypes.get_errno() if getattr(libc, call)(*arguments) == -1 else 0
found = {
    'memfd_create': errno('memfd_create', b'x', 0),
    'shmget': errno('shmget', 0, 1 << 20, 0o1600),
    'msgget': errno('msgget', 0, 0o1600),
    'semget': errno('semget', 0, 1, 0o1600),
}
json.dump(found, open(os.environ['SANDBOX_OUTPUT'], 'w'))
";
    let Some(envelope) = python("", program) else {
        return;
    };
    const ENOSYS: i32 = 38;
    for call in ["memfd_create", "shmget", "msgget", "semget"] {
        assert_eq!(envelope["output"][call], ENOSYS, "{envelope:#}");
    }
}

/// R-01, P5: processes are counted in the sandbox's own user namespace.
#[test]
fn stops_fork_bomb() {
    let program = r"
import errno, json, os, signal, time
born = 0
try:
    while born < 1000:
        if os.fork() == 0:
            time.sleep(20)
            os._exit(0)
        born += 1
except OSError as error:
    assert error.errno == errno.EAGAIN, error
json.dump(born, open(os.environ['SANDBOX_OUTPUT'], 'w'))
time.sleep(1)
";
    let Some(envelope) = python("", program) else {
        return;
    };
    assert_eq!(envelope["status"], "success", "{envelope:#}");
    // With PID 1 and the program itself.
    assert_eq!(envelope["output"], 126, "{envelope:#}");
    assert_eq!(envelope["usage"]["processes_peak"], 128, "{envelope:#}");
}

/// R-06, P7: a quarter of a core is a quarter of a core, as far as the watchdog is quick.
#[test]
fn pauses_spinning_processes_ahead_of_cpu_share() {
    let program = r"
import os, time
for _ in range(3):
    if os.fork() == 0:
        break
end = time.monotonic() + 3
while time.monotonic() < end:
    pass
";
    let Some(envelope) = python("resources: {cpu: 0.25}\n", program) else {
        return;
    };
    assert_eq!(envelope["status"], "success", "{envelope:#}");
    // Of 3 s on a machine of several cores it would be far more than 3,000.
    let used = envelope["usage"]["cpu_ms"].as_u64().unwrap();
    assert!((50..1800).contains(&used), "{used} ms");
}

/// An honest program does not notice: processes, threads, sleeps, a stop of its own.
#[test]
fn honest_program_runs_without_cgroups() {
    let program = r"
import json, multiprocessing, os, signal, subprocess, threading, time
def square(number):
    return number * number
threads = [threading.Thread(target=time.sleep, args=(0.1,)) for _ in range(20)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
with multiprocessing.get_context('fork').Pool(4) as pool:
    squares = pool.map(square, range(10))
child = subprocess.Popen(['sleep', '2'])
child.send_signal(signal.SIGSTOP)
time.sleep(3)
stopped = child.poll() is None
child.send_signal(signal.SIGCONT)
found = {'squares': squares, 'stopped': stopped, 'code': child.wait(), 'node': subprocess.run(['node', '-p', '6*7'], capture_output=True, text=True).stdout}
json.dump(found, open(os.environ['SANDBOX_OUTPUT'], 'w'))
";
    let Some(envelope) = python("", program) else {
        return;
    };
    assert_eq!(envelope["status"], "success", "{envelope:#}");
    let output = &envelope["output"];
    assert_eq!((&output["squares"][9], &output["code"]), (&81.into(), &0.into()));
    assert_eq!(
        (&output["stopped"], &output["node"]),
        (&true.into(), &"42\n".into())
    );
    let usage = &envelope["usage"];
    assert!(usage["memory_peak_bytes"].as_u64().unwrap() > 1 << 20, "{usage}");
    assert!(usage["processes_peak"].as_u64().unwrap() > 4, "{usage}");
}

/// A host that forbids user namespaces is named with its setting: here one whose own namespace allows none.
#[test]
fn error_names_setting_that_forbids_user_namespaces() {
    let Some(home) = home() else { return };
    write_skill(home.path(), Language::Bash, "", "true\n");
    let namespace = [
        "unshare",
        "--user",
        "--map-user=1000",
        "--map-group=1000",
        "--keep-caps",
        "sh",
        "-c",
        // Counts for this namespace alone.
        "echo 0 >/proc/sys/user/max_user_namespaces && exec \"$@\"",
        "sh",
    ];
    let inside = [AS_ORDINARY, &namespace].concat();
    let refused = skillbox(&inside, home.path(), &["run", "./any"], ACCEPTED);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(69), "{said}");
    assert!(
        said.contains("user.max_user_namespaces is 0") && said.contains("sysctl -w"),
        "{said}"
    );
}
