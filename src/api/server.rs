//! State and limits of the server.

use std::time::Duration;

use serde::Serialize;

use super::{RUN, require};
use crate::auth::{Caller, Scope};
use crate::engine::{Engine, Settings, Tenants};
use crate::error::Error;
use crate::ids::Tenant;
use crate::limits;
use crate::sandbox::{self, Outlook};

/// State of the server. Numbers are those of the caller's tenant, or of all tenants for an administrator of the tenant `default`.
#[derive(Clone, Debug, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = Server)]
pub struct ServerInfo {
    /// Version of Skillbox.
    #[schema(example = "1.0.0")]
    pub version: &'static str,
    /// Start of this process.
    #[schema(value_type = String, format = DateTime)]
    pub started_at: jiff::Timestamp,
    /// Whether the numbers are those of all tenants.
    pub all_tenants: bool,
    pub backend: BackendInfo,
    /// Promises that this host only keeps partly, such as `P6`. Usually empty.
    pub degraded: Vec<&'static str>,
    /// What every sandbox promises, P1 to P16.
    pub promises: Vec<PromiseInfo>,
    pub slots: SlotInfo,
    pub queue: QueueInfo,
    pub warm: WarmInfo,
    pub limits: ServerLimits,
}

/// The backend that would run the next execution.
#[derive(Clone, Debug, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = ServerBackend)]
pub struct BackendInfo {
    /// `docker` or `native`; `null` if neither can run anything now.
    #[schema(required, example = "native")]
    pub chosen: Option<&'static str>,
    /// Why.
    pub reason: String,
    pub others: Vec<OtherBackendInfo>,
}

/// A backend that was not chosen.
#[derive(Clone, Debug, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = OtherBackend)]
pub struct OtherBackendInfo {
    /// Name.
    #[schema(example = "docker")]
    pub backend: &'static str,
    /// Why not.
    pub why_not: String,
}

/// A promise, as in `SECURITY.md`.
#[derive(Clone, Debug, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = Promise)]
pub struct PromiseInfo {
    /// `P1` to `P16`.
    #[schema(example = "P1")]
    pub promise: &'static str,
    /// A few words.
    #[schema(example = "no network")]
    pub title: &'static str,
    /// The whole promise, in Markdown.
    pub says: &'static str,
    /// How the chosen backend keeps it on this host, in Markdown.
    pub mechanism: String,
}

/// Executions that run at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = Slots)]
pub struct SlotInfo {
    /// Maximum.
    pub total: usize,
    /// Used now.
    pub running: usize,
}

/// Requests that wait for a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = Queue)]
pub struct QueueInfo {
    /// How many.
    pub waiting: usize,
    /// Longest wait of these in milliseconds; `null` if none waits.
    #[schema(required)]
    pub oldest_ms: Option<u64>,
}

/// Warm sandboxes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = WarmPool)]
pub struct WarmInfo {
    /// Warm sandboxes of all tenants; `null` unless the numbers are those of all tenants.
    #[schema(required)]
    pub waiting: Option<u64>,
    /// Executions that ended within the last hour and used a warm sandbox.
    pub hits_1h: u64,
    /// Executions that ended within the last hour and got a new sandbox.
    pub misses_1h: u64,
}

/// Limits of requests and executions. Lower ones may apply to a skill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct ServerLimits {
    /// Memory of an execution in bytes.
    pub memory_bytes: u64,
    /// CPU of an execution in thousandths of a core.
    pub cpu_millis: u32,
    /// Default wall clock limit in milliseconds.
    pub timeout_ms: u64,
    /// Maximum wall clock limit in milliseconds.
    pub timeout_max_ms: u64,
    /// Processes and threads of an execution.
    pub processes: u32,
    /// Input in bytes.
    pub input_bytes: u64,
    /// Code in bytes.
    pub code_bytes: usize,
    /// Output in bytes.
    pub output_bytes: u64,
    /// Recorded bytes of standard output, and as many of standard error.
    pub log_bytes: u64,
    /// File artifacts.
    pub files: usize,
    /// All file artifacts in bytes.
    pub files_bytes: u64,
    /// Archive of a skill in bytes.
    pub archive_bytes: u64,
    /// Executions per minute and tenant; `null` for no limit.
    #[schema(required)]
    pub executions_per_minute: Option<u32>,
    /// Whether requests may name packages.
    pub requirements: bool,
}

/// State of the server, as far as it concerns the caller.
pub async fn show(engine: &Engine, caller: &Caller) -> Result<ServerInfo, Error> {
    require(caller, RUN)?;
    let is_operator = caller.may(Scope::Admin) && *caller.tenant() == Tenant::default_tenant();
    let tenants = match is_operator {
        true => Tenants::All,
        false => Tenants::One(caller.tenant()),
    };
    let state = engine.overview().server(tenants).await;
    let outlook = &state.backend;
    Ok(ServerInfo {
        version: env!("CARGO_PKG_VERSION"),
        started_at: state.started_at,
        all_tenants: is_operator,
        backend: BackendInfo::from(&**outlook),
        degraded: outlook.degraded.clone(),
        promises: promises(outlook),
        slots: SlotInfo {
            total: state.load.slots,
            running: state.load.running,
        },
        queue: QueueInfo {
            waiting: state.load.waiting,
            oldest_ms: state.load.oldest.map(whole_milliseconds),
        },
        warm: WarmInfo {
            waiting: is_operator.then_some(state.warm),
            hits_1h: state.warm_use.hits,
            misses_1h: state.warm_use.misses,
        },
        limits: ServerLimits::from(engine.settings()),
    })
}

impl From<&Outlook> for BackendInfo {
    fn from(outlook: &Outlook) -> Self {
        let others = outlook.others.iter().map(|other| OtherBackendInfo {
            backend: other.backend,
            why_not: other.why_not.clone(),
        });
        Self {
            chosen: outlook.chosen,
            reason: outlook.reason.clone(),
            others: others.collect(),
        }
    }
}

fn promises(outlook: &Outlook) -> Vec<PromiseInfo> {
    let all = sandbox::PROMISES.iter().zip(&outlook.mechanisms);
    all.map(|((promise, title), mechanism)| PromiseInfo {
        promise,
        title,
        says: sandbox::promise_text(promise),
        mechanism: mechanism.clone(),
    })
    .collect()
}

impl From<&Settings> for ServerLimits {
    fn from(settings: &Settings) -> Self {
        Self {
            memory_bytes: settings.maxima.memory_bytes,
            cpu_millis: settings.maxima.cpu_millis,
            timeout_ms: whole_milliseconds(settings.maxima.timeout_default),
            timeout_max_ms: whole_milliseconds(settings.maxima.timeout_max),
            processes: limits::PROCESSES_MAX,
            input_bytes: limits::INPUT_BYTES_MAX,
            code_bytes: limits::CODE_BYTES_MAX,
            output_bytes: limits::OUTPUT_BYTES_MAX,
            log_bytes: limits::LOG_BYTES_MAX,
            files: limits::FILES_MAX,
            files_bytes: limits::FILES_BYTES_MAX,
            archive_bytes: limits::ARCHIVE_BYTES_MAX,
            executions_per_minute: settings.tenant_rate,
            requirements: settings.deps.requests,
        }
    }
}

fn whole_milliseconds(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
