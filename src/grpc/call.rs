//! What a handler gets and gives: the call with its message, and messages within the memory budget.

use std::fmt::Display;
use std::str::FromStr;
use std::sync::Arc;

use prost::Message;
use tonic::{Request, Response, Status};

use super::receive::{Deadline, RequestShare, ResponseShare};
use super::status::failed;
use crate::api::page_request;
use crate::engine::PageRequest;
use crate::error::{Error, quoted};
use crate::http::{ApiState, Call};
use crate::limits;

/// An authorized call with its message.
pub(super) struct Received<T> {
    pub(super) call: Call,
    pub(super) message: T,
    pub(super) deadline: Option<Deadline>,
    /// Memory of the message.
    pub(super) held: Option<RequestShare>,
    pub(super) request_id: String,
}

impl<T> Received<T> {
    pub(super) fn new(state: &Arc<ApiState>, request: Request<T>) -> Result<Self, Status> {
        let (metadata, extensions, message) = request.into_parts();
        let id = metadata.get("x-request-id").and_then(|id| id.to_str().ok());
        Ok(Self {
            call: Call::of(state, &extensions).map_err(failed)?,
            message,
            deadline: extensions.get().copied(),
            held: extensions.get().cloned(),
            request_id: id.unwrap_or_default().to_owned(),
        })
    }
}

/// A response within the memory budget.
pub(super) fn respond<M: Message>(call: &Call, message: M) -> Result<Response<M>, Status> {
    let held = budgeted_bytes(&message).map(|bytes| call.state.answers.hold(call.tenant(), bytes));
    let held = held.transpose().map_err(failed)?;
    let mut response = Response::new(message);
    if let Some(held) = held {
        response.extensions_mut().insert(ResponseShare::from(held));
    }
    Ok(response)
}

/// As [`respond`], but never rejected, since the result of a finished execution must be sent.
pub(super) fn respond_always<M: Message>(call: &Call, message: M) -> Response<M> {
    let held = budgeted_bytes(&message).map(|bytes| call.state.answers.take(call.tenant(), bytes));
    let mut response = Response::new(message);
    if let Some(held) = held {
        response.extensions_mut().insert(ResponseShare::from(held));
    }
    response
}

/// The size, if it is large enough to be counted.
pub(super) fn budgeted_bytes(message: &impl Message) -> Option<u64> {
    let bytes = message.encoded_len() as u64;
    (bytes > limits::ANSWER_UNCOUNTED_BYTES_MAX).then_some(bytes)
}

/// Parses a field.
pub(super) fn field<T>(name: &str, text: &str) -> Result<T, Error>
where
    T: FromStr<Err: Display>,
{
    text.parse().map_err(|error| invalid(name, error))
}

/// Parses a field that may be absent.
pub(super) fn optional<T>(name: &str, text: Option<String>) -> Result<Option<T>, Error>
where
    T: FromStr<Err: Display>,
{
    text.map(|text| field(name, &text)).transpose()
}

/// Parses each value of a field.
pub(super) fn each<T>(name: &str, texts: &[String]) -> Result<Vec<T>, Error>
where
    T: FromStr<Err: Display>,
{
    let mut parsed = Vec::with_capacity(texts.len());
    for (index, text) in texts.iter().enumerate() {
        parsed.push(field(&format!("{name}[{index}]"), text)?);
    }
    Ok(parsed)
}

/// The default for an empty text.
pub(super) fn or_default<T>(name: &str, text: &str) -> Result<T, Error>
where
    T: FromStr<Err: Display> + Default,
{
    if text.is_empty() {
        Ok(T::default())
    } else {
        field(name, text)
    }
}

pub(super) fn invalid(name: &str, error: impl Display) -> Error {
    Error::invalid(format!("{name}: {error}"))
}

/// A number that the schema does not name.
pub(super) fn unknown(name: &str, number: i32) -> Error {
    Error::invalid(format!("{name}: {number} is none of its values"))
}

/// A text that is none of the known ones.
pub(super) fn unknown_text(name: &str, text: &str) -> Error {
    Error::invalid(format!("{name}: {} is none of its values", quoted(text)))
}

pub(super) fn page(page_size: u32, page_token: &str) -> Result<PageRequest, Error> {
    let rows = (page_size != 0).then(|| page_size.to_string());
    let token = (!page_token.is_empty()).then_some(page_token);
    page_request(rows.as_deref(), token)
}
