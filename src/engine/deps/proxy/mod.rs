//! What stands at the other end of a builder's only way out: tunnels to the package indexes, and nothing else.
//!
//! Who connects is a hostile program as far as this file knows. It may ask for one thing, `CONNECT` to a host that is on the
//! list; names are resolved here, once, every address is judged, and the one that was judged is dialled.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
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
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::engine::deps::index::Host;
use crate::engine::deps::upstream::{Connected, Upstream};
use crate::limits;
use crate::sandbox::Tunnel;

/// The gate of one builder.
#[derive(Debug)]
pub(super) struct Proxy {
    hosts: Vec<Host>,
    upstream: Option<Upstream>,
    /// What may still go through, both ways together.
    bytes_left: AtomicU64,
    /// The first thing that went wrong, for whoever wants to know why an installation failed.
    trouble: Mutex<Option<Trouble>>,
}

/// Why a host was not reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// It is not to be.
    Refused(String),
    /// It could not be.
    Unreachable(String),
}

impl Proxy {
    pub(super) fn new(hosts: Vec<Host>, upstream: Option<Upstream>) -> Self {
        Self {
            hosts,
            upstream,
            bytes_left: AtomicU64::new(limits::EGRESS_BYTES_MAX),
            trouble: Mutex::default(),
        }
    }

    /// Serves every tunnel until the last sender is gone; all end when this is dropped.
    pub(super) async fn serve(self: Arc<Self>, mut tunnels: mpsc::Receiver<Tunnel>) {
        let mut open = JoinSet::new();
        loop {
            tokio::select! {
                tunnel = tunnels.recv() => {
                    let Some(tunnel) = tunnel else { break };
                    // The guest keeps to this number; whoever took its place need not.
                    if open.len() < limits::EGRESS_CONNECTIONS_MAX {
                        open.spawn(self.clone().tunnel(tunnel));
                    }
                }
                Some(_) = open.join_next() => {}
            }
        }
    }

    /// Why something was not reached, if anything was not.
    pub(super) fn trouble(&self) -> Option<Trouble> {
        self.trouble
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// One connection: one request, and what follows if it is granted.
    async fn tunnel(self: Arc<Self>, tunnel: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
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
            .serve_connection(TokioIo::new(tunnel), service)
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
        match self.judge(&request).await {
            Ok(connected) => {
                *granted.lock().unwrap_or_else(PoisonError::into_inner) = Some((upgrade, connected));
                Response::new(Full::default())
            }
            Err((status, why)) => {
                let trouble = match status {
                    StatusCode::FORBIDDEN => Trouble::Refused(why.clone()),
                    _ => Trouble::Unreachable(why.clone()),
                };
                let mut first = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
                first.get_or_insert(trouble);
                let mut response = Response::new(Full::from(why + "\n"));
                *response.status_mut() = status;
                let close = hyper::header::HeaderValue::from_static("close");
                response.headers_mut().insert(CONNECTION, close);
                response
            }
        }
    }

    /// Grants `CONNECT` to a host of the list, without anything that two readers could understand in two ways (E-08).
    async fn judge(&self, request: &Request<Incoming>) -> Result<Connected, (StatusCode, String)> {
        let forbidden = |why: &str| (StatusCode::FORBIDDEN, why.to_owned());
        if request.method() != Method::CONNECT {
            return Err(forbidden("only CONNECT is served here"));
        }
        let headers = request.headers();
        if headers.contains_key(CONTENT_LENGTH) || headers.contains_key(TRANSFER_ENCODING) {
            return Err(forbidden("CONNECT has no body"));
        }
        // A name before the host would be one more thing to read in two ways.
        let authority = request
            .uri()
            .authority()
            .filter(|authority| !authority.as_str().contains('@'));
        let target = authority.and_then(|authority| Some((authority.host(), authority.port_u16()?)));
        let (name, port) = target.ok_or_else(|| forbidden("name a host and a port"))?;
        let host = self
            .hosts
            .iter()
            .find(|host| host.is(name, port))
            .ok_or_else(|| {
                let host = crate::error::quoted(&format!("{name}:{port}"));
                forbidden(&format!("{host} is no host of the configured package indexes"))
            })?;
        let reached = timeout(limits::EGRESS_CONNECT_MAX, self.reach(host)).await;
        let reached = reached.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        reached.map_err(|error| {
            let status = match error.kind() {
                io::ErrorKind::PermissionDenied => StatusCode::FORBIDDEN,
                _ => StatusCode::BAD_GATEWAY,
            };
            (status, format!("{name}:{port} cannot be reached: {error}"))
        })
    }

    async fn reach(&self, host: &Host) -> io::Result<Connected> {
        let (name, port) = host.to_resolve();
        // A proxy resolves names itself, and judges them or not; what needs no resolving is judged here.
        if let Ok(address) = name.parse() {
            judge_address(host, address)?;
        }
        if let Some(upstream) = self.upstream.as_ref().filter(|upstream| upstream.serves(name)) {
            return upstream.connect(name, port).await;
        }
        let addresses: Vec<SocketAddr> = tokio::net::lookup_host((name, port)).await?.collect();
        // One that is not to be reached makes all of them doubtful (E-06).
        addresses
            .iter()
            .try_for_each(|address| judge_address(host, address.ip()))?;
        let mut failed = io::Error::from(io::ErrorKind::NotFound);
        for address in addresses.into_iter().take(limits::EGRESS_ADDRESSES_MAX) {
            match TcpStream::connect(address).await {
                Ok(stream) => return Ok(Connected::Directly(stream)),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    /// Copies both ways until both have ended, nothing has moved for long, or too much has.
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
            // How a tunnel ended is for its two ends to say.
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

fn judge_address(host: &Host, address: IpAddr) -> io::Result<()> {
    if host.may_be_at(address) {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!(
            "it is at {address}, which is no address of the Internet; name the index in the configuration if it is meant"
        ),
    ))
}

/// The body of a request that has none.
pub(super) type NoBody = Empty<Bytes>;

#[cfg(test)]
mod tests;
