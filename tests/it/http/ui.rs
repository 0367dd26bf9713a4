//! The dashboard's files: what is served below `/ui/`, in which encoding, and under which policy.

use std::io::Read as _;

use axum::http::{HeaderName, Method, header};
use skillbox::http::{Dashboard, Settings};

use super::client::{Call, Reply, TestServer};

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
     frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
     trusted-types 'none'";

const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

async fn get(server: &TestServer, path: &str) -> Reply {
    server.send(Call::get(path)).await
}

async fn open(server: &TestServer, path: &str) -> Reply {
    server.send(Call::get(path).header(header::ACCEPT, BROWSER)).await
}

/// A file of the repository.
fn file(path: &str) -> Vec<u8> {
    std::fs::read(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

#[tokio::test]
async fn serves_embedded_files_and_one_page_for_all_other_paths() {
    let server = TestServer::open().await;
    let page = file("web/dashboard/index.html");
    for path in [
        "/ui/",
        "/ui/index.html",
        "/ui/executions",
        "/ui/executions/019a0000-0000-7000-8000-000000000000",
        "/ui/skills/a.b/1.2.0",
        "/ui/skills/%C3%BC/",
    ] {
        let reply = get(&server, path).await;
        assert_eq!(reply.status, 200, "{path}");
        assert_eq!(
            reply.header(header::CONTENT_TYPE),
            "text/html; charset=utf-8",
            "{path}"
        );
        assert_eq!(reply.body, page, "{path}");
    }
    let script = get(&server, "/ui/app.js").await;
    assert_eq!(
        script.header(header::CONTENT_TYPE),
        "text/javascript; charset=utf-8"
    );
    // Comments are for readers of the source.
    let source = file("web/dashboard/app.js");
    assert!(script.body.len() < source.len() && !script.text().contains("/**"));
    let bundle = get(&server, "/ui/vendor/preact.js").await;
    assert_eq!(bundle.body, file("web/vendor/preact.js"));
}

/// A browser would report a syntax error in HTML instead of the missing script.
#[tokio::test]
async fn missing_script_is_not_found() {
    let server = TestServer::open().await;
    for path in ["/ui/nope.js", "/ui/vendor/nope.css", "/ui/pages/nope.svg"] {
        assert_eq!(
            get(&server, path).await.refusal(),
            (404, "not_found".to_owned()),
            "{path}"
        );
    }
    // A person opens a file of a skill.
    let reply = open(&server, "/ui/skills/a/1.0.0/files/main.js").await;
    assert_eq!(reply.status, 200);
    assert_eq!(reply.header(header::CONTENT_TYPE), "text/html; charset=utf-8");
}

/// W-10: neither the file system nor another route is reached.
#[tokio::test]
async fn paths_lead_to_embedded_files_only() {
    let server = TestServer::open().await;
    for path in [
        "/ui/..%2fCargo.toml",
        "/ui/%2e%2e/%2e%2e/Cargo.toml",
        "/ui/../Cargo.toml",
        "/ui/a/../../healthz",
        "/ui//etc/passwd",
        "/ui/%2fetc%2fpasswd",
        "/ui/..%5cCargo.toml",
        "/ui/app.js%00.html",
        "/ui/.%2fapp.js",
        "/ui//app.js",
    ] {
        let reply = open(&server, path).await;
        assert_eq!(reply.refusal(), (404, "not_found".to_owned()), "{path}");
    }
    assert_eq!(
        get(&server, "/ui/%ff").await.refusal(),
        (400, "invalid".to_owned())
    );
}

#[tokio::test]
async fn only_reading_methods_are_allowed() {
    let server = TestServer::open().await;
    for path in ["/ui", "/ui/", "/ui/app.js", "/ui/executions"] {
        for method in [Method::POST, Method::PUT, Method::DELETE, Method::PATCH] {
            let reply = server.ask(Call::new(method, path)).await;
            assert_eq!(reply.refusal(), (405, "method_not_allowed".to_owned()), "{path}");
            assert_eq!(reply.header(header::ALLOW), "GET,HEAD", "{path}");
        }
        let head = server.send(Call::new(Method::HEAD, path)).await;
        assert!(head.body.is_empty(), "{path}");
    }
    let head = server.send(Call::new(Method::HEAD, "/ui/app.js")).await;
    let size = get(&server, "/ui/app.js").await.body.len().to_string();
    assert_eq!(head.header(header::CONTENT_LENGTH), size);
}

/// W-08: no inline code, no other site, no frame, no sniffing.
#[tokio::test]
async fn dashboard_has_its_policy_and_all_security_headers() {
    let server = TestServer::open().await;
    let opener = HeaderName::from_static("cross-origin-opener-policy");
    let resource = HeaderName::from_static("cross-origin-resource-policy");
    for path in ["/ui/", "/ui/app.js", "/ui/executions/1"] {
        let tag = get(&server, path).await.header(header::ETAG).to_owned();
        let call = Call::get(path).header(header::IF_NONE_MATCH, &tag);
        for reply in [get(&server, path).await, server.send(call).await] {
            assert_eq!(reply.header(header::CONTENT_SECURITY_POLICY), POLICY, "{path}");
            assert_eq!(reply.header(header::X_CONTENT_TYPE_OPTIONS), "nosniff", "{path}");
            assert_eq!(reply.header(header::X_FRAME_OPTIONS), "DENY", "{path}");
            assert_eq!(reply.header(header::REFERRER_POLICY), "no-referrer", "{path}");
            assert_eq!(reply.header(header::CACHE_CONTROL), "no-cache", "{path}");
            assert_eq!(reply.header(opener.clone()), "same-origin", "{path}");
            assert_eq!(reply.header(resource.clone()), "same-origin", "{path}");
        }
    }
    // Errors and the API keep the strictest policy.
    for path in ["/ui/nope.js", "/", "/v1/skills"] {
        let reply = get(&server, path).await;
        let policy = reply.header(header::CONTENT_SECURITY_POLICY);
        assert_eq!(policy, "default-src 'none'; frame-ancestors 'none'", "{path}");
        assert_eq!(reply.header(header::CACHE_CONTROL), "no-store", "{path}");
    }
}

fn unpacked(reply: &Reply) -> Vec<u8> {
    let mut bytes = Vec::new();
    match reply.header(header::CONTENT_ENCODING) {
        "br" => drop(brotli::Decompressor::new(&reply.body[..], 4096).read_to_end(&mut bytes)),
        "gzip" => drop(flate2::read::GzDecoder::new(&reply.body[..]).read_to_end(&mut bytes)),
        _ => bytes.clone_from(&reply.body),
    }
    bytes
}

#[tokio::test]
async fn each_encoding_has_same_content_and_its_own_tag() {
    let server = TestServer::open().await;
    let page = file("web/dashboard/index.html");
    let mut tags = Vec::new();
    for (accepted, encoding) in [
        ("gzip, deflate, br", "br"),
        ("gzip", "gzip"),
        ("identity", ""),
        ("br;q=0", ""),
    ] {
        let call = || Call::get("/ui/").header(header::ACCEPT_ENCODING, accepted);
        let reply = server.send(call()).await;
        assert_eq!(reply.header(header::CONTENT_ENCODING), encoding, "{accepted}");
        assert_eq!(reply.header(header::VARY), "accept-encoding", "{accepted}");
        assert_eq!(unpacked(&reply), page, "{accepted}");
        let tag = reply.header(header::ETAG).to_owned();
        assert!(tag.starts_with('"'), "{tag}");

        let again = server
            .send(call().header(header::IF_NONE_MATCH, &format!("\"x\", {tag}")))
            .await;
        assert_eq!(again.status, 304, "{accepted}");
        assert!(again.body.is_empty());
        assert_eq!(again.header(header::ETAG), tag);
        let other = server
            .send(call().header(header::IF_NONE_MATCH, "\"other\""))
            .await;
        assert_eq!(other.status, 200);
        tags.push(tag);
    }
    tags.dedup();
    assert_eq!(tags.len(), 3, "{tags:?}");
}

/// Existing clients of the index get JSON as before.
#[tokio::test]
async fn only_browsers_are_led_from_root_to_dashboard() {
    let server = TestServer::open().await;
    for accepted in ["*/*", "application/json", "application/json, text/html;q=0.5", ""] {
        let reply = server.send(Call::get("/").header(header::ACCEPT, accepted)).await;
        assert_eq!(reply.json()["name"], "skillbox", "{accepted}");
        assert_eq!(reply.header(header::VARY), "accept");
    }
    for path in ["/", "/ui"] {
        let reply = open(&server, path).await;
        assert_eq!(
            (reply.status.as_u16(), reply.header(header::LOCATION)),
            (303, "/ui/")
        );
    }
}

#[tokio::test]
async fn setting_removes_whole_dashboard() {
    let settings = Settings {
        dashboard: Dashboard::Closed,
        ..Settings::default()
    };
    let server = TestServer::open_with(&settings).await;
    for path in ["/ui", "/ui/", "/ui/app.js"] {
        assert_eq!(open(&server, path).await.status, 404, "{path}");
    }
    assert_eq!(open(&server, "/").await.json()["name"], "skillbox");
}

/// W-06: the dashboard's files are no way around the check of the host.
#[tokio::test]
async fn foreign_host_gets_no_dashboard() {
    let server = TestServer::open().await;
    let call = Call::get("/ui/").without(&header::HOST);
    let reply = server.send(call.header(header::HOST, "evil.test")).await;
    assert_eq!(reply.refusal(), (421, "misdirected".to_owned()));
}
