//! One tenant sees nothing of another.

use axum::body::Body;
use axum::http::HeaderName;
use serde_json::{Value, json};
use skillbox::auth::Scope;
use skillbox::limits;

use super::client::{Call, Reply, TestServer};

const NEVER: &str = "019a0000-0000-7000-8000-000000000000";

const NEVER_BLOB: &str = "sha256:0000000000000000000000000000000000000000000000000000000000000000";

/// What names something of a tenant; `ID`, `HOOK`, `KEY`, `SESSION`, `SKILL` and `VERSION` stand for it.
const OWNED: [&str; 26] = [
    "GET /v1/executions/ID",
    "GET /v1/executions/ID/events",
    "GET /v1/executions/ID/logs",
    "GET /v1/executions/ID/logs?follow=true",
    "GET /v1/executions/ID/deliveries",
    "GET /v1/executions/ID/request",
    "GET /v1/executions/ID/results/0/html",
    "POST /v1/executions/ID/rerun",
    "POST /v1/webhooks/deliveries/HOOK/redeliver",
    "GET /v1/executions/ID/files",
    "GET /v1/executions/ID/files/report.txt",
    "POST /v1/executions/ID/cancel",
    "GET /v1/skills/SKILL",
    "GET /v1/skills/SKILL/VERSION",
    "GET /v1/skills/SKILL/VERSION/archive",
    "GET /v1/skills/SKILL/VERSION/files",
    "GET /v1/skills/SKILL/VERSION/files/SKILL.md",
    "GET /v1/skills/SKILL/VERSION/lint",
    "GET /v1/skills/SKILL/diff?from=latest&to=latest",
    "DELETE /v1/skills/SKILL/VERSION",
    "DELETE /v1/keys/KEY",
    "POST /v1/keys/KEY/rotate",
    "DELETE /v1/secrets/SECRET",
    "DELETE /v1/sessions/SESSION",
    "GET /v1/blobs/BLOB",
    "DELETE /v1/blobs/BLOB",
];

/// T-02, T-03: what belongs to another tenant answers like what never was, in status, headers and body.
#[tokio::test]
async fn data_of_other_tenant_is_not_found() {
    let server = TestServer::open().await;
    server.publish(&server.admin).await;
    let files = json!({"report.txt": "aGVsbG8="});
    let execution = server
        .run(json!({"skill": "probe", "files": files, "callback_url": "https://hooks.example/"}))
        .await;
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let (id, version) = (text(&execution["execution_id"]), text(&execution["version"]));
    let stranger = server.key("other", &[Scope::Admin]).await;
    let keys = server.ask(Call::get("/v1/keys")).await.json();
    let key = text(&keys["items"][0]["key_id"]);
    let webhooks = server.ask(Call::get("/v1/webhooks/deliveries")).await.json();
    let hook = text(&webhooks["items"][0]["delivery_id"]);
    let kept = server.ask(Call::post("/v1/blobs").body("mine")).await.json();
    let blob = text(&kept["blob_id"]);
    let signed_in = Call::post("/v1/session").json(&json!({"key": server.admin}));
    assert_eq!(server.send(signed_in).await.status, 201);
    let sessions = server.ask(Call::get("/v1/sessions")).await.json();
    let session = text(&sessions["items"][0]["session_id"]);
    let put = Call::new(axum::http::Method::PUT, "/v1/secrets/TOKEN");
    assert_eq!(server.ask(put.json(&json!({"value": "x"}))).await.status, 201);

    for route in OWNED {
        let (method, path) = route.split_once(' ').unwrap();
        let path = path.replace("VERSION", &version);
        let theirs = path
            .replace("ID", &id)
            .replace("HOOK", &hook)
            .replace("KEY", &key)
            .replace("SESSION", &session)
            .replace("SECRET", "TOKEN")
            .replace("BLOB", &blob)
            .replace("SKILL", "probe");
        let nobodys = path
            .replace("ID", NEVER)
            .replace("HOOK", NEVER)
            .replace("KEY", NEVER)
            .replace("SESSION", NEVER)
            .replace("SECRET", "never")
            .replace("BLOB", NEVER_BLOB)
            .replace("SKILL", "never");
        let ask = |path: &str| server.send(Call::new(method.parse().unwrap(), path).key(&stranger));
        let (theirs, nobodys) = (ask(&theirs).await, ask(&nobodys).await);
        assert_eq!(theirs.refusal(), (404, "not_found".to_owned()), "{route}");
        let masked = |reply: &Reply| {
            let mut problem = reply.json();
            problem["request_id"] = Value::Null;
            let text = problem.to_string();
            text.replace(&id, NEVER)
                .replace(&hook, NEVER)
                .replace(&key, NEVER)
                .replace(&session, NEVER)
                .replace("TOKEN", "never")
                .replace(&blob, NEVER_BLOB)
                .replace("probe", "never")
        };
        assert_eq!(masked(&theirs), masked(&nobodys), "{route}");
        let names = |reply: &Reply| reply.headers.keys().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(names(&theirs), names(&nobodys), "{route}");
    }
    for list in [
        "/v1/executions",
        "/v1/skills",
        "/v1/sessions",
        "/v1/webhooks/deliveries",
    ] {
        let listed = server.send(Call::get(list).key(&stranger)).await.json();
        assert_eq!(listed["items"], json!([]), "{list}");
    }
    let reply = server.ask(Call::get(&format!("/v1/executions/{id}"))).await;
    assert_eq!(reply.status, 200, "its owner still sees it");
}

/// T-15: a tenant that uses its whole share with endless uploads does not block others.
#[tokio::test]
async fn tenant_at_limit_does_not_block_others() {
    let server = TestServer::open().await;
    let stranger = server.key("other", &[Scope::Skills]).await;
    let endless = async || loop {
        let pieces = futures::stream::pending::<Result<Vec<u8>, std::io::Error>>();
        let upload = Call::upload(Vec::new()).body(Body::from_stream(pieces));
        // Refused when the one below is in between: it tries again.
        assert_eq!(server.ask(upload).await.refusal().0, 503);
        // A refusal waits for nothing, and the one below runs on this thread, too.
        tokio::task::yield_now().await;
    };
    let stuck = futures::future::join_all((0..limits::UPLOADS_MAX / 4 * 3).map(|_| endless()));
    let refused = async {
        loop {
            let reply = server.publish(&server.admin).await;
            if !reply.status.is_success() {
                break reply;
            }
        }
    };
    let seen = async {
        let refused = refused.await;
        (refused, server.publish(&stranger).await)
    };
    let (refused, theirs) = tokio::select! {
        seen = seen => seen,
        () = async { drop(stuck.await) } => panic!("they never end"),
    };
    assert_eq!(refused.refusal(), (503, "busy".to_owned()));
    assert_eq!(theirs.status, 201, "{}", theirs.text());
}

/// T-05: neither a member nor a header makes anybody another tenant.
#[tokio::test]
async fn request_cannot_choose_tenant() {
    let server = TestServer::open().await;
    server.publish(&server.admin).await;
    for member in [
        "tenant",
        "tenant_id",
        "status",
        "role",
        "owner",
        "created_at",
        "execution_id",
        "image",
        "user",
        "mounts",
        "privileged",
    ] {
        let body = json!({"skill": "probe", member: "x"});
        let reply = server.ask(Call::post("/v1/executions").json(&body)).await;
        assert_eq!(reply.refusal(), (400, "invalid".to_owned()), "{member}");
        assert!(
            reply.json()["detail"]
                .as_str()
                .unwrap()
                .contains("expected one of `skill`"),
            "{}",
            reply.text()
        );
    }
    let mut call = Call::get("/v1/skills").key(&server.key("other", &[Scope::Run]).await);
    for name in ["x-tenant-id", "x-tenant", "x-forwarded-user"] {
        call = call.header(name.parse().unwrap(), "default");
    }
    assert_eq!(server.send(call).await.json()["items"], json!([]));
}

/// T-05: the header only compares, on every route with a key, and before anything happens.
#[tokio::test]
async fn expected_tenant_rejects_key_of_another_tenant() {
    let server = TestServer::open().await;
    server.publish(&server.admin).await;
    let other = server.key("other", &[Scope::Admin]).await;
    let expecting = |key: &str, tenants: &[&str]| {
        let call = Call::get("/v1/skills").key(key);
        let name = HeaderName::from_static("x-skillbox-tenant");
        tenants
            .iter()
            .fold(call, |call, tenant| call.header(name.clone(), tenant))
    };
    for (key, tenants, status, skills) in [
        (&server.admin, &["default"][..], 200, 1),
        (&server.admin, &["default", "default"], 200, 1),
        (&other, &["other"], 200, 0),
        (&server.admin, &["other"], 403, 0),
        (&other, &["default"], 403, 0),
        (&other, &["other", "default"], 403, 0),
        (&other, &[""], 403, 0),
        (&other, &["OTHER"], 403, 0),
    ] {
        let reply = server.send(expecting(key, tenants)).await;
        assert_eq!(reply.status, status, "{tenants:?}");
        if status == 200 {
            let items = reply.json()["items"].as_array().unwrap().len();
            assert_eq!(items, skills, "{tenants:?}");
        } else {
            assert_eq!(reply.code(), "forbidden");
        }
    }
    let name = HeaderName::from_static("x-skillbox-tenant");
    let run = Call::post("/v1/executions").json(&json!({"skill": "probe"}));
    let reply = server.ask(run.header(name.clone(), "other")).await;
    assert_eq!(reply.refusal(), (403, "forbidden".to_owned()));
    let list = server.ask(Call::get("/v1/executions")).await.json();
    assert_eq!(list["items"], json!([]));
    // Without a key there is nothing to compare, and a wrong key stays unauthenticated.
    let open = Call::get("/healthz").header(name.clone(), "other");
    assert_eq!(server.send(open).await.status, 200);
    let wrong = Call::get("/v1/skills").key("skb_wrong").header(name, "other");
    assert_eq!(server.send(wrong).await.status, 401);
}

/// T-04, T-05: an administrator of another tenant makes keys for that tenant alone.
#[tokio::test]
async fn only_default_tenant_administrator_can_name_other_tenant() {
    let server = TestServer::open().await;
    let stranger = server.key("other", &[Scope::Admin]).await;
    let cases = [
        (&stranger, "default", 403),
        (&stranger, "other", 201),
        (&server.admin, "third", 201),
    ];
    for (key, tenant, status) in cases {
        let body = json!({"name": "x", "scopes": ["run"], "tenant": tenant});
        let reply = server.send(Call::post("/v1/keys").json(&body).key(key)).await;
        assert_eq!(reply.status, status, "{tenant}: {}", reply.text());
    }
}
