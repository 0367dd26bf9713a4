//! Receives a call: its deadline, the size of its message, and the memory of both directions.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::Response;
use http_body_util::BodyExt as _;
use tokio::time::{Instant, timeout_at};
use tonic::Status;

use super::RestApi;
use super::methods::{RequestForm, method};
use super::status::reason;
use crate::error::{Code, Error};
use crate::http::{ApiState, BudgetShare, FileTenant, ProblemResponse, RequestedHost, read_body};
use crate::ids::Tenant;
use crate::limits;

#[derive(Clone, Debug)]
pub(super) struct Receiver {
    pub(super) state: Arc<ApiState>,
    pub(super) rest: RestApi,
}

/// When the client stops waiting, if it has a deadline.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline(pub(super) Instant);

/// Memory of the request.
#[derive(Clone, Debug)]
pub(super) struct RequestShare {
    _held: Arc<BudgetShare>,
}

/// Memory of the response, in its extensions.
#[derive(Clone, Debug)]
pub(super) struct ResponseShare {
    _held: Arc<BudgetShare>,
}

impl From<BudgetShare> for ResponseShare {
    fn from(held: BudgetShare) -> Self {
        let _held = Arc::new(held);
        Self { _held }
    }
}

pub(super) async fn receive(
    State(receiver): State<Receiver>,
    path: MatchedPath,
    mut request: Request,
    next: Next,
) -> Result<Response, ProblemResponse> {
    let method = method(path.as_str()).ok_or_else(|| Error::internal("a route without a method"))?;
    check_content_type(request.headers())?;
    receiver.point_links_to_rest(&mut request)?;
    let deadline = deadline(request.headers())?.map(|wait| Instant::now() + wait);
    if let Some(deadline) = deadline {
        request.extensions_mut().insert(Deadline(deadline));
    }
    let work = async {
        let request = match method.request {
            RequestForm::Message { bytes_max } => receiver.message(request, bytes_max).await?,
            RequestForm::Stream => request,
        };
        let response = next.run(request).await;
        match reason(&response) {
            Some(error) => Err(ProblemResponse::from(error)),
            None => Ok(hold_until_sent(response)),
        }
    };
    match deadline {
        None => work.await,
        // Dropping the handler is what a disconnect does: `on_disconnect` decides about the execution.
        Some(deadline) => timeout_at(deadline, work)
            .await
            .unwrap_or_else(|_| Ok(deadline_exceeded().into_http())),
    }
}

pub(super) fn deadline_exceeded() -> Status {
    Status::deadline_exceeded("the deadline of the call has passed")
}

impl Receiver {
    /// Links of results are served by the REST API.
    fn point_links_to_rest(&self, request: &mut Request) -> Result<(), Error> {
        let RestApi::AtPort(port) = self.rest else {
            return Ok(());
        };
        if let Some(RequestedHost(host)) = request.extensions_mut().get_mut::<RequestedHost>() {
            *host = Authority::try_from(format!("{}:{port}", host.host())).map_err(Error::internal)?;
        }
        Ok(())
    }

    /// Reads the whole message within the memory budget of its tenant.
    async fn message(&self, request: Request, bytes_max: u64) -> Result<Request, Error> {
        let (mut parts, body) = request.into_parts();
        let tenant = parts.extensions.get::<FileTenant>();
        let tenant = tenant.map_or_else(Tenant::default_tenant, |FileTenant(tenant)| tenant.clone());
        let mut held = self.state.bodies.hold(&tenant, 0)?;
        let bytes = read_body(body, bytes_max + FRAME_BYTES as u64, &mut held).await?;
        check_frame(&bytes)?;
        parts.extensions.insert(RequestShare {
            _held: Arc::new(held),
        });
        Ok(Request::from_parts(parts, Body::from(bytes)))
    }
}

/// A flag for compression and the length of the message.
const FRAME_BYTES: usize = 5;

/// Exactly one message. A compressed one could unpack to any size.
fn check_frame(bytes: &[u8]) -> Result<(), Error> {
    let wrong = |what: &str| {
        Err(Error::invalid(format!(
            "the request: {what}; send exactly one message"
        )))
    };
    let Some(([flag, length @ ..], message)) = bytes.split_first_chunk::<FRAME_BYTES>() else {
        return wrong("incomplete");
    };
    if *flag != 0 {
        let message = "grpc-encoding: not supported; send messages without compression";
        return Err(Error::new(Code::UnsupportedMediaType, message));
    }
    let length = u32::from_be_bytes(*length) as usize;
    match message.len().cmp(&length) {
        std::cmp::Ordering::Less => wrong("incomplete"),
        std::cmp::Ordering::Equal => Ok(()),
        std::cmp::Ordering::Greater => wrong("more than one message"),
    }
}

fn check_content_type(headers: &HeaderMap) -> Result<(), Error> {
    let kind = headers.get(header::CONTENT_TYPE).map(|value| value.as_bytes());
    match kind {
        Some(b"application/grpc" | b"application/grpc+proto") => Ok(()),
        _ => Err(Error::new(
            Code::UnsupportedMediaType,
            "content-type: must be `application/grpc`",
        )),
    }
}

/// `grpc-timeout`: up to eight digits and a unit.
fn deadline(headers: &HeaderMap) -> Result<Option<Duration>, Error> {
    let Some(value) = headers.get("grpc-timeout") else {
        return Ok(None);
    };
    let parsed = value.to_str().ok().and_then(|text| {
        let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
        let is_number = (1..=8).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
        let count: u64 = digits.parse().ok().filter(|_| is_number)?;
        Some(match unit {
            "H" => Duration::from_secs(count * 3600),
            "M" => Duration::from_secs(count * 60),
            "S" => Duration::from_secs(count),
            "m" => Duration::from_millis(count),
            "u" => Duration::from_micros(count),
            "n" => Duration::from_nanos(count),
            _ => return None,
        })
    });
    let wait = parsed.ok_or_else(|| Error::invalid("grpc-timeout: not digits and a unit, such as `30S`"))?;
    Ok(Some(wait.min(limits::GRPC_DEADLINE_MAX)))
}

/// Releases the memory of the response when the client has read it.
fn hold_until_sent(mut response: Response) -> Response {
    match response.extensions_mut().remove::<ResponseShare>() {
        None => response,
        Some(share) => response.map(|body| {
            Body::new(body.map_frame(move |frame| {
                let _held = &share;
                frame
            }))
        }),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn reads_deadlines() {
        let read = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("grpc-timeout", HeaderValue::from_str(text).unwrap());
            deadline(&headers)
                .map(Option::unwrap)
                .map_err(|error| error.code())
        };
        assert_eq!(read("1500m"), Ok(Duration::from_millis(1500)));
        assert_eq!(read("2S"), Ok(Duration::from_secs(2)));
        assert_eq!(read("99999999H"), Ok(limits::GRPC_DEADLINE_MAX));
        assert_eq!(read("0n"), Ok(Duration::ZERO));
        for wrong in ["", "S", "1", "1s", "-1S", "+1S", "123456789S", "1.5S", "1 S"] {
            assert_eq!(read(wrong), Err(Code::Invalid), "{wrong:?}");
        }
        assert_eq!(deadline(&HeaderMap::new()).unwrap(), None);
    }

    ///
    #[test]
    fn accepts_exactly_one_uncompressed_message() {
        let code = |bytes: &[u8]| check_frame(bytes).map_err(|error| error.code());
        assert_eq!(code(b"\0\0\0\0\0"), Ok(()));
        assert_eq!(code(b"\0\0\0\0\x02ab"), Ok(()));
        assert_eq!(code(b"\x01\0\0\0\x02ab"), Err(Code::UnsupportedMediaType));
        for wrong in [
            &b""[..],
            b"\0\0\0",
            b"\0\0\0\0\x02a",
            b"\0\xff\xff\xff\xffa",
            b"\0\0\0\0\x02abc",
        ] {
            assert_eq!(code(wrong), Err(Code::Invalid), "{wrong:?}");
        }
    }
}
