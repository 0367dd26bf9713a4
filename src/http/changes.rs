//! `/v1/events`: the changes of a tenant as server-sent events.

use std::time::Duration;

use axum::body::Bytes;
use axum::http::HeaderMap;
use axum::response::Response;
use futures::stream;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, timeout};

use super::authorization::Call;
use super::events::{self, encode_event, last_event_id};
use super::extract::Query;
use super::problem::ProblemResponse;
use super::state::StreamPermit;
use crate::api::changes::{self, ExecutionDeletedEvent, NoDetails, SkillEvent};
use crate::engine::{Change, ChangeId, ChangeSubscription};
use crate::execution::Summary;
use crate::limits;

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ChangesQuery {
    /// As the header `Last-Event-ID`, for clients that cannot send it. The header takes precedence.
    #[param(format = "change-id", example = "42-019a0000-0000-7000-8000-000000000000")]
    last_event_id: Option<String>,
}

/// Schema of the `data` of each event, by its name.
#[derive(utoipa::ToSchema)]
#[expect(dead_code, reason = "for the document only")]
#[schema(title = "Changes")]
pub(crate) struct Changes {
    ready: NoDetails,
    execution: Summary,
    execution_deleted: ExecutionDeletedEvent,
    skill: SkillEvent,
    reset: NoDetails,
}

/// Watch all changes
///
/// Server-sent events of the tenant: `ready` once, without an id to resume from; `execution`, an item of the list, when an execution is accepted, starts
/// and ends; `execution_deleted`; `skill` when a version is published or deleted; and `reset` when events are missing: load everything again. That
/// follows an id that is too old or of another process, a reader that is too slow, and the deletion of many executions. The stream ends after ten
/// minutes, with its key or with its session: reconnect with the last id.
#[utoipa::path(get, path = "/v1/events", tag = "server", operation_id = "watch_changes",
    params(ChangesQuery,
        ("Last-Event-ID" = Option<String>, Header, format = "change-id", description = "The id of the last received event", example = "42-019a0000-0000-7000-8000-000000000000")),
    responses((status = OK, description = "The events; the schema lists their names and their `data`", body = Changes, content_type = "text/event-stream")))]
pub(crate) async fn changes(
    call: Call,
    Query(query): Query<ChangesQuery>,
    headers: HeaderMap,
) -> Result<Response, ProblemResponse> {
    let from = last_event_id::<ChangeId>(&headers, query.last_event_id.as_deref())?;
    let permit = call.state.stream_permit(call.tenant())?;
    let subscription = changes::follow(call.engine(), &call.caller, from)?;
    let response = ChangeStream {
        is_ready: from.is_some(),
        subscription,
        ends_at: Instant::now() + limits::CHANGES_STREAM_MAX,
        checked_at: Instant::now(),
        _permit: permit,
    };
    Ok(events::respond(stream::unfold(response, async |mut response| {
        response.piece().await.map(|piece| (piece, response))
    })))
}

struct ChangeStream {
    is_ready: bool,
    subscription: ChangeSubscription,
    ends_at: Instant,
    /// When the key was last checked.
    checked_at: Instant,
    _permit: StreamPermit,
}

impl ChangeStream {
    /// The next event or a comment; `None` at the end.
    async fn piece(&mut self) -> Option<Bytes> {
        if !self.is_ready {
            self.is_ready = true;
            return Some(self.event("ready", &NoDetails {}));
        }
        if self.checked_at.elapsed() >= limits::EVENTS_KEEP_ALIVE {
            self.checked_at = Instant::now();
            if !self.subscription.is_allowed().await {
                return None;
            }
        }
        let left = self.ends_at.saturating_duration_since(Instant::now());
        if left == Duration::ZERO {
            return None;
        }
        let wait = limits::EVENTS_KEEP_ALIVE.min(left);
        match timeout(wait, self.subscription.next()).await {
            Err(_elapsed) => Some(Bytes::from_static(events::KEEP_ALIVE)),
            Ok(change) => Some(match change? {
                Change::Execution(item) => self.event("execution", &*item),
                Change::ExecutionDeleted(execution_id) => {
                    self.event("execution_deleted", &ExecutionDeletedEvent { execution_id })
                }
                Change::Skill(change) => self.event("skill", &SkillEvent::from(&change)),
                Change::Reset => self.event("reset", &NoDetails {}),
            }),
        }
    }

    fn event(&self, name: &'static str, value: &impl Serialize) -> Bytes {
        let data = serde_json::to_vec(value).expect("texts and numbers always serialize");
        encode_event(self.subscription.id(), name, &data).into()
    }
}
