//! Running skills through the server, and looking at what became of it.

use axum::http::{HeaderName, header};
use serde_json::{Value, json};
use skillbox::engine::RetentionPolicy;
use skillbox::http::Settings;
use skillbox::sandbox::{Sandbox, docker};

use super::client::{Call, TestServer};
use crate::world::{docker_settings, instance_in};

#[tokio::test]
async fn run_returns_whole_envelope() {
    let server = TestServer::open().await;
    server.publish(&server.admin).await;
    let envelope = server
        .run(json!({"skill": "probe", "version": "latest", "input": {"x": 1}, "timeout": 1.5, "files": {"a/b.txt": "aGVsbG8"}}))
        .await;
    assert_eq!(envelope["status"], "success");
    assert_eq!(envelope["skill"], "probe");
    assert_eq!(envelope["output"], json!({"x": 1}));
    assert_eq!(envelope["exit_code"], 0);
    assert_eq!(envelope["error"], Value::Null);
    assert_eq!(
        envelope["logs"],
        json!({"stdout": "out \u{fffd}\n", "stderr": "err\n", "truncated": true, "lines": [], "lines_truncated": false})
    );
    assert_eq!(envelope["files_list"], json!(["a/b.txt"]));
    assert_eq!(envelope["files"][0]["size"], 5);
    assert_eq!(envelope["files"][0]["media_type"], "text/plain");
    let base = format!(
        "http://localhost:8080/v1/executions/{}/files",
        envelope["execution_id"].as_str().unwrap()
    );
    assert!(
        envelope["files_url"]
            .as_str()
            .unwrap()
            .starts_with(&format!("{base}?"))
    );
    assert!(
        envelope["files"][0]["url"]
            .as_str()
            .unwrap()
            .starts_with(&format!("{base}/a/b.txt?"))
    );

    let path = format!("/v1/executions/{}", envelope["execution_id"].as_str().unwrap());
    let shown = server.ask(Call::get(&path)).await.json();
    let without_links = |mut envelope: Value| {
        envelope["files_url"] = Value::Null;
        envelope["files"][0]["url"] = Value::Null;
        envelope
    };
    assert_eq!(without_links(shown), without_links(envelope));
}

/// T-21.
#[tokio::test]
async fn unavailable_sandbox_names_no_path_of_the_host() {
    let folder = tempfile::tempdir().unwrap();
    let settings = docker::Settings {
        host: Some(format!("unix://{}/docker.sock", folder.path().display())),
        ..docker_settings()
    };
    let sandbox = Sandbox::docker(settings, instance_in(folder.path()).id());
    let server = TestServer::open_on(sandbox, &Settings::default(), RetentionPolicy::default()).await;
    let refused = server
        .ask(Call::post("/v1/executions").json(&json!({"code": "1"})))
        .await;
    assert_eq!(refused.status, 503, "{}", refused.text());
    let problem = refused.json();
    assert_eq!(problem["code"], "sandbox_unavailable");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("no container engine responds"), "{detail}");
    assert!(
        !detail.contains("docker.sock") && !detail.contains('/'),
        "{detail}"
    );
}

#[tokio::test]
async fn failing_skill_is_not_an_api_error() {
    let server = TestServer::open().await;
    server.publish(&server.admin).await;
    let envelope = server.run(json!({"skill": "probe", "args": ["exit=3"]})).await;
    assert_eq!(envelope["status"], "failed");
    assert_eq!(envelope["exit_code"], 3);
    assert_eq!(envelope["error"]["code"], "exit_code");
}

#[tokio::test]
async fn rejects_invalid_executions_before_recording() {
    let server = TestServer::open().await;
    server.publish(&server.admin).await;
    let cases = [
        (json!({"skill": "never"}), 404),
        (json!({"skill": "probe", "version": "9.9.9"}), 404),
        (json!({"skill": "probe", "timeout": 0}), 400),
        (json!({"skill": "probe", "timeout": -1}), 400),
        (json!({"skill": "probe", "timeout": "10"}), 400),
        (json!({"skill": "probe", "files": {"../x": ""}}), 400),
        (json!({"skill": "probe", "files": {"x": "no base64!"}}), 400),
        (json!({"skill": "probe", "files": []}), 400),
        (json!({"skill": "probe", "args": "x"}), 400),
    ];
    for (body, status) in cases {
        let reply = server.ask(Call::post("/v1/executions").json(&body)).await;
        assert_eq!(reply.status, status, "{body}: {}", reply.text());
        reply.code();
    }
    let listed = server.ask(Call::get("/v1/executions")).await.json();
    assert_eq!(listed["items"], json!([]));
}

#[tokio::test]
async fn list_items_have_no_output() {
    let server = TestServer::open().await;
    server.publish(&server.admin).await;
    server.run(json!({"skill": "probe", "input": "private"})).await;
    let reply = server.ask(Call::get("/v1/executions")).await;
    assert!(!reply.text().contains("private"));
    let row = &reply.json()["items"][0];
    assert_eq!(row["status"], "success");
    assert!(row["duration_ms"].is_u64());
}

#[tokio::test]
async fn returns_logs_as_bytes_or_json() {
    let server = TestServer::open().await;
    server.publish(&server.admin).await;
    let envelope = server.run(json!({"skill": "probe"})).await;
    let path = format!(
        "/v1/executions/{}/logs",
        envelope["execution_id"].as_str().unwrap()
    );
    let cases: [(&str, &[u8]); 4] = [
        ("", b"out \xff\nerr\n"),
        ("?stream=both", b"out \xff\nerr\n"),
        ("?stream=stdout", b"out \xff\n"),
        ("?stream=stderr", b"err\n"),
    ];
    for (query, expected) in cases {
        let reply = server.ask(Call::get(&format!("{path}{query}"))).await;
        assert_eq!(reply.body, expected, "{query}");
        assert!(reply.header(header::CONTENT_TYPE).starts_with("text/plain"));
        assert_eq!(
            reply.header(HeaderName::from_static("x-skillbox-truncated")),
            "true"
        );
    }
    let call = Call::get(&format!("{path}?stream=stderr")).header(header::ACCEPT, "application/json");
    assert_eq!(
        server.ask(call).await.json(),
        json!({
            "stdout": null, "stderr": "err\n", "stdout_total": 100, "stderr_total": 4, "truncated": true,
            "lines": [], "lines_truncated": false,
        })
    );
    let wrong = server.ask(Call::get(&format!("{path}?stream=stdin"))).await;
    assert_eq!(wrong.refusal(), (400, "invalid".to_owned()));
}

#[tokio::test]
async fn cancelling_ended_execution_has_no_effect() {
    let server = TestServer::open().await;
    server.publish(&server.admin).await;
    let envelope = server.run(json!({"skill": "probe"})).await;
    let path = format!(
        "/v1/executions/{}/cancel",
        envelope["execution_id"].as_str().unwrap()
    );
    for _ in 0..2 {
        let reply = server.ask(Call::post(&path)).await;
        assert_eq!(
            (reply.status.as_u16(), &reply.json()["status"]),
            (200, &json!("success"))
        );
    }
}
