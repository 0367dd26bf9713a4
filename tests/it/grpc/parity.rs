//! Requests to both APIs: the same codes, records and entries of the audit trail.

use axum::http::header;
use serde_json::{Value, json};
use skillbox::limits;

use super::client::{REQUEST_ID, ask, bytes, call, encode, frame, method, path, raw_call, send};
use crate::http::audit::entries;
use crate::http::client::{Call, TestServer, probe};

const RUN: &str = "ExecutionService/RunSkill";
const CODE: &str = "ExecutionService/RunCode";
const NEVER: &str = "019a0000-0000-7000-8000-000000000000";

/// The same request to both.
struct Same {
    rest: Call,
    name: &'static str,
    message: Value,
    /// Of both; `ok` if they succeed.
    code: &'static str,
    status: i32,
}

fn run(rest: Value, name: &'static str, message: Value) -> Same {
    invalid(Call::post("/v1/executions").json(&rest), name, message)
}

fn skill(rest: Value) -> Same {
    let mut message = rest.clone();
    for member in ["input", "args"] {
        if let Some(value) = rest
            .get(member)
            .filter(|value| member == "input" || value.is_array())
        {
            message[member] = if member == "input" {
                json!(bytes(value.to_string()))
            } else {
                value.clone()
            };
        }
    }
    run(rest, RUN, message)
}

fn invalid(rest: Call, name: &'static str, message: Value) -> Same {
    Same {
        rest,
        name,
        message,
        code: "invalid",
        status: 3,
    }
}

fn requests() -> Vec<Same> {
    [programs(), contents(), code(), reads(), nobodys()]
        .into_iter()
        .flatten()
        .collect()
}

fn programs() -> Vec<Same> {
    vec![
        skill(json!({"skill": "a\0"})),
        skill(json!({"skill": "Not A Name"})),
        skill(json!({"skill": "probe", "version": "one"})),
        skill(json!({"skill": "probe", "args": ["x", "a\0"]})),
        skill(json!({"skill": "probe", "args": vec!["x"; limits::ARGS_MAX + 1]})),
        skill(json!({"skill": "probe", "blobs": ["sha256:1"]})),
        skill(json!({"skill": "probe", "mount_skills": ["a@one"]})),
        skill(json!({"skill": "probe", "mount_skills": ["a", "a"]})),
        skill(json!({"skill": "probe", "script": "../x.py"})),
        skill(json!({"skill": "probe", "requirements": ["not a package!"]})),
        skill(json!({"skill": "probe", "requirements": ["https://example.com/x.whl"]})),
        skill(json!({"skill": "probe", "timeout": -1})),
        skill(json!({"skill": "probe", "timeout": 0})),
        skill(json!({"skill": "probe", "callback_url": "ftp://example.com/"})),
        skill(json!({"skill": "probe", "callback_url": "http://127.0.0.1/"})),
        run(
            json!({"skill": "probe", "workdir": "skill"}),
            RUN,
            json!({"skill": "probe", "workdir": "WORKDIR_SKILL"}),
        ),
        run(
            json!({"skill": "probe", "mode": "async", "on_disconnect": "cancel"}),
            RUN,
            json!({"skill": "probe", "mode": "MODE_ASYNC", "on_disconnect": "ON_DISCONNECT_CANCEL"}),
        ),
    ]
}

/// Files and JSON.
fn contents() -> Vec<Same> {
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let many: Value = (0..=limits::INPUT_FILES_MAX)
        .map(|n| (format!("f{n}"), json!("")))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let many_here: Vec<Value> = (0..=limits::INPUT_FILES_MAX)
        .map(|n| json!({"path": format!("f{n}")}))
        .collect();
    let files = |path: &str| {
        let message = json!({"skill": "probe", "files": [{"path": path, "content": bytes("x")}]});
        run(
            json!({"skill": "probe", "files": {path: bytes("x")}}),
            RUN,
            message,
        )
    };
    let raw = |input: &str| {
        let body = format!("{{\"skill\": \"probe\", \"input\": {input}}}");
        let message = json!({"skill": "probe", "input": bytes(input)});
        invalid(Call::post("/v1/executions").raw_json(body), RUN, message)
    };
    vec![
        run(
            json!({"skill": "probe", "files": many}),
            RUN,
            json!({"skill": "probe", "files": many_here}),
        ),
        files("/etc/passwd"),
        files("../x"),
        files("a\0"),
        files("a//b"),
        files(""),
        raw(&deep),
        raw("NaN"),
        raw("{\"a\": 1} x"),
    ]
}

fn code() -> Vec<Same> {
    vec![
        run(
            json!({"code": "1", "language": "cobol"}),
            CODE,
            json!({"code": "1", "language": "cobol"}),
        ),
        run(
            json!({"code": "x".repeat(2 << 20)}),
            CODE,
            json!({"code": "x".repeat(2 << 20)}),
        )
        .of("too_large", 8),
    ]
}

fn reads() -> Vec<Same> {
    vec![
        invalid(
            Call::get("/v1/executions/x"),
            "ExecutionService/GetExecution",
            json!({"execution_id": "x"}),
        ),
        invalid(
            Call::get(&format!("/v1/executions/{NEVER}?wait=61")),
            "ExecutionService/GetExecution",
            json!({"execution_id": NEVER, "wait": 61}),
        ),
        invalid(
            Call::get(&format!("/v1/executions/{NEVER}?wait=-1")),
            "ExecutionService/GetExecution",
            json!({"execution_id": NEVER, "wait": -1}),
        ),
        invalid(
            Call::get("/v1/executions?page_token=x"),
            "ExecutionService/ListExecutions",
            json!({"page_token": "x"}),
        ),
        invalid(
            Call::get("/v1/executions?skill=probe&code=true"),
            "ExecutionService/ListExecutions",
            json!({"skill": "probe", "code": true}),
        ),
        invalid(
            Call::get("/v1/executions?since=yesterday"),
            "ExecutionService/ListExecutions",
            json!({"since": "yesterday"}),
        ),
        invalid(
            Call::get("/v1/executions?key=x"),
            "ExecutionService/ListExecutions",
            json!({"key": "x"}),
        ),
        invalid(
            Call::get("/v1/skills?page_token=x"),
            "SkillService/ListSkills",
            json!({"page_token": "x"}),
        ),
        invalid(
            Call::get("/v1/skills/a%00/latest"),
            "SkillService/GetSkill",
            json!({"name": "a\0"}),
        ),
        invalid(
            Call::delete("/v1/skills/probe/one"),
            "SkillService/DeleteSkill",
            json!({"name": "probe", "version": "one"}),
        ),
    ]
}

fn nobodys() -> Vec<Same> {
    vec![
        skill(json!({"skill": "nobodys"})).of("not_found", 5),
        skill(json!({"skill": "probe", "version": "9.9.9"})).of("not_found", 5),
        skill(json!({"skill": "probe", "blobs": [format!("sha256:{}", "0".repeat(64))]})).of("not_found", 5),
        invalid(
            Call::get(&format!("/v1/executions/{NEVER}")),
            "ExecutionService/GetExecution",
            json!({"execution_id": NEVER}),
        )
        .of("not_found", 5),
        invalid(
            Call::post(&format!("/v1/executions/{NEVER}/cancel")),
            "ExecutionService/CancelExecution",
            json!({"execution_id": NEVER}),
        )
        .of("not_found", 5),
        invalid(
            Call::get(&format!("/v1/executions/{NEVER}/logs")),
            "ExecutionService/GetExecutionLogs",
            json!({"execution_id": NEVER}),
        )
        .of("not_found", 5),
        invalid(
            Call::delete("/v1/skills/nobodys/latest"),
            "SkillService/DeleteSkill",
            json!({"name": "nobodys", "version": "latest"}),
        )
        .of("not_found", 5),
    ]
}

impl Same {
    fn of(self, code: &'static str, status: i32) -> Self {
        Self { code, status, ..self }
    }
}

/// A-02, A-05, A-06, A-09: rejected with the same code and for the same field, and nothing is recorded.
#[tokio::test]
async fn both_apis_reject_the_same_requests_with_the_same_code() {
    let server = TestServer::open().await;
    server.publish(&server.admin).await;
    let trail = entries(&server).await.len();
    let mut differing = Vec::new();
    for Same {
        rest,
        name,
        message,
        code,
        status,
    } in requests()
    {
        let about: String = format!("{name} {message}").chars().take(200).collect();
        let there = server.ask(rest).await;
        let here = ask(&server, name, message).await;
        assert_eq!(there.code(), code, "{about}: {}", there.text());
        assert_eq!(
            (here.code(), here.status),
            (code, status),
            "{about}: {}",
            here.message
        );
        let (there, here_problem) = (there.json(), &here.problem);
        for member in ["status", "title", "retryable"] {
            assert_eq!(here_problem[member], there[member], "{about}");
        }
        // A path or query has no field in its detail, and JSON is read before its fields.
        let detail = |problem: &Value| problem["detail"].as_str().unwrap().to_owned();
        let field = |problem: &Value| {
            detail(problem)
                .split([':', '[', '.', ' '])
                .next()
                .unwrap()
                .to_owned()
        };
        let (_, reason) = here.message.split_once(": ").unwrap_or_default();
        let is_same = field(here_problem) == field(&there)
            || (!reason.is_empty() && detail(&there).ends_with(reason))
            || here.message.starts_with("input: ");
        if !is_same {
            differing.push(format!("{about}: {here_problem} {there}"));
        }
        assert_eq!(
            here.headers[REQUEST_ID],
            here_problem["request_id"].as_str().unwrap()
        );
    }
    assert!(differing.is_empty(), "other fields: {}", differing.join("\n"));
    let runs = server.ask(Call::get("/v1/executions")).await.json();
    assert_eq!(runs["items"], json!([]));
    assert_eq!(entries(&server).await.len(), trail);
}

/// What differs between two runs of the same request.
fn masked(mut envelope: Value) -> Value {
    let id = envelope["execution_id"].as_str().unwrap().to_owned();
    for member in [
        "execution_id",
        "created_at",
        "finished_at",
        "duration_ms",
        "timings",
        "files_url",
    ] {
        envelope[member] = Value::Null;
    }
    for file in envelope["files"].as_array_mut().unwrap() {
        assert!(file["url"].as_str().unwrap().contains(&id));
        file["url"] = Value::Null;
    }
    for result in envelope["results"].as_array_mut().unwrap() {
        assert!(result["urls"].to_string().contains(&id));
        result["urls"] = Value::Null;
    }
    envelope
}

#[tokio::test]
async fn both_apis_record_the_same_execution_and_request() {
    let server = TestServer::open().await;
    server.publish(&server.admin).await;
    let input = "{\"n\": 9007199254740993.10,  \"a\": [1]}";
    let blob = server.ask(Call::post("/v1/blobs").body("mine")).await.json();
    let blob = blob["blob_id"].as_str().unwrap();
    let body = format!(
        r#"{{"skill": "probe", "version": "latest", "input": {input}, "args": ["exit=3", "b"], "files": {{"report.txt": "aGVsbG8="}},
        "blobs": ["{blob}"], "stdin": "x", "timeout": 20.5, "callback_url": "https://hooks.example/"}}"#
    );
    let message = json!({"skill": "probe", "version": "latest", "input": bytes(input), "args": ["exit=3", "b"],
        "files": [{"path": "report.txt", "content": "aGVsbG8="}], "blobs": [blob], "stdin": "x", "timeout": 20.5,
        "callback_url": "https://hooks.example/"});
    let code = json!({"code": "1", "language": "bash", "args": ["shows"]});
    for (rest, name, message) in [
        (Call::post("/v1/executions").raw_json(body), RUN, message),
        (Call::post("/v1/executions").json(&code), CODE, code.clone()),
    ] {
        let there = server.ask(rest).await.json();
        let here = ask(&server, name, message).await.only();
        let id = here["execution_id"].as_str().unwrap();
        let path = format!("/v1/executions/{id}");
        let recorded = server.ask(Call::get(&path)).await.json();
        assert_eq!(masked(recorded.clone()), masked(there.clone()));
        assert_eq!(
            here["status"],
            format!(
                "EXECUTION_STATUS_{}",
                recorded["status"].as_str().unwrap().to_uppercase()
            )
        );
        assert_eq!(here["created_at"], recorded["created_at"]);
        assert_eq!(here["key"], recorded["key"]);
        let request = |execution: &Value| {
            let id = execution["execution_id"].as_str().unwrap();
            let path = format!("/v1/executions/{id}/request");
            let server = &server;
            async move { server.ask(Call::get(&path)).await.text() }
        };
        assert_eq!(request(&here).await, request(&there).await);
    }
}

/// A repeated key returns the same execution, whichever API it was sent to.
#[tokio::test]
async fn idempotency_keys_are_those_of_both_apis() {
    let server = TestServer::open().await;
    server.publish(&server.admin).await;
    let first = Call::post("/v1/executions")
        .header("idempotency-key".parse().unwrap(), "k-1")
        .json(&json!({"skill": "probe", "args": ["a"]}));
    let first = server.ask(first).await.json();
    let message = json!({"skill": "probe", "args": ["a"], "idempotency_key": "k-1"});
    let second = ask(&server, RUN, message).await.only();
    assert_eq!(second["execution_id"], first["execution_id"]);
    let other = json!({"skill": "probe", "args": ["b"], "idempotency_key": "k-1"});
    let reused = ask(&server, RUN, other).await;
    assert_eq!((reused.code(), reused.status), ("key_reused", 6));
    let wrong = json!({"skill": "probe", "idempotency_key": "a b"});
    assert_eq!(ask(&server, RUN, wrong).await.code(), "invalid");
}

#[tokio::test]
async fn both_apis_record_the_same_audit_entries() {
    let server = TestServer::open().await;
    let rest = Call::upload(probe("version: 1.0.0\n")).header(REQUEST_ID, "r-1");
    assert_eq!(server.ask(rest).await.status, 201);
    let deleted = Call::delete("/v1/skills/probe/1.0.0").header(REQUEST_ID, "r-1");
    assert_eq!(server.ask(deleted).await.status, 204);
    let register = "SkillService/RegisterSkill";
    let chunk = json!({"chunk": bytes(probe("version: 1.0.0\n"))});
    let pushed = call(register, &[chunk])
        .key(&server.admin)
        .header(REQUEST_ID, "r-1");
    send(&server, register, pushed).await.only();
    let delete = "SkillService/DeleteSkill";
    let message = json!({"name": "probe", "version": "1.0.0"});
    let deleted = call(delete, &[message])
        .key(&server.admin)
        .header(REQUEST_ID, "r-1");
    send(&server, delete, deleted).await.only();
    let mut trail = entries(&server).await;
    for entry in &mut trail {
        entry["id"] = Value::Null;
        entry["at"] = Value::Null;
    }
    assert_eq!(trail.len(), 4);
    assert_eq!(trail[..2], trail[2..]);
}

/// A-07, A-10, A-18: what is no message of the method, in one form.
#[tokio::test]
async fn rejects_what_is_no_message_of_the_method() {
    let server = TestServer::open().await;
    let message = encode(method(&path(RUN)).input(), &json!({"skill": "probe"}));
    let one = frame(&message);
    let above = vec![b' '; usize::try_from(limits::EXECUTION_BODY_BYTES_MAX).unwrap() + 6];
    let mut compressed = one.clone();
    compressed[0] = 1;
    for (body, code, status) in [
        (Vec::new(), "invalid", 3),
        (one[..4].to_vec(), "invalid", 3),
        (one[..one.len() - 1].to_vec(), "invalid", 3),
        ([&one[..], &one].concat(), "invalid", 3),
        (frame(b"\x08"), "invalid", 3),
        (frame(b"\x0a\x02\xff\xff"), "invalid", 3),
        (b"\0\xff\xff\xff\xff".to_vec(), "invalid", 3),
        (compressed, "unsupported_media_type", 12),
        (above, "too_large", 8),
    ] {
        let size = body.len();
        let outcome = send(&server, RUN, raw_call(RUN, body).key(&server.admin)).await;
        assert_eq!(
            (outcome.code(), outcome.status),
            (code, status),
            "{size} {}",
            outcome.message
        );
    }
    let small = "SkillService/GetSkill";
    let long = json!({"name": "x".repeat(100_000)});
    assert_eq!(ask(&server, small, long).await.code(), "too_large");
    for kind in ["application/json", "text/plain", "application/grpc-web", ""] {
        let call = raw_call(RUN, one.clone())
            .without(&header::CONTENT_TYPE)
            .header(header::CONTENT_TYPE, kind)
            .key(&server.admin);
        assert_eq!(
            send(&server, RUN, call).await.code(),
            "unsupported_media_type",
            "{kind}"
        );
    }
    let encoded = raw_call(RUN, one.clone())
        .header("grpc-encoding".parse().unwrap(), "gzip")
        .key(&server.admin);
    assert_eq!(send(&server, RUN, encoded).await.code(), "unsupported_media_type");
    let foreign = raw_call(RUN, one)
        .without(&header::HOST)
        .header(header::HOST, "evil.test")
        .key(&server.admin);
    assert_eq!(send(&server, RUN, foreign).await.code(), "misdirected");
}
