//! Who may call what: the same as in the REST API.

use skillbox::auth::Scope;
use skillbox::{grpc, http};

use super::client::{Outcome, SCHEMA, ask, call, send};
use crate::http::client::{Call, TestServer};
use crate::http::matrix;
use serde_json::json;

/// What a route of the REST API is in the gRPC API.
enum Counterpart {
    /// A method with the same access.
    Method(&'static str),
    /// None, for this reason.
    None(&'static str),
}

use Counterpart::{Method, None};

const FILES: Counterpart = None("downloads of any size: signed links in messages point to the REST API");
const KEYS: Counterpart = None("administration: no agent does it");
const DASHBOARD: Counterpart = None("for the dashboard");
const BLOBS: Counterpart = None("streams of any size by the REST API; requests name blobs");
const AUTHORS: Counterpart = None("for authors of skills: command line and dashboard");
const PLAIN: Counterpart = None("a document of the REST API");

/// Every route of the REST API. A new one needs its method or a reason.
const ROUTES: &[(&str, Counterpart)] = &[
    ("GET /", PLAIN),
    ("GET /healthz", Method("/grpc.health.v1.Health/Check")),
    ("POST /mcp", None("a protocol of its own over the same engine")),
    ("GET /metrics", None("Prometheus reads HTTP")),
    ("GET /openapi.json", PLAIN),
    ("GET /proto/skillbox/v1/skillbox.proto", PLAIN),
    ("GET /readyz", Method("/grpc.health.v1.Health/Check")),
    ("GET /sdk", PLAIN),
    ("GET /sdk/{*path}", PLAIN),
    ("GET /v1/audit", KEYS),
    ("GET /v1/blobs", BLOBS),
    ("POST /v1/blobs", BLOBS),
    ("DELETE /v1/blobs/{id}", BLOBS),
    ("GET /v1/blobs/{id}", BLOBS),
    ("GET /v1/deps", AUTHORS),
    ("POST /v1/deps/prefetch", AUTHORS),
    ("DELETE /v1/deps/{key}", AUTHORS),
    ("GET /v1/events", DASHBOARD),
    (
        "GET /v1/executions",
        Method("/skillbox.v1.ExecutionService/ListExecutions"),
    ),
    (
        "POST /v1/executions",
        Method("/skillbox.v1.ExecutionService/RunSkill"),
    ),
    ("POST /v1/executions/prune", KEYS),
    ("DELETE /v1/executions/{id}", KEYS),
    (
        "GET /v1/executions/{id}",
        Method("/skillbox.v1.ExecutionService/GetExecution"),
    ),
    (
        "POST /v1/executions/{id}/cancel",
        Method("/skillbox.v1.ExecutionService/CancelExecution"),
    ),
    (
        "GET /v1/executions/{id}/deliveries",
        None("webhooks replace a connection; their state is for people"),
    ),
    (
        "GET /v1/executions/{id}/events",
        Method("/skillbox.v1.ExecutionService/RunSkillStream"),
    ),
    ("GET /v1/executions/{id}/files", FILES),
    ("GET /v1/executions/{id}/files/{*path}", FILES),
    (
        "GET /v1/executions/{id}/logs",
        Method("/skillbox.v1.ExecutionService/GetExecutionLogs"),
    ),
    ("GET /v1/executions/{id}/request", DASHBOARD),
    ("POST /v1/executions/{id}/rerun", DASHBOARD),
    ("GET /v1/executions/{id}/results/{n}/{form}", FILES),
    ("GET /v1/keys", KEYS),
    ("POST /v1/keys", KEYS),
    ("DELETE /v1/keys/{id}", KEYS),
    ("POST /v1/keys/{id}/rotate", KEYS),
    ("GET /v1/prove", KEYS),
    ("POST /v1/prove", KEYS),
    ("GET /v1/secrets", KEYS),
    ("DELETE /v1/secrets/{name}", KEYS),
    ("PUT /v1/secrets/{name}", KEYS),
    ("GET /v1/server", DASHBOARD),
    ("DELETE /v1/session", DASHBOARD),
    ("GET /v1/session", DASHBOARD),
    ("POST /v1/session", DASHBOARD),
    ("POST /v1/session/links", DASHBOARD),
    ("GET /v1/sessions", DASHBOARD),
    ("DELETE /v1/sessions/{id}", DASHBOARD),
    ("GET /v1/skills", Method("/skillbox.v1.SkillService/ListSkills")),
    (
        "POST /v1/skills",
        Method("/skillbox.v1.SkillService/RegisterSkill"),
    ),
    ("GET /v1/skills/lint", AUTHORS),
    ("POST /v1/skills/lint", AUTHORS),
    (
        "GET /v1/skills/{name}",
        Method("/skillbox.v1.SkillService/ListSkills"),
    ),
    ("GET /v1/skills/{name}/diff", AUTHORS),
    (
        "DELETE /v1/skills/{name}/{version}",
        Method("/skillbox.v1.SkillService/DeleteSkill"),
    ),
    (
        "GET /v1/skills/{name}/{version}",
        Method("/skillbox.v1.SkillService/GetSkill"),
    ),
    ("GET /v1/skills/{name}/{version}/archive", FILES),
    ("GET /v1/skills/{name}/{version}/files", AUTHORS),
    ("GET /v1/skills/{name}/{version}/files/{*path}", AUTHORS),
    ("GET /v1/skills/{name}/{version}/lint", AUTHORS),
    ("PUT /v1/skills/{name}/{version}/requirements", AUTHORS),
    ("GET /v1/stats", DASHBOARD),
    (
        "GET /v1/tools",
        None("definitions for models are JSON of other products"),
    ),
    (
        "GET /v1/tools/prompt",
        None("definitions for models are JSON of other products"),
    ),
    ("GET /v1/usage", DASHBOARD),
    ("GET /v1/webhooks/deliveries", KEYS),
    ("POST /v1/webhooks/deliveries/{id}/redeliver", KEYS),
    ("GET /v1/webhooks/secret", KEYS),
    ("POST /v1/webhooks/secret/rotate", KEYS),
];

#[test]
fn every_rest_route_has_a_method_or_a_reason() {
    let routes: Vec<String> = http::matrix().lines().map(|(route, _)| route).collect();
    let listed: Vec<&str> = ROUTES.iter().map(|(route, _)| *route).collect();
    assert_eq!(
        routes, listed,
        "a new route needs its method, or the reason for none"
    );
    let reasons = ROUTES
        .iter()
        .filter_map(|(route, counterpart)| match counterpart {
            None(reason) => Some((route, reason)),
            Method(_) => Option::None,
        });
    for (route, reason) in reasons {
        assert!(reason.len() > 10, "{route}");
    }
}

#[test]
fn every_method_of_the_schema_is_served() {
    let served: Vec<String> = grpc::matrix().lines().map(|(method, _)| method).collect();
    let mut declared: Vec<String> = SCHEMA
        .services()
        .flat_map(|service| {
            let paths = service
                .methods()
                .map(|method| format!("POST /{}/{}", method.parent_service().full_name(), method.name()));
            paths.collect::<Vec<_>>()
        })
        .collect();
    declared.sort();
    assert_eq!(served, declared);
}

/// What each kind of caller gets, as in the table of the REST API.
fn letter(outcome: &Outcome) -> char {
    match (outcome.status, outcome.code()) {
        (16, "unauthenticated") => '-',
        (7, "forbidden") => 'x',
        (8, "rate_limited") => panic!("too many wrong keys for one server"),
        _ => 'o',
    }
}

/// T-01, T-04.
#[tokio::test]
async fn every_method_authorizes_the_roles_of_its_route() {
    let server = TestServer::open().await;
    let keys = matrix::callers(&server).await;
    let mut seen = std::collections::BTreeMap::new();
    for (route, counterpart) in ROUTES {
        let Method(method) = counterpart else { continue };
        let row = matrix::TABLE
            .iter()
            .find(|(listed, _)| listed == route)
            .unwrap()
            .1;
        let before = seen.insert(*method, row);
        assert!(before.is_none_or(|before| before == row), "{route}");
    }
    seen.insert(
        "/skillbox.v1.ExecutionService/RunCode",
        seen["/skillbox.v1.ExecutionService/RunSkill"],
    );
    seen.insert(
        "/grpc.health.v1.Health/Watch",
        seen["/grpc.health.v1.Health/Check"],
    );
    let served: Vec<String> = grpc::matrix().lines().map(|(method, _)| method).collect();
    let compared: Vec<String> = seen.keys().map(|method| format!("POST {method}")).collect();
    assert_eq!(served, compared, "a method without a route to compare with");
    for (method, expected) in seen {
        // It goes on.
        if method.ends_with("/Watch") {
            continue;
        }
        let mut got = String::new();
        for key in &keys {
            let call = call(method, &[json!({})]);
            let call = key.iter().fold(call, |call, key| call.key(key));
            got.push(letter(&send(&server, method, call).await));
        }
        assert_eq!(got, expected, "{method}");
    }
}

/// T-10: wrong keys of both APIs are counted together.
#[tokio::test]
async fn throttles_key_guessing_over_both_apis() {
    let server = TestServer::open().await;
    let mut throttled = 0;
    for n in 0..200 {
        let is_throttled = if n % 2 == 0 {
            let guess = call("SkillService/ListSkills", &[json!({})]).key("skb_guess");
            let outcome = send(&server, "SkillService/ListSkills", guess).await;
            assert!(outcome.status != 8 || outcome.problem["retry_after"].as_u64().unwrap() <= 60);
            outcome.code() == "rate_limited"
        } else {
            server.send(Call::get("/v1/skills").key("skb_guess")).await.status == 429
        };
        throttled += u32::from(is_throttled);
    }
    assert_eq!(throttled, 200 - skillbox::limits::WRONG_KEYS_PER_MINUTE_MAX);
    assert_eq!(ask(&server, "SkillService/ListSkills", json!({})).await.status, 0);
}

/// T-02, T-03: what belongs to another tenant answers like what never was.
#[tokio::test]
async fn data_of_other_tenant_is_not_found() {
    const NEVER: &str = "019a0000-0000-7000-8000-000000000000";
    let server = TestServer::open().await;
    server.publish(&server.admin).await;
    let run = ask(&server, "ExecutionService/RunSkill", json!({"skill": "probe"}))
        .await
        .only();
    let id = run["execution_id"].as_str().unwrap().to_owned();
    let stranger = server.key("other", &[Scope::Admin]).await;
    let calls = [
        ("ExecutionService/GetExecution", json!({"execution_id": "ID"})),
        ("ExecutionService/GetExecutionLogs", json!({"execution_id": "ID"})),
        (
            "ExecutionService/GetExecutionLogs",
            json!({"execution_id": "ID", "follow": true}),
        ),
        ("ExecutionService/CancelExecution", json!({"execution_id": "ID"})),
        ("ExecutionService/RunSkill", json!({"skill": "SKILL"})),
        (
            "ExecutionService/RunSkillStream",
            json!({"skill": {"skill": "SKILL"}}),
        ),
        (
            "ExecutionService/RunCode",
            json!({"code": "1", "mount_skills": ["SKILL"]}),
        ),
        ("SkillService/GetSkill", json!({"name": "SKILL"})),
        ("SkillService/ListSkills", json!({"name": "SKILL"})),
        (
            "SkillService/DeleteSkill",
            json!({"name": "SKILL", "version": "latest"}),
        ),
    ];
    for (name, message) in calls {
        let ask = async |id: &str, skill: &str| {
            let text = message.to_string().replace("ID", id).replace("SKILL", skill);
            let message = serde_json::from_str(&text).unwrap();
            send(&server, name, call(name, &[message]).key(&stranger)).await
        };
        let (theirs, nobodys) = (ask(&id, "probe").await, ask(NEVER, "never").await);
        assert_eq!((theirs.status, theirs.code()), (5, "not_found"), "{name}");
        let masked = |outcome: &Outcome| outcome.message.replace(&id, NEVER).replace("probe", "never");
        assert_eq!(masked(&theirs), masked(&nobodys), "{name}");
    }
    let listed = ["ExecutionService/ListExecutions", "SkillService/ListSkills"];
    for (name, member) in listed.into_iter().zip(["executions", "skills"]) {
        let call = call(name, &[json!({})]).key(&stranger);
        assert_eq!(
            send(&server, name, call).await.only()[member],
            json!([]),
            "{name}"
        );
    }
    let own = ask(
        &server,
        "ExecutionService/GetExecution",
        json!({"execution_id": id}),
    )
    .await;
    assert_eq!(own.status, 0, "its owner still sees it");
}
