//! The parts of a JSON-RPC message that a transport must know before the message is handled.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::execution::check_depth;
use crate::limits;

/// One JSON-RPC message.
#[derive(Debug)]
pub struct Message {
    pub kind: MessageKind,
    /// The JSON of its id; `None` for a notification.
    pub id: Option<String>,
    /// Arguments of a tool call.
    pub(super) arguments: Option<Box<RawValue>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageKind {
    Initialize,
    /// `streams` if the client asked for progress, `reads` if the tool reads a file.
    ToolCall {
        streams: bool,
        reads: bool,
    },
    /// Reads a resource.
    Read,
    /// Cancels the request with this id, as JSON.
    Cancelled {
        request: String,
    },
    Other,
}

#[derive(Deserialize)]
struct Envelope {
    method: Option<String>,
    id: Option<Box<RawValue>>,
    params: Option<Params>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Params {
    request_id: Option<Box<RawValue>>,
    /// A text, or whatever else the protocol's library will reject.
    name: Option<serde_json::Value>,
    arguments: Option<Box<RawValue>>,
    #[serde(rename = "_meta")]
    meta: Option<Meta>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Meta {
    progress_token: Option<serde::de::IgnoredAny>,
}

impl Message {
    /// Reads one message. The error is for the client.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        // A message adds some levels to the nesting of the arguments.
        check_depth(bytes, limits::JSON_DEPTH_MAX + MESSAGE_DEPTH).map_err(|error| error.to_string())?;
        if bytes.trim_ascii_start().starts_with(b"[") {
            return Err("batches are not supported; send one message for each request".to_owned());
        }
        let read: Envelope = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        let params = read.params.unwrap_or_default();
        let json = |raw: Box<RawValue>| raw.get().to_owned();
        let kind = match (read.method.as_deref(), params.request_id) {
            (Some("initialize"), _) => MessageKind::Initialize,
            (Some("tools/call"), _) => MessageKind::ToolCall {
                streams: params.meta.is_some_and(|meta| meta.progress_token.is_some()),
                reads: params.name.is_some_and(|name| name == "read_file"),
            },
            (Some("resources/read"), _) => MessageKind::Read,
            (Some("notifications/cancelled"), Some(request)) => MessageKind::Cancelled {
                request: json(request),
            },
            _ => MessageKind::Other,
        };
        Ok(Self {
            kind,
            id: read.id.map(json),
            arguments: params.arguments,
        })
    }
}

/// `params` and `arguments` of a message.
const MESSAGE_DEPTH: usize = 4;

/// The answer to a message that cannot be read.
#[must_use]
pub fn rejection(reason: &str) -> Value {
    let reason: String = reason.chars().take(limits::DETAIL_CHARS_MAX).collect();
    let code = -32700;
    json!({ "jsonrpc": "2.0", "id": null, "error": { "code": code, "message": format!("not a JSON-RPC message: {reason}") } })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> MessageKind {
        Message::read(text.as_bytes()).unwrap().kind
    }

    #[test]
    fn recognizes_the_messages_that_a_transport_handles() {
        assert_eq!(
            kind("{\"method\": \"initialize\", \"id\": 1}"),
            MessageKind::Initialize
        );
        assert_eq!(
            kind("{\"method\": \"tools/list\", \"id\": 1}"),
            MessageKind::Other
        );
        assert_eq!(kind("{\"id\": 1, \"result\": {}}"), MessageKind::Other);
        let cancelled = "{\"method\": \"notifications/cancelled\", \"params\": {\"requestId\": \"a\"}}";
        let request = "\"a\"".to_owned();
        assert_eq!(kind(cancelled), MessageKind::Cancelled { request });
        let call = "{\"method\": \"tools/call\", \"id\": 7, \"params\": {\"_meta\": {\"progressToken\": 0}, \"arguments\": {\"n\": 1.10}}}";
        let call = Message::read(call.as_bytes()).unwrap();
        assert_eq!(
            call.kind,
            MessageKind::ToolCall {
                streams: true,
                reads: false
            }
        );
        let read = "{\"method\": \"tools/call\", \"id\": 7, \"params\": {\"name\": \"read_file\"}}";
        assert_eq!(
            kind(read),
            MessageKind::ToolCall {
                streams: false,
                reads: true
            }
        );
        assert_eq!(
            kind("{\"method\": \"resources/read\", \"id\": 1}"),
            MessageKind::Read
        );
        assert_eq!(call.id.as_deref(), Some("7"));
        assert_eq!(call.arguments.unwrap().get(), "{\"n\": 1.10}");
    }

    ///
    #[test]
    fn rejects_batches_deep_nesting_and_what_is_no_json() {
        let deep = "[".repeat(100_000);
        for wrong in ["[]", "{", "null", "\u{fffd}", deep.as_str()] {
            assert!(Message::read(wrong.as_bytes()).is_err(), "{wrong:.20}");
        }
    }
}
