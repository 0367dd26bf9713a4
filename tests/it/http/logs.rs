//! What the log says of requests, and what it never says.

use std::io::Write;
use std::sync::{Arc, Mutex};

use axum::http::HeaderName;
use serde_json::json;

use super::client::{Call, TestServer};

#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The reason for not being ready is logged once with its cause, not at each request.
#[tokio::test]
async fn logs_readiness_change_with_cause() {
    let memory = Memory::default();
    let writer = memory.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    let guard = tracing::subscriber::set_default(subscriber);
    let server = TestServer::open().await;
    std::fs::remove_dir_all(server.folder.path().join("blobs")).unwrap();
    for _ in 0..3 {
        assert_eq!(server.send(Call::get("/readyz")).await.status, 503);
    }
    drop(guard);

    let log = String::from_utf8(memory.0.lock().unwrap().clone()).unwrap();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("ready")).collect();
    assert_eq!(lines.len(), 1, "{log}");
    assert!(
        lines[0].contains("WARN") && lines[0].contains("Not ready: blob: "),
        "{log}"
    );
    assert!(lines[0].contains("cause="), "{log}");
}

/// A-23, T-08, T-16: the log contains no keys, inputs, outputs, link signatures or guessed keys.
#[tokio::test]
async fn log_names_requests_and_contains_no_secret() {
    let memory = Memory::default();
    let writer = memory.clone();
    let subscriber = tracing_subscriber::fmt()
        .json()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    let guard = tracing::subscriber::set_default(subscriber);

    let server = TestServer::open().await;
    server.publish(&server.admin).await;
    let request = json!({"skill": "probe", "input": "private-input", "args": ["private-arg"], "files": {"f.txt": "cHJpdmF0ZS1maWxl"}});
    let envelope = server.run(request).await;
    let link = envelope["files_url"].as_str().unwrap().to_owned();
    let target = link.replace("http://localhost:8080", "");
    assert_eq!(server.send(Call::get(&target)).await.status, 200);
    server
        .send(Call::get("/v1/skills").key("skb_private-guess"))
        .await;
    let call = Call::get("/v1/skills/never").header(HeaderName::from_static("x-request-id"), "trace-77");
    server.ask(call).await;
    let panic = json!({"skill": "probe", "args": ["panic"]});
    server.ask(Call::post("/v1/executions").json(&panic)).await;
    drop(guard);

    let log = String::from_utf8(memory.0.lock().unwrap().clone()).unwrap();
    let signature = link.rsplit('=').next().unwrap();
    for secret in [&server.admin[8..], "private", "cHJpdmF0ZS1maWxl", signature] {
        let line = log.lines().find(|line| line.contains(secret));
        assert_eq!(line, None, "{secret}");
    }
    let line = |needle: &str| log.lines().find(|line| line.contains(needle)).unwrap_or_default();
    assert!(line("trace-77").contains("\"code\":\"not_found\""), "{log}");
    assert!(line("trace-77").contains("\"tenant\":\"default\""), "{log}");
    for deed in ["Published probe", "Finished execution"] {
        assert!(line(deed).contains("\"request.id\":\""), "{deed}: {log}");
    }
    assert!(
        line("Could not answer POST /v1/executions").contains("\"level\":\"ERROR\""),
        "{log}"
    );
}
