//! What a real server reports about itself: log lines with ids, and metrics on their own address.

use std::net::TcpListener;

use serde_json::{Value, json};
use skillbox::skill::Language;

use crate::server::Server;
use crate::world::{Backend, World, archive};

#[tokio::test(flavor = "multi_thread")]
async fn log_lines_have_ids_and_metrics_have_own_port() {
    if World::on(Backend::Native).await.is_none() {
        return;
    }
    tokio::task::spawn_blocking(observed).await.unwrap();
}

fn observed() {
    let folder = tempfile::tempdir().unwrap();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let listen = free.to_string();
    let env = [
        ("SKILLBOX_SANDBOX_BACKEND", "native"),
        ("SKILLBOX_LOG_FORMAT", "json"),
        ("SKILLBOX_METRICS_LISTEN", &listen),
    ];
    let server = Server::start_with(&folder.path().join("data"), &env);
    server.publish(archive(
        Language::Python,
        "version: 1.0.0\n",
        "print('unheard-of')\n",
    ));
    let asked = json!({"skill": "probe", "input": {"word": "hush"}});
    let body = server.post_json("/v1/executions", &asked).body;
    let id = body["execution_id"].as_str().unwrap();
    let log = server.log();
    let lines: Vec<Value> = log
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let of = |message: &str| {
        let found = lines
            .iter()
            .find(|line| line["message"].as_str().unwrap().starts_with(message));
        found.unwrap_or_else(|| panic!("no line `{message}` in {log}"))
    };
    let finished = of("Finished execution");
    let answered = of("Answered POST /v1/executions");
    for line in [finished, answered] {
        assert_eq!(line["execution.id"], id, "{line}");
        assert_eq!(
            (&line["tenant"], &line["level"]),
            (&json!("default"), &json!("INFO")),
            "{line}"
        );
        assert!(
            line["request.id"].is_string() && line["key.id"].is_string() && line["peer"].is_string(),
            "{line}"
        );
    }
    assert_eq!(finished["request.id"], answered["request.id"]);
    assert_eq!(
        (&answered["request.route"], &answered["status"]),
        (&json!("/v1/executions"), &json!(200))
    );
    assert!(answered["duration_ms"].is_number());
    let said = serde_json::to_string(&lines).unwrap();
    for secret in ["hush", "unheard-of", &server.key()] {
        assert!(!said.contains(secret), "{secret} in {log}");
    }

    let url = format!("http://{listen}/metrics");
    let text = ureq::get(&url)
        .call()
        .unwrap()
        .body_mut()
        .read_to_string()
        .unwrap();
    for part in [
        "skillbox_executions_total{status=\"success\",backend=\"native\",language=\"python\"} 1\n",
        "skillbox_warm_misses_total 1\n",
        "process_resident_memory_bytes ",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
}
