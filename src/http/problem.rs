//! Error responses: RFC 9457 problem documents with a stable code.

use std::sync::Arc;

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::api::Problem;
use crate::error::{Code, Error};

pub(crate) const MEDIA_TYPE: &str = "application/problem+json";

/// An error response. The outermost layer writes the document, since only it knows the request id.
#[derive(Debug)]
pub(crate) struct ProblemResponse {
    error: Arc<Error>,
    header: Option<Box<(HeaderName, HeaderValue)>>,
}

/// The result of a handler that responds with JSON.
pub(crate) type JsonResult<T> = Result<axum::Json<T>, ProblemResponse>;

impl ProblemResponse {
    #[must_use]
    pub(crate) fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.header = Some(Box::new((name, value)));
        self
    }
}

impl From<Error> for ProblemResponse {
    fn from(error: Error) -> Self {
        Arc::new(error).into()
    }
}

impl From<Arc<Error>> for ProblemResponse {
    fn from(error: Arc<Error>) -> Self {
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
        response.extensions_mut().insert(LoggedError(self.error));
        response
    }
}

/// The error of a response, in its extensions.
#[derive(Clone, Debug)]
struct LoggedError(Arc<Error>);

/// The error of a response: ours, or one for an error response of the framework.
pub(crate) fn reason(response: &Response) -> Option<Arc<Error>> {
    if let Some(LoggedError(error)) = response.extensions().get() {
        return Some(Arc::clone(error));
    }
    let is_error = response.status().is_client_error() || response.status().is_server_error();
    // A JSON body comes from a handler, such as a readiness report.
    let own = response
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|value| value == "application/json");
    (is_error && !own).then(|| Arc::new(framework_error(response.status())))
}

/// Replaces the body of `response` by the problem document; keeps headers of the handler.
pub(crate) fn render(response: Response, error: &Error, request_id: &str) -> Response {
    let code = error.code();
    let problem = Problem::new(error, request_id);
    let body = serde_json::to_vec(&problem).expect("strings and numbers always serialize");
    let (mut parts, _) = response.into_parts();
    parts.status = status(code);
    // Set here, since the response to `HEAD` loses its body later.
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
        StatusCode::NOT_FOUND => Error::new(Code::NotFound, "no route at this path; see /openapi.json"),
        StatusCode::METHOD_NOT_ALLOWED => Error::new(
            Code::MethodNotAllowed,
            "method not allowed for this path; see the `Allow` header",
        ),
        StatusCode::PAYLOAD_TOO_LARGE => Error::new(Code::TooLarge, "the body is too large; send less"),
        StatusCode::UNSUPPORTED_MEDIA_TYPE => Error::new(
            Code::UnsupportedMediaType,
            "content-type: not supported by this route; see /openapi.json",
        ),
        StatusCode::REQUEST_TIMEOUT => Error::new(
            Code::RequestTimeout,
            "the request took too long to arrive; send it without pauses",
        ),
        status if status.is_client_error() => Error::invalid("the request is not valid; see /openapi.json"),
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
    async fn renders_a_problem_document_for_every_code() {
        for code in Code::ALL {
            let (status, headers, problem) = rendered(Error::new(code, "detail")).await;
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
    async fn rounds_retry_after_up() {
        let error =
            Error::new(Code::Busy, "all slots are taken").with_retry_after(Duration::from_millis(1200));
        let (_, headers, problem) = rendered(error).await;
        assert_eq!(headers[header::RETRY_AFTER], "2");
        assert_eq!(problem.retry_after, Some(2));
    }

    ///
    #[tokio::test]
    async fn hides_the_cause_of_an_internal_error() {
        let (_, _, problem) = rendered(Error::internal("unable to open /var/lib/skillbox/store.db")).await;
        assert!(!serde_json::to_string(&problem).unwrap().contains("store.db"));
    }

    #[test]
    fn maps_framework_errors_to_codes() {
        let code = |status: StatusCode| reason(&status.into_response()).map(|error| error.code());
        assert_eq!(code(StatusCode::NOT_FOUND), Some(Code::NotFound));
        assert_eq!(code(StatusCode::METHOD_NOT_ALLOWED), Some(Code::MethodNotAllowed));
        assert_eq!(code(StatusCode::UNPROCESSABLE_ENTITY), Some(Code::Invalid));
        assert_eq!(code(StatusCode::BAD_GATEWAY), Some(Code::Internal));
        assert_eq!(code(StatusCode::OK), None);
    }
}
