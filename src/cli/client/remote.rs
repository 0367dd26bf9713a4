//! A server over REST. Its responses are untrusted: limited in size and checked.

use std::fs::File;
use std::io::{self, Read as _, Write};
use std::time::Duration;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use secrecy::{ExposeSecret as _, SecretString};
use serde::de::DeserializeOwned;
use ureq::http::{Method, Request, Response, Uri};
use ureq::{Agent, AsSendBody, Body, SendBody};

use super::{Listed, listed};
use crate::api::Problem;
use crate::cli::exit::Exit;
use crate::cli::failure::{Failure, Result};
use crate::cli::progress::ProgressWriter;
use crate::error::Code;
use crate::http::Ready;
use crate::limits;
use crate::store::Saved;

#[derive(Clone, Debug)]
pub(crate) struct RemoteClient {
    pub(super) base: String,
    key: SecretString,
    agent: Agent,
}

/// One request without its body.
pub(super) struct ApiCall<'a> {
    pub(super) method: Method,
    pub(super) path: &'a str,
    pub(super) query: &'a [(&'a str, String)],
    pub(super) accept: &'static str,
    pub(super) answer_max: Duration,
}

/// The body of a request and its type.
pub(super) struct RequestBody {
    pub(super) content_type: String,
    pub(super) bytes: Vec<u8>,
}

/// A file as the body of a request.
pub(super) struct FileBody {
    pub(super) content_type: String,
    pub(super) size: u64,
    pub(super) content: File,
}

/// Escapes all but the unreserved characters of RFC 3986.
pub(super) const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Whether the server is on this machine, so that this user may own its data folder.
pub(super) fn is_loopback(url: &str) -> bool {
    let host = url
        .parse::<Uri>()
        .ok()
        .and_then(|uri| uri.host().map(str::to_owned))
        .unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || address
            .parse::<std::net::IpAddr>()
            .is_ok_and(|ip| ip.is_loopback())
}

impl RemoteClient {
    pub(super) fn new(base: &str, key: SecretString) -> Result<Self> {
        let loopback = is_loopback(base);
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            // A redirect would send the key to another server.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_connect(Some(limits::CLIENT_CONNECT_MAX))
            .timeout_recv_response(Some(limits::CLIENT_ANSWER_MAX))
            .timeout_recv_body(Some(limits::CLIENT_DOWNLOAD_MAX))
            .user_agent(concat!("skillbox/", env!("CARGO_PKG_VERSION")));
        if loopback {
            config = config.proxy(None);
        }
        Ok(Self {
            base: base.to_owned(),
            key,
            agent: config.build().new_agent(),
        })
    }

    /// Whether the connection is encrypted or local.
    pub(super) fn is_private(&self) -> bool {
        self.base.starts_with("https://") || is_loopback(&self.base)
    }

    /// The readiness report, also of a server that is not ready.
    pub(crate) fn readiness(&self) -> Result<Ready> {
        let request = self
            .request(&ApiCall::new(Method::GET, "/readyz"))
            .body(())
            .map_err(|error| Failure::internal("writing the request", error))?;
        read_json(self.check_answer(self.agent.run(request))?)
    }

    pub(crate) fn listed<T: DeserializeOwned>(
        &self,
        path: &str,
        filter: &[(&str, String)],
        rows: usize,
    ) -> Result<Listed<T>> {
        listed(rows, |limit, token| {
            read_json(self.page(path, filter, limit, token)?)
        })
    }

    /// One page of a list, in the format of its path.
    pub(super) fn page(
        &self,
        path: &str,
        filter: &[(&str, String)],
        limit: usize,
        token: Option<String>,
    ) -> Result<Response<Body>> {
        let mut query = filter.to_vec();
        query.push(("limit", limit.to_string()));
        query.extend(token.map(|token| ("page_token", token)));
        self.call(&ApiCall {
            query: &query,
            accept: "*/*",
            ..ApiCall::new(Method::GET, path)
        })
    }

    pub(super) fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        self.request_json(Method::GET, path)
    }

    pub(super) fn delete(&self, path: &str) -> Result<()> {
        self.call(&ApiCall::new(Method::DELETE, path)).map(drop)
    }

    pub(super) fn post<T: DeserializeOwned>(&self, path: &str, body: &impl ToString) -> Result<T> {
        read_json(self.send(&ApiCall::new(Method::POST, path), RequestBody::json(body))?)
    }

    /// Sends a request without a body.
    pub(super) fn request_json<T: DeserializeOwned>(&self, method: Method, path: &str) -> Result<T> {
        self.json(&ApiCall::new(method, path))
    }

    pub(super) fn json<T: DeserializeOwned>(&self, call: &ApiCall<'_>) -> Result<T> {
        read_json(self.call(call)?)
    }

    pub(super) fn call(&self, call: &ApiCall<'_>) -> Result<Response<Body>> {
        self.send_with(call, self.request(call).body(()))
    }

    pub(super) fn send(&self, call: &ApiCall<'_>, sent: RequestBody) -> Result<Response<Body>> {
        let request = self.request(call).header("content-type", sent.content_type);
        self.send_with(call, request.body(sent.bytes))
    }

    /// Sends a file as it is read.
    pub(super) fn send_file(&self, call: &ApiCall<'_>, sent: FileBody) -> Result<Response<Body>> {
        let request = self
            .request(call)
            .header("content-type", sent.content_type)
            .header("content-length", sent.size);
        let content = ProgressWriter::new(sent.content.take(sent.size), "uploading");
        self.send_with(call, request.body(SendBody::from_owned_reader(content)))
    }

    /// Sends a message of another protocol. The response may have any status.
    #[cfg(feature = "mcp")]
    pub(super) fn send_message(
        &self,
        call: &ApiCall<'_>,
        headers: &[(&'static str, String)],
        message: Vec<u8>,
    ) -> Result<Response<Body>> {
        let request = headers
            .iter()
            .fold(self.request(call), |request, (name, value)| {
                request.header(*name, value)
            })
            .header("content-type", "application/json")
            .body(message)
            .map_err(|error| Failure::internal("writing the request", error))?;
        let request = self.agent.configure_request(request);
        let request = request.timeout_recv_response(Some(call.answer_max)).build();
        self.check_answer(self.agent.run(request))
    }

    fn send_with<B: AsSendBody>(
        &self,
        call: &ApiCall<'_>,
        request: std::result::Result<Request<B>, ureq::http::Error>,
    ) -> Result<Response<Body>> {
        let request = request.map_err(|error| Failure::internal("writing the request", error))?;
        let request = self
            .agent
            .configure_request(request)
            .timeout_recv_response(Some(call.answer_max))
            .build();
        self.check_status(self.agent.run(request))
    }

    fn request(&self, call: &ApiCall<'_>) -> ureq::http::request::Builder {
        let query: Vec<_> = call
            .query
            .iter()
            .map(|(name, value)| format!("{name}={}", utf8_percent_encode(value, SEGMENT)))
            .collect();
        let mark = if query.is_empty() { "" } else { "?" };
        ureq::http::Request::builder()
            .method(call.method.clone())
            .uri(format!("{}{}{mark}{}", self.base, call.path, query.join("&")))
            .header("authorization", format!("Bearer {}", self.key.expose_secret()))
            .header("accept", call.accept)
    }

    /// A response of any status.
    fn check_answer(
        &self,
        answer: std::result::Result<Response<Body>, ureq::Error>,
    ) -> Result<Response<Body>> {
        answer.map_err(|error| {
            let message = format!(
                "server_url: {} does not respond ({error}); start it with `skillbox serve`, or name another with `--server`",
                self.base
            );
            Failure::new(Exit::Unavailable, message)
        })
    }

    /// A successful response, or the server's error.
    pub(super) fn check_status(
        &self,
        answer: std::result::Result<Response<Body>, ureq::Error>,
    ) -> Result<Response<Body>> {
        let answer = self.check_answer(answer)?;
        let status = answer.status();
        if status.is_success() {
            return Ok(answer);
        }
        let mut body = Vec::new();
        let problem: Option<Problem> = match copy(answer, &mut body, limits::BODY_BYTES_MAX) {
            Ok(()) => serde_json::from_slice(&body).ok(),
            Err(_) => None,
        };
        let Some(problem) = problem else {
            return Err(Failure::new(
                Exit::Unavailable,
                format!("{} answered {status}; is it a Skillbox server?", self.base),
            ));
        };
        let code = Code::ALL.into_iter().find(|code| code.as_str() == problem.code);
        let exit = code.map_or(Exit::Refused, Exit::of_code);
        let failure = Failure::new(exit, problem.detail);
        Err(match code {
            Some(Code::Internal) => failure.hint(format!("request {}", problem.request_id)),
            Some(Code::Unauthenticated) => Failure::new(exit, format!("the API key is not valid for {}", self.base))
                .hint("set SKILLBOX_API_KEY to a key of this server; without it, the key in the data folder is used"),
            Some(_) | None => failure,
        })
    }
}

impl<'a> ApiCall<'a> {
    pub(super) fn new(method: Method, path: &'a str) -> Self {
        Self {
            method,
            path,
            query: &[],
            accept: "application/json",
            answer_max: limits::CLIENT_ANSWER_MAX,
        }
    }
}

impl RequestBody {
    pub(super) fn json(value: &impl ToString) -> Self {
        Self {
            content_type: "application/json".to_owned(),
            bytes: value.to_string().into_bytes(),
        }
    }
}

/// Whether a `PUT` or `POST` created something or found it.
pub(super) fn kept(answer: &Response<Body>) -> Saved {
    match answer.status().as_u16() {
        201 => Saved::New,
        _ => Saved::Existing,
    }
}

pub(super) fn read_json<T: DeserializeOwned>(answer: Response<Body>) -> Result<T> {
    let mut bytes = Vec::new();
    copy(answer, &mut bytes, limits::ANSWER_BYTES_MAX)?;
    serde_json::from_slice(&bytes).map_err(|error| {
        Failure::new(
            Exit::Unavailable,
            format!("cannot parse the server's response ({error}); does the server run another version?"),
        )
    })
}

/// Copies a response body of at most `max` bytes.
pub(super) fn copy(answer: Response<Body>, into: &mut dyn Write, max: u64) -> Result<()> {
    let mut reader = answer
        .into_body()
        .into_with_config()
        .limit(u64::MAX)
        .reader()
        .take(max + 1);
    let copied = io::copy(&mut reader, into).map_err(|error| {
        Failure::new(
            Exit::Unavailable,
            format!("the server's response was interrupted ({error})"),
        )
    })?;
    if copied > max {
        return Err(Failure::new(
            Exit::Unavailable,
            format!("the server sent more than the {max} bytes that were expected"),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sends_local_key_only_to_this_machine() {
        for url in ["http://localhost:8080", "http://127.0.0.1", "http://[::1]:8080/x"] {
            assert!(is_loopback(url), "{url}");
        }
        for url in [
            "http://localhost.evil.example",
            "http://127.0.0.1.evil.example",
            "http://10.0.0.1",
            "https://example.com",
        ] {
            assert!(!is_loopback(url), "{url}");
        }
    }
}
