//! What gVisor keeps of the promises, where the engine of this machine has it. `docs/GVISOR.md` says by what other means.

use serde_json::json;
use skillbox::engine::RunSpec;
use skillbox::execution::{Outcome, Status};
use skillbox::sandbox::{Sandbox, docker};
use skillbox::skill::Language;

use crate::outcomes::{output, stdout};
use crate::sandbox_contract::{PROVE_DOCKER, Proof, prover};
use crate::sandbox_oracles::connect;
use crate::world::{Backend, World, docker_settings, instance_in, missing};

/// The runtime's name, as `tests/with-engine.sh` registers it.
const RUNTIME: &str = "runsc";

/// Whether gVisor is asked for and this machine's engine has it; says so if not. Its `ptrace` takes many times as long as
/// the host's kernel, so it is run alone.
async fn has_gvisor() -> bool {
    let asked = std::env::var("SKILLBOX_TEST_REQUIRE").unwrap_or_default();
    if !asked.split(',').any(|name| name == RUNTIME) {
        println!("skipped: SKILLBOX_TEST_REQUIRE=runsc asks for it");
        return false;
    }
    if World::on(Backend::Docker).await.is_none() {
        return false;
    }
    let runtimes = connect().await.info().await.unwrap().runtimes.unwrap_or_default();
    if !runtimes.contains_key(RUNTIME) {
        missing(
            RUNTIME,
            "the engine has no runtime of this name; tests/with-engine.sh installs and registers it on Debian",
        );
        return false;
    }
    true
}

/// A world whose containers have a kernel of their own; `None` where the engine has no gVisor.
async fn world() -> Option<World> {
    if !has_gvisor().await {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let instance = instance_in(folder.path());
    let settings = docker::Settings {
        runtime: Some(RUNTIME.to_owned()),
        ..docker_settings()
    };
    let sandbox = Sandbox::docker(settings, instance.id());
    Some(World::over(folder, instance, sandbox).await)
}

fn code(outcome: &Outcome) -> (Status, Option<&str>) {
    (
        outcome.status,
        outcome.error.as_ref().map(|error| error.code.as_str()),
    )
}

/// Runs Bash with little time and memory.
async fn bash(world: &World, program: &str) -> Outcome {
    let archive = crate::world::archive(
        Language::Bash,
        "timeout: 3\nresources: { memory: 96MiB }\n",
        program,
    );
    let execution = world.run_archive(archive, RunSpec::default()).await.unwrap();
    execution.outcome.unwrap()
}

#[tokio::test]
async fn every_language_runs_on_gvisor() {
    let Some(world) = world().await else { return };
    let programs = [
        (
            Language::Python,
            "import os; print(os.uname().release); open(os.environ['SANDBOX_OUTPUT'], 'w').write('1')",
        ),
        (
            Language::Node,
            "require('fs').writeFileSync(process.env.SANDBOX_OUTPUT, '1'); console.log(require('os').release())",
        ),
        (
            Language::Bash,
            "echo 1 >$SANDBOX_OUTPUT; read -r _ _ release _ </proc/version; echo $release",
        ),
    ];
    for (language, program) in programs {
        let outcome = world
            .run(language, program, RunSpec::default())
            .await
            .outcome
            .unwrap();
        assert_eq!(outcome.status, Status::Success, "{language}: {:?}", outcome.error);
        assert_eq!(output(&outcome), json!(1));
        // Its own word of itself: this was no container of the host's kernel.
        assert!(stdout(&outcome).starts_with("4.4"), "{}", stdout(&outcome));
    }
}

/// P1, P2, P3, P4.
#[tokio::test]
async fn program_on_gvisor_is_unprivileged_without_network_on_read_only_root() {
    let Some(world) = world().await else { return };
    let outcome = world.python(CONFINED).await;
    let expected = json!({
        "identity": [[65534, 65534, 65534], [65534]],
        "capabilities": ["0000000000000000"],
        "read_only": {"/": true, "/skills/probe": true}, "root": "refused", "skill": "refused", "setuid": "EPERM", "mount": "refused",
        "interfaces": ["lo"], "outside": "refused",
        "families": {"packet": "refused", "vsock": "refused", "alg": "refused"},
    });
    assert_eq!(output(&outcome), expected);
}

const CONFINED: &str = r#"
import ctypes, errno, json, os, socket

def tried(act, exact=False):
    try:
        act()
        return "allowed"
    except OSError as error:
        return errno.errorcode.get(error.errno, "refused") if exact else "refused"

def mount():
    if ctypes.CDLL(None, use_errno=True).mount(b"none", b"/tmp", b"tmpfs", 0, None) != 0:
        raise OSError(ctypes.get_errno(), "mount")

status = dict(line.split(":", 1) for line in open("/proc/self/status") if ":" in line)
result = {
    "identity": [list(os.getresuid()), os.getgroups()],
    "capabilities": sorted({status[name].strip() for name in ("CapInh", "CapPrm", "CapEff", "CapBnd")}),
    "read_only": {
        place: options.split(",")[0] == "ro"
        for _, place, _, options, *_ in (line.split() for line in open("/proc/mounts"))
        if place in ("/", "/skills/probe")
    },
    "root": tried(lambda: open("/etc/new", "w")),
    "skill": tried(lambda: open("/skills/probe/SKILL.md", "a")),
    "setuid": tried(lambda: os.setuid(0), exact=True),
    "mount": tried(mount),
    "interfaces": [name for _, name in socket.if_nameindex()],
    "outside": tried(lambda: socket.create_connection(("192.0.2.1", 80), 1)),
    "families": {
        "packet": tried(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW)),
        "vsock": tried(lambda: socket.socket(40, socket.SOCK_STREAM)),
        "alg": tried(lambda: socket.socket(38, socket.SOCK_SEQPACKET)),
    },
}
json.dump(result, open(os.environ["SANDBOX_OUTPUT"], "w"))
"#;

/// P8: the guest's own deadline holds, and killed processes are removed with the sandbox.
#[tokio::test]
async fn deadline_holds_on_gvisor() {
    let Some(world) = world().await else { return };
    let outcome = bash(&world, "trap '' TERM; (sleep 60 &); sleep 60").await;
    assert_eq!(code(&outcome), (Status::Timeout, Some("timeout")));
    assert!(outcome.timings.run_ms < 5000.0, "{:?}", outcome.timings);
}

/// P6: memory ends the sandbox as a whole, and the engine says why.
#[tokio::test]
async fn memory_above_limit_is_oom_on_gvisor() {
    let Some(world) = world().await else { return };
    let outcome = bash(&world, "a=x; while :; do a=$a$a; done").await;
    assert_eq!(code(&outcome), (Status::Oom, Some("oom")));
}

/// P5: a fork bomb ends by the deadline or with its sandbox, and the next execution notices nothing.
#[tokio::test]
async fn fork_bomb_ends_on_gvisor() {
    let Some(world) = world().await else { return };
    let outcome = bash(&world, "bomb() { while :; do bomb & done; }; bomb").await;
    assert_ne!(outcome.status, Status::Success);
    assert!(outcome.timings.run_ms < 5000.0, "{:?}", outcome.timings);
    let next = world
        .run(Language::Bash, "echo 1 >$SANDBOX_OUTPUT", RunSpec::default())
        .await;
    assert_eq!(next.outcome.unwrap().status, Status::Success);
}

/// Every probe of `skillbox prove`: no breach, and a weaker promise exactly where the documentation says so.
#[tokio::test]
async fn prove_on_gvisor_degrades_only_documented_promises() {
    if !has_gvisor().await {
        return;
    }
    let shell = prover().with_engine().with("SKILLBOX_DOCKER_RUNTIME", RUNTIME);
    let said = shell.run(&PROVE_DOCKER);
    Proof::of(said).assert_kept_but(&documented_as_weaker());
}

/// The promises of the lines of `docs/GVISOR.md` that say so.
fn documented_as_weaker() -> Vec<&'static str> {
    let lines = include_str!("../../docs/GVISOR.md").lines();
    let weaker = lines.filter_map(|line| line.strip_prefix("| ")?.split_once(" | **weaker.**"));
    weaker.map(|(promise, _)| promise).collect()
}
