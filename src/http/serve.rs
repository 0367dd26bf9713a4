//! The accept loop. Our own, since `axum::serve` has no timeouts and ends only with its last client.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderValue, header};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;

use super::activity::Activity;
use crate::limits;
use crate::telemetry::field;

/// Limits of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Time for the headers of a connection's first request. Further requests must arrive within `idle`.
    pub header: Duration,
    /// Maximum pause within a request body.
    pub body_idle: Duration,
    /// Time for a request body.
    pub body: Duration,
    /// Time after which a connection without a running request and without outgoing data is closed.
    pub idle: Duration,
    /// Time for running requests at shutdown.
    pub drain: Duration,
    /// Concurrent connections.
    pub connections_max: usize,
    /// Further connections for health checks and administrators; the next ones wait in the listen backlog.
    pub reserved: usize,
}

impl ConnectionLimits {
    /// As many connections as fit into this number of open files, next to `concurrency` executions.
    #[must_use]
    pub fn within(files: u64, concurrency: usize) -> Self {
        let executions = limits::FILES_PER_EXECUTION.saturating_mul(concurrency as u64);
        let free = files.saturating_sub(limits::FILES_OF_SERVER.saturating_add(executions));
        let connections = usize::try_from(free / limits::FILES_PER_CONNECTION).unwrap_or(usize::MAX);
        Self {
            connections_max: connections
                .saturating_sub(limits::CONNECTIONS_RESERVED)
                .clamp(limits::CONNECTIONS_RESERVED, limits::CONNECTIONS_MAX),
            ..Self::default()
        }
    }

    /// Open event and log streams: some connections stay for requests.
    pub(crate) fn readers_max(&self) -> u64 {
        limits::READERS_MAX.min(self.connections_max as u64 / 4 * 3)
    }
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            header: limits::HEADER_READ_MAX,
            body_idle: limits::BODY_IDLE_MAX,
            body: limits::BODY_READ_MAX,
            idle: limits::CONNECTION_IDLE_MAX,
            drain: limits::DRAIN_SERVER_MAX,
            connections_max: limits::CONNECTIONS_MAX,
            reserved: limits::CONNECTIONS_RESERVED,
        }
    }
}

/// The client's address, added to each request by [`serve`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer(pub SocketAddr);

/// Added to each request of a connection beyond [`ConnectionLimits::connections_max`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct OnReservedConnection;

/// A router with its limits.
#[derive(Clone, Debug)]
pub struct App {
    pub router: Router,
    pub bounds: ConnectionLimits,
}

/// Serves `app` on `listener` (HTTP/1.1, and HTTP/2 with prior knowledge) until `shutdown`. Then running requests
/// have [`ConnectionLimits::drain`] to end. Returns when all connections are closed.
pub async fn serve(listener: TcpListener, app: App, shutdown: CancellationToken) {
    let slots = ConnectionSlots::new(&app.bounds);
    serve_within(listener, app, slots, shutdown).await;
}

/// As [`serve`], where several listeners share the connections of `slots`.
pub async fn serve_within(
    listener: TcpListener,
    app: App,
    slots: ConnectionSlots,
    shutdown: CancellationToken,
) {
    let bounds = app.bounds;
    let state = Arc::new(AcceptLoop {
        builder: builder(&bounds),
        app,
        slots,
        shutdown,
        abort: CancellationToken::new(),
    });
    let connections = TaskTracker::new();
    state.accept_all(&listener, &connections).await;
    drop(listener);
    connections.close();
    if tokio::time::timeout(bounds.drain, connections.wait())
        .await
        .is_err()
    {
        tracing::warn!(
            "Connections closed at shutdown: {} still had requests",
            connections.len()
        );
        state.abort.cancel();
        connections.wait().await;
    }
}

struct AcceptLoop {
    app: App,
    slots: ConnectionSlots,
    builder: Builder<TokioExecutor>,
    shutdown: CancellationToken,
    abort: CancellationToken,
}

impl AcceptLoop {
    async fn accept_all(self: &Arc<Self>, listener: &TcpListener, connections: &TaskTracker) {
        let slots = &self.slots;
        let accept = async {
            loop {
                let slot = slots.next().await;
                match listener.accept().await {
                    Ok((stream, peer)) => {
                        // One may have become free while this waited.
                        let slot = slots.usual().unwrap_or(slot);
                        let connection = Arc::clone(self).connection(stream, Peer(peer), slot);
                        connections.spawn(connection);
                    }
                    Err(error) => pause_after(&error).await,
                }
            }
        };
        tokio::select! {
            () = accept => {}
            () = self.shutdown.cancelled() => {}
        }
    }

    async fn connection(self: Arc<Self>, stream: TcpStream, peer: Peer, slot: ConnectionSlot) {
        // Responses are written completely; delaying packets gains nothing.
        if stream.set_nodelay(true).is_err() {
            return;
        }
        let activity = Activity::default();
        let service = service_fn(|mut request: hyper::Request<Incoming>| {
            let work = activity.begin();
            request.extensions_mut().insert(peer);
            if slot.reserved {
                request.extensions_mut().insert(OnReservedConnection);
            }
            let response = self.app.router.clone().oneshot(request.map(Body::new));
            async move {
                let response: Result<_, Infallible> = response.await;
                response.map(|mut response| {
                    if slot.reserved {
                        let close = HeaderValue::from_static("close");
                        response.headers_mut().insert(header::CONNECTION, close);
                    }
                    work.end(response)
                })
            }
        });
        let mut bounds = self.app.bounds;
        if slot.reserved {
            bounds.idle = bounds.idle.min(limits::RESERVED_IDLE_MAX);
            bounds.header = bounds.header.min(limits::RESERVED_IDLE_MAX);
        }
        let mut connection = std::pin::pin!(self.builder.serve_connection(TokioIo::new(stream), service));
        let mut check = tokio::time::interval(limits::CONNECTION_CHECK_EVERY.min(bounds.header));
        let mut leaving = false;
        loop {
            tokio::select! {
                end = connection.as_mut() => {
                    if let Err(error) = end {
                        tracing::debug!({ field::PEER } = %peer.0, { field::CAUSE } = %error, "Connection failed");
                    }
                    return;
                }
                () = self.shutdown.cancelled(), if !leaving => {
                    connection.as_mut().graceful_shutdown();
                    leaving = true;
                }
                // First with a notice, so that a client of HTTP/2 sends its next request on another connection.
                _ = check.tick() => if activity.is_over(&bounds) {
                    if leaving {
                        return;
                    }
                    connection.as_mut().graceful_shutdown();
                    leaving = true;
                },
                () = self.abort.cancelled() => return,
            }
        }
    }
}

/// The connections that a server may have at once.
#[derive(Clone, Debug)]
pub struct ConnectionSlots {
    usual: Arc<Semaphore>,
    reserved: Arc<Semaphore>,
}

/// Released when dropped.
struct ConnectionSlot {
    _permit: OwnedSemaphorePermit,
    reserved: bool,
}

impl ConnectionSlots {
    #[must_use]
    pub fn new(bounds: &ConnectionLimits) -> Self {
        Self {
            usual: Arc::new(Semaphore::new(bounds.connections_max)),
            reserved: Arc::new(Semaphore::new(bounds.reserved)),
        }
    }

    fn usual(&self) -> Option<ConnectionSlot> {
        let permit = Arc::clone(&self.usual).try_acquire_owned().ok()?;
        Some(ConnectionSlot {
            _permit: permit,
            reserved: false,
        })
    }

    async fn next(&self) -> ConnectionSlot {
        let (permit, reserved) = tokio::select! {
            biased;
            permit = Arc::clone(&self.usual).acquire_owned() => (permit, false),
            permit = Arc::clone(&self.reserved).acquire_owned() => (permit, true),
        };
        ConnectionSlot {
            _permit: permit.expect("the semaphore is never closed"),
            reserved,
        }
    }
}

fn builder(bounds: &ConnectionLimits) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        // hyper's timeout starts at the end of the last response and would close every idle connection. `Activity`
        // has the timeouts.
        .header_read_timeout(None)
        .max_headers(limits::HEADERS_MAX)
        .max_buf_size(limits::HEADER_BYTES_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(bounds.idle / 2)
        .keep_alive_timeout(bounds.header)
        .max_concurrent_streams(limits::STREAMS_MAX)
        .max_send_buf_size(limits::STREAM_BUFFER_BYTES)
        .max_header_list_size(u32::try_from(limits::HEADER_BYTES_MAX).unwrap_or(u32::MAX));
    builder
}

/// A connection that was closed before `accept` is ignored. Without descriptors or memory, wait and continue.
async fn pause_after(error: &io::Error) {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    if matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted
    ) {
        return;
    }
    tracing::warn!({ field::CAUSE } = %error, "Accepting a connection failed; trying again");
    tokio::time::sleep(limits::ACCEPT_BACKOFF).await;
}
