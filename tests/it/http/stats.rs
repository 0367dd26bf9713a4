//! Statistics of ended executions.

use serde_json::{Value, json};
use skillbox::auth::Scope;

use super::client::{Call, TestServer};

async fn stats(server: &TestServer, query: &str) -> Value {
    let reply = server.ask(Call::get(&format!("/v1/stats{query}"))).await;
    assert_eq!(reply.status, 200, "{query}: {}", reply.text());
    reply.json()
}

/// All executions in `buckets`.
fn in_buckets(stats: &Value, status: &str) -> u64 {
    let buckets = stats["buckets"].as_array().unwrap().iter();
    buckets
        .map(|bucket| bucket["counts"][status].as_u64().unwrap())
        .sum()
}

async fn run_some(server: &TestServer) {
    server.publish(&server.admin).await;
    for args in [json!([]), json!([]), json!(["exit=1"])] {
        server.run(json!({"skill": "probe", "args": args})).await;
    }
    server.run(json!({"code": "x", "language": "bash"})).await;
}

#[tokio::test]
async fn counts_executions_by_status_and_skill() {
    let server = TestServer::open().await;
    run_some(&server).await;
    let found = stats(&server, "").await;
    let totals = json!({
        "success": 3, "failed": 1, "timeout": 0, "oom": 0, "cancelled": 0, "denied": 0, "interrupted": 0,
    });
    assert_eq!(found["totals"], totals);
    assert_eq!(found["bucket_seconds"], 1800);
    let count = found["buckets"].as_array().unwrap().len();
    assert!((48..=49).contains(&count), "{count}");
    assert_eq!(
        (in_buckets(&found, "success"), in_buckets(&found, "failed")),
        (3, 1)
    );
    for percentile in ["p50", "p95", "p99"] {
        assert!(
            found["duration_ms"][percentile].as_f64().unwrap() > 0.0,
            "{found}"
        );
    }
    let skills = found["skills"].as_array().unwrap();
    let facts = |skill: &Value| json!([skill["skill"], skill["count"], skill["failed"]]);
    let listed: Vec<_> = skills.iter().map(facts).collect();
    assert_eq!(listed, [json!(["probe", 3, 1]), json!([null, 1, 0])]);
    let spark = skills[0]["spark"].as_array().unwrap();
    assert_eq!(spark.len(), count);
    assert_eq!(spark.iter().map(|n| n.as_u64().unwrap()).sum::<u64>(), 3);

    let of_skill = stats(&server, "?skill=probe&buckets=200").await;
    assert_eq!(of_skill["totals"]["success"], 2);
    assert_eq!(of_skill["skills"].as_array().unwrap().len(), 1);
    let before = stats(&server, "?until=2026-01-02T00:00:00Z").await;
    assert_eq!(before["totals"]["success"], 0);
    assert_eq!(
        before["duration_ms"],
        json!({"p50": null, "p95": null, "p99": null})
    );
}

/// T-02.
#[tokio::test]
async fn counts_no_execution_of_another_tenant() {
    let server = TestServer::open().await;
    run_some(&server).await;
    let stranger = server.key("other", &[Scope::Admin]).await;
    for query in ["", "?skill=probe"] {
        let call = Call::get(&format!("/v1/stats{query}")).key(&stranger);
        let found = server.send(call).await.json();
        assert_eq!(found["totals"]["success"], 0);
        assert_eq!(found["skills"], json!([]));
    }
}

#[tokio::test]
async fn deleted_executions_stay_counted() {
    let server = TestServer::open().await;
    run_some(&server).await;
    let before = stats(&server, "?buckets=200").await;
    let prune = Call::post("/v1/executions/prune").json(&json!({}));
    assert_eq!(server.ask(prune).await.json()["count"], 4);
    let mut after = stats(&server, "?buckets=200").await;
    // A bucket may have begun meanwhile.
    for member in ["since", "until", "buckets"] {
        after[member] = before[member].clone();
    }
    assert_eq!(after["totals"], before["totals"]);
    assert_eq!(after["duration_ms"], before["duration_ms"]);
    server.engine.maintenance().run().await;
    assert_eq!(stats(&server, "").await["totals"], before["totals"]);
}

#[tokio::test]
async fn rejects_impossible_times_and_numbers_by_name() {
    let server = TestServer::open().await;
    for (query, named) in [
        ("?since=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z", "since"),
        ("?since=yesterday", "since"),
        ("?buckets=1", "buckets"),
        ("?buckets=201", "buckets"),
        ("?buckets=x", "buckets"),
        ("?skill=Not%20a%20skill", "skill"),
        ("?bucket=3", "bucket"),
    ] {
        let reply = server.ask(Call::get(&format!("/v1/stats{query}"))).await;
        assert_eq!(reply.refusal(), (400, "invalid".to_owned()), "{query}");
        assert!(reply.text().contains(named), "{query}: {}", reply.text());
    }
}
