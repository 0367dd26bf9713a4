//! Publishing skills through the server.

use axum::body::{Body, Bytes};
use axum::http::{Method, header};
use futures::TryStreamExt as _;
use serde_json::json;
use skillbox::auth::Scope;
use skillbox::limits;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::client::{Call, TestServer, probe};
use crate::world::zip_of;

/// Z-25: what was published under a version is what is served.
#[tokio::test]
async fn publishes_shows_fetches_and_deletes_skill() {
    let server = TestServer::open().await;
    let zip = probe("version: 1.2.0\n");
    let made = server.ask(Call::upload(zip.clone())).await;
    assert_eq!(made.status, 201, "{}", made.text());
    assert_eq!(made.header(header::LOCATION), "/v1/skills/probe/1.2.0");
    let skill = made.json();
    assert_eq!(skill["name"], "probe");
    assert_eq!(skill["language"], "python");
    assert_eq!(skill["instructions"], "Probe.");
    let digest = skill["digest"].as_str().unwrap().to_owned();

    let again = server.ask(Call::upload(zip.clone())).await;
    assert_eq!(
        (again.status.as_u16(), again.json()),
        (200, skill.clone()),
        "the same once more"
    );
    let other = server
        .ask(Call::upload(probe("version: 1.2.0\nlicense: MIT\n")))
        .await;
    assert_eq!(other.refusal(), (409, "conflict".to_owned()));

    for version in ["1.2.0", "latest", &digest] {
        let path = format!("/v1/skills/probe/{version}");
        assert_eq!(server.ask(Call::get(&path)).await.json(), skill, "{version}");
        let archive = server.ask(Call::get(&format!("{path}/archive"))).await;
        assert_eq!(archive.body, zip);
        assert_eq!(archive.header(header::CONTENT_TYPE), "application/zip");
        assert_eq!(
            archive.header(header::CONTENT_DISPOSITION),
            "attachment; filename=\"probe-1.2.0.zip\""
        );
        let tag = archive.header(header::ETAG);
        let known = Call::get(&format!("{path}/archive")).header(header::IF_NONE_MATCH, tag);
        assert_eq!(server.ask(known).await.status, 304);
    }
    let listed = server.ask(Call::get("/v1/skills")).await.json();
    assert_eq!(listed["items"][0]["version"], "1.2.0");
    let versions = server.ask(Call::get("/v1/skills/probe")).await.json();
    assert_eq!(versions["items"], listed["items"]);

    assert_eq!(
        server.ask(Call::delete("/v1/skills/probe/latest")).await.status,
        204
    );
    for path in [
        "/v1/skills/probe",
        "/v1/skills/probe/1.2.0",
        "/v1/skills/probe/1.2.0/archive",
    ] {
        assert_eq!(server.ask(Call::get(path)).await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn answer_of_push_names_latest() {
    let server = TestServer::open().await;
    let (a, b) = (probe("license: A\n"), probe("license: B\n"));
    let mut versions = Vec::new();
    for zip in [&a, &b, &a] {
        let pushed = server.ask(Call::upload(zip.clone())).await.json();
        assert_eq!(pushed["latest"], pushed["version"]);
        versions.push(pushed["version"].clone());
        let shown = server.ask(Call::get("/v1/skills/probe/latest")).await.json();
        assert_eq!(shown, pushed);
    }
    assert!(
        versions[0] == versions[2] && versions[0] != versions[1],
        "{versions:?}"
    );
    let declared = server.ask(Call::upload(probe("version: 0.1.0\n"))).await.json();
    assert_eq!(declared["latest"], "0.1.0");
    let pushed = server.ask(Call::upload(b)).await;
    assert_eq!(
        (pushed.status.as_u16(), &pushed.json()["latest"]),
        (200, &json!("0.1.0"))
    );
}

#[tokio::test]
async fn push_warns_of_another_skill_with_this_name() {
    let server = TestServer::open().await;
    let push = async |folder: &str, description: &str, license: &str| {
        let skill_md = format!("---\nname: pdf\ndescription: {description}\nlicense: {license}\n---\n");
        let mut zip = Vec::new();
        std::io::copy(&mut zip_of(&[("SKILL.md", &skill_md)]), &mut zip).unwrap();
        let line = format!("Content-Disposition: form-data; name=\"file\"; filename=\"{folder}.zip\"");
        let pushed = server.ask(form("/v1/skills", &[(&line, &zip)])).await.json();
        let warnings = pushed["warnings"].as_array().unwrap().iter();
        warnings
            .map(|warning| warning["message"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(push("pdf", "Fills PDF forms.", "MIT").await, [""; 0]);
    assert_eq!(push("pdf", "Extracts tables and text.", "MIT").await, [""; 0]);
    assert_eq!(
        push("pdf-v2", "Extracts tables, text and pictures.", "MIT").await,
        [""; 0]
    );
    let warned = push("office", "Converts letters with LibreOffice.", "MIT").await;
    assert_eq!(warned.len(), 1, "{warned:?}");
    for part in [
        "another skill has the name `pdf`",
        "from `pdf-v2`",
        "by the key",
        "`Extracts tables, text and pictures.`",
        "rename",
    ] {
        assert!(warned[0].contains(part), "{part}: {warned:?}");
    }
    assert_eq!(
        push("office", "Converts letters with LibreOffice.", "MIT").await,
        [""; 0],
        "the last push was the same"
    );
    let shown = server.ask(Call::get("/v1/skills/pdf/latest")).await.json();
    assert_eq!(
        shown["warnings"],
        json!([]),
        "the warning is of the push, not of the skill"
    );
}

/// A form with these fields: `(header lines, content)`.
pub(super) fn form(path: &str, fields: &[(&str, &[u8])]) -> Call {
    let mut body = Vec::new();
    for (lines, content) in fields {
        body.extend_from_slice(format!("--x\r\n{lines}\r\n\r\n").as_bytes());
        body.extend_from_slice(content);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"--x--\r\n");
    Call::post(path)
        .header(header::CONTENT_TYPE, "multipart/form-data; boundary=x")
        .body(body)
}

pub(super) const FILE: &str =
    "Content-Disposition: form-data; name=\"file\"; filename=\"probe.zip\"\r\nContent-Type: application/zip";
const FIELD: &str = "Content-Disposition: form-data; name=\"version\"";

/// Z-24.
#[tokio::test]
async fn accepts_exactly_one_file_in_form() {
    let server = TestServer::open().await;
    let zip = probe("");
    assert_eq!(server.ask(form("/v1/skills", &[(FILE, &zip)])).await.status, 201);
    for (fields, why) in [
        (vec![], "none"),
        (vec![(FILE, &zip[..]), (FILE, &zip[..])], "two"),
        (vec![(FIELD, &b"1.0.0"[..])], "no file"),
        (vec![(FIELD, &b"1.0.0"[..]), (FILE, &zip[..])], "a field before"),
        (vec![(FILE, &zip[..]), (FIELD, &b"1.0.0"[..])], "a field after"),
    ] {
        let reply = server.ask(form("/v1/skills", &fields)).await;
        assert_eq!(
            reply.refusal(),
            (400, "invalid".to_owned()),
            "{why}: {}",
            reply.text()
        );
    }
    let cut = Call::post("/v1/skills")
        .header(header::CONTENT_TYPE, "multipart/form-data; boundary=x")
        .body(format!("--x\r\n{FILE}\r\n\r\nPK"));
    assert_eq!(server.ask(cut).await.refusal(), (400, "invalid".to_owned()));
}

///
#[tokio::test]
async fn rejects_archives_with_other_content_types() {
    let server = TestServer::open().await;
    for kind in [
        "",
        "text/plain",
        "application/json",
        "application/x-www-form-urlencoded",
        "multipart/mixed; boundary=x",
        "multipart/form-data",
    ] {
        let mut call = Call::post("/v1/skills").body(probe(""));
        if !kind.is_empty() {
            call = call.header(header::CONTENT_TYPE, kind);
        }
        assert_eq!(
            server.ask(call).await.refusal(),
            (415, "unsupported_media_type".to_owned()),
            "{kind}"
        );
    }
    for kind in ["application/octet-stream", "application/x-zip-compressed"] {
        let call = Call::post("/v1/skills")
            .header(header::CONTENT_TYPE, kind)
            .body(probe(""));
        assert!(server.ask(call).await.status.is_success(), "{kind}");
    }
}

/// Z-24: a body without a length, and without an end in sight.
#[tokio::test]
async fn rejects_archive_above_limit_during_upload() {
    let server = TestServer::open().await;
    let too_large = (413, "too_large".to_owned());
    let piece = Bytes::from(vec![0; 1 << 20]);
    let pieces = limits::ARCHIVE_BYTES_MAX / limits::MIB + 1;
    let stream = move || {
        let piece = piece.clone();
        Body::from_stream(futures::stream::iter(
            (0..pieces).map(move |_| Ok::<_, std::io::Error>(piece.clone())),
        ))
    };
    let plain = Call::post("/v1/skills")
        .header(header::CONTENT_TYPE, "application/zip")
        .body(stream());
    assert_eq!(server.ask(plain).await.refusal(), too_large);
    let head = futures::stream::iter([Ok::<_, std::io::Error>(Bytes::from(format!(
        "--x\r\n{FILE}\r\n\r\n"
    )))]);
    let body = Body::from_stream(futures::StreamExt::chain(
        head,
        stream().into_data_stream().map_err(std::io::Error::other),
    ));
    let in_form = Call::post("/v1/skills")
        .header(header::CONTENT_TYPE, "multipart/form-data; boundary=x")
        .body(body);
    assert_eq!(server.ask(in_form).await.refusal(), too_large);
}

#[tokio::test]
async fn rejects_invalid_skill_with_reason_and_stores_nothing() {
    let server = TestServer::open().await;
    for body in [&b""[..], b"PK", b"not a zip at all"] {
        let call = Call::post("/v1/skills")
            .header(header::CONTENT_TYPE, "application/zip")
            .body(body.to_vec());
        let reply = server.ask(call).await;
        assert_eq!(reply.refusal(), (400, "invalid".to_owned()), "{}", reply.text());
        assert!(!reply.text().contains(server.folder.path().to_str().unwrap()));
    }
    assert_eq!(
        server.ask(Call::get("/v1/skills")).await.json()["items"],
        json!([])
    );
    assert_eq!(
        std::fs::read_dir(server.folder.path().join("tmp"))
            .unwrap()
            .count(),
        0
    );
}

/// Z-24: lengths that lie, thousands of parts, names that lead out. Slow senders are `http::body`'s own tests.
#[tokio::test]
async fn rejects_inconsistent_uploads_and_stores_nothing() {
    let server = TestServer::open().await;
    let shutdown = tokio_util::sync::CancellationToken::new();
    let address = server.listen(shutdown.clone()).await;
    let zip = probe("");
    let lying = |length: usize| {
        let head = format!(
            "POST /v1/skills HTTP/1.1\r\nHost: localhost:8080\r\nConnection: close\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/zip\r\nContent-Length: {length}\r\n\r\n",
            server.admin
        );
        [head.as_bytes(), &zip].concat()
    };
    for length in [zip.len() - 1, zip.len() + 1, 0] {
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        stream.write_all(&lying(length)).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = Vec::new();
        // What was sent beyond the length may be answered with a reset.
        let _ = stream.read_to_end(&mut answer).await;
        let answer = String::from_utf8_lossy(&answer);
        assert!(!answer.starts_with("HTTP/1.1 2"), "{length}: {answer}");
    }
    let many: Vec<_> = (0..10_000).map(|_| (FIELD, &b"x"[..])).collect();
    assert_eq!(
        server.ask(form("/v1/skills", &many)).await.refusal(),
        (400, "invalid".to_owned())
    );
    assert_eq!(
        server.ask(Call::get("/v1/skills")).await.json()["items"],
        json!([])
    );

    let leading_out = FILE.replace("probe.zip", "../../../evil.zip");
    assert_eq!(
        server
            .ask(form("/v1/skills", &[(&leading_out, &zip)]))
            .await
            .status,
        201
    );
    let tmp = server.folder.path().join("tmp");
    assert_eq!(std::fs::read_dir(tmp).unwrap().count(), 0);
    assert!(!server.folder.path().join("evil.zip").exists());
    shutdown.cancel();
}

#[tokio::test]
async fn packages_are_added_to_a_version() {
    let server = TestServer::open().await;
    let zip = probe("version: 1.0.0\n");
    let form = |fields: &[(&str, &str)]| {
        let mut body = Vec::new();
        for (name, text) in fields {
            body.extend(
                format!("--x\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{text}\r\n").bytes(),
            );
        }
        let head = "--x\r\ncontent-disposition: form-data; name=\"file\"; filename=\"probe.zip\"\r\n\r\n";
        body.extend([head.as_bytes(), &zip, b"\r\n--x--\r\n"].concat());
        Call::post("/v1/skills")
            .header(header::CONTENT_TYPE, "multipart/form-data; boundary=x")
            .body(body)
    };
    let pushed = server
        .ask(form(&[
            ("requirements", "pypdf>=5"),
            ("requirements", "pandas>=2,<3"),
        ]))
        .await;
    assert_eq!(pushed.status, 201, "{}", pushed.text());
    assert_eq!(pushed.json()["requirements"], json!(["pypdf>=5", "pandas>=2,<3"]));
    let refused = server.ask(form(&[("requirement", "pypdf")])).await;
    assert_eq!(refused.refusal(), (400, "invalid".to_owned()));
    let long = "x".repeat(limits::REQUIREMENT_BYTES_MAX + 1);
    let refused = server.ask(form(&[("requirements", &long)])).await;
    assert!(refused.text().contains("requirements[0]"), "{}", refused.text());

    let path = "/v1/skills/probe/latest/requirements";
    let put = |body: serde_json::Value| Call::new(Method::PUT, path).json(&body);
    let changed = server.ask(put(json!({ "requirements": ["six"] }))).await;
    assert_eq!(
        changed.json()["requirements"],
        json!(["six"]),
        "{}",
        changed.text()
    );
    let shown = server.ask(Call::get("/v1/skills/probe/1.0.0")).await.json();
    assert_eq!(shown["requirements"], json!(["six"]));
    for wrong in [
        json!({}),
        json!({ "requirements": ["-e ."] }),
        json!({ "requirements": [], "x": 1 }),
    ] {
        let refused = server.ask(put(wrong)).await;
        assert_eq!(
            refused.refusal(),
            (400, "invalid".to_owned()),
            "{}",
            refused.text()
        );
    }
    let runner = server.key("default", &[Scope::Run]).await;
    let refused = server.send(put(json!({ "requirements": [] })).key(&runner)).await;
    assert_eq!(refused.status, 403);
    let other = server.key("other", &[Scope::Skills]).await;
    let refused = server.send(put(json!({ "requirements": [] })).key(&other)).await;
    assert_eq!(refused.status, 404);
}
