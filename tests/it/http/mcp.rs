//! `/mcp` without a network: both generations of the protocol, its limits, and what a tenant sees.

use axum::http::{HeaderName, Method, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use skillbox::auth::Scope;
use skillbox::limits;

use super::client::{Call, Reply, TestServer};
use crate::world::zip_of;

const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const ACCEPTED: &str = "application/json, text/event-stream";

/// Generations of the protocol: with a handshake, and with everything in each request.
const GENERATIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];

/// A message at a path that may pin skills.
pub(super) fn message_at(path: &str, generation: &str, method: &str, mut params: Value) -> Call {
    let mut call = Call::post(path)
        .header(header::ACCEPT, ACCEPTED)
        .header(VERSION, generation);
    if generation == GENERATIONS[1] {
        params["_meta"]["io.modelcontextprotocol/protocolVersion"] = generation.into();
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
        call = call.header(METHOD, method);
        let name = params["name"]
            .as_str()
            .or(params["uri"].as_str().filter(|_| method == "resources/read"));
        if let Some(name) = name {
            call = call.header(NAME, name);
        }
    }
    call.json(&json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }))
}

fn message(generation: &str, method: &str, params: Value) -> Call {
    message_at("/mcp", generation, method, params)
}

/// The result of a message of the newest generation.
pub(super) async fn result(server: &TestServer, key: &str, method: &str, params: Value) -> Value {
    let reply = server
        .send(message(GENERATIONS[1], method, params).key(key))
        .await;
    let answer = reply.json();
    assert!(answer["result"].is_object(), "{method}: {}", reply.text());
    answer["result"].clone()
}

/// The error of a message of the newest generation.
pub(super) async fn error(server: &TestServer, key: &str, method: &str, params: Value) -> Value {
    let reply = server
        .send(message(GENERATIONS[1], method, params).key(key))
        .await;
    let answer = reply.json();
    assert!(answer["error"].is_object(), "{method}: {}", reply.text());
    answer["error"].clone()
}

async fn call(server: &TestServer, key: &str, tool: &str, arguments: Value) -> Value {
    result(
        server,
        key,
        "tools/call",
        json!({ "name": tool, "arguments": arguments }),
    )
    .await
}

async fn tool_names(server: &TestServer, path: &str) -> Vec<String> {
    let reply = server
        .ask(message_at(path, GENERATIONS[1], "tools/list", json!({})))
        .await;
    let answer = reply.json();
    let tools = answer["result"]["tools"]
        .as_array()
        .unwrap_or_else(|| panic!("{}", reply.text()));
    tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

pub(super) async fn publish(server: &TestServer, key: &str, files: &[(&str, &str)]) {
    let mut zip = Vec::new();
    std::io::Read::read_to_end(&mut zip_of(files), &mut zip).unwrap();
    let reply = server.send(Call::upload(zip).key(key)).await;
    assert_eq!(reply.status, 201, "{}", reply.text());
}

pub(super) async fn publish_program(server: &TestServer, key: &str, name: &str, more: &str) {
    let document = format!("---\nname: {name}\ndescription: Does {name}.\nlang: python\n{more}---\nDo it.\n");
    publish(
        server,
        key,
        &[("SKILL.md", &document), ("scripts/main.py", "print()\n")],
    )
    .await;
}

#[tokio::test]
async fn answers_clients_with_and_without_handshake() {
    let server = TestServer::open().await;
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let hello = json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } });
        let reply = server.ask(message(version, "initialize", hello)).await;
        let answer = reply.json();
        assert_eq!(answer["result"]["protocolVersion"], version, "{}", reply.text());
        assert_eq!(answer["result"]["serverInfo"]["name"], "skillbox");
        assert!(
            !reply.header(SESSION).is_empty(),
            "a later message can cancel by it"
        );
        let note = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let note = Call::post("/mcp").header(header::ACCEPT, ACCEPTED).json(&note);
        assert_eq!(server.ask(note).await.status, 202);
    }
    let found = result(&server, &server.admin, "server/discover", json!({})).await;
    assert!(
        found["supportedVersions"]
            .as_array()
            .unwrap()
            .contains(&"2026-07-28".into())
    );
    assert_eq!(
        found["capabilities"]["extensions"]["io.modelcontextprotocol/skills"],
        json!({ "directoryRead": true })
    );
    for generation in GENERATIONS {
        let reply = server.ask(message(generation, "tools/list", json!({}))).await;
        let tools = &reply.json()["result"]["tools"];
        let names: Vec<_> = tools
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| &tool["name"])
            .collect();
        assert_eq!(
            names,
            ["run_skill", "run_code", "list_skills", "read_file"],
            "{generation}"
        );
        let ran = message(
            generation,
            "tools/call",
            json!({ "name": "run_code", "arguments": { "code": "1" } }),
        );
        let ran = server.ask(ran).await.json();
        assert_eq!(ran["result"]["isError"], false, "{generation}: {ran}");
        assert_eq!(ran["id"], 1);
    }
}

///
#[tokio::test]
async fn passes_arguments_and_output_byte_for_byte() {
    let server = TestServer::open().await;
    let arguments = "{\"code\": \"x\", \"input\": {\"n\": 9007199254740993.10}}";
    let body = format!(
        "{{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"tools/call\", \"params\": {{\"name\": \"run_code\", \"arguments\": {arguments}}}}}"
    );
    let sent = Call::post("/mcp").header(header::ACCEPT, ACCEPTED).raw_json(body);
    let answer = server.ask(sent).await.json();
    assert_eq!(text(&answer["result"]), "{\"n\": 9007199254740993.10}");
}

#[tokio::test]
async fn offers_each_skill_as_tool_with_its_schemas() {
    let server = TestServer::open().await;
    let schemas = "input_schema: {type: object, required: [n], properties: {n: {type: integer}}}\noutput_schema: {type: object, required: [n]}\n";
    publish_program(&server, &server.admin, "sales.top", schemas).await;
    publish_program(&server, &server.admin, "list", "input_schema: {type: array}\n").await;
    let listed = result(&server, &server.admin, "tools/list", json!({})).await;
    let tool = listed["tools"]
        .as_array()
        .unwrap()
        .iter()
        .find(|tool| tool["name"] == "sales_top")
        .unwrap();
    assert_eq!(tool["inputSchema"]["required"], json!(["n"]));
    assert_eq!(tool["outputSchema"]["required"], json!(["n"]));
    assert_eq!(listed["cacheScope"], "private");

    let ran = call(&server, &server.admin, "sales_top", json!({ "n": 1 })).await;
    assert_eq!(ran["structuredContent"], json!({ "n": 1 }));
    assert_eq!(ran["_meta"]["skillbox/execution"]["skill"], "sales.top");
    let wrong = call(&server, &server.admin, "sales_top", json!({ "n": "x" })).await;
    assert_eq!(wrong["isError"], true);
    assert_eq!(wrong["_meta"]["skillbox/problem"]["errors"][0]["pointer"], "/n");
    let ran = call(&server, &server.admin, "list", json!({ "input": [1, 2] })).await;
    assert_eq!((text(&ran), &ran["structuredContent"]), ("[1,2]", &Value::Null));
    let ran = call(
        &server,
        &server.admin,
        "run_skill",
        json!({ "skill": "list", "input": [3] }),
    )
    .await;
    assert_eq!(text(&ran), "[3]");
}

#[tokio::test]
async fn reports_failed_run_as_error_of_tool() {
    let server = TestServer::open().await;
    let failed = call(
        &server,
        &server.admin,
        "run_code",
        json!({ "code": "x", "args": ["exit=3"] }),
    )
    .await;
    assert_eq!(failed["isError"], true);
    assert!(text(&failed).starts_with("failed: "), "{failed}");
    assert_eq!(failed["_meta"]["skillbox/execution"]["exit_code"], 3);
    for (tool, arguments, named) in [
        ("run_code", json!({}), "code: missing"),
        (
            "run_code",
            json!({ "code": "", "mode": "async" }),
            "mode: unknown argument",
        ),
        ("run_skill", json!({ "skill": "absent" }), "absent"),
        (
            "read_file",
            json!({ "uri": "file:///etc/passwd" }),
            "file:///etc/passwd",
        ),
        ("no_such_tool", json!({}), "no.such.tool"),
    ] {
        let rejected = call(&server, &server.admin, tool, arguments).await;
        assert_eq!(rejected["isError"], true, "{tool}");
        assert!(text(&rejected).contains(named), "{tool}: {rejected}");
        assert!(
            rejected["_meta"]["skillbox/problem"]["code"].is_string(),
            "{rejected}"
        );
    }
}

#[tokio::test]
async fn returns_small_files_with_content_and_large_ones_as_links() {
    let server = TestServer::open().await;
    let large = "x".repeat(usize::try_from(limits::MCP_FILE_TEXT_BYTES_MAX).unwrap() + 1);
    let files = json!({
        "a.txt": STANDARD.encode("small"),
        "b.txt": STANDARD.encode(&large),
        "c.png": STANDARD.encode("no real image"),
        "d.bin": STANDARD.encode([0, 255]),
    });
    let ran = call(
        &server,
        &server.admin,
        "run_code",
        json!({ "code": "x", "files": files }),
    )
    .await;
    let blocks = ran["content"].as_array().unwrap();
    let of_kind = |kind: &str| {
        blocks
            .iter()
            .filter(move |block| block["type"] == kind)
            .collect::<Vec<_>>()
    };
    assert_eq!(of_kind("resource")[0]["resource"]["text"], "small");
    assert_eq!(of_kind("image")[0]["mimeType"], "image/png");
    assert_eq!(of_kind("image")[0]["data"], STANDARD.encode("no real image"));
    let links = of_kind("resource_link");
    let names: Vec<_> = links.iter().map(|link| link["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["b.txt", "c.png", "d.bin"]);

    let uri = &links[0]["uri"];
    let read = result(&server, &server.admin, "resources/read", json!({ "uri": uri })).await;
    assert_eq!(read["contents"][0]["text"], large);
    let read = result(
        &server,
        &server.admin,
        "resources/read",
        json!({ "uri": links[2]["uri"] }),
    )
    .await;
    assert_eq!(read["contents"][0]["blob"], STANDARD.encode([0, 255]));
    let read = call(&server, &server.admin, "read_file", json!({ "uri": uri })).await;
    assert_eq!(text(&read), large);
    // The signed link needs no key.
    let url = links[0]["_meta"]["skillbox/url"].as_str().unwrap();
    let path = url.strip_prefix("http://localhost:8080").unwrap();
    assert_eq!(server.send(Call::get(path)).await.text(), large);
}

/// Another tenant's skills, executions and files look as if they did not exist.
#[tokio::test]
async fn isolates_tenants() {
    let server = TestServer::open().await;
    let scopes = [Scope::Run, Scope::Skills];
    let (own, other) = (
        server.key("own", &scopes).await,
        server.key("other", &scopes).await,
    );
    publish_program(&server, &own, "private", "").await;
    let ran = call(&server, &own, "private", json!({ "n": 1 })).await;
    let id = ran["_meta"]["skillbox/execution"]["id"].as_str().unwrap();
    let output = format!("skillbox://executions/{id}/output");
    let read = result(&server, &own, "resources/read", json!({ "uri": output })).await;
    assert_eq!(read["contents"][0]["text"], "{\"n\":1}");
    for uri in [output.as_str(), "skill://private/SKILL.md"] {
        let refused = error(&server, &other, "resources/read", json!({ "uri": uri })).await;
        assert_eq!(refused["data"]["code"], "not_found", "{uri}");
    }
    let refused = call(&server, &other, "private", json!({})).await;
    assert_eq!(refused["_meta"]["skillbox/problem"]["code"], "not_found");
    let listed = |key: String| {
        let server = &server;
        async move {
            let tools = result(server, &key, "tools/list", json!({})).await["tools"].to_string();
            let skills = result(server, &key, "skills/list", json!({})).await["skills"].to_string();
            let resources = result(server, &key, "resources/list", json!({})).await["resources"].to_string();
            let found = call(server, &key, "list_skills", json!({})).await.to_string();
            [tools, skills, resources, found].map(|text| text.contains("private"))
        }
    };
    assert_eq!(listed(own).await, [true; 4]);
    assert_eq!(listed(other).await, [false; 4]);
}

#[tokio::test]
async fn requires_scope_of_each_act() {
    let server = TestServer::open().await;
    let skills = server.key("default", &[Scope::Skills]).await;
    publish_program(&server, &skills, "own", "").await;
    let listed = call(&server, &skills, "list_skills", json!({})).await;
    assert_eq!(listed["structuredContent"]["items"][0]["name"], "own");
    let refused = call(&server, &skills, "run_code", json!({ "code": "1" })).await;
    assert_eq!(refused["_meta"]["skillbox/problem"]["code"], "forbidden");
    let ran = call(&server, &server.admin, "run_code", json!({ "code": "1" })).await;
    let id = ran["_meta"]["skillbox/execution"]["id"].as_str().unwrap();
    for part in ["output", "stdout", "files/a.txt", "results/0/text"] {
        let uri = format!("skillbox://executions/{id}/{part}");
        let refused = error(&server, &skills, "resources/read", json!({ "uri": uri })).await;
        assert_eq!(refused["data"]["code"], "forbidden", "{part}");
    }
}

/// W-06, W-07: a page that points its own name at this machine, and a page of another site.
#[tokio::test]
async fn rejects_foreign_hosts_origins_and_methods() {
    let server = TestServer::open().await;
    let list = || message(GENERATIONS[0], "tools/list", json!({}));
    let reply = server.send(list()).await;
    assert_eq!(reply.refusal(), (401, "unauthenticated".to_owned()));
    assert_eq!(reply.header(header::WWW_AUTHENTICATE), "Bearer");
    let foreign = list().without(&header::HOST).header(header::HOST, "evil.example");
    assert_eq!(server.ask(foreign).await.refusal(), (403, "forbidden".to_owned()));
    for origin in ["http://evil.example", "http://localhost:9999", "null"] {
        let reply = server.ask(list().header(header::ORIGIN, origin)).await;
        assert_eq!(reply.refusal(), (403, "forbidden".to_owned()), "{origin}");
    }
    let own = list().header(header::ORIGIN, "http://localhost:8080");
    assert_eq!(server.ask(own).await.status, 200);
    for method in [Method::GET, Method::DELETE, Method::PUT] {
        let reply = server.ask(Call::new(method, "/mcp")).await;
        assert_eq!(
            (reply.status.as_u16(), reply.header(header::ALLOW)),
            (405, "POST")
        );
    }
}

///
#[tokio::test]
async fn rejects_what_is_no_message() {
    let server = TestServer::open().await;
    let post = || Call::post("/mcp").header(header::ACCEPT, ACCEPTED);
    let large = vec![b' '; usize::try_from(limits::MCP_BODY_BYTES_MAX).unwrap() + 1];
    let reply = server.ask(post().raw_json(large)).await;
    assert_eq!(reply.refusal(), (413, "too_large".to_owned()));
    let reply = server
        .ask(post().header(header::CONTENT_TYPE, "text/plain").body("{}"))
        .await;
    assert_eq!(reply.refusal(), (415, "unsupported_media_type".to_owned()));
    let reply = server.ask(Call::post("/mcp").raw_json("{}")).await;
    assert_eq!(reply.refusal(), (400, "invalid".to_owned()));
    for broken in ["", "{", "[]", "[1]", "null", "\"x\"", &"[".repeat(10_000)] {
        let reply: Reply = server.ask(post().raw_json(broken.to_owned())).await;
        assert_eq!(reply.status, 400, "{broken:.20}");
        assert_eq!(reply.json()["error"]["code"], -32700, "{broken:.20}");
    }
    let reply = server
        .ask(message_at("/mcp?skillz=a", GENERATIONS[0], "ping", json!({})))
        .await;
    assert_eq!(reply.refusal(), (400, "invalid".to_owned()));
}

#[tokio::test]
async fn offers_search_instead_of_more_than_forty_skill_tools() {
    let server = TestServer::open().await;
    for n in 0..limits::MCP_SKILL_TOOLS_MAX {
        publish_program(&server, &server.admin, &format!("skill-{n}"), "").await;
    }
    let names = tool_names(&server, "/mcp").await;
    assert_eq!(names.len(), 4 + limits::MCP_SKILL_TOOLS_MAX);
    // A skill whose tool would hide a generic one is run by `run_skill` only.
    publish_program(&server, &server.admin, "run.code", "").await;
    assert_eq!(
        tool_names(&server, "/mcp").await.len(),
        4 + limits::MCP_SKILL_TOOLS_MAX
    );
    publish_program(&server, &server.admin, "one-more", "").await;
    let generic = [
        "run_skill",
        "run_code",
        "list_skills",
        "search_skills",
        "read_file",
    ];
    assert_eq!(tool_names(&server, "/mcp").await, generic);
    let pinned = tool_names(&server, "/mcp?skills=skill-7,absent,one-more").await;
    assert_eq!(pinned[4..], ["one-more", "skill-7"]);

    let found = call(
        &server,
        &server.admin,
        "search_skills",
        json!({ "query": "MORE one" }),
    )
    .await;
    assert_eq!(found["structuredContent"]["items"][0]["name"], "one-more");
    let ran = call(&server, &server.admin, "skill-3", json!({ "n": 1 })).await;
    assert_eq!(text(&ran), "{\"n\":1}", "a tool that is not listed can be called");
}

#[tokio::test]
async fn repeated_call_with_same_key_returns_same_execution() {
    let server = TestServer::open().await;
    let params = json!({ "name": "run_code", "arguments": { "code": "1" }, "_meta": { "skillbox/idempotency-key": "k1" } });
    let id = |result: Value| {
        result["_meta"]["skillbox/execution"]["id"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let first = id(result(&server, &server.admin, "tools/call", params.clone()).await);
    assert_eq!(
        first,
        id(result(&server, &server.admin, "tools/call", params.clone()).await)
    );
    let mut other = params;
    other["arguments"]["code"] = "2".into();
    let reused = result(&server, &server.admin, "tools/call", other).await;
    assert_eq!(reused["_meta"]["skillbox/problem"]["code"], "key_reused");
}

#[tokio::test]
async fn counts_and_logs_messages_as_requests() {
    let server = TestServer::open().await;
    call(&server, &server.admin, "run_code", json!({ "code": "1" })).await;
    let metrics = server.ask(Call::get("/metrics")).await.text();
    let counted = |line: &&str| line.contains("route=\"/mcp\"") && line.contains("status=\"200\"");
    assert!(metrics.lines().any(|line| counted(&line)), "{metrics}");
}
