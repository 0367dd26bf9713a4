//! Network access of builds: connections from inside are forwarded to the server, which authorizes them.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc;

use crate::guest::wire;
use crate::limits;

/// Forwards connections of one sandbox. Only builds have one.
#[derive(Clone, Debug)]
pub struct Egress(mpsc::Sender<Tunnel>);

/// A connection from inside a sandbox. Its content is untrusted.
#[derive(Debug)]
pub struct Tunnel(wire::Stream);

impl Egress {
    /// The proxy's port on the sandbox's loopback.
    pub const PORT: u16 = 3128;

    pub(crate) fn new() -> (Self, mpsc::Receiver<Tunnel>) {
        let (sender, tunnels) = mpsc::channel(limits::EGRESS_CONNECTIONS_MAX);
        (Self(sender), tunnels)
    }

    /// Dropping it closes all connections.
    #[cfg(test)]
    pub(super) fn closed() -> Self {
        Self::new().0
    }

    /// A connection that is not received is closed.
    pub(super) fn forward(&self, stream: wire::Stream) {
        let _ = self.0.try_send(Tunnel(stream));
    }
}

impl AsyncRead for Tunnel {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Tunnel {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
