//! One message to one receiver, who is a stranger: over a connection of its own, to an address that was judged, within bounds.
//!
//! No proxy of the environment is asked, no redirect followed, nothing of the answer used but its status, and when a busy
//! receiver wants to be asked again.

use std::io;
use std::net::{IpAddr, SocketAddr};
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
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

use crate::engine::clock;
use crate::engine::webhooks::{Resolver, WebhookSettings};
use crate::error::{Code, Error};
use crate::limits;
use crate::webhook::{CallbackUrl, Policy, Refused};

/// Sends to whom the operator's policy lets it.
#[derive(Clone)]
pub(super) struct Client {
    tls: TlsConnector,
    policy: Policy,
    resolver: Resolver,
    attempt_max: Duration,
}

/// What of an answer is used.
pub(super) struct Heard {
    pub(super) status: StatusCode,
    /// How long a busy receiver wants to be left alone.
    pub(super) retry_after: Option<Duration>,
}

/// Why a message was not sent, or not answered. Told to the tenant: nothing of what a private network looks like is in it.
#[derive(Debug, thiserror::Error)]
pub(super) enum Undelivered {
    #[error("callback_url {0}")]
    Refused(#[from] Refused),
    #[error("the receiver's name does not resolve")]
    Unresolved(#[source] io::Error),
    #[error(
        "the receiver's name leads to an address that is not of the Internet; nothing was sent there, and an operator who means it names it in webhooks.allow_private"
    )]
    Private,
    #[error("the receiver cannot be reached")]
    Unreachable(#[source] io::Error),
    #[error("the receiver's certificate is not believed")]
    Certificate(#[source] io::Error),
    #[error("the receiver does not speak TLS as it should")]
    Tls(#[source] io::Error),
    #[error("the receiver's answer has a head that is too large")]
    HeadTooLarge,
    #[error("the receiver broke off, or answered something that is not HTTP")]
    Broken(#[source] hyper::Error),
    #[error("the receiver took too long")]
    TimedOut,
}

impl Client {
    /// A client for what these settings say.
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
            resolver: settings.resolver,
            attempt_max: settings.attempt_max,
        })
    }

    /// Sends `request` to where `url` leads now, and returns what was answered, whatever it is.
    pub(super) async fn send(
        &self,
        url: &CallbackUrl,
        request: Request<Full<Bytes>>,
    ) -> Result<Heard, Undelivered> {
        let deadline = Instant::now() + self.attempt_max;
        // Once more: the operator may have changed his mind since it was accepted.
        self.policy.judge(url)?;
        let stream = in_time(deadline, self.connect(url)).await?;
        if !url.is_encrypted() {
            return exchange(stream, request, deadline).await;
        }
        let name = match url.address() {
            Some(address) => Ok(ServerName::from(address)),
            None => ServerName::try_from(url.host().to_owned()),
        };
        let name = name.map_err(|error| Undelivered::Unresolved(io::Error::other(error)))?;
        let handshake = async { self.tls.connect(name, stream).await.map_err(of_tls) };
        let stream = in_time(deadline, handshake).await?;
        exchange(stream, request, deadline).await
    }

    /// Resolves once, judges every address, and connects to one that was judged.
    async fn connect(&self, url: &CallbackUrl) -> Result<TcpStream, Undelivered> {
        let addresses = match url.address() {
            Some(address) => vec![address],
            None => self
                .resolver
                .resolve(url.host())
                .await
                .map_err(Undelivered::Unresolved)?,
        };
        // One that is not to be reached makes all of them doubtful.
        if !addresses
            .iter()
            .all(|address| self.policy.may_be_at(url, *address))
        {
            return Err(Undelivered::Private);
        }
        let mut failed = Undelivered::Unresolved(io::ErrorKind::NotFound.into());
        for address in addresses.into_iter().take(limits::DELIVERY_ADDRESSES_MAX) {
            let connecting = TcpStream::connect(SocketAddr::new(address, url.port()));
            failed = match timeout(limits::DELIVERY_CONNECT_MAX, connecting).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => Undelivered::Unreachable(error),
                Err(_) => Undelivered::TimedOut,
            };
        }
        Err(failed)
    }
}

impl Resolver {
    async fn resolve(self, name: &str) -> io::Result<Vec<IpAddr>> {
        match self {
            Self::System => {
                let found = tokio::net::lookup_host((name, 0)).await?;
                Ok(found.map(|address| address.ip()).collect())
            }
            #[cfg(feature = "testing")]
            Self::Scripted(resolve) => Ok(resolve(name)),
        }
    }
}

/// Those of the operator's file, else those that the Internet believes.
fn authorities(file: Option<&Path>) -> Result<RootCertStore, Error> {
    let Some(file) = file else {
        return Ok(webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect());
    };
    let wrong = || {
        let message = format!(
            "webhooks.ca_bundle: `{}` holds no certificate authorities (PEM)",
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

fn of_tls(error: io::Error) -> Undelivered {
    let cause = error
        .get_ref()
        .and_then(|cause| cause.downcast_ref::<rustls::Error>());
    match cause {
        Some(rustls::Error::InvalidCertificate(_)) => Undelivered::Certificate(error),
        _ => Undelivered::Tls(error),
    }
}

async fn in_time<T>(
    deadline: Instant,
    work: impl Future<Output = Result<T, Undelivered>>,
) -> Result<T, Undelivered> {
    timeout_at(deadline, work)
        .await
        .unwrap_or(Err(Undelivered::TimedOut))
}

async fn exchange<S>(
    stream: S,
    request: Request<Full<Bytes>>,
    deadline: Instant,
) -> Result<Heard, Undelivered>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let handshake = http1::Builder::new()
        .max_buf_size(limits::DELIVERY_HEAD_BYTES_MAX)
        .max_headers(limits::DELIVERY_HEADERS_MAX)
        .handshake(TokioIo::new(stream));
    let (mut sender, connection) = handshake.await.map_err(Undelivered::Broken)?;
    let mut connection = std::pin::pin!(connection.fuse());
    let answered = async {
        let mut answered = std::pin::pin!(sender.send_request(request));
        let answer = tokio::select! {
            biased;
            answer = &mut answered => answer,
            // What has come is there, even if the connection is over.
            _ = &mut connection => answered.await,
        };
        answer.map_err(of_http)
    };
    let answer = in_time(deadline, answered).await?;
    let heard = Heard {
        status: answer.status(),
        retry_after: retry_after(&answer),
    };
    // For courtesy alone: whoever is cut off in the middle of an answer may take that for a failure.
    tokio::select! {
        _ = timeout(limits::DELIVERY_REST_MAX, rest(answer)) => {}
        _ = connection => {}
    }
    Ok(heard)
}

fn retry_after(answer: &Response<Incoming>) -> Option<Duration> {
    match answer.status() {
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
            let text = answer.headers().get(RETRY_AFTER)?.to_str().ok()?;
            until(text.trim(), clock::now())
        }
        _ => None,
    }
}

/// A number of seconds, or a date.
pub(super) fn until(text: &str, now: Timestamp) -> Option<Duration> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let at = rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
    at.duration_since(now).try_into().ok()
}

/// Reads what else there is, as far as it is little.
async fn rest(answer: Response<Incoming>) {
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

fn of_http(error: hyper::Error) -> Undelivered {
    if error.is_parse_too_large() {
        Undelivered::HeadTooLarge
    } else {
        Undelivered::Broken(error)
    }
}
