//! The outermost layer: request id, log line, security headers, and errors as problem documents.

use std::net::SocketAddr;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::Response;
use tracing::Instrument as _;
use tracing::field::Empty;

use super::{Peer, problem, results};
use crate::engine::Engine;
use crate::error::Error;
use crate::ids::ExecutionId;
use crate::limits;
use crate::telemetry::{self, RequestCompletion, field};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The outermost layer of a transport, which writes errors in its own form.
#[derive(Clone, Debug)]
pub(crate) struct OuterLayer {
    pub(crate) engine: Engine,
    /// Makes the response to a request with this id of its error.
    pub(crate) render: fn(Response, &Error, &str) -> Response,
}

pub(crate) async fn outer_layer(
    State(OuterLayer { engine, render }): State<OuterLayer>,
    mut request: Request,
    next: Next,
) -> Response {
    let started = Instant::now();
    let id = request_id(request.headers());
    // Inner layers must see the same id.
    request.headers_mut().insert(
        REQUEST_ID,
        HeaderValue::from_str(&id).expect("an id is plain ASCII"),
    );
    let logged = LoggedRequest::of(&request);
    let span = tracing::info_span!(
        "request",
        { field::REQUEST_ID } = %id,
        { field::PEER } = logged.peer.map(tracing::field::display),
        { field::TENANT } = Empty,
        { field::KEY_ID } = Empty,
        { field::EXECUTION_ID } = logged.execution.map(tracing::field::display),
        { field::SKILL } = Empty,
        { field::OUTCOME } = Empty,
    );
    telemetry::continue_trace(&span, |name| request.headers().get(name)?.to_str().ok());
    let mut response = next.run(request).instrument(span.clone()).await;
    let error = problem::reason(&response);
    if let Some(error) = &error {
        response = render(response, error, &id);
    }
    span.in_scope(|| log(&logged, &response, error.as_deref(), started));
    engine.metrics().answered(&RequestCompletion {
        method: logged.method.as_str(),
        route: &logged.route,
        status: status(&response, error.as_deref()),
        code: error.as_ref().map(|error| error.code().as_str()),
        took: started.elapsed(),
    });
    protect(&mut response, &logged.route);
    response.headers_mut().insert(
        REQUEST_ID,
        HeaderValue::from_str(&id).expect("an id is plain ASCII"),
    );
    response
}

/// The logged parts of a request, without the query, which can contain the signature of a link.
struct LoggedRequest {
    method: Method,
    route: String,
    peer: Option<SocketAddr>,
    execution: Option<ExecutionId>,
}

impl LoggedRequest {
    fn of(request: &Request) -> Self {
        let extensions = request.extensions();
        let route = extensions.get::<MatchedPath>().map(MatchedPath::as_str);
        let execution = request.uri().path().strip_prefix("/v1/executions/");
        Self {
            execution: execution.and_then(|rest| rest.split('/').next()?.parse().ok()),
            method: request.method().clone(),
            route: route.unwrap_or("(none)").to_owned(),
            peer: extensions.get::<Peer>().map(|Peer(address)| *address),
        }
    }
}

/// The client's id if there is exactly one and it is safe to log; otherwise a new one.
fn request_id(headers: &HeaderMap) -> String {
    let harmless = |id: &&str| {
        (1..=limits::REQUEST_ID_CHARS_MAX).contains(&id.len())
            && id
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
    };
    let mut given = headers.get_all(REQUEST_ID).iter();
    match (given.next(), given.next()) {
        (Some(id), None) => id.to_str().ok().filter(harmless).map(str::to_owned),
        _ => None,
    }
    .unwrap_or_else(|| uuid::Uuid::now_v7().to_string())
}

/// The one place that logs errors of requests.
fn log(logged: &LoggedRequest, response: &Response, error: Option<&Error>, started: Instant) {
    let method: String = logged.method.as_str().chars().take(16).collect();
    let route = logged.route.as_str();
    let status = status(response, error);
    let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let code = error.map(|error| error.code().as_str());
    let cause = error.and_then(Error::hidden);
    let is_routine = route == "/metrics" || route.starts_with("/ui/");
    if matches!(route, "/healthz" | "/readyz") || (is_routine && status < 400) {
        // Probes come every few seconds, and a page of the dashboard has dozens of files; changes of readiness are logged elsewhere.
        tracing::debug!({ field::REQUEST_METHOD } = %method, { field::REQUEST_ROUTE } = route, { field::STATUS } = status,
            { field::DURATION_MS } = duration_ms, "Answered {method} {route}");
    } else if status >= 500 {
        tracing::error!({ field::REQUEST_METHOD } = %method, { field::REQUEST_ROUTE } = route, { field::STATUS } = status,
            { field::DURATION_MS } = duration_ms, { field::CODE } = code, { field::CAUSE } = cause, "Could not answer {method} {route}");
    } else {
        tracing::info!({ field::REQUEST_METHOD } = %method, { field::REQUEST_ROUTE } = route, { field::STATUS } = status,
            { field::DURATION_MS } = duration_ms, { field::CODE } = code, { field::CAUSE } = cause, "Answered {method} {route}");
    }
}

/// The status of the error's code, whatever the status of the transport: a failed gRPC call is answered with 200.
fn status(response: &Response, error: Option<&Error>) -> u16 {
    error.map_or(response.status().as_u16(), |error| error.code().http_status())
}

/// Sets security headers that the handler has not set. Results, and errors in place of them, may be shown in frames of this
/// server's pages.
fn protect(response: &mut Response, route: &str) {
    const DEFAULTS: [(HeaderName, &str); 4] = [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CACHE_CONTROL, "no-store"),
        (header::REFERRER_POLICY, "no-referrer"),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
    ];
    let policy = |text| (header::CONTENT_SECURITY_POLICY, text);
    let (policy, no_frame) = if route == results::ROUTE {
        (policy("default-src 'none'; frame-ancestors 'self'"), None)
    } else {
        (
            policy("default-src 'none'; frame-ancestors 'none'"),
            Some((header::X_FRAME_OPTIONS, "DENY")),
        )
    };
    let headers = response.headers_mut();
    for (name, value) in DEFAULTS.into_iter().chain([policy]).chain(no_frame) {
        headers
            .entry(name)
            .or_insert_with(|| HeaderValue::from_static(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id_for(given: &[&str]) -> String {
        let headers = given
            .iter()
            .map(|id| (REQUEST_ID, HeaderValue::from_str(id).unwrap()));
        let mut map = HeaderMap::new();
        headers.for_each(|(name, value)| {
            map.append(name, value);
        });
        request_id(&map)
    }

    #[test]
    fn keeps_a_safe_request_id_and_replaces_others() {
        assert_eq!(id_for(&["trace-1.a_B"]), "trace-1.a_B");
        let long = "a".repeat(limits::REQUEST_ID_CHARS_MAX + 1);
        for given in [&["a b"][..], &["a\"b"], &[""], &[&long], &["a", "b"], &[]] {
            let id = id_for(given);
            assert!(uuid::Uuid::try_parse(&id).is_ok(), "{given:?}: {id}");
        }
    }
}
