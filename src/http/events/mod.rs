//! Streams the events of an execution as server-sent events or plain text. A reader costs only its position in the
//! transcript; one that reads too slowly is disconnected, as from any response.

mod types;

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::stream;
use serde::Deserialize;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::authorization::Call;
use super::budget::BudgetShare;
use super::executions::envelope;
use super::extract::{Path, Query};
use super::problem::ProblemResponse;
use super::response;
use super::state::StreamPermit;
use crate::api::events::{EndEvent, PrintedEvent, StatusEvent};
use crate::api::executions;
use crate::engine::{RunOptions, RunRequest, Subscription};
use crate::error::Error;
use crate::execution::{Bookmark, Execution, Phase, Reason, Stream, TranscriptEvent};
use crate::ids::ExecutionId;
use crate::limits;
use crate::telemetry::field;

use types::{EventName, encode_event, event};

pub(crate) use types::Events;

pub(crate) const MEDIA_TYPE: &str = "text/event-stream";

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct EventsQuery {
    /// As the header `Last-Event-ID`, for clients that cannot send it. The header takes precedence.
    #[param(format = "event-id", example = "120-0-3-running")]
    last_event_id: Option<String>,
}

/// Watch an execution
///
/// Server-sent events from the beginning, or after the event in `Last-Event-ID`: `status`, `stdout`, `stderr`, `log`,
/// `result` and, always, `end`. They arrive while the program runs; for an ended execution all arrive at once. `id`
/// is the position in the stream; any id of this execution is valid on any server at any time. After `end` nothing
/// follows: its id is answered with 204.
#[utoipa::path(get, path = "/v1/executions/{id}/events", tag = "executions", operation_id = "watch_execution",
    params(("id" = uuid::Uuid, Path, description = "The execution"), EventsQuery,
        ("Last-Event-ID" = Option<String>, Header, format = "event-id", description = "The id of the last received event", example = "120-0-3-running")),
    responses((status = OK, description = "The events; the schema lists their names and their `data`", body = Events, content_type = "text/event-stream"),
        (status = NO_CONTENT, description = "All events were sent already")))]
pub(crate) async fn events(
    call: Call,
    Path(id): Path<ExecutionId>,
    Query(query): Query<EventsQuery>,
    headers: HeaderMap,
) -> Result<Response, ProblemResponse> {
    let from = last_event_id(&headers, query.last_event_id.as_deref())?;
    let permit = call.state.stream_permit(call.tenant())?;
    let subscription = executions::follow(call.engine(), &call.caller, id, from).await?;
    if from.phase == Phase::End {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    Ok(respond(call, subscription, permit, None))
}

/// Runs a request and responds with its events. Errors before the execution is recorded are ordinary error responses.
pub(crate) async fn run(
    call: Call,
    request: RunRequest,
    options: RunOptions,
    body: BudgetShare,
) -> Result<Response, ProblemResponse> {
    let permit = call.state.stream_permit(call.tenant())?;
    let (watcher, watched) = oneshot::channel();
    let (engine, caller) = (call.engine().clone(), call.caller.clone());
    let mut run = Box::pin(async move {
        let done = executions::run(&engine, &caller, request, options, Some(watcher)).await;
        drop(body);
        done
    });
    let subscription = tokio::select! {
        biased;
        Ok(subscription) = watched => subscription,
        done = &mut run => {
            let id = done?.new.id;
            executions::follow(call.engine(), &call.caller, id, Bookmark::default()).await?
        }
    };
    // Dropped on disconnect, like a request that waits for the result.
    let run: AttachedRun = Box::pin(async { drop(run.await) });
    tracing::Span::current().record(field::EXECUTION_ID, tracing::field::display(subscription.id()));
    Ok(respond(call, subscription, permit, Some(run)))
}

/// Queues a request and responds with its events. A disconnect only ends the stream.
pub(crate) async fn submit(
    call: Call,
    request: RunRequest,
    options: RunOptions,
) -> Result<Response, ProblemResponse> {
    let permit = call.state.stream_permit(call.tenant())?;
    let (engine, caller) = (call.engine(), &call.caller);
    let id = executions::submit(engine, caller, request, options).await?.new.id;
    let subscription = executions::follow(engine, caller, id, Bookmark::default()).await?;
    Ok(respond(call, subscription, permit, None))
}

/// Streams the output of an execution as plain text.
pub(crate) async fn plain(call: &Call, id: ExecutionId, wanted: Option<Stream>) -> Result<Body, Error> {
    let permit = call.state.stream_permit(call.tenant())?;
    let subscription = executions::follow(call.engine(), &call.caller, id, Bookmark::default()).await?;
    let pieces = stream::try_unfold(
        (subscription, permit),
        move |(mut subscription, permit)| async move {
            loop {
                match timeout(limits::EVENTS_KEEP_ALIVE, subscription.next()).await {
                    Ok(Some(TranscriptEvent::Printed { stream, bytes }))
                        if wanted.is_none_or(|wanted| wanted == stream) =>
                    {
                        return Ok(Some((Bytes::from(bytes), (subscription, permit))));
                    }
                    // An error, so that the client does not take the output for complete.
                    Ok(Some(TranscriptEvent::End {
                        reason: Reason::Shutdown,
                        ..
                    })) => return Err(Error::internal("the server stops")),
                    Ok(None) => return Ok(None),
                    // Polling counts as activity of the connection: a program may print nothing for long.
                    Ok(Some(_)) | Err(_) => {}
                }
            }
        },
    );
    Ok(Body::from_stream(pieces))
}

/// The position to resume from.
fn last_event_id(headers: &HeaderMap, query: Option<&str>) -> Result<Bookmark, Error> {
    const HEADER: HeaderName = HeaderName::from_static("last-event-id");
    let mut given = headers.get_all(HEADER).iter();
    let text = match (given.next(), given.next()) {
        (None, _) => query,
        (Some(only), None) => Some(only.to_str().unwrap_or("?")),
        (Some(_), Some(_)) => Some("?"),
    };
    // Empty means absent.
    match text.filter(|text| !text.is_empty()) {
        None => Ok(Bookmark::default()),
        Some(text) => text
            .parse()
            .map_err(|error| Error::invalid(format!("last_event_id: {error}"))),
    }
}

/// A run that is cancelled or continues by itself when its client disconnects.
type AttachedRun = Pin<Box<dyn Future<Output = ()> + Send>>;

struct EventResponse {
    call: Call,
    subscription: Subscription,
    /// A result that waits for the memory budget.
    result: Option<Arc<Execution>>,
    _permit: StreamPermit,
    _run: Option<AttachedRun>,
}

impl EventResponse {
    /// The next piece of the stream, or a keep-alive comment.
    async fn piece(&mut self) -> Option<Bytes> {
        let next = timeout(limits::EVENTS_KEEP_ALIVE, self.event()).await;
        next.unwrap_or_else(|_| Some(Bytes::from_static(b": still here\n")))
    }

    async fn event(&mut self) -> Option<Bytes> {
        if self.result.is_some() {
            return self.result().await;
        }
        let received = self.subscription.next().await?;
        let id = self.subscription.bookmark();
        Some(match received {
            TranscriptEvent::Status(status) => {
                let value = StatusEvent {
                    execution_id: self.subscription.id(),
                    status,
                    queue_position: self.subscription.queue_position(),
                };
                event(id, EventName::Status, &value)
            }
            TranscriptEvent::Printed { stream, bytes } => {
                event(id, EventName::Printed(stream), &PrintedEvent::of(bytes))
            }
            TranscriptEvent::Logged(line) => event(id, EventName::Log, &line),
            TranscriptEvent::Result(execution) => {
                self.result = Some(execution);
                return self.result().await;
            }
            TranscriptEvent::End { status, reason } => {
                let reason = reason.into();
                event(id, EventName::End, &EndEvent { status, reason })
            }
        })
    }

    /// The result, once the memory budget allows it: many clients can read it at once.
    async fn result(&mut self) -> Option<Bytes> {
        let execution = Arc::clone(self.result.as_ref()?);
        let write = || {
            let envelope = envelope(&self.call, &execution);
            let text = response::text(&envelope)?;
            Ok(encode_event(
                self.subscription.bookmark(),
                EventName::Result,
                &text,
            ))
        };
        let text = response::wait_for_budget(&self.call.state.answers, self.call.tenant(), write).await;
        self.result = None;
        text.ok()
    }
}

fn respond(
    call: Call,
    subscription: Subscription,
    permit: StreamPermit,
    run: Option<AttachedRun>,
) -> Response {
    let response = EventResponse {
        call,
        subscription,
        result: None,
        _permit: permit,
        _run: run,
    };
    // No empty line, which some clients would read as an event.
    let retry = format!("retry: {}\n", limits::EVENTS_RETRY.as_millis());
    let begin = stream::iter([Ok::<_, Infallible>(Bytes::from(retry))]);
    let events = stream::unfold(response, async |mut response| {
        response.piece().await.map(|piece| (Ok(piece), response))
    });
    let headers = [
        (header::CONTENT_TYPE, MEDIA_TYPE),
        (header::CACHE_CONTROL, "no-store"),
        // Without this header some proxies buffer the whole response.
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    let body = Body::from_stream(futures::StreamExt::chain(begin, events));
    (headers, body).into_response()
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn from(header: &[&'static str], query: Option<&str>) -> Result<String, String> {
        let mut headers = HeaderMap::new();
        for value in header {
            headers.append("last-event-id", HeaderValue::from_static(value));
        }
        let permit = last_event_id(&headers, query);
        permit
            .map(|permit| permit.to_string())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn prefers_the_header_over_the_query_and_rejects_invalid_ids() {
        let (start, permit) = ("0-0-0-start".to_owned(), "1-2-3-running".to_owned());
        assert_eq!(from(&[], None), Ok(start.clone()));
        assert_eq!(from(&[""], None), Ok(start));
        assert_eq!(from(&[], Some("1-2-3-running")), Ok(permit.clone()));
        assert_eq!(from(&["1-2-3-running"], Some("9-9-9-end")), Ok(permit));
        for wrong in [
            from(&["7"], None),
            from(&[], Some("7")),
            from(&["1-2-3-end"; 2], None),
        ] {
            assert!(wrong.unwrap_err().starts_with("last_event_id: "));
        }
    }
}
