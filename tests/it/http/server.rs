//! State of the server, as an administrator and as a tenant see it.

use serde_json::{Value, json};
use skillbox::auth::Scope;

use super::client::{Call, TestServer};

async fn shown(server: &TestServer, key: &str) -> Value {
    let reply = server.send(Call::get("/v1/server").key(key)).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.json()
}

#[tokio::test]
async fn shows_backend_promises_and_limits() {
    let server = TestServer::open().await;
    let info = shown(&server, &server.admin).await;
    assert_eq!(info["version"], env!("CARGO_PKG_VERSION"));
    let backend = json!({"chosen": "scripted", "reason": "test", "others": []});
    assert_eq!(info["backend"], backend);
    assert_eq!(info["degraded"], json!([]));
    let promises = info["promises"].as_array().unwrap();
    assert_eq!(promises.len(), 16);
    assert_eq!(promises[0]["promise"], "P1");
    assert_eq!(promises[0]["title"], "no network");
    for promise in promises {
        assert!(promise["says"].as_str().unwrap().ends_with('.'), "{promise}");
        assert!(!promise["mechanism"].as_str().unwrap().is_empty(), "{promise}");
    }
    assert_eq!(info["limits"]["timeout_max_ms"], 600_000);
    let started_at: jiff::Timestamp = info["started_at"].as_str().unwrap().parse().unwrap();
    assert!(started_at <= jiff::Timestamp::now());
}

/// T-02: a tenant sees its own numbers only.
#[tokio::test]
async fn counts_all_tenants_for_the_operator_only() {
    let server = TestServer::open().await;
    server.run(json!({"code": "x", "language": "bash"})).await;
    let keys = [
        (server.key("default", &[Scope::Run]).await, 1),
        (server.key("other", &[Scope::Admin]).await, 0),
        (server.key("other", &[Scope::Run]).await, 0),
    ];
    for (key, misses) in &keys {
        let info = shown(&server, key).await;
        assert_eq!(info["all_tenants"], false);
        let warm = json!({"waiting": null, "hits_1h": 0, "misses_1h": misses});
        assert_eq!(info["warm"], warm);
        assert_eq!(info["queue"], json!({"waiting": 0, "oldest_ms": null}));
        assert_eq!(info["slots"]["running"], 0);
    }
    let code = json!({"code": "x", "language": "bash"});
    let run = Call::post("/v1/executions").json(&code).key(&keys[2].0);
    assert_eq!(server.send(run).await.status, 200);
    let info = shown(&server, &server.admin).await;
    assert_eq!(info["all_tenants"], true);
    assert_eq!(info["warm"], json!({"waiting": 0, "hits_1h": 0, "misses_1h": 2}));
}
