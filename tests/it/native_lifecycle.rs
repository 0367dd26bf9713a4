//! What is left of native sandboxes after a server ends, however it ends; and what an ordinary user gets.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::json;
use skillbox::skill::Language;

use crate::server::Server;
use crate::world::{Backend, World, archive, missing};

const NATIVE: &[(&str, &str)] = &[
    ("SKILLBOX_SANDBOX_BACKEND", "native"),
    ("SKILLBOX_CONCURRENCY", "4"),
];
/// Each hierarchy that a sandbox of root's may have a cgroup in.
const HIERARCHIES: [&str; 5] = ["", "memory", "pids", "cpu", "cpuacct"];

/// The folders of cgroups of these instances that still exist. One can only go when nothing lives in it.
fn homes(instances: &BTreeSet<String>) -> Vec<PathBuf> {
    let folder = |hierarchy: &str, instance: &String| {
        Path::new("/sys/fs/cgroup")
            .join(hierarchy)
            .join("skillbox")
            .join(format!("skillbox-{instance}"))
    };
    let all = instances
        .iter()
        .flat_map(|instance| HIERARCHIES.map(|hierarchy| folder(hierarchy, instance)));
    all.filter(|home| home.exists()).collect()
}

/// The processes that have registered in a data folder and not left it in order.
fn instances(data: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(data.join("instances")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names
        .filter_map(|name| name.strip_suffix(".lock").map(ToOwned::to_owned))
        .collect()
}

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(
            started.elapsed() < Duration::from_secs(30),
            "{what} did not come true"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// F-01, P15: killed at whatever moment, with clients at work, a server leaves nothing after its restart.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_killed_at_any_moment_leaves_nothing() {
    if World::on(Backend::Native).await.is_none() {
        return;
    }
    tokio::task::spawn_blocking(|| {
        const ROUNDS: u64 = 12;
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        for round in 0..ROUNDS {
            let server = Server::start_with(&data, NATIVE);
            server.publish(archive(
                Language::Bash,
                "version: 1.0.0\n",
                "(setsid sleep 60 &); sleep 0.05; sleep 60 & wait -n",
            ));
            let dead = instances(&data);
            let clients: Vec<_> = (0..4).map(|_| client(&server)).collect();
            std::thread::sleep(Duration::from_millis(7 + round * 23));
            server.kill_9();
            clients.into_iter().for_each(|client| client.join().unwrap());

            let server = Server::start_with(&data, NATIVE);
            eventually("no execution is running", || {
                let listed = server.get("/v1/executions?status=running").unwrap().body;
                listed["items"].as_array().is_some_and(Vec::is_empty)
            });
            eventually("no cgroup of the dead is left", || homes(&dead).is_empty());
            eventually("no trace in the data folder", || {
                instances(&data).is_disjoint(&dead)
                    && std::fs::read_dir(data.join("tmp")).unwrap().count() == 0
            });
            server.kill_9();
        }
    })
    .await
    .unwrap();
}

/// Asks for runs until the server has gone.
fn client(server: &Server) -> std::thread::JoinHandle<()> {
    let (url, key) = (format!("{}/v1/executions", server.url), server.key());
    std::thread::spawn(move || {
        let body = json!({ "skill": "probe", "timeout": 60 }).to_string();
        let asked = || {
            ureq::post(&url)
                .header("authorization", format!("Bearer {key}"))
                .header("content-type", "application/json")
                .send(body.as_bytes())
        };
        while asked().is_ok() {}
    })
}

/// A user of this host that the tests make nothing for but cgroups.
const ORDINARY: &str = "4711";

/// Runs some of these very tests as an ordinary user with a cgroup subtree of its own: every promise is kept.
#[tokio::test(flavor = "multi_thread")]
async fn an_ordinary_user_with_a_delegated_subtree_gets_every_promise() {
    if !rustix::process::geteuid().is_root() {
        return missing("linux", "only root can delegate to an ordinary user");
    }
    if World::on(Backend::Native).await.is_none() {
        return;
    }
    let said = tokio::task::spawn_blocking(|| {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::chown(folder.path(), ORDINARY.parse().ok(), ORDINARY.parse().ok()).unwrap();
        let command = Command::new("sh")
            .args(["-c", AS_ORDINARY, "sh", ORDINARY])
            .arg(std::env::current_exe().unwrap())
            .args(["--test-threads", "2", "native::"])
            .env("TMPDIR", folder.path())
            .env("HOME", folder.path())
            .env("SKILLBOX_TEST_REQUIRE", "linux")
            .env("RUST_BACKTRACE", "0")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&command.stdout).into_owned();
        let errors = String::from_utf8_lossy(&command.stderr).into_owned();
        assert!(command.status.success(), "{said}\n{errors}");
        said
    })
    .await
    .unwrap();
    assert!(
        said.contains("test result: ok.") && !said.contains("skipped:"),
        "{said}"
    );
}

/// Delegates as a service manager does, for both versions of cgroups; then becomes the user for good.
pub(crate) const AS_ORDINARY: &str = r#"
user=$1; shift
for hierarchy in /sys/fs/cgroup /sys/fs/cgroup/memory /sys/fs/cgroup/pids /sys/fs/cgroup/cpu /sys/fs/cgroup/cpuacct; do
    [ -e "$hierarchy/cgroup.procs" ] || continue
    own=$hierarchy/skillbox-test-$$
    mkdir "$own" || exit 1
    chown "$user" "$own" "$own/cgroup.procs"
    [ -e "$own/cgroup.subtree_control" ] && chown "$user" "$own/cgroup.subtree_control"
    echo $$ >"$own/cgroup.procs" || exit 1
done
setpriv --reuid "$user" --regid "$user" --clear-groups "$@"
code=$?
for hierarchy in /sys/fs/cgroup /sys/fs/cgroup/memory /sys/fs/cgroup/pids /sys/fs/cgroup/cpu /sys/fs/cgroup/cpuacct; do
    [ -e "$hierarchy/cgroup.procs" ] || continue
    echo $$ >"$hierarchy/cgroup.procs"
    find "$hierarchy/skillbox-test-$$" -depth -type d -exec rmdir {} + 2>/dev/null
done
exit $code
"#;

/// S-36: an ordinary user without cgroups gets no sandbox, unless the operator accepts less, which every result then says.
#[test]
fn without_cgroups_nothing_runs_unless_less_is_accepted() {
    if !rustix::process::geteuid().is_root() {
        return missing("linux", "only root can become an ordinary user without cgroups");
    }
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::chown(folder.path(), ORDINARY.parse().ok(), ORDINARY.parse().ok()).unwrap();
    let skill = folder.path().join("any");
    std::fs::create_dir_all(skill.join("scripts")).unwrap();
    std::fs::write(
        skill.join("SKILL.md"),
        "---\nname: any\ndescription: Any\nlang: bash\n---\n",
    )
    .unwrap();
    std::fs::write(skill.join("scripts/main.sh"), "ulimit -d >$SANDBOX_OUTPUT\n").unwrap();
    let run = |allowed: &str| {
        Command::new("setpriv")
            .args(["--reuid", ORDINARY, "--regid", ORDINARY, "--clear-groups"])
            .args([env!("CARGO_BIN_EXE_skillbox"), "run", "./any"])
            .current_dir(folder.path())
            .env("HOME", folder.path())
            .env("TMPDIR", folder.path())
            .env("SKILLBOX_SANDBOX_BACKEND", "native")
            .env("SKILLBOX_NATIVE_ALLOW_DEGRADED", allowed)
            .output()
            .unwrap()
    };
    let refused = run("false");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(69), "{said}");
    assert!(
        said.contains("cannot be bounded") && said.contains("allow_degraded"),
        "{said}"
    );
    let accepted = run("true");
    let said = String::from_utf8_lossy(&accepted.stdout).into_owned();
    assert!(accepted.status.success(), "{said}");
    assert!(said.contains("P6 and P7 are degraded"), "{said}");
    // In KiB: the bound of one process.
    assert!(said.contains("\"output\": 524288"), "{said}");
}
