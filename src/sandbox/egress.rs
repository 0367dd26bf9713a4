//! The way out of the one kind of sandbox that has one: connections made inside arrive at the server, which decides.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc;

use crate::guest::wire;
use crate::limits;

/// A way out of one sandbox. Only what builds dependencies makes one; no other job can have it.
#[derive(Clone, Debug)]
pub struct Egress(mpsc::Sender<Tunnel>);

/// A connection from inside a sandbox; what it says is foreign.
#[derive(Debug)]
pub struct Tunnel(wire::Stream);

impl Egress {
    /// The port of the sandbox's loopback that leads out.
    pub const PORT: u16 = 3128;

    /// A way out, and where it leads.
    pub(crate) fn new() -> (Self, mpsc::Receiver<Tunnel>) {
        let (sender, tunnels) = mpsc::channel(limits::EGRESS_CONNECTIONS_MAX);
        (Self(sender), tunnels)
    }

    /// Hands a connection over; one that nobody takes ends.
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
