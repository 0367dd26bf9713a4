//! The audit trail: which acts it records, for whom, and that no request changes it.

use axum::http::{HeaderName, Method};
use serde_json::{Value, json};
use skillbox::auth::{AuditAction, Scope};

use super::browser::{Browser, link, sign_in, text};
use super::client::{Call, TestServer};
use crate::server::Server;

pub(crate) async fn entries(server: &TestServer) -> Vec<Value> {
    let (mut found, mut path) = (Vec::new(), "/v1/audit?limit=2".to_owned());
    loop {
        let page = server.ask(Call::get(&path)).await.json();
        found.extend(page["items"].as_array().unwrap().clone());
        match page["next_page_token"].as_str() {
            Some(token) => path = format!("/v1/audit?limit=2&page_token={token}"),
            None => return found,
        }
    }
}

/// Action and target of the newest entry.
async fn newest(server: &TestServer) -> (String, String) {
    let page = server.ask(Call::get("/v1/audit?limit=1")).await.json();
    let entry = &page["items"][0];
    (text(&entry["action"]), text(&entry["target"]))
}

/// Does each act that is recorded, and checks its entry. The acts in their order.
async fn do_everything(server: &TestServer) -> Vec<String> {
    let mut done = Vec::new();
    let mut check = async |action: &str, target: &str| {
        assert_eq!(newest(server).await, (action.to_owned(), target.to_owned()));
        done.push(action.to_owned());
    };
    let body = json!({"name": "ci", "scopes": ["run"]});
    let key = text(&server.ask(Call::post("/v1/keys").json(&body)).await.json()["key_id"]);
    check("key.created", &key).await;
    let rotated = server.ask(Call::post(&format!("/v1/keys/{key}/rotate"))).await;
    check("key.rotated", &key).await;
    let key = text(&rotated.json()["key_id"]);
    server.ask(Call::delete(&format!("/v1/keys/{key}"))).await;
    check("key.revoked", &key).await;

    let secret = Call::new(Method::PUT, "/v1/secrets/TOKEN").json(&json!({"value": "hunter2"}));
    server.ask(secret).await;
    check("secret.set", "TOKEN").await;
    server.ask(Call::delete("/v1/secrets/TOKEN")).await;
    check("secret.deleted", "TOKEN").await;

    let skill = server.publish(&server.admin).await.json();
    let skill = format!("probe@{}", text(&skill["version"]));
    check("skill.published", &skill).await;
    let path = format!("/v1/skills/{}", skill.replace('@', "/"));
    let packages = Call::new(Method::PUT, &format!("{path}/requirements")).json(&json!({"requirements": []}));
    server.ask(packages).await;
    check("skill.requirements_set", &skill).await;
    server
        .run(json!({"skill": "probe", "callback_url": "https://hooks.example/"}))
        .await;
    server.ask(Call::delete(&path)).await;
    check("skill.deleted", &skill).await;

    let webhooks = server.ask(Call::get("/v1/webhooks/deliveries")).await.json();
    let delivery = text(&webhooks["items"][0]["delivery_id"]);
    server
        .ask(Call::post(&format!(
            "/v1/webhooks/deliveries/{delivery}/redeliver"
        )))
        .await;
    check("webhook.redelivered", &delivery).await;
    server.ask(Call::post("/v1/webhooks/secret/rotate")).await;
    check("webhook.secret_rotated", "default").await;

    let own = server.ask(Call::get("/v1/session")).await.json();
    let token = link(server).await;
    check("session.link_created", &text(&own["key"]["id"])).await;
    let browser = Browser::of(&sign_in(server, json!({"token": token})).await);
    let own = server.send(browser.call(Method::GET, "/v1/session")).await.json();
    check("session.opened", &text(&own["session_id"])).await;
    server.send(browser.call(Method::DELETE, "/v1/session")).await;
    check("session.ended", &text(&own["session_id"])).await;
    done
}

#[tokio::test]
async fn records_each_act_with_its_target() {
    let server = TestServer::open().await;
    let done = do_everything(&server).await;
    for action in AuditAction::ALL {
        let is_done = done.iter().any(|name| name == action.as_str());
        assert_eq!(is_done, *action != AuditAction::ProveStarted, "{action:?}");
    }
    let listed = entries(&server).await;
    let actions: Vec<_> = listed.iter().rev().map(|entry| text(&entry["action"])).collect();
    assert_eq!(actions, done, "complete, newest first, and reading adds nothing");
    let all = json!(listed).to_string();
    assert!(!all.contains("hunter2") && !all.contains("skb_"), "{all}");
}

#[tokio::test]
async fn entry_names_key_session_and_request() {
    let server = TestServer::open().await;
    let browser = Browser::sign_in(&server, &server.admin).await;
    let own = server.send(browser.call(Method::GET, "/v1/session")).await.json();
    let secret = browser
        .call(Method::PUT, "/v1/secrets/TOKEN")
        .header(HeaderName::from_static("x-request-id"), "r-1")
        .json(&json!({"value": "x"}));
    assert_eq!(server.send(secret).await.status, 201);
    let entry = entries(&server).await[0].clone();
    assert_eq!(
        entry["actor"],
        json!({"key_id": own["key"]["id"], "key_name": "first key", "session": own["session_id"]})
    );
    assert_eq!(
        (&entry["request_id"], &entry["target"]),
        (&json!("r-1"), &json!("TOKEN"))
    );
    let at: jiff::Timestamp = text(&entry["at"]).parse().unwrap();
    assert!(jiff::Timestamp::now().duration_since(at).as_secs() < 60);
}

/// The address is that of the connection, whatever a client claims.
#[tokio::test]
async fn entry_has_address_of_connection() {
    let server = TestServer::open().await;
    let shutdown = tokio_util::sync::CancellationToken::new();
    let address = server.listen(shutdown.clone()).await;
    let key = server.admin.clone();
    let created = tokio::task::spawn_blocking(move || {
        ureq::post(format!("http://{address}/v1/session/links"))
            .header("authorization", format!("Bearer {key}"))
            .header("x-forwarded-for", "192.0.2.1")
            .send_empty()
    });
    assert_eq!(created.await.unwrap().unwrap().status(), 201);
    shutdown.cancel();
    assert_eq!(entries(&server).await[0]["from"], "127.0.0.1");
}

/// What was refused was not done.
#[tokio::test]
async fn rejected_acts_are_not_recorded() {
    let server = TestServer::open().await;
    let runner = server.key("default", &[Scope::Run]).await;
    let created = json!({"name": "x", "scopes": ["run"]});
    assert_eq!(
        server
            .send(Call::post("/v1/keys").json(&created).key(&runner))
            .await
            .status,
        403
    );
    assert_eq!(server.ask(Call::delete("/v1/secrets/NONE")).await.status, 404);
    assert_eq!(sign_in(&server, json!({"key": "skb_guess"})).await.status, 401);
    assert_eq!(entries(&server).await, [json!(null); 0]);
}

/// T-02, T-04: a tenant's administrator reads the tenant's own trail, and no request changes it.
#[tokio::test]
async fn trail_is_of_one_tenant_and_append_only() {
    let server = TestServer::open().await;
    link(&server).await;
    let stranger = server.key("other", &[Scope::Admin]).await;
    let theirs = server.send(Call::get("/v1/audit").key(&stranger)).await.json();
    assert_eq!(theirs["items"], json!([]));
    for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
        let reply = server.ask(Call::new(method, "/v1/audit")).await;
        assert_eq!(reply.refusal(), (405, "method_not_allowed".to_owned()));
    }
    let database = rusqlite::Connection::open(server.folder.path().join("skillbox.db")).unwrap();
    let changed = database.execute("update audit set key_name = 'someone else'", []);
    assert!(changed.unwrap_err().to_string().contains("append-only"));
    assert_eq!(entries(&server).await.len(), 1);
}

/// The act is done by then: the log is the trail.
#[test]
fn entry_that_cannot_be_written_is_logged_as_error() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("data"));
    let database = rusqlite::Connection::open(folder.path().join("data/skillbox.db")).unwrap();
    database.execute_batch("drop table audit").unwrap();
    let created = server.post_json("/v1/keys", &json!({"name": "ci", "scopes": ["run"]}));
    assert_eq!(created.status, 201);
    let log = server.log();
    let line = log
        .lines()
        .find(|line| line.contains("Audit entry not recorded: key.created"));
    let line = line.unwrap_or_else(|| panic!("{log}"));
    assert!(
        line.contains("ERROR") && line.contains(created.body["key_id"].as_str().unwrap()),
        "{line}"
    );
}
