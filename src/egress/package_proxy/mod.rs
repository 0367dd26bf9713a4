//! The proxy for package installation: `CONNECT` to configured hosts, and nothing else.
//!
//! Clients are hostile: they run inside of sandboxes that install packages.

use std::convert::Infallible;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http_body_util::{Empty, Full};
use hyper::body::Incoming;
use hyper::header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::egress::upstream::{Connected, Upstream};
use crate::egress::{ConnectError, Connector, PackageHost, Resolver};
use crate::limits;

/// The proxy of one installation.
#[derive(Debug)]
pub struct PackageProxy {
    hosts: Vec<PackageHost>,
    upstream: Option<Upstream>,
    /// In both directions together.
    bytes_left: AtomicU64,
    first_failure: Mutex<Option<ProxyFailure>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProxyFailure {
    Forbidden(String),
    Unreachable(String),
}

impl ProxyFailure {
    fn status(&self) -> StatusCode {
        match self {
            Self::Forbidden(_) => StatusCode::FORBIDDEN,
            Self::Unreachable(_) => StatusCode::BAD_GATEWAY,
        }
    }
}

impl PackageProxy {
    #[must_use]
    pub fn new(hosts: Vec<PackageHost>, upstream: Option<Upstream>) -> Self {
        Self {
            hosts,
            upstream,
            bytes_left: AtomicU64::new(limits::EGRESS_BYTES_MAX),
            first_failure: Mutex::default(),
        }
    }

    /// Serves connections until the last sender is dropped. Dropping the future closes all of them.
    pub async fn serve<S>(self: Arc<Self>, mut connections: mpsc::Receiver<S>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let mut open = JoinSet::new();
        loop {
            tokio::select! {
                connection = connections.recv() => {
                    let Some(connection) = connection else { break };
                    // The guest respects this limit; a program that replaced it may not.
                    if open.len() < limits::EGRESS_CONNECTIONS_MAX {
                        open.spawn(self.clone().serve_connection(connection));
                    }
                }
                Some(_) = open.join_next() => {}
            }
        }
    }

    /// Bytes that were transferred so far, in both directions.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        limits::EGRESS_BYTES_MAX.saturating_sub(self.bytes_left.load(Ordering::Relaxed))
    }

    pub fn first_failure(&self) -> Option<ProxyFailure> {
        self.first_failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Serves one request, and relays bytes if it is accepted.
    async fn serve_connection(
        self: Arc<Self>,
        connection: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    ) {
        let granted = Arc::new(Mutex::new(None));
        let service = service_fn(|request| {
            let (proxy, granted) = (self.clone(), granted.clone());
            async move { Ok::<_, Infallible>(proxy.answer(request, &granted).await) }
        });
        let mut server = http1::Builder::new();
        server
            .keep_alive(false)
            .max_headers(limits::EGRESS_HEADERS_MAX)
            .max_buf_size(limits::EGRESS_HEAD_BYTES_MAX)
            .timer(TokioTimer::new())
            .header_read_timeout(limits::EGRESS_CONNECT_MAX);
        let served = server
            .serve_connection(TokioIo::new(connection), service)
            .with_upgrades();
        if served.await.is_err() {
            return;
        }
        let granted = granted.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((upgrade, connected)) = granted
            && let Ok(inside) = timeout(limits::EGRESS_CONNECT_MAX, upgrade).await
            && let Ok(inside) = inside
        {
            let inside = TokioIo::new(inside);
            match connected {
                Connected::Directly(outside) => self.relay(inside, outside).await,
                Connected::Through(outside) => self.relay(inside, outside).await,
            }
        }
    }

    async fn answer(
        &self,
        mut request: Request<Incoming>,
        granted: &Mutex<Option<(OnUpgrade, Connected)>>,
    ) -> Response<Full<Bytes>> {
        let upgrade = hyper::upgrade::on(&mut request);
        match self.connect(&request).await {
            Ok(connected) => {
                *granted.lock().unwrap_or_else(PoisonError::into_inner) = Some((upgrade, connected));
                Response::new(Full::default())
            }
            Err(failure) => {
                let (ProxyFailure::Forbidden(why) | ProxyFailure::Unreachable(why)) = &failure;
                let mut response = Response::new(Full::from(format!("{why}\n")));
                *response.status_mut() = failure.status();
                let mut first = self.first_failure.lock().unwrap_or_else(PoisonError::into_inner);
                first.get_or_insert(failure);
                let close = hyper::header::HeaderValue::from_static("close");
                response.headers_mut().insert(CONNECTION, close);
                response
            }
        }
    }

    /// Accepts `CONNECT` to a configured host, without anything that two parsers could read differently (E-08).
    async fn connect(&self, request: &Request<Incoming>) -> Result<Connected, ProxyFailure> {
        let forbidden = |why: &str| ProxyFailure::Forbidden(why.to_owned());
        if request.method() != Method::CONNECT {
            return Err(forbidden("only CONNECT is supported"));
        }
        let headers = request.headers();
        if headers.contains_key(CONTENT_LENGTH) || headers.contains_key(TRANSFER_ENCODING) {
            return Err(forbidden("CONNECT must not have a body"));
        }
        // Parsers differ about a user name before the host.
        let authority = request
            .uri()
            .authority()
            .filter(|authority| !authority.as_str().contains('@'));
        let target = authority.and_then(|authority| Some((authority.host(), authority.port_u16()?)));
        let (name, port) = target.ok_or_else(|| forbidden("CONNECT needs a host and a port"))?;
        let host = self
            .hosts
            .iter()
            .find(|host| host.is(name, port))
            .ok_or_else(|| {
                let host = crate::error::quoted(&format!("{name}:{port}"));
                forbidden(&format!("{host} is not a host of the configured package indexes"))
            })?;
        let dialled = timeout(limits::EGRESS_CONNECT_MAX, self.dial(host)).await;
        let unreachable =
            |error: io::Error| ProxyFailure::Unreachable(format!("{name}:{port} cannot be reached: {error}"));
        dialled
            .unwrap_or(Err(ConnectError::TimedOut))
            .map_err(|error| match error {
                ConnectError::Forbidden(address) => ProxyFailure::Forbidden(format!(
                    "{name}:{port} cannot be reached: it is at {address}, which is not a public address; an operator can allow the host by naming it in the configuration"
                )),
                ConnectError::Unresolved(error) | ConnectError::Unreachable(error) => unreachable(error),
                ConnectError::TimedOut => unreachable(io::ErrorKind::TimedOut.into()),
            })
    }

    async fn dial(&self, host: &PackageHost) -> Result<Connected, ConnectError> {
        // An upstream proxy resolves names itself. IP addresses are checked before it receives them.
        if let Ok(address) = host.name().parse()
            && !host.allows_address(address)
        {
            return Err(ConnectError::Forbidden(address));
        }
        let upstream = self.upstream.as_ref();
        if let Some(upstream) = upstream.filter(|upstream| upstream.serves(host.name())) {
            let connected = upstream.connect(host.name(), host.port()).await;
            return connected.map_err(ConnectError::Unreachable);
        }
        let connector = Connector {
            resolver: Resolver::System,
            connect_max: limits::EGRESS_CONNECT_MAX,
        };
        let is_allowed = |address| host.allows_address(address);
        let connected = connector
            .connect_checked(host.name(), host.port(), is_allowed)
            .await;
        connected.map(Connected::Directly)
    }

    /// Copies in both directions until both end, the tunnel is idle for too long, or the byte limit is reached.
    async fn relay<A, B>(&self, inside: A, outside: B)
    where
        A: AsyncRead + AsyncWrite,
        B: AsyncRead + AsyncWrite,
    {
        let (inside_reader, inside_writer) = tokio::io::split(inside);
        let (outside_reader, outside_writer) = tokio::io::split(outside);
        let moved = AtomicU64::new(0);
        let both = async {
            tokio::try_join!(
                self.pump(inside_reader, outside_writer, &moved),
                self.pump(outside_reader, inside_writer, &moved)
            )
        };
        let idle = async {
            let mut before = 0;
            loop {
                tokio::time::sleep(limits::EGRESS_IDLE_MAX).await;
                let now = moved.load(Ordering::Relaxed);
                if now == before {
                    return;
                }
                before = now;
            }
        };
        tokio::select! {
            // Both ends notice errors themselves.
            _ = both => {}
            () = idle => {}
        }
    }

    async fn pump(
        &self,
        mut from: impl AsyncRead + Unpin,
        mut to: impl AsyncWrite + Unpin,
        moved: &AtomicU64,
    ) -> io::Result<()> {
        let mut buffer = vec![0; 32 * 1024];
        loop {
            let read = from.read(&mut buffer).await?;
            if read == 0 {
                return to.shutdown().await;
            }
            let spent = |left: u64| left.checked_sub(read as u64);
            if self
                .bytes_left
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, spent)
                .is_err()
            {
                return Err(io::ErrorKind::QuotaExceeded.into());
            }
            moved.fetch_add(read as u64, Ordering::Relaxed);
            to.write_all(&buffer[..read]).await?;
            to.flush().await?;
        }
    }
}

pub(super) type NoBody = Empty<Bytes>;

#[cfg(test)]
mod tests;
