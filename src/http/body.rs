//! Limits time, size and total memory of request bodies.

use std::error::Error as StdError;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::http::header;
use axum::middleware::Next;
use axum::response::Response;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::{Frame, SizeHint};
use tokio::time::{Instant, Sleep};

use super::ConnectionLimits;
use super::budget::BudgetShare;
use crate::error::{Code, Error};
use crate::limits;

/// Gives every request body a deadline.
pub(crate) async fn limit_body_time(
    State(bounds): State<ConnectionLimits>,
    request: Request,
    next: Next,
) -> Response {
    // A client that waits for `100 Continue` has sent nothing yet and receives the response.
    let waits = request.headers().contains_key(header::EXPECT);
    let request = request.map(|body| {
        if body.is_end_stream() {
            body
        } else {
            Body::new(TimedBody::new(body, bounds, DiscardRest::unless(waits)))
        }
    });
    next.run(request).await
}

#[derive(Debug, thiserror::Error)]
#[error("the request body took too long to arrive")]
struct TooSlow;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum DiscardRest {
    Yes,
    No,
}

impl DiscardRest {
    fn unless(waits: bool) -> Self {
        if waits { Self::No } else { Self::Yes }
    }
}

/// A body with an idle and a total deadline. If dropped half read, the rest is read for a while: otherwise the kernel
/// resets the connection, and a client that is still sending never receives the error.
struct TimedBody {
    inner: Body,
    idle_max: Duration,
    deadline: Instant,
    /// Set while waiting for the client.
    pause: Option<Pin<Box<Sleep>>>,
    linger: DiscardRest,
}

impl TimedBody {
    fn new(inner: Body, bounds: ConnectionLimits, linger: DiscardRest) -> Self {
        Self {
            inner,
            idle_max: bounds.body_idle,
            deadline: Instant::now() + bounds.body,
            pause: None,
            linger,
        }
    }
}

impl HttpBody for TimedBody {
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = &mut *self;
        let late = match Pin::new(&mut this.inner).poll_frame(context) {
            Poll::Ready(Some(Ok(frame))) => {
                this.pause = None;
                if Instant::now() < this.deadline {
                    return Poll::Ready(Some(Ok(frame)));
                }
                true
            }
            Poll::Ready(end) => {
                this.linger = DiscardRest::No;
                return Poll::Ready(end.map(|frame| frame.map_err(Into::into)));
            }
            Poll::Pending => {
                let until = (Instant::now() + this.idle_max).min(this.deadline);
                let pause = this
                    .pause
                    .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(until)));
                pause.as_mut().poll(context).is_ready()
            }
        };
        if late {
            this.linger = DiscardRest::No;
            Poll::Ready(Some(Err(TooSlow.into())))
        } else {
            Poll::Pending
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl Drop for TimedBody {
    fn drop(&mut self) {
        if self.linger == DiscardRest::No || self.inner.is_end_stream() {
            return;
        }
        let rest = std::mem::take(&mut self.inner);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(tokio::time::timeout(limits::LINGER_MAX, discard(rest)));
        }
    }
}

async fn discard(mut body: Body) {
    let mut left = limits::LINGER_BYTES_MAX;
    while let Some(Ok(frame)) = body.frame().await {
        let size = frame.data_ref().map_or(0, |data| data.len() as u64);
        let Some(rest) = left.checked_sub(size) else {
            return;
        };
        left = rest;
    }
}

/// Reads the whole body up to `bytes_max`; `held` grows with the received size.
pub(crate) async fn read(body: Body, bytes_max: u64, held: &mut BudgetShare) -> Result<Vec<u8>, Error> {
    let too_large = || {
        let message = format!("the body is too large; the limit is {bytes_max} bytes");
        Error::new(Code::TooLarge, message)
    };
    if body.size_hint().lower() > bytes_max {
        return Err(too_large());
    }
    let capped = usize::try_from(bytes_max).unwrap_or(usize::MAX);
    let mut body = Limited::new(body, capped);
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| read_error(error.as_ref(), too_large))?;
        let Ok(data) = frame.into_data() else { continue };
        held.grow_to((bytes.len() + data.len()) as u64)?;
        bytes.extend_from_slice(&data);
    }
    Ok(bytes)
}

/// Finds our own errors in the chain of a body's error.
pub(crate) fn read_error(error: &(dyn StdError + 'static), too_large: impl FnOnce() -> Error) -> Error {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.is::<TooSlow>() {
            return Error::new(
                Code::RequestTimeout,
                "the request body took too long to arrive; send it without pauses",
            );
        }
        if error.is::<LengthLimitError>() {
            return too_large();
        }
        next = error.source();
    }
    Error::invalid("the request body is incomplete; send it again")
}

#[cfg(test)]
mod tests {
    use futures::{StreamExt as _, stream};

    use super::*;
    use crate::http::budget::Budget;
    use crate::ids::Tenant;

    fn quick() -> ConnectionLimits {
        ConnectionLimits {
            body_idle: Duration::from_millis(20),
            body: Duration::from_millis(200),
            ..ConnectionLimits::default()
        }
    }

    fn pieces(pieces: Vec<&'static str>) -> Body {
        Body::from_stream(stream::iter(pieces).map(Ok::<_, std::io::Error>))
    }

    async fn code(body: Body, bytes_max: u64) -> Result<usize, Code> {
        let budget = Budget::new("requests", limits::MIB);
        let mut held = budget.hold(&Tenant::default_tenant(), 0).unwrap();
        let read = read(body, bytes_max, &mut held).await;
        read.map(|bytes| bytes.len()).map_err(|error| error.code())
    }

    #[tokio::test]
    async fn reads_a_body_up_to_its_limit() {
        assert_eq!(code(pieces(vec!["abc", "de"]), 5).await, Ok(5));
        assert_eq!(code(pieces(vec!["abc", "def"]), 5).await, Err(Code::TooLarge));
        assert_eq!(code(Body::from("abcdef"), 5).await, Err(Code::TooLarge));
    }

    /// one byte and then nothing.
    #[tokio::test]
    async fn times_out_a_client_that_stops_sending() {
        let stuck = stream::iter([Ok::<_, std::io::Error>("a")]).chain(stream::pending());
        let body = TimedBody::new(Body::from_stream(stuck), quick(), DiscardRest::No);
        assert_eq!(code(Body::new(body), 100).await, Err(Code::RequestTimeout));
    }

    /// A-16, Z-24: a byte now and then, each in time, but for ever.
    #[tokio::test]
    async fn times_out_a_client_that_sends_slowly() {
        let every = tokio::time::interval(Duration::from_millis(5));
        let drip = stream::unfold(every, |mut every| async {
            every.tick().await;
            Some((Ok::<_, std::io::Error>("a"), every))
        });
        let body = TimedBody::new(Body::from_stream(drip), quick(), DiscardRest::No);
        assert_eq!(code(Body::new(body), 10_000).await, Err(Code::RequestTimeout));
    }

    #[tokio::test]
    async fn reports_a_broken_body_as_invalid() {
        let broken = stream::iter([Ok("a"), Err(std::io::Error::other("reset"))]);
        assert_eq!(code(Body::from_stream(broken), 100).await, Err(Code::Invalid));
    }

    /// T-15.
    #[tokio::test]
    async fn limits_the_memory_of_all_bodies() {
        let budget = Budget::new("requests", 7000);
        let share = |tenant: &str| budget.hold(&tenant.parse().unwrap(), 0).unwrap();
        let body = || Body::from(vec![b'a'; 3000]);
        let mut first = share("a");
        read(body(), 10_000, &mut first).await.unwrap();
        let rejected = read(body(), 10_000, &mut share("a")).await.unwrap_err();
        assert_eq!(rejected.code(), Code::Busy);
        assert!(read(body(), 10_000, &mut share("b")).await.is_ok());
        drop(first);
        assert!(read(body(), 10_000, &mut share("a")).await.is_ok());
    }

    #[tokio::test]
    async fn discards_the_rest_of_a_rejected_body_in_the_background() {
        let (sender, mut taken) = tokio::sync::mpsc::channel(1);
        let source = stream::iter(0..10).then(move |piece| {
            let sender = sender.clone();
            async move {
                sender.send(piece).await.unwrap();
                Ok::<_, std::io::Error>("piece")
            }
        });
        drop(TimedBody::new(
            Body::from_stream(source),
            quick(),
            DiscardRest::Yes,
        ));
        let mut count = 0;
        while taken.recv().await.is_some() {
            count += 1;
        }
        assert_eq!(count, 10);
    }
}
