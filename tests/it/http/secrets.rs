//! Secrets through the server: in, never out.

use axum::http::Method;
use serde_json::json;
use skillbox::auth::Scope;
use skillbox::limits;

use super::client::{Call, Reply, TestServer};

fn put(name: &str) -> Call {
    Call::new(Method::PUT, &format!("/v1/secrets/{name}"))
}

fn names(reply: &Reply) -> Vec<String> {
    let page = reply.json();
    let items = page["items"].as_array().unwrap();
    items
        .iter()
        .map(|item| item["name"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn sets_replaces_lists_and_deletes_secret() {
    let server = TestServer::open().await;
    let body = json!({"value": "hunter2"});
    assert_eq!(server.ask(put("API_TOKEN").json(&body)).await.status, 201);
    assert_eq!(server.ask(put("API_TOKEN").json(&body)).await.status, 204);
    assert_eq!(server.ask(put("B").json(&body)).await.status, 201);
    let first = server.ask(Call::get("/v1/secrets?limit=1")).await;
    assert_eq!(names(&first), ["API_TOKEN"]);
    let token = first.json()["next_page_token"].as_str().unwrap().to_owned();
    let rest = server
        .ask(Call::get(&format!("/v1/secrets?page_token={token}")))
        .await;
    assert_eq!(names(&rest), ["B"]);
    let members: Vec<_> = first.json()["items"][0]
        .as_object()
        .unwrap()
        .keys()
        .cloned()
        .collect();
    assert_eq!(members, ["name", "created_at", "updated_at"]);
    for method in [Method::GET, Method::HEAD, Method::POST] {
        let reply = server
            .ask(Call::new(method.clone(), "/v1/secrets/API_TOKEN"))
            .await;
        assert_eq!(reply.status, 405, "{method}: there is no way to read one");
    }
    assert_eq!(server.ask(Call::delete("/v1/secrets/B")).await.status, 204);
    assert_eq!(
        server.ask(Call::delete("/v1/secrets/B")).await.refusal(),
        (404, "not_found".to_owned())
    );
}

/// Errors do not repeat the value.
#[tokio::test]
async fn does_not_echo_rejected_secret_value() {
    let server = TestServer::open().await;
    let long = "h".repeat(limits::SECRET_BYTES_MAX + 1);
    for body in [
        "\"hunter2\"".to_owned(),
        "[\"hunter2\"]".to_owned(),
        "{\"value\": [\"hunter2\"]}".to_owned(),
        "{\"value\": 4242}".to_owned(),
        "4242".to_owned(),
        "true".to_owned(),
        "{\"value\": \"hunter1\", \"value\": \"hunter2\"}".to_owned(),
        "{\"value\": \"hunter2\", \"value\": 4242}".to_owned(),
        "{\"hunter2\": 1}".to_owned(),
        "{\"value\": \"hunter2\", \"more\": 1}".to_owned(),
        "{\"value\": \"hunter2\\u0000\"}".to_owned(),
        "{\"value\": \"hunter2\"".to_owned(),
        "{\"value\": \"\"}".to_owned(),
        format!("{{\"value\": \"{long}\"}}"),
    ] {
        let reply = server.ask(put("API_TOKEN").raw_json(body)).await;
        assert_eq!(reply.refusal(), (400, "invalid".to_owned()), "{}", reply.text());
        assert!(
            !reply.text().contains("hunter2") && !reply.text().contains("4242"),
            "{}",
            reply.text()
        );
        assert!(reply.text().len() < 1000);
    }
    for name in ["PATH", "LD_PRELOAD", "a-b", "1A", "SANDBOX_INPUT"] {
        let reply = server.ask(put(name).json(&json!({"value": "x"}))).await;
        assert_eq!(reply.refusal(), (400, "invalid".to_owned()), "{name}");
    }
    assert!(names(&server.ask(Call::get("/v1/secrets")).await).is_empty());
}

/// S-31: the database holds it sealed, under a key that lies elsewhere.
#[tokio::test]
async fn stores_no_plaintext_secret() {
    let server = TestServer::open().await;
    let value = "correct-horse-battery-staple";
    server.ask(put("API_TOKEN").json(&json!({"value": value}))).await;
    server
        .ask(put("API_TOKEN").json(&json!({"value": value.repeat(2)})))
        .await;
    for entry in std::fs::read_dir(server.folder.path()).unwrap() {
        let path = entry.unwrap().path();
        if let Ok(bytes) = std::fs::read(&path) {
            for needle in [value.as_bytes(), &crate::world::MASTER_KEY] {
                assert!(
                    memchr::memmem::find(&bytes, needle).is_none(),
                    "{}",
                    path.display()
                );
            }
        }
    }
}

#[tokio::test]
async fn limits_number_of_secrets() {
    let server = TestServer::open().await;
    let stranger = server.key("other", &[Scope::Admin]).await;
    let body = json!({"value": "x"});
    for n in 0..limits::SECRETS_MAX {
        let reply = server
            .send(put(&format!("S{n}")).json(&body).key(&stranger))
            .await;
        assert_eq!(reply.status, 201);
    }
    let beyond = server.send(put("ONE_MORE").json(&body).key(&stranger)).await;
    assert_eq!(beyond.refusal(), (507, "storage_full".to_owned()));
    assert!(beyond.text().contains("delete one"));
    assert_eq!(
        server.send(put("S0").json(&body).key(&stranger)).await.status,
        204
    );
    assert_eq!(server.ask(put("ONE_MORE").json(&body)).await.status, 201);
}
