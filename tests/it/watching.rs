//! A client of event streams, over HTTP/1.1 and HTTP/2, and a door to a world for it.

use std::net::SocketAddr;
use std::time::Duration;

use axum::http::{Request, StatusCode};
use base64::Engine as _;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use skillbox::auth::{Scope, Scopes};
use skillbox::engine::{Engine, NewKey};
use skillbox::http::{App, ConnectionLimits, Settings, app, serve};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::world::{Backend, World};

/// A world behind a door.
pub(crate) struct ServedWorld {
    pub(crate) world: World,
    pub(crate) address: SocketAddr,
    pub(crate) key: String,
    _shutdown: DropGuard,
}

/// How it is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    Http1,
    Http2,
}

/// An answer that is still coming.
pub(crate) struct OpenResponse {
    pub(crate) status: StatusCode,
    pub(crate) content_type: String,
    body: Incoming,
    begun: Vec<u8>,
    /// How much of it holds no end of an event.
    searched: usize,
}

/// One event.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Event {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) data: Value,
}

/// Nothing here takes as long, unless it hangs.
const PATIENCE: Duration = Duration::from_secs(60);

impl ServedWorld {
    /// A door to a world on this backend.
    pub(crate) async fn on(backend: Backend, bounds: ConnectionLimits) -> Option<Self> {
        let world = World::on(backend).await?;
        let key = key(&world.engine, &world).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = app(world.engine.clone(), &Settings::default()).router;
        let shutdown = CancellationToken::new();
        tokio::spawn(serve(listener, App { router, bounds }, shutdown.clone()));
        Some(Self {
            world,
            address,
            key,
            _shutdown: shutdown.drop_guard(),
        })
    }

    /// Asks for what is at `path`.
    pub(crate) async fn get(&self, path: &str, headers: &[(&str, &str)]) -> OpenResponse {
        self.get_by(Version::Http1, path, headers).await
    }

    pub(crate) async fn get_by(
        &self,
        version: Version,
        path: &str,
        headers: &[(&str, &str)],
    ) -> OpenResponse {
        let request_line = format!("GET {path}");
        self.ask(version, &request_line, headers, Bytes::new()).await
    }

    /// Posts JSON and asks for events.
    pub(crate) async fn run(&self, version: Version, body: &Value) -> OpenResponse {
        self.run_with(version, &[], body).await
    }

    /// The same with a further header.
    pub(crate) async fn run_with(
        &self,
        version: Version,
        more: &[(&str, &str)],
        body: &Value,
    ) -> OpenResponse {
        let headers = [
            ("accept", "text/event-stream"),
            ("content-type", "application/json"),
        ];
        let headers = [&headers, more].concat();
        let body = Bytes::from(body.to_string());
        self.ask(version, "POST /v1/executions", &headers, body).await
    }

    /// Ends an execution.
    pub(crate) async fn cancel(&self, id: &str) {
        let request_line = format!("POST /v1/executions/{id}/cancel");
        let ended = self.ask(Version::Http1, &request_line, &[], Bytes::new()).await;
        assert_eq!(ended.status, 200);
    }

    async fn ask(
        &self,
        version: Version,
        request_line: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> OpenResponse {
        let (method, path) = request_line.split_once(' ').unwrap();
        let mut request = Request::builder()
            .method(method)
            .header("authorization", format!("Bearer {}", self.key));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let stream = TokioIo::new(TcpStream::connect(self.address).await.unwrap());
        let body = Full::new(body);
        let response = match version {
            Version::Http1 => {
                let (mut sender, connection) = http1::handshake(stream).await.unwrap();
                tokio::spawn(connection);
                let request = request.uri(path).header("host", "localhost");
                sender.send_request(request.body(body).unwrap()).await
            }
            Version::Http2 => {
                let (mut sender, connection) = http2::handshake(TokioExecutor::new(), stream).await.unwrap();
                tokio::spawn(connection);
                let request = request.uri(format!("http://localhost{path}"));
                sender.send_request(request.body(body).unwrap()).await
            }
        };
        let (parts, body) = response.unwrap().into_parts();
        let content_type = parts.headers.get("content-type");
        OpenResponse {
            status: parts.status,
            content_type: content_type.map_or_else(String::new, |value| value.to_str().unwrap().to_owned()),
            body,
            begun: Vec::new(),
            searched: 0,
        }
    }
}

async fn key(engine: &Engine, world: &World) -> String {
    let new = NewKey {
        name: "watcher".to_owned(),
        scopes: Scopes::new([Scope::Run]),
        expires_at: None,
    };
    let (_, key) = engine.keys().create(world.tenant().clone(), new).await.unwrap();
    key.reveal().to_owned()
}

impl OpenResponse {
    /// The next event; `None` where the stream ends, however it does.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        loop {
            while let Some(end) = memchr::memmem::find(&self.begun[self.searched..], b"\n\n") {
                let rest = self.begun.split_off(self.searched + end + 2);
                let block = std::mem::replace(&mut self.begun, rest);
                self.searched = 0;
                if let Some(event) = read(std::str::from_utf8(&block).unwrap()) {
                    return Some(event);
                }
            }
            self.searched = self.begun.len().saturating_sub(1);
            let piece = self.piece().await?;
            self.begun.extend_from_slice(&piece);
        }
    }

    /// The next event of this name.
    pub(crate) async fn until(&mut self, name: &str) -> Event {
        loop {
            let event = self
                .next()
                .await
                .unwrap_or_else(|| panic!("there is no `{name}`"));
            if event.name == name {
                return event;
            }
        }
    }

    /// All events that are left.
    pub(crate) async fn rest(mut self) -> Vec<Event> {
        let mut all = Vec::new();
        while let Some(event) = self.next().await {
            all.push(event);
        }
        all
    }

    /// The next bytes; `None` where the body ends, whole or broken off.
    pub(crate) async fn piece(&mut self) -> Option<Bytes> {
        let frame = tokio::time::timeout(PATIENCE, self.body.frame()).await;
        frame.expect("something comes in time")?.ok()?.into_data().ok()
    }

    /// All bytes, and whether they came whole.
    pub(crate) async fn bytes(mut self) -> (Vec<u8>, bool) {
        let mut bytes = Vec::new();
        loop {
            match tokio::time::timeout(PATIENCE, self.body.frame()).await.unwrap() {
                None => return (bytes, true),
                Some(Err(_)) => return (bytes, false),
                Some(Ok(frame)) => bytes.extend(frame.into_data().unwrap_or_default()),
            }
        }
    }
}

/// An event, unless it is a comment or the retry time.
fn read(block: &str) -> Option<Event> {
    let field = |name: &str| {
        let lines = block.lines().filter_map(|line| line.strip_prefix(name));
        lines.collect::<Vec<_>>().join("\n")
    };
    let name = field("event: ");
    (!name.is_empty()).then(|| Event {
        id: field("id: "),
        data: serde_json::from_str(&field("data: ")).unwrap(),
        name,
    })
}

/// What was printed to `stream`, byte for byte.
pub(crate) fn printed(events: &[Event], stream: &str) -> Vec<u8> {
    let of = |event: &Event| match event.data["base64"].as_str() {
        Some(text) => base64::engine::general_purpose::STANDARD.decode(text).unwrap(),
        None => event.data["text"].as_str().unwrap().as_bytes().to_vec(),
    };
    let events = events.iter().filter(|event| event.name == stream);
    events.flat_map(of).collect()
}

/// What was logged.
pub(crate) fn logged(events: &[Event]) -> Vec<Value> {
    let events = events.iter().filter(|event| event.name == "log");
    events.map(|event| event.data.clone()).collect()
}

/// A request to run code.
pub(crate) fn code(code: &str) -> Value {
    json!({ "code": code })
}

/// Where an execution is watched.
pub(crate) fn path_of(id: &str) -> String {
    format!("/v1/executions/{id}/events")
}

/// Reads until `text` was printed; returns all events until then.
pub(crate) async fn until_printed(coming: &mut OpenResponse, text: &str) -> Vec<Event> {
    let mut events = Vec::new();
    while !String::from_utf8_lossy(&printed(&events, "stdout")).contains(text) {
        events.push(coming.next().await.expect("it prints that"));
    }
    events
}

/// The execution that a stream from the beginning is of.
pub(crate) fn id_of(events: &[Event]) -> String {
    assert_eq!(events[0].name, "status", "it comes first");
    events[0].data["execution_id"].as_str().unwrap().to_owned()
}
