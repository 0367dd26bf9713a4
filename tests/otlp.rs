//! Traces arrive at a collector: `cargo test --features otlp --test otlp`.
#![cfg(feature = "otlp")]
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed; clippy sees tests only in functions marked so"
)]

#[path = "it/http/client.rs"]
#[expect(dead_code, reason = "the server's client has more than this test needs")]
mod client;
#[path = "it/world.rs"]
#[expect(dead_code, reason = "the tests' world has more than this test needs")]
mod world;

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::thread::JoinHandle;

use axum::http::HeaderName;
use client::{Call, TestServer};
use serde_json::json;
use skillbox::telemetry::{LogFormat, init_with_traces};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

/// Takes one request; returns its first line and its body.
fn collector() -> (String, JoinHandle<(String, Vec<u8>)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let heard = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut bytes = Vec::new();
        let head = loop {
            let mut part = [0; 4096];
            let count = stream.read(&mut part).unwrap();
            bytes.extend_from_slice(&part[..count]);
            if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                break end;
            }
        };
        let text = String::from_utf8(bytes[..head].to_vec()).unwrap().to_lowercase();
        let length = text
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.unwrap().parse().unwrap();
        let mut body = bytes.split_off(head + 4);
        let rest = length - body.len();
        (&stream).take(rest as u64).read_to_end(&mut body).unwrap();
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            .unwrap();
        (text, body)
    });
    (url, heard)
}

/// A field of a message: its number, and its bytes where it has a length.
fn fields(mut bytes: &[u8]) -> Vec<(u64, &[u8])> {
    fn number(bytes: &mut &[u8]) -> u64 {
        let end = bytes.iter().position(|byte| byte & 0x80 == 0).unwrap();
        let (these, rest) = bytes.split_at(end + 1);
        *bytes = rest;
        these
            .iter()
            .rev()
            .fold(0, |sum, byte| sum << 7 | u64::from(byte & 0x7f))
    }
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let key = number(&mut bytes);
        let length = match key & 7 {
            0 => {
                number(&mut bytes);
                continue;
            }
            1 => 8,
            5 => 4,
            _ => usize::try_from(number(&mut bytes)).unwrap(),
        };
        let (value, rest) = bytes.split_at(length);
        found.push((key >> 3, value));
        bytes = rest;
    }
    found
}

#[derive(Debug)]
struct Span {
    trace: String,
    id: String,
    parent: String,
    name: String,
}

/// The spans of an `ExportTraceServiceRequest`: resource_spans 1, scope_spans 2, spans 2.
fn spans(body: &[u8]) -> Vec<Span> {
    let inside = |bytes, field| {
        fields(bytes)
            .into_iter()
            .filter(move |(number, _)| *number == field)
    };
    let resources = inside(body, 1);
    let scopes = resources.flat_map(|(_, resource)| inside(resource, 2));
    let all = scopes.flat_map(|(_, scope)| inside(scope, 2));
    all.map(|(_, span)| {
        let first = |field| inside(span, field).next().map_or(&[][..], |(_, bytes)| bytes);
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        Span {
            trace: hex(first(1)),
            id: hex(first(2)),
            parent: hex(first(4)),
            name: String::from_utf8(first(5).to_vec()).unwrap(),
        }
    })
    .collect()
}

#[tokio::test]
async fn a_trace_goes_on_through_request_and_execution_to_its_phases() {
    let (url, heard) = collector();
    let traces = init_with_traces("off", LogFormat::Json, &url).unwrap();
    let server = TestServer::open().await;
    let run = Call::post("/v1/executions").json(&json!({"code": "x", "language": "bash"}));
    let parent = format!("00-{TRACE}-{PARENT}-01");
    let reply = server
        .ask(run.header(HeaderName::from_static("traceparent"), &parent))
        .await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    tokio::task::spawn_blocking(move || traces.end()).await.unwrap();

    let (head, body) = heard.join().unwrap();
    assert!(head.starts_with("post /v1/traces http/1.1"), "{head}");
    assert!(head.contains("content-type: application/x-protobuf"), "{head}");
    let spans = spans(&body);
    let named = |name: &str| {
        let found = spans.iter().find(|span| span.name == name);
        found.unwrap_or_else(|| panic!("no span `{name}` in {spans:#?}"))
    };
    let (request, execution) = (named("request"), named("execution"));
    assert_eq!(
        (request.parent.as_str(), &execution.parent),
        (PARENT, &request.id)
    );
    for phase in ["queue", "sandbox", "run", "collect"] {
        assert_eq!(named(phase).parent, execution.id, "{phase}");
    }
    assert!(spans.iter().all(|span| span.trace == TRACE), "{spans:#?}");
    let id = reply.json()["execution_id"].as_str().unwrap().to_owned();
    let holds = |text: &str| body.windows(text.len()).any(|part| part == text.as_bytes());
    assert!(holds(&id) && holds("execution.id") && !holds(&server.admin));
}
