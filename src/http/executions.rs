//! `/v1/executions`: run skills, and see what became of it.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};

use super::answer;
use super::door::Door;
use super::extract::{Json, Path, Query};
use super::gate::Asked;
use super::guard::Authenticated;
use super::links::links;
use super::page::{List, page_request};
use super::problem::Refusal;
use super::wire::{CreateExecution, time};
use crate::engine::RunRequest;
use crate::execution::{Envelope, Execution, LogLine, Logs, Status, Summary};
use crate::ids::ExecutionId;
use crate::limits;
use crate::skill::SkillName;
use crate::store::ExecutionFilter;
use crate::telemetry::field;

/// Run a skill, or code
///
/// Answers when it has ended, with 200 whatever its status: a failing skill is an outcome, not an error. Once begun it goes on to its end even if the client hangs up; one that still waits for its turn goes with its client.
#[utoipa::path(post, path = "/v1/executions", tag = "executions", operation_id = "create_execution",
    request_body = CreateExecution,
    responses((status = OK, description = "How it ended", body = Envelope)))]
pub(crate) async fn create(
    State(door): State<Arc<Door>>,
    Authenticated(caller): Authenticated,
    Extension(asked): Extension<Asked>,
    Json(body, _held): Json<CreateExecution>,
) -> Result<Response, Refusal> {
    let request = RunRequest::try_from(body)?;
    // Refused now if there is no room for an answer: what has run is told in any case.
    drop(door.answers.hold(caller.tenant(), limits::ANSWER_BYTES_MAX)?);
    let execution = door.engine.run(&caller, request).await?;
    tracing::Span::current().record(field::EXECUTION_ID, tracing::field::display(execution.new.id));
    let envelope = envelope(&door, &execution, &asked);
    Ok(answer::json_always(&door.answers, caller.tenant(), &envelope)?)
}

/// The query of the list.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ExecutionQuery {
    /// Rows of one page: at least 1; more than 200 are cut to 200.
    #[param(value_type = Option<u64>, minimum = 1, example = 50)]
    limit: Option<String>,
    /// `next_page_token` of the page before.
    #[param(max_length = 256)]
    page_token: Option<String>,
    /// Only those in this state.
    status: Option<Status>,
    /// Only those of this skill.
    #[param(value_type = Option<String>)]
    skill: Option<SkillName>,
    /// Only those accepted at this time or later.
    #[serde(default, deserialize_with = "time")]
    #[param(value_type = Option<String>, format = DateTime)]
    since: Option<jiff::Timestamp>,
    /// Only those accepted before this time.
    #[serde(default, deserialize_with = "time")]
    #[param(value_type = Option<String>, format = DateTime)]
    until: Option<jiff::Timestamp>,
}

/// List executions
///
/// The newest first, without output, logs and files.
#[utoipa::path(get, path = "/v1/executions", tag = "executions", operation_id = "list_executions", params(ExecutionQuery),
    responses((status = OK, body = List<Summary>)))]
pub(crate) async fn list(
    State(door): State<Arc<Door>>,
    Authenticated(caller): Authenticated,
    Query(query): Query<ExecutionQuery>,
) -> Result<axum::Json<List<Summary>>, Refusal> {
    let page = page_request(query.limit.as_deref(), query.page_token.as_deref())?;
    let filter = ExecutionFilter {
        status: query.status,
        skill: query.skill,
        since: query.since,
        until: query.until,
    };
    let page = door.engine.executions(&caller, filter, page).await?;
    Ok(axum::Json(List::of(&page)))
}

/// Show an execution
#[utoipa::path(get, path = "/v1/executions/{id}", tag = "executions", operation_id = "show_execution",
    params(("id" = uuid::Uuid, Path, description = "The execution")),
    responses((status = OK, body = Envelope)))]
pub(crate) async fn show(
    State(door): State<Arc<Door>>,
    Authenticated(caller): Authenticated,
    Extension(asked): Extension<Asked>,
    Path(id): Path<ExecutionId>,
) -> Result<Response, Refusal> {
    let execution = door.engine.execution(&caller, id).await?;
    Ok(answer::json(
        &door.answers,
        caller.tenant(),
        &envelope(&door, &execution, &asked),
    )?)
}

/// Cancel an execution
///
/// Answers when it has ended. One that has ended already is answered as it is.
#[utoipa::path(post, path = "/v1/executions/{id}/cancel", tag = "executions", operation_id = "cancel_execution",
    params(("id" = uuid::Uuid, Path, description = "The execution")),
    responses((status = OK, body = Envelope)))]
pub(crate) async fn cancel(
    State(door): State<Arc<Door>>,
    Authenticated(caller): Authenticated,
    Extension(asked): Extension<Asked>,
    Path(id): Path<ExecutionId>,
) -> Result<Response, Refusal> {
    let execution = door.engine.cancel(&caller, id).await?;
    Ok(answer::json(
        &door.answers,
        caller.tenant(),
        &envelope(&door, &execution, &asked),
    )?)
}

fn envelope(door: &Door, execution: &Execution, Asked(asked): &Asked) -> Envelope {
    let links = links(&door.engine, execution, &door.base_url(asked));
    Envelope::from_execution(execution, Some(&links))
}

/// Which stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// Standard output, then standard error.
    #[default]
    Both,
}

/// The query of the logs.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct LogsQuery {
    /// Which stream; both if absent.
    #[serde(default)]
    #[param(inline)]
    stream: Stream,
}

/// What was kept of the streams, as text: what is not UTF-8 is shown as U+FFFD.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct StreamTexts {
    /// Standard output; `null` if not asked for.
    #[schema(required)]
    stdout: Option<String>,
    /// Standard error; `null` if not asked for.
    #[schema(required)]
    stderr: Option<String>,
    /// Bytes written to standard output in all.
    stdout_total: u64,
    /// Bytes written to standard error in all.
    stderr_total: u64,
    /// Whether anything was left out of either: the head is kept.
    truncated: bool,
    /// What the program logged by the helper `log`.
    pub lines: Vec<LogLine>,
    /// Whether it logged more.
    pub lines_truncated: bool,
}

/// Show what an execution printed
///
/// As plain text byte for byte, or as JSON if `Accept` asks for it. The header `x-skillbox-truncated` says whether anything was left out.
#[utoipa::path(get, path = "/v1/executions/{id}/logs", tag = "executions", operation_id = "show_logs",
    params(("id" = uuid::Uuid, Path, description = "The execution"), LogsQuery),
    responses((status = OK, content((String = "text/plain"), (StreamTexts = "application/json")))))]
pub(crate) async fn logs(
    State(door): State<Arc<Door>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<ExecutionId>,
    Query(query): Query<LogsQuery>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let execution = door.engine.execution(&caller, id).await?;
    let logs = execution.outcome.map(|outcome| outcome.logs).unwrap_or_default();
    let truncated = [(
        HeaderName::from_static("x-skillbox-truncated"),
        logs.truncated().to_string(),
    )];
    if wants_json(&headers) {
        let texts = answer::json(&door.answers, caller.tenant(), &texts(&logs, query.stream))?;
        return Ok((truncated, texts).into_response());
    }
    let bytes = match query.stream {
        Stream::Stdout => logs.stdout,
        Stream::Stderr => logs.stderr,
        Stream::Both => [logs.stdout, logs.stderr].concat(),
    };
    let plain = [(header::CONTENT_TYPE, "text/plain; charset=utf-8")];
    let body = answer::body(&door.answers, caller.tenant(), bytes)?;
    Ok((truncated, plain, body).into_response())
}

fn texts(logs: &Logs, stream: Stream) -> StreamTexts {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    StreamTexts {
        stdout: (stream != Stream::Stderr).then(|| text(&logs.stdout)),
        stderr: (stream != Stream::Stdout).then(|| text(&logs.stderr)),
        stdout_total: logs.stdout_total,
        stderr_total: logs.stderr_total,
        truncated: logs.truncated(),
        lines: logs.lines.clone(),
        lines_truncated: logs.lines_truncated,
    }
}

/// Whether JSON is named before plain text.
fn wants_json(headers: &HeaderMap) -> bool {
    headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|list| list.split(','))
        .filter_map(|range| range.split(';').next())
        .map(str::trim)
        .find(|range| matches!(*range, "application/json" | "text/plain" | "text/*" | "*/*"))
        == Some("application/json")
}
