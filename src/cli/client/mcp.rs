//! Serves the Model Context Protocol on standard input and output: with the embedded engine, or by relaying messages to a server.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use ureq::Body;
use ureq::http::{Method, Response};

use super::remote::{ApiCall, SEGMENT};
use super::{Client, EmbeddedClient, RemoteClient};
use crate::cli::failure::{Failure, Result};
use crate::limits;
use crate::mcp::{McpClient, serve_stdio};
use crate::server::Signals;
use crate::skill::SkillName;

impl Client {
    /// Answers messages until standard input is closed. `pinned` skills are always tools.
    pub(crate) fn serve_mcp(&self, pinned: BTreeSet<SkillName>) -> Result<()> {
        match self {
            Self::Embedded(local) => local.serve_mcp(pinned),
            Self::Remote(remote) => Relay::new(remote.clone(), &pinned).run(),
        }
    }
}

impl EmbeddedClient {
    fn serve_mcp(&self, pinned: BTreeSet<SkillName>) -> Result<()> {
        let client = McpClient {
            engine: self.engine().clone(),
            caller: self.caller().clone(),
            links: None,
            request_id: std::process::id().to_string(),
            pinned,
        };
        self.mark_as_ran();
        self.call(async {
            let stop = CancellationToken::new();
            let mut signals = Signals::new().map_err(crate::error::Error::internal)?;
            let serving = serve_stdio(client, stop.clone());
            tokio::pin!(serving);
            tokio::select! {
                served = &mut serving => return served,
                () = signals.next() => stop.cancel(),
            }
            serving.await
        })
    }
}

/// Sends each message of a client to a server, and its answers back.
struct Relay {
    remote: RemoteClient,
    path: String,
    /// Names the client to the server, so that one message can cancel another.
    session: String,
    state: Mutex<RelayState>,
    changed: Condvar,
}

#[derive(Default)]
struct RelayState {
    /// Of `initialize`; later protocol versions send it with each message.
    version: Option<String>,
    running: usize,
}

/// The members of a message that the transport repeats as headers.
struct Outgoing {
    text: String,
    id: Value,
    headers: Vec<(&'static str, String)>,
    is_initialize: bool,
}

const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";

impl Relay {
    fn new(remote: RemoteClient, pinned: &BTreeSet<SkillName>) -> Arc<Self> {
        let names: Vec<&str> = pinned.iter().map(SkillName::as_str).collect();
        let path = match &names[..] {
            [] => "/mcp".to_owned(),
            names => format!(
                "/mcp?skills={}",
                percent_encoding::utf8_percent_encode(&names.join(","), SEGMENT)
            ),
        };
        Arc::new(Self {
            remote,
            path,
            session: uuid::Uuid::now_v7().to_string(),
            state: Mutex::default(),
            changed: Condvar::new(),
        })
    }

    /// Each message has a thread, since a call takes as long as its program.
    fn run(self: Arc<Self>) -> Result<()> {
        let mut input = BufReader::new(std::io::stdin());
        loop {
            let mut line = Vec::new();
            let mut limited = (&mut input).take(limits::MCP_BODY_BYTES_MAX + 1);
            let read = limited
                .read_until(b'\n', &mut line)
                .map_err(|error| Failure::internal("reading standard input", error))?;
            if read == 0 {
                break;
            }
            if read as u64 > limits::MCP_BODY_BYTES_MAX {
                return Err(Failure::refused(format!(
                    "a message has more than {} bytes",
                    limits::MCP_BODY_BYTES_MAX
                )));
            }
            let Some(outgoing) = self.outgoing(&line) else {
                continue;
            };
            if outgoing.is_initialize {
                // Its answer decides about the headers of all others.
                self.relay(&outgoing);
                continue;
            }
            self.begin();
            let relay = Arc::clone(&self);
            std::thread::spawn(move || {
                relay.relay(&outgoing);
                relay.end();
            });
        }
        self.drain();
        Ok(())
    }

    fn outgoing(&self, line: &[u8]) -> Option<Outgoing> {
        if line.trim_ascii().is_empty() {
            return None;
        }
        let text = String::from_utf8_lossy(line).trim().to_owned();
        let message: Value = match serde_json::from_str(&text) {
            Ok(message) => message,
            Err(error) => {
                print(&crate::mcp::rejection(&error.to_string()).to_string());
                return None;
            }
        };
        let params = &message["params"];
        let method = message["method"].as_str().unwrap_or_default();
        let mut headers = vec![("mcp-session-id", self.session.clone())];
        let declared = params["_meta"][META_VERSION].as_str().map(str::to_owned);
        let version = declared.or_else(|| self.state().version.clone());
        headers.extend(version.map(|version| ("mcp-protocol-version", version)));
        if !method.is_empty() {
            headers.push(("mcp-method", method.to_owned()));
        }
        let name = match method {
            "tools/call" | "prompts/get" => params["name"].as_str(),
            "resources/read" => params["uri"].as_str(),
            _ => None,
        };
        headers.extend(name.map(|name| ("mcp-name", header_text(name))));
        Some(Outgoing {
            id: message["id"].clone(),
            is_initialize: method == "initialize",
            text,
            headers,
        })
    }

    fn relay(&self, outgoing: &Outgoing) {
        let answered = self
            .remote
            .mcp(&self.path, outgoing)
            .and_then(|answer| self.pass_on(answer, outgoing));
        if let Err(failure) = answered
            && !outgoing.id.is_null()
        {
            let error = json!({ "code": -32603, "message": failure.to_string() });
            print(&json!({ "jsonrpc": "2.0", "id": outgoing.id, "error": error }).to_string());
        }
    }

    /// Prints the messages of an answer as they arrive.
    fn pass_on(&self, answer: Response<Body>, outgoing: &Outgoing) -> Result<()> {
        let kind = answer.headers().get("content-type");
        let is_stream = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
        let reader = answer.into_body().into_with_config().limit(u64::MAX).reader();
        let mut reader = BufReader::new(reader.take(limits::ANSWER_BYTES_MAX));
        let interrupted = |error| Failure::internal("reading the server's answer", error);
        if !is_stream {
            let mut text = String::new();
            reader.read_to_string(&mut text).map_err(interrupted)?;
            if outgoing.is_initialize {
                self.learn_version(&text);
            }
            print(&text);
            return Ok(());
        }
        for line in reader.lines() {
            if let Some(data) = line.map_err(interrupted)?.strip_prefix("data:") {
                print(data);
            }
        }
        Ok(())
    }

    fn learn_version(&self, text: &str) {
        let answer: Value = serde_json::from_str(text).unwrap_or_default();
        self.state().version = answer["result"]["protocolVersion"].as_str().map(str::to_owned);
    }

    fn begin(&self) {
        let mut state = self.state();
        while state.running >= limits::MCP_RELAYED_MAX {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.running += 1;
    }

    fn end(&self) {
        self.state().running -= 1;
        self.changed.notify_all();
    }

    /// The client has closed its end: short answers are still sent, the server cancels all others.
    fn drain(&self) {
        let state = self.state();
        let drained = self
            .changed
            .wait_timeout_while(state, limits::MCP_DRAIN_MAX, |state| state.running > 0);
        drop(drained);
    }

    fn state(&self) -> MutexGuard<'_, RelayState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RemoteClient {
    /// Sends a message. Errors of the protocol are answers, too.
    fn mcp(&self, path: &str, outgoing: &Outgoing) -> Result<Response<Body>> {
        let call = ApiCall {
            accept: "application/json, text/event-stream",
            answer_max: limits::CLIENT_RUN_MAX,
            ..ApiCall::new(Method::POST, path)
        };
        let answer = self.send_message(&call, &outgoing.headers, outgoing.text.clone().into_bytes())?;
        let kind = answer.headers().get("content-type");
        match kind.is_some_and(|kind| kind.as_bytes() == b"application/json") {
            true => Ok(answer),
            false => self.check_status(Ok(answer)),
        }
    }
}

/// A name as the value of a header; in base64 if it contains what headers cannot.
fn header_text(name: &str) -> String {
    let is_plain = name.bytes().all(|byte| byte.is_ascii_graphic()) && !name.starts_with("=?");
    match is_plain {
        true => name.to_owned(),
        false => format!("=?base64?{}?=", STANDARD.encode(name)),
    }
}

/// One message is one line.
fn print(message: &str) {
    let message = message.trim().replace(['\n', '\r'], " ");
    if message.is_empty() {
        return;
    }
    let mut out = std::io::stdout().lock();
    // The client has gone; the end of standard input ends the loop.
    let _ = writeln!(out, "{message}").and_then(|()| out.flush());
}
