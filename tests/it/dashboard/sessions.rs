//! Sessions in a real browser: what pages of other origins can do with the cookie, and when a session ends (W-01, W-02, W-08).

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;

use serde_json::{Value, json};

use super::Dashboard;

/// A page of another server on this machine: the same site, but another origin.
fn neighbour() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            lines
                .map_while(Result::ok)
                .take_while(|line| !line.is_empty())
                .for_each(drop);
            let page = "<!doctype html><title>neighbour</title><body>";
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                page.len()
            );
            drop(stream.write_all(&[head.as_bytes(), page.as_bytes()].concat()));
        }
    });
    url
}

/// Statuses of requests that the current page sends, or `refused` by the browser.
const SEND: &str = "
const [requests, done] = arguments;
Promise.all(requests.map(([method, url, headers]) =>
    fetch(url, {method, headers, credentials: 'include', mode: 'cors'}).then((answer) => answer.status, () => 'refused'))).then(done);
";

/// W-02, W-08: the browser sends the cookie there, too, since cookies ignore ports.
#[tokio::test(flavor = "multi_thread")]
async fn page_on_another_port_can_do_nothing() {
    let Some(dashboard) = Dashboard::open().await else {
        return;
    };
    let browser = &dashboard.browser;
    let token = browser.run("return JSON.stringify({...localStorage})", &[]).await;
    assert!(
        token.as_str().unwrap().len() > 20,
        "the page token is stored: {token}"
    );
    browser.goto(&neighbour()).await;
    let before = dashboard.server.get("/v1/keys").unwrap().body;
    let url = &dashboard.server.url;
    let json_type = json!({"content-type": "application/json"});
    let requests = json!([
        ["GET", format!("{url}/v1/executions"), {}],
        ["GET", format!("{url}/v1/session"), {}],
        ["POST", format!("{url}/v1/keys"), json_type],
        ["DELETE", format!("{url}/v1/session"), {}],
    ]);
    let statuses = browser.run_async(SEND, &[requests]).await;
    assert_eq!(
        statuses,
        json!(["refused", "refused", "refused", "refused"]),
        "no answer is readable"
    );
    // A form needs no permission of the other origin.
    let form = format!(
        "const form = document.createElement('form'); form.method = 'post'; form.action = '{url}/v1/session'; document.body.append(form); form.submit()"
    );
    browser.run(&form, &[]).await;
    assert_eq!(dashboard.server.get("/v1/keys").unwrap().body, before);
    // The session still works where it belongs.
    dashboard.visit("/ui/executions").await;
    browser.until_text("Executions").await;
}

/// W-01: neither half of a session counts alone.
#[tokio::test(flavor = "multi_thread")]
async fn cookie_or_page_token_alone_is_no_session() {
    let Some(dashboard) = Dashboard::open().await else {
        return;
    };
    let browser = &dashboard.browser;
    let url = &dashboard.server.url;
    let without_token = json!([["GET", format!("{url}/v1/executions"), {}]]);
    assert_eq!(browser.run_async(SEND, &[without_token]).await, json!([401]));
    browser.devtools("Network.clearBrowserCookies", json!({})).await;
    dashboard.browser.goto(&format!("{url}/ui/executions")).await;
    browser
        .until(
            "the sign-in page",
            "return !!document.querySelector('input[type=password]')",
        )
        .await;
}

/// A link in the address leaves no trace there, and works once.
#[tokio::test(flavor = "multi_thread")]
async fn link_signs_in_once_and_leaves_the_address() {
    let Some(dashboard) = Dashboard::open().await else {
        return;
    };
    let browser = &dashboard.browser;
    let link = dashboard.link();
    browser.run("localStorage.clear()", &[]).await;
    browser.devtools("Network.clearBrowserCookies", json!({})).await;
    browser.goto("about:blank").await;
    browser.goto(&link).await;
    browser
        .until("the overview", "return document.title.includes('Overview')")
        .await;
    assert!(!browser.url().await.contains("token"), "{}", browser.url().await);
    browser.run("localStorage.clear()", &[]).await;
    browser.devtools("Network.clearBrowserCookies", json!({})).await;
    browser.goto("about:blank").await;
    browser.goto(&link).await;
    browser.until_text("skillbox open").await;
    let signed_in: Value = browser
        .run("return document.title.includes('Overview')", &[])
        .await;
    assert_eq!(signed_in, json!(false));
}
