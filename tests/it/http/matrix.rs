//! Who may call what: every route of the router against a checked-in table.

use axum::http::{HeaderName, Method, header};
use skillbox::auth::Scope;
use skillbox::http::{Access, matrix};

use super::client::{Call, TestServer};

/// What each kind of caller gets on each route: `-` refused as nobody (401), `x` refused for want of a scope (403), `o`
/// let in (whatever comes of it).
///
/// Columns: no key, malformed, revoked, expired, `run`, `skills`, `admin`.
pub(crate) const TABLE: &[(&str, &str)] = &[
    ("GET /", "ooooooo"),
    ("GET /healthz", "ooooooo"),
    ("POST /mcp", "----ooo"),
    ("GET /metrics", "----xxo"),
    ("GET /openapi.json", "ooooooo"),
    ("GET /proto/skillbox/v1/skillbox.proto", "ooooooo"),
    ("GET /readyz", "ooooooo"),
    ("GET /sdk", "ooooooo"),
    ("GET /sdk/{*path}", "ooooooo"),
    ("GET /v1/audit", "----xxo"),
    ("GET /v1/blobs", "----oxo"),
    ("POST /v1/blobs", "----oxo"),
    ("DELETE /v1/blobs/{id}", "----oxo"),
    ("GET /v1/blobs/{id}", "----oxo"),
    ("GET /v1/deps", "----ooo"),
    ("POST /v1/deps/prefetch", "----xoo"),
    ("DELETE /v1/deps/{key}", "----xoo"),
    ("GET /v1/events", "----oxo"),
    ("GET /v1/executions", "----oxo"),
    ("POST /v1/executions", "----oxo"),
    ("POST /v1/executions/prune", "----oxo"),
    ("DELETE /v1/executions/{id}", "----oxo"),
    ("GET /v1/executions/{id}", "----oxo"),
    ("POST /v1/executions/{id}/cancel", "----oxo"),
    ("GET /v1/executions/{id}/deliveries", "----oxo"),
    ("GET /v1/executions/{id}/events", "----oxo"),
    ("GET /v1/executions/{id}/files", "----oxo"),
    ("GET /v1/executions/{id}/files/{*path}", "----oxo"),
    ("GET /v1/executions/{id}/logs", "----oxo"),
    ("GET /v1/executions/{id}/request", "----oxo"),
    ("POST /v1/executions/{id}/rerun", "----oxo"),
    ("GET /v1/executions/{id}/results/{n}/{form}", "----oxo"),
    ("GET /v1/keys", "----xxo"),
    ("POST /v1/keys", "----xxo"),
    ("DELETE /v1/keys/{id}", "----xxo"),
    ("POST /v1/keys/{id}/rotate", "----xxo"),
    ("GET /v1/prove", "----xxo"),
    ("POST /v1/prove", "----xxo"),
    ("GET /v1/secrets", "----xxo"),
    ("DELETE /v1/secrets/{name}", "----xxo"),
    ("PUT /v1/secrets/{name}", "----xxo"),
    ("GET /v1/server", "----oxo"),
    ("DELETE /v1/session", "----ooo"),
    ("GET /v1/session", "----ooo"),
    ("POST /v1/session", "ooooooo"),
    ("POST /v1/session/links", "----ooo"),
    ("GET /v1/sessions", "----xxo"),
    ("DELETE /v1/sessions/{id}", "----xxo"),
    ("GET /v1/skills", "----ooo"),
    ("POST /v1/skills", "----xoo"),
    ("GET /v1/skills/lint", "----ooo"),
    ("POST /v1/skills/lint", "----xoo"),
    ("GET /v1/skills/{name}", "----ooo"),
    ("GET /v1/skills/{name}/diff", "----ooo"),
    ("DELETE /v1/skills/{name}/{version}", "----xoo"),
    ("GET /v1/skills/{name}/{version}", "----ooo"),
    ("GET /v1/skills/{name}/{version}/archive", "----ooo"),
    ("GET /v1/skills/{name}/{version}/files", "----ooo"),
    ("GET /v1/skills/{name}/{version}/files/{*path}", "----ooo"),
    ("GET /v1/skills/{name}/{version}/lint", "----ooo"),
    ("PUT /v1/skills/{name}/{version}/requirements", "----xoo"),
    ("GET /v1/stats", "----oxo"),
    ("GET /v1/tools", "----ooo"),
    ("GET /v1/tools/prompt", "----ooo"),
    ("GET /v1/usage", "----oxo"),
    ("GET /v1/webhooks/deliveries", "----oxo"),
    ("POST /v1/webhooks/deliveries/{id}/redeliver", "----oxo"),
    ("GET /v1/webhooks/secret", "----xxo"),
    ("POST /v1/webhooks/secret/rotate", "----xxo"),
];

/// T-01, T-04.
#[tokio::test]
async fn every_route_authorizes_exactly_the_listed_roles() {
    let routes: Vec<String> = matrix().lines().map(|(route, _)| route).collect();
    let listed: Vec<&str> = TABLE.iter().map(|(route, _)| *route).collect();
    assert_eq!(routes, listed, "a new route needs a line in the table");

    // One server would take only so many wrong keys in a minute.
    for routes in TABLE.chunks(12) {
        let server = TestServer::open().await;
        let keys = callers(&server).await;
        for (route, expected) in routes {
            let mut got = String::new();
            for key in &keys {
                got.push(gets(&server, route, key.as_deref()).await);
            }
            assert_eq!(got, *expected, "{route}");
        }
    }
}

/// The result for the owner of `key`, as in the table.
async fn gets(server: &TestServer, route: &str, key: Option<&str>) -> char {
    let call = key.map_or_else(|| call(route), |key| call(route).key(key));
    let reply = server.send(call).await;
    match reply.status.as_u16() {
        401 => {
            assert_eq!(reply.code(), "unauthenticated");
            assert_eq!(reply.header(header::WWW_AUTHENTICATE), "Bearer");
            '-'
        }
        403 => 'x',
        429 => panic!("{route}: too many wrong keys for one server"),
        _ => 'o',
    }
}

/// T-01: the same routes again by `HEAD`, which the handler for `GET` answers.
#[tokio::test]
async fn head_needs_same_scope_as_get() {
    let server = TestServer::open().await;
    for (route, access) in matrix().lines() {
        let Some(path) = route.strip_prefix("GET ") else {
            continue;
        };
        let path = concrete(path);
        let reply = server.send(Call::new(Method::HEAD, &path)).await;
        assert_eq!(reply.status == 401, access != Access::Open, "{route}");
        assert!(reply.body.is_empty(), "{route}");
    }
}

/// T-06: only one bearer header with a valid key identifies a caller.
#[tokio::test]
async fn only_api_key_identifies_caller() {
    let server = TestServer::open().await;
    let admin = server.admin.clone();
    let with = |name: HeaderName, values: &[&str]| {
        let call = Call::get("/v1/skills");
        values
            .iter()
            .fold(call, |call, value| call.header(name.clone(), value))
    };
    let bearer = format!("Bearer {admin}");
    let authorization = header::AUTHORIZATION;
    let calls = [
        with(authorization.clone(), &["Bearer "]),
        with(authorization.clone(), &["Bearer null"]),
        with(authorization.clone(), &["Bearer undefined"]),
        with(authorization.clone(), &["Bearer    "]),
        with(authorization.clone(), &[""]),
        with(authorization.clone(), &[&admin]),
        with(authorization.clone(), &[&format!("Basic {admin}")]),
        with(authorization.clone(), &[&format!("{bearer} x")]),
        with(
            authorization.clone(),
            &[&format!("Bearer {}", admin.to_uppercase())],
        ),
        with(authorization.clone(), &[&bearer, &bearer]),
        with(authorization, &[&bearer, "Bearer null"]),
        with(
            header::COOKIE,
            &[&format!("api_key={admin}; Authorization={bearer}")],
        ),
        with(HeaderName::from_static("x-api-key"), &[&admin]),
        with(HeaderName::from_static("x-forwarded-user"), &["admin"]),
        with(HeaderName::from_static("x-tenant-id"), &["default"]),
        with(HeaderName::from_static("proxy-authorization"), &[&bearer]),
        Call::get(&format!("/v1/skills?api_key={admin}&access_token={admin}")),
        Call::get(&format!("/v1/skills?authorization=Bearer%20{admin}")),
    ];
    for (index, call) in calls.into_iter().enumerate() {
        let reply = server.send(call).await;
        assert_eq!(reply.refusal(), (401, "unauthenticated".to_owned()), "{index}");
    }
}

/// T-06: a scheme has no case (RFC 9110), so it decides nothing: the key is the identity, and without one there is none.
#[tokio::test]
async fn lower_case_bearer_scheme_identifies_same_key() {
    let server = TestServer::open().await;
    server.publish(&server.admin).await;
    let ask = async |value: &str| {
        let call = Call::get("/v1/skills").header(header::AUTHORIZATION, value);
        server.send(call).await
    };
    let stranger = server.key("other", &[Scope::Run]).await;
    for scheme in ["Bearer", "bearer", "BEARER"] {
        let own = ask(&format!("{scheme} {}", server.admin)).await.json();
        assert_eq!(own["items"].as_array().unwrap().len(), 1, "{scheme}");
        let theirs = ask(&format!("{scheme} {stranger}")).await.json();
        assert_eq!(theirs["items"], serde_json::json!([]), "{scheme}");
        for nobody in ["", "null", "skb_guess", &stranger[..50]] {
            let reply = ask(&format!("{scheme} {nobody}")).await;
            assert_eq!(
                reply.refusal(),
                (401, "unauthenticated".to_owned()),
                "{scheme} {nobody}"
            );
        }
    }
}

/// T-10: clients that guess keys are slowed down; clients with a valid key are not.
#[tokio::test]
async fn throttles_key_guessing_while_valid_key_works() {
    let server = TestServer::open().await;
    let mut throttled = 0;
    for _ in 0..200 {
        let reply = server.send(Call::get("/v1/skills").key("skb_guess")).await;
        if reply.status == 429 {
            assert_eq!(reply.code(), "rate_limited");
            assert!(reply.header(header::RETRY_AFTER).parse::<u32>().unwrap() <= 60);
            throttled += 1;
        }
    }
    assert_eq!(throttled, 200 - skillbox::limits::WRONG_KEYS_PER_MINUTE_MAX);
    assert_eq!(server.ask(Call::get("/v1/skills")).await.status, 200);
}

/// T-07.
#[tokio::test]
async fn revoked_key_stops_working_immediately() {
    let server = TestServer::open().await;
    let key = server.key("default", &[Scope::Run]).await;
    assert_eq!(server.send(Call::get("/v1/skills").key(&key)).await.status, 200);
    revoke(&server, &key).await;
    assert_eq!(server.send(Call::get("/v1/skills").key(&key)).await.status, 401);
}

/// Keys of each column of the table.
pub(crate) async fn callers(server: &TestServer) -> Vec<Option<String>> {
    let revoked = server.key("default", &[Scope::Admin]).await;
    revoke(server, &revoked).await;
    let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_millis(500);
    let expired = server.key_until("default", &[Scope::Admin], Some(soon)).await;
    while jiff::Timestamp::now() <= soon {
        tokio::task::yield_now().await;
    }
    vec![
        None,
        Some("skb_malformed".to_owned()),
        Some(revoked),
        Some(expired),
        Some(server.key("default", &[Scope::Run]).await),
        Some(server.key("default", &[Scope::Skills]).await),
        Some(server.key("default", &[Scope::Admin]).await),
    ]
}

async fn revoke(server: &TestServer, key: &str) {
    let keys = server.ask(Call::get("/v1/keys?limit=200")).await.json();
    let key = keys["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["hint"] == key[..8])
        .unwrap();
    let path = format!("/v1/keys/{}", key["key_id"].as_str().unwrap());
    assert_eq!(server.ask(Call::delete(&path)).await.status, 200);
}

/// A request to `route` that gets as far as its handler.
fn call(route: &str) -> Call {
    let (method, path) = route.split_once(' ').unwrap();
    Call::new(method.parse().unwrap(), &concrete(path))
}

fn concrete(path: &str) -> String {
    path.replace("{id}", "019a0000-0000-7000-8000-000000000000")
        .replace("{key}", &format!("sha256:{}", "0".repeat(64)))
        .replace("{name}", "nobodys")
        .replace("{version}", "1.0.0")
        .replace("{*path}", "report.pdf")
        .replace("{n}", "0")
        .replace("{form}", "html")
}
