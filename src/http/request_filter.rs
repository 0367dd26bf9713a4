//! Rejects requests with foreign host names, tunnels and encoded bodies before any handler.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::Response;

use super::MCP_PATH;
use super::host::Hosts;
use super::problem::ProblemResponse;
use crate::error::{Code, Error};

/// Checked host name and port of a request.
#[derive(Clone, Debug)]
pub(crate) struct RequestedHost(pub(crate) Authority);

pub(crate) async fn filter_request(
    State(hosts): State<Arc<Hosts>>,
    request: Request,
    next: Next,
) -> Result<Response, ProblemResponse> {
    let (mut parts, body) = request.into_parts();
    if parts.method == Method::CONNECT {
        let allow = HeaderValue::from_static("GET, HEAD, POST, DELETE");
        let error = Error::new(Code::MethodNotAllowed, "this server is not a proxy");
        return Err(ProblemResponse::from(error).with_header(header::ALLOW, allow));
    }
    let host = hosts.check(&parts).map_err(|error| rejected(&parts, error))?;
    refuse_encoding(&parts.headers)?;
    parts.extensions.insert(RequestedHost(host));
    Ok(next.run(Request::from_parts(parts, body)).await)
}

/// The transport of MCP answers a foreign name with 403.
fn rejected(parts: &Parts, error: Error) -> Error {
    let is_mcp = parts.uri.path() == MCP_PATH && error.code() == Code::Misdirected;
    if is_mcp {
        return Error::new(Code::Forbidden, error.to_string());
    }
    error
}

/// A compressed body could unpack to any size.
fn refuse_encoding(headers: &HeaderMap) -> Result<(), Error> {
    let plain = headers
        .get_all(header::CONTENT_ENCODING)
        .iter()
        .all(|value| value.as_bytes().eq_ignore_ascii_case(b"identity"));
    if plain {
        Ok(())
    } else {
        Err(Error::new(
            Code::UnsupportedMediaType,
            "`content-encoding` is not supported; send the body unencoded",
        ))
    }
}
