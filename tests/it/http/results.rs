//! Rich results, served so that a page of this server can show them and they can do no harm.

use axum::http::{HeaderName, Method, header};
use serde_json::Value;
use skillbox::auth::Scope;
use skillbox::bundle::artifacts::ArtifactTar;
use skillbox::engine::RetentionPolicy;
use skillbox::execution::CodeResults;
use skillbox::http::Settings;
use skillbox::sandbox::{Completion, Error, Job, Report, Sandbox};

use super::client::{Call, Reply, TestServer};

/// Shows what the input says, one line for each result, as the guest sends them.
fn shows_input(job: &Job, _: &mut ArtifactTar) -> Result<Report, Error> {
    let lines: Vec<Value> = serde_json::from_str(job.program.input.as_str()).unwrap();
    let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
    Ok(Report {
        shown: CodeResults::parse(lines.join("\n").as_bytes()),
        ..Report::bare(Completion::Exited(0))
    })
}

async fn server() -> TestServer {
    let sandbox = Sandbox::scripted(shows_input);
    TestServer::open_on(sandbox, &Settings::default(), RetentionPolicy::default()).await
}

/// The envelope of code that shows these results.
async fn shown(server: &TestServer, results: &[Value]) -> Value {
    let lines: Vec<_> = results
        .iter()
        .map(|result| serde_json::json!({ "result": result }))
        .collect();
    server
        .run(serde_json::json!({"code": "display(x)", "input": lines}))
        .await
}

/// The path and query of a link.
fn target(envelope: &Value, n: usize, form: &str) -> String {
    let url = envelope["results"][n]["urls"][form].as_str().unwrap();
    url.replacen("http://localhost:8080", "", 1)
}

fn csp(reply: &Reply) -> &str {
    reply.header(header::CONTENT_SECURITY_POLICY)
}

const POLICY: &str = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'self'";
const SCRIPT: &str = "<script>fetch('https://evil.example/')</script>";

/// O-15: each form by its link, without a key.
#[tokio::test]
async fn every_form_has_its_type_and_runs_no_script() {
    let server = server().await;
    let result = serde_json::json!({
        "text": "1", "html": SCRIPT, "markdown": SCRIPT, "svg": SCRIPT, "png": "AAAA", "jpeg": "AAEC", "pdf": "JVBERg==",
        "latex": "$x$", "json": {"n": [0.5]}, "javascript": "alert(1)", "data": {"a": [1]}, "chart": {"b": 2},
    });
    let envelope = shown(&server, &[result]).await;
    let urls = envelope["results"][0]["urls"].as_object().unwrap();
    assert_eq!(urls.len(), 12);
    let expected: [(&str, &str, &[u8]); 12] = [
        ("text", "text/plain; charset=utf-8", b"1"),
        ("html", "text/html; charset=utf-8", SCRIPT.as_bytes()),
        ("markdown", "text/markdown; charset=utf-8", SCRIPT.as_bytes()),
        ("svg", "image/svg+xml; charset=utf-8", SCRIPT.as_bytes()),
        ("png", "image/png", &[0, 0, 0]),
        ("jpeg", "image/jpeg", &[0, 1, 2]),
        ("pdf", "application/pdf", b"%PDF"),
        ("latex", "text/plain; charset=utf-8", b"$x$"),
        ("json", "application/json", b"{\"n\":[0.5]}"),
        ("javascript", "text/plain; charset=utf-8", b"alert(1)"),
        ("data", "application/json", b"{\"a\":[1]}"),
        ("chart", "application/json", b"{\"b\":2}"),
    ];
    for (form, media_type, content) in expected {
        let reply = server.send(Call::get(&target(&envelope, 0, form))).await;
        assert_eq!(reply.status, 200, "{form}: {}", reply.text());
        assert_eq!(reply.header(header::CONTENT_TYPE), media_type);
        assert_eq!(reply.body, content, "{form}");
        assert_eq!(csp(&reply), POLICY, "{form}");
        assert_eq!(reply.header(header::X_CONTENT_TYPE_OPTIONS), "nosniff");
        assert!(!reply.headers.contains_key(header::X_FRAME_OPTIONS), "{form}");
        assert!(!reply.headers.contains_key(header::SET_COOKIE), "{form}");
        let disposition = match form {
            "pdf" => "attachment; filename=\"result-0.pdf\"",
            _ => "inline",
        };
        assert_eq!(reply.header(header::CONTENT_DISPOSITION), disposition);
    }
}

#[tokio::test]
async fn answers_head_and_conditional_requests() {
    let server = server().await;
    let envelope = shown(&server, &[serde_json::json!({"html": "<b>x</b>"})]).await;
    let link = target(&envelope, 0, "html");
    let whole = server.send(Call::get(&link)).await;
    let head = server.send(Call::new(Method::HEAD, &link)).await;
    assert_eq!((head.status, head.body.len()), (whole.status, 0));
    for name in [
        header::CONTENT_LENGTH,
        header::ETAG,
        header::CONTENT_SECURITY_POLICY,
    ] {
        assert_eq!(head.header(name.clone()), whole.header(name));
    }
    let tag = whole.header(header::ETAG).to_owned();
    let known = server
        .send(Call::get(&link).header(header::IF_NONE_MATCH, &tag))
        .await;
    assert_eq!((known.status.as_u16(), known.body.len()), (304, 0));
    assert!(!known.headers.contains_key(header::X_FRAME_OPTIONS));
}

/// T-13: a link is for one form of one result.
#[tokio::test]
async fn link_serves_only_the_form_it_was_signed_for() {
    let server = server().await;
    let result = serde_json::json!({"html": "<b>x</b>", "text": "x"});
    let envelope = shown(&server, &[result.clone(), result]).await;
    let link = target(&envelope, 0, "html");
    let changed = [
        link.replace("/0/html", "/0/text"),
        link.replace("/0/html", "/1/html"),
        link.replace("/results/0/html", "/files"),
        link.replace("tenant=default", "tenant=other"),
        format!("{link}A"),
    ];
    for changed in changed {
        assert_ne!(changed, link);
        let refused = server.send(Call::get(&changed)).await;
        assert_eq!(refused.refusal(), (403, "forbidden".to_owned()), "{changed}");
        // In place of a result it is shown in the frame of the result.
        let policy = refused.header(header::CONTENT_SECURITY_POLICY);
        let (ancestors, no_frame) = if changed.contains("/results/") {
            ("frame-ancestors 'self'", "")
        } else {
            ("frame-ancestors 'none'", "DENY")
        };
        assert!(policy.ends_with(ancestors), "{policy}");
        assert_eq!(refused.header(header::X_FRAME_OPTIONS), no_frame, "{changed}");
    }
    assert_eq!(server.send(Call::get(&link)).await.status, 200);
}

#[tokio::test]
async fn key_needs_scope_run_and_unknown_forms_are_not_found() {
    let server = server().await;
    let envelope = shown(&server, &[serde_json::json!({"text": "x"})]).await;
    let base = format!(
        "/v1/executions/{}/results",
        envelope["execution_id"].as_str().unwrap()
    );
    let run = server.key("default", &[Scope::Run]).await;
    let skills = server.key("default", &[Scope::Skills]).await;
    let ask = async |path: &str, key: &str| server.send(Call::get(&format!("{base}/{path}")).key(key)).await;
    assert_eq!(ask("0/text", &run).await.text(), "x");
    assert_eq!(ask("0/text", &skills).await.status, 403);
    for (path, status) in [
        ("0/html", 404),
        ("1/text", 404),
        ("0/truncated", 400),
        ("0/TEXT", 400),
        ("-1/text", 400),
        ("99999999999999999999/text", 400),
        ("0/..%2f..%2fkeys", 400),
    ] {
        let refused = ask(path, &run).await;
        assert_eq!(refused.status, status, "{path}: {}", refused.text());
        refused.code();
    }
}

/// O-11: a program cannot place links of its own into the answer.
#[tokio::test]
async fn links_never_come_from_the_program() {
    let server = server().await;
    let hostile = serde_json::json!({"text": "x", "urls": {"text": "https://evil.example/", "html": "https://evil.example/"}});
    let envelope = shown(&server, &[hostile]).await;
    let urls = envelope["results"][0]["urls"].as_object().unwrap();
    assert_eq!(urls.len(), 1);
    assert!(target(&envelope, 0, "text").starts_with("/v1/executions/"));
    assert!(!envelope.to_string().contains("evil.example"));
    let header = HeaderName::from_static("x-request-id");
    let reply = server.send(Call::get(&target(&envelope, 0, "text"))).await;
    assert!(!reply.header(header).is_empty());
}
