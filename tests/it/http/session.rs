//! Sessions of the dashboard: what a session needs to be accepted, and what ends it.

use axum::http::{Method, header};
use serde_json::{Value, json};
use skillbox::auth::Scope;
use skillbox::http::Settings;

use super::browser::{
    Browser, FETCH_SITE, ORIGIN, PAGE_TOKEN, SECOND, change, find_key, revoke, sign_in, text, unauthenticated,
};
use super::client::{Call, TestServer};

const HOUR: i64 = 3600 * SECOND;

#[tokio::test]
async fn session_has_scopes_of_its_key() {
    let server = TestServer::open().await;
    let key = server.key("default", &[Scope::Run]).await;
    let reply = sign_in(&server, json!({"key": key})).await;
    let opened = reply.json();
    assert_eq!(opened["tenant"], "default");
    assert_eq!(
        (&opened["key"]["name"], &opened["key"]["scopes"]),
        (&json!("test"), &json!(["run"]))
    );
    let browser = Browser::of(&reply);
    let own = server.send(browser.call(Method::GET, "/v1/session")).await.json();
    assert_eq!(
        (&own["key"], &own["expires_at"]),
        (&opened["key"], &opened["expires_at"])
    );
    assert!(own["session_id"].is_string());
    let stored = server
        .send(browser.call(Method::POST, "/v1/blobs").body("x"))
        .await;
    assert_eq!(stored.status, 201, "{}", stored.text());
    let refused = server.send(browser.call(Method::GET, "/v1/keys")).await;
    assert_eq!(refused.refusal(), (403, "forbidden".to_owned()));
}

#[tokio::test]
async fn key_shows_who_is_calling() {
    let server = TestServer::open().await;
    let own = server.ask(Call::get("/v1/session")).await.json();
    assert_eq!(
        (&own["session_id"], &own["expires_at"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(
        (&own["key"]["name"], &own["key"]["scopes"]),
        (&json!("first key"), &json!(["admin"]))
    );
    let no_session = server.ask(Call::delete("/v1/session")).await;
    assert_eq!(no_session.refusal(), (400, "invalid".to_owned()));
}

/// W-05, W-09: a stolen cookie alone, which a server on another port of the host receives, and a page token alone.
#[tokio::test]
async fn neither_cookie_nor_page_token_alone_is_an_identity() {
    let server = TestServer::open().await;
    let browser = Browser::sign_in(&server, &server.admin).await;
    let other = Browser::sign_in(&server, &server.admin).await;
    assert_eq!(browser.status(&server).await, 200);
    let with = |cookie: Option<&str>, pages: &[&str]| {
        let mut call = Call::get("/v1/session").header(header::ORIGIN, ORIGIN);
        if let Some(cookie) = cookie {
            call = call.header(header::COOKIE, cookie);
        }
        pages
            .iter()
            .fold(call, |call, page| call.header(PAGE_TOKEN, page))
    };
    let cookie_value = browser.cookie.split_once('=').unwrap().1;
    let twice = format!("{}; {}", browser.cookie, other.cookie);
    for call in [
        with(Some(&browser.cookie), &[]),
        with(None, &[&browser.page]),
        with(Some(&browser.cookie), &[""]),
        with(Some(&browser.cookie), &[&other.page]),
        with(Some(&other.cookie), &[&browser.page]),
        with(Some(&browser.cookie), &[cookie_value]),
        with(Some(&browser.cookie), &[&browser.page, &browser.page]),
        with(Some(&twice), &[&browser.page]),
        with(Some(&format!("skillbox-8080={}", browser.page)), &[&browser.page]),
        with(Some(&format!("skillbox-9090={cookie_value}")), &[&browser.page]),
    ] {
        assert_eq!(server.send(call).await.refusal(), unauthenticated());
    }
}

/// W-05: forms, images and scripts of other sites, also of other ports of this host, which browsers call same-site.
#[tokio::test]
async fn session_changes_nothing_for_foreign_pages() {
    let server = TestServer::open().await;
    let browser = Browser::sign_in(&server, &server.admin).await;
    let forbidden = (403, "forbidden".to_owned());
    for (method, path) in [
        (Method::POST, "/v1/blobs"),
        (Method::DELETE, "/v1/session"),
        (Method::PUT, "/v1/secrets/TOKEN"),
        (Method::POST, "/v1/executions/prune"),
    ] {
        for origin in [
            "http://localhost:9090",
            "https://localhost:8080",
            "http://127.0.0.1:8080",
            "https://evil.test",
            "null",
        ] {
            let call = browser
                .call(method.clone(), path)
                .without(&header::ORIGIN)
                .header(header::ORIGIN, origin);
            assert_eq!(server.send(call).await.refusal(), forbidden, "{path} {origin}");
        }
        let call = browser.call(method.clone(), path).without(&header::ORIGIN);
        assert_eq!(server.send(call).await.refusal(), forbidden, "{path}");
        for site in ["cross-site", "same-site", "none"] {
            let call = browser
                .call(method.clone(), path)
                .without(&FETCH_SITE)
                .header(FETCH_SITE, site);
            assert_eq!(server.send(call).await.refusal(), forbidden, "{path} {site}");
        }
    }
    assert_eq!(browser.status(&server).await, 200, "it was not signed out");
    // Browsers without `Sec-Fetch-Site`.
    let call = browser.call(Method::POST, "/v1/blobs").without(&FETCH_SITE);
    assert_eq!(server.send(call.body("x")).await.status, 201);
}

/// W-07: a foreign page opens no stream and reads no answer.
#[tokio::test]
async fn session_reads_nothing_for_foreign_pages() {
    let server = TestServer::open().await;
    server.publish(&server.admin).await;
    let execution = server.run(json!({"skill": "probe"})).await;
    let id = text(&execution["execution_id"]);
    let browser = Browser::sign_in(&server, &server.admin).await;
    for path in [
        format!("/v1/executions/{id}/events"),
        format!("/v1/executions/{id}/logs?follow=true"),
        "/v1/skills".to_owned(),
    ] {
        let own = server
            .send(browser.call(Method::GET, &path).without(&header::ORIGIN))
            .await;
        assert_eq!(own.status, 200, "{path}");
        for (name, value) in [
            (header::ORIGIN, "http://localhost:9090"),
            (FETCH_SITE, "same-site"),
            (FETCH_SITE, "cross-site"),
        ] {
            let call = browser.call(Method::GET, &path).without(&name);
            let reply = server.send(call.header(name, value)).await;
            assert_eq!(reply.refusal(), (403, "forbidden".to_owned()), "{path} {value}");
        }
    }
}

#[tokio::test]
async fn key_and_session_together_are_rejected() {
    let server = TestServer::open().await;
    let browser = Browser::sign_in(&server, &server.admin).await;
    let key = || Call::get("/v1/session").key(&server.admin);
    for call in [
        key().header(header::COOKIE, &browser.cookie),
        key().header(PAGE_TOKEN, &browser.page),
        browser.call(Method::GET, "/v1/session").key(&server.admin),
        key().header(header::COOKIE, "skillbox-8080=stray"),
    ] {
        assert_eq!(server.send(call).await.refusal(), (400, "invalid".to_owned()));
    }
    let call = key().header(header::COOKIE, "theme=dark; skillbox-9090=other");
    assert_eq!(server.send(call).await.status, 200, "cookies of others");
}

/// W-09: unreadable for scripts, never sent with requests of other sites, and over TLS only where there is TLS.
#[tokio::test]
async fn cookie_has_all_attributes_that_browsers_enforce() {
    let server = TestServer::open().await;
    let reply = sign_in(&server, json!({"key": server.admin})).await;
    let cookie = reply.header(header::SET_COOKIE);
    let (value, attributes) = cookie.split_once("; ").unwrap();
    assert_eq!(
        value.strip_prefix("skillbox-8080=").unwrap().len(),
        43,
        "256 bits"
    );
    assert_eq!(attributes, "Path=/; Max-Age=604800; HttpOnly; SameSite=Strict");
    assert!(!reply.text().contains(&value[14..]), "scripts must not see it");

    let settings = Settings {
        server_url: Some("https://box.example".to_owned()),
        ..Settings::default()
    };
    let server = TestServer::open_with(&settings).await;
    let call = |method, path: &str, origin: &str| {
        let call = Call::new(method, path).without(&header::HOST);
        call.header(header::HOST, "box.example")
            .header(header::ORIGIN, origin)
    };
    let body = json!({"key": server.admin});
    let plain = call(Method::POST, "/v1/session", "http://box.example").json(&body);
    assert_eq!(server.send(plain).await.refusal().0, 403);
    let reply = server
        .send(call(Method::POST, "/v1/session", "https://box.example").json(&body))
        .await;
    let cookie = reply.header(header::SET_COOKIE);
    assert!(cookie.starts_with("__Host-skillbox-443="), "{cookie}");
    assert!(
        cookie.ends_with("; Path=/; Max-Age=604800; HttpOnly; SameSite=Strict; Secure"),
        "{cookie}"
    );
    let browser = Browser::of(&reply);
    let sign_out = call(Method::DELETE, "/v1/session", "https://box.example")
        .header(header::COOKIE, &browser.cookie)
        .header(PAGE_TOKEN, &browser.page);
    let reply = server.send(sign_out).await;
    assert_eq!(reply.status, 204);
    assert_eq!(
        reply.header(header::SET_COOKIE),
        "__Host-skillbox-443=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict; Secure"
    );
}

/// T-07, W-09: with the next request, not with the next maintenance.
#[tokio::test]
async fn session_ends_when_its_key_ends() {
    let server = TestServer::open().await;
    let stays = Browser::sign_in(&server, &server.admin).await;
    let revoked = server.key("default", &[Scope::Run]).await;
    let rotated = server.key("default", &[Scope::Run]).await;
    let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_millis(500);
    let expired = server.key_until("default", &[Scope::Run], Some(soon)).await;
    let browsers = [
        Browser::sign_in(&server, &revoked).await,
        Browser::sign_in(&server, &rotated).await,
        Browser::sign_in(&server, &expired).await,
    ];
    assert_eq!(browsers[0].status(&server).await, 200);
    assert_eq!(browsers[1].status(&server).await, 200);
    revoke(&server, &revoked).await;
    let path = format!("/v1/keys/{}/rotate", find_key(&server, &rotated).await);
    assert_eq!(server.ask(Call::post(&path)).await.status, 201);
    while jiff::Timestamp::now() <= soon {
        tokio::task::yield_now().await;
    }
    for (browser, key) in browsers.iter().zip([&revoked, &rotated, &expired]) {
        assert_eq!(browser.status(&server).await, 401);
        let again = sign_in(&server, json!({"key": key})).await;
        assert_eq!(again.refusal(), unauthenticated());
    }
    assert_eq!(stays.status(&server).await, 200);
}

/// W-09: after 12 hours without a request, and after 7 days at the latest.
#[tokio::test]
async fn session_ends_idle_and_at_its_age() {
    let server = TestServer::open().await;
    let idle = Browser::sign_in(&server, &server.admin).await;
    let move_use = |by: i64| change(&server, &format!("update sessions set used_at = used_at - {by}"));
    move_use(12 * HOUR - 60 * SECOND);
    assert_eq!(idle.status(&server).await, 200);
    // That request was recorded: the time begins again.
    move_use(120 * SECOND);
    assert_eq!(idle.status(&server).await, 200);
    move_use(12 * HOUR);
    assert_eq!(idle.status(&server).await, 401);

    let reply = sign_in(&server, json!({"key": server.admin})).await;
    let old = Browser::of(&reply);
    let expires_at: jiff::Timestamp = text(&reply.json()["expires_at"]).parse().unwrap();
    let life = expires_at.duration_since(jiff::Timestamp::now()).as_secs();
    assert!((7 * 24 * 3600 - 60..=7 * 24 * 3600).contains(&life), "{life}");
    let age = |by: i64| {
        change(
            &server,
            &format!("update sessions set expires_at = expires_at - {by}"),
        )
    };
    age(7 * 24 * HOUR - 60 * SECOND);
    assert_eq!(old.status(&server).await, 200);
    age(60 * SECOND);
    assert_eq!(old.status(&server).await, 401, "used a moment ago, and yet");
    server.engine.maintenance().run().await;
    let database = rusqlite::Connection::open(server.folder.path().join("skillbox.db")).unwrap();
    let left: i64 = database
        .query_row("select count(*) from sessions", [], |row| row.get(0))
        .unwrap();
    assert_eq!(left, 0, "maintenance deletes them");
}

/// W-09: signing out ends the session on the server, not only in the browser.
#[tokio::test]
async fn signed_out_session_is_no_identity() {
    let server = TestServer::open().await;
    let browser = Browser::sign_in(&server, &server.admin).await;
    let other = Browser::sign_in(&server, &server.admin).await;
    let reply = server.send(browser.call(Method::DELETE, "/v1/session")).await;
    assert_eq!(reply.status, 204);
    assert_eq!(
        reply.header(header::SET_COOKIE),
        "skillbox-8080=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict"
    );
    assert_eq!(browser.status(&server).await, 401);
    assert_eq!(other.status(&server).await, 200);
}

#[tokio::test]
async fn administrator_lists_and_ends_sessions_of_own_tenant() {
    let server = TestServer::open().await;
    let key = server.key("default", &[Scope::Run]).await;
    let stranger = server.key("other", &[Scope::Admin]).await;
    let theirs = Browser::sign_in(&server, &stranger).await;
    let user = Browser::sign_in(&server, &key).await;
    let admin = Browser::sign_in(&server, &server.admin).await;
    let listed = server.send(admin.call(Method::GET, "/v1/sessions")).await;
    assert!(!listed.text().contains(&user.page), "no tokens");
    let items = listed.json()["items"].clone();
    let rows: Vec<_> = items
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (text(&row["key"]["name"]), row["current"].as_bool().unwrap()))
        .collect();
    assert_eq!(rows, [("first key".to_owned(), true), ("test".to_owned(), false)]);

    let path = format!("/v1/sessions/{}", text(&items[1]["session_id"]));
    let by_user = server.send(user.call(Method::DELETE, &path)).await;
    assert_eq!(by_user.refusal(), (403, "forbidden".to_owned()));
    assert_eq!(server.send(admin.call(Method::DELETE, &path)).await.status, 204);
    assert_eq!(user.status(&server).await, 401);
    let again = server.send(admin.call(Method::DELETE, &path)).await;
    assert_eq!(again.refusal(), (404, "not_found".to_owned()));
    assert_eq!(theirs.status(&server).await, 200);
}
