//! A server whose database fails: it acknowledges nothing any more and ends, so that a supervisor can act.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::server::{Server, eventually};

fn delete(database: &Path) {
    std::fs::remove_file(database).unwrap();
}

fn overwrite(database: &Path) {
    // The log may hold a copy of the first page.
    let log = database.with_extension("db-wal");
    let log = std::fs::File::options().write(true).open(log).unwrap();
    log.set_len(0).unwrap();
    std::fs::write(database, vec![b'x'; 1 << 16]).unwrap();
}

/// F-28: with an execution that still runs, so that the drain can be seen.
#[test]
fn server_without_its_database_file_drains_and_exits_with_74() {
    for (what, destroy) in [("deleted", delete as fn(&Path)), ("overwritten", overwrite)] {
        let folder = tempfile::tempdir().unwrap();
        let mut server = Server::start_with(
            &folder.path().join("data"),
            &[("SKILLBOX_SANDBOX_BACKEND", "native")],
        );
        let code = json!({ "language": "bash", "code": "sleep 5", "mode": "async" });
        let id = server.post_json("/v1/executions", &code).body["execution_id"].clone();
        let path = format!("/v1/executions/{}", id.as_str().unwrap());
        eventually("the execution runs", || {
            server.get(&path).unwrap().body["status"] == "running"
        });

        destroy(&server.data.join("skillbox.db"));
        eventually(what, || {
            server.get("/readyz").is_none_or(|answer| answer.status == 503)
        });
        assert_eq!(
            server.get("/healthz").map(|answer| answer.status),
            Some(503),
            "{what}"
        );
        assert_eq!(
            server.get("/v1/skills").map(|answer| answer.status),
            Some(503),
            "{what}"
        );
        let began = Instant::now();
        let status = loop {
            if let Some(status) = server.process.try_wait().unwrap() {
                break status;
            }
            assert!(
                began.elapsed() < Duration::from_secs(60),
                "{what}: {}",
                server.log()
            );
            std::thread::sleep(Duration::from_millis(50));
        };
        assert_eq!(status.code(), Some(74), "{what}: {}", server.log());
        assert!(
            server.log().contains("accepts nothing any more"),
            "{what}: {}",
            server.log()
        );
    }
}
