//! What can go wrong with objects. The detail is in `source`, for the log.

use std::io;

use crate::error::Cause;

/// Why an object could not be kept or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No object under this key.
    #[error("not found")]
    NotFound,
    /// No room left.
    #[error("no space left for files")]
    Full,
    /// Anything else.
    #[error("the file store failed")]
    Backend(#[source] Cause),
}

impl Error {
    /// Wraps what only the log may see.
    pub(super) fn backend(cause: impl Into<Cause>) -> Self {
        Self::Backend(cause.into())
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::NotFound,
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full,
            _ => Self::backend(error),
        }
    }
}
