//! What a tenant uses.

use serde_json::{Value, json};
use skillbox::auth::Scope;
use skillbox::limits;

use super::client::{Call, TestServer};

async fn usage(server: &TestServer, key: &str) -> Value {
    let reply = server.send(Call::get("/v1/usage").key(key)).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.json()
}

#[tokio::test]
async fn counts_what_a_tenant_stores_and_runs() {
    let server = TestServer::open().await;
    let nothing = json!({
        "storage": {"used": 0, "limit": null},
        "blobs": {"used": 0, "limit": 64 << 20, "count": 0},
        "secrets": {"count": 0, "limit": limits::SECRETS_MAX},
        "packages": {"used": 0},
        "queue": {"waiting": 0, "limit": 64},
        "last_24h": {"executions": 0, "cpu_ms": 0},
    });
    assert_eq!(usage(&server, &server.admin).await, nothing);
    server.publish(&server.admin).await;
    for _ in 0..2 {
        server.run(json!({"skill": "probe", "input": {"n": 1}})).await;
    }
    let blob = Call::post("/v1/blobs").body("12345");
    assert_eq!(server.ask(blob).await.status, 201);
    let secret = Call::new(axum::http::Method::PUT, "/v1/secrets/TOKEN").json(&json!({"value": "x"}));
    assert_eq!(server.ask(secret).await.status, 201);
    let mut used = usage(&server, &server.admin).await;
    assert!(used["storage"]["used"].as_u64().unwrap() > 100, "{used}");
    used["storage"]["used"] = json!(0);
    let mut expected = nothing.clone();
    expected["blobs"]["used"] = json!(5);
    expected["blobs"]["count"] = json!(1);
    expected["secrets"]["count"] = json!(1);
    expected["last_24h"]["executions"] = json!(2);
    assert_eq!(used, expected);

    // T-02.
    let stranger = server.key("other", &[Scope::Admin]).await;
    assert_eq!(usage(&server, &stranger).await, nothing);
}
