//! Kept requests of executions: small ones in their rows, others in a table that no list reads.

use rusqlite::Connection;

use super::row::{execute, first};
use crate::execution::NewExecution;
use crate::ids::{ExecutionId, Tenant};
use crate::limits;
use crate::store::Error;

const INSERT: &str = "insert into execution_requests (execution, request) values (?1, ?2)";
const FIND: &str = "
    select coalesce(kept_request, request) from executions left join execution_requests on execution = id
    where tenant = ?1 and id = ?2";

/// Bytes of the kept request of a row of `executions`.
macro_rules! bytes {
    () => {
        "coalesce(length(kept_request), \
         (select length(request) from execution_requests where execution = executions.id), 0)"
    };
}
pub(super) use bytes;

/// The kept request, if its place is in the row of the execution.
pub(super) fn in_row(new: &NewExecution) -> Option<&[u8]> {
    let request = new.kept_request.as_deref()?;
    (request.len() <= limits::REQUEST_IN_ROW_BYTES_MAX).then_some(request)
}

/// Inserts the kept request, if its place is not in the row.
pub(super) fn insert(c: &Connection, new: &NewExecution) -> Result<(), Error> {
    match &new.kept_request {
        Some(request) if in_row(new).is_none() => {
            execute(c, INSERT, (new.id.to_string(), &request[..])).map(drop)
        }
        Some(_) | None => Ok(()),
    }
}

/// The outer `None` if there is no such execution.
pub(super) fn find(
    c: &Connection,
    tenant: &Tenant,
    id: ExecutionId,
) -> Result<Option<Option<Vec<u8>>>, Error> {
    first(c, FIND, (tenant.as_str(), id.to_string()), |row| Ok(row.get(0)?))
}
