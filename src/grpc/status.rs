//! Errors as statuses of gRPC, with our problem in their details.

use std::sync::Arc;

use axum::response::Response;
use prost::Message as _;
use tonic::Status;

use super::proto;
use crate::api::Problem;
use crate::error::{Code, Error, Fault};
use crate::limits;

/// The status of each code.
const fn code(code: Code) -> tonic::Code {
    match code {
        Code::Invalid => tonic::Code::InvalidArgument,
        Code::Unauthenticated => tonic::Code::Unauthenticated,
        Code::Forbidden => tonic::Code::PermissionDenied,
        Code::NotFound => tonic::Code::NotFound,
        Code::MethodNotAllowed | Code::UnsupportedMediaType => tonic::Code::Unimplemented,
        Code::Conflict | Code::KeyReused => tonic::Code::AlreadyExists,
        Code::TooLarge | Code::RateLimited | Code::StorageFull => tonic::Code::ResourceExhausted,
        Code::RangeNotSatisfiable => tonic::Code::OutOfRange,
        Code::Misdirected | Code::DependenciesFailed => tonic::Code::FailedPrecondition,
        // Nothing ran, so clients may retry.
        Code::RequestTimeout | Code::Busy | Code::SandboxUnavailable => tonic::Code::Unavailable,
        Code::Internal => tonic::Code::Internal,
    }
}

/// The error of a status, for the layers outside of the handlers, which know the request id and log.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct StatusSource(Arc<Error>);

/// The status of a handler. Its details are added by [`render`].
pub(super) fn failed(error: impl Into<Arc<Error>>) -> Status {
    let error = error.into();
    let mut status = Status::new(code(error.code()), error.public_message());
    status.set_source(Arc::new(StatusSource(error)));
    status
}

/// The error of a response: a handler's, or one for a status of the framework.
pub(super) fn reason(response: &Response) -> Option<Arc<Error>> {
    let status = response.extensions().get::<Status>()?;
    if status.code() == tonic::Code::Ok {
        return None;
    }
    let source = std::error::Error::source(status).and_then(|source| source.downcast_ref());
    Some(match source {
        Some(StatusSource(error)) => Arc::clone(error),
        None => Arc::new(framework_error(status)),
    })
}

/// The framework rejects only what it cannot read.
pub(super) fn framework_error(status: &Status) -> Error {
    match status.code() {
        tonic::Code::Unimplemented => Error::new(
            Code::UnsupportedMediaType,
            "grpc-encoding: not supported; send messages without compression",
        ),
        tonic::Code::OutOfRange => Error::new(
            Code::TooLarge,
            format!(
                "the message is too large; the limit is {} bytes",
                limits::GRPC_CHUNK_BYTES_MAX
            ),
        ),
        _ => {
            Error::invalid("the request is no message of this method; see /proto/skillbox/v1/skillbox.proto")
        }
    }
}

/// A response without messages.
pub(super) fn render(_replaced: Response, error: &Error, request_id: &str) -> Response {
    detailed(error, request_id).into_http()
}

/// A status with `google.rpc.Status` as its details.
pub(super) fn detailed(error: &Error, request_id: &str) -> Status {
    let code = code(error.code());
    let message = start(error.public_message(), limits::GRPC_MESSAGE_BYTES_MAX);
    let details = RpcStatus {
        code: code.into(),
        message: message.to_owned(),
        details: vec![Any {
            type_url: "type.googleapis.com/skillbox.v1.Problem".to_owned(),
            value: problem(Problem::new(error, request_id)).encode_to_vec(),
        }],
    };
    Status::with_details(code, message, details.encode_to_vec().into())
}

/// Limited, because clients limit the size of metadata.
fn problem(problem: Problem) -> proto::Problem {
    let mut left = limits::GRPC_FAULTS_BYTES_MAX;
    let mut fits = |fault: &Fault| {
        let rest = left.checked_sub(fault.pointer.len() + fault.message.len());
        left = rest.unwrap_or(0);
        rest.is_some()
    };
    proto::Problem {
        code: problem.code,
        status: problem.status.into(),
        title: problem.title,
        detail: start(&problem.detail, limits::GRPC_DETAIL_BYTES_MAX).to_owned(),
        request_id: problem.request_id,
        retryable: problem.retryable,
        retry_after: problem.retry_after,
        errors: problem
            .errors
            .into_iter()
            .take_while(|fault| fits(fault))
            .map(|Fault { pointer, message }| proto::Fault { pointer, message })
            .collect(),
    }
}

fn start(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}

/// `google.rpc.Status`.
#[derive(Clone, PartialEq, prost::Message)]
struct RpcStatus {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
    #[prost(message, repeated, tag = "3")]
    details: Vec<Any>,
}

/// `google.protobuf.Any`.
#[derive(Clone, PartialEq, prost::Message)]
struct Any {
    #[prost(string, tag = "1")]
    type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_contain_the_problem_of_every_code() {
        for each in Code::ALL {
            let status = detailed(&Error::new(each, "why"), "r-1");
            let details = RpcStatus::decode(status.details()).unwrap();
            assert_eq!((status.code(), status.message()), (code(each), "why"));
            assert_eq!(
                (details.code, details.message.as_str()),
                (status.code().into(), "why")
            );
            let problem = proto::Problem::decode(details.details[0].value.as_slice()).unwrap();
            assert_eq!(
                (problem.code.as_str(), problem.status),
                (each.as_str(), each.http_status().into())
            );
            assert_eq!(
                (problem.detail.as_str(), problem.request_id.as_str()),
                ("why", "r-1")
            );
            assert_eq!(problem.retryable, each.retryable());
        }
    }

    ///
    #[test]
    fn hides_the_cause_of_an_internal_error() {
        let status = detailed(
            &Error::internal("unable to open /var/lib/skillbox/store.db"),
            "r-1",
        );
        let sent = [status.message().as_bytes(), status.details()].concat();
        assert!(!String::from_utf8_lossy(&sent).contains("store.db"));
    }

    /// Clients reject metadata above 8 KiB.
    #[test]
    fn limits_the_size_of_a_status() {
        let fault = || Fault {
            pointer: "/a".to_owned(),
            message: "é".repeat(200),
        };
        let error = Error::invalid("é".repeat(100_000)).with_faults((0..10).map(|_| fault()).collect());
        let response = detailed(&error, "r-1").into_http::<axum::body::Body>();
        let bytes: usize = response
            .headers()
            .iter()
            .map(|(name, value)| name.as_str().len() + value.len() + 32)
            .sum();
        assert!(bytes < 8 * 1024, "{bytes}");
        assert!(response.headers().contains_key("grpc-status-details-bin"));
    }

    #[test]
    fn finds_the_error_of_a_handler() {
        let response = failed(Error::not_found("skill `x`")).into_http();
        assert_eq!(reason(&response).unwrap().code(), Code::NotFound);
        let response = Status::internal("failed to decode Protobuf message").into_http();
        assert_eq!(reason(&response).unwrap().code(), Code::Invalid);
    }
}
