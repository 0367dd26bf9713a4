//! How many bytes each tenant stores: a running total, changed in the same transactions.

use rusqlite::Connection;

use super::row::execute;
use crate::ids::Tenant;
use crate::store::Error;

pub(super) const USED: &str = "select bytes from storage_used where tenant = ?1";
const ADD: &str = "
    insert into storage_used (tenant, bytes) values (?1, ?2)
    on conflict (tenant) do update set bytes = bytes + excluded.bytes";
const TAKE: &str = "update storage_used set bytes = max(0, bytes - ?2) where tenant = ?1";

pub(super) fn add(c: &Connection, tenant: &Tenant, bytes: u64) -> Result<(), Error> {
    execute(c, ADD, (tenant.as_str(), bytes)).map(drop)
}

pub(super) fn take(c: &Connection, tenant: &Tenant, bytes: u64) -> Result<(), Error> {
    execute(c, TAKE, (tenant.as_str(), bytes)).map(drop)
}
