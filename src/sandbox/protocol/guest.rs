//! A guest that is spoken to: before anybody asks for a program, or because somebody does.

use std::io;

use futures::FutureExt as _;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;

use super::half_closed::HalfClosed;
use super::send_before;
use crate::guest::wire::{self, Channel, Link, Side, ToGuest, ToHost, Warm};
use crate::limits;

/// A guest whose program has not begun.
#[derive(Debug)]
pub(in crate::sandbox) struct Guest {
    pub(super) link: Link,
    /// There once it was spoken to.
    pub(super) streams: Option<Streams>,
}

/// What it is spoken to on.
#[derive(Debug)]
pub(in crate::sandbox) struct Streams {
    pub(super) control: wire::Stream,
    pub(super) inputs: wire::Stream,
    pub(super) stdout: wire::Stream,
    pub(super) stderr: wire::Stream,
    pub(super) results: wire::Stream,
    pub(super) log: wire::Stream,
}

impl Streams {
    pub(super) async fn open(link: &mut Link) -> io::Result<Self> {
        Ok(Self {
            control: link.open(Channel::Control).await?,
            inputs: link.open(Channel::Inputs).await?,
            stdout: link.open(Channel::Stdout).await?,
            stderr: link.open(Channel::Stderr).await?,
            results: link.open(Channel::Results).await?,
            log: link.open(Channel::Log).await?,
        })
    }
}

impl Guest {
    /// The guest at the other end; nothing is said yet.
    pub(in crate::sandbox) fn at<S>(socket: S) -> Self
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        Self {
            link: Link::new(HalfClosed(socket), Side::Host),
            streams: None,
        }
    }

    /// Waits for its first word. It lives as long as what is returned is held.
    #[cfg(target_os = "linux")]
    pub(in crate::sandbox) async fn wait_for_hello(&mut self) -> io::Result<Streams> {
        let mut streams = Streams::open(&mut self.link).await?;
        receive_hello(&mut streams.control).await?;
        Ok(streams)
    }

    /// Lets it make all ready for a program and wait.
    pub(in crate::sandbox) async fn warm_up(&mut self, warm: Warm) -> io::Result<()> {
        let mut streams = Streams::open(&mut self.link).await?;
        let control = &mut streams.control;
        send_before(
            control,
            ToGuest::Warm(warm),
            Instant::now() + limits::SANDBOX_START_MAX,
        )
        .await?;
        receive_hello(control).await?;
        match wire::receive(control, wire::FRAME_TO_HOST_BYTES_MAX).await? {
            Some(ToHost::Warm) => self.streams = Some(streams),
            _ => return Err(wire::invalid("a guest that does not wait")),
        }
        Ok(())
    }

    /// Whether it is still there, as far as is known without asking.
    pub(in crate::sandbox) fn is_connected(&mut self) -> bool {
        self.link.ended().now_or_never().is_none()
    }
}

async fn receive_hello(control: &mut wire::Stream) -> io::Result<()> {
    match wire::receive(control, wire::FRAME_TO_HOST_BYTES_MAX).await? {
        Some(ToHost::Hello { version }) if version == wire::VERSION => Ok(()),
        _ => Err(wire::invalid("expected a greeting")),
    }
}
