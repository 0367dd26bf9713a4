//! One tenant sees nothing of another.

use serde_json::{Value, json};
use skillbox::auth::Scope;

use super::client::{Call, Door};

/// T-02, T-03: what belongs to another tenant answers like what never was, in status, headers and body.
#[tokio::test]
async fn what_is_anothers_looks_like_what_never_was() {
    let door = Door::open().await;
    door.publish(&door.admin).await;
    let files = json!({"report.txt": "aGVsbG8="});
    let execution = door.run(json!({"skill": "probe", "files": files})).await;
    let id = execution["execution_id"].as_str().unwrap();
    let version = execution["version"].as_str().unwrap();
    let stranger = door.key("other", &[Scope::Admin]).await;
    let keys = door.ask(Call::get("/v1/keys")).await.json();
    let key = keys["items"][0]["key_id"].as_str().unwrap();

    let never = "019a0000-0000-7000-8000-000000000000";
    let pairs = [
        (
            "GET",
            format!("/v1/executions/{id}"),
            format!("/v1/executions/{never}"),
        ),
        (
            "GET",
            format!("/v1/executions/{id}/logs"),
            format!("/v1/executions/{never}/logs"),
        ),
        (
            "GET",
            format!("/v1/executions/{id}/files"),
            format!("/v1/executions/{never}/files"),
        ),
        (
            "GET",
            format!("/v1/executions/{id}/files/report.txt"),
            format!("/v1/executions/{never}/files/report.txt"),
        ),
        (
            "POST",
            format!("/v1/executions/{id}/cancel"),
            format!("/v1/executions/{never}/cancel"),
        ),
        (
            "GET",
            "/v1/skills/probe".to_owned(),
            "/v1/skills/never".to_owned(),
        ),
        (
            "GET",
            format!("/v1/skills/probe/{version}"),
            format!("/v1/skills/never/{version}"),
        ),
        (
            "GET",
            format!("/v1/skills/probe/{version}/archive"),
            format!("/v1/skills/never/{version}/archive"),
        ),
        (
            "DELETE",
            format!("/v1/skills/probe/{version}"),
            format!("/v1/skills/never/{version}"),
        ),
        ("DELETE", format!("/v1/keys/{key}"), format!("/v1/keys/{never}")),
        (
            "POST",
            format!("/v1/keys/{key}/rotate"),
            format!("/v1/keys/{never}/rotate"),
        ),
    ];
    for (method, theirs, nobodys) in pairs {
        let ask = |path: &str| door.send(Call::new(method.parse().unwrap(), path).key(&stranger));
        let (theirs_reply, nobodys_reply) = (ask(&theirs).await, ask(&nobodys).await);
        assert_eq!(theirs_reply.refusal(), (404, "not_found".to_owned()), "{theirs}");
        let masked = |mut problem: Value| {
            problem["request_id"] = Value::Null;
            problem
                .to_string()
                .replace(id, never)
                .replace(key, never)
                .replace("probe", "never")
        };
        assert_eq!(
            masked(theirs_reply.json()),
            masked(nobodys_reply.json()),
            "{theirs}"
        );
        let names =
            |headers: &axum::http::HeaderMap| headers.keys().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(
            names(&theirs_reply.headers),
            names(&nobodys_reply.headers),
            "{theirs}"
        );
    }
    for list in ["/v1/executions", "/v1/skills"] {
        let listed = door.send(Call::get(list).key(&stranger)).await.json();
        assert_eq!(listed["items"], json!([]), "{list}");
    }
    let reply = door.ask(Call::get(&format!("/v1/executions/{id}"))).await;
    assert_eq!(reply.status, 200, "its owner still sees it");
}

/// T-05: neither a member nor a header makes anybody another tenant.
#[tokio::test]
async fn a_tenant_cannot_be_chosen() {
    let door = Door::open().await;
    door.publish(&door.admin).await;
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
        "mode",
        "code",
    ] {
        let body = json!({"skill": "probe", member: "x"});
        let reply = door.ask(Call::post("/v1/executions").json(&body)).await;
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
    let mut call = Call::get("/v1/skills").key(&door.key("other", &[Scope::Run]).await);
    for name in ["x-tenant-id", "x-tenant", "x-forwarded-user", "x-skillbox-tenant"] {
        call = call.header(name.parse().unwrap(), "default");
    }
    assert_eq!(door.send(call).await.json()["items"], json!([]));
}

/// T-04, T-05: an administrator of another tenant makes keys for that tenant alone.
#[tokio::test]
async fn only_the_default_tenants_administrator_names_another_tenant() {
    let door = Door::open().await;
    let stranger = door.key("other", &[Scope::Admin]).await;
    let cases = [
        (&stranger, "default", 403),
        (&stranger, "other", 201),
        (&door.admin, "third", 201),
    ];
    for (key, tenant, status) in cases {
        let body = json!({"name": "x", "scopes": ["run"], "tenant": tenant});
        let reply = door.send(Call::post("/v1/keys").json(&body).key(key)).await;
        assert_eq!(reply.status, status, "{tenant}: {}", reply.text());
    }
}
