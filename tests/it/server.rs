//! A real `skillbox serve` process in a folder of its own, and a client for it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// A running server; killed when dropped.
pub(crate) struct Server {
    pub(crate) process: Child,
    pub(crate) url: String,
    pub(crate) data: PathBuf,
}

/// An answer: its status and its JSON body (`null` if it has none).
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

/// How long a server may take to come up, on a machine that is busy with other tests.
const START_MAX: Duration = Duration::from_secs(30);

/// KiB that a process holds of its own. Not the pages of files that it has mapped: how many of those are counted as its
/// own depends on what other processes do to the same file.
pub(crate) fn own_memory_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Asks until the answer is right, with a bound that a busy machine keeps.
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "{what} did not come true"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

impl Server {
    /// Starts a server over `data` on a free port and waits until it answers.
    pub(crate) fn start(data: &Path) -> Self {
        Self::start_with(data, &[])
    }

    /// As [`start`](Self::start), with further environment variables.
    pub(crate) fn start_with(data: &Path, env: &[(&str, &str)]) -> Self {
        Self::start_by(&[], data, env)
    }

    /// As [`start_with`](Self::start_with), executed by another program.
    pub(crate) fn start_by(program: &[&str], data: &Path, env: &[(&str, &str)]) -> Self {
        let given = env.iter().find(|(name, _)| *name == "SKILLBOX_API_PORT");
        let port = given.map_or_else(free_port, |(_, port)| (*port).to_owned());
        let log = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(data.with_extension("log"))
            .unwrap();
        let mut command = program
            .split_first()
            .map_or_else(|| Command::new(binary()), |(first, _)| Command::new(first));
        if let Some((_, arguments)) = program.split_first() {
            command.args(arguments).arg(binary());
        }
        let process = command
            .arg("serve")
            .env("SKILLBOX_DATA_DIR", data)
            .env("SKILLBOX_API_PORT", &port)
            .env("SKILLBOX_GRPC_PORT", "0")
            .env("SKILLBOX_LOG", "skillbox=info")
            .env("HOME", data)
            .envs(images())
            .envs(env.iter().copied())
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut server = Self {
            process,
            url: format!("http://127.0.0.1:{port}"),
            data: data.to_owned(),
        };
        let started = Instant::now();
        while server.get("/healthz").is_none_or(|answer| answer.status != 200) {
            let ended = server.process.try_wait().unwrap();
            if ended.is_some() && given.is_none() && server.log().contains("in use") {
                // Another process got the same port.
                std::fs::remove_file(data.with_extension("log")).unwrap();
                return Self::start_by(program, data, env);
            }
            assert!(
                ended.is_none() && started.elapsed() < START_MAX,
                "the server did not come up: {}",
                server.log()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
        server
    }

    /// What the server printed.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.data.with_extension("log")).unwrap_or_default()
    }

    /// The first key, as kept for the command line.
    pub(crate) fn key(&self) -> String {
        std::fs::read_to_string(self.data.join("admin.key"))
            .unwrap()
            .trim()
            .to_owned()
    }

    /// `None` if there is no answer.
    pub(crate) fn get(&self, path: &str) -> Option<Answer> {
        let mut request = agent().get(format!("{}{path}", self.url));
        if let Ok(key) = std::fs::read_to_string(self.data.join("admin.key")) {
            request = request.header("authorization", format!("Bearer {}", key.trim()));
        }
        request.call().ok().map(answer)
    }

    pub(crate) fn delete(&self, path: &str) -> Answer {
        let request = agent()
            .delete(format!("{}{path}", self.url))
            .header("authorization", format!("Bearer {}", self.key()));
        answer(request.call().unwrap())
    }

    /// Posts bytes of this content type.
    pub(crate) fn post(&self, path: &str, content_type: &str, body: &[u8]) -> Answer {
        let request = agent()
            .post(format!("{}{path}", self.url))
            .header("authorization", format!("Bearer {}", self.key()))
            .header("content-type", content_type);
        answer(request.send(body).unwrap())
    }

    /// Posts JSON.
    pub(crate) fn post_json(&self, path: &str, body: &Value) -> Answer {
        self.post(path, "application/json", body.to_string().as_bytes())
    }

    /// A fresh key of this tenant that may run.
    pub(crate) fn key_of(&self, tenant: &str) -> String {
        let wanted = serde_json::json!({"name": "test", "scopes": ["run"], "tenant": tenant});
        let answer = self.post_json("/v1/keys", &wanted);
        answer.body["api_key"].as_str().unwrap().to_owned()
    }

    /// Posts JSON as the holder of `key`.
    pub(crate) fn post_json_as(&self, key: &str, path: &str, body: &Value) -> Answer {
        let request = agent()
            .post(format!("{}{path}", self.url))
            .header("authorization", format!("Bearer {key}"))
            .header("content-type", "application/json");
        answer(request.send(body.to_string().as_bytes()).unwrap())
    }

    /// Publishes a skill named `probe`.
    pub(crate) fn publish(&self, mut archive: std::fs::File) {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut archive, &mut bytes).unwrap();
        let answer = self.post("/v1/skills", "application/zip", &bytes);
        assert!(
            matches!(answer.status, 200 | 201),
            "{} {}",
            answer.status,
            answer.body
        );
    }

    /// Ends the process as a power cut would.
    pub(crate) fn kill_9(mut self) -> PathBuf {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        self.data.clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A port without a listener.
pub(crate) fn free_port() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port().to_string()
}

/// The server that is tested: this build's, or the one that `SKILLBOX_TEST_BINARY` names.
fn binary() -> PathBuf {
    std::env::var_os("SKILLBOX_TEST_BINARY")
        .map_or_else(|| env!("CARGO_BIN_EXE_skillbox").into(), PathBuf::from)
}

fn agent() -> ureq::Agent {
    let config = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(Duration::from_secs(120)));
    config.build().into()
}

fn answer(mut response: ureq::http::Response<ureq::Body>) -> Answer {
    let status = response.status().as_u16();
    let text = response.body_mut().read_to_string().unwrap_or_default();
    Answer {
        status,
        body: serde_json::from_str(&text).unwrap_or(Value::Null),
    }
}

/// The images of this machine, allowed.
fn images() -> Vec<(&'static str, String)> {
    let images = crate::world::images();
    let list = [&images.python, &images.node, &images.bash]
        .map(String::as_str)
        .join(",");
    vec![
        ("SKILLBOX_IMAGE_PYTHON", images.python.clone()),
        ("SKILLBOX_IMAGE_NODE", images.node.clone()),
        ("SKILLBOX_IMAGE_BASH", images.bash.clone()),
        ("SKILLBOX_IMAGE_ALLOWLIST", list),
    ]
}
