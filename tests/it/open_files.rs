//! A server that may open few files: one tenant's streams and connections lock nobody out.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use crate::server::{Server, eventually};

/// Next to the reserve for the server and its executions, room for some dozens of connections.
const FILES: &str = "--nofile=400:512";

/// Sends a request on a connection of its own; returns the connection with its status.
fn open(server: &Server, request: &str, key: &str) -> Option<(TcpStream, u16)> {
    let address = server.url.strip_prefix("http://").unwrap();
    let mut connection = TcpStream::connect(address).ok()?;
    connection
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let head = format!("{request} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\n\r\n");
    connection.write_all(head.as_bytes()).ok()?;
    let mut start = [0; 12];
    connection.read_exact(&mut start).ok()?;
    let status = std::str::from_utf8(&start[9..]).ok()?.parse().ok()?;
    Some((connection, status))
}

fn status(server: &Server, request: &str, key: &str) -> u16 {
    open(server, request, key).map_or(0, |(_, status)| status)
}

/// F-21, T-15: 991 streams of one key once took all of 1,024 files.
#[test]
fn one_key_with_many_streams_leaves_connections_to_others() {
    let folder = tempfile::tempdir().unwrap();
    let backend = [("SKILLBOX_SANDBOX_BACKEND", "native")];
    let server = Server::start_by(&["prlimit", FILES], &folder.path().join("data"), &backend);
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", server.process.id())).unwrap();
    let files = limits
        .lines()
        .find(|line| line.starts_with("Max open files"))
        .unwrap();
    assert_eq!(
        files.split_whitespace().nth(3),
        Some("512"),
        "raised to the hard limit: {files}"
    );
    assert!(server.log().contains("may open 512 files"), "{}", server.log());

    let admin = server.key();
    let key = &server.key_of("default");
    let code = json!({ "language": "bash", "code": "sleep 60", "mode": "async", "timeout": 60 });
    let submitted = server.post_json("/v1/executions", &code).body;
    let Value::String(id) = &submitted["execution_id"] else {
        panic!("{submitted}")
    };
    let watch = format!("GET /v1/executions/{id}/events");

    let mut held = Vec::new();
    let refused = loop {
        match open(&server, &watch, key).unwrap() {
            (stream, 200) if held.len() < 600 => held.push(stream),
            (_, status) => break status,
        }
    };
    assert_eq!(refused, 503, "after {} streams", held.len());
    assert_eq!(
        status(&server, "GET /v1/executions", key),
        200,
        "requests still pass"
    );
    assert_eq!(status(&server, "GET /healthz", key), 200);

    // Silent connections take the rest.
    let mut last = 200;
    for _ in 0..600 {
        match open(&server, "GET /v1/executions", key) {
            Some((connection, 200)) => held.push(connection),
            Some((_, status)) => {
                last = status;
                break;
            }
            None => panic!("no answer after {} connections", held.len()),
        }
    }
    assert_eq!(last, 503, "after {} connections", held.len());
    assert_eq!(status(&server, "GET /healthz", key), 200);
    assert_eq!(status(&server, "GET /readyz", key), 200);
    assert_eq!(status(&server, "GET /v1/skills", &admin), 200);
    drop(held);
    eventually("the connections are free again", || {
        status(&server, "GET /v1/executions", key) == 200
    });
}
