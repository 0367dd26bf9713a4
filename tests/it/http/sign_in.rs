//! Signing in to the dashboard with a key or a link.

use axum::http::{Method, header};
use serde_json::json;
use skillbox::auth::Scope;
use skillbox::http::{Dashboard, Settings};
use skillbox::limits;

use super::browser::{Browser, FETCH_SITE, SECOND, change, link, revoke, sign_in, text, unauthenticated};
use super::client::{Call, TestServer};

/// W-09: the token is in the fragment, which no server, log or referrer sees.
#[tokio::test]
async fn link_signs_in_once_with_key_that_made_it() {
    let server = TestServer::open().await;
    let token = link(&server).await;
    let reply = sign_in(&server, json!({"token": token})).await;
    let browser = Browser::of(&reply);
    assert_eq!(reply.json()["key"]["name"], "first key");
    assert_eq!(browser.status(&server).await, 200);
    let again = sign_in(&server, json!({"token": token})).await;
    assert_eq!(again.refusal(), unauthenticated());
    assert_eq!(browser.status(&server).await, 200, "the first sign-in stays");
}

/// W-09: of several browsers that open a link at once, one is signed in.
#[tokio::test(flavor = "multi_thread")]
async fn one_of_concurrent_uses_of_a_link_wins() {
    let server = TestServer::open().await;
    let token = link(&server).await;
    let attempts = (0..8).map(|_| sign_in(&server, json!({"token": token})));
    let replies = futures::future::join_all(attempts).await;
    let signed_in = replies.iter().filter(|reply| reply.status == 201).count();
    assert_eq!(signed_in, 1);
}

#[tokio::test]
async fn link_ends_after_ten_minutes_or_with_its_key() {
    let server = TestServer::open().await;
    let reply = server.ask(Call::post("/v1/session/links")).await.json();
    let expires_at: jiff::Timestamp = text(&reply["expires_at"]).parse().unwrap();
    let life = expires_at.duration_since(jiff::Timestamp::now());
    assert!((590..=600).contains(&life.as_secs()), "{life}");
    for (age, expected) in [(599 * SECOND, 201), (600 * SECOND, 401)] {
        let token = link(&server).await;
        change(
            &server,
            &format!("update sign_in_links set expires_at = expires_at - {age}"),
        );
        let reply = sign_in(&server, json!({"token": token})).await;
        assert_eq!(reply.status, expected, "{age}");
    }
    let key = server.key("default", &[Scope::Run]).await;
    let made = server
        .send(Call::post("/v1/session/links").key(&key))
        .await
        .json();
    let token = text(&made["url"]).split_once('=').unwrap().1.to_owned();
    revoke(&server, &key).await;
    let reply = sign_in(&server, json!({"token": token})).await;
    assert_eq!(reply.refusal(), unauthenticated());
}

/// Otherwise a stolen session could outlive its sign-out.
#[tokio::test]
async fn session_cannot_make_sign_in_links() {
    let server = TestServer::open().await;
    let browser = Browser::sign_in(&server, &server.admin).await;
    let reply = server.send(browser.call(Method::POST, "/v1/session/links")).await;
    assert_eq!(reply.refusal(), (403, "forbidden".to_owned()));
}

/// T-10: as wrong keys are, and without an effect on who signs in with a valid one.
#[tokio::test]
async fn wrong_keys_tokens_and_sessions_are_throttled() {
    let guess = "A".repeat(43);
    for kind in ["key", "token", "session"] {
        let server = TestServer::open().await;
        let browser = Browser::sign_in(&server, &server.admin).await;
        let wrong = Browser {
            cookie: format!("skillbox-8080={guess}"),
            page: guess.clone(),
        };
        let mut throttled = 0;
        for _ in 0..limits::WRONG_KEYS_PER_MINUTE_MAX + 5 {
            let reply = match kind {
                "session" => server.send(wrong.call(Method::GET, "/v1/session")).await,
                kind => sign_in(&server, json!({kind: guess})).await,
            };
            throttled += u32::from(reply.status == 429);
        }
        assert_eq!(throttled, 5, "{kind}");
        assert_eq!(browser.status(&server).await, 200);
        let token = link(&server).await;
        assert_eq!(sign_in(&server, json!({"token": token})).await.status, 201);
    }
}

/// W-05: nor does a foreign page sign a browser in to an account of its own.
#[tokio::test]
async fn sign_in_needs_own_origin_and_json() {
    let server = TestServer::open().await;
    let body = json!({"key": server.admin});
    for (name, value) in [
        (header::ORIGIN, "http://localhost:9090"),
        (header::ORIGIN, "https://evil.test"),
        (header::ORIGIN, "null"),
        (FETCH_SITE, "cross-site"),
        (FETCH_SITE, "same-site"),
    ] {
        let call = Call::post("/v1/session").header(name, value).json(&body);
        let reply = server.send(call).await;
        assert_eq!(reply.refusal(), (403, "forbidden".to_owned()), "{value}");
        assert!(!reply.headers.contains_key(header::SET_COOKIE));
    }
    for kind in ["text/plain", "application/x-www-form-urlencoded"] {
        let call = Call::post("/v1/session").header(header::CONTENT_TYPE, kind);
        let reply = server.send(call.body(body.to_string())).await;
        assert_eq!(reply.status, 415, "{kind}");
    }
    // Clients that are no browser send neither header.
    let reply = server.send(Call::post("/v1/session").json(&body)).await;
    assert_eq!(reply.status, 201);
}

#[tokio::test]
async fn rejects_malformed_sign_ins() {
    let server = TestServer::open().await;
    let token = link(&server).await;
    for body in [
        json!({}),
        json!({"key": server.admin, "token": token}),
        json!({"key": null}),
        json!({"key": 1}),
        json!({"key": server.admin, "tenant": "other"}),
        json!([server.admin]),
    ] {
        let reply = sign_in(&server, body.clone()).await;
        assert_eq!(reply.refusal(), (400, "invalid".to_owned()), "{body}");
    }
    let large = sign_in(&server, json!({"key": "x".repeat(5000)})).await;
    assert_eq!(large.refusal().0, 413);
    let reply = sign_in(&server, json!({"token": token})).await;
    assert_eq!(reply.status, 201, "a malformed request uses up no link");
}

/// T-08: nothing that is stored is a token.
#[tokio::test]
async fn stores_no_token_on_disk() {
    let server = TestServer::open().await;
    let unused = link(&server).await;
    let browser = Browser::sign_in(&server, &server.admin).await;
    let cookie = browser.cookie.split_once('=').unwrap().1;
    let mut pending = vec![server.folder.path().to_owned()];
    let mut files = 0;
    while let Some(path) = pending.pop() {
        if path.is_dir() {
            let entries = std::fs::read_dir(&path).unwrap();
            pending.extend(entries.map(|entry| entry.unwrap().path()));
            continue;
        }
        files += 1;
        let bytes = std::fs::read(&path).unwrap();
        for token in [&unused, &browser.page, cookie] {
            let is_found = bytes
                .windows(token.len())
                .any(|window| window == token.as_bytes());
            assert!(!is_found, "{}", path.display());
        }
    }
    assert!(files > 0);
}

#[tokio::test]
async fn closed_dashboard_accepts_no_sessions() {
    let open = TestServer::open().await;
    let browser = Browser::sign_in(&open, &open.admin).await;
    let settings = Settings {
        dashboard: Dashboard::Closed,
        ..Settings::default()
    };
    let closed = open.again_with(&settings);
    assert_eq!(browser.status(&closed).await, 401);
    let not_found = (404, "not_found".to_owned());
    assert_eq!(
        sign_in(&closed, json!({"key": closed.admin})).await.refusal(),
        not_found
    );
    let link = closed.ask(Call::post("/v1/session/links")).await;
    assert_eq!(link.refusal(), not_found);
    assert_eq!(closed.ask(Call::get("/v1/session")).await.status, 200);
}
