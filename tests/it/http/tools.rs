//! Skills as the tools of a model, and what their schemas make of inputs and outputs.

use axum::http::header;
use serde_json::{Value, json};
use skillbox::auth::Scope;

use super::client::{Call, TestServer, probe};
use crate::world::zip_of;

fn zip(files: &[(&str, &str)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut zip_of(files), &mut bytes).unwrap();
    bytes
}

async fn publish(server: &TestServer, zip: Vec<u8>) {
    let reply = server.ask(Call::upload(zip)).await;
    assert_eq!(reply.status, 201, "{}", reply.text());
}

async fn filled() -> TestServer {
    let server = TestServer::open().await;
    let program = "---\nname: sales.top\ndescription: Sorts\nlang: python\ninput_schema: {type: object, required: [n]}\n---\n";
    publish(&server, zip(&[("SKILL.md", program), ("scripts/main.py", "")])).await;
    let style = "---\nname: style\ndescription: \"Says <how> & \\u202e why\"\n---\nSo.\n";
    publish(&server, zip(&[("SKILL.md", style)])).await;
    let tools = "---\nname: tables\ndescription: Works on tables\n---\n";
    publish(
        &server,
        zip(&[
            ("SKILL.md", tools),
            ("scripts/a.py", "\"\"\"Counts rows.\"\"\"\n"),
            ("scripts/b.py", "print()\n"),
        ]),
    )
    .await;
    server
}

#[tokio::test]
async fn lists_every_callable_skill_as_tool() {
    let server = filled().await;
    let listed = server.ask(Call::get("/v1/tools")).await.json();
    assert_eq!(listed["next_page_token"], Value::Null);
    let tools = listed["items"].as_array().unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["sales_top", "tables"], "instructions are no tool");
    assert_eq!(
        tools[0]["inputSchema"],
        json!({"type": "object", "required": ["n"]})
    );
    assert_eq!(
        tools[1]["inputSchema"]["properties"]["script"]["enum"],
        json!(["scripts/a.py", "scripts/b.py"])
    );
    for (format, name) in [
        ("openai", "/items/0/function/name"),
        ("anthropic", "/items/0/name"),
    ] {
        let listed = server
            .ask(Call::get(&format!("/v1/tools?format={format}")))
            .await
            .json();
        assert_eq!(listed.pointer(name), Some(&json!("sales_top")), "{format}");
    }
    let refused = server.ask(Call::get("/v1/tools?format=other")).await;
    assert_eq!(refused.refusal(), (400, "invalid".to_owned()));
}

#[tokio::test]
async fn paginates_tools_per_tenant() {
    let server = filled().await;
    let (mut names, mut path, mut pages) = (Vec::new(), "/v1/tools?limit=1".to_owned(), 0);
    loop {
        let page = server.ask(Call::get(&path)).await.json();
        let items = page["items"].as_array().unwrap();
        names.extend(items.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()));
        pages += 1;
        let Some(token) = page["next_page_token"].as_str() else {
            break;
        };
        path = format!("/v1/tools?limit=1&page_token={token}");
    }
    assert_eq!((names.len(), pages), (2, 3));
    let other = server.key("other", &[Scope::Run]).await;
    for path in ["/v1/tools", "/v1/tools/prompt"] {
        let reply = server.send(Call::get(path).key(&other)).await;
        assert!(!reply.text().contains("sales"), "{}", reply.text());
    }
}

/// W-13.
#[tokio::test]
async fn prompt_lists_every_skill() {
    let server = filled().await;
    let reply = server.ask(Call::get("/v1/tools/prompt")).await;
    assert_eq!(reply.header(header::CONTENT_TYPE), "text/plain; charset=utf-8");
    let text = reply.text();
    assert!(
        text.starts_with("<available_skills>\n<skill>\n<name>sales.top</name>\n"),
        "{text}"
    );
    assert!(text.contains(
        "<description>Says &lt;how&gt; &amp;  why</description>\n<location>/skills/style/SKILL.md</location>"
    ));
    assert_eq!(text.matches("<skill>").count(), 3);
    let first = server.ask(Call::get("/v1/tools/prompt?limit=2")).await;
    let token = first.headers["x-next-page-token"].to_str().unwrap().to_owned();
    let rest = server
        .ask(Call::get(&format!("/v1/tools/prompt?limit=2&page_token={token}")))
        .await;
    assert!(rest.text().contains("<name>tables</name>") && !rest.headers.contains_key("x-next-page-token"));
}

/// refused with every place, before anything is recorded.
#[tokio::test]
async fn rejects_input_that_violates_schema_without_recording() {
    let server = TestServer::open().await;
    let schema = "input_schema: {type: object, required: [path], properties: {rows: {type: array, items: {type: integer}}}}\n";
    publish(&server, probe(schema)).await;
    let ask = async |body: Value| server.ask(Call::post("/v1/executions").json(&body)).await;
    let refused = ask(json!({"skill": "probe", "input": {"rows": [1, "secret", 2.5]}})).await;
    assert_eq!(refused.refusal(), (400, "invalid".to_owned()));
    let problem = refused.json();
    assert_eq!(
        problem["errors"],
        json!([
            {"pointer": "", "message": "\"path\" is a required property"},
            {"pointer": "/rows/1", "message": "value is not of type \"integer\""},
            {"pointer": "/rows/2", "message": "value is not of type \"integer\""},
        ])
    );
    assert!(
        problem["detail"]
            .as_str()
            .unwrap()
            .contains("input violates the skill"),
        "{problem}"
    );
    assert!(!refused.text().contains("secret"));
    assert_eq!(
        ask(json!({"skill": "probe"})).await.status,
        400,
        "no input is an empty object"
    );
    let listed = server.ask(Call::get("/v1/executions")).await.json();
    assert_eq!(listed["items"], json!([]));
    let fine = ask(json!({"skill": "probe", "input": {"path": "a", "rows": [1]}}))
        .await
        .json();
    assert_eq!(fine["status"], "success");
}

#[tokio::test]
async fn output_that_violates_schema_is_stored_and_fails() {
    let server = TestServer::open().await;
    publish(
        &server,
        probe("output_schema: {type: object, properties: {n: {maximum: 5}}}\n"),
    )
    .await;
    let fine = server.run(json!({"skill": "probe", "input": {"n": 5}})).await;
    assert_eq!(
        (&fine["status"], &fine["error"]),
        (&json!("success"), &Value::Null)
    );
    let failed = server.run(json!({"skill": "probe", "input": {"n": 6}})).await;
    assert_eq!(failed["status"], "failed");
    assert_eq!(failed["error"]["code"], "output_schema");
    let message = failed["error"]["message"].as_str().unwrap();
    assert!(message.contains("at `/n`"), "{message}");
    assert_eq!(
        (&failed["output"], &failed["exit_code"]),
        (&json!({"n": 6}), &json!(0))
    );
    let path = format!("/v1/executions/{}", failed["execution_id"].as_str().unwrap());
    assert_eq!(
        server.ask(Call::get(&path)).await.json()["error"]["code"],
        "output_schema"
    );
    // A failure of the program is reported by its own status.
    let exited = server
        .run(json!({"skill": "probe", "input": {"n": 6}, "args": ["exit=3"]}))
        .await;
    assert_eq!(exited["error"]["code"], "exit_code");
}

#[tokio::test]
async fn rejects_skill_with_invalid_schema() {
    let server = TestServer::open().await;
    for (schema, says) in [
        ("{type: int}", "`/type`"),
        (
            "{$ref: 'https://example.com/a.json'}",
            "cannot refer to other documents",
        ),
        ("{$ref: 'file:///etc/passwd'}", "cannot refer to other documents"),
        ("{pattern: '(?=a)'}", "look-around"),
    ] {
        let reply = server
            .ask(Call::upload(probe(&format!("input_schema: {schema}\n"))))
            .await;
        assert_eq!(reply.refusal(), (400, "invalid".to_owned()), "{schema}");
        let text = reply.text();
        assert!(text.contains("input_schema") && text.contains(says), "{text}");
    }
}
