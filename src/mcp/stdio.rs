//! The stdio transport: one client, one message a line.

use rmcp::ServiceExt as _;
use rmcp::service::ServerInitializeError;
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio_util::sync::CancellationToken;

use super::{Handler, McpClient};
use crate::error::Error;
use crate::limits;

/// Answers messages on standard input until it is closed or `stop`. Nothing but messages goes to standard output.
pub async fn serve_stdio(client: McpClient, stop: CancellationToken) -> Result<(), Error> {
    let handler = Handler {
        client,
        arguments: None,
        cancel: None,
    };
    let line_max = usize::try_from(limits::MCP_BODY_BYTES_MAX).unwrap_or(usize::MAX);
    let transport =
        AsyncRwTransport::new(tokio::io::stdin(), tokio::io::stdout()).with_max_line_length(line_max);
    match handler.serve_with_ct(transport, stop).await {
        Ok(service) => service.waiting().await.map(drop).map_err(Error::internal),
        // The client left before its first request.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => Ok(()),
        Err(_) => Err(Error::invalid(
            "the client's first message is neither `initialize` nor a complete request of protocol 2026-07-28",
        )),
    }
}
