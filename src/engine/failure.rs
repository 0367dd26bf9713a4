//! Converts errors of adapters into API errors. Details stay in the source error, for the log.

use crate::blob;
use crate::error::{Code, Error};
use crate::limits;
use crate::sandbox;
use crate::store;

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Self {
        let message = error.to_string();
        match error {
            store::Error::NotFound(what) => Self::not_found(what),
            store::Error::Conflict {
                conflict: store::Conflict::OtherRequest,
                ..
            } => Self::new(Code::KeyReused, message),
            store::Error::Conflict { .. } => Self::new(Code::Conflict, message),
            store::Error::Cursor(_) => Self::invalid(format!("page_token: {message}")),
            store::Error::Busy => Self::new(Code::Busy, "the database is busy; try again in a moment"),
            store::Error::Full => storage_full(),
            other => Self::internal(other),
        }
    }
}

pub(super) fn of_blob(error: blob::Error, what: &str) -> Error {
    match error {
        blob::Error::NotFound => Error::not_found(what),
        blob::Error::Full => storage_full(),
        blob::Error::Busy => Error::new(Code::Busy, "the file store is busy; try again in a moment"),
        other => Error::internal(other),
    }
}

pub(super) fn of_sandbox(error: sandbox::Error) -> Error {
    let message = error.to_string();
    match error {
        sandbox::Error::Image(_) | sandbox::Error::ImageMissing(_) => {
            Error::new(Code::SandboxUnavailable, message).with_hidden_paths()
        }
        sandbox::Error::Unavailable(_) => Error::new(Code::SandboxUnavailable, message)
            .with_hidden_paths()
            .with_retry_after(limits::SANDBOX_RETRY_AFTER),
        sandbox::Error::Engine { .. } => Error::new(
            Code::SandboxUnavailable,
            format!("{message}; the server's log has its response"),
        )
        .with_retry_after(limits::SANDBOX_RETRY_AFTER)
        .with_source(error),
    }
}

/// An error of the file system outside the adapters.
pub(super) fn of_io(error: std::io::Error) -> Error {
    if is_full(&error) {
        storage_full()
    } else {
        Error::internal(error)
    }
}

fn is_full(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded
    ) || is_out_of_files(error)
}

#[cfg(unix)]
fn is_out_of_files(error: &std::io::Error) -> bool {
    use rustix::io::Errno;
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

#[cfg(not(unix))]
fn is_out_of_files(_: &std::io::Error) -> bool {
    false
}

pub(super) fn storage_full() -> Error {
    Error::new(
        Code::StorageFull,
        "the server has no disk space or open files left; delete executions (`skillbox exec prune`) or skills, or shorten retention",
    )
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn lack_of_space_or_open_files_is_storage_full() {
        use rustix::io::Errno;
        for errno in [Errno::NOSPC, Errno::DQUOT, Errno::MFILE, Errno::NFILE] {
            assert_eq!(of_io(errno.into()).code(), Code::StorageFull, "{errno}");
        }
        assert_eq!(of_io(Errno::IO.into()).code(), Code::Internal);
    }
}
