//! Hostile clients of the package proxy.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::net::TcpListener;

use super::*;
use crate::egress::NamedBy;

fn proxy(host: &str, named_by: NamedBy) -> Arc<PackageProxy> {
    let host = PackageHost::parse(host, named_by).unwrap();
    Arc::new(PackageProxy::new(vec![host], None))
}

/// Sends `words` and returns all bytes until the connection ends or 20 seconds have passed.
async fn exchange(proxy: &Arc<PackageProxy>, words: &[u8]) -> String {
    let (mut inside, outside) = tokio::io::duplex(64 * 1024);
    let serving = tokio::spawn(proxy.clone().serve_connection(outside));
    let _ = inside.write_all(words).await;
    let answer = read_to_end(&mut inside).await;
    serving.abort();
    answer
}

async fn read_to_end(inside: &mut DuplexStream) -> String {
    let mut answer = Vec::new();
    let read = inside.read_to_end(&mut answer);
    let _ = timeout(Duration::from_secs(20), read).await;
    String::from_utf8_lossy(&answer).into_owned()
}

/// E-01, E-03, E-08, E-09.
#[tokio::test]
async fn accepts_only_connect_to_a_configured_host_and_port() {
    let proxy = proxy("index.example", NamedBy::Default);
    for words in [
        "GET http://index.example/ HTTP/1.1\r\nHost: index.example\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: index.example\r\n\r\n",
        "POST http://index.example/ HTTP/1.1\r\nHost: index.example\r\nContent-Length: 3\r\n\r\nabc",
        "CONNECT evil-index.example:443 HTTP/1.1\r\nHost: index.example:443\r\n\r\n",
        "CONNECT index.example.evil:443 HTTP/1.1\r\nHost: index.example:443\r\n\r\n",
        "CONNECT index.example.:443 HTTP/1.1\r\n\r\n",
        "CONNECT index.example:22 HTTP/1.1\r\n\r\n",
        "CONNECT index.example:2375 HTTP/1.1\r\n\r\n",
        "CONNECT 169.254.169.254:443 HTTP/1.1\r\n\r\n",
        "CONNECT [::1]:443 HTTP/1.1\r\n\r\n",
        "CONNECT index.example:443 HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc",
        "CONNECT index.example:443 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "CONNECT index.example:443 HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
        "CONNECT user@index.example:443 HTTP/1.1\r\n\r\n",
    ] {
        let answer = exchange(&proxy, words.as_bytes()).await;
        let refused = answer.starts_with("HTTP/1.1 403 ") || answer.starts_with("HTTP/1.1 400 ");
        assert!(refused, "{words:?}: {answer}");
        // A second request behind a rejected one is not answered.
        let twice = format!("{words}GET / HTTP/1.1\r\n\r\n");
        assert_eq!(
            exchange(&proxy, twice.as_bytes())
                .await
                .matches("HTTP/1.1")
                .count(),
            1,
            "{words:?}"
        );
    }
    assert!(matches!(proxy.first_failure(), Some(ProxyFailure::Forbidden(_))));
    for nonsense in ["\r\n\r\n\0", "CONNECT index.example:443\r\n\r\n", "\x16\x03\x01"] {
        assert!(
            !exchange(&proxy, nonsense.as_bytes()).await.contains(" 200 "),
            "{nonsense:?}"
        );
    }
}

/// E-06.
#[tokio::test]
async fn does_not_dial_names_that_resolve_to_private_addresses() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let request = format!("CONNECT localhost:{port} HTTP/1.1\r\n\r\n");
    let place = format!("localhost:{port}");
    let ours = proxy(&place, NamedBy::Default);
    let answer = exchange(&ours, request.as_bytes()).await;
    assert!(
        answer.starts_with("HTTP/1.1 403 ") && answer.contains("not a public address"),
        "{answer}"
    );
    let accepted = timeout(Duration::from_millis(100), listener.accept()).await;
    assert!(accepted.is_err(), "the address was dialled");
}

/// E-06.
#[tokio::test]
async fn checks_ip_addresses_before_using_the_upstream_proxy() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let upstream = format!("http://{}", listener.local_addr().unwrap());
    for place in [
        "127.0.0.1:443",
        "10.0.0.1:443",
        "169.254.169.254:443",
        "[::1]:443",
    ] {
        let host = PackageHost::parse(place, NamedBy::Default).unwrap();
        let proxy = Arc::new(PackageProxy::new(vec![host], Upstream::parse(&upstream, "")));
        let answer = exchange(&proxy, format!("CONNECT {place} HTTP/1.1\r\n\r\n").as_bytes()).await;
        assert!(
            answer.starts_with("HTTP/1.1 403 ") && answer.contains("not a public address"),
            "{place}: {answer}"
        );
    }
    let accepted = timeout(Duration::from_millis(100), listener.accept()).await;
    assert!(accepted.is_err(), "the address was dialled");
}

#[tokio::test]
async fn relays_both_directions_unchanged() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let place = format!("127.0.0.1:{port}");
    let proxy = proxy(&place, NamedBy::Operator);
    let (mut inside, outside) = tokio::io::duplex(1024);
    tokio::spawn(proxy.clone().serve_connection(outside));
    let echo = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let (mut reader, mut writer) = stream.split();
        tokio::io::copy(&mut reader, &mut writer).await.unwrap()
    });
    let words = format!("CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n\r\nearly");
    inside.write_all(words.as_bytes()).await.unwrap();
    let head = "HTTP/1.1 200 OK\r\n";
    let mut answer = vec![0; head.len()];
    inside.read_exact(&mut answer).await.unwrap();
    assert_eq!(String::from_utf8(answer).unwrap(), head);
    inside.write_all(b" and late").await.unwrap();
    inside.shutdown().await.unwrap();
    assert!(read_to_end(&mut inside).await.ends_with("\r\n\r\nearly and late"));
    assert_eq!(echo.await.unwrap(), 14);
    assert_eq!(proxy.first_failure(), None);
}

/// E-12.
#[tokio::test]
async fn limits_request_heads_and_relayed_bytes() {
    let proxy = proxy("index.example", NamedBy::Default);
    let long = format!(
        "CONNECT index.example:443 HTTP/1.1\r\nX: {}\r\n\r\n",
        "x".repeat(1 << 20)
    );
    assert!(!exchange(&proxy, long.as_bytes()).await.contains(" 200 "));
    let many: String = (0..1000).map(|n| format!("X-{n}: 1\r\n")).collect();
    let many = format!("CONNECT index.example:443 HTTP/1.1\r\n{many}\r\n");
    assert!(!exchange(&proxy, many.as_bytes()).await.contains(" 200 "));

    proxy.bytes_left.store(10, Ordering::Relaxed);
    let (mut near, inside) = tokio::io::duplex(1024);
    let (mut far, outside) = tokio::io::duplex(1024);
    near.write_all(&[1; 100]).await.unwrap();
    timeout(Duration::from_secs(5), proxy.relay(inside, outside))
        .await
        .unwrap();
    let mut through = Vec::new();
    far.read_to_end(&mut through).await.unwrap();
    assert!(through.is_empty());
}

/// E-12.
#[tokio::test(start_paused = true)]
async fn closes_idle_connections() {
    let proxy = proxy("index.example", NamedBy::Default);
    for words in ["", "CONNECT index.example:443 HTTP/1.1\r\nX: "] {
        let (mut inside, outside) = tokio::io::duplex(1024);
        inside.write_all(words.as_bytes()).await.unwrap();
        let ended = timeout(
            limits::EGRESS_CONNECT_MAX * 2,
            proxy.clone().serve_connection(outside),
        )
        .await;
        assert!(ended.is_ok(), "{words:?}");
    }
    let (_near, inside) = tokio::io::duplex(1024);
    let (_far, outside) = tokio::io::duplex(1024);
    let ended = timeout(limits::EGRESS_IDLE_MAX * 2, proxy.relay(inside, outside)).await;
    assert!(ended.is_ok());
}
