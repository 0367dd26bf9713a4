//! `/v1/executions`: run, list, show and cancel executions.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use super::accept::preferred;
use super::authorization::Call;
use super::budget::BudgetShare;
use super::events::{self, Events, ExecutionEvents};
use super::extract::{Json, Path, Query};
use super::links::links;
use super::problem::{JsonResult, ProblemResponse};
use super::response;
use crate::api::executions::{self, PruneExecutions, PrunedExecutions, StreamTexts};
use crate::api::{CreateExecution, List, Mode, page_request, time, wait_of, words};
use crate::engine::{OnDisconnect, RunOptions, RunRequest, RunSpec};
use crate::error::Error;
use crate::execution::{self, Envelope, EnvelopePart, Execution, ExecutionKey, Omitted, Status, Summary};
use crate::ids::{ExecutionId, IdempotencyKey, KeyId};
use crate::limits;
use crate::skill::SkillName;
use crate::store::{ExecutionFilter, ExecutionSource, Statuses};
use crate::telemetry::field;

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct WaitQuery {
    /// Wait up to this many seconds, at most 60, for the end. Then the current state is returned.
    #[param(value_type = Option<f64>, minimum = 0, maximum = 60, example = 30)]
    wait: Option<String>,
}

/// Parses the value of `wait`.
fn wait(text: Option<&str>) -> Result<Option<Duration>, Error> {
    text.map(|text| wait_of(text.parse().unwrap_or(f64::NAN)))
        .transpose()
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ShowQuery {
    /// Wait up to this many seconds, at most 60, for the end. Then the current state is returned.
    #[param(value_type = Option<f64>, minimum = 0, maximum = 60, example = 30)]
    wait: Option<String>,
    /// Leave these parts empty, separated by commas: together they can have 28 MiB.
    #[serde(default, deserialize_with = "words")]
    #[param(value_type = Option<Vec<EnvelopePart>>, style = Form, explode = false, min_items = 1)]
    omit: Omitted,
}

/// Run a skill or code
///
/// Responds at the end of the execution, with 200 whatever its status: a failing skill is an outcome, not an error.
/// If the client disconnects, a running execution continues unless `on_disconnect` says otherwise, and a queued one
/// is dropped. With `mode: async` the execution is recorded and answered with 202; it runs when it gets a slot, also
/// after a restart. A repeated request with the same `Idempotency-Key` within 24 hours returns the same execution.
/// With `Accept: text/event-stream` the response contains the events of `GET /v1/executions/{id}/events`.
#[utoipa::path(post, path = "/v1/executions", tag = "executions", operation_id = "create_execution",
    params(WaitQuery, ("Idempotency-Key" = Option<String>, Header, format = "idempotency-key", description = "Unique name of this request, such as a UUID")),
    request_body = CreateExecution,
    responses((status = OK, description = "The result, or the events as they occur",
            content((Envelope = "application/json"), (Events = "text/event-stream"))),
        (status = ACCEPTED, description = "Queued or running; `Location` is the URL of the execution", body = Envelope)))]
pub(crate) async fn create(
    call: Call,
    Query(query): Query<WaitQuery>,
    headers: HeaderMap,
    Json(body, held): Json<CreateExecution>,
) -> Result<Response, ProblemResponse> {
    let asked = RunQuery::new(&query, &headers, body.mode, body.on_disconnect)?;
    answer(call, RunSpec::try_from(body)?.into(), asked, held).await
}

/// How a run is to be answered, besides its body.
pub(super) struct RunQuery {
    mode: Mode,
    wait: Option<Duration>,
    wants_events: bool,
    options: RunOptions,
}

impl RunQuery {
    pub(super) fn new(
        query: &WaitQuery,
        headers: &HeaderMap,
        mode: Mode,
        on_disconnect: Option<OnDisconnect>,
    ) -> Result<Self, Error> {
        let wait = wait(query.wait.as_deref())?;
        let wants_events = preferred(headers, &[JSON, events::MEDIA_TYPE, ANY]) == Some(events::MEDIA_TYPE);
        mode.check(on_disconnect, wait)?;
        if wants_events && wait.is_some() {
            let message = "wait: cannot be used with `Accept: text/event-stream`, which streams the events; omit one of them";
            return Err(Error::invalid(message));
        }
        Ok(Self {
            mode,
            wait,
            wants_events,
            options: RunOptions {
                idempotency_key: idempotency_key(headers)?,
                on_disconnect: on_disconnect.unwrap_or_default(),
                key: None,
            },
        })
    }
}

/// Runs or queues a request and answers it.
pub(super) async fn answer(
    call: Call,
    request: RunRequest,
    asked: RunQuery,
    held: BudgetShare,
) -> Result<Response, ProblemResponse> {
    let RunQuery {
        mode,
        wait,
        wants_events,
        options,
    } = asked;
    if wants_events {
        let events = ExecutionEvents::run(call, request, mode, options, held).await?;
        return Ok(events.respond());
    }
    let mut execution = execute(&call, request, mode, options).await?;
    if wait.is_some() {
        execution = executions::get(call.engine(), &call.caller, execution.new.id, wait).await?;
    }
    drop(held);
    tracing::Span::current().record(field::OUTCOME, execution.status.as_str());
    let answer = response::json_always(&call.state.answers, call.tenant(), &envelope(&call, &execution))?;
    if execution.status.is_final() {
        return Ok(answer);
    }
    let location = [(header::LOCATION, format!("/v1/executions/{}", execution.new.id))];
    Ok((StatusCode::ACCEPTED, location, answer).into_response())
}

/// Runs a request to its end, or queues it.
pub(crate) async fn execute(
    call: &Call,
    request: RunRequest,
    mode: Mode,
    options: RunOptions,
) -> Result<Execution, Error> {
    let options = accepted(call, options)?;
    let execution = match mode {
        Mode::Sync => executions::run(call.engine(), &call.caller, request, options, None).await?,
        Mode::Async => executions::submit(call.engine(), &call.caller, request, options).await?,
    };
    let span = tracing::Span::current();
    span.record(field::EXECUTION_ID, tracing::field::display(execution.new.id));
    span.record(
        field::SKILL,
        execution.new.skill.as_ref().map(tracing::field::display),
    );
    span.record(field::OUTCOME, execution.status.as_str());
    Ok(execution)
}

/// The options with the caller's key. Rejects before the run if memory for the response is exhausted: the result of a run is
/// always sent.
pub(super) fn accepted(call: &Call, options: RunOptions) -> Result<RunOptions, Error> {
    drop(call.state.answers.hold(call.tenant(), limits::ANSWER_BYTES_MAX)?);
    Ok(RunOptions {
        key: Some(ExecutionKey {
            id: call.caller.key(),
            name: call.caller.key_name().to_owned(),
        }),
        ..options
    })
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<IdempotencyKey>, Error> {
    let mut values = headers.get_all("idempotency-key").iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(Error::invalid("Idempotency-Key: sent twice; send one"));
    }
    let key = value.to_str().unwrap_or_default().parse();
    key.map(Some)
        .map_err(|rule| Error::invalid(format!("Idempotency-Key: {rule}")))
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ExecutionQuery {
    /// Rows per page, at least 1. Larger values are reduced to 200.
    #[param(value_type = Option<u64>, minimum = 1, maximum = 9223372036854775807_u64, example = 50)]
    limit: Option<String>,
    /// `next_page_token` of the previous page.
    #[param(format = "page-token")]
    page_token: Option<String>,
    /// With one of these statuses, separated by commas.
    #[serde(default, deserialize_with = "words")]
    #[param(value_type = Option<Vec<Status>>, style = Form, explode = false, min_items = 1)]
    status: Statuses,
    /// Filter by skill.
    #[param(value_type = Option<String>, format = "skill-name")]
    skill: Option<SkillName>,
    /// Only executions of code; not with `skill`.
    #[serde(default)]
    code: bool,
    /// Started by the API key with this id.
    #[param(value_type = Option<String>, format = Uuid)]
    key: Option<KeyId>,
    /// Accepted at this time or later.
    #[serde(default, deserialize_with = "time")]
    #[param(value_type = Option<String>, format = DateTime)]
    since: Option<jiff::Timestamp>,
    /// Accepted before this time.
    #[serde(default, deserialize_with = "time")]
    #[param(value_type = Option<String>, format = DateTime)]
    until: Option<jiff::Timestamp>,
}

/// List executions
///
/// Newest first, without output, logs and files.
#[utoipa::path(get, path = "/v1/executions", tag = "executions", operation_id = "list_executions", params(ExecutionQuery),
    responses((status = OK, body = List<Summary>)))]
pub(crate) async fn list(call: Call, Query(query): Query<ExecutionQuery>) -> JsonResult<List<Summary>> {
    let page = page_request(query.limit.as_deref(), query.page_token.as_deref())?;
    let source = match (query.skill, query.code) {
        (Some(_), true) => {
            return Err(Error::invalid("code: cannot be used with `skill`; omit one of them").into());
        }
        (skill, false) => skill.map(ExecutionSource::Skill),
        (None, true) => Some(ExecutionSource::Code),
    };
    let filter = ExecutionFilter {
        statuses: query.status,
        source,
        key: query.key,
        since: query.since,
        until: query.until,
    };
    Ok(axum::Json(
        executions::list(call.engine(), &call.caller, filter, page).await?,
    ))
}

/// Show an execution
///
/// With `wait`, responds at its end or after that time. With `omit`, without the parts that can be large.
#[utoipa::path(get, path = "/v1/executions/{id}", tag = "executions", operation_id = "show_execution",
    params(("id" = uuid::Uuid, Path, description = "The execution"), ShowQuery),
    responses((status = OK, body = Envelope)))]
pub(crate) async fn show(
    call: Call,
    Path(id): Path<ExecutionId>,
    Query(query): Query<ShowQuery>,
) -> Result<Response, ProblemResponse> {
    let (engine, caller) = (call.engine(), &call.caller);
    let execution = match wait(query.wait.as_deref())? {
        None => executions::get_without(engine, caller, id, query.omit).await?,
        wait => executions::get(engine, caller, id, wait).await?,
    };
    Ok(call.json(&envelope(&call, &execution).without(query.omit))?)
}

/// Cancel an execution
///
/// Responds at its end. An execution that has already ended is returned unchanged.
#[utoipa::path(post, path = "/v1/executions/{id}/cancel", tag = "executions", operation_id = "cancel_execution",
    params(("id" = uuid::Uuid, Path, description = "The execution")),
    responses((status = OK, body = Envelope)))]
pub(crate) async fn cancel(call: Call, Path(id): Path<ExecutionId>) -> Result<Response, ProblemResponse> {
    let execution = executions::cancel(call.engine(), &call.caller, id).await?;
    Ok(call.json(&envelope(&call, &execution))?)
}

/// Delete an execution
///
/// With its output, logs and files. An execution that has not ended is a conflict: cancel it first.
#[utoipa::path(delete, path = "/v1/executions/{id}", tag = "executions", operation_id = "delete_execution",
    params(("id" = uuid::Uuid, Path, description = "The execution")),
    responses((status = NO_CONTENT, description = "Deleted")))]
pub(crate) async fn delete(call: Call, Path(id): Path<ExecutionId>) -> Result<StatusCode, ProblemResponse> {
    executions::delete(call.engine(), &call.caller, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Delete many executions
///
/// Deletes ended executions that match, at most 10,000 per request; repeat it while `more` is true. Works on a full disk.
#[utoipa::path(post, path = "/v1/executions/prune", tag = "executions", operation_id = "prune_executions",
    request_body = PruneExecutions,
    responses((status = OK, description = "Deleted, or counted with `dry_run`", body = PrunedExecutions)))]
pub(crate) async fn prune(
    call: Call,
    Json(body, _held): Json<PruneExecutions>,
) -> JsonResult<PrunedExecutions> {
    Ok(axum::Json(
        executions::prune(call.engine(), &call.caller, body).await?,
    ))
}

pub(crate) fn envelope(call: &Call, execution: &Execution) -> Envelope {
    let links = links(call.engine(), execution, &call.state.base_url(&call.host.0));
    Envelope {
        queue: call.engine().runs().queue_place(execution),
        ..Envelope::from_execution(execution, Some(&links))
    }
}

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

impl Stream {
    fn one(self) -> Option<execution::Stream> {
        match self {
            Self::Stdout => Some(execution::Stream::Stdout),
            Self::Stderr => Some(execution::Stream::Stderr),
            Self::Both => None,
        }
    }
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct LogsQuery {
    /// Stream; both if absent.
    #[serde(default)]
    #[param(inline)]
    stream: Stream,
    /// Stream plain text while the program runs, both streams in order of arrival.
    #[serde(default)]
    follow: bool,
    /// JSON with `parts`: output and log in order of arrival, each part with its time. Not with `follow`.
    #[serde(default)]
    timestamps: bool,
}

const JSON: &str = "application/json";
const ANY: &str = "*/*";
/// Formats of logs.
const TEXTS: &[&str] = &[JSON, "text/plain", "text/*", ANY];

/// Show the output of an execution
///
/// Plain text byte for byte, or JSON if requested by `Accept` or with `timestamps=true`. The header `x-skillbox-truncated` tells whether output
/// was discarded. With `follow=true` always plain text, while the program runs; output beyond the limit is discarded
/// silently.
#[utoipa::path(get, path = "/v1/executions/{id}/logs", tag = "executions", operation_id = "show_logs",
    params(("id" = uuid::Uuid, Path, description = "The execution"), LogsQuery),
    responses((status = OK, content((String = "text/plain"), (StreamTexts = "application/json")))))]
pub(crate) async fn logs(
    call: Call,
    Path(id): Path<ExecutionId>,
    Query(query): Query<LogsQuery>,
    headers: HeaderMap,
) -> Result<Response, ProblemResponse> {
    if query.timestamps && query.follow {
        let error = "timestamps: not with follow=true; the event stream sends output in order of arrival";
        return Err(Error::invalid(error).into());
    }
    let plain = [(header::CONTENT_TYPE, "text/plain; charset=utf-8")];
    if query.follow {
        let buffering = [(HeaderName::from_static("x-accel-buffering"), "no")];
        let wanted = query.stream.one();
        let body = events::plain(&call, id, wanted).await?;
        return Ok((plain, buffering, body).into_response());
    }
    let logs = executions::logs(call.engine(), &call.caller, id).await?;
    let truncated = [(
        HeaderName::from_static("x-skillbox-truncated"),
        logs.truncated().to_string(),
    )];
    if query.timestamps {
        let only = query.stream.one().map(execution::LogSource::from);
        let texts = call.json(&StreamTexts::in_order(&logs, only))?;
        return Ok((truncated, texts).into_response());
    }
    if preferred(&headers, TEXTS) == Some(JSON) {
        let mut texts = StreamTexts::from(&logs);
        match query.stream {
            Stream::Stdout => texts.stderr = None,
            Stream::Stderr => texts.stdout = None,
            Stream::Both => {}
        }
        let texts = call.json(&texts)?;
        return Ok((truncated, texts).into_response());
    }
    let bytes = match query.stream {
        Stream::Stdout => logs.stdout,
        Stream::Stderr => logs.stderr,
        Stream::Both => [logs.stdout, logs.stderr].concat(),
    };
    let body = call.body(bytes)?;
    Ok((truncated, plain, body).into_response())
}
