//! The skills extension of the Model Context Protocol (SEP-2640) at `/mcp`.

use serde_json::json;

use super::client::TestServer;
use super::mcp::{error, publish, publish_program, result};

#[tokio::test]
async fn lists_skills_with_front_matter_and_digests() {
    let server = TestServer::open().await;
    let document = "---\nname: pdf\ndescription: Fills forms.\nlicense: MIT\nmetadata: {author: me, skillbox.version: 1.2.0}\nx-more: [1, {a: 1.5}]\n---\nRead `docs/form.md`.\n";
    publish(
        &server,
        &server.admin,
        &[
            ("SKILL.md", document),
            ("docs/form.md", "# Form\n"),
            ("scripts/fill.py", "print()\n"),
        ],
    )
    .await;
    publish_program(&server, &server.admin, "dotted.name", "").await;
    publish_program(&server, &server.admin, "versions", "").await;

    let listed = result(&server, &server.admin, "skills/list", json!({})).await;
    assert_eq!(listed["cacheScope"], "private");
    assert!(listed["ttlMs"].is_u64());
    let skills = listed["skills"].as_array().unwrap();
    assert_eq!(skills.len(), 1, "{listed}");
    let skill = &skills[0];
    assert_eq!(skill["uri"], "skill://pdf/SKILL.md");
    assert_eq!(
        skill["frontmatter"],
        json!({ "name": "pdf", "description": "Fills forms.", "license": "MIT",
            "metadata": { "author": "me", "skillbox.version": "1.2.0" }, "x-more": [1, { "a": 1.5 }] })
    );
    assert_eq!(skill["resources"].as_array().unwrap().len(), 3);
    for file in skill["resources"].as_array().unwrap() {
        let read = result(
            &server,
            &server.admin,
            "resources/read",
            json!({ "uri": file["uri"] }),
        )
        .await;
        let content = read["contents"][0]["text"].as_str().unwrap();
        let digest = skillbox::ids::Digest::of(content.as_bytes()).to_string();
        assert_eq!(
            (&file["digest"], &file["size"]),
            (&digest.into(), &content.len().into())
        );
    }

    let got = result(
        &server,
        &server.admin,
        "skills/get",
        json!({ "uri": "skill://pdf/SKILL.md" }),
    )
    .await;
    assert_eq!(&got["skill"], skill);
    let exact = "skill://versions/1.2.0/pdf/SKILL.md";
    let got = result(&server, &server.admin, "skills/get", json!({ "uri": exact })).await;
    assert_eq!(got["skill"]["uri"], exact);
    let absent = error(
        &server,
        &server.admin,
        "skills/get",
        json!({ "uri": "skill://dotted.name/SKILL.md" }),
    )
    .await;
    assert_eq!(absent["code"], -32602);
}

#[tokio::test]
async fn reads_folders_of_skills() {
    let server = TestServer::open().await;
    let document = "---\nname: pdf\ndescription: Fills forms.\n---\nSo.\n";
    publish(
        &server,
        &server.admin,
        &[("SKILL.md", document), ("docs/a/b.md", "b"), ("docs/c.md", "c")],
    )
    .await;
    let read = async |uri: &str| {
        let read = result(
            &server,
            &server.admin,
            "resources/directory/read",
            json!({ "uri": uri }),
        )
        .await;
        let children = read["resources"].as_array().unwrap().clone();
        children
            .iter()
            .map(|child| {
                format!(
                    "{} {}",
                    child["uri"].as_str().unwrap(),
                    child["mimeType"].as_str().unwrap()
                )
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(
        read("skill://pdf/").await,
        [
            "skill://pdf/SKILL.md text/markdown",
            "skill://pdf/docs inode/directory"
        ]
    );
    assert_eq!(
        read("skill://pdf/docs").await,
        [
            "skill://pdf/docs/a inode/directory",
            "skill://pdf/docs/c.md text/markdown"
        ]
    );
    for wrong in [
        "skill://pdf/SKILL.md",
        "skill://pdf/absent",
        "skill://pdf/..",
        "skill://absent/",
        "file:///",
    ] {
        let absent = error(
            &server,
            &server.admin,
            "resources/directory/read",
            json!({ "uri": wrong }),
        )
        .await;
        assert_eq!(absent["code"], -32602, "{wrong}");
    }
}
