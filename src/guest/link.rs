//! The connection of host and guest: several streams over one, driven by a task of its own.

use std::future::{Future as _, poll_fn};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufStream, ReadBuf};
use tokio::sync::{mpsc, oneshot};
use tokio_util::compat::{Compat, FuturesAsyncReadCompatExt as _};

use crate::guest::wire::{self, Channel};
use crate::limits;

/// Streams per connection: six, the tunnels, and as many that one side has not forgotten yet. One more ends the
/// connection, so opening tunnels waits until the other side has closed as many.
const STREAMS_MAX: usize = 24;
/// Bytes in flight to the other side, over all streams.
const WINDOW_BYTES_MAX: usize = 8 * 1024 * 1024;

/// One stream of the connection, ready for tokio.
pub type Stream = Compat<yamux::Stream>;

/// Opens and accepts streams of the connection.
#[derive(Debug)]
pub struct Link {
    inbound: mpsc::Receiver<yamux::Stream>,
    opened: mpsc::Receiver<yamux::Stream>,
    wanted: mpsc::Sender<OpenRequest>,
    close: Option<oneshot::Sender<()>>,
    driver: tokio::task::JoinHandle<()>,
}

type OpenRequest = oneshot::Sender<yamux::Stream>;

/// Opens further streams from other tasks.
#[derive(Clone, Debug)]
pub struct Opener(mpsc::Sender<OpenRequest>);

impl Opener {
    /// Opens a stream and sends its channel.
    pub async fn open(&self, channel: Channel) -> io::Result<Stream> {
        let (wanted, opened) = oneshot::channel();
        self.0.send(wanted).await.map_err(|_| wire::closed())?;
        let mut stream = opened.await.map_err(|_| wire::closed())?.compat();
        stream.write_all(&[channel as u8]).await?;
        Ok(stream)
    }
}

/// The side of the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// Opens the streams of an execution.
    Host,
    /// Accepts them, and opens tunnels.
    Guest,
}

impl Link {
    pub fn new<T>(socket: T, side: Side) -> Self
    where
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let mut config = yamux::Config::default();
        config.set_max_num_streams(STREAMS_MAX);
        config.set_max_connection_receive_window(Some(WINDOW_BYTES_MAX));
        let mode = if side == Side::Host {
            yamux::Mode::Client
        } else {
            yamux::Mode::Server
        };
        let socket = FlushWhenIdle {
            stream: BufStream::new(socket),
            is_flushed: true,
        };
        let socket = tokio_util::compat::TokioAsyncReadCompatExt::compat(socket);
        let connection = yamux::Connection::new(socket, config, mode);
        let (inbound_sender, inbound) = mpsc::channel(STREAMS_MAX);
        let (opened_sender, opened) = mpsc::channel(Channel::ALL.len());
        let (wanted, wishes) = mpsc::channel(limits::EGRESS_CONNECTIONS_MAX);
        let (close, closing) = oneshot::channel();
        let to_open = if side == Side::Host { Channel::ALL.len() } else { 0 };
        let driver = tokio::spawn(drive(DriverState {
            connection,
            inbound: inbound_sender,
            opened: opened_sender,
            to_open,
            wishes,
            closing,
        }));
        Self {
            inbound,
            opened,
            wanted,
            close: Some(close),
            driver,
        }
    }

    /// Opens the next stream and sends its channel. The host opens each of [`Channel::ALL`] once.
    pub async fn open(&mut self, channel: Channel) -> io::Result<Stream> {
        let mut stream = self.opened.recv().await.ok_or_else(wire::closed)?.compat();
        stream.write_all(&[channel as u8]).await?;
        Ok(stream)
    }

    #[must_use]
    pub fn opener(&self) -> Opener {
        Opener(self.wanted.clone())
    }

    /// The next stream of the other side.
    pub async fn accept(&mut self) -> io::Result<(Channel, Stream)> {
        let mut stream = self.inbound.recv().await.ok_or_else(wire::closed)?.compat();
        let byte = stream.read_u8().await?;
        let channel = Channel::from_byte(byte).ok_or_else(|| wire::invalid("unknown channel"))?;
        Ok((channel, stream))
    }

    /// Resolves when either side has ended the connection.
    pub async fn ended(&mut self) {
        while self.inbound.recv().await.is_some() {}
    }

    /// Flushes, closes the connection and waits for that.
    pub async fn close(mut self) {
        if let Some(close) = self.close.take() {
            let _ = close.send(());
        }
        let _ = (&mut self.driver).await;
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// Flushes only when the connection is idle: all frames until then are sent in one system call and wake the other
/// side once.
struct FlushWhenIdle<T> {
    stream: BufStream<T>,
    is_flushed: bool,
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncRead for FlushWhenIdle<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        // The connection reads last in each poll.
        if read.is_pending() && !self.is_flushed {
            match Pin::new(&mut self.stream).poll_flush(context) {
                Poll::Ready(Ok(())) => self.is_flushed = true,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {}
            }
        }
        read
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncWrite for FlushWhenIdle<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.is_flushed = false;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

struct DriverState<T> {
    connection: yamux::Connection<T>,
    inbound: mpsc::Sender<yamux::Stream>,
    opened: mpsc::Sender<yamux::Stream>,
    to_open: usize,
    wishes: mpsc::Receiver<OpenRequest>,
    closing: oneshot::Receiver<()>,
}

/// Drives the connection: streams make progress only while this is polled.
async fn drive<T>(all: DriverState<T>)
where
    T: futures::io::AsyncRead + futures::io::AsyncWrite + Unpin,
{
    let DriverState {
        mut connection,
        inbound,
        opened,
        to_open,
        mut wishes,
        mut closing,
    } = all;
    for _ in 0..to_open {
        let Ok(stream) = poll_fn(|context| connection.poll_new_outbound(context)).await else {
            return;
        };
        if opened.send(stream).await.is_err() {
            return;
        }
    }
    let mut wanted: Option<OpenRequest> = None;
    poll_fn(|context| {
        loop {
            if Pin::new(&mut closing).poll(context).is_ready() {
                return Poll::Ready(());
            }
            // First, because this frees the slots of closed streams.
            match connection.poll_next_inbound(context) {
                Poll::Ready(Some(Ok(stream))) => {
                    if inbound.try_send(stream).is_err() {
                        return Poll::Ready(());
                    }
                    continue;
                }
                Poll::Ready(Some(Err(_)) | None) => return Poll::Ready(()),
                Poll::Pending => {}
            }
            if wanted.is_none() {
                let Poll::Ready(Some(next)) = wishes.poll_recv(context) else {
                    return Poll::Pending;
                };
                wanted = Some(next);
            }
            match connection.poll_new_outbound(context) {
                Poll::Ready(Ok(stream)) => {
                    // If the requester was dropped, the stream is dropped and closed.
                    let _ = wanted.take().map(|wanted| wanted.send(stream));
                }
                Poll::Ready(Err(_)) => return Poll::Ready(()),
                Poll::Pending => return Poll::Pending,
            }
        }
    })
    .await;
    let _ = poll_fn(|context| connection.poll_close(context)).await;
}
