//! What is sent is what the document says: every answer of every route against its documented schema.

use axum::http::{HeaderName, Method, header};
use serde_json::{Map, Value, json};
use skillbox::error::Code;

use super::browser::{Browser, sign_in};
use super::client::{Call, Reply, TestServer, proofs_in};
use crate::world::zip_of;

/// The part of JSON Schema that the document uses. A member that is not documented is a finding, too.
pub(crate) struct Document(Value);

impl Document {
    pub(crate) fn of_this_door() -> Self {
        Self(skillbox::http::document())
    }

    /// Checks what an event of this name carries.
    pub(crate) fn check_event(&self, name: &str, data: &Value) {
        self.check_event_of("Events", name, data);
    }

    /// Checks an event of the stream with this schema.
    pub(crate) fn check_event_of(&self, stream: &str, name: &str, data: &Value) {
        let schema = &self.0["components"]["schemas"][stream]["properties"][name];
        assert!(schema.is_object(), "the event `{name}` is not documented");
        let mut wrong = Vec::new();
        self.compare(schema, data, name, &mut wrong);
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    /// Checks `reply` to `call`, for example `GET /v1/skills`.
    fn check(&self, call: &str, reply: &Reply) {
        let (method, path) = call.split_once(' ').unwrap();
        let responses = &self.0["paths"][path][method.to_lowercase()]["responses"];
        assert!(responses.is_object(), "{call} is not documented");
        let status = reply.status.as_u16();
        let described = responses
            .get(status.to_string())
            .or_else(|| responses.get("default").filter(|_| status >= 400));
        let described = described.unwrap_or_else(|| panic!("{call}: {status} is not documented"));
        let kind = reply.header(header::CONTENT_TYPE);
        let essence = kind.split(';').next().unwrap();
        let Some(contents) = described.get("content") else {
            return assert!(reply.body.is_empty(), "{call}: {}", reply.text());
        };
        let Some(content) = contents.get(essence).or_else(|| contents.get("*/*")) else {
            panic!("{call}: {status} with `{essence}` is not documented");
        };
        if essence.ends_with("json") {
            let mut wrong = Vec::new();
            self.compare(&content["schema"], &reply.json(), call, &mut wrong);
            assert!(wrong.is_empty(), "{wrong:#?}");
        }
    }

    fn resolve<'a>(&'a self, schema: &'a Value) -> &'a Value {
        match schema.get("$ref").and_then(Value::as_str) {
            Some(reference) => self.resolve(self.0.pointer(&reference[1..]).unwrap()),
            None => schema,
        }
    }

    fn compare(&self, schema: &Value, value: &Value, at: &str, wrong: &mut Vec<String>) {
        let schema = self.resolve(schema);
        for choices in ["oneOf", "anyOf"] {
            let Some(choices) = schema.get(choices).and_then(Value::as_array) else {
                continue;
            };
            let fits = |choice: &&Value| {
                let mut wrong = Vec::new();
                self.compare(choice, value, at, &mut wrong);
                wrong.is_empty()
            };
            if choices.iter().filter(fits).count() == 0 {
                wrong.push(format!("{at}: {value} is none of its choices"));
            }
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array)
            && !values.contains(value)
        {
            wrong.push(format!("{at}: {value} is not listed"));
        }
        if !has_type(schema, value) {
            wrong.push(format!("{at}: {value} is not a {}", schema["type"]));
        }
        if let (Some(items), Value::Array(values)) = (schema.get("items"), value) {
            for (index, value) in values.iter().enumerate() {
                self.compare(items, value, &format!("{at}[{index}]"), wrong);
            }
        }
        let properties = self.properties(schema);
        if let (false, Value::Object(members)) = (properties.is_empty(), value) {
            for (name, member) in members {
                match properties.get(name) {
                    Some(schema) => self.compare(schema, member, &format!("{at}.{name}"), wrong),
                    None => wrong.push(format!("{at}.{name} is not documented")),
                }
            }
            let missing = self
                .required(schema)
                .into_iter()
                .filter(|name| !members.contains_key(name));
            wrong.extend(missing.map(|name| format!("{at}.{name} is missing")));
        }
    }

    /// Its own, and those of all that it joins.
    fn properties(&self, schema: &Value) -> Map<String, Value> {
        let mut found = schema["properties"].as_object().cloned().unwrap_or_default();
        for part in schema["allOf"].as_array().into_iter().flatten() {
            found.extend(self.properties(self.resolve(part)));
        }
        found
    }

    fn required(&self, schema: &Value) -> Vec<String> {
        let own = schema["required"].as_array().into_iter().flatten();
        let mut found: Vec<String> = own.map(|name| name.as_str().unwrap().to_owned()).collect();
        for part in schema["allOf"].as_array().into_iter().flatten() {
            found.extend(self.required(self.resolve(part)));
        }
        found
    }
}

fn has_type(schema: &Value, value: &Value) -> bool {
    let is = |kind: &Value| match kind.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("no such type: {other}"),
    };
    match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(is),
        Some(kind) => is(kind),
        None => true,
    }
}

/// What a route may name by its id.
#[derive(Clone, Copy, Default)]
struct Ids<'a> {
    execution: &'a str,
    key: &'a str,
    delivery: &'a str,
    session: &'a str,
}

/// `route` with its parameters filled in, and whatever it needs to succeed.
fn call(route: &str, ids: Ids<'_>) -> Call {
    let (method, path) = route.split_once(' ').unwrap();
    let blob = skillbox::ids::Digest::of(b"content").to_string();
    let id = match path.split('/').nth(2) {
        Some("keys") => ids.key,
        Some("blobs") => &blob,
        Some("webhooks") => ids.delivery,
        Some("sessions") => ids.session,
        _ => ids.execution,
    };
    let path = path
        .replace("{id}", id)
        .replace("deps/{key}", &format!("deps/sha256:{}", "0".repeat(64)))
        .replace("secrets/{name}", "secrets/TOKEN")
        .replace("{name}", "probe")
        .replace("{version}", "latest")
        .replace(
            "files/{path}",
            if path.starts_with("/v1/skills") {
                "files/SKILL.md"
            } else {
                "files/report.txt"
            },
        )
        .replace("{n}/{form}", "0/text")
        .replace("sdk/{path}", "sdk/go/skillbox.go");
    match route {
        "GET /v1/skills/{name}/diff" => Call::get(&format!("{path}?from=latest&to=latest")),
        "POST /v1/skills/lint" => Call::post(&path)
            .header(header::CONTENT_TYPE, "application/zip")
            .body(super::client::probe("unknown: 1\n")),
        "POST /v1/skills" => Call::upload(super::client::probe("license: MIT\nunknown: 1\n")),
        "POST /v1/executions" => Call::post(&path).json(&json!({"skill": "probe", "args": ["exit=3"]})),
        "POST /v1/executions/prune" => Call::post(&path).json(&json!({"older_than": 3600})),
        "POST /v1/blobs" => Call::post(&path).body("content"),
        "PUT /v1/secrets/{name}" => Call::new(Method::PUT, &path).json(&json!({"value": "x"})),
        "PUT /v1/skills/{name}/{version}/requirements" => {
            Call::new(Method::PUT, &path).json(&json!({"requirements": []}))
        }
        "POST /v1/prove" => Call::post(&path).json(&json!({"backend": "native", "only": ["P3"]})),
        "POST /v1/deps/prefetch" => Call::post(&path).json(&json!({"skill": "probe"})),
        "POST /v1/session" => Call::post(&path).json(&json!({"token": "wrong"})),
        "POST /v1/keys" => Call::post(&path).json(&json!({"name": "x", "scopes": ["run"]})),
        _ => Call::new(method.parse().unwrap(), &path),
    }
}

/// each route answers as documented, when it succeeds and when it refuses.
#[tokio::test]
async fn every_response_matches_document() {
    let server = TestServer::open().await;
    let document = Document(skillbox::http::document());
    server.engine.proofs().enable(proofs_in(server.folder.path()));
    let published = server.ask(call("POST /v1/skills", Ids::default())).await;
    document.check("POST /v1/skills", &published);
    // Its path is that of another route, too.
    let declared = "---\nname: lint\ndescription: Has the name of a route\n---\n\nText.\n";
    let mut named_lint = Vec::new();
    std::io::Read::read_to_end(&mut zip_of(&[("SKILL.md", declared)]), &mut named_lint).unwrap();
    assert_eq!(server.ask(Call::upload(named_lint)).await.status, 201);
    let ran = server
        .run(json!({"skill": "probe", "args": ["shows"], "files": {"report.txt": "aGVsbG8="}, "callback_url": "https://hooks.example/"}))
        .await;
    let execution = ran["execution_id"].as_str().unwrap().to_owned();
    let webhooks = server.ask(Call::get("/v1/webhooks/deliveries")).await.json();
    let delivery = webhooks["items"][0]["delivery_id"].as_str().unwrap();

    let mut routes: Vec<String> = Vec::new();
    for (path, operations) in document.0["paths"].as_object().unwrap() {
        let methods = operations.as_object().unwrap().keys();
        routes.extend(methods.map(|method| format!("{} {path}", method.to_uppercase())));
    }
    // What ends something comes last.
    routes.sort_by_key(|route| (route.starts_with("DELETE"), !route.starts_with("P")));
    for route in routes {
        let made = server.ask(call("POST /v1/keys", Ids::default())).await.json();
        let key = made["key_id"].as_str().unwrap().to_owned();
        let browser = Browser::sign_in(&server, &server.admin).await;
        let sessions = server.ask(Call::get("/v1/sessions")).await.json();
        let ids = Ids {
            execution: &execution,
            key: &key,
            delivery,
            session: sessions["items"][0]["session_id"].as_str().unwrap(),
        };
        let reply = match route.as_str() {
            // What a key alone does not do.
            "POST /v1/session" => sign_in(&server, json!({"key": server.admin})).await,
            "DELETE /v1/session" => server.send(browser.call(Method::DELETE, "/v1/session")).await,
            route => server.ask(call(route, ids)).await,
        };
        assert!(reply.status.is_success(), "{route}: {}", reply.text());
        document.check(&route, &reply);
        let never = "019a0000-0000-7000-8000-000000000000";
        let unknown = Ids {
            execution: never,
            key: never,
            delivery: never,
            session: never,
        };
        document.check(&route, &server.send(call(&route, unknown)).await);
        document.check(&route, &server.ask(call(&route, unknown)).await);
    }
    let logs = format!("/v1/executions/{execution}/logs");
    let as_json = Call::get(&logs).header(header::ACCEPT, "application/json");
    document.check("GET /v1/executions/{id}/logs", &server.ask(as_json).await);
    let part =
        Call::get(&format!("/v1/executions/{execution}/files/report.txt")).header(header::RANGE, "bytes=0-1");
    document.check("GET /v1/executions/{id}/files/{path}", &server.ask(part).await);
}

/// Each code that a client may have to switch on is in the document and in the manual, with its status.
#[test]
fn every_error_code_is_documented() {
    let document = skillbox::http::document();
    let listed = &document["components"]["schemas"]["Problem"]["properties"]["code"]["enum"];
    let codes: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(*listed, json!(codes));
    let manual = include_str!("../../../docs/API.md");
    for code in Code::ALL {
        let row = format!("| `{}` | {} | ", code.as_str(), code.http_status());
        let line = manual.lines().find(|line| line.starts_with(&row));
        let line = line.unwrap_or_else(|| panic!("API.md has no line `{row}`"));
        assert_eq!(line.ends_with("| yes |"), code.retryable(), "{line}");
    }
}

/// A refusal by the framework or the outer layers has a code of the same list.
#[tokio::test]
async fn rejections_before_routing_match_document() {
    let server = TestServer::open().await;
    let document = Document(skillbox::http::document());
    let problem = json!({"$ref": "#/components/schemas/Problem"});
    let odd = HeaderName::from_static("content-encoding");
    for call in [
        Call::get("/nowhere"),
        Call::new(Method::PUT, "/v1/skills"),
        Call::get("/healthz").without(&header::HOST),
        Call::post("/v1/skills").header(odd, "gzip"),
    ] {
        let reply = server.ask(call).await;
        let mut wrong = Vec::new();
        document.compare(&problem, &reply.json(), "", &mut wrong);
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}
