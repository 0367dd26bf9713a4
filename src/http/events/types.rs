//! One event as it stands in a stream of server-sent events.

use axum::body::Bytes;
use base64::Engine as _;
use serde::{Deserialize, Serialize};

use crate::execution::{Bookmark, LogLine, Reason, Status, Stream};
use crate::ids::ExecutionId;

/// Event `status`: where the execution stands. The first of each stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct StatusEvent {
    /// Which execution.
    #[schema(value_type = String, format = Uuid)]
    pub execution_id: ExecutionId,
    /// Where it stands.
    pub status: Status,
    /// Its place in its tenant's line while it waits for its turn, 1 for the next one; else `null`.
    #[schema(required, minimum = 1)]
    pub queue_position: Option<usize>,
}

/// Events `stdout` and `stderr`: a piece of what the program printed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PrintedEvent {
    /// As text: what is not UTF-8 is shown as U+FFFD. No character is cut between two pieces.
    pub text: String,
    /// The same as bytes, in base64, where they are no UTF-8; else it is not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
}

/// Event `end`: the last of each stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct EndEvent {
    /// Where the execution stands.
    pub status: Status,
    /// Why there is no more.
    pub reason: EndReason,
}

/// Why a stream of events has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum EndReason {
    /// The execution has ended and all events were sent.
    Finished,
    /// The server stops. Reconnect with the last id to receive the remaining events.
    Shutdown,
}

impl From<Reason> for EndReason {
    fn from(reason: Reason) -> Self {
        match reason {
            Reason::Finished => Self::Finished,
            Reason::Shutdown => Self::Shutdown,
        }
    }
}

impl PrintedEvent {
    /// The event for these bytes.
    pub(super) fn of(bytes: Vec<u8>) -> Self {
        match String::from_utf8(bytes) {
            Ok(text) => Self { text, base64: None },
            Err(error) => Self {
                text: String::from_utf8_lossy(error.as_bytes()).into_owned(),
                base64: Some(base64::engine::general_purpose::STANDARD.encode(error.as_bytes())),
            },
        }
    }

    /// What the program printed; `None` where the event is not understood.
    #[must_use]
    pub fn into_bytes(self) -> Option<Vec<u8>> {
        match self.base64 {
            None => Some(self.text.into_bytes()),
            Some(text) => base64::engine::general_purpose::STANDARD.decode(text).ok(),
        }
    }
}

/// The name of an event.
#[derive(Clone, Copy, Debug)]
pub(super) enum EventName {
    Status,
    Printed(Stream),
    Log,
    Result,
    End,
}

impl EventName {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Printed(Stream::Stdout) => "stdout",
            Self::Printed(Stream::Stderr) => "stderr",
            Self::Log => "log",
            Self::Result => "result",
            Self::End => "end",
        }
    }
}

/// An event with a value of ours.
pub(super) fn event(id: Bookmark, name: EventName, value: &impl Serialize) -> Bytes {
    let data = serde_json::to_vec(value).expect("texts and numbers always serialize");
    encode_event(id, name, &data).into()
}

/// An event with JSON as it is. Line breaks between its tokens become lines of data.
pub(super) fn encode_event(id: Bookmark, name: EventName, data: &[u8]) -> Vec<u8> {
    let mut event = Vec::with_capacity(data.len() + 96);
    event.extend_from_slice(format!("id: {id}\nevent: {}\n", name.as_str()).as_bytes());
    for line in data.split(|byte| matches!(byte, b'\n' | b'\r')) {
        event.extend_from_slice(b"data: ");
        event.extend_from_slice(line);
        event.push(b'\n');
    }
    event.push(b'\n');
    event
}

/// For the document: what each event of a stream carries as `data`, by its name.
#[derive(utoipa::ToSchema)]
#[expect(dead_code, reason = "for the document only")]
#[schema(title = "Events")]
pub(crate) struct Events {
    status: StatusEvent,
    stdout: PrintedEvent,
    stderr: PrintedEvent,
    log: LogLine,
    result: crate::execution::Envelope,
    end: EndEvent,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// O-18: whatever is told, it is one event.
    #[test]
    fn nothing_in_an_event_begins_another() {
        let printed = PrintedEvent::of(b"a\n\nevent: end\ndata: {}\r\n\r\n".to_vec());
        let text = event(Bookmark::default(), EventName::Printed(Stream::Stdout), &printed);
        let text = String::from_utf8(text.to_vec()).unwrap();
        assert_eq!(
            text,
            "id: 0-0-0-start\nevent: stdout\ndata: {\"text\":\"a\\n\\nevent: end\\ndata: {}\\r\\n\\r\\n\"}\n\n"
        );
        let result = encode_event(
            Bookmark::default(),
            EventName::Result,
            b"{\"output\":\n\r[1,\r\n2]}",
        );
        assert_eq!(
            String::from_utf8(result).unwrap(),
            "id: 0-0-0-start\nevent: result\ndata: {\"output\":\ndata: \ndata: [1,\ndata: \ndata: 2]}\n\n"
        );
    }

    #[test]
    fn what_is_printed_comes_as_text_and_where_it_is_none_as_bytes_too() {
        for bytes in [&b"plain \xc3\xbc"[..], b"\xff\x00a", b""] {
            let event = PrintedEvent::of(bytes.to_vec());
            assert_eq!(event.base64.is_some(), std::str::from_utf8(bytes).is_err());
            assert_eq!(event.text, String::from_utf8_lossy(bytes));
            assert_eq!(event.into_bytes().unwrap(), bytes);
        }
    }
}
