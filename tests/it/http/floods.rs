//! HTTP/2 used to keep a server busy for nothing: raw frames against a server of its own.

use std::io::Write as _;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::server::{Server, own_memory_kib};

/// An engine that is not there: nothing is made ready for it, which would be counted as the flood's.
const NO_SANDBOXES: &[(&str, &str)] = &[
    ("SKILLBOX_SANDBOX_BACKEND", "docker"),
    ("SKILLBOX_DOCKER_HOST", "unix:///nonexistent/docker.sock"),
];
/// How long each flood lasts unless it is stopped.
const FLOOD: Duration = Duration::from_secs(3);
/// What a flood may cost.
const MEMORY_MAX: u64 = 64 << 20;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let head = [&length[1..], &[kind, flags], &stream.to_be_bytes()].concat();
    [&head, payload].concat()
}

/// The header block of a request, without Huffman coding and without the table.
fn request(method: &str, path: &str) -> Vec<u8> {
    let fields = [
        (":method", method),
        (":scheme", "http"),
        (":path", path),
        (":authority", "127.0.0.1"),
        ("content-type", "application/json"),
    ];
    let text = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
    fields
        .into_iter()
        .flat_map(|(name, value)| [vec![0], text(name), text(value)].concat())
        .collect()
}

fn connect(server: &Server) -> TcpStream {
    let mut stream = TcpStream::connect(server.url.strip_prefix("http://").unwrap()).unwrap();
    stream.set_write_timeout(Some(Duration::from_secs(2))).unwrap();
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
    stream.write_all(&frame(SETTINGS, 0, 0, &[])).unwrap();
    stream
}

fn memory_bytes(server: &Server) -> u64 {
    own_memory_kib(server.process.id()) * 1024
}

/// Waits until a server that has just started needs no more than it has.
fn settle(server: &Server) {
    let mut last = (Instant::now(), memory_bytes(server));
    while last.0.elapsed() < Duration::from_secs(1) {
        std::thread::sleep(Duration::from_millis(50));
        let now = memory_bytes(server);
        if now != last.1 {
            last = (Instant::now(), now);
        }
    }
}

/// How a flood came to its end.
#[derive(Debug, PartialEq)]
enum End {
    /// The server closed the connection.
    Closed,
    /// The server took no more.
    Stalled,
    /// It went on to the end of the test.
    Outlasted,
}

/// Sends the n-th frame from `next` until one side stops.
fn flood(server: &Server, begin: &[u8], mut next: impl FnMut(u32) -> Vec<u8>) -> (End, u64) {
    let before = memory_bytes(server);
    let mut stream = connect(server);
    stream.write_all(begin).unwrap();
    let (started, mut most) = (Instant::now(), before);
    let mut n = 0;
    let end = loop {
        let bytes: Vec<u8> = (0..256)
            .flat_map(|_| {
                n += 1;
                next(n)
            })
            .collect();
        match stream.write_all(&bytes) {
            Ok(()) => {}
            Err(error)
                if matches!(
                    error.kind(),
                    std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                ) =>
            {
                break End::Stalled;
            }
            Err(_) => break End::Closed,
        }
        most = most.max(memory_bytes(server));
        if started.elapsed() > FLOOD {
            break End::Outlasted;
        }
    };
    // Another client is served, now and during the flood.
    let asked = Instant::now();
    assert_eq!(server.get("/healthz").unwrap().status, 200);
    assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
    (end, most.saturating_sub(before))
}

/// repeated frames cost the server little, and abusive ones end the connection.
#[tokio::test(flavor = "multi_thread")]
async fn http2_frame_floods_cost_no_memory_and_block_no_client() {
    tokio::task::spawn_blocking(|| {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::start_with(&folder.path().join("data"), NO_SANDBOXES);
        settle(&server);
        let get = request("GET", "/healthz");
        let post = request("POST", "/v1/executions");
        let id = |n: u32| n * 2 + 1;
        let rapid_reset = flood(&server, &[], |n| {
            let asked = frame(HEADERS, END_STREAM | END_HEADERS, id(n), &get);
            [asked, frame(RESET, 0, id(n), &8_u32.to_be_bytes())].concat()
        });
        let continuation = flood(&server, &frame(HEADERS, END_STREAM, 1, &get), |n| {
            let name = format!("x-{n}");
            let field = [
                &[0, u8::try_from(name.len()).unwrap()],
                name.as_bytes(),
                &[1, b'x'],
            ]
            .concat();
            frame(CONTINUATION, 0, 1, &field)
        });
        let empty_continuation = flood(&server, &frame(HEADERS, END_STREAM, 1, &get), |_| {
            frame(CONTINUATION, 0, 1, &[])
        });
        let empty_data = flood(&server, &frame(HEADERS, END_HEADERS, 1, &post), |_| {
            frame(DATA, 0, 1, &[])
        });
        let ping = flood(&server, &[], |_| frame(PING, 0, 0, &[0; 8]));
        let settings = flood(&server, &[], |_| frame(SETTINGS, 0, 0, &[]));
        let no_window = flood(&server, &frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0]), |n| {
            frame(
                HEADERS,
                END_STREAM | END_HEADERS,
                id(n),
                &request("GET", "/openapi.json"),
            )
        });
        let window = flood(&server, &[], |_| frame(WINDOW_UPDATE, 0, 0, &1_u32.to_be_bytes()));
        let all = [
            ("rapid reset", rapid_reset),
            ("continuation", continuation),
            ("empty continuation", empty_continuation),
            ("empty data", empty_data),
            ("ping", ping),
            ("settings", settings),
            ("no window", no_window),
            ("window updates", window),
        ];
        for (name, (end, bytes)) in &all {
            println!("{name}: {end:?}, {} KiB", bytes >> 10);
            assert!(*bytes <= MEMORY_MAX, "{name}: {bytes} bytes");
        }
        for (name, (end, _)) in &all[..3] {
            assert_eq!(*end, End::Closed, "{name}");
        }
    })
    .await
    .unwrap();
}
