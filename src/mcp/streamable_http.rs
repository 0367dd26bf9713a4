//! One message of the Streamable HTTP transport, without sessions: each request is complete by itself.

use std::convert::Infallible;
use std::sync::Arc;

use http_body_util::Full;
use http_body_util::combinators::BoxBody;
use hyper::body::Bytes;
use hyper::{Request, Response};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use super::running::CancelHandle;
use super::{CallId, Handler, McpClient, Message, RunningCalls};
use crate::limits;

impl Handler {
    fn of_message(client: McpClient, message: Message, cancel: Option<CancelHandle>) -> Self {
        Self {
            client,
            arguments: message.arguments,
            cancel,
        }
    }
}

/// Answers a message whose host, origin, caller and size the server has checked. `id` lets another message cancel it.
pub async fn answer(
    client: McpClient,
    message: Message,
    request: Request<Full<Bytes>>,
    running: &RunningCalls,
    id: Option<CallId>,
) -> Response<BoxBody<Bytes, Infallible>> {
    let cancel = id.and_then(|id| running.begin(id));
    let handler = Handler::of_message(client, message, cancel);
    let body_max = usize::try_from(limits::MCP_BODY_BYTES_MAX).unwrap_or(usize::MAX);
    let config = StreamableHttpServerConfig::default()
        .disable_allowed_hosts()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_sse_keep_alive(Some(limits::EVENTS_KEEP_ALIVE))
        .with_sse_retry(None)
        .with_max_request_body_bytes(body_max);
    let sessions = Arc::new(NeverSessionManager::default());
    StreamableHttpService::new(move || Ok(handler.clone()), sessions, config)
        .handle(request)
        .await
}
