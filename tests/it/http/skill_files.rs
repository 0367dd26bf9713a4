//! Files of skills: listed, downloaded without harm, compared, and checked by the lint.

use std::io::{Seek as _, Write as _};

use axum::http::{Method, header};
use serde_json::{Value, json};
use skillbox::auth::Scope;

use super::client::{Call, Reply, TestServer};
use super::skills::{FILE, form};

/// A zip of these files; those in `bin/` are executable.
fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (path, content) in files {
        let mode = if path.starts_with("bin/") { 0o755 } else { 0o644 };
        let options = zip::write::SimpleFileOptions::default().unix_permissions(mode);
        zip.start_file(*path, options).unwrap();
        zip.write_all(content).unwrap();
    }
    let mut bytes = zip.finish().unwrap();
    bytes.rewind().unwrap();
    bytes.into_inner()
}

fn skill_md(version: &str, more: &str) -> String {
    format!("---\nname: sample\ndescription: A sample\nlang: bash\nversion: {version}\n{more}---\n\nText.\n")
}

/// Publishes a version of `sample` with these files.
async fn push(server: &TestServer, version: &str, more: &str, files: &[(&str, &[u8])]) {
    let declared = skill_md(version, more);
    let mut all: Vec<(&str, &[u8])> = vec![
        ("SKILL.md", declared.as_bytes()),
        ("scripts/main.sh", b"echo 1\n"),
    ];
    all.extend_from_slice(files);
    let reply = server.ask(Call::upload(zip(&all))).await;
    assert_eq!(reply.status, 201, "{}", reply.text());
}

async fn get(server: &TestServer, path: &str) -> Reply {
    server.ask(Call::get(path)).await
}

#[tokio::test]
async fn lists_every_file_of_a_version() {
    let server = TestServer::open().await;
    let files: [(&str, &[u8]); 3] = [
        ("bin/tool", b"#!/bin/sh\n"),
        ("data/ü x.bin", b"\0\x01\xff"),
        ("notes.txt", "ü\n".as_bytes()),
    ];
    push(&server, "1.0.0", "", &files).await;
    let listed = get(&server, "/v1/skills/sample/1.0.0/files").await.json();
    let row = |path: &str| {
        let items = listed["items"].as_array().unwrap();
        items.iter().find(|item| item["path"] == path).unwrap().clone()
    };
    let names: Vec<_> = listed["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["path"].clone())
        .collect();
    assert_eq!(
        names,
        [
            "SKILL.md",
            "bin/tool",
            "data/ü x.bin",
            "notes.txt",
            "scripts/main.sh"
        ]
    );
    assert_eq!(
        (&row("bin/tool")["executable"], &row("bin/tool")["text"]),
        (&json!(true), &json!(true))
    );
    let binary = row("data/ü x.bin");
    assert_eq!(
        (&binary["executable"], &binary["text"], &binary["size"]),
        (&json!(false), &json!(false), &json!(3))
    );
    let digest = skillbox::ids::Digest::of(b"\0\x01\xff").to_string();
    assert_eq!(binary["sha256"], digest);
    assert_eq!(row("notes.txt")["text"], true);
}

/// O-15: a browser only saves it.
#[tokio::test]
async fn files_are_downloads_that_no_browser_renders() {
    let server = TestServer::open().await;
    let script = b"<script>fetch('https://evil.example/')</script>";
    let files: [(&str, &[u8]); 3] = [("page.html", script), ("image.svg", script), ("a b/ü.txt", b"x")];
    push(&server, "1.0.0", "", &files).await;
    for (path, media_type) in [
        ("page.html", "text/html"),
        ("image.svg", "image/svg+xml"),
        ("SKILL.md", "text/markdown"),
        ("a%20b/%C3%BC.txt", "text/plain"),
    ] {
        let path = format!("/v1/skills/sample/latest/files/{path}");
        let reply = get(&server, &path).await;
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        assert_eq!(reply.header(header::CONTENT_TYPE), media_type);
        assert!(
            reply
                .header(header::CONTENT_DISPOSITION)
                .starts_with("attachment; ")
        );
        assert_eq!(reply.header(header::X_CONTENT_TYPE_OPTIONS), "nosniff");
        assert_eq!(reply.header(header::X_FRAME_OPTIONS), "DENY");
        assert_eq!(
            reply.header(header::CONTENT_SECURITY_POLICY),
            "sandbox; default-src 'none'; frame-ancestors 'none'"
        );
        assert_eq!(reply.header(header::CONTENT_LENGTH), reply.body.len().to_string());
        let head = server.ask(Call::new(Method::HEAD, &path)).await;
        assert_eq!((head.status.as_u16(), head.body.len()), (200, 0));
        let tag = reply.header(header::ETAG);
        let known = server
            .ask(Call::get(&path).header(header::IF_NONE_MATCH, tag))
            .await;
        assert_eq!((known.status.as_u16(), known.body.len()), (304, 0));
    }
    let page = get(&server, "/v1/skills/sample/1.0.0/files/page.html").await;
    assert_eq!(page.body, script);
}

/// Z-01: nothing outside of the skill's folder is opened.
#[tokio::test]
async fn hostile_paths_are_not_found() {
    let server = TestServer::open().await;
    push(&server, "1.0.0", "", &[]).await;
    // The folder of the skill is `cache/<digest>`.
    std::fs::write(server.folder.path().join("outside.txt"), "private").unwrap();
    std::fs::write(server.folder.path().join("cache/outside.txt"), "private").unwrap();
    for path in [
        "..%2foutside.txt",
        "..%2f..%2foutside.txt",
        "scripts%2f..%2f..%2foutside.txt",
        "%2e%2e%2foutside.txt",
        "%2e/SKILL.md",
        "%2fetc%2fpasswd",
        "scripts",
        "scripts/",
        "scripts//main.sh",
        "SKILL.md%00.txt",
        "..%5coutside.txt",
        "never.txt",
        "%E2%80%AESKILL.md",
    ] {
        let reply = get(&server, &format!("/v1/skills/sample/1.0.0/files/{path}")).await;
        assert_eq!(reply.refusal(), (404, "not_found".to_owned()), "{path}");
        assert!(!reply.text().contains("private"));
    }
    let stray = get(&server, "/v1/skills/sample/9.9.9/files/SKILL.md").await;
    assert_eq!(stray.status, 404);
}

type Files<'a> = [(&'a str, &'a [u8]); 4];

/// The changes between two versions of `sample`.
async fn diff_of_two(server: &TestServer) -> Value {
    let old: Files<'_> = [
        ("bin/tool", b"x\n"),
        ("data.bin", b"\0a"),
        ("gone.txt", b"a\n"),
        ("same.txt", b"s\n"),
    ];
    let new: Files<'_> = [
        ("tool", b"x\n"),
        ("data.bin", b"\0b"),
        ("new.txt", b"<b>&\n"),
        ("same.txt", b"s\n"),
    ];
    push(server, "1.0.0", "timeout: 30\n", &old).await;
    push(server, "2.0.0", "license: MIT\n", &new).await;
    let diff = get(server, "/v1/skills/sample/diff?from=1.0.0&to=latest").await;
    assert_eq!(diff.status, 200, "{}", diff.text());
    diff.json()
}

fn changed<'a>(diff: &'a Value, path: &str) -> &'a Value {
    let files = diff["files"].as_array().unwrap();
    files.iter().find(|file| file["path"] == path).unwrap()
}

#[tokio::test]
async fn diff_lists_fields_and_files() {
    let server = TestServer::open().await;
    let diff = diff_of_two(&server).await;
    assert_eq!(
        (&diff["from"], &diff["to"], &diff["truncated"]),
        (&json!("1.0.0"), &json!("2.0.0"), &json!(false))
    );
    assert_eq!(
        diff["fields"],
        json!([
            {"name": "timeout", "from": 30.0, "to": null},
            {"name": "license", "from": null, "to": "MIT"},
        ])
    );
    let files = diff["files"].as_array().unwrap();
    let changes: Vec<_> = files
        .iter()
        .map(|file| (file["path"].clone(), file["change"].clone()))
        .collect();
    let expected = [
        ("SKILL.md", "modified"),
        ("bin/tool", "removed"),
        ("data.bin", "modified"),
        ("gone.txt", "removed"),
        ("new.txt", "added"),
        ("tool", "added"),
    ];
    assert_eq!(
        changes,
        expected.map(|(path, change)| (json!(path), json!(change)))
    );

    let same = get(&server, "/v1/skills/sample/diff?from=1.0.0&to=1.0.0")
        .await
        .json();
    assert_eq!((&same["fields"], &same["files"]), (&json!([]), &json!([])));
    for (query, status) in [
        ("?from=1.0.0", 400),
        ("?from=1.0.0&to=9.9.9", 404),
        ("?from=x&to=latest", 400),
        ("?from=1.0.0&to=latest&x=1", 400),
    ] {
        let refused = get(&server, &format!("/v1/skills/sample/diff{query}")).await;
        assert_eq!(refused.status, status, "{query}: {}", refused.text());
    }
}

#[tokio::test]
async fn diff_has_the_changed_lines_of_text() {
    let server = TestServer::open().await;
    let diff = diff_of_two(&server).await;
    let declared = changed(&diff, "SKILL.md");
    assert_eq!(declared["hunks"][0]["from_line"], 2);
    let lines = declared["hunks"][0]["lines"].as_array().unwrap();
    for line in [
        "-version: 1.0.0",
        "-timeout: 30",
        "+version: 2.0.0",
        "+license: MIT",
        " lang: bash",
    ] {
        assert!(lines.contains(&json!(line)), "{line}: {lines:?}");
    }
    let binary = changed(&diff, "data.bin");
    assert_eq!(
        (&binary["binary"], &binary["hunks"], &binary["from_size"]),
        (&json!(true), &json!([]), &json!(2))
    );
    let added = changed(&diff, "new.txt");
    assert_eq!(
        (&added["from_size"], &added["to_size"]),
        (&Value::Null, &json!(5))
    );
    assert_eq!(
        added["hunks"],
        json!([{"from_line": 0, "to_line": 1, "lines": ["+<b>&"]}])
    );
}

#[tokio::test]
async fn executable_bit_alone_is_a_change_of_mode() {
    let server = TestServer::open().await;
    let push_mode = async |version: &str, mode: u32| {
        let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        let options = |mode| zip::write::SimpleFileOptions::default().unix_permissions(mode);
        zip.start_file("SKILL.md", options(0o644)).unwrap();
        zip.write_all(skill_md(version, "").as_bytes()).unwrap();
        zip.start_file("scripts/main.sh", options(mode)).unwrap();
        zip.write_all(b"echo 1\n").unwrap();
        let reply = server.ask(Call::upload(zip.finish().unwrap().into_inner())).await;
        assert_eq!(reply.status, 201, "{}", reply.text());
    };
    push_mode("1.0.0", 0o644).await;
    push_mode("2.0.0", 0o755).await;
    let diff = get(&server, "/v1/skills/sample/diff?from=1.0.0&to=2.0.0")
        .await
        .json();
    let script = &diff["files"][1];
    assert_eq!(
        (&script["path"], &script["change"], &script["hunks"]),
        (&json!("scripts/main.sh"), &json!("mode"), &json!([]))
    );
}

/// R: the answer is limited however large the skills are.
#[tokio::test]
async fn diff_is_limited_and_reports_it() {
    let server = TestServer::open().await;
    let lines = |count: usize| -> String { (0..count).map(|n| format!("line {n}\n")).collect() };
    let (many, large) = (lines(15_000), "0123456789abcdef\n".repeat(40_000));
    push(&server, "1.0.0", "", &[]).await;
    let files: [(&str, &[u8]); 3] = [
        ("a.txt", many.as_bytes()),
        ("b.txt", many.as_bytes()),
        ("large.txt", large.as_bytes()),
    ];
    push(&server, "2.0.0", "", &files).await;
    let diff = get(&server, "/v1/skills/sample/diff?from=1.0.0&to=2.0.0")
        .await
        .json();
    assert_eq!(diff["truncated"], true);
    let file = |path: &str| {
        let files = diff["files"].as_array().unwrap();
        files.iter().find(|file| file["path"] == path).unwrap().clone()
    };
    assert_eq!(
        file("a.txt")["hunks"][0]["lines"].as_array().unwrap().len(),
        15_000
    );
    assert_eq!(
        (&file("b.txt")["hunks"], &file("b.txt")["binary"]),
        (&json!([]), &json!(false))
    );
    assert_eq!(
        (&file("large.txt")["hunks"], &file("large.txt")["binary"]),
        (&json!([]), &json!(true))
    );
}

async fn lint(server: &TestServer, archive: Vec<u8>) -> Value {
    let call = Call::post("/v1/skills/lint").header(header::CONTENT_TYPE, "application/zip");
    let reply = server.ask(call.body(archive)).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.json()["findings"].clone()
}

#[tokio::test]
async fn lint_reports_findings_and_publishes_nothing() {
    let server = TestServer::open().await;
    let declared = "---\nname: sample\ndescription: A sample\nlang: bash\nversion: 1.0.0\nhook: x\n---\n";
    let archive = zip(&[("SKILL.md", declared.as_bytes()), ("scripts/main.sh", b"echo\n")]);
    let findings = lint(&server, archive.clone()).await;
    let unknown = findings
        .as_array()
        .unwrap()
        .iter()
        .find(|finding| finding["code"] == "skillbox")
        .unwrap();
    assert_eq!(
        (&unknown["level"], &unknown["path"], &unknown["line"]),
        (&json!("warning"), &json!("SKILL.md"), &json!(6))
    );
    assert!(unknown["message"].as_str().unwrap().contains("hook"));
    assert!(
        findings
            .as_array()
            .unwrap()
            .iter()
            .any(|finding| finding["code"] == "agent-skills" && finding["level"] == "error")
    );
    assert_eq!(get(&server, "/v1/skills").await.json()["items"], json!([]));

    let published = server.ask(Call::upload(archive)).await;
    assert_eq!(published.status, 201, "{}", published.text());
    let again = get(&server, "/v1/skills/sample/1.0.0/lint").await.json();
    assert_eq!(again["findings"], findings);
}

#[tokio::test]
async fn lint_reports_why_an_archive_would_be_rejected() {
    let server = TestServer::open().await;
    for (archive, path, named) in [
        (zip(&[("README.md", b"x")]), "", "SKILL.md"),
        (
            zip(&[("SKILL.md", b"no front matter")]),
            "SKILL.md",
            "`name` is missing",
        ),
        (b"no zip".to_vec(), "", "zip"),
        (
            zip(&[("SKILL.md", skill_md("1.0.0", "").as_bytes()), ("../x", b"x")]),
            "",
            "../x",
        ),
    ] {
        let findings = lint(&server, archive.clone()).await;
        let first = &findings[0];
        assert_eq!(
            (&first["level"], &first["path"]),
            (&json!("error"), &json!(path)),
            "{findings}"
        );
        assert!(first["message"].as_str().unwrap().contains(named), "{findings}");
        assert_eq!(server.ask(Call::upload(archive)).await.status, 400);
    }
    let valid = zip(&[("SKILL.md", skill_md("1.0.0", "").as_bytes())]);
    let added = "Content-Disposition: form-data; name=\"requirements\"";
    let fields = [(added, &b"no requirement"[..]), (FILE, &valid)];
    let reply = server.ask(form("/v1/skills/lint", &fields)).await.json();
    let is_refusal = |found: &Value| {
        let message = found["message"].as_str().unwrap();
        found["level"] == "error" && message.contains("no requirement")
    };
    assert!(
        reply["findings"].as_array().unwrap().iter().any(is_refusal),
        "{reply}"
    );
    assert_eq!(server.ask(form("/v1/skills", &fields)).await.status, 400);
    let text = server.ask(Call::post("/v1/skills/lint").body("x")).await;
    assert_eq!(text.refusal().0, 415);
}

#[tokio::test]
async fn skill_named_lint_keeps_its_versions() {
    let server = TestServer::open().await;
    assert_eq!(get(&server, "/v1/skills/lint").await.refusal().0, 404);
    let declared = skill_md("1.0.0", "").replace("name: sample", "name: lint");
    let archive = zip(&[("SKILL.md", declared.as_bytes()), ("scripts/main.sh", b"echo\n")]);
    assert_eq!(server.ask(Call::upload(archive)).await.status, 201);
    let versions = get(&server, "/v1/skills/lint").await.json();
    assert_eq!(versions["items"][0]["version"], "1.0.0");
    assert_eq!(get(&server, "/v1/skills/lint/1.0.0/files").await.status, 200);
}

#[tokio::test]
async fn files_and_lint_need_their_scopes() {
    let server = TestServer::open().await;
    push(&server, "1.0.0", "", &[]).await;
    let run = server.key("default", &[Scope::Run]).await;
    for path in [
        "latest/files",
        "latest/files/SKILL.md",
        "latest/lint",
        "diff?from=1.0.0&to=latest",
    ] {
        let reply = server
            .send(Call::get(&format!("/v1/skills/sample/{path}")).key(&run))
            .await;
        assert_eq!(reply.status, 200, "{path}");
    }
    let archive = Call::post("/v1/skills/lint").header(header::CONTENT_TYPE, "application/zip");
    let refused = server.send(archive.body(zip(&[])).key(&run)).await;
    assert_eq!(refused.status, 403);
}
