//! What an execution tells, while it tells it: as server-sent events, or as plain text. Nothing is kept for a reader but its
//! place; one that does not take what it is sent loses its connection as with any other answer.

mod wire;

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::stream;
use serde::Deserialize;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::answer;
use super::budget::Held;
use super::door::{Door, Reader};
use super::executions::envelope;
use super::extract::{Path, Query};
use super::gate::Asked;
use super::guard::Authenticated;
use super::problem::Refusal;
use crate::auth::Caller;
use crate::engine::{Manner, RunRequest, Subscription};
use crate::error::Error;
use crate::execution::{Bookmark, Execution, News, Phase, Reason, Stream};
use crate::ids::{ExecutionId, Tenant};
use crate::limits;
use crate::telemetry::field;

use wire::{Name, event, written};

pub(crate) use wire::Events;
pub use wire::{EndEvent, EndReason, PrintedEvent, StatusEvent};

/// The media type of a stream of events.
pub(crate) const MEDIA_TYPE: &str = "text/event-stream";

/// The query of the events.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct EventsQuery {
    /// As the header `Last-Event-ID`, for clients that cannot send one; the header counts where both are there.
    #[param(max_length = 100, example = "120-0-3-running")]
    last_event_id: Option<String>,
}

/// Watch an execution
///
/// Server-sent events from the beginning, or from after the event that `Last-Event-ID` names: `status`, `stdout`, `stderr`, `log`, `result` and, always, `end`. They come while the program runs; of an execution that has ended all come at once. `id` says how far the stream has come, so any id of this execution can be sent back, to any server, at any time. After `end` there is nothing: its id is answered 204.
#[utoipa::path(get, path = "/v1/executions/{id}/events", tag = "executions", operation_id = "watch_execution",
    params(("id" = uuid::Uuid, Path, description = "The execution"), EventsQuery,
        ("Last-Event-ID" = Option<String>, Header, description = "The id of the last event that was taken", example = "120-0-3-running")),
    responses((status = OK, description = "The events; the schema names them and what each carries as `data`", body = Events, content_type = "text/event-stream"),
        (status = NO_CONTENT, description = "All of it was told already")))]
#[expect(clippy::too_many_arguments, reason = "each parameter is an extractor of axum")]
pub(crate) async fn events(
    State(door): State<Arc<Door>>,
    Authenticated(caller): Authenticated,
    Extension(asked): Extension<Asked>,
    Path(id): Path<ExecutionId>,
    Query(query): Query<EventsQuery>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let from = last_event_id(&headers, query.last_event_id.as_deref())?;
    let place = door.reader(caller.tenant())?;
    let follow = door.engine.follow(&caller, id, from).await?;
    if from.phase == Phase::End {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let telling = Telling::new((door, caller.tenant()), asked, follow, (place, None));
    Ok(telling.into_response())
}

/// Runs what was asked for and answers with its events. What is refused before it was recorded is refused as ever.
pub(crate) async fn run(
    door: Arc<Door>,
    (caller, asked): (Caller, Asked),
    (request, manner, body): (RunRequest, Manner, Held),
) -> Result<Response, Refusal> {
    let place = door.reader(caller.tenant())?;
    let (watcher, watched) = oneshot::channel();
    let (engine, who) = (door.engine.clone(), caller.clone());
    let mut run = Box::pin(async move {
        let done = engine.run_watched(&who, (request, manner), watcher).await;
        drop(body);
        done
    });
    let follow = tokio::select! {
        biased;
        Ok(follow) = watched => follow,
        done = &mut run => {
            let id = done?.new.id;
            door.engine.follow(&caller, id, Bookmark::default()).await?
        }
    };
    // It goes with the client, as it would if the client waited for its end.
    let run = Box::pin(async { drop(run.await) });
    tracing::Span::current().record(field::EXECUTION_ID, tracing::field::display(follow.id()));
    let telling = Telling::new((door, caller.tenant()), asked, follow, (place, Some(run)));
    Ok(telling.into_response())
}

/// Records what was asked for and answers with its events from there on. Who goes away has only stopped to listen.
pub(crate) async fn submit(
    door: Arc<Door>,
    (caller, asked): (Caller, Asked),
    (request, manner): (RunRequest, Manner),
) -> Result<Response, Refusal> {
    let place = door.reader(caller.tenant())?;
    let id = door.engine.submit(&caller, request, manner).await?.new.id;
    let follow = door.engine.follow(&caller, id, Bookmark::default()).await?;
    let telling = Telling::new((door, caller.tenant()), asked, follow, (place, None));
    Ok(telling.into_response())
}

/// What an execution prints, as plain text, to its end.
pub(crate) async fn plain(
    door: &Door,
    caller: &Caller,
    (id, wanted): (ExecutionId, Option<Stream>),
) -> Result<Body, Error> {
    let place = door.reader(caller.tenant())?;
    let follow = door.engine.follow(caller, id, Bookmark::default()).await?;
    let pieces = stream::try_unfold((follow, place), move |(mut follow, place)| async move {
        loop {
            match timeout(limits::EVENTS_KEEP_ALIVE, follow.next()).await {
                Ok(Some(News::Printed { stream, bytes })) if wanted.is_none_or(|wanted| wanted == stream) => {
                    return Ok(Some((Bytes::from(bytes), (follow, place))));
                }
                // Cut off, or it would pass for whole.
                Ok(Some(News::End {
                    reason: Reason::Shutdown,
                    ..
                })) => return Err(Error::internal("the server stops")),
                Ok(None) => return Ok(None),
                // That we look counts as a sign of life of ours: a program may be silent for long.
                Ok(Some(_)) | Err(_) => {}
            }
        }
    });
    Ok(Body::from_stream(pieces))
}

/// The place to go on from.
fn last_event_id(headers: &HeaderMap, query: Option<&str>) -> Result<Bookmark, Error> {
    const HEADER: HeaderName = HeaderName::from_static("last-event-id");
    let mut given = headers.get_all(HEADER).iter();
    let text = match (given.next(), given.next()) {
        (None, _) => query,
        (Some(only), None) => Some(only.to_str().unwrap_or("?")),
        (Some(_), Some(_)) => Some("?"),
    };
    // An empty one means that there was none.
    match text.filter(|text| !text.is_empty()) {
        None => Ok(Bookmark::default()),
        Some(text) => text
            .parse()
            .map_err(|error| Error::invalid(format!("last_event_id: {error}"))),
    }
}

/// A run that is not to end before whoever reads does.
type Running = Pin<Box<dyn Future<Output = ()> + Send>>;

/// One reader of events.
struct Telling {
    door: Arc<Door>,
    tenant: Tenant,
    asked: Asked,
    follow: Subscription,
    /// What is still to be told when there is room for it.
    result: Option<Arc<Execution>>,
    _place: Reader,
    _run: Option<Running>,
}

impl Telling {
    fn new(
        (door, tenant): (Arc<Door>, &Tenant),
        asked: Asked,
        follow: Subscription,
        (place, run): (Reader, Option<Running>),
    ) -> Self {
        Self {
            door,
            tenant: tenant.clone(),
            asked,
            follow,
            result: None,
            _place: place,
            _run: run,
        }
    }

    /// The next piece of the stream.
    async fn piece(&mut self) -> Option<Bytes> {
        let next = timeout(limits::EVENTS_KEEP_ALIVE, self.event()).await;
        next.unwrap_or_else(|_| Some(Bytes::from_static(b": still here\n")))
    }

    async fn event(&mut self) -> Option<Bytes> {
        if self.result.is_some() {
            return self.result().await;
        }
        let news = self.follow.next().await?;
        let id = self.follow.bookmark();
        Some(match news {
            News::Status(status) => {
                let value = StatusEvent {
                    execution_id: self.follow.id(),
                    status,
                    queue_position: self.follow.queue_position(),
                };
                event(id, Name::Status, &value)
            }
            News::Printed { stream, bytes } => event(id, Name::Printed(stream), &PrintedEvent::of(bytes)),
            News::Logged(line) => event(id, Name::Log, &line),
            News::Result(execution) => {
                self.result = Some(execution);
                return self.result().await;
            }
            News::End { status, reason } => {
                let reason = reason.into();
                event(id, Name::End, &EndEvent { status, reason })
            }
        })
    }

    /// The result, once there is room for it: its readers may be many.
    async fn result(&mut self) -> Option<Bytes> {
        let execution = Arc::clone(self.result.as_ref()?);
        let write = || {
            let envelope = envelope(&self.door, &execution, &self.asked);
            let text = answer::text(&envelope)?;
            Ok(written(self.follow.bookmark(), Name::Result, &text))
        };
        let told = answer::when_there_is_room((&self.door.answers, &self.tenant), write).await;
        self.result = None;
        told.ok()
    }
}

impl IntoResponse for Telling {
    fn into_response(self) -> Response {
        // No event of its own: some readers make one of every empty line.
        let retry = format!("retry: {}\n", limits::EVENTS_RETRY.as_millis());
        let begin = stream::iter([Ok::<_, Infallible>(Bytes::from(retry))]);
        let events = stream::unfold(self, async |mut telling| {
            telling.piece().await.map(|piece| (Ok(piece), telling))
        });
        let headers = [
            (header::CONTENT_TYPE, MEDIA_TYPE),
            (header::CACHE_CONTROL, "no-store"),
            // Some proxies hold answers back until they are whole unless they are told.
            (HeaderName::from_static("x-accel-buffering"), "no"),
        ];
        let body = Body::from_stream(futures::StreamExt::chain(begin, events));
        (headers, body).into_response()
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
        let place = last_event_id(&headers, query);
        place
            .map(|place| place.to_string())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_header_counts_before_the_query_and_nothing_else_is_an_id() {
        let (start, place) = ("0-0-0-start".to_owned(), "1-2-3-running".to_owned());
        assert_eq!(from(&[], None), Ok(start.clone()));
        assert_eq!(from(&[""], None), Ok(start));
        assert_eq!(from(&[], Some("1-2-3-running")), Ok(place.clone()));
        assert_eq!(from(&["1-2-3-running"], Some("9-9-9-end")), Ok(place));
        for wrong in [
            from(&["7"], None),
            from(&[], Some("7")),
            from(&["1-2-3-end"; 2], None),
        ] {
            assert!(wrong.unwrap_err().starts_with("last_event_id: "));
        }
    }
}
