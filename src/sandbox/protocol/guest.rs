//! A connected guest before its program starts.

use std::io;

use futures::FutureExt as _;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;

use super::half_closed::HalfClosed;
use super::send_before;
use crate::guest::wire::{self, Channel, Link, Side, ToGuest, ToHost, Warm};
use crate::limits;

#[derive(Debug)]
pub(in crate::sandbox) struct Guest {
    pub(super) link: Link,
    /// Opened once the guest was warmed up.
    pub(super) streams: Option<Streams>,
}

#[derive(Debug)]
pub(in crate::sandbox) struct Streams {
    pub(super) control: wire::Stream,
    pub(super) inputs: wire::Stream,
    pub(super) printed: PrintedStreams,
    pub(super) results: wire::Stream,
}

/// The program's output and log.
#[derive(Debug)]
pub(in crate::sandbox) struct PrintedStreams {
    pub(super) stdout: wire::Stream,
    pub(super) stderr: wire::Stream,
    pub(super) log: wire::Stream,
}

impl Streams {
    pub(super) async fn open(link: &mut Link) -> io::Result<Self> {
        Ok(Self {
            control: link.open(Channel::Control).await?,
            inputs: link.open(Channel::Inputs).await?,
            printed: PrintedStreams {
                stdout: link.open(Channel::Stdout).await?,
                stderr: link.open(Channel::Stderr).await?,
                log: link.open(Channel::Log).await?,
            },
            results: link.open(Channel::Results).await?,
        })
    }
}

impl Guest {
    pub(in crate::sandbox) fn at<S>(socket: S) -> Self
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        Self {
            link: Link::new(HalfClosed(socket), Side::Host),
            streams: None,
        }
    }

    /// Waits for its first frame. The guest lives as long as the returned streams.
    #[cfg(target_os = "linux")]
    pub(in crate::sandbox) async fn wait_for_hello(&mut self) -> io::Result<Streams> {
        let mut streams = Streams::open(&mut self.link).await?;
        receive_hello(&mut streams.control).await?;
        Ok(streams)
    }

    /// Prepares it for a program whose start follows later.
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

    /// Without asking the guest.
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
