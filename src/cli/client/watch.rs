//! Watches executions. An interrupted event stream of a server is resumed after the last received event.

use std::io::{BufRead, BufReader, Read as _};
use std::thread::sleep;

use serde::de::DeserializeOwned;
use tokio::sync::oneshot;
use ureq::http::{Method, Response};
use ureq::{Body, BodyReader};

use super::remote::{ApiCall, RequestBody};
use super::{Client, RemoteClient};
use crate::api::events::{EndEvent, EndReason, PrintedEvent, StatusEvent};
use crate::api::executions;
use crate::cli::event_printer::{OnEvent, RunEvent};
use crate::cli::exit::Exit;
use crate::cli::failure::{Failure, Result};
use crate::engine::Subscription;
use crate::execution::{Bookmark, Envelope, Reason, Stream, TranscriptEvent};
use crate::ids::ExecutionId;
use crate::limits;

/// Events of an embedded run, from the moment it is recorded.
#[derive(Debug)]
pub(super) struct RunEvents {
    watched: Option<oneshot::Receiver<Subscription>>,
    follow: Option<Subscription>,
}

impl RunEvents {
    pub(super) fn once(watched: oneshot::Receiver<Subscription>) -> Self {
        Self {
            watched: Some(watched),
            follow: None,
        }
    }

    /// The next event. Pending forever after the last one.
    pub(super) async fn next(&mut self) -> RunEvent {
        loop {
            if let Some(watched) = &mut self.watched {
                self.follow = watched.await.ok();
                self.watched = None;
            }
            let Some(follow) = &mut self.follow else {
                return std::future::pending().await;
            };
            match follow.next().await {
                Some(event) => {
                    if let Some(run_event) = run_event(follow, event) {
                        return run_event;
                    }
                }
                None => self.follow = None,
            }
        }
    }
}

/// Converts an engine event; `None` at the end of the stream.
fn run_event(follow: &Subscription, event: TranscriptEvent) -> Option<RunEvent> {
    match event {
        TranscriptEvent::Status(status) => {
            Some(RunEvent::Status(follow.id(), status, follow.queue_position()))
        }
        TranscriptEvent::Printed { stream, bytes } => Some(RunEvent::Printed(stream, bytes)),
        TranscriptEvent::Logged(line) => Some(RunEvent::Logged(line)),
        TranscriptEvent::Result(execution) => Some(RunEvent::Result(Box::new(Envelope::from_execution(
            &execution, None,
        )))),
        TranscriptEvent::End {
            reason: Reason::Finished | Reason::Shutdown,
            ..
        } => None,
    }
}

impl Client {
    /// Reports all events of an execution, from its beginning to its end.
    pub(crate) fn watch(&self, id: ExecutionId, on_event: &mut OnEvent<'_>) -> Result<()> {
        match self {
            Self::Embedded(local) => local.wait(async {
                let from = Bookmark::default();
                let subscription = executions::follow(local.engine(), local.caller(), id, from);
                let mut subscription = subscription.await?;
                while let Some(event) = subscription.next().await {
                    if let Some(run_event) = run_event(&subscription, event) {
                        on_event(run_event)?;
                    }
                }
                Ok(())
            }),
            Self::Remote(remote) => remote.watch_from(remote.events(id, "")?, Some(id), on_event),
        }
    }
}

impl RemoteClient {
    /// Runs something and reports its events. A server without event streams sends only the result.
    pub(super) fn run_with_events(
        &self,
        call: &ApiCall<'_>,
        sent: RequestBody,
        on_event: &mut OnEvent<'_>,
    ) -> Result<()> {
        let answer = self.send(call, sent)?;
        let kind = answer.headers().get("content-type");
        if kind.is_none_or(|kind| kind != EVENTS) {
            return on_event(RunEvent::Result(super::remote::read_json(answer)?));
        }
        self.watch_from(answer, None, on_event)
    }

    /// Reads an event stream to its end and resumes it when interrupted.
    fn watch_from(
        &self,
        answer: Response<Body>,
        mut id: Option<ExecutionId>,
        on_event: &mut OnEvent<'_>,
    ) -> Result<()> {
        let mut stream = EventStream::of(answer, String::new());
        let mut failures = 0;
        loop {
            let last = stream.last_id.clone();
            match stream.next()? {
                Some(event) => {
                    failures = 0;
                    match event.parse()? {
                        ParsedEvent::Run(run_event) => {
                            if let RunEvent::Status(of, ..) = &run_event {
                                id = Some(*of);
                            }
                            on_event(run_event)?;
                        }
                        ParsedEvent::End => return Ok(()),
                        ParsedEvent::Ignored => {}
                    }
                }
                None => {
                    let Some(id) = id.filter(|_| failures < limits::CLIENT_RECONNECTS_MAX) else {
                        return Err(broken());
                    };
                    failures += 1;
                    sleep(limits::EVENTS_RETRY);
                    stream = match self.events(id, &last) {
                        Ok(answer) => EventStream::of(answer, last),
                        Err(failure) if failure.exit() == Exit::Unavailable => EventStream::none(last),
                        Err(failure) => return Err(failure),
                    };
                }
            }
        }
    }

    fn events(&self, id: ExecutionId, last_id: &str) -> Result<Response<Body>> {
        let query = [("last_event_id", last_id.to_owned())];
        let path = format!("/v1/executions/{id}/events");
        self.call(&ApiCall {
            query: if last_id.is_empty() { &[] } else { &query },
            accept: EVENTS,
            ..ApiCall::new(Method::GET, &path)
        })
    }
}

/// The media type of a stream of events.
pub(super) const EVENTS: &str = "text/event-stream";

fn broken() -> Failure {
    Failure::new(
        Exit::Unavailable,
        "the server's event stream was interrupted and cannot be resumed; `skillbox exec list` shows the state of the execution",
    )
}

/// A stream of events that is read as it comes.
struct EventStream {
    reader: Option<BufReader<BodyReader<'static>>>,
    /// ID of the last complete event.
    last_id: String,
}

/// One event as received.
#[derive(Debug, Default, PartialEq)]
struct RawEvent {
    name: String,
    data: Vec<u8>,
}

enum ParsedEvent {
    Run(RunEvent),
    End,
    Ignored,
}

impl EventStream {
    fn of(answer: Response<Body>, last_id: String) -> Self {
        let reader = answer.into_body().into_with_config().limit(u64::MAX).reader();
        let reader = Some(BufReader::new(reader));
        Self { reader, last_id }
    }

    /// An interrupted stream.
    fn none(last_id: String) -> Self {
        let reader = None;
        Self { reader, last_id }
    }

    /// The next event; `None` where the stream ends or is interrupted.
    fn next(&mut self) -> Result<Option<RawEvent>> {
        match &mut self.reader {
            Some(reader) => read_event(reader, &mut self.last_id),
            None => Ok(None),
        }
    }
}

/// Reads one event, limited in size like every response.
fn read_event(reader: &mut impl BufRead, last_id: &mut String) -> Result<Option<RawEvent>> {
    let (mut event, mut id, mut left) = (RawEvent::default(), None, limits::ANSWER_BYTES_MAX);
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = reader.by_ref().take(left).read_until(b'\n', &mut line);
        left -= read.unwrap_or_default() as u64;
        if left == 0 {
            return Err(not_understood(&"it has no end"));
        }
        // An incomplete event is dropped.
        if line.pop() != Some(b'\n') {
            return Ok(None);
        }
        if line.is_empty() && !event.name.is_empty() {
            id.into_iter().for_each(|id| *last_id = id);
            return Ok(Some(event));
        }
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let value = line[colon..].strip_prefix(b":").unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match &line[..colon] {
            b"id" => id = Some(String::from_utf8_lossy(value).into_owned()),
            b"event" => event.name = String::from_utf8_lossy(value).into_owned(),
            b"data" => {
                event.data.extend_from_slice(value);
                event.data.push(b'\n');
            }
            _ => {}
        }
    }
}

impl RawEvent {
    fn parse(&self) -> Result<ParsedEvent> {
        Ok(match self.name.as_str() {
            "status" => {
                let StatusEvent {
                    execution_id,
                    status,
                    queue_position,
                } = self.read()?;
                ParsedEvent::Run(RunEvent::Status(execution_id, status, queue_position))
            }
            "stdout" => ParsedEvent::Run(self.printed(Stream::Stdout)?),
            "stderr" => ParsedEvent::Run(self.printed(Stream::Stderr)?),
            "log" => ParsedEvent::Run(RunEvent::Logged(self.read()?)),
            "result" => ParsedEvent::Run(RunEvent::Result(self.read()?)),
            "end" => match self.read::<EndEvent>()?.reason {
                EndReason::Finished => ParsedEvent::End,
                EndReason::Shutdown => ParsedEvent::Ignored,
            },
            // Of a newer server.
            _ => ParsedEvent::Ignored,
        })
    }

    fn printed(&self, stream: Stream) -> Result<RunEvent> {
        let bytes = self.read::<PrintedEvent>()?.into_bytes();
        bytes
            .map(|bytes| RunEvent::Printed(stream, bytes))
            .ok_or_else(|| not_understood(&"no base64"))
    }

    fn read<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_slice(&self.data).map_err(|error| not_understood(&error))
    }
}

fn not_understood(error: &dyn std::fmt::Display) -> Failure {
    let message = format!("cannot parse the server's event ({error}); does the server run another version?");
    Failure::new(Exit::Unavailable, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_events_and_drops_a_truncated_one() {
        let text = "retry: 1\n\n: still here\n\nid: 1-0-0-running\nevent: stdout\ndata: {\"text\":\ndata: \"a\"}\n\n\
                    id: 2-0-0-running\nevent:end\ndata:{}\n\nid: 3-0-0-running\nevent: stdout\ndata: {\"te";
        let (mut reader, mut id) = (text.as_bytes(), String::new());
        let mut next = || (read_event(&mut reader, &mut id).unwrap(), id.clone());
        let event = |name: &str, data: &[u8]| {
            let (name, data) = (name.to_owned(), data.to_vec());
            Some(RawEvent { name, data })
        };
        let first = event("stdout", b"{\"text\":\n\"a\"}\n");
        assert_eq!(next(), (first, "1-0-0-running".to_owned()));
        assert_eq!(next(), (event("end", b"{}\n"), "2-0-0-running".to_owned()));
        assert_eq!(next(), (None, "2-0-0-running".to_owned()));
    }
}
