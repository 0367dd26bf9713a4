//! How much is kept for each tenant: a running total, changed with what it counts.

use rusqlite::{Connection, OptionalExtension as _};

use crate::ids::Tenant;
use crate::store::Error;

pub(super) const USED: &str = "select bytes from storage_used where tenant = ?1";
const ADD: &str = "
    insert into storage_used (tenant, bytes) values (?1, ?2)
    on conflict (tenant) do update set bytes = bytes + excluded.bytes";
const TAKE: &str = "update storage_used set bytes = max(0, bytes - ?2) where tenant = ?1";

pub(super) fn used(c: &Connection, tenant: &Tenant) -> Result<u64, Error> {
    let mut statement = c.prepare_cached(USED)?;
    let used = statement
        .query_row([tenant.as_str()], |row| row.get(0))
        .optional()?;
    Ok(used.unwrap_or(0))
}

pub(super) fn add(c: &Connection, tenant: &Tenant, bytes: u64) -> Result<(), Error> {
    c.prepare_cached(ADD)?.execute((tenant.as_str(), bytes))?;
    Ok(())
}

pub(super) fn take(c: &Connection, tenant: &Tenant, bytes: u64) -> Result<(), Error> {
    c.prepare_cached(TAKE)?.execute((tenant.as_str(), bytes))?;
    Ok(())
}
