//! Detects idle connections.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Instant;

use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};

use super::ConnectionLimits;
use crate::limits;

/// Activity of a connection. Received bytes do not count, or a client could stay connected by sending headers slowly.
/// Sent bytes other than responses do not count either, such as replies to HTTP/2 pings.
#[derive(Clone, Debug)]
pub(crate) struct Activity(Arc<Mutex<ActivityState>>);

#[derive(Debug)]
struct ActivityState {
    opened_at: Instant,
    /// Start or end of a request, or progress of a response.
    last: Instant,
    /// Requests without response headers yet.
    working: usize,
    /// Whether the connection had a request.
    used: bool,
}

impl Default for Activity {
    fn default() -> Self {
        let now = Instant::now();
        Self(Arc::new(Mutex::new(ActivityState {
            opened_at: now,
            last: now,
            working: 0,
            used: false,
        })))
    }
}

impl Activity {
    /// Begins a request, which runs until its response headers are ready.
    pub(crate) fn begin(&self) -> ActiveRequest {
        let mut state = self.state();
        state.working += 1;
        state.used = true;
        state.last = Instant::now();
        drop(state);
        ActiveRequest(self.clone())
    }

    /// Whether to close the connection.
    pub(crate) fn is_over(&self, bounds: &ConnectionLimits) -> bool {
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

    fn state(&self) -> MutexGuard<'_, ActivityState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
pub(crate) struct ActiveRequest(Activity);

impl ActiveRequest {
    /// Ends the request. From now on, the client must read the response.
    pub(crate) fn end(self, answer: Response) -> Response {
        let activity = self.0.clone();
        answer.map(|body| {
            Body::new(TrackedBody {
                body,
                rest: Bytes::new(),
                activity,
            })
        })
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.working -= 1;
        state.last = Instant::now();
    }
}

/// A body sent in small pieces, each of which counts as activity: a piece is polled when there is space to send it.
struct TrackedBody {
    body: Body,
    /// Rest of the last piece.
    rest: Bytes,
    activity: Activity,
}

impl HttpBody for TrackedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = &mut *self;
        this.activity.touch();
        if this.rest.is_empty() {
            let frame = match ready!(Pin::new(&mut this.body).poll_frame(context)) {
                Some(Ok(frame)) => frame,
                end => return Poll::Ready(end),
            };
            match frame.into_data() {
                Ok(data) => this.rest = data,
                Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
            }
        }
        let length = this.rest.len().min(limits::ANSWER_PIECE_BYTES);
        Poll::Ready(Some(Ok(Frame::data(this.rest.split_to(length)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (rest, mut hint) = (self.rest.len() as u64, self.body.size_hint());
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper + rest);
        }
        hint.set_lower(hint.lower() + rest);
        hint
    }
}
