//! Lists of executions by status, source and key, and executions without their large parts.

use axum::http::header;
use serde_json::{Value, json};
use skillbox::auth::Scope;

use super::client::{Call, TestServer};

async fn ids(server: &TestServer, query: &str) -> Vec<String> {
    let list = server.ask(Call::get(&format!("/v1/executions?{query}"))).await;
    assert_eq!(list.status, 200, "{query}: {}", list.text());
    let list = list.json();
    let items = list["items"].as_array().unwrap().iter();
    items.map(id).collect()
}

fn id(execution: &Value) -> String {
    execution["execution_id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn lists_several_statuses_code_and_key() {
    let server = TestServer::open().await;
    server.publish(&server.admin).await;
    let other_key = server.key("default", &[Scope::Run]).await;
    let skill = server.run(json!({"skill": "probe"})).await;
    let failed = server.run(json!({"skill": "probe", "args": ["exit=1"]})).await;
    let code = json!({"code": "x", "language": "bash"});
    let by_other = server
        .send(Call::post("/v1/executions").json(&code).key(&other_key))
        .await
        .json();
    assert_eq!(by_other["language"], "bash");
    assert_eq!(by_other["key"]["name"], "test");
    let [skill, failed, code] = [&skill, &failed, &by_other].map(id);
    let key = by_other["key"]["id"].as_str().unwrap();

    let all = [&code, &failed, &skill];
    let (of_key, of_both) = (
        format!("key={key}"),
        format!("key={key}&code=true&status=success"),
    );
    let (mixed, foreign) = (
        format!("key={key}&status=failed"),
        format!("key={key}&skill=probe"),
    );
    let expected: [(&str, &[&String]); 10] = [
        ("status=failed", &[&failed]),
        ("status=failed,timeout", &[&failed]),
        ("status=success,failed", &all),
        ("code=true", &[&code]),
        ("code=false", &all),
        ("skill=probe", &[&failed, &skill]),
        (&of_key, &[&code]),
        (&of_both, &[&code]),
        (&mixed, &[]),
        (&foreign, &[]),
    ];
    for (query, expected) in expected {
        let found = ids(&server, query).await;
        assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{query}");
    }
    let list = server.ask(Call::get("/v1/executions?limit=1")).await.json();
    assert_eq!(list["items"][0]["language"], "bash");
    assert_eq!(list["items"][0]["key"], json!({"id": key, "name": "test"}));

    // T-02: the key of another tenant selects nothing of its executions.
    let stranger = server.key("other", &[Scope::Run]).await;
    let foreign = Call::get(&format!("/v1/executions?key={key}")).key(&stranger);
    assert_eq!(server.send(foreign).await.json()["items"], json!([]));
}

#[tokio::test]
async fn pages_of_several_statuses_are_complete() {
    let server = TestServer::open().await;
    let mut expected = Vec::new();
    for n in 0..5 {
        let ask = json!({"code": "x", "language": "bash", "args": [format!("exit={}", n % 2)]});
        expected.insert(0, id(&server.run(ask).await));
    }
    let (mut found, mut token) = (Vec::new(), String::new());
    loop {
        // The order of the words makes no other list.
        let words = ["failed,success", "success,failed"][found.len() % 2];
        let path = format!("/v1/executions?limit=2&status={words}{token}");
        let page = server.ask(Call::get(&path)).await.json();
        found.extend(page["items"].as_array().unwrap().iter().map(id));
        match page["next_page_token"].as_str() {
            Some(next) => token = format!("&page_token={next}"),
            None => break,
        }
    }
    assert_eq!(found, expected);
}

#[tokio::test]
async fn rejects_unknown_words_by_name() {
    let server = TestServer::open().await;
    for (query, named) in [
        ("status=failed,nope", "nope"),
        ("status=", "status"),
        ("code=true&skill=a", "code"),
        ("key=nope", "key"),
    ] {
        let reply = server.ask(Call::get(&format!("/v1/executions?{query}"))).await;
        assert_eq!(reply.refusal(), (400, "invalid".to_owned()), "{query}");
        assert!(reply.text().contains(named), "{query}: {}", reply.text());
    }
    let run = server.run(json!({"code": "x", "language": "bash"})).await;
    for path in ["", "/events"] {
        let reply = server
            .ask(Call::get(&format!(
                "/v1/executions/{}{path}?omit=logs,files",
                id(&run)
            )))
            .await;
        assert_eq!(reply.refusal(), (400, "invalid".to_owned()), "{path}");
        assert!(reply.text().contains("files"), "{}", reply.text());
    }
}

#[tokio::test]
async fn omits_large_parts_of_an_execution() {
    let server = TestServer::open().await;
    let ask = json!({"code": "x", "language": "bash", "input": {"n": 1}});
    let full = server.run(ask).await;
    assert_eq!(full["omitted"], json!([]));
    let path = format!("/v1/executions/{}", id(&full));
    let mut expected = full.clone();
    expected["omitted"] = json!(["logs", "output"]);
    expected["output"] = Value::Null;
    expected["output_preview"] = Value::Null;
    let texts =
        json!({"stdout": "", "stderr": "", "truncated": false, "lines": [], "lines_truncated": false});
    expected["logs"] = texts.clone();
    expected["logs_preview"] = json!("");
    for query in ["omit=output,logs", "omit=logs,output&wait=1"] {
        let brief = server.ask(Call::get(&format!("{path}?{query}"))).await;
        assert_eq!(brief.json(), expected, "{query}");
    }
    let results = server
        .ask(Call::get(&format!("{path}?omit=results")))
        .await
        .json();
    assert_eq!(
        (&results["output"], &results["logs"]),
        (&full["output"], &full["logs"])
    );
    assert_eq!(results["omitted"], json!(["results"]));

    let reply = server.ask(Call::get(&format!("{path}/events?omit=logs"))).await;
    assert_eq!(reply.header(header::CONTENT_TYPE), "text/event-stream");
    let text = reply.text();
    let names: Vec<_> = text
        .lines()
        .filter_map(|line| line.strip_prefix("event: "))
        .collect();
    assert_eq!(names, ["status", "result", "end"]);
    let data = text
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .nth(1)
        .unwrap();
    let result: Value = serde_json::from_str(data).unwrap();
    assert_eq!((&result["logs"], &result["output"]), (&texts, &full["output"]));
    assert_eq!(result["omitted"], json!(["logs"]));
}
