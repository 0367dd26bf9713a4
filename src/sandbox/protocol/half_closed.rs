//! A connection that is read to its end although the peer accepts no more writes: a guest sends its results and
//! exits.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Drops writes once the peer has closed. An error would end the connection with unread frames.
#[derive(Debug)]
pub(super) struct HalfClosed<T>(pub(super) T);

impl<T: AsyncRead + Unpin> AsyncRead for HalfClosed<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for HalfClosed<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.0).poll_write(context, bytes));
        Poll::Ready(ignore_disconnect(written, bytes.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = ready!(Pin::new(&mut self.0).poll_flush(context));
        Poll::Ready(ignore_disconnect(flushed, ()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = ready!(Pin::new(&mut self.0).poll_shutdown(context));
        Poll::Ready(ignore_disconnect(shut, ()))
    }
}

fn ignore_disconnect<V>(result: io::Result<V>, instead: V) -> io::Result<V> {
    match result {
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset | io::ErrorKind::NotConnected
            ) =>
        {
            Ok(instead)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::UnixStream;

    use super::*;

    #[tokio::test]
    async fn reads_what_was_sent_before_the_peer_closed() {
        let (near, mut far) = UnixStream::pair().unwrap();
        let mut near = HalfClosed(near);
        far.write_all(b"done").await.unwrap();
        drop(far);
        near.write_all(b"are you there").await.unwrap();
        near.flush().await.unwrap();
        let mut received = Vec::new();
        near.read_to_end(&mut received).await.unwrap();
        assert_eq!(received, b"done");
    }
}
