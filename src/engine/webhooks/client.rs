//! Sends one webhook to an untrusted receiver, over its own connection, with limits on time and memory.
//!
//! Proxy variables and redirects are ignored. Only the status and `Retry-After` of a response are used.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::RETRY_AFTER;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

use crate::egress::{ConnectError, Connector, RejectedDestination, WebhookPolicy};
use crate::engine::clock;
use crate::engine::webhooks::WebhookSettings;
use crate::error::{Code, Error};
use crate::limits;
use crate::webhook::CallbackUrl;

#[derive(Clone)]
pub(super) struct WebhookClient {
    tls: TlsConnector,
    policy: WebhookPolicy,
    connector: Connector,
    attempt_max: Duration,
}

pub(super) struct ReceiverResponse {
    pub(super) status: StatusCode,
    pub(super) retry_after: Option<Duration>,
}

/// Tenants read these messages, so they reveal nothing about private networks.
#[derive(Debug, thiserror::Error)]
pub(super) enum SendError {
    #[error("callback_url {0}")]
    Rejected(#[from] RejectedDestination),
    #[error("the receiver's name does not resolve")]
    Unresolved(#[source] io::Error),
    #[error(
        "the receiver's name resolves to an address that is not public, so nothing was sent; an operator can allow it with webhooks.allow_private"
    )]
    Private,
    #[error("the receiver cannot be reached")]
    Unreachable(#[source] io::Error),
    #[error("the receiver's certificate is not trusted")]
    Certificate(#[source] io::Error),
    #[error("the TLS handshake with the receiver failed")]
    Tls(#[source] io::Error),
    #[error("the headers of the receiver's response are too large")]
    HeadTooLarge,
    #[error("the receiver closed the connection early, or its response is not HTTP")]
    Broken(#[source] hyper::Error),
    #[error("the receiver did not respond in time")]
    TimedOut,
}

impl WebhookClient {
    pub(super) fn new(settings: &WebhookSettings) -> Result<Self, Error> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = versions
            .map_err(Error::internal)?
            .with_root_certificates(authorities(settings.ca_bundle.as_deref())?)
            .with_no_client_auth();
        Ok(Self {
            tls: Arc::new(config).into(),
            policy: settings.policy.clone(),
            connector: Connector {
                resolver: settings.resolver,
                connect_max: limits::DELIVERY_CONNECT_MAX,
            },
            attempt_max: settings.attempt_max,
        })
    }

    /// Resolves the host of `url` and sends `request`; a response of any status is a success.
    pub(super) async fn send(
        &self,
        url: &CallbackUrl,
        request: Request<Full<Bytes>>,
    ) -> Result<ReceiverResponse, SendError> {
        let deadline = Instant::now() + self.attempt_max;
        // The policy may have changed since the URL was accepted.
        self.policy.check(url)?;
        let is_allowed = |address| self.policy.allows_address(url, address);
        let connecting = self.connector.connect_checked(url.host(), url.port(), is_allowed);
        let stream = in_time(deadline, async { Ok(connecting.await?) }).await?;
        if !url.is_encrypted() {
            return exchange(stream, request, deadline).await;
        }
        let name = match url.address() {
            Some(address) => Ok(ServerName::from(address)),
            None => ServerName::try_from(url.host().to_owned()),
        };
        let name = name.map_err(|error| SendError::Unresolved(io::Error::other(error)))?;
        let handshake = async { self.tls.connect(name, stream).await.map_err(of_tls) };
        let stream = in_time(deadline, handshake).await?;
        exchange(stream, request, deadline).await
    }
}

impl From<ConnectError> for SendError {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::Unresolved(error) => Self::Unresolved(error),
            ConnectError::Forbidden(_) => Self::Private,
            ConnectError::Unreachable(error) => Self::Unreachable(error),
            ConnectError::TimedOut => Self::TimedOut,
        }
    }
}

/// Those of the operator's file, by default the built-in ones.
fn authorities(file: Option<&Path>) -> Result<RootCertStore, Error> {
    let Some(file) = file else {
        return Ok(webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect());
    };
    let wrong = || {
        let message = format!(
            "webhooks.ca_bundle: `{}` contains no certificate authorities (PEM)",
            file.display()
        );
        Error::new(Code::Invalid, message)
    };
    let mut store = RootCertStore::empty();
    let certificates = CertificateDer::pem_file_iter(file).map_err(|_| wrong())?;
    for certificate in certificates {
        store
            .add(certificate.map_err(|_| wrong())?)
            .map_err(|_| wrong())?;
    }
    if store.is_empty() { Err(wrong()) } else { Ok(store) }
}

fn of_tls(error: io::Error) -> SendError {
    let cause = error
        .get_ref()
        .and_then(|cause| cause.downcast_ref::<rustls::Error>());
    match cause {
        Some(rustls::Error::InvalidCertificate(_)) => SendError::Certificate(error),
        _ => SendError::Tls(error),
    }
}

async fn in_time<T>(
    deadline: Instant,
    work: impl Future<Output = Result<T, SendError>>,
) -> Result<T, SendError> {
    timeout_at(deadline, work)
        .await
        .unwrap_or(Err(SendError::TimedOut))
}

async fn exchange<S>(
    stream: S,
    request: Request<Full<Bytes>>,
    deadline: Instant,
) -> Result<ReceiverResponse, SendError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let handshake = http1::Builder::new()
        .max_buf_size(limits::DELIVERY_HEAD_BYTES_MAX)
        .max_headers(limits::DELIVERY_HEADERS_MAX)
        .handshake(TokioIo::new(stream));
    let (mut sender, connection) = handshake.await.map_err(SendError::Broken)?;
    let mut connection = std::pin::pin!(connection.fuse());
    let answered = async {
        let mut answered = std::pin::pin!(sender.send_request(request));
        let answer = tokio::select! {
            biased;
            answer = &mut answered => answer,
            // The response may be complete although the connection failed.
            _ = &mut connection => answered.await,
        };
        answer.map_err(of_http)
    };
    let answer = in_time(deadline, answered).await?;
    let response = ReceiverResponse {
        status: answer.status(),
        retry_after: retry_after(&answer),
    };
    // A receiver that is disconnected during its response may log an error.
    tokio::select! {
        _ = timeout(limits::DELIVERY_REST_MAX, discard_body(answer)) => {}
        _ = connection => {}
    }
    Ok(response)
}

fn retry_after(answer: &Response<Incoming>) -> Option<Duration> {
    match answer.status() {
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
            let text = answer.headers().get(RETRY_AFTER)?.to_str().ok()?;
            parse_retry_after(text.trim(), clock::now())
        }
        _ => None,
    }
}

/// Parses `Retry-After`: a number of seconds, or a date.
pub(super) fn parse_retry_after(text: &str, now: Timestamp) -> Option<Duration> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let at = rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
    at.duration_since(now).try_into().ok()
}

async fn discard_body(answer: Response<Incoming>) {
    let mut body = answer.into_body();
    let mut left = limits::DELIVERY_REST_BYTES_MAX;
    while let Some(Ok(frame)) = body.frame().await {
        let read = frame.data_ref().map_or(0, Bytes::len) as u64;
        match left.checked_sub(read) {
            Some(less) => left = less,
            None => return,
        }
    }
}

fn of_http(error: hyper::Error) -> SendError {
    if error.is_parse_too_large() {
        SendError::HeadTooLarge
    } else {
        SendError::Broken(error)
    }
}
