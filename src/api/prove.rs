//! Proofs of the sandbox promises, for the operator of the server.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ADMIN, audit, require, unless_null};
use crate::auth::{AuditAction, Caller};
use crate::engine::{Engine, ProofBackend, ProofRequest, ProofStatus};
use crate::error::{Code, Error};
use crate::ids::Tenant;
use crate::limits;

/// What to prove.
#[derive(Clone, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"backend": "native", "only": ["P1"]}))]
pub struct StartProof {
    /// Sandbox backend. Default: every backend that is available on this host.
    #[serde(default, deserialize_with = "unless_null")]
    #[schema(value_type = Option<ProofBackend>)]
    pub backend: ProofBackend,
    /// Only these promises (`P7`), attacks of the catalogue (`S-10`) or probes (`S-10b`).
    #[serde(default, deserialize_with = "unless_null")]
    #[schema(value_type = Option<Vec<String>>, max_items = 64)]
    pub only: Vec<String>,
}

/// The last report of `skillbox prove` on this server, and the running proof.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ProofView {
    /// Number of each verdict; `null` without a report.
    #[schema(required)]
    pub total: Option<Value>,
    /// Results of each backend: its promises and the findings.
    #[schema(value_type = Vec<Object>)]
    pub backends: Vec<Value>,
    /// Unavailable backends and the reasons.
    #[schema(value_type = Vec<Object>)]
    pub skipped: Vec<Value>,
    /// Start of the proof with this report.
    #[schema(value_type = Option<String>, format = DateTime, required)]
    pub started_at: Option<jiff::Timestamp>,
    /// End of the proof with this report.
    #[schema(value_type = Option<String>, format = DateTime, required)]
    pub finished_at: Option<jiff::Timestamp>,
    /// The proof that runs now.
    #[schema(required)]
    pub running: Option<ProofInProgress>,
    /// Why the last proof ended without a report.
    #[schema(required)]
    pub failure: Option<String>,
}

/// A running proof.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ProofInProgress {
    #[schema(value_type = String, format = DateTime)]
    pub started_at: jiff::Timestamp,
    /// The backend that is attacked; `null` until the first sandbox is made.
    #[schema(required, example = "native")]
    pub backend: Option<String>,
    /// Completed attacks on this backend.
    pub done: usize,
    /// Attacks on this backend; 0 until the first sandbox is made.
    pub total: usize,
}

/// Starts a proof and returns at once. A conflict while one runs.
pub async fn start(engine: &Engine, caller: &Caller, request: StartProof) -> Result<ProofView, Error> {
    require_operator(caller)?;
    let StartProof { backend, only } = request;
    if only.len() > limits::PROOF_NAMES_MAX {
        let max = limits::PROOF_NAMES_MAX;
        return Err(Error::invalid(format!(
            "only: {} names, the limit is {max}",
            only.len()
        )));
    }
    let started = audit::recorded(engine, caller, AuditAction::ProveStarted, |engine| async move {
        let target = backend.as_str().to_owned();
        engine.proofs().start(&ProofRequest { backend, only })?;
        Ok(((), target))
    });
    started.await?;
    status(engine, caller).await
}

/// The last report and the running proof.
pub async fn status(engine: &Engine, caller: &Caller) -> Result<ProofView, Error> {
    require_operator(caller)?;
    Ok(engine.proofs().status().await?.into())
}

/// The host is shared by all tenants, so only an administrator of tenant `default` may attack it.
fn require_operator(caller: &Caller) -> Result<(), Error> {
    require(caller, ADMIN)?;
    if *caller.tenant() == Tenant::default_tenant() {
        return Ok(());
    }
    Err(Error::new(
        Code::Forbidden,
        "proofs concern all tenants; use an administrator key of tenant `default`",
    ))
}

impl From<ProofStatus> for ProofView {
    fn from(status: ProofStatus) -> Self {
        let (mut report, times) = match status.last {
            Some(last) => (last.report, Some((last.started_at, last.finished_at))),
            None => Default::default(),
        };
        let mut list = |name: &str| match report.remove(name) {
            Some(Value::Array(items)) => items,
            Some(_) | None => Vec::new(),
        };
        Self {
            backends: list("backends"),
            skipped: list("skipped"),
            total: report.remove("total"),
            started_at: times.map(|(started_at, _)| started_at),
            finished_at: times.map(|(_, finished_at)| finished_at),
            running: status.running.map(|running| {
                let progress = running.progress;
                ProofInProgress {
                    started_at: running.started_at,
                    done: progress.as_ref().map_or(0, |progress| progress.done),
                    total: progress.as_ref().map_or(0, |progress| progress.total),
                    backend: progress.map(|progress| progress.backend),
                }
            }),
            failure: status.failure,
        }
    }
}
