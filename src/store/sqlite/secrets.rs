//! Secrets, sealed: this room cannot open them.

use rusqlite::{Connection, OptionalExtension as _, Row, named_params};

use super::row::{text, time};
use crate::ids::Tenant;
use crate::skill::SecretName;
use crate::store::{Error, Kept, NewSecret, SecretRecord};

const IS_THERE: &str = "select 1 from secrets where tenant = ?1 and name = ?2";
pub(super) const COUNT: &str = "select count(*) from secrets where tenant = ?1";
const PUT: &str = "
    insert into secrets (tenant, name, sealed, created_at, updated_at) values (:tenant, :name, :sealed, :at, :at)
    on conflict (tenant, name) do update set sealed = excluded.sealed, updated_at = excluded.updated_at";
pub(super) const SEALED: &str = "select sealed from secrets where tenant = ?1 and name = ?2";
pub(super) const PAGE: &str = "
    select tenant, name, created_at, updated_at from secrets
    where tenant = ?1 and name > ?2 order by name limit ?3";
const DELETE: &str = "delete from secrets where tenant = ?1 and name = ?2";

pub(super) fn put(c: &Connection, new: &NewSecret, max: u32) -> Result<Kept, Error> {
    let (tenant, name) = (new.tenant.as_str(), new.name.as_str());
    let is_there = c
        .prepare_cached(IS_THERE)?
        .query_row((tenant, name), |_| Ok(()))
        .optional()?
        .is_some();
    if !is_there
        && c.prepare_cached(COUNT)?
            .query_row([tenant], |row| row.get::<_, u32>(0))?
            >= max
    {
        return Err(Error::Quota);
    }
    c.prepare_cached(PUT)?.execute(named_params! {
        ":tenant": tenant,
        ":name": name,
        ":sealed": new.sealed,
        ":at": new.at.as_microsecond(),
    })?;
    Ok(if is_there { Kept::Again } else { Kept::New })
}

pub(super) fn sealed(c: &Connection, tenant: &Tenant, name: &SecretName) -> Result<Vec<u8>, Error> {
    let mut statement = c.prepare_cached(SEALED)?;
    Ok(statement.query_row((tenant.as_str(), name.as_str()), |row| row.get(0))?)
}

pub(super) fn list(
    c: &Connection,
    tenant: &Tenant,
    after: Option<&SecretName>,
    rows: u32,
) -> Result<Vec<SecretRecord>, Error> {
    let mut statement = c.prepare_cached(PAGE)?;
    let after = after.map_or("", SecretName::as_str);
    let found = statement.query_and_then((tenant.as_str(), after, rows), record)?;
    found.collect()
}

pub(super) fn delete(c: &Connection, tenant: &Tenant, name: &SecretName) -> Result<(), Error> {
    let gone = c
        .prepare_cached(DELETE)?
        .execute((tenant.as_str(), name.as_str()))?;
    if gone == 0 { Err(Error::NotFound) } else { Ok(()) }
}

fn record(row: &Row<'_>) -> Result<SecretRecord, Error> {
    Ok(SecretRecord {
        tenant: text(row, "tenant")?,
        name: text(row, "name")?,
        created_at: time(row, "created_at")?,
        updated_at: time(row, "updated_at")?,
    })
}
