//! The events of an execution.

use base64::Engine as _;
use serde::{Deserialize, Serialize};

use crate::execution::{Reason, Status};
use crate::ids::ExecutionId;

/// Event `status`: the state of the execution. The first event of each stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct StatusEvent {
    #[schema(value_type = String, format = Uuid)]
    pub execution_id: ExecutionId,
    pub status: Status,
    /// Position in the tenant's queue, 1 for the next; `null` if it is not queued.
    #[schema(required, minimum = 1)]
    pub queue_position: Option<usize>,
}

/// Events `stdout` and `stderr`: a piece of the program's output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PrintedEvent {
    /// Text; invalid UTF-8 is shown as U+FFFD. No character is split between two pieces.
    pub text: String,
    /// The bytes in base64, if they are not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
}

/// Event `end`: the last of each stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct EndEvent {
    pub status: Status,
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
    pub fn of(bytes: Vec<u8>) -> Self {
        match String::from_utf8(bytes) {
            Ok(text) => Self { text, base64: None },
            Err(error) => Self {
                text: String::from_utf8_lossy(error.as_bytes()).into_owned(),
                base64: Some(base64::engine::general_purpose::STANDARD.encode(error.as_bytes())),
            },
        }
    }

    /// The bytes; `None` if the base64 is invalid.
    #[must_use]
    pub fn into_bytes(self) -> Option<Vec<u8>> {
        match self.base64 {
            None => Some(self.text.into_bytes()),
            Some(text) => base64::engine::general_purpose::STANDARD.decode(text).ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds_base64_to_output_that_is_not_utf8() {
        for bytes in [&b"plain \xc3\xbc"[..], b"\xff\x00a", b""] {
            let event = PrintedEvent::of(bytes.to_vec());
            assert_eq!(event.base64.is_some(), std::str::from_utf8(bytes).is_err());
            assert_eq!(event.text, String::from_utf8_lossy(bytes));
            assert_eq!(event.into_bytes().unwrap(), bytes);
        }
    }
}
