//! A server over a scripted sandbox, and a client that asks it.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::BodyExt as _;
use serde_json::Value;
use skillbox::auth::{ApiKey, Scope, Scopes};
use skillbox::bundle::artifacts::ArtifactTar;
use skillbox::engine::{Engine, NewKey, ProofSettings, RetentionPolicy};
use skillbox::execution::{CodeResults, JsonText, Logs};
use skillbox::grpc::with_rest;
use skillbox::http::{Api, App, ConnectionLimits, Settings, serve};
use skillbox::sandbox::{Completion, Error, Job, ProgramOutput, Report, Sandbox};
use skillbox::skill::Language;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use crate::world::{archive, engine_with_retention, images, instance_in};

/// A server with everything below it.
pub(crate) struct TestServer {
    pub(crate) engine: Engine,
    /// An administrator's key of the tenant `default`.
    pub(crate) admin: String,
    pub(crate) folder: tempfile::TempDir,
    router: Router,
}

/// One request.
pub(crate) struct Call {
    method: Method,
    path: String,
    headers: HeaderMap,
    body: Body,
}

/// Its answer.
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl TestServer {
    pub(crate) async fn open() -> Self {
        Self::open_with(&Settings::default()).await
    }

    pub(crate) async fn open_with(settings: &Settings) -> Self {
        Self::open_keeping(settings, RetentionPolicy::default()).await
    }

    /// A server over an engine that keeps executions as long as this.
    pub(crate) async fn open_keeping(settings: &Settings, retention: RetentionPolicy) -> Self {
        Self::open_on(Sandbox::scripted(script), settings, retention).await
    }

    pub(crate) async fn open_on(sandbox: Sandbox, settings: &Settings, retention: RetentionPolicy) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let instance = instance_in(folder.path());
        let engine = engine_with_retention(retention, folder.path(), instance, sandbox).await;
        let key = ApiKey::from_random([7; 32]);
        assert!(engine.keys().adopt_first(&key).await.unwrap());
        Self {
            admin: key.reveal().to_owned(),
            router: router(engine.clone(), settings),
            engine,
            folder,
        }
    }

    /// The same data with other settings.
    pub(crate) fn again_with(self, settings: &Settings) -> Self {
        Self {
            router: router(self.engine.clone(), settings),
            ..self
        }
    }

    /// Listens on a free port until `shutdown`.
    pub(crate) async fn listen(&self, shutdown: CancellationToken) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let app = App {
            router: self.router.clone(),
            bounds: ConnectionLimits::default(),
        };
        tokio::spawn(serve(listener, app, shutdown));
        address
    }

    /// A fresh key of this tenant.
    pub(crate) async fn key(&self, tenant: &str, scopes: &[Scope]) -> String {
        self.key_until(tenant, scopes, None).await
    }

    /// A fresh key that ends.
    pub(crate) async fn key_until(
        &self,
        tenant: &str,
        scopes: &[Scope],
        expires_at: Option<jiff::Timestamp>,
    ) -> String {
        let new = NewKey {
            name: "test".to_owned(),
            scopes: Scopes::new(scopes.iter().copied()),
            expires_at,
        };
        let (_, key) = self
            .engine
            .keys()
            .create(tenant.parse().unwrap(), new)
            .await
            .unwrap();
        key.reveal().to_owned()
    }

    /// Sends with the identity of `call`.
    pub(crate) async fn send(&self, call: Call) -> Reply {
        let is_endless = call.method == Method::GET && call.path == "/v1/events";
        let (parts, mut body) = self.answer(call).await.into_parts();
        let bytes = if is_endless && parts.status.is_success() {
            // Its first event follows the time for reconnections.
            drop(next_piece(&mut body).await);
            next_piece(&mut body).await
        } else {
            axum::body::to_bytes(body, 100 << 20).await.unwrap()
        };
        Reply {
            status: parts.status,
            headers: parts.headers,
            body: bytes.to_vec(),
        }
    }

    async fn answer(&self, call: Call) -> Response<Body> {
        let mut request = Request::builder()
            .method(call.method)
            .uri(call.path)
            .body(call.body)
            .unwrap();
        *request.headers_mut() = call.headers;
        self.router.clone().oneshot(request).await.unwrap()
    }

    /// Sends as the administrator, and leaves the body of the answer where it is.
    pub(crate) async fn begin(&self, call: Call) -> Response<Body> {
        self.answer(call.key(&self.admin)).await
    }

    /// Sends with the identity of `call`, and leaves the body of the answer where it is.
    pub(crate) async fn begin_as(&self, call: Call) -> Response<Body> {
        self.answer(call).await
    }

    /// Sends as the administrator.
    pub(crate) async fn ask(&self, call: Call) -> Reply {
        self.send(call.key(&self.admin)).await
    }

    /// Publishes the skill `probe` for the holder of `key`.
    pub(crate) async fn publish(&self, key: &str) -> Reply {
        self.send(Call::upload(probe("")).key(key)).await
    }

    /// Runs the skill `probe` as the administrator.
    pub(crate) async fn run(&self, body: Value) -> Value {
        let reply = self.ask(Call::post("/v1/executions").json(&body)).await;
        assert_eq!(reply.status, StatusCode::OK, "{}", reply.text());
        reply.json()
    }
}

/// Both APIs, as on one port.
fn router(engine: Engine, settings: &Settings) -> Router {
    with_rest(&Api::new(engine, settings)).router
}

/// The next piece of a stream that goes on.
pub(crate) async fn next_piece(body: &mut Body) -> axum::body::Bytes {
    let frame = tokio::time::timeout(Duration::from_secs(20), body.frame()).await;
    let frame = frame.expect("a piece in time").expect("the stream goes on");
    frame.unwrap().into_data().unwrap()
}

impl Call {
    pub(crate) fn new(method: Method, path: &str) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_static("localhost:8080"));
        Self {
            method,
            path: path.to_owned(),
            headers,
            body: Body::empty(),
        }
    }

    pub(crate) fn get(path: &str) -> Self {
        Self::new(Method::GET, path)
    }

    pub(crate) fn post(path: &str) -> Self {
        Self::new(Method::POST, path)
    }

    pub(crate) fn delete(path: &str) -> Self {
        Self::new(Method::DELETE, path)
    }

    /// Uploads a zip as it is.
    pub(crate) fn upload(zip: Vec<u8>) -> Self {
        Self::post("/v1/skills")
            .header(header::CONTENT_TYPE, "application/zip")
            .body(zip)
    }

    pub(crate) fn key(self, key: &str) -> Self {
        self.header(header::AUTHORIZATION, &format!("Bearer {key}"))
    }

    /// Adds a header, even if it is there already.
    pub(crate) fn header(mut self, name: HeaderName, value: &str) -> Self {
        self.headers.append(name, HeaderValue::from_str(value).unwrap());
        self
    }

    pub(crate) fn without(mut self, name: &HeaderName) -> Self {
        self.headers.remove(name);
        self
    }

    pub(crate) fn body(mut self, body: impl Into<Body>) -> Self {
        self.body = body.into();
        self
    }

    pub(crate) fn json(self, body: &Value) -> Self {
        self.raw_json(body.to_string())
    }

    pub(crate) fn raw_json(self, body: impl Into<Body>) -> Self {
        self.header(header::CONTENT_TYPE, "application/json").body(body)
    }
}

impl Reply {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.text()))
    }

    pub(crate) fn header(&self, name: HeaderName) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The stable code of a refusal, whose document is checked along the way.
    pub(crate) fn code(&self) -> String {
        let problem = self.json();
        assert_eq!(self.header(header::CONTENT_TYPE), "application/problem+json");
        assert_eq!(problem["status"], self.status.as_u16());
        let id = HeaderName::from_static("x-request-id");
        assert_eq!(problem["request_id"], self.header(id));
        problem["code"].as_str().unwrap().to_owned()
    }

    /// Status and code of a refusal.
    pub(crate) fn refusal(&self) -> (u16, String) {
        (self.status.as_u16(), self.code())
    }
}

/// How an engine over `folder` proves: with the images of this machine.
pub(crate) fn proofs_in(folder: &Path) -> ProofSettings {
    let images = images();
    let variables = [
        ("SKILLBOX_IMAGE_PYTHON", images.python),
        ("SKILLBOX_IMAGE_NODE", images.node),
        ("SKILLBOX_IMAGE_BASH", images.bash),
    ];
    ProofSettings {
        program: env!("CARGO_BIN_EXE_skillbox").into(),
        variables: variables
            .into_iter()
            .map(|(name, value)| (name.to_owned(), Some(value)))
            .collect(),
        report: folder.join("proof.json"),
    }
}

/// The archive of the skill `probe`.
pub(crate) fn probe(front_matter: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut file = archive(Language::Python, front_matter, "print()");
    std::io::Read::read_to_end(&mut file, &mut bytes).unwrap();
    bytes
}

/// Hands the input back as output and every input file as an artifact; an argument `exit=N` is the exit code, and `shows` a
/// rich result.
fn script(job: &Job, artifacts: &mut ArtifactTar) -> Result<Report, Error> {
    let mut files = Vec::new();
    for file in &job.program.files {
        artifacts.start(&file.path, file.content.len() as u64).unwrap();
        artifacts.write(&file.content).unwrap();
        files.push(artifacts.end().unwrap());
    }
    let exit = job.program.argv.iter().find_map(|arg| arg.strip_prefix("exit="));
    assert!(
        !job.program.argv.iter().any(|arg| arg == "panic"),
        "asked to panic"
    );
    let shows = job.program.argv.iter().any(|arg| arg == "shows");
    Ok(Report {
        shown: CodeResults::parse(if shows {
            br#"{"result": {"text": "1"}}"#
        } else {
            b""
        }),
        output: ProgramOutput::Json(JsonText::parse(job.program.input.as_str().as_bytes()).unwrap()),
        logs: Logs {
            stdout: b"out \xff\n".to_vec(),
            stderr: b"err\n".to_vec(),
            stdout_total: 100,
            stderr_total: 4,
            ..Logs::default()
        },
        files,
        sandbox_time: Duration::from_millis(1),
        run_time: Duration::from_millis(2),
        collect_time: Duration::from_millis(3),
        ..Report::bare(Completion::Exited(exit.map_or(0, |code| code.parse().unwrap())))
    })
}
