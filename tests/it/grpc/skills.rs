//! `SkillService`.

use serde_json::json;
use skillbox::limits;

use super::client::{ask, bytes, call, send};
use crate::http::client::{Call, TestServer, probe};

const REGISTER: &str = "SkillService/RegisterSkill";

#[tokio::test]
async fn publishes_shows_lists_and_deletes_skill() {
    let server = TestServer::open().await;
    let zip = probe("version: 1.2.0\nlicense: MIT\nmetadata:\n  team: a\n");
    let chunks = zip.chunks(100).map(|chunk| json!({"chunk": bytes(chunk)}));
    let header = json!({"header": {"requirements": ["six"]}});
    let messages: Vec<_> = std::iter::once(header).chain(chunks).collect();
    let push = async || {
        send(&server, REGISTER, call(REGISTER, &messages).key(&server.admin))
            .await
            .only()
    };
    let pushed = push().await;
    assert_eq!(pushed["existed"], false);
    assert_eq!(push().await["existed"], true);
    let skill = &pushed["skill"];
    assert_eq!(skill["requirements"], json!(["six"]));
    assert_eq!(
        (&skill["license"], &skill["metadata"]),
        (&json!("MIT"), &json!({"team": "a"}))
    );

    let there = server.ask(Call::get("/v1/skills/probe/1.2.0")).await.json();
    for member in [
        "name",
        "version",
        "digest",
        "description",
        "archive_bytes",
        "created_at",
    ] {
        assert_eq!(skill["summary"][member], there[member], "{member}");
    }
    assert_eq!(
        (&skill["instructions"], &skill["latest"]),
        (&there["instructions"], &there["latest"])
    );
    let shown = ask(&server, "SkillService/GetSkill", json!({"name": "probe"}))
        .await
        .only();
    assert_eq!(&shown, skill);
    for message in [json!({}), json!({"name": "probe"})] {
        let listed = ask(&server, "SkillService/ListSkills", message).await.only();
        assert_eq!(listed["skills"], json!([skill["summary"]]));
    }
    let without = ask(&server, "SkillService/DeleteSkill", json!({"name": "probe"})).await;
    assert_eq!(without.code(), "invalid", "a version is required");
    let version = json!({"name": "probe", "version": "1.2.0"});
    ask(&server, "SkillService/DeleteSkill", version.clone())
        .await
        .only();
    assert_eq!(
        ask(&server, "SkillService/GetSkill", version).await.code(),
        "not_found"
    );
}

/// Z-24, A-07.
#[tokio::test]
async fn rejects_broken_and_oversized_archives() {
    let server = TestServer::open().await;
    let cases = [
        (vec![], "invalid"),
        (vec![json!({})], "invalid"),
        (vec![json!({"chunk": bytes("no zip")})], "invalid"),
        (
            vec![json!({"chunk": bytes("PK")}), json!({"header": {}})],
            "invalid",
        ),
        (
            vec![json!({"header": {"requirements": vec!["a"; limits::REQUIREMENTS_MAX + 1]}})],
            "invalid",
        ),
        (
            vec![json!({"chunk": bytes(vec![0; limits::GRPC_CHUNK_BYTES_MAX + 1])})],
            "too_large",
        ),
        (vec![json!({"chunk": bytes(vec![0; 4_000_000])}); 14], "too_large"),
    ];
    for (messages, code) in cases {
        let outcome = send(&server, REGISTER, call(REGISTER, &messages).key(&server.admin)).await;
        assert_eq!(
            outcome.code(),
            code,
            "{} messages: {}",
            messages.len(),
            outcome.message
        );
    }
    let conflict = async |license: &str| {
        let zip = probe(&format!("version: 1.0.0\nlicense: {license}\n"));
        let chunk = json!({"chunk": bytes(zip)});
        send(&server, REGISTER, call(REGISTER, &[chunk]).key(&server.admin)).await
    };
    conflict("A").await.only();
    let outcome = conflict("B").await;
    assert_eq!((outcome.code(), outcome.status), ("conflict", 6));
}
