//! Exit codes, for the program, its help and `docs/CLI.md`.

use crate::error::Code;
use crate::execution::Status;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Success; the status of the execution is `success`.
    Success,
    /// The status of the execution is `failed`, or a check failed.
    Failed,
    /// Invalid command line.
    Usage,
    /// Rejected: invalid, forbidden, not found, conflict, too large; or the status of the execution is `denied`.
    Refused,
    /// The status of the execution is `timeout`.
    Timeout,
    /// The status of the execution is `oom`.
    Oom,
    /// The status of the execution is `cancelled` or `interrupted`.
    Cancelled,
    /// Something is unavailable: server, container engine, image, disk space. The same command may work later.
    Unavailable,
    /// A fault of Skillbox or of this machine.
    Internal,
    /// The server's database failed.
    Storage,
    /// This host was too slow for a verdict.
    Inconclusive,
    /// Invalid configuration.
    Config,
    /// Ctrl-C.
    Interrupted,
}

impl Exit {
    pub const ALL: [Self; 13] = [
        Self::Success,
        Self::Failed,
        Self::Usage,
        Self::Refused,
        Self::Timeout,
        Self::Oom,
        Self::Cancelled,
        Self::Unavailable,
        Self::Internal,
        Self::Storage,
        Self::Inconclusive,
        Self::Config,
        Self::Interrupted,
    ];

    #[must_use]
    pub const fn row(self) -> (u8, &'static str) {
        match self {
            Self::Success => (0, "success"),
            Self::Failed => (1, "the execution failed, or a check failed"),
            Self::Usage => (2, "invalid command line"),
            Self::Refused => (
                3,
                "rejected: invalid, forbidden, not found, conflict or too large",
            ),
            Self::Timeout => (4, "the execution exceeded its timeout"),
            Self::Oom => (5, "the execution ran out of memory"),
            Self::Cancelled => (6, "the execution was cancelled or interrupted"),
            Self::Unavailable => (69, "unavailable now: server, container engine, image or space"),
            Self::Internal => (70, "internal error"),
            Self::Storage => (
                74,
                "the server's database failed: disk error, or its file was replaced",
            ),
            Self::Inconclusive => (
                75,
                "`prove`: some attacks hit their time limit on this slow machine",
            ),
            Self::Config => (78, "invalid configuration"),
            Self::Interrupted => (130, "interrupted by Ctrl-C"),
        }
    }

    /// Ends this process immediately.
    pub fn at_once(self) -> ! {
        std::process::exit(i32::from(self.row().0))
    }

    /// The exit code of an execution.
    #[must_use]
    pub const fn of_status(status: Status) -> Self {
        match status {
            Status::Success => Self::Success,
            Status::Failed | Status::Queued | Status::Running => Self::Failed,
            Status::Timeout => Self::Timeout,
            Status::Oom => Self::Oom,
            Status::Cancelled | Status::Interrupted => Self::Cancelled,
            Status::Denied => Self::Refused,
        }
    }

    /// The exit code of an API error.
    #[must_use]
    pub const fn of_code(code: Code) -> Self {
        match code {
            Code::Invalid
            | Code::Unauthenticated
            | Code::Forbidden
            | Code::NotFound
            | Code::MethodNotAllowed
            | Code::Conflict
            | Code::KeyReused
            | Code::TooLarge
            | Code::RangeNotSatisfiable
            | Code::UnsupportedMediaType
            | Code::DependenciesFailed
            | Code::Misdirected => Self::Refused,
            Code::RequestTimeout
            | Code::RateLimited
            | Code::Busy
            | Code::SandboxUnavailable
            | Code::StorageFull => Self::Unavailable,
            Code::Internal => Self::Internal,
        }
    }
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.row().0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_outcome_has_its_own_exit_code() {
        let numbers: std::collections::BTreeSet<_> = Exit::ALL.iter().map(|exit| exit.row().0).collect();
        assert_eq!(numbers.len(), Exit::ALL.len());
        for status in Status::ALL {
            assert_eq!(
                Exit::of_status(status) == Exit::Success,
                status == Status::Success,
                "{status}"
            );
        }
    }
}
