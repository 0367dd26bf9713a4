//! Installed packages that are kept.

use jiff::Timestamp;
use rusqlite::{Connection, Row, named_params};

use super::row::{json, text, time, to_json};
use crate::ids::{Digest, Tenant};
use crate::store::{Error, Moment, PackageSet};

macro_rules! columns {
    () => {
        "tenant, key, language, wanted, digest, bytes, files, created_at, used_at"
    };
}

const KEEP: &str = concat!(
    "insert or replace into package_sets (",
    columns!(),
    ") values (:tenant, :key, :language, :wanted, :digest, :bytes, :files, :created_at, :used_at)"
);
pub(super) const BY_KEY: &str = concat!(
    "select ",
    columns!(),
    " from package_sets where tenant = ?1 and key = ?2"
);
pub(super) const PAGE: &str = concat!(
    "select ",
    columns!(),
    " from package_sets where tenant = ?1 and (created_at, key) < (?2, ?3) order by created_at desc, key desc limit ?4"
);
const USE: &str = "update package_sets set used_at = max(used_at, ?3) where tenant = ?1 and key = ?2";
const DROP: &str = concat!(
    "delete from package_sets where tenant = ?1 and key = ?2 returning ",
    columns!()
);
/// What a tenant has used last counts least: of two the one with more bytes gives first (T-15).
const SURPLUS: &str = concat!(
    "select ",
    columns!(),
    " from (select *, sum(bytes) over (order by own_so_far, used_at desc, tenant, key) as so_far",
    " from (select *, sum(bytes) over (partition by tenant order by used_at desc, key desc) as own_so_far",
    " from package_sets))",
    " where so_far > ?1 order by own_so_far desc, used_at limit ?2"
);
const IS_KEPT: &str = "select exists (select 1 from package_sets where digest = ?1)";

pub(super) fn keep(c: &Connection, set: &PackageSet) -> Result<(), Error> {
    c.prepare_cached(KEEP)?.execute(named_params! {
        ":tenant": set.tenant.as_str(),
        ":key": set.key.to_string(),
        ":language": to_json(&set.language)?,
        ":wanted": to_json(&set.wanted)?,
        ":digest": set.digest.to_string(),
        ":bytes": set.bytes,
        ":files": set.files,
        ":created_at": set.created_at.as_microsecond(),
        ":used_at": set.used_at.as_microsecond(),
    })?;
    Ok(())
}

pub(super) fn find(c: &Connection, tenant: &Tenant, key: &Digest) -> Result<PackageSet, Error> {
    let mut statement = c.prepare_cached(BY_KEY)?;
    let mut rows = statement.query_and_then((tenant.as_str(), key.to_string()), record)?;
    rows.next().ok_or(Error::NotFound)?
}

pub(super) fn list(
    c: &Connection,
    tenant: &Tenant,
    after: Option<Moment<Digest>>,
    rows: u32,
) -> Result<Vec<PackageSet>, Error> {
    let (at, key) = after.map_or((i64::MAX, String::new()), |moment| {
        (moment.at.as_microsecond(), moment.id.to_string())
    });
    let mut statement = c.prepare_cached(PAGE)?;
    let found = statement.query_and_then((tenant.as_str(), at, key, rows), record)?;
    found.collect()
}

pub(super) fn used(c: &Connection, tenant: &Tenant, key: &Digest, at: Timestamp) -> Result<(), Error> {
    let used = (tenant.as_str(), key.to_string(), at.as_microsecond());
    c.prepare_cached(USE)?.execute(used)?;
    Ok(())
}

pub(super) fn drop(c: &Connection, tenant: &Tenant, key: &Digest) -> Result<PackageSet, Error> {
    let mut statement = c.prepare_cached(DROP)?;
    let mut rows = statement.query_and_then((tenant.as_str(), key.to_string()), record)?;
    rows.next().ok_or(Error::NotFound)?
}

pub(super) fn surplus(c: &Connection, bytes_max: u64, rows: u32) -> Result<Vec<PackageSet>, Error> {
    let bytes_max = i64::try_from(bytes_max).unwrap_or(i64::MAX);
    let mut statement = c.prepare_cached(SURPLUS)?;
    let found = statement.query_and_then((bytes_max, rows), record)?;
    found.collect()
}

pub(super) fn are_kept(c: &Connection, digest: &Digest) -> Result<bool, Error> {
    let mut statement = c.prepare_cached(IS_KEPT)?;
    Ok(statement.query_row([digest.to_string()], |row| row.get(0))?)
}

fn record(row: &Row<'_>) -> Result<PackageSet, Error> {
    Ok(PackageSet {
        tenant: text(row, "tenant")?,
        key: text(row, "key")?,
        language: json(row, "language")?,
        wanted: json(row, "wanted")?,
        digest: text(row, "digest")?,
        bytes: row.get("bytes")?,
        files: row.get("files")?,
        created_at: time(row, "created_at")?,
        used_at: time(row, "used_at")?,
    })
}
