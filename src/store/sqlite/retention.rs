//! Which executions have expired.

use std::collections::BTreeSet;

use rusqlite::Connection;

use super::row::{first, owned};
use crate::ids::{ExecutionId, Tenant};
use crate::store::{Error, Retention};

pub(super) const ENDED_BEFORE: &str =
    "select tenant, id from executions where tenant = ?1 and finished_at < ?2 order by finished_at limit ?3";
pub(super) const NEXT_TENANT: &str =
    "select tenant from executions where tenant > ?1 order by tenant limit 1";
/// The most recent execution beyond the limit.
pub(super) const FIRST_BEYOND: &str = "
    select created_at, id from executions where tenant = ?1
    order by created_at desc, id desc limit 1 offset ?2";
pub(super) const BEYOND: &str = "
    select tenant, id from executions
    where tenant = ?1 and (created_at, id) <= (?2, ?3) and finished_at is not null
    order by created_at, id limit ?4";
type Expired = BTreeSet<(Tenant, ExecutionId)>;

pub(super) fn expired(
    c: &Connection,
    retention: &Retention,
    rows: u32,
) -> Result<Vec<(Tenant, ExecutionId)>, Error> {
    let rows_max = usize::try_from(rows).unwrap_or(usize::MAX);
    let mut found = Expired::new();
    let has_limit = retention.ended_before.is_some() || retention.per_tenant.is_some();
    let mut next = next_tenant(c, "")?.filter(|_| has_limit);
    while let Some(tenant) = next.filter(|_| found.len() < rows_max) {
        if let Some(before) = retention.ended_before {
            let mut statement = c.prepare_cached(ENDED_BEFORE)?;
            for owned in statement.query_and_then((&tenant, before.as_microsecond(), rows), owned)? {
                found.insert(owned?);
            }
        }
        if let Some(kept) = retention.per_tenant {
            beyond(c, &tenant, kept, rows, &mut found)?;
        }
        next = next_tenant(c, &tenant)?;
    }
    Ok(found.into_iter().take(rows_max).collect())
}

pub(super) fn next_tenant(c: &Connection, after: &str) -> Result<Option<String>, Error> {
    first(c, NEXT_TENANT, [after], |row| Ok(row.get(0)?))
}

fn beyond(c: &Connection, tenant: &str, kept: u64, rows: u32, found: &mut Expired) -> Result<(), Error> {
    let kept = i64::try_from(kept).unwrap_or(i64::MAX);
    let first = first(c, FIRST_BEYOND, (tenant, kept), |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
    })?;
    let Some((at, id)) = first else { return Ok(()) };
    let mut statement = c.prepare_cached(BEYOND)?;
    for owned in statement.query_and_then((tenant, at, id, rows), owned)? {
        found.insert(owned?);
    }
    Ok(())
}
