//! Why an archive or folder is not taken; safe to show: names are escaped and cut.

use std::io;

use crate::error::{self, Code, quoted};
use crate::skill::SkillMdError;

/// What went wrong with a bundle.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The archive or folder is not acceptable; names the entry and the remedy.
    #[error("{0}")]
    Refused(String),
    /// Above a documented size.
    #[error("{0}")]
    TooLarge(String),
    /// SKILL.md is not acceptable.
    #[error(transparent)]
    SkillMd(#[from] SkillMdError),
    /// No space left for what was to be written.
    #[error("no space left on the disk; free some and try again")]
    Full(#[source] io::Error),
    /// Reading or writing failed.
    #[error("a file could not be read or written")]
    Io(#[source] io::Error),
}

impl Error {
    /// A refusal of one entry: `` entry `x` is a link ``.
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
