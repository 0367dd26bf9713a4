//! What a program left, handed out so that it can do no harm.

use axum::http::{Method, header};
use serde_json::{Value, json};

use super::client::{Call, Reply, TestServer};

/// A run that left these files, all with the content `hello world`.
async fn left(server: &TestServer, paths: &[&str]) -> Value {
    server.publish(&server.admin).await;
    let files: serde_json::Map<_, _> = paths
        .iter()
        .map(|path| ((*path).to_owned(), json!("aGVsbG8gd29ybGQ=")))
        .collect();
    server.run(json!({"skill": "probe", "files": files})).await
}

/// The path and query of a link.
fn target(url: &Value) -> String {
    url.as_str().unwrap().replacen("http://localhost:8080", "", 1)
}

fn path(envelope: &Value, file: &str) -> String {
    format!(
        "/v1/executions/{}/files/{file}",
        envelope["execution_id"].as_str().unwrap()
    )
}

/// O-15: a browser only saves it, with any claimed type.
#[tokio::test]
async fn browsers_do_not_execute_downloaded_files() {
    let server = TestServer::open().await;
    let names = [
        "page.html",
        "image.svg",
        "paper.pdf",
        "script.js",
        "mail.mhtml",
        "noending",
    ];
    let envelope = left(&server, &names).await;
    for file in envelope["files"].as_array().unwrap() {
        let reply = server.send(Call::get(&target(&file["url"]))).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        assert_eq!(reply.body, b"hello world");
        assert!(
            reply
                .header(header::CONTENT_DISPOSITION)
                .starts_with("attachment; ")
        );
        assert_eq!(reply.header(header::X_CONTENT_TYPE_OPTIONS), "nosniff");
        assert!(
            reply
                .header(header::CONTENT_SECURITY_POLICY)
                .starts_with("sandbox; default-src 'none'")
        );
        assert_eq!(
            reply.header(header::CONTENT_TYPE),
            file["media_type"].as_str().unwrap()
        );
        assert!(!reply.headers.contains_key(header::SET_COOKIE));
    }
}

/// O-09: odd names arrive under their own path and are saved under a safe one.
#[tokio::test]
async fn serves_odd_file_names_under_safe_names() {
    let server = TestServer::open().await;
    let names = [
        "a b/ü.txt",
        "-rf",
        "semi;colon?.txt",
        "percent%2e%2e.txt",
        "quote\".txt",
        "trailing ",
        "\u{202e}fdp.exe",
    ];
    let envelope = left(&server, &names).await;
    assert_eq!(envelope["files"].as_array().unwrap().len(), names.len());
    for file in envelope["files"].as_array().unwrap() {
        let reply = server.send(Call::get(&target(&file["url"]))).await;
        assert_eq!(reply.status, 200, "{file}: {}", reply.text());
        let name = reply.header(header::CONTENT_DISPOSITION);
        assert!(
            !name.contains('\u{202e}') && !name["attachment; filename=\"".len()..].contains("\".txt\""),
            "{name}"
        );
    }
}

/// O-15.
#[tokio::test]
async fn supports_ranges_and_conditional_requests() {
    let server = TestServer::open().await;
    let envelope = left(&server, &["first.bin", "report.txt"]).await;
    let path = path(&envelope, "report.txt");
    let whole = server.ask(Call::get(&path)).await;
    let tag = whole.header(header::ETAG).to_owned();
    assert_eq!(whole.header(header::CONTENT_LENGTH), "11");
    assert_eq!(whole.header(header::ACCEPT_RANGES), "bytes");
    let ranged = async |range: &str| server.ask(Call::get(&path).header(header::RANGE, range)).await;
    let seen = |reply: &Reply| {
        (
            reply.status.as_u16(),
            reply.text(),
            reply.header(header::CONTENT_RANGE).to_owned(),
        )
    };
    assert_eq!(
        seen(&ranged("bytes=0-4").await),
        (206, "hello".to_owned(), "bytes 0-4/11".to_owned())
    );
    assert_eq!(
        seen(&ranged("bytes=6-").await),
        (206, "world".to_owned(), "bytes 6-10/11".to_owned())
    );
    assert_eq!(
        seen(&ranged("bytes=-5").await),
        (206, "world".to_owned(), "bytes 6-10/11".to_owned())
    );
    assert_eq!(ranged("bytes=0-1,3-4").await.status, 200);
    let beyond = ranged("bytes=11-").await;
    assert_eq!(beyond.refusal(), (416, "range_not_satisfiable".to_owned()));
    assert_eq!(beyond.header(header::CONTENT_RANGE), "bytes */11");

    let known = server
        .ask(Call::get(&path).header(header::IF_NONE_MATCH, &tag))
        .await;
    assert_eq!((known.status.as_u16(), known.body.len()), (304, 0));
    let stale = Call::get(&path)
        .header(header::RANGE, "bytes=0-4")
        .header(header::IF_RANGE, "\"old\"");
    assert_eq!(server.ask(stale).await.status, 200);
    let head = server.ask(Call::new(Method::HEAD, &path)).await;
    assert_eq!(
        (
            head.status.as_u16(),
            head.header(header::CONTENT_LENGTH),
            head.body.len()
        ),
        (200, "11", 0)
    );
    assert_eq!(head.header(header::ETAG), tag);
}

#[tokio::test]
async fn returns_all_files_as_archive() {
    let server = TestServer::open().await;
    let envelope = left(&server, &["a.txt", "sub/b.txt"]).await;
    let reply = server.send(Call::get(&target(&envelope["files_url"]))).await;
    assert_eq!(reply.header(header::CONTENT_TYPE), "application/gzip");
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(&reply.body[..]));
    let names: Vec<String> = archive
        .entries()
        .unwrap()
        .map(|entry| entry.unwrap().path().unwrap().display().to_string())
        .collect();
    assert_eq!(names, ["a.txt", "sub/b.txt"]);
    let head = Call::new(Method::HEAD, &target(&envelope["files_url"]));
    let head = server.send(head).await;
    // The length of the archive is unknown before it is made.
    assert_eq!(
        (head.status.as_u16(), head.header(header::CONTENT_LENGTH)),
        (200, "")
    );
}

#[tokio::test]
async fn execution_without_files_has_no_archive() {
    let server = TestServer::open().await;
    let envelope = left(&server, &[]).await;
    assert_eq!(envelope["files_url"], Value::Null);
    let path = path(&envelope, "").trim_end_matches('/').to_owned();
    assert_eq!(
        server.ask(Call::get(&path)).await.refusal(),
        (404, "not_found".to_owned())
    );
}

/// T-13: a link opens what it was made for, and nothing else.
#[tokio::test]
async fn rejects_changed_download_link() {
    let server = TestServer::open().await;
    let envelope = left(&server, &["a.txt", "b.txt"]).await;
    let good = target(&envelope["files"][0]["url"]);
    assert_eq!(server.send(Call::get(&good)).await.status, 200);
    assert_eq!(server.send(Call::new(Method::HEAD, &good)).await.status, 200);

    let (path, query) = good.split_once('?').unwrap();
    let (unsigned, signature) = query.split_once("&signature=").unwrap();
    let expires = unsigned.split(['=', '&']).nth(1).unwrap();
    let flipped = |index: usize| {
        let mut text = signature.to_owned().into_bytes();
        text[index] = if text[index] == b'A' { b'B' } else { b'A' };
        String::from_utf8(text).unwrap()
    };
    let later = (expires.parse::<i64>().unwrap() + 1).to_string();
    let changed = [
        good.replace("a.txt", "b.txt"),
        good.replace("/a.txt", ""),
        good.replace("tenant=default", "tenant=other"),
        good.replace(expires, &later),
        good.replace(expires, "0"),
        good.replace(expires, "99999999999999"),
        format!("{path}?{unsigned}&signature={}", flipped(0)),
        format!("{path}?{unsigned}&signature={}", flipped(20)),
        format!("{path}?{unsigned}&signature="),
        format!("{path}?{unsigned}&signature"),
        format!("{path}?signature={signature}"),
        format!("{good}&tenant=other"),
        format!("{good}&signature={signature}"),
    ];
    for link in changed {
        let reply = server.send(Call::get(&link)).await;
        assert_eq!(reply.refusal(), (403, "forbidden".to_owned()), "{link}");
    }
    let unsigned = server.send(Call::get(&format!("{path}?{unsigned}"))).await;
    assert_eq!(unsigned.refusal(), (401, "unauthenticated".to_owned()));
    let query = query.to_owned();
    for other in ["logs", "cancel", ""] {
        let route = format!("{}/{other}?{query}", path.trim_end_matches("/files/a.txt"));
        let method = if other == "cancel" {
            Method::POST
        } else {
            Method::GET
        };
        let reply = server
            .send(Call::new(method, route.replace("/?", "?").as_str()))
            .await;
        assert_eq!(reply.status, 401, "{route}");
    }
}

/// T-02: a key of another tenant opens nothing, with or without a link of the owner.
#[tokio::test]
async fn link_does_not_extend_access_of_key() {
    let server = TestServer::open().await;
    let envelope = left(&server, &["a.txt"]).await;
    let stranger = server.key("other", &[skillbox::auth::Scope::Run]).await;
    let link = target(&envelope["files"][0]["url"]);
    assert_eq!(server.send(Call::get(&link).key(&stranger)).await.status, 404);
    assert_eq!(server.send(Call::get(&link).key("skb_wrong")).await.status, 401);
}
