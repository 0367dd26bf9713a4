//! What can go wrong with the store. The detail is in `source`, for the log.

use crate::error::Cause;
use crate::skill::SkillName;

/// Why the store did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It is not there, or belongs to another tenant.
    #[error("not found")]
    NotFound,
    /// Something that is there already stands in the way.
    #[error(transparent)]
    Conflict(#[from] Conflict),
    /// The cursor is not one of this list.
    #[error(transparent)]
    Cursor(#[from] InvalidCursor),
    /// Locked by somebody else for too long.
    #[error("the database is locked by another process or overloaded; try again later")]
    Busy,
    /// No room left.
    #[error("no space left for the database")]
    Full,
    /// More than a tenant may keep.
    #[error("more than a tenant may keep")]
    Quota,
    /// The database was made by a newer program.
    #[error(
        "the database has schema version {found}, this program knows versions up to {known}; start a newer skillbox"
    )]
    Newer {
        /// The database's schema version.
        found: i32,
        /// The highest that this program knows.
        known: i32,
    },
    /// The file is not a sound database. Only at start: the text names the file and is for the operator.
    #[error("{0}")]
    Damaged(String),
    /// Anything else.
    #[error("the database failed")]
    Backend(#[source] Cause),
}

/// What stands in the way.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Conflict {
    /// The version is there with other content (Z-25).
    #[error("is already published with other content; publish it as another version")]
    VersionExists,
    /// Programs would import two skills by one path.
    #[error("is imported by the same path as a module of skill `{0}`; rename the skill or the module")]
    SameImport(SkillName),
    /// The execution that a webhook tells of goes on.
    #[error("waits for the end of its execution, and is then sent")]
    NotEnded,
    /// A webhook is on its way.
    #[error("is being sent; look again in a moment")]
    BeingSent,
    /// The key was sent with another request.
    #[error("was sent with another request before; use a new key for each request")]
    OtherRequest,
    /// The id or hash is taken.
    #[error("already exists")]
    Exists,
}

/// Not a cursor, or the cursor of another list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("cursor does not belong to this list; ask for the first page again")]
pub struct InvalidCursor;

impl Error {
    /// Wraps what only the log may see.
    pub(super) fn backend(cause: impl Into<Cause>) -> Self {
        Self::Backend(cause.into())
    }
}
