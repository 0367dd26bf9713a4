//! Errors of the store. The detail is in `source`, for the log.

use std::fmt::Display;

use crate::error::Cause;
use crate::skill::SkillName;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It does not exist, or belongs to another tenant. Names what was looked for.
    #[error("{0} not found")]
    NotFound(String),
    #[error("{what} {conflict}")]
    Conflict { what: String, conflict: Conflict },
    #[error(transparent)]
    Cursor(#[from] InvalidCursor),
    /// Locked by another process for too long.
    #[error("the database is locked by another process or overloaded; try again later")]
    Busy,
    #[error("no space left for the database")]
    Full,
    /// More than a tenant may store.
    #[error("more than a tenant may store")]
    Quota,
    #[error(
        "the database has schema version {found}, this program knows versions up to {known}; start a newer skillbox"
    )]
    Newer { found: i32, known: i32 },
    /// The file is not a sound database. Only at start: the text names the file and is for the operator.
    #[error("{0}")]
    Damaged(String),
    #[error("the database failed")]
    Backend(#[source] Cause),
}

/// Why an act is rejected; the text continues a sentence that begins with what it is about.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Conflict {
    /// The version exists with other content (Z-25).
    #[error("is already published with different content; publish it as another version")]
    VersionExists,
    /// Programs would import two skills by one path.
    #[error("is imported by the same path as a module of skill `{0}`; rename the skill or the module")]
    SameImport(SkillName),
    /// The execution of a webhook has not ended.
    #[error("waits for the end of its execution, and is then sent")]
    NotEnded,
    #[error("is being sent; try again in a moment")]
    BeingSent,
    /// An idempotency key was sent with another request.
    #[error("was already used for a different request; use a new key for each request")]
    OtherRequest,
    /// The id or hash is taken.
    #[error("already exists")]
    Exists,
}

/// Not a cursor, or the cursor of another list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("cursor does not belong to this list; request the first page again")]
pub struct InvalidCursor;

impl Conflict {
    pub(super) fn of(self, what: impl Display) -> Error {
        Error::Conflict {
            what: what.to_string(),
            conflict: self,
        }
    }
}

impl Error {
    /// Wraps a cause that only the log may show.
    pub(super) fn backend(cause: impl Into<Cause>) -> Self {
        Self::Backend(cause.into())
    }

    pub(super) fn not_found(kind: &str, id: impl Display) -> Self {
        Self::NotFound(format!("{kind} `{id}`"))
    }
}
