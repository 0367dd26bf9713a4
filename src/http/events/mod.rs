//! Streams the events of an execution as server-sent events or plain text. A reader costs only its position in the
//! transcript; one that reads too slowly is disconnected, as from any response.

mod types;

use std::convert::Infallible;
use std::fmt::Display;
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::{Stream as EventStream, StreamExt as _, stream};
use serde::Deserialize;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::authorization::Call;
use super::executions::{accepted, envelope};
use super::extract::{Path, Query};
use super::problem::ProblemResponse;
use super::response;
use super::state::StreamPermit;
use crate::api::events::{EndEvent, PrintedEvent, StatusEvent};
use crate::api::{Mode, executions, words};
use crate::engine::{RunOptions, RunRequest, Subscription};
use crate::error::Error;
use crate::execution::{Bookmark, EnvelopePart, Execution, Omitted, Phase, Reason, Stream, TranscriptEvent};
use crate::ids::ExecutionId;
use crate::limits;
use crate::telemetry::field;

use types::{EventName, event};

pub(crate) use types::{Events, encode_event};

pub(crate) const MEDIA_TYPE: &str = "text/event-stream";
/// A comment.
pub(crate) const KEEP_ALIVE: &[u8] = b": still here\n";

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct EventsQuery {
    /// As the header `Last-Event-ID`, for clients that cannot send it. The header takes precedence.
    #[param(format = "event-id", example = "120-0-3-running")]
    last_event_id: Option<String>,
    /// Leave out the events of these parts, separated by commas, and leave them empty in `result`.
    #[serde(default, deserialize_with = "words")]
    #[param(value_type = Option<Vec<EnvelopePart>>, style = Form, explode = false, min_items = 1)]
    omit: Omitted,
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
    let from = last_event_id::<Bookmark>(&headers, query.last_event_id.as_deref())?.unwrap_or_default();
    let events = ExecutionEvents::follow(call, id, from).await?;
    if from.phase == Phase::End {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    Ok(events.omitting(query.omit).respond())
}

/// The events of an execution for one client.
pub(crate) struct ExecutionEvents {
    pub(crate) call: Call,
    pub(crate) subscription: Subscription,
    pub(crate) omitted: Omitted,
    _permit: StreamPermit,
    _run: Option<AttachedRun>,
}

impl ExecutionEvents {
    /// Runs or queues a request. Errors before the execution is recorded are ordinary errors. `body` is held until the end of a
    /// synchronous run.
    pub(crate) async fn run(
        call: Call,
        request: RunRequest,
        mode: Mode,
        options: RunOptions,
        body: impl Send + 'static,
    ) -> Result<Self, Error> {
        let options = accepted(&call, options)?;
        match mode {
            Mode::Sync => Self::attached(call, request, options, body).await,
            Mode::Async => {
                let permit = call.state.stream_permit(call.tenant())?;
                let id = executions::submit(call.engine(), &call.caller, request, options)
                    .await?
                    .new
                    .id;
                Self::with(call, permit, id, Bookmark::default()).await
            }
        }
    }

    /// From a position on, also of an execution that has ended.
    pub(crate) async fn follow(call: Call, id: ExecutionId, from: Bookmark) -> Result<Self, Error> {
        let permit = call.state.stream_permit(call.tenant())?;
        Self::with(call, permit, id, from).await
    }

    async fn with(call: Call, permit: StreamPermit, id: ExecutionId, from: Bookmark) -> Result<Self, Error> {
        let subscription = executions::follow(call.engine(), &call.caller, id, from).await?;
        tracing::Span::current().record(field::EXECUTION_ID, tracing::field::display(id));
        Ok(Self {
            call,
            subscription,
            omitted: Omitted::default(),
            _permit: permit,
            _run: None,
        })
    }

    /// The run is dropped with the events, like a request that waits for the result.
    async fn attached(
        call: Call,
        request: RunRequest,
        options: RunOptions,
        body: impl Send + 'static,
    ) -> Result<Self, Error> {
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
        tracing::Span::current().record(field::EXECUTION_ID, tracing::field::display(subscription.id()));
        Ok(Self {
            call,
            subscription,
            omitted: Omitted::default(),
            _permit: permit,
            _run: Some(Box::pin(async { drop(run.await) })),
        })
    }

    /// Without these parts.
    pub(crate) fn omitting(self, omitted: Omitted) -> Self {
        Self { omitted, ..self }
    }

    /// The next event that is not omitted. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<TranscriptEvent> {
        loop {
            let event = self.subscription.next().await?;
            let is_log = matches!(
                event,
                TranscriptEvent::Printed { .. } | TranscriptEvent::Logged(_)
            );
            if !(is_log && self.omitted.logs) {
                return Some(event);
            }
        }
    }

    /// A response of server-sent events.
    pub(crate) fn respond(self) -> Response {
        let response = EventResponse {
            events: self,
            result: None,
        };
        respond(stream::unfold(response, async |mut response| {
            response.piece().await.map(|piece| (piece, response))
        }))
    }
}

/// Streams the output of an execution as plain text.
pub(crate) async fn plain(call: &Call, id: ExecutionId, wanted: Option<Stream>) -> Result<Body, Error> {
    let events = ExecutionEvents::follow(call.clone(), id, Bookmark::default()).await?;
    let pieces = stream::try_unfold(events, move |mut events| async move {
        loop {
            match timeout(limits::EVENTS_KEEP_ALIVE, events.next()).await {
                Ok(Some(TranscriptEvent::Printed { stream, bytes }))
                    if wanted.is_none_or(|wanted| wanted == stream) =>
                {
                    return Ok(Some((Bytes::from(bytes), events)));
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
    });
    Ok(Body::from_stream(pieces))
}

/// The position to resume from.
pub(crate) fn last_event_id<T>(headers: &HeaderMap, query: Option<&str>) -> Result<Option<T>, Error>
where
    T: FromStr<Err: Display>,
{
    const HEADER: HeaderName = HeaderName::from_static("last-event-id");
    let mut given = headers.get_all(HEADER).iter();
    let text = match (given.next(), given.next()) {
        (None, _) => query,
        (Some(only), None) => Some(only.to_str().unwrap_or("?")),
        (Some(_), Some(_)) => Some("?"),
    };
    // Empty means absent.
    let given = text.filter(|text| !text.is_empty()).map(str::parse).transpose();
    given.map_err(|error| Error::invalid(format!("last_event_id: {error}")))
}

/// A response of server-sent events.
pub(crate) fn respond(events: impl EventStream<Item = Bytes> + Send + 'static) -> Response {
    // No empty line, which some clients would read as an event.
    let retry = format!("retry: {}\n", limits::EVENTS_RETRY.as_millis());
    let begin = stream::iter([Bytes::from(retry)]);
    let headers = [
        (header::CONTENT_TYPE, MEDIA_TYPE),
        (header::CACHE_CONTROL, "no-store"),
        // Without this header some proxies buffer the whole response.
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    let pieces = begin.chain(events).map(Ok::<_, Infallible>);
    (headers, Body::from_stream(pieces)).into_response()
}

/// A run that is cancelled or continues by itself when its client disconnects.
type AttachedRun = Pin<Box<dyn Future<Output = ()> + Send>>;

struct EventResponse {
    events: ExecutionEvents,
    /// A result that waits for the memory budget.
    result: Option<Arc<Execution>>,
}

impl EventResponse {
    /// The next piece of the stream, or a keep-alive comment.
    async fn piece(&mut self) -> Option<Bytes> {
        let next = timeout(limits::EVENTS_KEEP_ALIVE, self.event()).await;
        next.unwrap_or_else(|_| Some(Bytes::from_static(KEEP_ALIVE)))
    }

    async fn event(&mut self) -> Option<Bytes> {
        if self.result.is_some() {
            return self.result().await;
        }
        let received = self.events.next().await?;
        let subscription = &self.events.subscription;
        let id = subscription.bookmark();
        Some(match received {
            TranscriptEvent::Status(status) => {
                let value = StatusEvent {
                    execution_id: subscription.id(),
                    status,
                    queue_position: subscription.queue_position(),
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
        let ExecutionEvents {
            call,
            subscription,
            omitted,
            ..
        } = &self.events;
        let write = || {
            let text = response::text(&envelope(call, &execution).without(*omitted))?;
            Ok(encode_event(
                subscription.bookmark(),
                EventName::Result.as_str(),
                &text,
            ))
        };
        let text = response::wait_for_budget(&call.state.answers, call.tenant(), write).await;
        self.result = None;
        text.ok()
    }
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
        let permit = last_event_id::<Bookmark>(&headers, query);
        permit
            .map(|permit| permit.unwrap_or_default().to_string())
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
