//! The OpenAPI document, health, and what every answer carries.

use axum::http::{HeaderName, header};
use serde_json::{Map, Value, json};
use skillbox::http::{Settings, matrix};

use super::client::{Call, TestServer};

/// The document is the contract: a change of it is seen in review.
#[test]
fn openapi_document_matches_snapshot() {
    insta::with_settings!({snapshot_path => "../../snapshots", prepend_module_to_snapshot => false}, {
        insta::assert_json_snapshot!("openapi", skillbox::http::document());
    });
}

#[tokio::test]
async fn serves_openapi_document_with_every_route() {
    let server = TestServer::open().await;
    let reply = server.send(Call::get("/openapi.json")).await;
    let document = reply.json();
    assert_eq!(document, skillbox::http::document());
    for (route, _) in matrix().lines() {
        let (method, path) = route.split_once(' ').unwrap();
        let path = path.replace("{*path}", "{path}");
        let operation = &document["paths"][&path][method.to_lowercase()];
        if path == "/mcp" {
            assert!(
                operation.is_null(),
                "another protocol, which this document cannot describe"
            );
            continue;
        }
        assert!(operation["security"].is_array(), "{route}");
        for (status, response) in operation["responses"].as_object().unwrap() {
            let description = response["description"].as_str().unwrap_or_default();
            assert!(!description.is_empty(), "{route} {status}");
        }
    }
}

/// Calls `look` for each schema and whatever else is an object.
fn each_object(value: &Value, look: &mut impl FnMut(&Map<String, Value>)) {
    match value {
        Value::Object(members) => {
            look(members);
            members.values().for_each(|member| each_object(member, look));
        }
        Value::Array(items) => items.iter().for_each(|item| each_object(item, look)),
        _ => {}
    }
}

/// A format of our own would tell clients nothing: it must have become a pattern.
#[test]
fn openapi_document_has_only_standard_formats() {
    const STANDARD: [&str; 7] = ["binary", "date-time", "double", "int32", "int64", "uri", "uuid"];
    let mut patterns = 0;
    each_object(&skillbox::http::document(), &mut |schema| {
        if let (Some(format), true) = (
            schema.get("format").and_then(Value::as_str),
            schema.contains_key("type"),
        ) {
            assert!(STANDARD.contains(&format), "{schema:?}");
        }
        patterns += usize::from(schema.get("pattern").is_some_and(Value::is_string));
    });
    assert!(patterns > 30, "{patterns}");
}

/// Python's generator reads `null` as a wrong value, schemathesis ends with a traceback.
#[test]
fn openapi_document_has_no_null_keywords() {
    each_object(&skillbox::http::document(), &mut |members| {
        for keyword in ["parameters", "type", "schema", "content", "items", "$ref"] {
            assert_ne!(members.get(keyword), Some(&Value::Null), "{members:?}");
        }
    });
}

/// What generators of clients stumbled over.
#[test]
fn openapi_document_has_one_type_for_each_thing() {
    let document = skillbox::http::document();
    let schemas = &document["components"]["schemas"];
    let file = &schemas["SkillForm"]["properties"]["file"];
    assert_eq!(
        (&file["type"], &file["format"]),
        (&json!("string"), &json!("binary"))
    );
    for (name, schema) in schemas.as_object().unwrap() {
        if let Some(item) = name.strip_prefix("List_") {
            let reference = json!({"$ref": format!("#/components/schemas/{item}")});
            assert_eq!(schema["properties"]["items"]["items"], reference, "{name}");
        }
    }
    let events = &document["paths"]["/v1/executions/{id}/events"]["get"]["responses"]["200"]["content"];
    let events = &events["text/event-stream"]["schema"];
    assert_eq!(events["type"], "string");
    assert_eq!(events["contentSchema"]["$ref"], "#/components/schemas/Events");
}

/// No reference leads nowhere.
#[test]
fn every_openapi_reference_resolves() {
    fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
        match value {
            Value::Object(members) => {
                found.extend(members.get("$ref").and_then(Value::as_str));
                members.values().for_each(|member| references(member, found));
            }
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            _ => {}
        }
    }
    let document = skillbox::http::document();
    let mut found = Vec::new();
    references(&document, &mut found);
    assert!(!found.is_empty());
    for reference in found {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
}

#[tokio::test]
async fn health_needs_no_key_and_shows_no_secrets() {
    let server = TestServer::open().await;
    let alive = server.send(Call::get("/healthz")).await;
    assert_eq!(
        (alive.status.as_u16(), alive.json()),
        (200, json!({"status": "ok"}))
    );
    let ready = server.send(Call::get("/readyz")).await;
    assert_eq!(ready.status, 200, "{}", ready.text());
    assert_eq!(ready.json()["ready"], true);
    assert!(!ready.text().contains(server.folder.path().to_str().unwrap()));
}

/// Anybody may ask: the answer names the part that does not work, and nothing of where it is (A-23, F-07). The log says why.
#[tokio::test]
async fn readiness_names_failed_component() {
    let server = TestServer::open().await;
    std::fs::remove_dir_all(server.folder.path().join("blobs")).unwrap();
    server
        .engine
        .maintenance()
        .shutdown(std::time::Duration::from_millis(1))
        .await;
    let reply = server.send(Call::get("/readyz")).await;
    assert_eq!(reply.status, 503);
    let checks = &reply.json()["checks"];
    assert_eq!(checks[0], json!({"name": "server", "ok": false}));
    assert_eq!(checks[1], json!({"name": "store", "ok": true}));
    assert_eq!(checks[2], json!({"name": "blob", "ok": false}));
}

/// W-08 where it applies: nothing is sniffed, framed, cached or sent to other sites.
#[tokio::test]
async fn every_response_has_security_headers_and_request_id() {
    let server = TestServer::open().await;
    let request_id = HeaderName::from_static("x-request-id");
    for path in ["/", "/healthz", "/v1/skills", "/nowhere", "/v1/skills/x"] {
        let call = Call::get(path).header(request_id.clone(), "trace-1");
        let reply = server.ask(call).await;
        assert_eq!(reply.header(header::X_CONTENT_TYPE_OPTIONS), "nosniff", "{path}");
        assert_eq!(reply.header(header::CACHE_CONTROL), "no-store", "{path}");
        assert_eq!(reply.header(header::REFERRER_POLICY), "no-referrer", "{path}");
        assert!(
            reply
                .header(header::CONTENT_SECURITY_POLICY)
                .contains("frame-ancestors 'none'"),
            "{path}"
        );
        assert_eq!(reply.header(request_id.clone()), "trace-1", "{path}");
    }
    let forged = Call::get("/nowhere").header(request_id.clone(), "a\" ERROR");
    let reply = server.send(forged).await;
    assert!(!reply.header(request_id).contains("ERROR"));
}

/// W-06, A-14: on every route, key or not.
#[tokio::test]
async fn every_route_rejects_foreign_or_ambiguous_host() {
    let settings = Settings {
        server_url: Some("https://skillbox.example".to_owned()),
        allowed_hosts: vec!["box.internal".to_owned()],
        ..Settings::default()
    };
    let server = TestServer::open_with(&settings).await;
    for (route, _) in matrix().lines() {
        let (method, path) = route.split_once(' ').unwrap();
        let path = path.replace(['{', '}', '*'], "");
        for host in ["evil.test", "localhost.evil", "10.0.0.1:8080"] {
            let reply = server.ask(with_host(method, &path, &[host])).await;
            // As the transport of MCP wants.
            let expected = match path.as_str() {
                "/mcp" => (403, "forbidden".to_owned()),
                _ => (421, "misdirected".to_owned()),
            };
            assert_eq!(reply.refusal(), expected, "{route} {host}");
        }
        let two = server
            .ask(with_host(method, &path, &["localhost", "localhost"]))
            .await;
        assert_eq!(two.refusal(), (400, "invalid".to_owned()), "{route}");
    }
    for host in ["skillbox.example", "box.internal:80", "127.0.0.1", "[::1]:8080"] {
        assert_eq!(
            server.ask(with_host("GET", "/healthz", &[host])).await.status,
            200,
            "{host}"
        );
    }
}

fn with_host(method: &str, path: &str, hosts: &[&str]) -> Call {
    let call = Call::new(method.parse().unwrap(), path).without(&header::HOST);
    hosts
        .iter()
        .fold(call, |call, host| call.header(header::HOST, host))
}

/// a handler that panics answers like any failure of ours, and the server lives on.
#[tokio::test]
async fn panic_is_internal_error_without_details() {
    let server = TestServer::open().await;
    server.publish(&server.admin).await;
    let body = json!({"skill": "probe", "args": ["panic"]});
    let reply = server.ask(Call::post("/v1/executions").json(&body)).await;
    assert_eq!(reply.refusal(), (500, "internal".to_owned()));
    assert!(!reply.text().contains("asked to panic"));
    assert_eq!(server.send(Call::get("/healthz")).await.status, 200);
}
