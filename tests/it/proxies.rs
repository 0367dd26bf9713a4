//! The configurations of proxies in `docs/OPERATIONS.md`: requests and live events pass through them.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::cli_docs::read;
use crate::server::{Server, eventually, free_port};
use crate::world::missing;

const HOST: &str = "skillbox.example.com";

/// A block of the document, by its language.
fn block(language: &str) -> String {
    let document = read("docs/OPERATIONS.md");
    let (_, after) = document.split_once(&format!("```{language}\n")).unwrap();
    after.split_once("```").unwrap().0.to_owned()
}

/// A running proxy, killed when dropped.
struct Proxy(Child);

impl Drop for Proxy {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn has(program: &str, version: &str) -> bool {
    let found = Command::new(program).arg(version).output().is_ok();
    if !found {
        missing(program, "its configuration in docs/OPERATIONS.md is not tested");
    }
    found
}

fn server(folder: &Path) -> Server {
    Server::start_with(
        &folder.join("data"),
        &[("SKILLBOX_SERVER_URL", &format!("https://{HOST}"))],
    )
}

fn start(command: &mut Command) -> Proxy {
    Proxy(
        command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    )
}

fn curl(port: &str) -> Command {
    let mut command = Command::new("curl");
    command.args(["-sNk", "--max-time", "60", "--resolve"]);
    command.arg(format!("{HOST}:{port}:127.0.0.1"));
    command
}

/// The second line that a program prints arrives long after the first one, so nothing collects events.
fn passes_live_events(server: &Server, port: &str) {
    let url = format!("https://{HOST}:{port}");
    eventually("the proxy answers", || {
        let health = curl(port).arg(format!("{url}/healthz")).output().unwrap();
        health.status.success() && !health.stdout.is_empty()
    });
    let code = r#"{"code": "import time\nprint('first')\ntime.sleep(1.5)\nprint('second')"}"#;
    let mut request = curl(port);
    request
        .args([
            "-H",
            "Content-Type: application/json",
            "-H",
            "Accept: text/event-stream",
        ])
        .args(["-H", &format!("Authorization: Bearer {}", server.key())])
        .args(["-d", code, &format!("{url}/v1/executions")])
        .stdout(Stdio::piped());
    let mut child = request.spawn().unwrap();
    let mut seen = Vec::new();
    let mut text = String::new();
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        if line.starts_with("data: {\"text\":") {
            seen.push(Instant::now());
        }
        text.push_str(&line);
        text.push('\n');
    }
    child.wait().unwrap();
    assert_eq!(seen.len(), 2, "{text}");
    let pause = seen[1].duration_since(seen[0]);
    assert!(pause > Duration::from_millis(500), "{pause:?}: {text}");
    assert!(text.contains("event: end"), "{text}");
}

#[test]
fn nginx_passes_requests_and_live_events() {
    if !has("nginx", "-v") || !has("openssl", "version") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path());
    let port = free_port();
    let (certificate, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1"])
        .args(["-subj", &format!("/CN={HOST}"), "-keyout"])
        .arg(&key)
        .arg("-out")
        .arg(&certificate)
        .output()
        .unwrap();
    assert!(made.status.success());
    let site = block("nginx")
        .replace("listen 443", &format!("listen 127.0.0.1:{port}"))
        .replace("http://127.0.0.1:8080", &server.url)
        .replace(
            "/etc/ssl/certs/skillbox.example.com.pem",
            certificate.to_str().unwrap(),
        )
        .replace("/etc/ssl/private/skillbox.example.com.key", key.to_str().unwrap());
    let places: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .iter()
        .map(|kind| format!("{kind}_temp_path {kind};\n"))
        .collect();
    let configuration =
        format!("daemon off;\npid nginx.pid;\nevents {{}}\nhttp {{\naccess_log off;\n{places}{site}}}\n");
    std::fs::write(folder.path().join("nginx.conf"), configuration).unwrap();
    let mut command = Command::new("nginx");
    command.arg("-p").arg(folder.path());
    command.args(["-c", "nginx.conf", "-e", "error.log"]);
    // The master ends its workers on SIGTERM; on SIGKILL they would stay.
    command.args(["-g", "master_process off;"]);
    let _proxy = start(&mut command);
    passes_live_events(&server, &port);
}

#[test]
fn caddy_passes_requests_and_live_events() {
    if !has("caddy", "version") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path());
    let (port, http) = (free_port(), free_port());
    let site = block("caddyfile").replace("127.0.0.1:8080", server.url.trim_start_matches("http://"));
    let options =
        format!("{{\nadmin off\nlocal_certs\nskip_install_trust\nhttp_port {http}\nhttps_port {port}\n}}\n");
    std::fs::write(folder.path().join("Caddyfile"), options + &site).unwrap();
    let mut command = Command::new("caddy");
    command
        .args(["run", "--config", "Caddyfile", "--adapter", "caddyfile"])
        .current_dir(folder.path())
        .env("HOME", folder.path())
        .env("XDG_DATA_HOME", folder.path())
        .env("XDG_CONFIG_HOME", folder.path());
    let _proxy = start(&mut command);
    passes_live_events(&server, &port);
}
