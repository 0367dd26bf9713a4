//! Whether anything still happens on a connection.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Instant;

use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};

use super::ConnectionLimits;
use crate::limits;

/// What one connection does. Bytes that come in do not count: who drips headers shall not live on them. Nor do bytes
/// that go out beside the answers: a client's pings over HTTP/2 are answered, and would keep it for ever.
#[derive(Clone, Debug)]
pub(crate) struct Activity(Arc<Mutex<ActivityState>>);

#[derive(Debug)]
struct ActivityState {
    opened_at: Instant,
    /// The last start or end of a request, or piece of an answer that the client took.
    last: Instant,
    /// Requests in work.
    working: usize,
    /// Whether there was ever a request.
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
    /// A request begins; it is in work until the answer's headers are there.
    pub(crate) fn begin(&self) -> ActiveRequest {
        let mut state = self.state();
        state.working += 1;
        state.used = true;
        state.last = Instant::now();
        drop(state);
        ActiveRequest(self.clone())
    }

    /// Whether the connection should be closed.
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

/// One request in work.
#[derive(Debug)]
pub(crate) struct ActiveRequest(Activity);

impl ActiveRequest {
    /// Ends the work: from here on the client must take `answer` piece by piece.
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

/// A body that goes out in small pieces and reports each: the next is asked for when there is room for it.
struct TrackedBody {
    body: Body,
    /// What is left of the body's last piece.
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
