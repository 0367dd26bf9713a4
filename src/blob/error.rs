//! Errors of objects. The detail is in `source`, for the log.

use std::io;

use crate::error::Cause;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("not found")]
    NotFound,
    #[error("no space left for files")]
    Full,
    #[error("another process holds the lock of the file store")]
    Busy,
    #[error("the file store failed")]
    Backend(#[source] Cause),
}

impl Error {
    /// Wraps a cause that only the log may show.
    pub(super) fn backend(cause: impl Into<Cause>) -> Self {
        Self::Backend(cause.into())
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::NotFound,
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full,
            io::ErrorKind::WouldBlock => Self::Busy,
            _ => Self::backend(error),
        }
    }
}
