//! The accept loop, over real connections.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use futures::stream;
use skillbox::http::{App, ConnectionLimits, serve};
use skillbox::limits;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::client::TestServer;

/// A server on a free port.
struct Server {
    address: std::net::SocketAddr,
    shutdown: CancellationToken,
    served: JoinHandle<()>,
}

/// Bounds that a test can wait for.
fn quick() -> ConnectionLimits {
    ConnectionLimits {
        header: Duration::from_millis(100),
        idle: Duration::from_millis(300),
        drain: Duration::from_millis(500),
        ..ConnectionLimits::default()
    }
}

impl Server {
    async fn start(router: Router, bounds: ConnectionLimits) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shutdown = CancellationToken::new();
        let served = tokio::spawn(serve(listener, App { router, bounds }, shutdown.clone()));
        Self {
            address,
            shutdown,
            served,
        }
    }

    async fn hello(bounds: ConnectionLimits) -> Self {
        Self::start(Router::new().route("/", get(|| async { "hello" })), bounds).await
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends `request` and returns all that comes until the server closes.
    async fn exchange(&self, request: &[u8]) -> String {
        let mut stream = self.connect().await;
        // The server may refuse and close before it has read everything.
        let _ = stream.write_all(request).await;
        rest(&mut stream).await
    }
}

/// All that comes until the other side closes or resets.
async fn rest(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let read = stream.read_to_end(&mut bytes);
    let _ = tokio::time::timeout(Duration::from_secs(20), read)
        .await
        .expect("the server closes the connection");
    String::from_utf8_lossy(&bytes).into_owned()
}

const HELLO: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

///
#[tokio::test]
async fn closes_silent_or_slow_connections() {
    let server = Server::hello(quick()).await;
    let beginnings: [&[u8]; 5] = [
        b"",
        b"G",
        b"PRI * HTTP/2.0\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: local",
    ];
    for beginning in beginnings {
        let answer = server.exchange(beginning).await;
        assert!(!answer.contains("hello"), "{answer}");
    }
}

/// a header byte now and then, each in time; on a new connection and on one that has been of use.
#[tokio::test]
async fn closes_connection_with_slow_headers() {
    let server = Server::hello(quick()).await;
    for has_asked in [false, true] {
        let mut stream = server.connect().await;
        if has_asked {
            hello(&mut stream).await;
        }
        let (mut read, mut write) = stream.split();
        let drip = async {
            let mut every = tokio::time::interval(Duration::from_millis(10));
            while write.write_all(b"a").await.is_ok() {
                every.tick().await;
            }
        };
        let mut answer = Vec::new();
        tokio::select! {
            () = drip => {}
            _ = read.read_to_end(&mut answer) => {}
            () = tokio::time::sleep(Duration::from_secs(20)) => panic!("still served"),
        }
    }
}

/// Asks and is answered, and the connection stays.
async fn hello(stream: &mut TcpStream) {
    stream
        .write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await
        .unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"hello") {
        assert_ne!(stream.read_buf(&mut answer).await.unwrap(), 0, "it was closed");
    }
}

/// Between two requests a client may pause for longer than headers may take.
#[tokio::test]
async fn closes_keep_alive_connection_only_when_idle() {
    let bounds = ConnectionLimits {
        idle: Duration::from_secs(3),
        ..quick()
    };
    let server = Server::hello(bounds).await;
    let mut stream = server.connect().await;
    for _ in 0..2 {
        hello(&mut stream).await;
        let closed = tokio::time::timeout(bounds.header * 5, stream.read_u8()).await;
        assert!(closed.is_err(), "{closed:?}");
    }
    assert_eq!(rest(&mut stream).await, "");
}

/// the parser's own refusals, each followed by the end of the connection.
#[tokio::test]
async fn rejects_malformed_requests_and_closes_connection() {
    let server = Server::hello(ConnectionLimits::default()).await;
    let many = format!(
        "GET / HTTP/1.1\r\nHost: localhost\r\n{}\r\n",
        "a: b\r\n".repeat(1000)
    );
    let long = format!(
        "GET / HTTP/1.1\r\nHost: localhost\r\na: {}\r\n\r\n",
        "b".repeat(64 * 1024)
    );
    let requests: [(&str, &str); 9] = [
        (&many, "431"),
        (&long, "431"),
        (
            "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n",
            "400",
        ),
        (
            "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
            "400",
        ),
        (
            "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
            "400",
        ),
        (
            "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
            "400",
        ),
        (
            "POST / HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "400",
        ),
        (
            "GET / HTTP/1.1\r\nHost: localhost\r\na: b\r\n folded\r\n\r\n",
            "400",
        ),
        ("GET / HTTP/1.1\r\nHost : localhost\r\n\r\n", "400"),
    ];
    for (request, status) in requests {
        let answer = server.exchange(request.as_bytes()).await;
        let head = &request[..request.len().min(100)];
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}"))
                || answer.starts_with(&format!("HTTP/1.0 {status}")),
            "{head}: {answer}"
        );
        assert_eq!(answer.matches("HTTP/1.").count(), 1, "{head}: {answer}");
    }
}

/// with both lengths given the chunks count, and nothing that follows on the connection is taken as a request.
#[tokio::test]
async fn does_not_answer_smuggled_request() {
    let server = Server::hello(ConnectionLimits::default()).await;
    let request = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 60\r\nTransfer-Encoding: chunked\r\n\r\n\
                   0\r\n\r\nGET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let answer = server.exchange(request.as_bytes()).await;
    assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{answer}");
    assert!(!answer.contains("hello"), "{answer}");
}

#[tokio::test]
async fn accepts_http2_with_prior_knowledge() {
    let server = Server::hello(ConnectionLimits::default()).await;
    let mut stream = server.connect().await;
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    stream
        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        .await
        .unwrap();
    stream.write_all(&settings).await.unwrap();
    let mut frame = [0; 9];
    stream.read_exact(&mut frame).await.unwrap();
    assert_eq!(frame[3], 4, "a SETTINGS frame");
}

/// an HTTP/2 client that asks nothing more, however often pings go to and fro.
#[tokio::test]
async fn closes_idle_http2_connection() {
    let server = Server::hello(quick()).await;
    let mut stream = server.connect().await;
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    // `GET http:// /` by the static table, then the authority; END_STREAM and END_HEADERS.
    let head = b"\x82\x86\x84\x41\x09localhost";
    let length = u8::try_from(head.len()).unwrap();
    let request = [&[0, 0, length, 1, 5, 0, 0, 0, 1][..], head].concat();
    let ping = [0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
    stream
        .write_all(&[&preface[..], &settings, &request].concat())
        .await
        .unwrap();
    let (mut read, mut write) = stream.split();
    let pings = async {
        let mut every = tokio::time::interval(Duration::from_millis(20));
        while write.write_all(&ping).await.is_ok() {
            every.tick().await;
        }
    };
    let mut answer = Vec::new();
    let both = async { tokio::join!(pings, read.read_to_end(&mut answer)) };
    let ended = tokio::time::timeout(Duration::from_secs(20), both).await;
    assert!(ended.is_ok(), "still served");
    let text = String::from_utf8_lossy(&answer);
    assert!(text.contains("hello"), "{text}");
}

#[tokio::test]
async fn connections_above_limit_wait() {
    let bounds = ConnectionLimits {
        connections_max: 1,
        ..quick()
    };
    let server = Server::hello(bounds).await;
    let first = server.connect().await;
    let second = server.exchange(HELLO);
    let (answer, ()) = tokio::join!(second, async { drop(first) });
    assert!(answer.contains("hello"), "{answer}");
}

/// A client that takes nothing of a large answer.
#[tokio::test]
async fn closes_connection_of_client_that_does_not_read() {
    let (ended, mut ends) = mpsc::unbounded_channel();
    let endless = move || {
        let dropped = Dropped(ended.clone());
        let pieces = stream::repeat_with(move || {
            let _held = &dropped;
            Ok::<_, std::io::Error>(vec![0_u8; 64 * 1024])
        });
        async { Body::from_stream(pieces) }
    };
    let router = Router::new().route("/endless", get(endless));
    let server = Server::start(router, quick()).await;
    let mut stream = server.connect().await;
    stream
        .write_all(b"GET /endless HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await
        .unwrap();
    ends.recv().await.unwrap();
}

/// Tells when it is dropped.
struct Dropped(mpsc::UnboundedSender<()>);

impl Drop for Dropped {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

#[tokio::test]
async fn shutdown_answers_pending_requests() {
    let (begun, mut begins) = mpsc::channel(1);
    let release = CancellationToken::new();
    let released = release.clone();
    let slow = move || {
        let (begun, released) = (begun.clone(), released.clone());
        async move {
            begun.send(()).await.unwrap();
            released.cancelled().await;
            "worked"
        }
    };
    let server = Server::start(Router::new().route("/", get(slow)), ConnectionLimits::default()).await;
    let idle = server.connect().await;
    let mut busy = server.connect().await;
    busy.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await
        .unwrap();
    begins.recv().await.unwrap();
    server.shutdown.cancel();
    release.cancel();
    let answer = rest(&mut busy).await;
    assert!(answer.contains("worked"), "{answer}");
    server.served.await.unwrap();
    assert!(TcpStream::connect(server.address).await.is_err());
    drop(idle);
}

/// What takes longer than the drain is cut.
#[tokio::test]
async fn shutdown_has_time_limit() {
    let (begun, mut begins) = mpsc::channel(1);
    let stuck = move || {
        let begun = begun.clone();
        async move {
            begun.send(()).await.unwrap();
            std::future::pending::<()>().await;
        }
    };
    let server = Server::start(Router::new().route("/", get(stuck)), quick()).await;
    let mut stream = server.connect().await;
    stream.write_all(HELLO).await.unwrap();
    begins.recv().await.unwrap();
    server.shutdown.cancel();
    server.served.await.unwrap();
    assert_eq!(rest(&mut stream).await, "");
}

/// other clients are served while many silent connections are open.
#[tokio::test]
async fn silent_connections_do_not_block_others() {
    let server = Server::hello(quick()).await;
    let mut silent = Vec::new();
    for _ in 0..200 {
        silent.push(server.connect().await);
    }
    assert!(server.exchange(HELLO).await.contains("hello"));
    for stream in &mut silent {
        assert_eq!(rest(stream).await, "");
    }
    assert!(limits::CONNECTIONS_MAX > silent.len());
}

/// a client that sends everything before it reads still learns why it was refused.
#[tokio::test]
async fn answers_413_to_client_that_sends_before_reading() {
    let server = TestServer::open().await;
    let shutdown = CancellationToken::new();
    let mut stream = TcpStream::connect(server.listen(shutdown.clone()).await)
        .await
        .unwrap();
    let length = limits::EXECUTION_BODY_BYTES_MAX + 20 * limits::MIB;
    let head = format!(
        "POST /v1/executions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n",
        server.admin
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let piece = vec![b' '; 1 << 20];
    for _ in 0..length / limits::MIB {
        stream.write_all(&piece).await.unwrap();
    }
    shutdown.cancel();
    let answer = rest(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    assert!(answer.contains("\"code\":\"too_large\""), "{answer}");
}

/// An answer to `HEAD` says how long the answer to `GET` is, and holds none of it.
#[tokio::test]
async fn head_returns_length_without_body() {
    let server = TestServer::open().await;
    let shutdown = CancellationToken::new();
    let address = server.listen(shutdown.clone()).await;
    for path in ["/healthz", "/nowhere", "/v1/skills"] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("HEAD {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let answer = rest(&mut stream).await;
        assert!(
            answer.contains("content-length: ") && !answer.contains("content-length: 0"),
            "{answer}"
        );
        assert!(answer.ends_with("\r\n\r\n"), "{answer}");
    }
    shutdown.cancel();
}
