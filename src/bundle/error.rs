//! Errors of archives and folders, safe to show: names are escaped and truncated.

use std::io;

use crate::error::{self, Code, quoted};
use crate::skill::SkillMdError;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An invalid archive or folder; the message names the entry and the remedy.
    #[error("{0}")]
    Refused(String),
    /// A size limit was exceeded.
    #[error("{0}")]
    TooLarge(String),
    /// Invalid SKILL.md.
    #[error(transparent)]
    SkillMd(#[from] SkillMdError),
    #[error("no space left on the disk; free some and try again")]
    Full(#[source] io::Error),
    #[error("a file could not be read or written")]
    Io(#[source] io::Error),
}

impl Error {
    /// An error of one entry: `` entry `x` is a link ``.
    pub(super) fn entry(path: &str, rule: impl std::fmt::Display) -> Self {
        Self::Refused(format!("entry {} {rule}", quoted(path)))
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full(error),
            _ => Self::Io(error),
        }
    }
}

impl From<Error> for error::Error {
    fn from(error: Error) -> Self {
        let code = match error {
            Error::Refused(_) | Error::SkillMd(_) => Code::Invalid,
            Error::TooLarge(_) => Code::TooLarge,
            Error::Full(_) => Code::StorageFull,
            Error::Io(cause) => return Self::internal(cause),
        };
        Self::new(code, error.to_string()).with_source(error)
    }
}
