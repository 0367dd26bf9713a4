//! The attached streams of a container as one byte stream.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bollard::container::{AttachContainerResults, LogOutput};
use bytes::{Buf as _, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Standard error of PID 1, logged if it fails.
#[derive(Debug, Clone, Default)]
pub(super) struct Diagnostics(Arc<Mutex<Vec<u8>>>);

const DIAGNOSTICS_BYTES_MAX: usize = 4096;

impl Diagnostics {
    fn push(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let room = DIAGNOSTICS_BYTES_MAX - kept.len();
        kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// The text so far, safe to log.
    pub(super) fn text(&self) -> String {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&kept).escape_debug().to_string()
    }
}

/// Standard input and output of PID 1 as one connection.
pub(super) struct AttachedSocket {
    attached: AttachContainerResults,
    unread: Bytes,
    diagnostics: Diagnostics,
}

impl AttachedSocket {
    pub(super) fn new(attached: AttachContainerResults) -> (Self, Diagnostics) {
        let diagnostics = Diagnostics::default();
        (
            Self {
                attached,
                unread: Bytes::new(),
                diagnostics: diagnostics.clone(),
            },
            diagnostics,
        )
    }
}

impl AsyncRead for AttachedSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.unread.is_empty() {
            match ready!(self.attached.output.as_mut().poll_next(cx)) {
                None => return Poll::Ready(Ok(())),
                Some(Err(error)) => return Poll::Ready(Err(io::Error::other(error))),
                Some(Ok(LogOutput::StdOut { message } | LogOutput::Console { message })) => {
                    self.unread = message
                }
                Some(Ok(LogOutput::StdErr { message })) => self.diagnostics.push(&message),
                Some(Ok(LogOutput::StdIn { .. })) => {}
            }
        }
        let length = self.unread.len().min(buffer.remaining());
        buffer.put_slice(&self.unread[..length]);
        self.unread.advance(length);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for AttachedSocket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.attached.input.as_mut().poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.attached.input.as_mut().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.attached.input.as_mut().poll_shutdown(cx)
    }
}
