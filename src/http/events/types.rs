//! Encoding of server-sent events.

use std::fmt::Display;

use axum::body::Bytes;
use serde::Serialize;

use crate::api::events::{EndEvent, PrintedEvent, StatusEvent};
use crate::execution::{Bookmark, LogLine, Stream};

#[derive(Clone, Copy, Debug)]
pub(super) enum EventName {
    Status,
    Printed(Stream),
    Log,
    Result,
    End,
}

impl EventName {
    pub(super) const fn as_str(self) -> &'static str {
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

pub(super) fn event(id: Bookmark, name: EventName, value: &impl Serialize) -> Bytes {
    let data = serde_json::to_vec(value).expect("texts and numbers always serialize");
    encode_event(id, name.as_str(), &data).into()
}

/// Encodes an event with JSON text. Line breaks between its tokens become lines of data.
pub(crate) fn encode_event(id: impl Display, name: &'static str, data: &[u8]) -> Vec<u8> {
    let mut event = Vec::with_capacity(data.len() + 96);
    event.extend_from_slice(format!("id: {id}\nevent: {name}\n").as_bytes());
    for line in data.split(|byte| matches!(byte, b'\n' | b'\r')) {
        event.extend_from_slice(b"data: ");
        event.extend_from_slice(line);
        event.push(b'\n');
    }
    event.push(b'\n');
    event
}

/// Schema of the `data` of each event, by its name.
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

    /// O-18: output cannot start another event.
    #[test]
    fn escapes_line_breaks_in_events() {
        let printed = PrintedEvent::of(b"a\n\nevent: end\ndata: {}\r\n\r\n".to_vec());
        let text = event(Bookmark::default(), EventName::Printed(Stream::Stdout), &printed);
        let text = String::from_utf8(text.to_vec()).unwrap();
        assert_eq!(
            text,
            "id: 0-0-0-start\nevent: stdout\ndata: {\"text\":\"a\\n\\nevent: end\\ndata: {}\\r\\n\\r\\n\"}\n\n"
        );
        let result = encode_event(
            Bookmark::default(),
            EventName::Result.as_str(),
            b"{\"output\":\n\r[1,\r\n2]}",
        );
        assert_eq!(
            String::from_utf8(result).unwrap(),
            "id: 0-0-0-start\nevent: result\ndata: {\"output\":\ndata: \ndata: [1,\ndata: \ndata: 2]}\n\n"
        );
    }
}
