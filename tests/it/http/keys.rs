//! API keys through the server.

use serde_json::{Value, json};

use super::client::{Call, TestServer};

#[tokio::test]
async fn creates_shows_once_uses_rotates_and_revokes_key() {
    let server = TestServer::open().await;
    let body = json!({"name": "ci", "scopes": ["run", "skills", "run"], "expires_at": "2099-01-01T00:00:00.123456789Z"});
    let made = server.ask(Call::post("/v1/keys").json(&body)).await;
    assert_eq!(made.status, 201, "{}", made.text());
    let made = made.json();
    let secret = made["api_key"].as_str().unwrap().to_owned();
    let id = made["key_id"].as_str().unwrap().to_owned();
    assert_eq!(made["scopes"], json!(["run", "skills"]));
    assert_eq!(made["tenant"], "default");
    assert_eq!(
        server.send(Call::get("/v1/skills").key(&secret)).await.status,
        200
    );

    let listed = server.ask(Call::get("/v1/keys")).await;
    assert!(!listed.text().contains(&secret));
    for member in ["key_id", "created_at", "expires_at"] {
        assert_eq!(listed.json()["items"][0][member], made[member], "{member}");
    }

    let rotated = server.ask(Call::post(&format!("/v1/keys/{id}/rotate"))).await;
    assert_eq!(rotated.status, 201);
    let fresh = rotated.json();
    assert_eq!(
        server.send(Call::get("/v1/skills").key(&secret)).await.status,
        401,
        "the old one ended"
    );
    let secret = fresh["api_key"].as_str().unwrap();
    assert_eq!(server.send(Call::get("/v1/skills").key(secret)).await.status, 200);
    assert_eq!(fresh["expires_at"], made["expires_at"]);

    let path = format!("/v1/keys/{}", fresh["key_id"].as_str().unwrap());
    let revoked = server.ask(Call::delete(&path)).await;
    assert_eq!(revoked.status, 200);
    assert_ne!(revoked.json()["revoked_at"], Value::Null);
    assert_eq!(server.send(Call::get("/v1/skills").key(secret)).await.status, 401);
}

#[tokio::test]
async fn rejects_invalid_key_requests() {
    let server = TestServer::open().await;
    for body in [
        json!({"name": "", "scopes": ["run"]}),
        json!({"name": "x".repeat(1000), "scopes": ["run"]}),
        json!({"name": "a\nb", "scopes": ["run"]}),
        json!({"name": "x", "scopes": []}),
        json!({"name": "x", "scopes": ["root"]}),
        json!({"name": "x"}),
        json!({"name": "x", "scopes": ["run"], "expires_at": "2000-01-01T00:00:00Z"}),
        json!({"name": "x", "scopes": ["run"], "expires_at": "tomorrow"}),
        json!({"name": "x", "scopes": ["run"], "tenant": "../x"}),
        json!({"name": "x", "scopes": ["run"], "hash": "sha256:00"}),
    ] {
        let reply = server.ask(Call::post("/v1/keys").json(&body)).await;
        assert_eq!(reply.refusal(), (400, "invalid".to_owned()), "{body}");
    }
}

/// T-08: nothing that is stored is the secret.
#[tokio::test]
async fn stores_no_plaintext_key_on_disk() {
    let server = TestServer::open().await;
    let body = json!({"name": "ci", "scopes": ["run"]});
    let made = server.ask(Call::post("/v1/keys").json(&body)).await.json();
    let secret = made["api_key"].as_str().unwrap();
    let mut pending = vec![server.folder.path().to_owned()];
    let mut files = 0;
    while let Some(path) = pending.pop() {
        if path.is_dir() {
            pending.extend(
                std::fs::read_dir(path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        } else {
            files += 1;
            let bytes = std::fs::read(&path).unwrap();
            for secret in [secret, &server.admin] {
                // Past the public hint, so that a part would be found too.
                let needle = &secret.as_bytes()[8..];
                assert!(
                    !bytes.windows(needle.len()).any(|window| window == needle),
                    "{}",
                    path.display()
                );
            }
        }
    }
    assert!(files > 0);
}
