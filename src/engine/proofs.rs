//! Proofs on request: the command `prove` of this program, in a process of its own with low priority, one at a time.
//!
//! Not in this process: it looks for leftovers of its sandboxes, and those of tenants are none.

use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;

use crate::engine::{Proofs, clock};
use crate::error::{Code, Error};
use crate::limits;

/// How this process proves.
#[derive(Clone, Debug)]
pub struct ProofSettings {
    /// This program.
    pub program: PathBuf,
    /// Variables to set, or to remove, for its configuration.
    pub variables: Vec<(String, Option<String>)>,
    /// File of the last report.
    pub report: PathBuf,
}

/// What to prove.
#[derive(Clone, Debug, Default)]
pub struct ProofRequest {
    pub backend: ProofBackend,
    /// Promises, attacks or probes; all if empty.
    pub only: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProofBackend {
    Docker,
    Native,
    /// Every backend that is available on this host.
    #[default]
    All,
}

impl ProofBackend {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Docker => "docker",
            Self::Native => "native",
            Self::All => "all",
        }
    }
}

/// Progress of a running proof. The command prints it as a line of JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProofProgressLine {
    pub backend: String,
    pub done: usize,
    pub total: usize,
}

/// The last report, and the running proof.
#[derive(Debug, Default)]
pub struct ProofStatus {
    pub last: Option<ProofRecord>,
    pub running: Option<RunningProof>,
    /// Why the last proof of this process ended without a report.
    pub failure: Option<String>,
}

#[derive(Clone, Debug)]
pub struct RunningProof {
    pub started_at: Timestamp,
    /// `None` until the first sandboxes are made.
    pub progress: Option<ProofProgressLine>,
}

/// The file of the last report.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProofRecord {
    pub started_at: Timestamp,
    pub finished_at: Timestamp,
    /// The JSON of `skillbox prove`.
    pub report: Map<String, Value>,
}

/// State of proofs in this process.
#[derive(Debug, Default)]
pub(super) struct ProofState {
    settings: OnceLock<ProofSettings>,
    current: Mutex<Current>,
    stop: CancellationToken,
}

#[derive(Debug, Default)]
struct Current {
    running: Option<RunningProof>,
    failure: Option<String>,
}

impl ProofState {
    fn current(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Proofs<'_> {
    /// Allows this process to prove. Only the first call has an effect.
    pub fn enable(self, settings: ProofSettings) {
        let _ = self.engine.proof_state.settings.set(settings);
    }

    /// Ends a running proof and starts no other.
    pub fn stop(self) {
        self.engine.proof_state.stop.cancel();
    }

    /// Starts a proof and returns at once.
    pub fn start(self, request: &ProofRequest) -> Result<(), Error> {
        let state = &self.engine.proof_state;
        let Some(settings) = state.settings.get() else {
            let message = "this process proves nothing; run `skillbox prove` on the host of the server";
            return Err(Error::new(Code::NotFound, message));
        };
        if state.stop.is_cancelled() {
            return Err(Error::new(Code::Busy, "the server is shutting down"));
        }
        // Held until the process exists, so that two requests start one.
        let mut current = state.current();
        if current.running.is_some() {
            let message = "a proof is running; wait until `running` of GET /v1/prove is null";
            return Err(Error::new(Code::Conflict, message));
        }
        let child = spawn(settings, request).map_err(Error::internal)?;
        let started_at = clock::now();
        *current = Current {
            running: Some(RunningProof {
                started_at,
                progress: None,
            }),
            failure: None,
        };
        drop(current);
        tracing::info!("Proof started");
        let engine = self.engine.clone();
        self.engine.tasks.spawn(async move {
            let failure = engine.proofs().attend(child, started_at).await.err();
            match &failure {
                None => tracing::info!("Proof ended"),
                Some(why) => tracing::warn!("Proof ended without a report: {why}"),
            }
            *engine.proof_state.current() = Current {
                running: None,
                failure,
            };
        });
        Ok(())
    }

    pub async fn status(self) -> Result<ProofStatus, Error> {
        let state = &self.engine.proof_state;
        let (running, failure) = {
            let current = state.current();
            (current.running.clone(), current.failure.clone())
        };
        let last = match state.settings.get() {
            Some(settings) => read_record(settings.report.clone()).await?,
            None => None,
        };
        Ok(ProofStatus {
            last,
            running,
            failure,
        })
    }

    /// Follows a proof to its end and stores its report. An error says why there is none.
    async fn attend(self, mut child: Child, started_at: Timestamp) -> Result<(), String> {
        let state = &self.engine.proof_state;
        // The process ends when this closes.
        let stdin = child.stdin.take();
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let (Some(out), Some(err)) = (out, err) else {
            return Err("its output is not connected".to_owned());
        };
        let ended = async {
            let read = tokio::join!(report(out), self.follow(err));
            let status = child.wait().await;
            (read, status)
        };
        let ((report, last_line), status) = tokio::select! {
            ended = ended => ended,
            () = state.stop.cancelled() => {
                drop(stdin);
                end(child).await;
                return Err("the server stopped".to_owned());
            }
            () = tokio::time::sleep(limits::PROOF_TIME_MAX) => {
                drop(stdin);
                end(child).await;
                let minutes = limits::PROOF_TIME_MAX.as_secs() / 60;
                return Err(format!("it took longer than {minutes} minutes"));
            }
        };
        let Some(report) = report else {
            let status = status.map_or_else(|error| error.to_string(), |status| status.to_string());
            return Err(format!("{status}: {last_line}"));
        };
        let record = ProofRecord {
            started_at,
            finished_at: clock::now(),
            report,
        };
        let Some(settings) = state.settings.get() else {
            return Ok(());
        };
        let place = settings.report.clone();
        let writing = tokio::task::spawn_blocking(move || write_record(&place, &record));
        let written = writing.await.map_err(|error| error.to_string())?;
        written.map_err(|error| format!("the report was not stored: {error}"))
    }

    /// Takes progress from the messages of the process. Returns the last other line.
    async fn follow(self, messages: impl AsyncRead + Unpin) -> String {
        let mut lines = BufReader::new(messages.take(limits::PROOF_MESSAGES_BYTES_MAX)).lines();
        let mut last = String::new();
        while let Ok(Some(line)) = lines.next_line().await {
            match serde_json::from_str(&line) {
                Ok(progress) => {
                    if let Some(running) = &mut self.engine.proof_state.current().running {
                        running.progress = Some(progress);
                    }
                }
                Err(_) => {
                    last = line;
                    last.truncate(last.floor_char_boundary(limits::PROOF_LINE_BYTES_MAX));
                }
            }
        }
        last
    }
}

fn spawn(settings: &ProofSettings, request: &ProofRequest) -> io::Result<Child> {
    let backend = request.backend.as_str();
    let mut command = Command::new(&settings.program);
    command
        .args(["prove", "--supervised", "--format", "json", "--backend", backend])
        .args(request.only.iter().map(|name| format!("--only={name}")))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    for (name, value) in &settings.variables {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let child = command.spawn()?;
    lower_priority(&child);
    Ok(child)
}

/// Tenants come first. Not the lowest priority: programs of the attacks reduce their own further.
#[cfg(unix)]
fn lower_priority(child: &Child) {
    const NICENESS: i32 = 10;
    let pid = child
        .id()
        .and_then(|id| rustix::process::Pid::from_raw(id.cast_signed()));
    if let Err(error) = rustix::process::setpriority_process(pid, NICENESS) {
        tracing::warn!(%error, "Proof runs with normal priority");
    }
}

#[cfg(not(unix))]
fn lower_priority(_: &Child) {}

/// Waits until the process has removed its sandboxes.
async fn end(mut child: Child) {
    if tokio::time::timeout(limits::PROOF_END_MAX, child.wait())
        .await
        .is_err()
    {
        let _ = child.kill().await;
    }
}

async fn report(output: impl AsyncRead + Unpin) -> Option<Map<String, Value>> {
    let mut bytes = Vec::new();
    let mut limited = output.take(limits::PROOF_REPORT_BYTES_MAX);
    limited.read_to_end(&mut bytes).await.ok()?;
    let report: Map<String, Value> = serde_json::from_slice(&bytes).ok()?;
    report.contains_key("backends").then_some(report)
}

async fn read_record(place: PathBuf) -> Result<Option<ProofRecord>, Error> {
    let mut file = match tokio::fs::File::open(&place).await {
        Ok(file) => file.take(limits::PROOF_REPORT_BYTES_MAX * 2),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::internal(error)),
    };
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).await.map_err(Error::internal)?;
    serde_json::from_slice(&bytes).map_err(Error::internal)
}

/// Readers find the report before or this one, complete. Blocking.
fn write_record(place: &std::path::Path, record: &ProofRecord) -> io::Result<()> {
    let folder = place.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    serde_json::to_writer(&mut file, record)?;
    file.as_file().sync_all()?;
    file.persist(place).map(drop).map_err(|error| error.error)
}
