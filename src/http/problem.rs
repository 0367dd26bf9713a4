//! What a refused request is answered: an RFC 9457 problem document with a stable code.

use std::sync::Arc;

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::api::Problem;
use crate::error::{Code, Error};

/// The media type of a [`Problem`].
pub(crate) const MEDIA_TYPE: &str = "application/problem+json";

/// An error on its way to the client. The outermost layer writes the document, since only it knows the request id.
#[derive(Debug)]
pub(crate) struct ProblemResponse {
    error: Error,
    header: Option<Box<(HeaderName, HeaderValue)>>,
}

impl ProblemResponse {
    /// Adds a header to the answer.
    #[must_use]
    pub(crate) fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.header = Some(Box::new((name, value)));
        self
    }
}

impl From<Error> for ProblemResponse {
    fn from(error: Error) -> Self {
        Self { error, header: None }
    }
}

impl IntoResponse for ProblemResponse {
    fn into_response(self) -> Response {
        let mut response = status(self.error.code()).into_response();
        if let Some(header) = self.header {
            let (name, value) = *header;
            response.headers_mut().insert(name, value);
        }
        response
            .extensions_mut()
            .insert(LoggedError(Arc::new(self.error)));
        response
    }
}

/// Why an answer is an error, carried in its extensions.
#[derive(Clone, Debug)]
struct LoggedError(Arc<Error>);

/// The error behind `response`, if it is one: ours, or the framework's own refusal put into our words.
pub(crate) fn reason(response: &Response) -> Option<Arc<Error>> {
    if let Some(LoggedError(error)) = response.extensions().get() {
        return Some(Arc::clone(error));
    }
    let refused = response.status().is_client_error() || response.status().is_server_error();
    // An answer with a JSON body is a handler's own, such as a readiness report.
    let own = response
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|value| value == "application/json");
    (refused && !own).then(|| Arc::new(framework_error(response.status())))
}

/// Turns `response` into the document for `error`; headers that a handler set stay.
pub(crate) fn render(response: Response, error: &Error, request_id: &str) -> Response {
    let code = error.code();
    let problem = Problem::new(error, request_id);
    let body = serde_json::to_vec(&problem).expect("strings and numbers always serialize");
    let (mut parts, _) = response.into_parts();
    parts.status = status(code);
    // Said here, since the answer to `HEAD` loses its body on the way.
    parts
        .headers
        .insert(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
    parts
        .headers
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
    if code == Code::Unauthenticated {
        parts
            .headers
            .insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if let Some(seconds) = problem.retry_after {
        parts
            .headers
            .insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    Response::from_parts(parts, body.into())
}

fn status(code: Code) -> StatusCode {
    StatusCode::from_u16(code.http_status()).expect("the table of codes holds valid statuses")
}

fn framework_error(status: StatusCode) -> Error {
    match status {
        StatusCode::NOT_FOUND => Error::new(
            Code::NotFound,
            "there is nothing at this path; /openapi.json lists what there is",
        ),
        StatusCode::METHOD_NOT_ALLOWED => Error::new(
            Code::MethodNotAllowed,
            "method not allowed for this path; see the `Allow` header",
        ),
        StatusCode::PAYLOAD_TOO_LARGE => Error::new(Code::TooLarge, "the body is too large"),
        StatusCode::UNSUPPORTED_MEDIA_TYPE => {
            Error::new(Code::UnsupportedMediaType, "this content type is not taken here")
        }
        StatusCode::REQUEST_TIMEOUT => {
            Error::new(Code::RequestTimeout, "the request took too long to arrive")
        }
        status if status.is_client_error() => {
            Error::invalid("the request could not be read; /openapi.json says what is taken")
        }
        status => Error::internal(format!("the framework answered {status}")),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    async fn rendered(error: Error) -> (StatusCode, axum::http::HeaderMap, Problem) {
        let response = ProblemResponse::from(error).into_response();
        let error = reason(&response).unwrap();
        let response = render(response, &error, "r-1");
        let (parts, body) = response.into_parts();
        let bytes = axum::body::to_bytes(body, 10_000).await.unwrap();
        (
            parts.status,
            parts.headers,
            serde_json::from_slice(&bytes).unwrap(),
        )
    }

    #[tokio::test]
    async fn every_code_has_its_document() {
        for code in Code::ALL {
            let (status, headers, problem) = rendered(Error::new(code, "what to do")).await;
            assert_eq!(status.as_u16(), code.http_status());
            assert_eq!(headers[header::CONTENT_TYPE], MEDIA_TYPE);
            assert_eq!(problem.code, code.as_str());
            assert_eq!(problem.status, code.http_status());
            assert_eq!(problem.request_id, "r-1");
            assert_eq!(problem.retryable, code.retryable());
            assert_eq!(
                headers.contains_key(header::WWW_AUTHENTICATE),
                code == Code::Unauthenticated
            );
        }
    }

    #[tokio::test]
    async fn a_wait_is_rounded_up() {
        let error =
            Error::new(Code::Busy, "all slots are taken").with_retry_after(Duration::from_millis(1200));
        let (_, headers, problem) = rendered(error).await;
        assert_eq!(headers[header::RETRY_AFTER], "2");
        assert_eq!(problem.retry_after, Some(2));
    }

    ///
    #[tokio::test]
    async fn an_internal_error_shows_nothing_of_its_cause() {
        let (_, _, problem) = rendered(Error::internal("unable to open /var/lib/skillbox/store.db")).await;
        assert!(!serde_json::to_string(&problem).unwrap().contains("store.db"));
    }

    #[test]
    fn what_the_framework_refuses_gets_our_codes() {
        let code = |status: StatusCode| reason(&status.into_response()).map(|error| error.code());
        assert_eq!(code(StatusCode::NOT_FOUND), Some(Code::NotFound));
        assert_eq!(code(StatusCode::METHOD_NOT_ALLOWED), Some(Code::MethodNotAllowed));
        assert_eq!(code(StatusCode::UNPROCESSABLE_ENTITY), Some(Code::Invalid));
        assert_eq!(code(StatusCode::BAD_GATEWAY), Some(Code::Internal));
        assert_eq!(code(StatusCode::OK), None);
    }
}
