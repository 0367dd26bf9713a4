//! Webhooks over HTTP: requested, listed, and signed with a secret that only administrators can read.

use serde_json::{Value, json};
use skillbox::auth::Scope;

use super::client::{Call, TestServer};

#[tokio::test]
async fn requests_and_inspects_webhook() {
    let server = TestServer::open().await;
    server.publish(&server.admin).await;
    let silent = server.run(json!({"skill": "probe"})).await;
    let told = server
        .run(json!({"skill": "probe", "callback_url": "https://Hooks.Example:443/a?b"}))
        .await;
    let of = |execution: &Value| {
        let id = execution["execution_id"].as_str().unwrap();
        format!("/v1/executions/{id}/deliveries")
    };
    assert_eq!(
        server.ask(Call::get(&of(&silent))).await.json()["items"],
        json!([])
    );
    let found = server.ask(Call::get(&of(&told))).await.json();
    let delivery = &found["items"][0];
    assert_eq!(delivery["url"], "https://hooks.example/a?b");
    assert_eq!(delivery["execution_id"], told["execution_id"]);
    assert_eq!(
        (&delivery["status"], &delivery["attempts"]),
        (&json!("pending"), &json!(0))
    );
    assert_eq!(delivery["next_try_at"], told["finished_at"]);
    let all = server
        .ask(Call::get("/v1/webhooks/deliveries?limit=5"))
        .await
        .json();
    assert_eq!(all["items"], json!([delivery]));
    let id = delivery["delivery_id"].as_str().unwrap();
    let again = server
        .ask(Call::post(&format!("/v1/webhooks/deliveries/{id}/redeliver")))
        .await;
    assert_eq!(
        (again.status.as_u16(), &again.json()["status"]),
        (202, &json!("pending"))
    );
}

///
#[tokio::test]
async fn rejects_forbidden_webhook_url_by_name() {
    let server = TestServer::open().await;
    server.publish(&server.admin).await;
    for url in [
        json!("https://10.0.0.1/"),
        json!("x"),
        json!(""),
        json!(7),
        json!(["https://a.example"]),
    ] {
        let body = json!({"skill": "probe", "callback_url": url});
        let refused = server.ask(Call::post("/v1/executions").json(&body)).await;
        assert_eq!(refused.refusal(), (400, "invalid".to_owned()), "{url}");
        let detail = refused.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.starts_with("callback_url: "), "{detail}");
    }
    assert_eq!(
        server.ask(Call::get("/v1/executions")).await.json()["items"],
        json!([])
    );
}

#[tokio::test]
async fn each_tenant_has_own_signing_secret() {
    let server = TestServer::open().await;
    let stranger = server.key("other", &[Scope::Admin]).await;
    let secret = async |call: Call| {
        server.send(call).await.json()["secret"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let show = || Call::get("/v1/webhooks/secret");
    let mine = secret(show().key(&server.admin)).await;
    assert!(mine.starts_with("whsec_"), "{mine}");
    assert_eq!(secret(show().key(&server.admin)).await, mine);
    let theirs = secret(show().key(&stranger)).await;
    assert_ne!(theirs, mine);
    let rotated = server.ask(Call::post("/v1/webhooks/secret/rotate")).await.json();
    assert_ne!(rotated["secret"], mine.as_str());
    assert!(rotated["previous_until"].is_string(), "{rotated}");
    assert_eq!(secret(show().key(&stranger)).await, theirs);
}
