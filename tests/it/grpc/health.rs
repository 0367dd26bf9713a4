//! `grpc.health.v1.Health`.

use http_body_util::BodyExt as _;
use serde_json::json;

use super::client::{call, messages, method, send};
use crate::http::client::{TestServer, next_piece};

const CHECK: &str = "/grpc.health.v1.Health/Check";
const WATCH: &str = "/grpc.health.v1.Health/Watch";

#[tokio::test]
async fn check_needs_no_key_and_names_unknown_services() {
    let server = TestServer::open().await;
    for service in ["", "skillbox.v1.ExecutionService", "skillbox.v1.SkillService"] {
        let check = call(CHECK, &[json!({"service": service})]);
        let health = send(&server, CHECK, check).await.only();
        assert_eq!(health, json!({"status": "SERVING"}), "{service}");
    }
    let unknown = send(&server, CHECK, call(CHECK, &[json!({"service": "x"})])).await;
    assert_eq!((unknown.code(), unknown.status), ("not_found", 5));
}

#[tokio::test]
async fn watch_reports_the_shutdown_and_ends() {
    let server = TestServer::open().await;
    let mut watched = server.begin_as(call(WATCH, &[json!({})])).await.into_body();
    let first = next_piece(&mut watched).await;
    let read = |bytes: &[u8]| messages(method(WATCH).output(), bytes);
    assert_eq!(read(&first), [json!({"status": "SERVING"})]);
    server
        .engine
        .maintenance()
        .shutdown(std::time::Duration::ZERO)
        .await;
    let rest = watched.collect().await.unwrap();
    assert_eq!(rest.trailers().unwrap()["grpc-status"], "0");
    assert_eq!(read(&rest.to_bytes()), [json!({"status": "NOT_SERVING"})]);
}

/// Clients without a key share few streams, and never those of tenants.
#[tokio::test]
async fn watchers_are_limited() {
    let server = TestServer::open().await;
    let mut watched = Vec::new();
    for _ in 0..skillbox::limits::HEALTH_WATCHERS_MAX {
        watched.push(server.begin_as(call(WATCH, &[json!({"service": "x"})])).await);
    }
    let further = send(&server, WATCH, call(WATCH, &[json!({})])).await;
    assert_eq!((further.code(), further.status), ("busy", 14));
    let first = next_piece(watched[0].body_mut()).await;
    let unknown = messages(method(WATCH).output(), &first);
    assert_eq!(unknown, [json!({"status": "SERVICE_UNKNOWN"})]);
    watched.pop();
    let mut further = server.begin_as(call(WATCH, &[json!({})])).await;
    assert!(further.headers().get("grpc-status").is_none());
    next_piece(further.body_mut()).await;
}
