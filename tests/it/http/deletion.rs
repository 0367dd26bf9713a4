//! Deleted data is removed: for every route, for links that were made before, and on disk (T-12).

use std::path::Path;

use serde_json::{Value, json};
use skillbox::engine::RetentionPolicy;
use skillbox::http::Settings;

use super::client::{Call, TestServer};

/// The names of all objects that are kept.
fn objects(server: &TestServer) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![server.folder.path().join("blobs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(name(&path));
            }
        }
    }
    found.sort();
    found
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_owned()
}

async fn assert_gone(server: &TestServer, path: &str) {
    let reply = server.ask(Call::get(path)).await;
    assert_eq!(reply.refusal(), (404, "not_found".to_owned()), "{path}");
}

/// T-12.
#[tokio::test]
async fn deleted_version_is_neither_shown_nor_run() {
    let server = TestServer::open().await;
    let published = server.publish(&server.admin).await.json();
    let version = published["version"].as_str().unwrap();
    let digest = published["digest"].as_str().unwrap();
    assert_eq!(objects(&server), ["skill.zip"]);
    let path = format!("/v1/skills/probe/{version}");
    assert_eq!(server.ask(Call::delete(&path)).await.status, 204);
    for selector in [version, "latest", digest] {
        assert_gone(&server, &format!("/v1/skills/probe/{selector}")).await;
        assert_gone(&server, &format!("/v1/skills/probe/{selector}/archive")).await;
        let body = json!({"skill": "probe", "version": selector});
        let run = server.ask(Call::post("/v1/executions").json(&body)).await;
        assert_eq!(run.refusal(), (404, "not_found".to_owned()), "{selector}");
    }
    let again = server.ask(Call::delete(&path)).await;
    assert_eq!(again.refusal(), (404, "not_found".to_owned()));
    assert!(objects(&server).is_empty());
}

/// T-12: retention takes an execution's files with it, and every link to them.
#[tokio::test]
async fn expired_execution_loses_files_and_links() {
    let retention = RetentionPolicy {
        age: None,
        per_tenant: Some(0),
    };
    let server = TestServer::open_keeping(&Settings::default(), retention).await;
    server.publish(&server.admin).await;
    let envelope = server
        .run(json!({"skill": "probe", "files": {"a.txt": "aGVsbG8="}}))
        .await;
    let target = |url: &Value| url.as_str().unwrap().replacen("http://localhost:8080", "", 1);
    let links = [
        target(&envelope["files_url"]),
        target(&envelope["files"][0]["url"]),
    ];
    for link in &links {
        assert_eq!(server.send(Call::get(link)).await.status, 200, "{link}");
    }
    assert_eq!(objects(&server), ["files.tar", "skill.zip"]);
    server.engine.maintenance().run().await;
    for link in &links {
        let reply = server.send(Call::get(link)).await;
        assert_eq!(reply.refusal(), (404, "not_found".to_owned()), "{link}");
    }
    let path = format!("/v1/executions/{}", envelope["execution_id"].as_str().unwrap());
    for part in ["", "/logs", "/files", "/files/a.txt"] {
        assert_gone(&server, &format!("{path}{part}")).await;
    }
    assert_eq!(objects(&server), ["skill.zip"]);
}
