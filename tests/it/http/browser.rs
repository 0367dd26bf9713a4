//! A browser that uses the dashboard: signed in, with the headers that browsers send.

use axum::http::{HeaderName, Method, header};
use serde_json::{Value, json};

use super::client::{Call, Reply, TestServer};

pub(crate) const ORIGIN: &str = "http://localhost:8080";
pub(crate) const PAGE_TOKEN: HeaderName = HeaderName::from_static("x-skillbox-page");
pub(crate) const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

pub(crate) const SECOND: i64 = 1_000_000;

/// A browser that has signed in.
pub(crate) struct Browser {
    /// Name and value.
    pub(crate) cookie: String,
    pub(crate) page: String,
}

impl Browser {
    pub(crate) async fn sign_in(server: &TestServer, key: &str) -> Self {
        Self::of(&sign_in(server, json!({"key": key})).await)
    }

    pub(crate) fn of(reply: &Reply) -> Self {
        assert_eq!(reply.status, 201, "{}", reply.text());
        let cookie = reply.header(header::SET_COOKIE);
        Self {
            cookie: cookie.split(';').next().unwrap().to_owned(),
            page: text(&reply.json()["page_token"]),
        }
    }

    /// A request of the dashboard's own page.
    pub(crate) fn call(&self, method: Method, path: &str) -> Call {
        let call = Call::new(method, path).header(header::COOKIE, &self.cookie);
        call.header(PAGE_TOKEN, &self.page)
            .header(header::ORIGIN, ORIGIN)
            .header(FETCH_SITE, "same-origin")
    }

    pub(crate) async fn status(&self, server: &TestServer) -> u16 {
        let reply = server.send(self.call(Method::GET, "/v1/session")).await;
        reply.status.as_u16()
    }
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

pub(crate) async fn sign_in(server: &TestServer, body: Value) -> Reply {
    let call = Call::post("/v1/session").header(header::ORIGIN, ORIGIN);
    server.send(call.json(&body)).await
}

/// The token of a fresh link for the administrator.
pub(crate) async fn link(server: &TestServer) -> String {
    let reply = server.ask(Call::post("/v1/session/links")).await;
    assert_eq!(reply.status, 201, "{}", reply.text());
    let url = text(&reply.json()["url"]);
    let token = url.strip_prefix("http://localhost:8080/ui/#token=");
    token.unwrap_or_else(|| panic!("{url}")).to_owned()
}

/// Changes recorded times, in place of waiting.
pub(crate) fn change(server: &TestServer, sql: &str) {
    let database = rusqlite::Connection::open(server.folder.path().join("skillbox.db")).unwrap();
    assert!(database.execute(sql, []).unwrap() > 0, "{sql}");
}

pub(crate) fn unauthenticated() -> (u16, String) {
    (401, "unauthenticated".to_owned())
}

pub(crate) async fn find_key(server: &TestServer, key: &str) -> String {
    let keys = server.ask(Call::get("/v1/keys?limit=200")).await.json();
    let mut rows = keys["items"].as_array().unwrap().iter();
    text(&rows.find(|row| row["hint"] == key[..8]).unwrap()["key_id"])
}

pub(crate) async fn revoke(server: &TestServer, key: &str) {
    let path = format!("/v1/keys/{}", find_key(server, key).await);
    assert_eq!(server.ask(Call::delete(&path)).await.status, 200);
}
