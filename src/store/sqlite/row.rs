//! From columns to checked types and back. What does not parse was not written by this program.

use std::fmt::Display;
use std::str::FromStr;

use jiff::Timestamp;
use rusqlite::{Connection, ErrorCode, Params, Row, ffi};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::ids::{ExecutionId, Tenant};
use crate::store::Error;
use crate::store::cursor::Moment;

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy,
            Some(ErrorCode::DiskFull) => Self::Full,
            _ => Self::backend(error),
        }
    }
}

/// The first row, if there is one.
pub(super) fn first<T>(
    c: &Connection,
    sql: &str,
    terms: impl Params,
    read: impl FnOnce(&Row<'_>) -> Result<T, Error>,
) -> Result<Option<T>, Error> {
    let mut statement = c.prepare_cached(sql)?;
    let mut rows = statement.query(terms)?;
    rows.next()?.map(read).transpose()
}

pub(super) fn all<T>(
    c: &Connection,
    sql: &str,
    terms: impl Params,
    read: impl FnMut(&Row<'_>) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    let mut statement = c.prepare_cached(sql)?;
    let rows = statement.query_and_then(terms, read)?;
    rows.collect()
}

pub(super) fn exists(c: &Connection, sql: &str, terms: impl Params) -> Result<bool, Error> {
    Ok(first(c, sql, terms, |_| Ok(()))?.is_some())
}

/// Returns how many rows were changed.
pub(super) fn execute(c: &Connection, sql: &str, terms: impl Params) -> Result<usize, Error> {
    Ok(c.prepare_cached(sql)?.execute(terms)?)
}

/// The terms of `(time, id) < (?, ?)`: without a position, all rows.
pub(super) fn before<Id: Display>(position: Option<Moment<Id>>) -> (i64, String) {
    position.map_or((i64::MAX, String::new()), |position| {
        (position.at.as_microsecond(), position.id.to_string())
    })
}

/// An execution and its tenant.
pub(super) fn owned(row: &Row<'_>) -> Result<(Tenant, ExecutionId), Error> {
    Ok((text(row, "tenant")?, text(row, "id")?))
}

/// Whether `error` says that a unique value is taken.
pub(super) fn is_taken(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_extended_error_code(),
        Some(ffi::SQLITE_CONSTRAINT_UNIQUE | ffi::SQLITE_CONSTRAINT_PRIMARYKEY)
    )
}

/// An invalid column. Errors never contain its value, which may be confidential.
#[derive(Debug, thiserror::Error)]
#[error("column {column}: {cause}")]
struct BadColumn {
    column: &'static str,
    cause: String,
}

fn bad(column: &'static str, cause: impl Display) -> Error {
    Error::backend(BadColumn {
        column,
        cause: cause.to_string(),
    })
}

/// A text column as what it names.
pub(super) fn text<T: FromStr<Err: Display>>(row: &Row<'_>, column: &'static str) -> Result<T, Error> {
    let text = row.get_ref(column)?.as_str().map_err(|e| bad(column, e))?;
    text.parse().map_err(|e| bad(column, e))
}

/// As [`text`], where the column may be null.
pub(super) fn optional_text<T: FromStr<Err: Display>>(
    row: &Row<'_>,
    column: &'static str,
) -> Result<Option<T>, Error> {
    optional(row, column)?
        .map(|t| t.parse().map_err(|e| bad(column, e)))
        .transpose()
}

fn optional<'a>(row: &'a Row<'_>, column: &'static str) -> Result<Option<&'a str>, Error> {
    row.get_ref(column)?.as_str_or_null().map_err(|e| bad(column, e))
}

/// A column of microseconds.
pub(super) fn time(row: &Row<'_>, column: &'static str) -> Result<Timestamp, Error> {
    Timestamp::from_microsecond(row.get(column)?).map_err(|e| bad(column, e))
}

/// As [`time`], where the column may be null.
pub(super) fn optional_time(row: &Row<'_>, column: &'static str) -> Result<Option<Timestamp>, Error> {
    let at: Option<i64> = row.get(column)?;
    at.map(|at| Timestamp::from_microsecond(at).map_err(|e| bad(column, e)))
        .transpose()
}

/// A text column that holds JSON of our own making.
pub(super) fn json<T: DeserializeOwned>(row: &Row<'_>, column: &'static str) -> Result<T, Error> {
    let text = row.get_ref(column)?.as_str().map_err(|e| bad(column, e))?;
    serde_json::from_str(text).map_err(|e| bad(column, e))
}

/// As [`json`], where the column may be null.
pub(super) fn optional_json<T: DeserializeOwned>(
    row: &Row<'_>,
    column: &'static str,
) -> Result<Option<T>, Error> {
    optional(row, column)?
        .map(|t| serde_json::from_str(t).map_err(|e| bad(column, e)))
        .transpose()
}

/// What [`json`] reads.
pub(super) fn to_json(value: &impl Serialize) -> Result<String, Error> {
    serde_json::to_string(value).map_err(Error::backend)
}
