//! Kept requests of executions, in a table that no list reads.

use rusqlite::Connection;

use super::row::{execute, first};
use crate::execution::NewExecution;
use crate::ids::{ExecutionId, Tenant};
use crate::store::Error;

const INSERT: &str = "insert into execution_requests (execution, request) values (?1, ?2)";
const FIND: &str = "
    select request from executions left join execution_requests on execution = id where tenant = ?1 and id = ?2";

/// Bytes of the kept request of a row of `executions`.
macro_rules! bytes {
    () => {
        "coalesce((select length(request) from execution_requests where execution = executions.id), 0)"
    };
}
pub(super) use bytes;

pub(super) fn insert(c: &Connection, new: &NewExecution) -> Result<(), Error> {
    match &new.kept_request {
        Some(request) => execute(c, INSERT, (new.id.to_string(), &request[..])).map(drop),
        None => Ok(()),
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
