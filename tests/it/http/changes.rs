//! The stream of changes: complete, of one tenant, resumable, and limited.

use axum::body::Body;
use axum::http::{HeaderName, Method, header};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use skillbox::auth::Scope;
use skillbox::limits;
use skillbox::sandbox::Sandbox;

use super::browser::Browser;
use super::client::{Call, TestServer, next_piece};
use super::conformance::Document;
use crate::world::{engine_in, instance_in};

/// An open stream.
struct Stream(Body);

struct Event {
    id: String,
    name: String,
    data: Value,
}

impl Stream {
    async fn open(server: &TestServer, call: Call) -> Self {
        let response = server.begin_as(call).await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()[header::CONTENT_TYPE], "text/event-stream");
        let mut body = response.into_body();
        assert_eq!(next_piece(&mut body).await, "retry: 1000\n");
        Self(body)
    }

    /// From now on.
    async fn ready(server: &TestServer, key: &str) -> (Self, String) {
        let mut stream = Self::open(server, Call::get("/v1/events").key(key)).await;
        let ready = stream.next().await;
        assert_eq!((ready.name.as_str(), &ready.data), ("ready", &json!({})));
        (stream, ready.id)
    }

    async fn after(server: &TestServer, key: &str, id: &str) -> Self {
        let last = HeaderName::from_static("last-event-id");
        Self::open(server, Call::get("/v1/events").key(key).header(last, id)).await
    }

    async fn next(&mut self) -> Event {
        let text = String::from_utf8(next_piece(&mut self.0).await.to_vec()).unwrap();
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap_or_else(|| panic!("no {name} in {text}")).to_owned()
        };
        Event {
            id: field("id: "),
            name: field("event: "),
            data: serde_json::from_str(&field("data: ")).unwrap(),
        }
    }

    /// Well before the next keep-alive.
    async fn end(&mut self) {
        let end = tokio::time::timeout(limits::EVENTS_KEEP_ALIVE / 3, self.0.frame()).await;
        assert!(end.expect("the stream goes on").is_none());
    }

    /// Name, and status or change, of the next events.
    async fn next_facts(&mut self, count: usize) -> Vec<String> {
        let mut facts = Vec::new();
        for _ in 0..count {
            let Event { name, data, .. } = self.next().await;
            let fact = data["status"].as_str().or(data["change"].as_str());
            facts.push([&name, " ", fact.unwrap_or_default()].concat().trim().to_owned());
        }
        facts
    }
}

async fn run(server: &TestServer, key: &str) -> Value {
    let code = json!({"code": "x", "language": "bash"});
    let reply = server
        .send(Call::post("/v1/executions").json(&code).key(key))
        .await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.json()
}

#[tokio::test]
async fn sends_items_of_the_list_as_executions_start_and_end() {
    let server = TestServer::open().await;
    let (mut stream, _) = Stream::ready(&server, &server.admin).await;
    let envelope = run(&server, &server.admin).await;
    let document = Document::of_this_door();
    let mut items = Vec::new();
    for _ in 0..2 {
        let event = stream.next().await;
        document.check_event_of("Changes", &event.name, &event.data);
        assert_eq!(event.name, "execution");
        assert_eq!(event.data["execution_id"], envelope["execution_id"]);
        items.push(event.data);
    }
    assert_eq!(
        (&items[0]["status"], &items[1]["status"]),
        (&json!("running"), &json!("success"))
    );
    let listed = server.ask(Call::get("/v1/executions")).await.json();
    assert_eq!(items[1], listed["items"][0]);
}

#[tokio::test]
async fn sends_queued_executions_skills_and_deletions() {
    let server = TestServer::open().await;
    let (mut stream, _) = Stream::ready(&server, &server.admin).await;
    let document = Document::of_this_door();
    server.publish(&server.admin).await;
    server.publish(&server.admin).await;
    let event = stream.next().await;
    document.check_event_of("Changes", &event.name, &event.data);
    assert_eq!(
        (event.name.as_str(), &event.data["name"]),
        ("skill", &json!("probe"))
    );
    assert_eq!(event.data["change"], "published");
    let version = event.data["version"].as_str().unwrap().to_owned();
    let ask = json!({"skill": "probe", "mode": "async"});
    let queued = server.ask(Call::post("/v1/executions").json(&ask)).await.json();
    let facts = ["execution queued", "execution running", "execution success"];
    assert_eq!(
        stream.next_facts(3).await,
        facts,
        "the same version again is no change"
    );
    let path = format!("/v1/executions/{}", queued["execution_id"].as_str().unwrap());
    assert_eq!(server.ask(Call::delete(&path)).await.status, 204);
    let event = stream.next().await;
    document.check_event_of("Changes", &event.name, &event.data);
    assert_eq!(event.name, "execution_deleted");
    assert_eq!(event.data["execution_id"], queued["execution_id"]);
    let skill = format!("/v1/skills/probe/{version}");
    assert_eq!(server.ask(Call::delete(&skill)).await.status, 204);
    assert_eq!(stream.next_facts(1).await, ["skill deleted"]);
    let prune = Call::post("/v1/executions/prune").json(&json!({}));
    assert_eq!(server.ask(prune).await.status, 200);
    assert_eq!(stream.next_facts(1).await, ["reset"]);
}

/// T-02.
#[tokio::test]
async fn sends_no_change_of_another_tenant() {
    let server = TestServer::open().await;
    let stranger = server.key("other", &[Scope::Run]).await;
    let (mut stream, _) = Stream::ready(&server, &stranger).await;
    run(&server, &server.admin).await;
    server.publish(&server.admin).await;
    let own = run(&server, &stranger).await;
    let event = stream.next().await;
    assert_eq!(event.data["execution_id"], own["execution_id"]);
}

#[tokio::test]
async fn resumes_after_an_id_or_resets() {
    let server = TestServer::open().await;
    let (_, start) = Stream::ready(&server, &server.admin).await;
    run(&server, &server.admin).await;
    let mut resumed = Stream::after(&server, &server.admin, &start).await;
    let running = resumed.next().await;
    assert_eq!(running.data["status"], "running");
    let mut resumed = Stream::after(&server, &server.admin, &running.id).await;
    assert_eq!(resumed.next_facts(1).await, ["execution success"]);
    let query = Call::get(&format!("/v1/events?last_event_id={}", running.id)).key(&server.admin);
    assert_eq!(
        Stream::open(&server, query).await.next_facts(1).await,
        ["execution success"]
    );

    let (number, process) = running.id.split_once('-').unwrap();
    let of_other_process = format!("{number}-019a0000-0000-7000-8000-000000000000");
    let of_the_future = format!("999-{process}");
    for id in [of_other_process, of_the_future] {
        let mut stream = Stream::after(&server, &server.admin, &id).await;
        assert_eq!(stream.next_facts(1).await, ["reset"], "{id}");
        run(&server, &server.admin).await;
        let facts = ["execution running", "execution success"];
        assert_eq!(stream.next_facts(2).await, facts, "{id}");
    }
    let last = HeaderName::from_static("last-event-id");
    let wrong = server.ask(Call::get("/v1/events").header(last, "7")).await;
    assert_eq!(wrong.refusal(), (400, "invalid".to_owned()));
}

#[tokio::test]
async fn a_slow_reader_gets_a_reset() {
    let server = TestServer::open().await;
    let (mut slow, start) = Stream::ready(&server, &server.admin).await;
    for _ in 0..=limits::CHANGES_PER_TENANT / 2 {
        run(&server, &server.admin).await;
    }
    assert_eq!(slow.next_facts(1).await, ["reset"]);
    let mut late = Stream::after(&server, &server.admin, &start).await;
    assert_eq!(late.next_facts(1).await, ["reset"]);
    run(&server, &server.admin).await;
    for stream in [&mut slow, &mut late] {
        assert_eq!(stream.next_facts(1).await, ["execution running"]);
    }
}

/// T-15.
#[tokio::test]
async fn number_of_streams_is_limited() {
    let settings = skillbox::http::Settings {
        connections: skillbox::http::ConnectionLimits {
            connections_max: 16,
            ..skillbox::http::ConnectionLimits::default()
        },
        ..skillbox::http::Settings::default()
    };
    let server = TestServer::open_with(&settings).await;
    let mut open = Vec::new();
    let refused = loop {
        assert!(open.len() < 100, "no limit");
        let response = server.begin(Call::get("/v1/events")).await;
        if response.status() != 200 {
            break response.status();
        }
        open.push(response);
    };
    assert_eq!(refused, 503);
    drop(open);
    assert_eq!(server.begin(Call::get("/v1/events")).await.status(), 200);
}

/// T-07, W-09: a stream does not outlive what it was opened with.
#[tokio::test]
async fn stream_ends_with_its_key_or_session_at_once() {
    let server = TestServer::open().await;
    let admin = &server.admin;
    let key = server.key("default", &[Scope::Run]).await;
    let browser = Browser::sign_in(&server, admin).await;
    let (mut of_key, _) = Stream::ready(&server, &key).await;
    let mut of_session = Stream::open(&server, browser.call(Method::GET, "/v1/events")).await;
    assert_eq!(of_session.next().await.name, "ready");
    let (mut of_admin, _) = Stream::ready(&server, admin).await;

    let own = server.send(Call::get("/v1/session").key(&key)).await.json();
    let path = format!("/v1/keys/{}", own["key"]["id"].as_str().unwrap());
    let revoked = server.send(Call::delete(&path).key(admin)).await;
    assert_eq!(revoked.status, 200, "{}", revoked.text());
    of_key.end().await;
    let left = server.send(browser.call(Method::DELETE, "/v1/session")).await;
    assert_eq!(left.status, 204, "{}", left.text());
    of_session.end().await;
    run(&server, admin).await;
    assert_eq!(of_admin.next_facts(1).await, ["execution running"]);
}

/// Another process on the same database runs something.
#[tokio::test]
async fn sends_executions_of_other_processes() {
    let server = TestServer::open().await;
    let (mut stream, _) = Stream::ready(&server, &server.admin).await;
    // The first look only notes what there is.
    tokio::time::sleep(limits::OTHER_PROCESS_POLL_EVERY * 2).await;
    let folder = server.folder.path();
    let script = |_: &skillbox::sandbox::Job, _: &mut _| {
        Ok(skillbox::sandbox::Report::bare(
            skillbox::sandbox::Completion::Exited(0),
        ))
    };
    let other = engine_in(folder, instance_in(folder), Sandbox::scripted(script)).await;
    let code = skillbox::engine::RunSpec::of_code(skillbox::skill::Language::Bash, "x".to_owned());
    let tenant = skillbox::ids::Tenant::default_tenant();
    let ran = other.runs().run(&tenant, code).await.unwrap();
    let event = loop {
        let event = stream.next().await;
        if event.data["status"] != "running" {
            break event;
        }
    };
    assert_eq!(event.name, "execution");
    assert_eq!(event.data["execution_id"], json!(ran.new.id));
    assert_eq!(
        (&event.data["status"], &event.data["key"]),
        (&json!("success"), &Value::Null)
    );
    let deleted = server
        .ask(Call::new(
            Method::DELETE,
            &format!("/v1/executions/{}", ran.new.id),
        ))
        .await;
    assert_eq!(deleted.status, 204);
    assert_eq!(stream.next_facts(1).await, ["execution_deleted"]);
}
