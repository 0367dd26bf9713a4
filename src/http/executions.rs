//! `/v1/executions`: run skills, and see what became of it.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use super::accept::preferred;
use super::authorization::Authenticated;
use super::events::{self, Events};
use super::extract::{Json, Path, Query};
use super::links::links;
use super::problem::ProblemResponse;
use super::request_filter::RequestedHost;
use super::response;
use super::state::ApiState;
use crate::api::executions::{self, StreamTexts};
use crate::api::{CreateExecution, List, Mode, page_request, time};
use crate::engine::{OnDisconnect, RunOptions, RunSpec};
use crate::error::Error;
use crate::execution::{self, Envelope, Execution, Status, Summary};
use crate::ids::{ExecutionId, IdempotencyKey};
use crate::limits;
use crate::skill::SkillName;
use crate::store::ExecutionFilter;
use crate::telemetry::field;

/// The query of whatever waits for an end.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct WaitQuery {
    /// Wait this many seconds for the end, at most 60; then it is answered as it stands.
    #[param(value_type = Option<f64>, minimum = 0, maximum = 60, example = 30)]
    wait: Option<String>,
}

impl WaitQuery {
    fn wait(&self) -> Result<Option<Duration>, Error> {
        let seconds = |text: &String| {
            let seconds = text
                .parse()
                .ok()
                .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
            let max = limits::WAIT_MAX;
            seconds.filter(|wait| *wait <= max).ok_or_else(|| {
                Error::invalid(format!(
                    "wait: must be a number of seconds from 0 to {}",
                    max.as_secs()
                ))
            })
        };
        self.wait.as_ref().map(seconds).transpose()
    }
}

/// Run a skill, or code
///
/// Answers when it has ended, with 200 whatever its status: a failing skill is an outcome, not an error. Once begun it goes on to its end even if the client hangs up, unless `on_disconnect` says otherwise; one that still waits for its turn goes with its client. With `mode: async` it is recorded and answered with 202; it runs when its turn comes, also after a restart. A request that is sent again with the same `Idempotency-Key` within 24 hours is answered with the same execution. With `Accept: text/event-stream` it is answered, once it is recorded, with the events of `GET /v1/executions/{id}/events`.
#[utoipa::path(post, path = "/v1/executions", tag = "executions", operation_id = "create_execution",
    params(WaitQuery, ("Idempotency-Key" = Option<String>, Header, description = "Any name for this request, such as a UUID")),
    request_body = CreateExecution,
    responses((status = OK, description = "The result, or the events as they occur",
            content((Envelope = "application/json"), (Events = "text/event-stream"))),
        (status = ACCEPTED, description = "It waits or runs; `Location` says where to ask", body = Envelope)))]
#[expect(clippy::too_many_arguments, reason = "each parameter is an extractor of axum")]
pub(crate) async fn create(
    State(state): State<Arc<ApiState>>,
    Authenticated(caller): Authenticated,
    Extension(host): Extension<RequestedHost>,
    Query(query): Query<WaitQuery>,
    headers: HeaderMap,
    Json(body, held): Json<CreateExecution>,
) -> Result<Response, ProblemResponse> {
    let (mode, on_disconnect) = (body.mode, body.on_disconnect);
    let wait = query.wait()?;
    let wants_events = preferred(&headers, &[JSON, events::MEDIA_TYPE, ANY]) == Some(events::MEDIA_TYPE);
    check_mode(mode, on_disconnect, wait)?;
    if wants_events && wait.is_some() {
        let message = "wait: is not for `Accept: text/event-stream`, which is answered with events as they come; leave one of the two out";
        return Err(Error::invalid(message).into());
    }
    let options = RunOptions {
        idempotency_key: idempotency_key(&headers)?,
        on_disconnect: on_disconnect.unwrap_or_default(),
    };
    let request = RunSpec::try_from(body)?.into();
    // Reject before the run if the response would not fit into memory: afterwards it is sent in any case.
    drop(state.answers.hold(caller.tenant(), limits::ANSWER_BYTES_MAX)?);
    if wants_events {
        let client = events::EventClient { state, caller, host };
        return match mode {
            Mode::Sync => events::run(client, request, options, held).await,
            Mode::Async => events::submit(client, request, options).await,
        };
    }
    let mut execution = match mode {
        Mode::Sync => executions::run(&state.engine, &caller, request, options, None).await?,
        Mode::Async => executions::submit(&state.engine, &caller, request, options).await?,
    };
    if wait.is_some() {
        execution = executions::get(&state.engine, &caller, execution.new.id, wait).await?;
    }
    drop(held);
    tracing::Span::current().record(field::EXECUTION_ID, tracing::field::display(execution.new.id));
    let envelope = envelope(&state, &execution, &host);
    let answer = response::json_always(&state.answers, caller.tenant(), &envelope)?;
    if execution.status.is_final() {
        return Ok(answer);
    }
    let location = [(header::LOCATION, format!("/v1/executions/{}", execution.new.id))];
    Ok((StatusCode::ACCEPTED, location, answer).into_response())
}

fn check_mode(mode: Mode, on_disconnect: Option<OnDisconnect>, wait: Option<Duration>) -> Result<(), Error> {
    match mode {
        Mode::Sync if wait.is_some() => Err(Error::invalid(
            "wait: is for `\"mode\": \"async\"`; without it the answer comes when the execution has ended",
        )),
        Mode::Async if on_disconnect == Some(OnDisconnect::Cancel) => Err(Error::invalid(
            "on_disconnect: cannot be used with `\"mode\": \"async\"`, which keeps no connection; omit one of them",
        )),
        Mode::Sync | Mode::Async => Ok(()),
    }
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<IdempotencyKey>, Error> {
    let mut values = headers.get_all("idempotency-key").iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(Error::invalid("Idempotency-Key: is there twice; send one"));
    }
    let key = value.to_str().unwrap_or_default().parse();
    key.map(Some)
        .map_err(|rule| Error::invalid(format!("Idempotency-Key: {rule}")))
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
    State(state): State<Arc<ApiState>>,
    Authenticated(caller): Authenticated,
    Query(query): Query<ExecutionQuery>,
) -> Result<axum::Json<List<Summary>>, ProblemResponse> {
    let page = page_request(query.limit.as_deref(), query.page_token.as_deref())?;
    let filter = ExecutionFilter {
        status: query.status,
        skill: query.skill,
        since: query.since,
        until: query.until,
    };
    Ok(axum::Json(
        executions::list(&state.engine, &caller, filter, page).await?,
    ))
}

/// Show an execution
///
/// With `wait` the answer comes when it has ended, or after so many seconds.
#[utoipa::path(get, path = "/v1/executions/{id}", tag = "executions", operation_id = "show_execution",
    params(("id" = uuid::Uuid, Path, description = "The execution"), WaitQuery),
    responses((status = OK, body = Envelope)))]
pub(crate) async fn show(
    State(state): State<Arc<ApiState>>,
    Authenticated(caller): Authenticated,
    Extension(host): Extension<RequestedHost>,
    Path(id): Path<ExecutionId>,
    Query(query): Query<WaitQuery>,
) -> Result<Response, ProblemResponse> {
    let execution = executions::get(&state.engine, &caller, id, query.wait()?).await?;
    Ok(response::json(
        &state.answers,
        caller.tenant(),
        &envelope(&state, &execution, &host),
    )?)
}

/// Cancel an execution
///
/// Answers when it has ended. One that has ended already is answered as it is.
#[utoipa::path(post, path = "/v1/executions/{id}/cancel", tag = "executions", operation_id = "cancel_execution",
    params(("id" = uuid::Uuid, Path, description = "The execution")),
    responses((status = OK, body = Envelope)))]
pub(crate) async fn cancel(
    State(state): State<Arc<ApiState>>,
    Authenticated(caller): Authenticated,
    Extension(host): Extension<RequestedHost>,
    Path(id): Path<ExecutionId>,
) -> Result<Response, ProblemResponse> {
    let execution = executions::cancel(&state.engine, &caller, id).await?;
    Ok(response::json(
        &state.answers,
        caller.tenant(),
        &envelope(&state, &execution, &host),
    )?)
}

pub(crate) fn envelope(
    state: &ApiState,
    execution: &Execution,
    RequestedHost(host): &RequestedHost,
) -> Envelope {
    let links = links(&state.engine, execution, &state.base_url(host));
    Envelope {
        queue: state.engine.runs().queue_place(execution),
        ..Envelope::from_execution(execution, Some(&links))
    }
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

impl Stream {
    fn one(self) -> Option<execution::Stream> {
        match self {
            Self::Stdout => Some(execution::Stream::Stdout),
            Self::Stderr => Some(execution::Stream::Stderr),
            Self::Both => None,
        }
    }
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
    /// Plain text as it is printed, until the program has ended; both streams as they come.
    #[serde(default)]
    follow: bool,
}

const JSON: &str = "application/json";
const ANY: &str = "*/*";
/// What logs can be had as.
const TEXTS: &[&str] = &[JSON, "text/plain", "text/*", ANY];

/// Show what an execution printed
///
/// As plain text byte for byte, or as JSON if `Accept` asks for it. The header `x-skillbox-truncated` says whether anything was left out. With `follow=true` always as plain text, while it is printed; what a program prints beyond the cap is left out there without a word.
#[utoipa::path(get, path = "/v1/executions/{id}/logs", tag = "executions", operation_id = "show_logs",
    params(("id" = uuid::Uuid, Path, description = "The execution"), LogsQuery),
    responses((status = OK, content((String = "text/plain"), (StreamTexts = "application/json")))))]
pub(crate) async fn logs(
    State(state): State<Arc<ApiState>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<ExecutionId>,
    Query(query): Query<LogsQuery>,
    headers: HeaderMap,
) -> Result<Response, ProblemResponse> {
    let plain = [(header::CONTENT_TYPE, "text/plain; charset=utf-8")];
    if query.follow {
        let buffering = [(HeaderName::from_static("x-accel-buffering"), "no")];
        let wanted = query.stream.one();
        let body = events::plain(&state, &caller, id, wanted).await?;
        return Ok((plain, buffering, body).into_response());
    }
    let logs = executions::logs(&state.engine, &caller, id).await?;
    let truncated = [(
        HeaderName::from_static("x-skillbox-truncated"),
        logs.truncated().to_string(),
    )];
    if preferred(&headers, TEXTS) == Some(JSON) {
        let mut texts = StreamTexts::from(&logs);
        match query.stream {
            Stream::Stdout => texts.stderr = None,
            Stream::Stderr => texts.stdout = None,
            Stream::Both => {}
        }
        let texts = response::json(&state.answers, caller.tenant(), &texts)?;
        return Ok((truncated, texts).into_response());
    }
    let bytes = match query.stream {
        Stream::Stdout => logs.stdout,
        Stream::Stderr => logs.stderr,
        Stream::Both => [logs.stdout, logs.stderr].concat(),
    };
    let body = response::body(&state.answers, caller.tenant(), bytes)?;
    Ok((truncated, plain, body).into_response())
}
