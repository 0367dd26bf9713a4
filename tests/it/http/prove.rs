//! Proofs on request: one at a time, by the real program, for the operator alone.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use skillbox::auth::Scope;

use super::client::{Call, TestServer, proofs_in};
use crate::world::{Backend, World};

const PATIENCE: Duration = Duration::from_secs(180);

/// A server that can prove, or `None` (and a word about it) where this machine has no native sandbox.
async fn server() -> Option<TestServer> {
    World::on(Backend::Native).await?;
    let server = TestServer::open().await;
    server.engine.proofs().enable(proofs_in(server.folder.path()));
    Some(server)
}

fn start(body: &Value) -> Call {
    Call::post("/v1/prove").json(body)
}

async fn shown(server: &TestServer) -> Value {
    let reply = server.ask(Call::get("/v1/prove")).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.json()
}

/// What is shown when no proof runs any more.
async fn ended(server: &TestServer) -> Value {
    let began = Instant::now();
    loop {
        let shown = shown(server).await;
        if shown["running"].is_null() {
            return shown;
        }
        assert!(began.elapsed() < PATIENCE, "{shown}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn proof_runs_once_at_a_time_and_its_report_stays() {
    let Some(server) = server().await else { return };
    let before = shown(&server).await;
    assert_eq!(
        before,
        json!({"total": null, "backends": [], "skipped": [], "started_at": null, "finished_at": null, "running": null, "failure": null})
    );
    let body = json!({"backend": "native", "only": ["P3"]});
    let started = server.ask(start(&body)).await;
    assert_eq!(started.status, 202, "{}", started.text());
    assert!(started.json()["running"]["started_at"].is_string());
    let second = server.ask(start(&body)).await;
    assert_eq!(second.refusal(), (409, "conflict".to_owned()));
    assert!(
        second.text().contains("wait until `running`"),
        "{}",
        second.text()
    );

    let done = ended(&server).await;
    assert_eq!(done["failure"], Value::Null, "{done}");
    let proof = &done["backends"][0];
    assert_eq!(proof["backend"], "native");
    assert!(proof["total"]["kept"].as_u64().unwrap() > 0, "{done}");
    assert_eq!(done["total"]["breach"], 0, "{done}");
    assert!(
        proof["findings"]
            .as_array()
            .unwrap()
            .iter()
            .all(|finding| finding["promise"] == "P3")
    );
    assert!(done["started_at"].as_str().unwrap() < done["finished_at"].as_str().unwrap());

    let trail = server.ask(Call::get("/v1/audit")).await.json();
    let entry = &trail["items"][0];
    assert_eq!(
        (&entry["action"], &entry["target"]),
        (&json!("prove.started"), &json!("native"))
    );

    // Another process with the same data folder, as after a restart.
    let next = TestServer::open().await;
    next.engine.proofs().enable(proofs_in(server.folder.path()));
    assert_eq!(shown(&next).await, done);
}

#[tokio::test(flavor = "multi_thread")]
async fn stopping_ends_the_proof_and_keeps_the_last_report() {
    let Some(server) = server().await else { return };
    let started = server.ask(start(&json!({"backend": "native"}))).await;
    assert_eq!(started.status, 202, "{}", started.text());
    let began = Instant::now();
    while shown(&server).await["running"]["done"] == 0 {
        assert!(began.elapsed() < PATIENCE);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let running = shown(&server).await["running"].clone();
    assert_eq!(running["backend"], "native");
    assert!(running["total"].as_u64().unwrap() > running["done"].as_u64().unwrap());
    server.engine.proofs().stop();
    let ended = ended(&server).await;
    assert_eq!(
        (&ended["failure"], &ended["total"]),
        (&json!("the server stopped"), &Value::Null)
    );
    let refused = server.ask(start(&json!({}))).await;
    assert_eq!(refused.refusal(), (503, "busy".to_owned()));
}

#[tokio::test]
async fn only_administrators_of_default_tenant_prove() {
    let server = TestServer::open().await;
    let stranger = server.key("other", &[Scope::Admin]).await;
    for call in [Call::get("/v1/prove"), start(&json!({}))] {
        let refused = server.send(call.key(&stranger)).await;
        assert_eq!(refused.refusal(), (403, "forbidden".to_owned()));
        assert!(refused.text().contains("tenant `default`"), "{}", refused.text());
    }
}

#[tokio::test]
async fn rejects_unknown_probes_and_processes_that_cannot_prove() {
    let server = TestServer::open().await;
    for (body, status, named) in [
        (json!({"only": ["P99"]}), 400, "only: unknown probe"),
        (json!({"only": ["--warm"]}), 400, "only: unknown probe"),
        (json!({"only": vec!["P1"; 65]}), 400, "only: 65 names"),
        (json!({"backend": "qemu"}), 400, "backend"),
        (json!({"shell": "x"}), 400, "shell"),
        (json!({}), 404, "skillbox prove"),
    ] {
        let refused = server.ask(start(&body)).await;
        assert_eq!(refused.status, status, "{body}: {}", refused.text());
        assert!(refused.text().contains(named), "{body}: {}", refused.text());
    }
}
