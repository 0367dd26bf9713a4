//! A server whose data lies on a small disk of its own, which executions and other programs fill.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::server::{Server, eventually};
use crate::world::missing;

const DISK: &str = "size=32m";

/// Leaves 12 MiB that no file system can compress.
const PROGRAM: &str = "head -c 12582912 /dev/urandom >/sandbox/out/files/large";

/// In a mount namespace of its own, where the data folder is a tmpfs; `None` where that is not possible.
fn server_on_small_disk(folder: &Path) -> Option<Server> {
    if !rustix::process::geteuid().is_root() {
        missing("linux", "only root can mount a small disk");
        return None;
    }
    let data = folder.join("data");
    std::fs::create_dir(&data).unwrap();
    let script = format!(
        "mount -t tmpfs -o {DISK},mode=0700 small '{}'; exec \"$@\"",
        data.display()
    );
    let program = [
        "unshare",
        "--mount",
        "--propagation",
        "private",
        "sh",
        "-ec",
        &script,
        "sh",
    ];
    let server = Server::start_by(&program, &data, &[("SKILLBOX_SANDBOX_BACKEND", "native")]);
    // The key is not where this process would look.
    std::fs::copy(disk(&server).join("admin.key"), data.join("admin.key")).unwrap();
    Some(server)
}

/// The small disk, as this process can reach it.
fn disk(server: &Server) -> PathBuf {
    let root = PathBuf::from(format!("/proc/{}/root", server.process.id()));
    root.join(server.data.strip_prefix("/").unwrap())
}

fn run(server: &Server, code: &str) -> Value {
    server
        .post_json("/v1/executions", &json!({ "language": "bash", "code": code }))
        .body
}

/// F-11, R-16.
#[test]
fn full_disk_fails_executions_and_lets_them_be_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let Some(server) = server_on_small_disk(folder.path()) else {
        return;
    };
    let without_files = run(&server, "echo hello");
    assert_eq!(without_files["status"], "success", "{without_files}");
    let reserve = disk(&server).join("skillbox.db-reserve");
    eventually("space is set aside", || reserve.exists());

    let large = run(&server, PROGRAM);
    assert_eq!(large["status"], "success", "{large}");
    let mut filler = File::create(disk(&server).join("filler")).unwrap();
    filler.write_all(&vec![1; 8 << 20]).unwrap();
    let refused = run(&server, PROGRAM);
    assert_eq!(
        (&refused["status"], &refused["error"]["code"]),
        (&json!("failed"), &json!("storage_full")),
        "{refused} {}",
        server.log()
    );
    let remedy = refused["error"]["message"].as_str().unwrap();
    assert!(remedy.contains("skillbox exec prune"), "{remedy}");

    // Not a byte is left but the reserve.
    while filler.write_all(&[1; 4096]).is_ok() {}
    let id = without_files["execution_id"].as_str().unwrap();
    assert_eq!(server.delete(&format!("/v1/executions/{id}")).status, 204);
    assert_eq!(server.get(&format!("/v1/executions/{id}")).unwrap().status, 404);
    let dry = json!({ "dry_run": true });
    let counted = server.post_json("/v1/executions/prune", &dry).body;
    assert_eq!(server.post_json("/v1/executions/prune", &json!({})).body, counted);
    assert!(counted["count"].as_u64().unwrap() >= 1, "{counted}");
    let rest = server.get("/v1/executions").unwrap().body;
    assert_eq!(rest["items"], json!([]), "{rest}");
    drop(filler);
    std::fs::remove_file(disk(&server).join("filler")).unwrap();
    assert_eq!(run(&server, "echo hello")["status"], "success");
}
