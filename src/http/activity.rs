//! Whether anything still happens on a connection.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Instant;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::Bounds;

/// What one connection does. Bytes that come in do not count: who drips headers shall not live on them.
#[derive(Clone, Debug)]
pub(crate) struct Activity(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    opened_at: Instant,
    /// The last byte out, and the last start or end of a request.
    last: Instant,
    /// Requests in work.
    working: usize,
    /// Whether there was ever a request.
    used: bool,
}

impl Default for Activity {
    fn default() -> Self {
        let now = Instant::now();
        Self(Arc::new(Mutex::new(State {
            opened_at: now,
            last: now,
            working: 0,
            used: false,
        })))
    }
}

impl Activity {
    /// A request begins; it is in work until the answer's headers are there.
    pub(crate) fn begin(&self) -> Work {
        let mut state = self.state();
        state.working += 1;
        state.used = true;
        state.last = Instant::now();
        drop(state);
        Work(self.clone())
    }

    /// Whether the connection should be closed.
    pub(crate) fn is_over(&self, bounds: &Bounds) -> bool {
        let state = self.state();
        state.working == 0
            && if state.used {
                state.last.elapsed() > bounds.idle
            } else {
                state.opened_at.elapsed() > bounds.header
            }
    }

    fn touch(&self) {
        self.state().last = Instant::now();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One request in work.
#[derive(Debug)]
pub(crate) struct Work(Activity);

impl Drop for Work {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.working -= 1;
        state.last = Instant::now();
    }
}

/// A stream that reports what goes out.
#[derive(Debug)]
pub(crate) struct Watched {
    stream: TcpStream,
    activity: Activity,
}

impl Watched {
    pub(crate) fn new(stream: TcpStream, activity: Activity) -> Self {
        Self { stream, activity }
    }

    fn wrote(&self, result: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if matches!(result, Poll::Ready(Ok(1..))) {
            self.activity.touch();
        }
        result
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.wrote(result)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.wrote(result)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
