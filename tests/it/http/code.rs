//! Code in a request, over HTTP: what is accepted, and what the response contains.

use serde_json::{Value, json};
use skillbox::limits;

use super::client::{Call, TestServer};

#[tokio::test]
async fn runs_code_without_skill() {
    let server = TestServer::open().await;
    for (body, input) in [
        (json!({"code": "1 + 1"}), json!({})),
        (json!({"code": "x", "language": "node", "input": [1]}), json!([1])),
        (
            json!({"code": "x", "language": "bash", "args": ["exit=0"]}),
            json!({}),
        ),
        (json!({"code": "x", "args": {"n": 21}}), json!({"n": 21})),
    ] {
        let envelope = server.run(body.clone()).await;
        assert_eq!(envelope["status"], "success", "{body}");
        assert_eq!(
            (&envelope["skill"], &envelope["version"]),
            (&Value::Null, &Value::Null)
        );
        let digest = skillbox::ids::Digest::of(body["code"].as_str().unwrap().as_bytes());
        assert_eq!(envelope["digest"], digest.to_string());
        // The scripted sandbox hands back what it was given.
        assert_eq!(envelope["output"], input, "{body}");
        assert_eq!(envelope["output_preview"], input.to_string());
        assert_eq!(envelope["logs_preview"], "out \u{fffd}\nerr\n");
    }
}

#[tokio::test]
async fn request_needs_either_skill_or_code() {
    let server = TestServer::open().await;
    server.publish(&server.admin).await;
    for (body, named) in [
        (json!({}), "skill"),
        (json!({"input": 1}), "skill"),
        (json!({"skill": "probe", "code": "1"}), "code"),
        (json!({"skill": "probe", "language": "python"}), "language"),
        (json!({"code": "1", "version": "1.0.0"}), "version"),
        (json!({"code": "1", "script": "scripts/x.py"}), "script"),
        (json!({"code": "1", "language": "ruby"}), "language"),
        (json!({"code": 1}), "code"),
        (json!({"code": "1", "args": "x"}), "args"),
        (json!({"code": "1", "args": [1]}), "args[0]"),
        (json!({"code": "1", "args": {}, "input": {}}), "args, input"),
    ] {
        let reply = server.ask(Call::post("/v1/executions").json(&body)).await;
        assert_eq!(reply.refusal(), (400, "invalid".to_owned()), "{body}");
        let detail = reply.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains(named), "{body}: {detail}");
    }
    let long = json!({"code": "#".repeat(limits::CODE_BYTES_MAX + 1)});
    let reply = server.ask(Call::post("/v1/executions").json(&long)).await;
    assert_eq!(reply.refusal(), (413, "too_large".to_owned()));
}
