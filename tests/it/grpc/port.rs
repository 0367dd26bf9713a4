//! Where `skillbox serve` has its gRPC API.

use std::net::TcpListener;
use std::process::{Command, Stdio};

use crate::server::{Server, free_port};

/// No engine: only the ports matter.
const NO_SANDBOXES: [(&str, &str); 2] = [
    ("SKILLBOX_SANDBOX_BACKEND", "docker"),
    ("SKILLBOX_DOCKER_HOST", "unix:///nonexistent/docker.sock"),
];

fn start(grpc: &[(&str, &str)]) -> (tempfile::TempDir, Server) {
    let folder = tempfile::tempdir().unwrap();
    let env: Vec<_> = NO_SANDBOXES.iter().chain(grpc).copied().collect();
    let server = Server::start_with(&folder.path().join("data"), &env);
    (folder, server)
}

/// The status of a health check.
fn health(port: &str) -> Option<String> {
    let address = format!("127.0.0.1:{port}").parse().unwrap();
    let stream = std::net::TcpStream::connect_timeout(&address, std::time::Duration::from_secs(5)).ok()?;
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        stream.set_nonblocking(true).unwrap();
        let stream = tokio::net::TcpStream::from_std(stream).unwrap();
        let io = hyper_util::rt::TokioIo::new(stream);
        let executor = hyper_util::rt::TokioExecutor::new();
        let (mut sender, connection) = hyper::client::conn::http2::handshake(executor, io).await.ok()?;
        tokio::spawn(connection);
        let request =
            axum::http::Request::post(format!("http://127.0.0.1:{port}/grpc.health.v1.Health/Check"))
                .header("content-type", "application/grpc")
                .body(axum::body::Body::from(vec![0; 5]))
                .unwrap();
        let response = sender.send_request(request).await.ok()?;
        let headers = response.headers().clone();
        let body = http_body_util::BodyExt::collect(response.into_body())
            .await
            .ok()?;
        let status = headers
            .get("grpc-status")
            .or_else(|| body.trailers()?.get("grpc-status"));
        Some(status?.to_str().unwrap().to_owned())
    })
}

#[test]
fn serves_grpc_on_its_own_port_or_on_that_of_the_rest_api() {
    let port = free_port();
    let (_folder, server) = start(&[("SKILLBOX_GRPC_PORT", &port)]);
    assert_eq!(health(&port).as_deref(), Some("0"));
    assert!(
        server.log().contains(&format!("127.0.0.1:{port}")),
        "{}",
        server.log()
    );
    let rest = server.url.rsplit(':').next().unwrap().to_owned();
    assert_ne!(health(&rest).as_deref(), Some("0"), "another port");

    let port = free_port();
    let (_folder, server) = start(&[("SKILLBOX_GRPC_PORT", &port), ("SKILLBOX_API_PORT", &port)]);
    assert_eq!(health(&port).as_deref(), Some("0"));
    assert_eq!(server.get("/healthz").unwrap().status, 200);

    let (_folder, server) = start(&[("SKILLBOX_GRPC_PORT", "0")]);
    assert!(!server.log().contains("gRPC API"), "{}", server.log());
}

/// Ends at once and names the setting, or warns and serves the REST API if nobody asked for the port.
#[test]
fn port_in_use_is_an_error_only_if_it_was_set() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let folder = tempfile::tempdir().unwrap();
    let ended = Command::new(env!("CARGO_BIN_EXE_skillbox"))
        .args(["serve", "--port", "0"])
        .env("SKILLBOX_DATA_DIR", folder.path().join("data"))
        .env("SKILLBOX_GRPC_PORT", &port)
        .envs(NO_SANDBOXES)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(!ended.status.success());
    assert!(said.contains("grpc.port: cannot listen on 127.0.0.1:"), "{said}");
    assert!(said.contains("SKILLBOX_GRPC_PORT"), "{said}");

    // Taken here, or by something else on this machine.
    let _default = TcpListener::bind("127.0.0.1:9090");
    let (_folder, server) = start(&[("SKILLBOX_GRPC_PORT", "")]);
    let log = server.log();
    assert!(
        log.contains("WARN") && log.contains("gRPC API not served: port 9090 is in use"),
        "{log}"
    );
    assert_eq!(server.get("/healthz").unwrap().status, 200);
}
