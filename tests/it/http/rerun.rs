//! Requests of executions: shown byte for byte, and run again.

use axum::http::header;
use serde_json::{Value, json};
use skillbox::auth::Scope;
use skillbox::limits;

use super::client::{Call, Reply, TestServer, probe};

/// No number, space or name may be written another way.
const INPUT: &str = r#"{"n": 1e400,  "x":0.10, "big": 9007199254740993, "n":1}"#;

fn id(envelope: &Value) -> String {
    envelope["execution_id"].as_str().unwrap().to_owned()
}

async fn run_raw(server: &TestServer, body: &str) -> Reply {
    let reply = server
        .ask(Call::post("/v1/executions").raw_json(body.to_owned()))
        .await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply
}

async fn request_of(server: &TestServer, id: &str) -> Reply {
    let reply = server
        .ask(Call::get(&format!("/v1/executions/{id}/request")))
        .await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply
}

fn again(id: &str) -> Call {
    Call::post(&format!("/v1/executions/{id}/rerun"))
}

/// The answer without the number that this test's own parser cannot represent.
fn parsed(reply: &Reply) -> Value {
    serde_json::from_str(&reply.text().replace("1e400", "1")).unwrap()
}

/// A-04.
#[tokio::test]
async fn request_is_shown_and_run_again_byte_for_byte() {
    let server = TestServer::open().await;
    server.publish(&server.admin).await;
    let body = format!(
        r#"{{"skill":"probe","input":{INPUT},"args":["a  b","ü"],"stdin":"x\r\n","timeout":1.5,"files":{{"a/b.txt":"aGVsbG8="}}}}"#
    );
    let first = parsed(&run_raw(&server, &body).await);
    let shown = request_of(&server, &id(&first)).await;
    assert!(
        shown.text().contains(&format!("\"input\":{INPUT},")),
        "{}",
        shown.text()
    );
    let request = parsed(&shown);
    assert_eq!(
        (&request["kept"], &request["reason"]),
        (&json!(true), &Value::Null)
    );
    assert_eq!(request["request"]["args"], json!(["a  b", "ü"]));
    assert_eq!(request["request"]["stdin"], "x\r\n");
    assert_eq!(request["request"]["timeout"], 1.5);
    assert_eq!(request["request"]["files"], json!({"a/b.txt": "aGVsbG8="}));
    let digest = "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
    assert_eq!(
        request["files"],
        json!([{"path": "a/b.txt", "size": 5, "sha256": digest, "kept": true}])
    );

    let second = server.ask(again(&id(&first))).await;
    assert_eq!(second.status, 200, "{}", second.text());
    assert!(
        second.text().contains(&format!("\"output\":{INPUT},")),
        "{}",
        second.text()
    );
    let second = parsed(&second);
    assert_ne!(id(&second), id(&first));
    assert_eq!(second["files_list"], json!(["a/b.txt"]));
    // What ran again can be run again, and what was shown can be sent.
    assert_eq!(server.ask(again(&id(&second))).await.status, 200);
    let text = shown.text();
    let (_, text) = text.split_once("\"request\":").unwrap();
    let (text, _) = text.rsplit_once(",\"files\":[").unwrap();
    let third = run_raw(&server, text).await;
    assert!(third.text().contains(&format!("\"output\":{INPUT},")));
}

#[tokio::test]
async fn code_and_null_input_run_again() {
    let server = TestServer::open().await;
    let code = "print(1)\r\n".repeat(10_000);
    let body = json!({"code": code, "language": "bash", "input": null});
    let first = server.run(body).await;
    let shown = request_of(&server, &id(&first)).await.json();
    assert_eq!(shown["request"]["code"], code);
    assert_eq!(shown["request"]["language"], "bash");
    let second = server
        .ask(again(&id(&first)).json(&json!({"version": "latest"})))
        .await;
    assert_eq!(second.status, 200, "{}", second.text());
    assert!(
        second
            .text()
            .contains("\"output\":null,\"output_preview\":\"null\""),
        "{}",
        second.text()
    );
}

#[tokio::test]
async fn same_version_runs_the_content_that_ran_and_latest_the_newest() {
    let server = TestServer::open().await;
    let push = async |version: &str| {
        let archive = probe(&format!("version: {version}\n"));
        let reply = server.ask(Call::upload(archive)).await;
        assert_eq!(reply.status, 201, "{}", reply.text());
    };
    push("1.0.0").await;
    let first = server.run(json!({"skill": "probe"})).await;
    push("2.0.0").await;
    let version = async |body: &Value| {
        let reply = server.ask(again(&id(&first)).json(body)).await;
        (reply.status.as_u16(), reply.json())
    };
    let (_, same) = version(&json!({"version": "same"})).await;
    assert_eq!(
        (&same["version"], &same["digest"]),
        (&json!("1.0.0"), &first["digest"])
    );
    let (_, same) = version(&json!({})).await;
    assert_eq!(same["version"], "1.0.0");
    let (_, latest) = version(&json!({"version": "latest"})).await;
    assert_eq!(latest["version"], "2.0.0");

    server.ask(Call::delete("/v1/skills/probe/1.0.0")).await;
    let (status, problem) = version(&json!({"version": "same"})).await;
    assert_eq!((status, &problem["code"]), (404, &json!("not_found")));
    let detail = problem["detail"].as_str().unwrap();
    assert!(
        detail.contains("`probe` 1.0.0") && detail.contains("latest"),
        "{detail}"
    );
    let (status, _) = version(&json!({"version": "latest"})).await;
    assert_eq!(status, 200);
}

#[tokio::test]
async fn rerun_answers_as_a_run_does() {
    let server = TestServer::open().await;
    server.publish(&server.admin).await;
    let first = id(&server.run(json!({"skill": "probe", "input": {"x": 1}})).await);
    let queued = server.ask(again(&first).json(&json!({"mode": "async"}))).await;
    assert_eq!(queued.status, 202, "{}", queued.text());
    let location = queued.header(header::LOCATION).to_owned();
    let ended = server.ask(Call::get(&format!("{location}?wait=30"))).await.json();
    assert_eq!(
        (&ended["status"], &ended["output"]),
        (&json!("success"), &json!({"x": 1}))
    );
    // An execution from the queue keeps its request, too.
    let shown = request_of(&server, &id(&ended)).await.json();
    assert_eq!(shown["request"]["input"], json!({"x": 1}));

    let events = server
        .ask(again(&first).header(header::ACCEPT, "text/event-stream"))
        .await;
    assert_eq!(events.header(header::CONTENT_TYPE), "text/event-stream");
    assert!(events.text().contains("event: result") && events.text().contains("event: end"));

    let keyed = |call: Call| call.header("idempotency-key".parse().unwrap(), "again-1");
    let once = server.ask(keyed(again(&first))).await.json();
    assert_eq!(id(&server.ask(keyed(again(&first))).await.json()), id(&once));

    for wrong in [
        json!({"version": "1.0.0"}),
        json!({"mode": "async", "on_disconnect": "cancel"}),
        json!({"input": 1}),
    ] {
        let refused = server.ask(again(&first).json(&wrong)).await;
        assert_eq!(refused.refusal(), (400, "invalid".to_owned()), "{wrong}");
    }
    let text = server.ask(again(&first).body("{}")).await;
    assert_eq!(text.refusal().0, 415, "a body needs its type");
}

#[tokio::test]
async fn request_above_limit_is_not_kept_and_names_what_is_missing() {
    let server = TestServer::open().await;
    server.publish(&server.admin).await;
    let max = usize::try_from(limits::KEEP_REQUEST_BYTES).unwrap();
    let large = server
        .run(json!({"skill": "probe", "input": "x".repeat(max)}))
        .await;
    let shown = request_of(&server, &id(&large)).await.json();
    assert_eq!((&shown["kept"], &shown["request"]), (&json!(false), &Value::Null));
    let reason = shown["reason"].as_str().unwrap();
    assert!(reason.contains("executions.keep_request"), "{reason}");
    let refused = server.ask(again(&id(&large))).await;
    assert_eq!(refused.refusal(), (400, "invalid".to_owned()));
    assert!(
        refused.text().contains("send the request again"),
        "{}",
        refused.text()
    );

    let fits = server
        .run(json!({"skill": "probe", "input": "x".repeat(max - 100)}))
        .await;
    assert_eq!(request_of(&server, &id(&fits)).await.json()["kept"], true);

    // 300,000 bytes in base64.
    let files = json!({"small.txt": "aGVsbG8=", "big.bin": "AAAA".repeat(100_000)});
    let partly = server.run(json!({"skill": "probe", "files": files})).await;
    let shown = request_of(&server, &id(&partly)).await.json();
    assert_eq!(shown["kept"], true);
    assert_eq!(shown["request"]["files"], json!({"small.txt": "aGVsbG8="}));
    let kept: Vec<_> = shown["files"].as_array().unwrap().iter().collect();
    assert_eq!(
        (&kept[0]["path"], &kept[0]["size"], &kept[0]["kept"]),
        (&json!("big.bin"), &json!(300_000), &json!(false))
    );
    assert_eq!(
        (&kept[1]["path"], &kept[1]["kept"]),
        (&json!("small.txt"), &json!(true))
    );
    let refused = server.ask(again(&id(&partly))).await;
    assert_eq!(refused.refusal(), (400, "invalid".to_owned()));
    assert!(
        refused
            .text()
            .contains("the request's file \\\"big.bin\\\" was not kept")
            || refused
                .text()
                .contains("the request's file `big.bin` was not kept"),
        "{}",
        refused.text()
    );
}

/// O-09: names of files and scripts are text, whatever they contain.
#[tokio::test]
async fn hostile_names_read_back_unchanged() {
    let server = TestServer::open().await;
    server.publish(&server.admin).await;
    let name = "\u{202e}<img src=x onerror=alert(1)>'\"; drop table execution_requests; --.txt";
    let first = server
        .run(json!({"skill": "probe", "files": {name: "aGVsbG8="}, "args": ["\u{1b}[31m</script>"]}))
        .await;
    let reply = request_of(&server, &id(&first)).await;
    assert_eq!(reply.header(header::CONTENT_TYPE), "application/json");
    let shown = reply.json();
    assert_eq!(shown["files"][0]["path"], name);
    assert_eq!(shown["request"]["args"][0], "\u{1b}[31m</script>");
    assert_eq!(server.ask(again(&id(&first))).await.status, 200);
}

/// S: no route returns the value of a secret.
#[tokio::test]
async fn request_with_value_of_secret_is_not_kept() {
    let server = TestServer::open().await;
    let value = "correct-horse-battery";
    let put = Call::new(axum::http::Method::PUT, "/v1/secrets/TOKEN");
    assert_eq!(server.ask(put.json(&json!({"value": value}))).await.status, 201);
    let archive = probe("permissions:\n  secrets: [TOKEN]\n");
    assert_eq!(server.ask(Call::upload(archive)).await.status, 201);
    let harmless = server.run(json!({"skill": "probe", "input": "x"})).await;
    let shown = request_of(&server, &id(&harmless)).await;
    assert!(shown.json()["kept"] == true && !shown.text().contains(value));
    let leaking = server
        .run(json!({"skill": "probe", "input": {"a": [value]}}))
        .await;
    let shown = request_of(&server, &id(&leaking)).await;
    assert!(
        shown.json()["kept"] == false && !shown.text().contains(value),
        "{}",
        shown.text()
    );
}

#[tokio::test]
async fn request_is_deleted_with_its_execution_and_needs_scope_run() {
    let server = TestServer::open().await;
    let first = id(&server.run(json!({"code": "1"})).await);
    let path = format!("/v1/executions/{first}/request");
    let skills_only = server.key("default", &[Scope::Skills]).await;
    assert_eq!(server.send(Call::get(&path).key(&skills_only)).await.status, 403);
    assert_eq!(server.send(again(&first).key(&skills_only)).await.status, 403);
    server.ask(Call::delete(&format!("/v1/executions/{first}"))).await;
    assert_eq!(server.ask(Call::get(&path)).await.refusal().0, 404);
    assert_eq!(server.ask(again(&first)).await.refusal().0, 404);
}
