//! Blobs through the server.

use axum::http::{Method, header};
use serde_json::{Value, json};
use skillbox::auth::Scope;
use skillbox::ids::{BlobObject, Digest};
use skillbox::limits;

use super::client::{Call, Reply, TestServer};

fn upload(content: impl Into<axum::body::Body>) -> Call {
    Call::post("/v1/blobs").body(content)
}

fn path(content: &[u8]) -> String {
    format!("/v1/blobs/{}", Digest::of(content))
}

fn moment(reply: &Reply, member: &str) -> jiff::Timestamp {
    reply.json()[member].as_str().unwrap().parse().unwrap()
}

#[tokio::test]
async fn stores_blob_under_digest_and_returns_it_unchanged() {
    let server = TestServer::open().await;
    let content: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let csv = upload(content.clone()).header(header::CONTENT_TYPE, "text/csv; charset=latin1");
    let kept = server.ask(csv).await;
    assert_eq!(kept.status, 201, "{}", kept.text());
    let info = kept.json();
    assert_eq!(info["blob_id"], Digest::of(&content).to_string());
    assert_eq!(
        (&info["size"], &info["media_type"]),
        (&json!(100_000), &json!("text/csv; charset=latin1"))
    );

    let got = server.ask(Call::get(&path(&content))).await;
    assert_eq!((got.status.as_u16(), &got.body), (200, &content));
    for (name, value) in [
        (header::CONTENT_TYPE, "text/csv; charset=latin1"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CONTENT_LENGTH, "100000"),
        (header::ACCEPT_RANGES, "bytes"),
    ] {
        assert_eq!(got.header(name.clone()), value, "{name}");
    }
    assert!(got.header(header::CONTENT_DISPOSITION).starts_with("attachment"));
    assert!(
        got.header(header::CONTENT_SECURITY_POLICY)
            .starts_with("sandbox;")
    );
    let tag = got.header(header::ETAG).to_owned();
    let known = server
        .ask(Call::get(&path(&content)).header(header::IF_NONE_MATCH, &tag))
        .await;
    assert_eq!(known.status, 304);
    let part = server
        .ask(Call::get(&path(&content)).header(header::RANGE, "bytes=10-19"))
        .await;
    assert_eq!(
        (part.status.as_u16(), part.body.as_slice()),
        (206, &content[10..20])
    );
    assert_eq!(part.header(header::CONTENT_RANGE), "bytes 10-19/100000");
    let beyond = server
        .ask(Call::get(&path(&content)).header(header::RANGE, "bytes=100000-"))
        .await;
    assert_eq!(beyond.refusal(), (416, "range_not_satisfiable".to_owned()));
    let head = server.ask(Call::new(Method::HEAD, &path(&content))).await;
    assert_eq!((head.status.as_u16(), head.body.len()), (200, 0));
    assert_eq!(head.header(header::CONTENT_LENGTH), "100000");
}

#[tokio::test]
async fn uploading_same_content_extends_lifetime() {
    let server = TestServer::open().await;
    let ask = async |query: &str| {
        let call = Call::post(&format!("/v1/blobs{query}"));
        server
            .ask(call.body("same").header(header::CONTENT_TYPE, "text/plain"))
            .await
    };
    let first = ask("?ttl=60").await;
    assert_eq!(first.status, 201);
    let life = moment(&first, "expires_at").duration_since(moment(&first, "created_at"));
    assert_eq!(life.as_secs(), 60);
    let again = ask("?ttl=600").await;
    assert_eq!(
        (again.status.as_u16(), again.json()["blob_id"].clone()),
        (200, first.json()["blob_id"].clone())
    );
    let shorter = ask("?ttl=1").await;
    assert_eq!(
        moment(&shorter, "expires_at"),
        moment(&again, "expires_at"),
        "never back"
    );
    assert!(moment(&again, "expires_at") > moment(&first, "expires_at"));
    assert!(
        moment(&ask("").await, "expires_at") > moment(&again, "expires_at"),
        "the default is a week"
    );
    for wrong in [
        "?ttl=0",
        "?ttl=-1",
        "?ttl=1.5",
        "?ttl=x",
        "?ttl=99999999999",
        "?life=3",
    ] {
        assert_eq!(ask(wrong).await.refusal(), (400, "invalid".to_owned()), "{wrong}");
    }
}

#[tokio::test]
async fn lists_blobs_newest_first_and_deletes_them() {
    let server = TestServer::open().await;
    for content in ["a", "b", "c"] {
        assert_eq!(server.ask(upload(content)).await.status, 201);
    }
    let ids = |reply: &Reply| -> Vec<Value> {
        let page = reply.json();
        page["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|blob| blob["blob_id"].clone())
            .collect()
    };
    let id = |content: &str| json!(Digest::of(content.as_bytes()).to_string());
    let first = server.ask(Call::get("/v1/blobs?limit=2")).await;
    assert_eq!(ids(&first), [id("c"), id("b")]);
    let token = first.json()["next_page_token"].as_str().unwrap().to_owned();
    let rest = server
        .ask(Call::get(&format!("/v1/blobs?page_token={token}")))
        .await;
    assert_eq!(ids(&rest), [id("a")]);

    let there = || -> usize {
        let folder = server.folder.path().join("blobs/default/blobs");
        std::fs::read_dir(folder).map_or(0, Iterator::count)
    };
    assert_eq!(there(), 3);
    assert_eq!(server.ask(Call::delete(&path(b"b"))).await.status, 204);
    assert_eq!(there(), 2, "the bytes are gone, too");
    for call in [Call::get(&path(b"b")), Call::delete(&path(b"b"))] {
        assert_eq!(server.ask(call).await.refusal(), (404, "not_found".to_owned()));
    }
    assert_eq!(server.ask(upload("b")).await.status, 201, "it may come back");
    assert_eq!(server.ask(Call::get(&path(b"b"))).await.text(), "b");
}

#[tokio::test]
async fn rejects_blobs_above_limits_with_fix_and_stores_nothing() {
    let server = TestServer::open().await;
    let large = vec![0; usize::try_from(limits::BLOB_BYTES_MAX).unwrap() + 1];
    assert_eq!(
        server.ask(upload(large.clone())).await.refusal(),
        (413, "too_large".to_owned())
    );
    let pieces = futures::stream::iter(
        large
            .chunks(1 << 20)
            .map(|piece| Ok::<_, std::io::Error>(piece.to_vec()))
            .collect::<Vec<_>>(),
    );
    let streamed = server.ask(upload(axum::body::Body::from_stream(pieces))).await;
    assert_eq!(streamed.refusal(), (413, "too_large".to_owned()));
    // The quota of tests.
    assert_eq!(server.ask(upload(large[..40 << 20].to_vec())).await.status, 201);
    let beyond = server.ask(upload(vec![1; 25 << 20])).await;
    assert_eq!(beyond.refusal(), (507, "storage_full".to_owned()));
    assert!(
        beyond.text().contains("blobs.quota") && beyond.text().contains("delete"),
        "{}",
        beyond.text()
    );
    assert_eq!(
        std::fs::read_dir(server.folder.path().join("blobs/default/blobs"))
            .unwrap()
            .count(),
        1
    );
    let other = server.key("other", &[Scope::Run]).await;
    assert_eq!(
        server.send(upload(vec![1; 25 << 20]).key(&other)).await.status,
        201
    );
    for id in ["x", "sha256:ABC", "..", "sha256:%2e%2e"] {
        let reply = server.ask(Call::get(&format!("/v1/blobs/{id}"))).await;
        assert!(
            matches!(reply.status.as_u16(), 400 | 404),
            "{id}: {}",
            reply.text()
        );
    }
}

/// Content-addressed within a tenant: knowing a digest is no way to the content.
#[tokio::test]
async fn same_content_of_two_tenants_is_two_blobs() {
    let server = TestServer::open().await;
    let other = server.key("other", &[Scope::Run]).await;
    assert_eq!(server.ask(upload("same")).await.status, 201);
    let theirs = || Call::get(&path(b"same")).key(&other);
    assert_eq!(
        server.send(theirs()).await.refusal(),
        (404, "not_found".to_owned())
    );
    let body = json!({"skill": "probe", "blobs": [Digest::of(b"same").to_string()]});
    server.publish(&server.key("other", &[Scope::Skills]).await).await;
    let run = server
        .send(Call::post("/v1/executions").json(&body).key(&other))
        .await;
    assert_eq!(run.refusal(), (404, "not_found".to_owned()));
    assert!(run.text().contains(&Digest::of(b"same").to_string()));
    assert_eq!(
        server.send(upload("same").key(&other)).await.status,
        201,
        "it is new to them"
    );
    assert_eq!(server.ask(Call::delete(&path(b"same"))).await.status, 204);
    assert_eq!(server.send(theirs()).await.text(), "same");
}

#[tokio::test]
async fn expired_blob_is_not_found_and_maintenance_deletes_bytes() {
    let server = TestServer::open().await;
    let soon = Call::post("/v1/blobs?ttl=1").body("soon");
    assert_eq!(server.ask(soon).await.status, 201);
    assert_eq!(server.ask(upload("later")).await.status, 201);
    let started = std::time::Instant::now();
    while server.ask(Call::get(&path(b"soon"))).await.status == 200 {
        assert!(started.elapsed().as_secs() < 10);
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    let there = || {
        std::fs::read_dir(server.folder.path().join("blobs/default/blobs"))
            .unwrap()
            .count()
    };
    assert_eq!(there(), 2);
    server.engine.maintenance().run().await;
    assert_eq!(there(), 1);
    assert_eq!(server.ask(Call::get(&path(b"later"))).await.status, 200);
}

/// A process may die between the bytes and the row.
#[tokio::test]
async fn maintenance_deletes_old_bytes_without_blob() {
    let server = TestServer::open().await;
    assert_eq!(server.ask(upload("kept")).await.status, 201);
    let folder = server.folder.path().join("blobs/default/blobs");
    let kept = std::fs::read_dir(&folder)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let (young, old) = (BlobObject::generate(), "0190163d-8694-739b-aea5-966c26f8ad90");
    // An end between folder and file is one, too.
    let empty = "0190163d-8694-739b-aea5-966c26f8ad91";
    for name in [young.to_string().as_str(), old, empty] {
        std::fs::create_dir(folder.join(name)).unwrap();
        if name != empty {
            std::fs::write(folder.join(name).join("blob"), "left").unwrap();
        }
    }
    // Named long ago and kept ever since.
    let aged = folder.join("0190163d-8694-739b-aea5-966c26f8ad92");
    std::fs::rename(&kept, &aged).unwrap();
    let database = rusqlite::Connection::open(server.folder.path().join("skillbox.db")).unwrap();
    let renamed = database.execute(
        "update blobs set object = ?1",
        [aged.file_name().unwrap().to_str()],
    );
    assert_eq!(renamed.unwrap(), 1);
    server.engine.maintenance().run().await;
    let mut left: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    left.sort();
    assert_eq!(left, [aged, folder.join(young.to_string())]);
    assert_eq!(server.ask(Call::get(&path(b"kept"))).await.status, 200);
}
