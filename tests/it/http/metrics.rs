//! What the server counts, and who may read it.

use std::collections::BTreeMap;

use axum::body::Body;
use axum::http::{Request, header};
use serde_json::json;
use skillbox::auth::Scope;
use skillbox::http::{MetricsRoute, Settings, metrics_app};
use tower::ServiceExt as _;

use super::client::{Call, TestServer};

async fn text(server: &TestServer) -> String {
    let reply = server.ask(Call::get("/metrics")).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(
        reply.header(header::CONTENT_TYPE),
        "text/plain; version=0.0.4; charset=utf-8"
    );
    reply.text()
}

/// The value of a sample; 0 where there is none.
fn value(text: &str, sample: &str) -> f64 {
    let mut lines = text.lines().filter_map(|line| line.rsplit_once(' '));
    let found = lines.find(|(name, _)| *name == sample);
    found.map_or(0.0, |(_, value)| value.parse().unwrap())
}

#[tokio::test]
async fn counts_executions_requests_and_rejections() {
    let server = TestServer::open().await;
    server.publish(&server.admin).await;
    server
        .run(json!({"skill": "probe", "files": {"a.txt": "aGVsbG8="}}))
        .await;
    server
        .run(json!({"code": "x", "language": "bash", "args": ["exit=3"]}))
        .await;
    for _ in 0..2 {
        server.ask(Call::get("/v1/skills/nothing")).await;
    }
    let text = text(&server).await;
    for (sample, expected) in [
        (
            "skillbox_executions_total{status=\"success\",backend=\"scripted\",language=\"python\"}",
            1.0,
        ),
        (
            "skillbox_executions_total{status=\"failed\",backend=\"scripted\",language=\"bash\"}",
            1.0,
        ),
        (
            "skillbox_execution_seconds_count{backend=\"scripted\",language=\"bash\"}",
            1.0,
        ),
        (
            "skillbox_execution_phase_seconds_count{phase=\"collect\",backend=\"scripted\"}",
            2.0,
        ),
        ("skillbox_executions_running", 0.0),
        ("skillbox_executions_queued", 0.0),
        ("skillbox_execution_slots", 4.0),
        ("skillbox_refusals_total{code=\"not_found\"}", 2.0),
        (
            "skillbox_http_requests_total{method=\"GET\",route=\"/v1/skills/{name}\",status=\"404\"}",
            2.0,
        ),
        (
            "skillbox_http_requests_total{method=\"POST\",route=\"/v1/executions\",status=\"200\"}",
            2.0,
        ),
        (
            "skillbox_http_request_seconds_count{method=\"POST\",route=\"/v1/executions\"}",
            2.0,
        ),
    ] {
        assert!(
            (value(&text, sample) - expected).abs() < f64::EPSILON,
            "{sample} in\n{text}"
        );
    }
    assert!(value(&text, "skillbox_kept_bytes_total{kind=\"skills\"}") > 0.0);
    assert!(value(&text, "skillbox_store_write_seconds_count") >= 4.0);
}

#[tokio::test]
async fn counts_open_streams() {
    let server = TestServer::open().await;
    let id = server.run(json!({"code": "x", "language": "bash"})).await["execution_id"].clone();
    let id = id.as_str().unwrap();
    let mut open = Vec::new();
    for path in ["events", "logs?follow=true"] {
        let path = format!("/v1/executions/{id}/{path}");
        open.push(server.begin(Call::get(&path)).await);
    }
    let streams = async || value(&text(&server).await, "skillbox_streams_open").to_string();
    assert_eq!(streams().await, "2");
    open.pop();
    assert_eq!(streams().await, "1");
    open.pop();
    assert_eq!(streams().await, "0");
}

/// T-03: names of tenants, skills and requests are private, and would make an unlimited number of series.
#[tokio::test]
async fn metric_labels_contain_no_caller_data() {
    let server = TestServer::open().await;
    let key = server.key("hooli", &[Scope::Run, Scope::Skills]).await;
    server.publish(&key).await;
    let run = Call::post("/v1/executions").json(&json!({"skill": "probe", "input": {"pied": "piper"}}));
    assert_eq!(server.send(run.key(&key)).await.status, 200);
    server
        .send(Call::get("/secret-plan?signature=abc").key(&key))
        .await;
    let text = text(&server).await;
    for chosen in ["hooli", "probe", "piper", "secret-plan", "signature", &key] {
        assert!(!text.contains(chosen), "{chosen} in\n{text}");
    }
    assert!(
        value(
            &text,
            "skillbox_http_requests_total{method=\"GET\",route=\"(none)\",status=\"404\"}"
        ) > 0.0
    );
}

/// T-04.
#[tokio::test]
async fn only_default_tenant_administrator_reads_metrics() {
    let server = TestServer::open().await;
    let other = server.key("hooli", &[Scope::Admin]).await;
    let reply = server.send(Call::get("/metrics").key(&other)).await;
    assert_eq!(reply.refusal(), (403, "forbidden".to_owned()));

    let closed = Settings {
        metrics: MetricsRoute::Closed,
        ..Settings::default()
    };
    let server = TestServer::open_with(&closed).await;
    let reply = server.ask(Call::get("/metrics")).await;
    assert_eq!(reply.refusal(), (404, "not_found".to_owned()));
}

#[tokio::test]
async fn metrics_address_serves_only_metrics() {
    let server = TestServer::open().await;
    let app = metrics_app(server.engine.clone());
    for (route, _) in skillbox::http::matrix().lines() {
        let (method, path) = route.split_once(' ').unwrap();
        let request = Request::builder()
            .method(method)
            .uri(path.replace(['{', '}', '*'], ""));
        let response = app
            .router
            .clone()
            .oneshot(request.body(Body::empty()).unwrap())
            .await
            .unwrap();
        let expected = if path == "/metrics" { 200 } else { 404 };
        assert_eq!(response.status(), expected, "{route}");
    }
}

/// Type and description of each metric, as printed.
fn described(text: &str) -> BTreeMap<String, (String, String)> {
    let mut found = BTreeMap::<String, (String, String)>::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("# ")) {
        let mut words = line.splitn(3, ' ');
        let (word, name) = (words.next().unwrap(), words.next().unwrap());
        let rest = words.next().unwrap().to_owned();
        let entry = found.entry(name.to_owned()).or_default();
        match word {
            "TYPE" => entry.0 = rest,
            "HELP" => entry.1 = rest.trim_end_matches('.').to_owned(),
            other => panic!("{other}: {line}"),
        }
    }
    found
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn document_lists_exactly_the_printed_metrics() {
    let document = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/OBSERVABILITY.md");
    let document = std::fs::read_to_string(document).unwrap();
    let server = TestServer::open().await;
    server.publish(&server.admin).await;
    server.run(json!({"skill": "probe"})).await;
    server.ask(Call::get("/nowhere")).await;
    let printed = described(&text(&server).await);
    for (name, (kind, about)) in &printed {
        let start = format!("| `{name}` | {kind} | ");
        let row = document.lines().find(|line| line.starts_with(&start));
        assert!(
            row.is_some_and(|row| row.ends_with(&format!("| {about} |"))),
            "docs/OBSERVABILITY.md lacks:\n{start}… | {about} |"
        );
    }
    let rows = document
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let is_metric = |name: &&str| {
        let ours = name.starts_with("skillbox_") || name.starts_with("process_");
        ours && name.chars().all(|c| c.is_ascii_lowercase() || c == '_')
    };
    for name in rows.filter(is_metric) {
        assert!(
            printed.contains_key(name),
            "docs/OBSERVABILITY.md has {name}, which is not printed"
        );
    }
}
