//! `/sdk`: the client libraries.

use axum::http::{HeaderName, header};
use skillbox::ids::Digest;

use super::client::{Call, TestServer};

#[tokio::test]
async fn serves_files_of_client_libraries_without_key() {
    let server = TestServer::open().await;
    let index = server.send(Call::get("/sdk")).await.json();
    let files = index["items"].as_array().unwrap();
    for expected in [
        "/sdk/go/go.mod",
        "/sdk/go/skillbox.go",
        "/sdk/python/pyproject.toml",
        "/sdk/python/skillbox.py",
        "/sdk/python/skillbox/__init__.py",
        "/sdk/python/skillbox/py.typed",
        "/sdk/typescript/package.json",
        "/sdk/typescript/skillbox.d.ts",
        "/sdk/typescript/skillbox.js",
    ] {
        assert!(
            files.iter().any(|file| file["path"] == expected),
            "{expected}: {index}"
        );
    }
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("web");
    for file in files {
        let path = file["path"].as_str().unwrap();
        assert!(!path.contains("test"), "{path}");
        let reply = server.send(Call::get(path)).await;
        assert_eq!(reply.status, 200, "{path}");
        let in_repository = path.replace("/python/skillbox.py", "/python/skillbox/__init__.py");
        assert_eq!(
            reply.body,
            std::fs::read(folder.join(&in_repository[1..])).unwrap(),
            "{path}"
        );
        assert_eq!(file["sha256"], Digest::of(&reply.body).to_string(), "{path}");
        assert_eq!(file["size"], reply.body.len(), "{path}");
        let expected = if path.ends_with(".js") {
            "text/javascript"
        } else {
            "text/plain"
        };
        assert_eq!(
            reply.header(header::CONTENT_TYPE),
            format!("{expected}; charset=utf-8"),
            "{path}"
        );
        assert_eq!(
            reply.header(HeaderName::from_static("x-content-type-options")),
            "nosniff"
        );
    }
}

#[tokio::test]
async fn unknown_sdk_file_is_not_found() {
    let server = TestServer::open().await;
    for path in [
        "/sdk/go",
        "/sdk/go/skillbox_test.go",
        "/sdk/..%2fvendor%2fpreact.js",
        "/sdk/go/../../dashboard/app.js",
        "/sdk/rust/lib.rs",
    ] {
        let reply = server.send(Call::get(path)).await;
        assert_eq!(reply.refusal(), (404, "not_found".to_owned()), "{path}");
    }
}
