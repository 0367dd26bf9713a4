//! Executions: run, queued, listed, watched and cancelled.

use std::time::Duration;

use base64::Engine as _;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use super::{List, RUN, require, whole_number};
use crate::api::events::PrintedEvent;
use crate::auth::Caller;
use crate::blob::Object;
use crate::engine::{ArtifactFile, Engine, PageRequest, RunOptions, RunRequest, Subscription};
use crate::error::Error;
use crate::execution::{
    Arrivals, Bookmark, Execution, LogLine, LogPart, LogSource, Logs, Omitted, PartContent, ResultForm,
    Status, Summary,
};
use crate::ids::{ExecutionId, Tenant};
use crate::skill::SkillName;
use crate::store::{ExecutionFilter, ExecutionSource};

/// Recorded output as text. Invalid UTF-8 is shown as U+FFFD.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct StreamTexts {
    /// Standard output; `null` if not requested.
    #[schema(required)]
    pub stdout: Option<String>,
    /// Standard error; `null` if not requested.
    #[schema(required)]
    pub stderr: Option<String>,
    /// Bytes written to standard output.
    pub stdout_total: u64,
    /// Bytes written to standard error.
    pub stderr_total: u64,
    /// Whether the end of a stream was discarded.
    pub truncated: bool,
    /// Lines of the helper `log`.
    pub lines: Vec<LogLine>,
    /// Whether further lines were discarded.
    pub lines_truncated: bool,
    /// With `timestamps=true`, instead of the texts above: all parts in order of arrival.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<Vec<OutputPart>>,
}

/// Output or log lines that arrived at once. A part may end within a line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct OutputPart {
    /// Time of arrival, exact to the millisecond; `null` for executions of earlier releases.
    #[schema(value_type = Option<String>, format = DateTime, required)]
    pub time: Option<jiff::Timestamp>,
    pub stream: LogSource,
    /// Text; invalid UTF-8 is shown as U+FFFD. Of `log`, one line for each of `lines`.
    pub text: String,
    /// The bytes in base64, if they are not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
    /// Lines of the helper `log`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<LogLine>,
}

impl From<LogPart<'_>> for OutputPart {
    fn from(part: LogPart<'_>) -> Self {
        let (stream, bytes, lines) = match part.content {
            PartContent::Stdout(bytes) => (LogSource::Stdout, bytes.to_vec(), Vec::new()),
            PartContent::Stderr(bytes) => (LogSource::Stderr, bytes.to_vec(), Vec::new()),
            PartContent::Log(lines) => {
                let text: String = lines.iter().map(|line| format!("{}\n", line.untimed())).collect();
                (LogSource::Log, text.into_bytes(), lines.to_vec())
            }
        };
        let PrintedEvent { text, base64 } = PrintedEvent::of(bytes);
        Self {
            time: part.time,
            stream,
            text,
            base64,
            lines,
        }
    }
}

impl StreamTexts {
    /// In order of arrival; of one source or of all.
    #[must_use]
    pub fn in_order(logs: &Logs, only: Option<LogSource>) -> Self {
        let parts = logs.parts().map(OutputPart::from);
        let parts = parts.filter(|part| only.is_none_or(|only| only == part.stream));
        Self {
            stdout: None,
            stderr: None,
            stdout_total: logs.stdout_total,
            stderr_total: logs.stderr_total,
            truncated: logs.truncated(),
            lines: Vec::new(),
            lines_truncated: logs.lines_truncated,
            parts: Some(parts.collect()),
        }
    }

    /// The logs with these parts; `None` if their base64 is invalid.
    #[must_use]
    pub fn into_logs(self) -> Option<Logs> {
        let mut logs = Logs {
            stdout_total: self.stdout_total,
            stderr_total: self.stderr_total,
            lines_truncated: self.lines_truncated,
            ..Logs::default()
        };
        let mut arrivals = Arrivals::default();
        for part in self.parts.unwrap_or_default() {
            let before = logs.count(part.stream);
            let bytes = match part.base64 {
                None => part.text.into_bytes(),
                Some(text) => base64::engine::general_purpose::STANDARD.decode(text).ok()?,
            };
            match part.stream {
                LogSource::Stdout => logs.stdout.extend(bytes),
                LogSource::Stderr => logs.stderr.extend(bytes),
                LogSource::Log => logs.lines.extend(part.lines),
            }
            let count = logs.count(part.stream) - before;
            part.time
                .into_iter()
                .for_each(|at| arrivals.add(part.stream, count, at));
        }
        Some(Logs { arrivals, ..logs })
    }
}

impl From<&Logs> for StreamTexts {
    fn from(logs: &Logs) -> Self {
        let text = |bytes: &[u8]| Some(String::from_utf8_lossy(bytes).into_owned());
        Self {
            stdout: text(&logs.stdout),
            stderr: text(&logs.stderr),
            stdout_total: logs.stdout_total,
            stderr_total: logs.stderr_total,
            truncated: logs.truncated(),
            lines: logs.lines.clone(),
            lines_truncated: logs.lines_truncated,
            parts: None,
        }
    }
}

/// Runs a request to its end. `watcher` receives a subscription once the execution is recorded.
pub async fn run(
    engine: &Engine,
    caller: &Caller,
    request: RunRequest,
    options: RunOptions,
    watcher: Option<oneshot::Sender<Subscription>>,
) -> Result<Execution, Error> {
    require(caller, RUN)?;
    let runs = engine.runs();
    runs.run_watched(caller.tenant(), request, options, watcher).await
}

/// Queues a request and returns at once.
pub async fn submit(
    engine: &Engine,
    caller: &Caller,
    request: RunRequest,
    options: RunOptions,
) -> Result<Execution, Error> {
    require(caller, RUN)?;
    engine.runs().submit(caller.tenant(), request, options).await
}

/// Newest first, without output, logs and files.
pub async fn list(
    engine: &Engine,
    caller: &Caller,
    filter: ExecutionFilter,
    page: PageRequest,
) -> Result<List<Summary>, Error> {
    require(caller, RUN)?;
    let page = engine.executions().list(caller.tenant(), filter, page).await?;
    Ok(List::of(&page))
}

/// An execution; if `wait` is given, once it has ended or that time has passed.
pub async fn get(
    engine: &Engine,
    caller: &Caller,
    id: ExecutionId,
    wait: Option<Duration>,
) -> Result<Execution, Error> {
    require(caller, RUN)?;
    match wait {
        Some(wait) => engine.executions().ended_within(caller.tenant(), id, wait).await,
        None => engine.executions().get(caller.tenant(), id).await,
    }
}

/// The current state of an execution, without reading these parts.
pub async fn get_without(
    engine: &Engine,
    caller: &Caller,
    id: ExecutionId,
    omitted: Omitted,
) -> Result<Execution, Error> {
    require(caller, RUN)?;
    engine
        .executions()
        .get_without(caller.tenant(), id, omitted)
        .await
}

/// What an execution printed and logged. Empty before its end.
pub async fn logs(engine: &Engine, caller: &Caller, id: ExecutionId) -> Result<Logs, Error> {
    let execution = get(engine, caller, id, None).await?;
    Ok(execution.outcome.map(|outcome| outcome.logs).unwrap_or_default())
}

/// Ends an execution and waits for its end. One that has ended is returned as it is.
pub async fn cancel(engine: &Engine, caller: &Caller, id: ExecutionId) -> Result<Execution, Error> {
    require(caller, RUN)?;
    engine.executions().cancel(caller.tenant(), id).await
}

/// Which ended executions to delete; without a condition all of them.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PruneExecutions {
    /// Accepted at least so many seconds ago.
    #[serde(default, deserialize_with = "whole_number")]
    #[schema(maximum = 9223372036854775807_u64, example = 604_800)]
    pub older_than: u64,
    /// With this status.
    #[serde(default)]
    pub status: Option<Status>,
    /// Of this skill.
    #[serde(default)]
    #[schema(value_type = Option<String>, format = "skill-name")]
    pub skill: Option<SkillName>,
    /// Only count them.
    #[serde(default)]
    pub dry_run: bool,
}

/// What was deleted.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PrunedExecutions {
    /// Deleted executions; with `dry_run` those that would be.
    pub count: u64,
    /// Whether there are more: repeat the request.
    pub more: bool,
}

/// Deletes an ended execution with its files.
pub async fn delete(engine: &Engine, caller: &Caller, id: ExecutionId) -> Result<(), Error> {
    require(caller, RUN)?;
    engine.executions().delete(caller.tenant(), id).await
}

/// Deletes ended executions with their files, a limited number per call.
pub async fn prune(
    engine: &Engine,
    caller: &Caller,
    request: PruneExecutions,
) -> Result<PrunedExecutions, Error> {
    require(caller, RUN)?;
    if i64::try_from(request.older_than).is_err() {
        return Err(Error::invalid(format!(
            "older_than: must be at most {} seconds",
            i64::MAX
        )));
    }
    let age = Duration::from_secs(request.older_than);
    let filter = ExecutionFilter {
        statuses: request.status.into(),
        source: request.skill.map(ExecutionSource::Skill),
        ..ExecutionFilter::default()
    };
    let tenant = caller.tenant();
    let pruned = engine
        .executions()
        .prune(tenant, filter, age, request.dry_run)
        .await?;
    Ok(PrunedExecutions {
        count: pruned.count,
        more: pruned.more,
    })
}

/// The events of an execution from a position on.
pub async fn follow(
    engine: &Engine,
    caller: &Caller,
    id: ExecutionId,
    from: Bookmark,
) -> Result<Subscription, Error> {
    require(caller, RUN)?;
    engine.executions().follow(caller.tenant(), id, from).await
}

/// All files of an execution as a tar. `tenant` comes from a key with scope `run`, or from a signed link.
pub async fn archive(engine: &Engine, tenant: &Tenant, id: ExecutionId) -> Result<Object, Error> {
    engine.executions().artifacts(tenant, id).await
}

/// One form of a result. `tenant` as for [`archive`].
pub async fn result(
    engine: &Engine,
    tenant: &Tenant,
    id: ExecutionId,
    n: usize,
    form: ResultForm,
) -> Result<Vec<u8>, Error> {
    engine.executions().result(tenant, id, n, form).await
}

/// One file of an execution. `tenant` as for [`archive`].
pub async fn file(
    engine: &Engine,
    tenant: &Tenant,
    id: ExecutionId,
    path: &str,
) -> Result<ArtifactFile, Error> {
    engine.executions().artifact_file(tenant, id, path).await
}
