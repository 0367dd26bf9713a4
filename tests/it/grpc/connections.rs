//! Real connections: deadlines, slow clients, and many calls at once.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::{HeaderMap, Request, header};
use futures::future::join_all;
use futures::stream;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use skillbox::engine::RetentionPolicy;
use skillbox::grpc::{self, RestApi};
use skillbox::http::{Api, ConnectionLimits, Settings, serve};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use super::client::{Outcome, bytes, encode, frame, messages, method, outcome, path};
use crate::attempts::print_forgiven;
use crate::http::client::TestServer;

/// A gRPC port of its own, whose links point to the port 8080, and the REST API of the same server.
struct Port {
    server: TestServer,
    address: SocketAddr,
    rest: SocketAddr,
    _shutdown: tokio_util::sync::DropGuard,
}

impl Port {
    async fn open(connections: ConnectionLimits) -> Self {
        let settings = Settings {
            connections,
            ..Settings::default()
        };
        let server = TestServer::open_keeping(&settings, RetentionPolicy::default()).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let api = Api::new(server.engine.clone(), &settings);
        let shutdown = CancellationToken::new();
        let app = grpc::app(&api, RestApi::AtPort(8080));
        tokio::spawn(serve(listener, app, shutdown.clone()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let rest = listener.local_addr().unwrap();
        tokio::spawn(serve(listener, api.rest(), shutdown.clone()));
        Self {
            server,
            address,
            rest,
            _shutdown: shutdown.drop_guard(),
        }
    }

    async fn connect(&self) -> SendRequest<Body> {
        Self::connect_to(self.address).await
    }

    async fn connect_to(address: SocketAddr) -> SendRequest<Body> {
        let stream = TcpStream::connect(address).await.unwrap();
        let (sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .unwrap();
        tokio::spawn(connection);
        sender
    }

    fn request(&self, name: &str, body: impl Into<Body>) -> Request<Body> {
        Request::post(format!("http://{}{}", self.address, path(name)))
            .header(header::CONTENT_TYPE, "application/grpc")
            .header(header::AUTHORIZATION, format!("Bearer {}", self.server.admin))
            .body(body.into())
            .unwrap()
    }

    async fn ask(&self, sender: &mut SendRequest<Body>, name: &str, message: &Value) -> Outcome {
        let body = frame(&encode(method(&path(name)).input(), message));
        sender.ready().await.unwrap();
        let response = sender.send_request(self.request(name, body)).await.unwrap();
        read(name, response).await
    }
}

async fn read(name: &str, response: hyper::Response<Incoming>) -> Outcome {
    let (parts, body) = response.into_parts();
    let body = body.collect().await.unwrap();
    let trailers = body.trailers().cloned().unwrap_or_default();
    outcome(&path(name), parts.headers, &trailers, &body.to_bytes())
}

fn quick() -> ConnectionLimits {
    ConnectionLimits {
        body_idle: Duration::from_millis(200),
        header: Duration::from_millis(200),
        idle: Duration::from_millis(600),
        ..ConnectionLimits::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn links_point_to_the_rest_api() {
    let port = Port::open(ConnectionLimits::default()).await;
    port.server.publish(&port.server.admin).await;
    let message = json!({"skill": "probe", "files": [{"path": "a.txt", "content": bytes("a")}]});
    let mut client = port.connect().await;
    let run = port
        .ask(&mut client, "ExecutionService/RunSkill", &message)
        .await
        .only();
    let url = run["files"][0]["url"].as_str().unwrap();
    assert!(url.starts_with("http://127.0.0.1:8080/v1/executions/"), "{url}");
    let unknown = port.request("ExecutionService/NoMethod", frame(b""));
    let unknown = client.send_request(unknown).await.unwrap();
    assert_eq!(unknown.headers()["grpc-status"], "12");
    assert!(unknown.headers().contains_key("grpc-status-details-bin"));
}

#[tokio::test(flavor = "multi_thread")]
async fn passed_deadline_ends_the_call() {
    let port = Port::open(ConnectionLimits::default()).await;
    let mut client = port.connect().await;
    // The message never comes.
    let mut request = port.request(
        "ExecutionService/RunSkill",
        Body::from_stream(stream::pending::<Result<Vec<u8>, std::io::Error>>()),
    );
    request
        .headers_mut()
        .insert("grpc-timeout", "300m".parse().unwrap());
    let asked = Instant::now();
    let response = client.send_request(request).await.unwrap();
    assert_eq!(response.headers()["grpc-status"], "4");
    assert!(asked.elapsed() < Duration::from_secs(10), "{:?}", asked.elapsed());
    let mut request = port.request("ExecutionService/RunSkill", frame(b""));
    request
        .headers_mut()
        .insert("grpc-timeout", "soon".parse().unwrap());
    let response = client.send_request(request).await.unwrap();
    assert_eq!(response.headers()["grpc-status"], "3");
}

/// half a message, and then nothing; of a single message and of a stream.
#[tokio::test(flavor = "multi_thread")]
async fn slow_clients_are_rejected() {
    let port = Port::open(quick()).await;
    for name in ["ExecutionService/RunSkill", "SkillService/RegisterSkill"] {
        let mut client = port.connect().await;
        let beginning = stream::iter([Ok::<_, std::io::Error>(b"\0\0\0\x10".to_vec())]);
        let body = Body::from_stream(futures::StreamExt::chain(beginning, stream::pending()));
        let response = client.send_request(port.request(name, body)).await.unwrap();
        let outcome = read(name, response).await;
        assert_eq!(
            (outcome.code(), outcome.status),
            ("request_timeout", 14),
            "{name}"
        );
    }
}

/// a connection that was of use and then sends nothing more.
#[tokio::test(flavor = "multi_thread")]
async fn idle_connections_are_closed() {
    let port = Port::open(quick()).await;
    let mut client = port.connect().await;
    let listed = port.ask(&mut client, "SkillService/ListSkills", &json!({})).await;
    assert_eq!(listed.status, 0);
    let closed = async {
        while !client.is_closed() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), closed)
        .await
        .expect("closed");
}

/// a client that reads no events loses its connection, and its memory is released.
#[tokio::test(flavor = "multi_thread")]
async fn client_that_reads_nothing_is_disconnected() {
    let port = Port::open(quick()).await;
    port.server.publish(&port.server.admin).await;
    let large = "x".repeat(4 << 20);
    let message = json!({"skill": {"skill": "probe", "input": bytes(json!(large).to_string())}});
    let body = frame(&encode(
        method(&path("ExecutionService/RunSkillStream")).input(),
        &message,
    ));
    let mut client = port.connect().await;
    let response = client
        .send_request(port.request("ExecutionService/RunSkillStream", body))
        .await
        .unwrap();
    let unread = response.into_body();
    let closed = async {
        while !client.is_closed() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), closed)
        .await
        .expect("closed");
    assert!(unread.collect().await.is_err(), "cut off");
    let mut other = port.connect().await;
    let run = json!({"skill": "probe"});
    assert_eq!(
        port.ask(&mut other, "ExecutionService/RunSkill", &run)
            .await
            .status,
        0
    );
}

/// Every call is answered: with its result, or with a status that says when to try again.
#[tokio::test(flavor = "multi_thread")]
async fn thousand_calls_of_eight_clients_are_answered() {
    let port = Port::open(ConnectionLimits::default()).await;
    port.server.publish(&port.server.admin).await;
    let message = json!({"skill": "probe", "input": bytes("[1]")});
    let client = async |_: usize| {
        let mut sender = port.connect().await;
        let mut calls = Vec::new();
        for _ in 0..125 {
            sender.ready().await.unwrap();
            let body = frame(&encode(
                method(&path("ExecutionService/RunSkill")).input(),
                &message,
            ));
            let call = sender.send_request(port.request("ExecutionService/RunSkill", body));
            calls.push(async { read("ExecutionService/RunSkill", call.await.unwrap()).await });
        }
        join_all(calls).await
    };
    let outcomes: Vec<Outcome> = join_all((0..8).map(client)).await.into_iter().flatten().collect();
    assert_eq!(outcomes.len(), 1000);
    let done = outcomes.iter().filter(|outcome| outcome.status == 0).count();
    let later = outcomes
        .iter()
        .filter(|outcome| outcome.code() == "rate_limited" && outcome.problem["retry_after"].is_u64());
    assert_eq!(done + later.count(), 1000);
    assert!(done >= 50, "{done}");
}

/// The same run by both APIs in turn, each over HTTP/2: what gRPC adds at the median.
#[tokio::test(flavor = "multi_thread")]
async fn call_adds_at_most_three_milliseconds_to_rest() {
    let port = Port::open(ConnectionLimits::default()).await;
    port.server.publish(&port.server.admin).await;
    let (mut grpc, mut rest) = (port.connect().await, Port::connect_to(port.rest).await);
    let message = json!({"skill": "probe"});
    let median = |mut took: Vec<f64>| {
        took.sort_by(f64::total_cmp);
        took[took.len() / 2]
    };
    let mut by_rest = async || {
        let request = Request::post(format!("http://{}/v1/executions", port.rest))
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::AUTHORIZATION, format!("Bearer {}", port.server.admin))
            .body(Body::from(message.to_string()))
            .unwrap();
        let began = Instant::now();
        let response = rest.send_request(request).await.unwrap();
        assert_eq!(response.status(), 200);
        response.into_body().collect().await.unwrap();
        began.elapsed().as_secs_f64() * 1000.0
    };
    let mut by_grpc = async || {
        let began = Instant::now();
        let outcome = port.ask(&mut grpc, "ExecutionService/RunSkill", &message).await;
        let took = began.elapsed().as_secs_f64() * 1000.0;
        assert_eq!(outcome.status, 0, "{}", outcome.message);
        took
    };
    let mut took = Vec::new();
    while took.len() < 3 {
        let (mut of_rest, mut of_grpc) = (Vec::new(), Vec::new());
        for _ in 0..100 {
            of_rest.push(by_rest().await);
            of_grpc.push(by_grpc().await);
        }
        let (of_rest, of_grpc) = (median(of_rest), median(of_grpc));
        println!("p50 in turn: REST {of_rest:.2} ms, gRPC {of_grpc:.2} ms");
        if of_grpc - of_rest <= 3.0 {
            return print_forgiven(&took);
        }
        took.push(format!("{of_grpc:.2} ms, REST {of_rest:.2} ms"));
    }
    panic!("gRPC took {took:?}");
}

/// A stream is not one of trailers only: its headers come at once.
#[tokio::test(flavor = "multi_thread")]
async fn events_arrive_as_messages_of_their_own() {
    let port = Port::open(ConnectionLimits::default()).await;
    let message = json!({"code": {"code": "1"}});
    let name = "ExecutionService/RunSkillStream";
    let body = frame(&encode(method(&path(name)).input(), &message));
    let mut client = port.connect().await;
    let response = client.send_request(port.request(name, body)).await.unwrap();
    assert!(!response.headers().contains_key("grpc-status"));
    let mut body = response.into_body();
    let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
    let first = messages(method(&path(name)).output(), &first);
    assert!(first[0].get("status").is_some(), "{first:?}");
    let rest = body.collect().await.unwrap();
    let trailers: HeaderMap = rest.trailers().unwrap().clone();
    assert_eq!(trailers["grpc-status"], "0");
}
