//! Streams of events of what has ended, and how many there may be.

use axum::body::Body;
use axum::http::{HeaderName, Response, header};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use skillbox::engine::RetentionPolicy;
use skillbox::http::Settings;
use skillbox::limits;

use super::client::{Call, TestServer};
use super::conformance::Document;

fn events_of(envelope: &Value) -> String {
    let id = envelope["execution_id"].as_str().unwrap();
    format!("/v1/executions/{id}/events")
}

/// Name and data of each event.
fn parsed(text: &str) -> Vec<(String, Value)> {
    let blocks = text.split("\n\n").filter(|block| block.contains("event: "));
    let field = |block: &str, name: &str| {
        let lines = block.lines().filter_map(|line| line.strip_prefix(name));
        lines.collect::<Vec<_>>().join("\n")
    };
    blocks
        .map(|block| {
            let data = serde_json::from_str(&field(block, "data: ")).unwrap();
            (field(block, "event: "), data)
        })
        .collect()
}

/// each event is as documented, and so are the headers that keep a stream from being held back or stored.
#[tokio::test]
async fn every_event_matches_document() {
    let server = TestServer::open().await;
    server.publish(&server.admin).await;
    let envelope = server
        .run(json!({"skill": "probe", "input": [1, {"a": 2}]}))
        .await;
    let reply = server.ask(Call::get(&events_of(&envelope))).await;
    assert_eq!(reply.header(header::CONTENT_TYPE), "text/event-stream");
    assert_eq!(reply.header(header::CACHE_CONTROL), "no-store");
    assert_eq!(reply.header(HeaderName::from_static("x-accel-buffering")), "no");
    let text = reply.text();
    assert!(text.starts_with("retry: 1000\nid: 0-0-0-running\n"), "{text}");
    let events = parsed(&text);
    let names: Vec<_> = events.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["status", "stdout", "stderr", "result", "end"]);
    let document = Document::of_this_door();
    for (name, data) in &events {
        document.check_event(name, data);
    }
    let without_links = |envelope: &Value| {
        let mut envelope = envelope.clone();
        envelope["files_url"] = Value::Null;
        envelope
    };
    assert_eq!(without_links(&events[3].1), without_links(&envelope));
    assert_eq!(
        events[1].1,
        json!({"text": "out \u{fffd}\n", "base64": "b3V0IP8K"})
    );
    let now = server.ask(inline("", &json!({"skill": "probe"}))).await;
    let now = parsed(&now.text());
    assert_eq!(now.len(), 5, "{now:?}");
    let later = server
        .ask(inline("", &json!({"skill": "probe", "mode": "async"})))
        .await;
    let later = parsed(&later.text());
    assert_eq!(later.last().unwrap().1["reason"], "finished");
}

fn inline(query: &str, body: &Value) -> Call {
    Call::post(&format!("/v1/executions{query}"))
        .header(header::ACCEPT, "text/event-stream")
        .json(body)
}

#[tokio::test]
async fn rejects_event_stream_together_with_wait() {
    let server = TestServer::open().await;
    server.publish(&server.admin).await;
    let body = json!({"skill": "probe", "mode": "async"});
    let refused = server.ask(inline("?wait=1", &body)).await;
    assert_eq!(refused.refusal(), (400, "invalid".to_owned()));
    let text = refused.text();
    assert!(
        text.contains("wait: ") && text.contains("text/event-stream"),
        "{text}"
    );
    let listed = server.ask(Call::get("/v1/executions")).await.json();
    assert_eq!(listed["items"], json!([]), "nothing was run");
}

/// A repeated request receives the events of the same execution, in every form of request.
#[tokio::test]
async fn repeated_request_gets_same_events() {
    let server = TestServer::open().await;
    server.publish(&server.admin).await;
    let key = HeaderName::from_static("idempotency-key");
    for (name, mode) in [("order-1", "sync"), ("order-2", "async")] {
        let body = json!({"skill": "probe", "input": {"n": 1}, "mode": mode});
        let mut heard = Vec::new();
        for _ in 0..2 {
            let reply = server.ask(inline("", &body).header(key.clone(), name)).await;
            let events = parsed(&reply.text());
            assert_eq!(events.last().unwrap().1["reason"], "finished", "{mode}");
            heard.push(events);
        }
        let ids = heard
            .iter()
            .map(|events| events[0].1["execution_id"].as_str().unwrap());
        let ids: Vec<_> = ids.collect();
        assert_eq!(ids[0], ids[1], "{mode}");
        let plain = Call::post("/v1/executions").json(&body).header(key.clone(), name);
        assert_eq!(server.ask(plain).await.json()["execution_id"], ids[0], "{mode}");
        let other = json!({"skill": "probe", "input": {"n": 2}, "mode": mode});
        let refused = server.ask(inline("", &other).header(key.clone(), name)).await;
        assert_eq!(refused.refusal(), (422, "key_reused".to_owned()), "{mode}");
    }
    let listed = server.ask(Call::get("/v1/executions")).await.json();
    assert_eq!(listed["items"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn resumed_stream_after_last_event_is_empty() {
    let server = TestServer::open().await;
    server.publish(&server.admin).await;
    let path = events_of(&server.run(json!({"skill": "probe"})).await);
    let from = |id: &str| Call::get(&path).header(HeaderName::from_static("last-event-id"), id);
    let reply = server.ask(from("6-4-0-end")).await;
    assert_eq!((reply.status.as_u16(), reply.body.len()), (204, 0));
    let reply = server.ask(from("6-4-0-result")).await;
    assert_eq!(
        parsed(&reply.text()),
        [(
            "end".to_owned(),
            json!({"status": "success", "reason": "finished"})
        )]
    );
    for wrong in ["7-4-0-end", "6-4-1-running", "6-4-0", "x"] {
        let refused = server.ask(from(wrong)).await;
        assert_eq!(refused.refusal(), (400, "invalid".to_owned()), "{wrong}");
        assert!(refused.text().contains("\"last_event_id: "), "{wrong}");
    }
}

/// C-08: a reader that has started receives everything; after that the execution is deleted.
#[tokio::test]
async fn retention_does_not_cut_open_streams() {
    let retention = RetentionPolicy {
        age: None,
        per_tenant: Some(0),
    };
    let server = TestServer::open_keeping(&Settings::default(), retention).await;
    server.publish(&server.admin).await;
    let envelope = server.run(json!({"skill": "probe"})).await;
    let mut paths = vec![events_of(&envelope)];
    paths.push(paths[0].replace("events", "logs?follow=true"));
    let mut begun = Vec::new();
    for path in &paths {
        begun.push(server.begin(Call::get(path)).await.into_body());
    }
    server.engine.maintenance().run().await;
    let events = begun.remove(0).collect().await.unwrap().to_bytes();
    let events = parsed(std::str::from_utf8(&events).unwrap());
    assert_eq!(events.last().unwrap().0, "end");
    let logs = begun.remove(0).collect().await.unwrap().to_bytes();
    assert_eq!(&logs[..], b"out \xff\nerr\n");
    for path in &paths {
        assert_eq!(server.ask(Call::get(path)).await.status, 404, "{path}");
    }
}

/// A-25, T-15: streams are bounded, for one tenant and in all.
#[tokio::test]
async fn limits_open_streams_per_tenant() {
    let server = TestServer::open().await;
    server.publish(&server.admin).await;
    let path = events_of(&server.run(json!({"skill": "probe"})).await);
    let mut open: Vec<Response<Body>> = Vec::new();
    for _ in 0..limits::READERS_MAX / 4 * 3 {
        let response = server.begin(Call::get(&path)).await;
        assert_eq!(response.status(), 200);
        open.push(response);
    }
    let refused = server.ask(Call::get(&path)).await;
    assert_eq!(refused.refusal(), (503, "busy".to_owned()));
    assert_eq!(refused.header(header::RETRY_AFTER), "1");
    let stranger = server.key("other", &[skillbox::auth::Scope::Run]).await;
    let theirs = server.send(Call::get(&path).key(&stranger)).await;
    assert_eq!(theirs.status, 404, "there is room for others");
    open.pop();
    assert_eq!(server.ask(Call::get(&path)).await.status, 200);
}
