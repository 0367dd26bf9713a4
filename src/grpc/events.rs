//! Streams of events and logs. A reader costs only its position in the transcript.

use std::pin::Pin;
use std::sync::Arc;

use futures::{Stream, stream};
use tokio::time::{Instant, timeout};
use tonic::Status;

use super::call::{Received, budgeted_bytes, field, or_default, unknown};
use super::executions::message;
use super::messages;
use super::proto::execution_event::Event;
use super::proto::log_chunk::Content;
use super::proto::{
    EndEvent, EndReason, ExecutionEvent, GetExecutionLogsRequest, LogChunk, LogSource, StatusEvent,
};
use super::receive::{Deadline, deadline_exceeded};
use super::status::detailed;
use crate::api::executions;
use crate::error::{Code, Error};
use crate::execution::{self, Execution, Omitted, Reason, TranscriptEvent};
use crate::http::{BudgetShare, ExecutionEvents, wait_for_share};
use crate::ids::ExecutionId;
use crate::limits;

pub(super) type EventStream = MessageStream<ExecutionEvent>;
pub(super) type LogStream = MessageStream<LogChunk>;

type MessageStream<M> = Pin<Box<dyn Stream<Item = Result<M, Status>> + Send>>;

/// The events of an execution until the deadline.
pub(super) fn events(
    watched: ExecutionEvents,
    deadline: Option<Deadline>,
    request_id: String,
) -> EventStream {
    let reader = Reader {
        events: watched,
        deadline,
        request_id,
        source: LogSource::Unspecified,
        _result: None,
    };
    Box::pin(stream::unfold(Some(reader), async |reader| {
        let mut reader = reader?;
        match reader.next().await? {
            Ok(event) => {
                let event = reader.event(event).await;
                Some((Ok(event), Some(reader)))
            }
            Err(status) => Some((Err(status), None)),
        }
    }))
}

/// What an execution printed and logged.
pub(super) async fn logs(received: Received<GetExecutionLogsRequest>) -> Result<LogStream, Error> {
    let Received {
        call,
        message,
        deadline,
        request_id,
        ..
    } = received;
    let id: ExecutionId = field("execution_id", &message.execution_id)?;
    let source = LogSource::try_from(message.source).map_err(|_| unknown("source", message.source))?;
    let from = or_default("cursor", &message.cursor)?;
    let is_recorded = message.follow || {
        let all = Omitted {
            logs: true,
            results: true,
            output: true,
        };
        let state = executions::get_without(call.engine(), &call.caller, id, all).await?;
        state.status.is_final()
    };
    let reader = Reader {
        events: ExecutionEvents::follow(call, id, from).await?,
        deadline,
        request_id,
        source,
        _result: None,
    };
    Ok(Box::pin(stream::unfold(
        is_recorded.then_some(reader),
        async |reader| {
            let mut reader = reader?;
            loop {
                match reader.next().await? {
                    Ok(event) => match reader.chunk(event) {
                        Some(Ok(chunk)) => return Some((Ok(chunk), Some(reader))),
                        Some(Err(status)) => return Some((Err(status), None)),
                        None => {}
                    },
                    Err(status) => return Some((Err(status), None)),
                }
            }
        },
    )))
}

struct Reader {
    events: ExecutionEvents,
    deadline: Option<Deadline>,
    request_id: String,
    /// Of logs: the source that the client asked for.
    source: LogSource,
    /// Memory of the result, until the stream ends.
    _result: Option<BudgetShare>,
}

impl Reader {
    /// The next event, or the status that ends the stream.
    async fn next(&mut self) -> Option<Result<TranscriptEvent, Status>> {
        loop {
            let left = self
                .deadline
                .map(|Deadline(at)| at.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Some(Err(deadline_exceeded()));
            }
            let wait = left.unwrap_or(limits::EVENTS_KEEP_ALIVE);
            // Polling counts as activity of the connection: a program may print nothing for long.
            if let Ok(event) = timeout(wait.min(limits::EVENTS_KEEP_ALIVE), self.events.next()).await {
                return event.map(Ok);
            }
        }
    }

    fn cursor(&self) -> String {
        self.events.subscription.bookmark().to_string()
    }

    async fn event(&mut self, event: TranscriptEvent) -> ExecutionEvent {
        let event = match event {
            TranscriptEvent::Status(status) => Event::Status(StatusEvent {
                execution_id: self.events.subscription.id().to_string(),
                status: messages::status_number(status),
                queue_position: self
                    .events
                    .subscription
                    .queue_position()
                    .map(|place| place as u64),
            }),
            TranscriptEvent::Printed { stream, bytes } => match stream {
                execution::Stream::Stdout => Event::Stdout(bytes),
                execution::Stream::Stderr => Event::Stderr(bytes),
            },
            TranscriptEvent::Logged(line) => Event::Log(line.into()),
            TranscriptEvent::Result(execution) => Event::Result(self.result(execution).await),
            TranscriptEvent::End { status, reason } => Event::End(EndEvent {
                status: messages::status_number(status),
                reason: match reason {
                    Reason::Finished => EndReason::Finished,
                    Reason::Shutdown => EndReason::Shutdown,
                }
                .into(),
            }),
        };
        ExecutionEvent {
            event: Some(event),
            cursor: self.cursor(),
        }
    }

    /// The result, once the memory budget allows it: many clients can read it at once.
    async fn result(&mut self, execution: Arc<Execution>) -> super::proto::Execution {
        let call = &self.events.call;
        let write = || message(call, &execution, self.events.omitted);
        let result = write();
        let Some(bytes) = budgeted_bytes(&result) else {
            return result;
        };
        if let Ok(held) = call.state.answers.hold(call.tenant(), bytes) {
            self._result = Some(held);
            return result;
        }
        drop(result);
        let held = wait_for_share(&call.state.answers, call.tenant(), bytes).await;
        let result = write();
        self._result = Some(held);
        result
    }

    /// The chunk of an event of this source; a status where the stream ends early.
    fn chunk(&self, event: TranscriptEvent) -> Option<Result<LogChunk, Status>> {
        let content = match event {
            TranscriptEvent::Printed {
                stream: execution::Stream::Stdout,
                bytes,
            } => Content::Stdout(bytes),
            TranscriptEvent::Printed {
                stream: execution::Stream::Stderr,
                bytes,
            } => Content::Stderr(bytes),
            TranscriptEvent::Logged(line) => Content::Log(line.into()),
            TranscriptEvent::End {
                reason: Reason::Shutdown,
                ..
            } => {
                let stops = "the server stops; continue with the last cursor";
                return Some(Err(detailed(&Error::new(Code::Busy, stops), &self.request_id)));
            }
            TranscriptEvent::Status(_) | TranscriptEvent::Result(_) | TranscriptEvent::End { .. } => {
                return None;
            }
        };
        let is_wanted = match self.source {
            LogSource::Unspecified => true,
            LogSource::Stdout => matches!(content, Content::Stdout(_)),
            LogSource::Stderr => matches!(content, Content::Stderr(_)),
            LogSource::Log => matches!(content, Content::Log(_)),
        };
        is_wanted.then(|| {
            Ok(LogChunk {
                content: Some(content),
                cursor: self.cursor(),
            })
        })
    }
}
