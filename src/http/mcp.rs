//! `/mcp`: the Streamable HTTP transport of the Model Context Protocol. Checks and limits a request as any other.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, post};
use futures::StreamExt as _;
use http_body_util::Full;
use serde::Deserialize;

use super::authorization::Call;
use super::body;
use super::extract::{Query, is_json};
use super::links::links;
use super::problem::ProblemResponse;
use super::response;
use super::session::{OriginRule, check_origin};
use super::state::ApiState;
use crate::api::words;
use crate::error::{Code, Error};
use crate::limits;
use crate::mcp::{CallId, LinkMaker, McpClient, Message, MessageKind, answer, rejection};
use crate::skill::SkillName;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

pub(crate) fn route() -> MethodRouter<Arc<ApiState>> {
    post(handle)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct McpQuery {
    /// Skills that are always offered as tools.
    #[serde(default, deserialize_with = "words")]
    skills: BTreeSet<SkillName>,
}

async fn handle(
    call: Call,
    Query(query): Query<McpQuery>,
    request: Request,
) -> Result<Response, ProblemResponse> {
    let (mut parts, body) = request.into_parts();
    check(&call, &parts.headers)?;
    let mut held = call.state.bodies.hold(call.tenant(), 0)?;
    let bytes = body::read(body, limits::MCP_BODY_BYTES_MAX, &mut held).await?;
    let message = match Message::read(&bytes) {
        Ok(message) => message,
        Err(reason) => return Ok((StatusCode::BAD_REQUEST, axum::Json(rejection(&reason))).into_response()),
    };
    let id = |request: &str| call_id(&call, &parts.headers, request);
    if let MessageKind::Cancelled { request } = &message.kind {
        if let Some(id) = id(request) {
            call.state.mcp_calls.cancel(&id);
        }
        return Ok(StatusCode::ACCEPTED.into_response());
    }
    let mut permit = None;
    let reads = matches!(
        message.kind,
        MessageKind::Read | MessageKind::ToolCall { reads: true, .. }
    );
    // What is read exists several times, as bytes and as text, until the response is complete.
    let reading = reads.then(|| {
        call.state
            .answers
            .hold(call.tenant(), limits::MCP_READ_BYTES_HELD)
    });
    let reading = reading.transpose()?;
    if let MessageKind::ToolCall { streams, .. } = message.kind {
        // Reject before the run if memory for the response is exhausted.
        drop(call.state.answers.hold(call.tenant(), limits::ANSWER_BYTES_MAX)?);
        permit = streams
            .then(|| call.state.stream_permit(call.tenant()))
            .transpose()?;
    }
    let id = message.id.as_deref().and_then(id);
    let is_initialize = message.kind == MessageKind::Initialize;
    let client = client(&call, &parts.headers, query.skills);
    // The authorization must not reach the protocol's library.
    parts.headers.remove(header::AUTHORIZATION);
    let request = Request::from_parts(parts, Full::new(Bytes::from(bytes)));
    let answered = answer(client, message, request, &call.state.mcp_calls, id).await;
    let (mut parts, body) = answered.into_parts();
    if is_initialize {
        parts.headers.insert(SESSION, new_session()?);
    }
    let body = match axum::body::HttpBody::size_hint(&body).exact() {
        Some(_) => {
            let bytes = axum::body::to_bytes(Body::new(body), usize::MAX).await;
            drop((held, reading));
            response::body_always(
                &call.state.answers,
                call.tenant(),
                bytes.map_err(Error::internal)?.into(),
            )
        }
        None => Body::from_stream(Body::new(body).into_data_stream().map(move |piece| {
            let _ = (&permit, &held, &reading);
            piece
        })),
    };
    Ok(Response::from_parts(parts, body))
}

/// Pages of other sites must not call tools with the browser's network; a client needs no browser.
fn check(call: &Call, headers: &HeaderMap) -> Result<(), Error> {
    check_origin(headers, call.state.server_url(), &call.host.0, OriginRule::IfSent)?;
    if !is_json(headers) {
        let message = "send the message as `content-type: application/json`, in UTF-8";
        return Err(Error::new(Code::UnsupportedMediaType, message));
    }
    let accepted = |media: &str| {
        let lines = headers.get_all(header::ACCEPT).iter();
        let mut ranges = lines
            .filter_map(|line| line.to_str().ok())
            .flat_map(|line| line.split(','));
        ranges.any(|range| {
            range
                .split(';')
                .next()
                .is_some_and(|range| range.trim().eq_ignore_ascii_case(media))
        })
    };
    if accepted("application/json") && accepted("text/event-stream") {
        return Ok(());
    }
    Err(Error::invalid(
        "Accept: send `application/json, text/event-stream`, as the protocol requires",
    ))
}

fn client(call: &Call, headers: &HeaderMap, pinned: BTreeSet<SkillName>) -> McpClient {
    let request_id = headers.get(REQUEST_ID).and_then(|id| id.to_str().ok());
    McpClient {
        engine: call.engine().clone(),
        caller: call.caller.clone(),
        links: Some(LinkMaker {
            base_url: call.state.base_url(&call.host.0),
            make: links,
        }),
        request_id: request_id.unwrap_or_default().to_owned(),
        pinned,
    }
}

/// Names the call for a later message of the same client; `None` for a client without a session id.
fn call_id(call: &Call, headers: &HeaderMap, request: &str) -> Option<CallId> {
    let session = headers.get(SESSION)?.to_str().ok()?;
    let fits = |text: &str| (1..=limits::MCP_ID_CHARS_MAX).contains(&text.len());
    (fits(session) && fits(request)).then(|| CallId {
        key: call.caller.key(),
        session: session.to_owned(),
        request: request.to_owned(),
    })
}

/// An id that the server does not store: it only distinguishes the requests of clients with the same key.
fn new_session() -> Result<HeaderValue, Error> {
    HeaderValue::try_from(uuid::Uuid::now_v7().to_string()).map_err(Error::internal)
}
