//! Hostile and broken requests: refused in one form, before anything happens.

use axum::body::{Body, Bytes};
use axum::http::{HeaderName, Method, header};
use serde_json::{Value, json};
use skillbox::limits;

use super::client::{Call, TestServer};

fn invalid() -> (u16, String) {
    (400, "invalid".to_owned())
}

fn execute(body: impl Into<Body>) -> Call {
    Call::post("/v1/executions").raw_json(body)
}

/// A-02, A-03, A-05, A-09.
#[tokio::test]
async fn rejects_invalid_requests_with_reason() {
    let server = TestServer::open().await;
    let deep = "[".repeat(100_000);
    let deep_input = format!(
        "{{\"skill\":\"probe\",\"input\":{}{}}}",
        deep,
        "]".repeat(100_000)
    );
    let cases: [(&[u8], &str); 16] = [
        (deep.as_bytes(), "nested deeper"),
        (deep_input.as_bytes(), "nested deeper"),
        (br#"{"skill":"a","skill":"b"}"#, "duplicate field `skill`"),
        (
            br#"{"skill":"a","version":"1.0.0","version":"2.0.0"}"#,
            "duplicate field `version`",
        ),
        (br#"{"skill":"a","input":1,"input":2}"#, "duplicate field `input`"),
        (br#"{"skill":"a","files":{"x":"","x":""}}"#, "given twice"),
        (br#"{"skill":"a","netwrok":true}"#, "unknown field `netwrok`"),
        (br#"{"skill":"a","image":"python"}"#, "unknown field `image`"),
        (b"\xef\xbb\xbf{\"skill\":\"a\"}", "the body"),
        (b"{\"skill\":\"a\",\"args\":[\"\xff\"]}", "args[0]"),
        (b"{\"skill\":\"a\",\"args\":[\"\xc0\xaf\"]}", "args[0]"),
        (b"{\"skill\":\"a\",\"args\":[\"\\ud800\"]}", "args[0]"),
        (b"{\"skill\":\"a\",\"input\":\"\xff\"}", "input"),
        (b"{\"skill\":\"a\",\"input\":NaN}", "input"),
        (b"{\"skill\":\"a\"}{}", "trailing characters"),
        (b"", "the body"),
    ];
    for (body, reason) in cases {
        let reply = server.ask(execute(body.to_vec())).await;
        let head = String::from_utf8_lossy(&body[..body.len().min(60)]).into_owned();
        assert_eq!(reply.refusal(), invalid(), "{head}");
        let detail = reply.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains(reason), "{head}: {detail}");
    }
}

/// A-04: numbers are returned as they were sent.
#[tokio::test]
async fn passes_input_byte_for_byte() {
    let server = TestServer::open().await;
    server.publish(&server.admin).await;
    let inputs = [
        "9007199254740993",
        "18446744073709551616",
        "-0",
        "1e400",
        "0.1000000000000000055511151231257827021181",
        "{\"a\": 1.10,  \"a\": 2}",
        "\"\\ud800\"",
        "\"\\u0000\"",
        "null",
        "[]",
    ];
    for input in inputs {
        let reply = server
            .ask(execute(format!("{{\"skill\":\"probe\",\"input\":{input}}}")))
            .await;
        assert_eq!(reply.status, 200, "{input}: {}", reply.text());
        assert!(
            reply.text().contains(&format!("\"output\":{input},")),
            "{input}: {}",
            reply.text()
        );
    }
}

/// A-06: NUL in each string of each operation.
#[tokio::test]
async fn rejects_nul_in_every_string() {
    let server = TestServer::open().await;
    let bodies = [
        ("/v1/executions", json!({"skill": "a\0"}), "skill"),
        (
            "/v1/executions",
            json!({"skill": "a", "version": "1.0.0\0"}),
            "version",
        ),
        (
            "/v1/executions",
            json!({"skill": "a", "args": ["x", "a\0"]}),
            "args[1]",
        ),
        (
            "/v1/executions",
            json!({"skill": "a", "files": {"a\0": ""}}),
            "files",
        ),
        (
            "/v1/executions",
            json!({"skill": "a", "files": {"a": "aGk\0"}}),
            "files.a",
        ),
        ("/v1/keys", json!({"name": "a\0", "scopes": ["run"]}), "name"),
        ("/v1/keys", json!({"name": "a", "scopes": ["run\0"]}), "scopes[0]"),
        (
            "/v1/keys",
            json!({"name": "a", "scopes": ["run"], "tenant": "a\0"}),
            "tenant",
        ),
        (
            "/v1/keys",
            json!({"name": "a", "scopes": ["run"], "expires_at": "2099-01-01T00:00:00Z\0"}),
            "expires_at",
        ),
    ];
    for (path, body, field) in bodies {
        let reply = server.ask(Call::post(path).json(&body)).await;
        assert_eq!(reply.refusal(), invalid(), "{body}");
        let detail = reply.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.starts_with(field), "{body}: {detail}");
    }
    let never = "019a0000-0000-7000-8000-000000000000";
    for path in [
        "/v1/skills/a%00".to_owned(),
        "/v1/skills/a/1.0.0%00".to_owned(),
        "/v1/skills/a%00/1.0.0/archive".to_owned(),
        "/v1/skills?page_token=%00".to_owned(),
        "/v1/skills?limit=1%00".to_owned(),
        "/v1/executions?skill=a%00".to_owned(),
        "/v1/executions?status=success%00".to_owned(),
        "/v1/executions?since=2026-01-01T00:00:00Z%00".to_owned(),
        format!("/v1/executions/{never}%00"),
        format!("/v1/executions/{never}%00/logs"),
        format!("/v1/executions/{never}/logs?stream=both%00"),
        "/v1/keys?page_token=%00".to_owned(),
    ] {
        assert_eq!(server.ask(Call::get(&path)).await.refusal(), invalid(), "{path}");
    }
}

/// A-07: the limit holds for every content type.
#[tokio::test]
async fn accepts_input_at_limit_and_rejects_larger_one() {
    let server = TestServer::open().await;
    server.publish(&server.admin).await;
    let cap = usize::try_from(limits::INPUT_BYTES_MAX).unwrap();
    let input = |bytes: usize| format!("{{\"skill\":\"probe\",\"input\":\"{}\"}}", "x".repeat(bytes - 2));
    for bytes in [2, 131_056, 131_057, 131_058, 1 << 20, cap] {
        let reply = server.ask(execute(input(bytes))).await;
        assert_eq!(reply.status, 200, "{bytes}");
        assert_eq!(reply.json()["output"].as_str().unwrap().len(), bytes - 2);
    }
    let too_large = (413, "too_large".to_owned());
    assert_eq!(server.ask(execute(input(cap + 1))).await.refusal(), too_large);
    let above = usize::try_from(limits::EXECUTION_BODY_BYTES_MAX).unwrap() + 1;
    assert_eq!(server.ask(execute(vec![b' '; above])).await.refusal(), too_large);
    let piece = Bytes::from(vec![b' '; 1 << 20]);
    let pieces = (0..64).map(move |_| Ok::<_, std::io::Error>(piece.clone()));
    let endless = Body::from_stream(futures::stream::iter(pieces));
    assert_eq!(
        server.ask(execute(endless)).await.refusal(),
        too_large,
        "no length declared"
    );
}

/// A-10, A-18: a body that a foreign page could send, or that is compressed, is rejected unread.
#[tokio::test]
async fn parses_only_plain_json() {
    let server = TestServer::open().await;
    let body = r#"{"name":"x","scopes":["admin"]}"#;
    let refused = (415, "unsupported_media_type".to_owned());
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/json; charset=utf-7",
        "application/json; charset=utf-16",
        "application/jsonp",
    ] {
        let call = Call::post("/v1/keys")
            .header(header::CONTENT_TYPE, kind)
            .body(body);
        assert_eq!(server.ask(call).await.refusal(), refused, "{kind}");
    }
    assert_eq!(
        server.ask(Call::post("/v1/keys").body(body)).await.refusal(),
        refused
    );
    for coding in ["gzip", "br", "zstd", "identity, gzip", "x"] {
        let call = Call::post("/v1/keys")
            .raw_json(body)
            .header(header::CONTENT_ENCODING, coding);
        assert_eq!(server.ask(call).await.refusal(), refused, "{coding}");
    }
    let keys = server.ask(Call::get("/v1/keys")).await.json();
    assert_eq!(keys["items"].as_array().unwrap().len(), 1, "none was made");
    let call = Call::post("/v1/keys")
        .raw_json(body)
        .header(header::CONTENT_ENCODING, "identity");
    assert_eq!(server.ask(call).await.status, 201);
}

/// A-11.
#[tokio::test]
async fn odd_paths_reach_no_other_resource() {
    let server = TestServer::open().await;
    let long = "a".repeat(10_000);
    let never = "019a0000-0000-7000-8000-000000000000";
    for path in [
        "/v1/skills/..",
        "/v1/skills/%2e%2e%2f%2e%2e%2fetc",
        "/v1/skills/%252e%252e",
        "/v1/skills/a;x=1",
        "/v1/skills/%ff",
        "/v1/skills/A",
        &format!("/v1/skills/{long}"),
        "/v1/skills/a/..",
        "/v1/skills/a/1.0.0%2f..",
        "/v1/skills/a/v1",
        "/v1/skills/a/sha256:xyz",
        &format!("/v1/executions/{}", never.to_uppercase()),
        &format!("/v1/executions/{}", never.replace('-', "")),
        &format!("/v1/executions/{{{never}}}"),
        "/v1/executions/1",
        "/v1/executions/..%2f..%2fhealthz",
        &format!("/v1/executions/{never}/files/..%2f..%2fskillbox.db"),
        &format!("/v1/executions/{never}/files/../../../skillbox.db"),
        &format!("/v1/executions/{never}/files/%2fetc%2fpasswd"),
        &format!("/v1/executions/{never}/files/%00"),
        "/../etc/passwd",
        "//v1/skills",
        "/v1/skills/",
        "/v1/%73kills",
    ] {
        let reply = server.ask(Call::get(path)).await;
        assert!(
            matches!(reply.status.as_u16(), 400 | 404),
            "{path}: {}",
            reply.status
        );
        assert!(
            ["invalid", "not_found"].contains(&reply.code().as_str()),
            "{path}"
        );
    }
}

/// What is written wrong is named, with how to write it.
#[tokio::test]
async fn reports_format_of_invalid_time_or_number() {
    let server = TestServer::open().await;
    let since = server.ask(Call::get("/v1/executions?since=yesterday")).await;
    let detail = since.json()["detail"].as_str().unwrap().to_owned();
    assert!(
        detail.contains("since") && detail.contains("2026-01-31T12:00:00Z"),
        "{detail}"
    );
    let body = json!({"skill": "probe", "timeout": "30s"});
    let timeout = server.ask(Call::post("/v1/executions").json(&body)).await;
    let detail = timeout.json()["detail"].as_str().unwrap().to_owned();
    assert!(
        detail.contains("timeout") && detail.contains("like 30"),
        "{detail}"
    );
}

/// A-12.
#[tokio::test]
async fn filters_are_plain_values() {
    let server = TestServer::open().await;
    server.publish(&server.admin).await;
    server.run(json!({"skill": "probe"})).await;
    for query in [
        "status=%27%20or%201%3D1--",
        "status=SUCCESS",
        "status=success&status=failed",
        "status[]=success",
        "skill=%25",
        "skill=prob_",
        "skill=probe%27--",
        "since=yesterday",
        "since=2026-01-01",
        "until=99999-01-01T00:00:00Z",
        "sort=name",
        "order_by=id%3Bdrop%20table%20executions",
        "status=",
        "unknown",
    ] {
        let reply = server.ask(Call::get(&format!("/v1/executions?{query}"))).await;
        assert_eq!(reply.refusal(), invalid(), "{query}: {}", reply.text());
    }
    let count = async |query: &str| {
        let reply = server.ask(Call::get(&format!("/v1/executions?{query}"))).await;
        reply.json()["items"].as_array().unwrap().len()
    };
    assert_eq!(count("").await, 1);
    assert_eq!(
        count("status=success&skill=probe&since=2020-01-01T00:00:00Z").await,
        1
    );
    assert_eq!(count("status=failed").await, 0);
    assert_eq!(count("skill=other").await, 0);
    assert_eq!(count("until=2020-01-01T00:00:00Z").await, 0);
}

/// A-13: every list by pages, and tokens that are not its own.
#[tokio::test]
async fn pages_cover_list_and_foreign_tokens_are_rejected() {
    let server = TestServer::open().await;
    server.publish(&server.admin).await;
    for _ in 0..3 {
        server.run(json!({"skill": "probe"})).await;
    }
    let all = server.ask(Call::get("/v1/executions")).await.json();
    assert_eq!(all["next_page_token"], Value::Null);
    let (mut joined, mut token) = (Vec::new(), String::new());
    loop {
        let path = format!("/v1/executions?limit=1{token}");
        let page = server.ask(Call::get(&path)).await.json();
        joined.extend(page["items"].as_array().unwrap().clone());
        match page["next_page_token"].as_str() {
            Some(next) => token = format!("&page_token={next}"),
            None => break,
        }
    }
    assert_eq!(json!(joined), all["items"]);

    let first = server.ask(Call::get("/v1/executions?limit=1")).await.json();
    let token = first["next_page_token"].as_str().unwrap();
    for path in [
        format!("/v1/keys?page_token={token}"),
        format!("/v1/skills?page_token={token}"),
        format!("/v1/executions?status=success&page_token={token}"),
        format!("/v1/executions?page_token={token}x"),
        "/v1/executions?page_token=".to_owned(),
        "/v1/executions?limit=0".to_owned(),
        "/v1/executions?limit=-1".to_owned(),
    ] {
        assert_eq!(server.ask(Call::get(&path)).await.refusal(), invalid(), "{path}");
    }
    let clamped = server.ask(Call::get("/v1/executions?limit=1000000000")).await;
    assert_eq!(clamped.status, 200);
}

/// A-24: other methods, and pages of other origins.
#[tokio::test]
async fn rejects_other_methods_and_origins() {
    let server = TestServer::open().await;
    for (method, path) in [
        ("TRACE", "/v1/skills"),
        ("OPTIONS", "/v1/executions"),
        ("PUT", "/v1/skills"),
        ("PATCH", "/healthz"),
        ("BREW", "/v1/keys"),
        ("GET", "/v1/keys/019a0000-0000-7000-8000-000000000000/rotate"),
    ] {
        let call = Call::new(method.parse().unwrap(), path).header(header::ORIGIN, "https://evil.test");
        let reply = server.ask(call).await;
        assert_eq!(
            reply.refusal(),
            (405, "method_not_allowed".to_owned()),
            "{method}"
        );
        assert!(!reply.header(header::ALLOW).is_empty(), "{method}");
        assert!(!reply.headers.contains_key(header::ACCESS_CONTROL_ALLOW_ORIGIN));
    }
    let connect = Call::new(Method::CONNECT, "localhost:22");
    let reply = server.ask(connect).await;
    assert_eq!(reply.refusal(), (405, "method_not_allowed".to_owned()));
    assert!(!reply.header(header::ALLOW).is_empty());
    let overridden =
        Call::post("/v1/skills/a/1.0.0").header(HeaderName::from_static("x-http-method-override"), "DELETE");
    assert_eq!(server.ask(overridden).await.status, 405);
    let foreign = Call::get("/v1/skills").header(header::ORIGIN, "https://evil.test");
    let reply = server.ask(foreign).await;
    assert!(!reply.headers.contains_key(header::ACCESS_CONTROL_ALLOW_ORIGIN));
}
