//! API keys.

use jiff::Timestamp;
use rusqlite::{Connection, Row, named_params};

use super::row::{is_taken, json, optional_time, text, time, to_json};
use crate::auth::KeyRecord;
use crate::ids::{Digest, KeyId, Tenant};
use crate::store::{Conflict, Error, Moment};

macro_rules! columns {
    () => {
        "id, tenant, name, hint, hash, scopes, created_at, expires_at, revoked_at"
    };
}

macro_rules! insert_key {
    ($only_if:literal) => {
        concat!(
            "insert into keys (",
            columns!(),
            ") select :id, :tenant, :name, :hint, :hash, :scopes, :created_at, :expires_at, :revoked_at where ",
            $only_if
        )
    };
}

const INSERT: &str = insert_key!("true");
const INSERT_FIRST: &str = insert_key!("not exists (select 1 from keys)");
pub(super) const BY_HASH: &str = concat!("select ", columns!(), " from keys where hash = ?1");
pub(super) const PAGE: &str = concat!(
    "select ",
    columns!(),
    " from keys where tenant = ?1 and (created_at, id) < (?2, ?3) order by created_at desc, id desc limit ?4"
);
const REVOKE: &str = concat!(
    "update keys set revoked_at = coalesce(revoked_at, ?3) where tenant = ?1 and id = ?2 returning ",
    columns!()
);
const REVOKE_LIVE: &str =
    "update keys set revoked_at = ?3 where tenant = ?1 and id = ?2 and revoked_at is null";

pub(super) fn add(c: &Connection, key: &KeyRecord) -> Result<(), Error> {
    insert(c, INSERT, key).map(|_| ())
}

pub(super) fn bootstrap(c: &Connection, key: &KeyRecord) -> Result<bool, Error> {
    insert(c, INSERT_FIRST, key).map(|rows| rows == 1)
}

fn insert(c: &Connection, sql: &str, key: &KeyRecord) -> Result<usize, Error> {
    let inserted = c.prepare_cached(sql)?.execute(named_params! {
        ":id": key.id.to_string(),
        ":tenant": key.tenant.as_str(),
        ":name": key.name,
        ":hint": key.hint,
        ":hash": key.hash.to_string(),
        ":scopes": to_json(&key.scopes)?,
        ":created_at": key.created_at.as_microsecond(),
        ":expires_at": key.expires_at.map(Timestamp::as_microsecond),
        ":revoked_at": key.revoked_at.map(Timestamp::as_microsecond),
    });
    match inserted {
        Err(e) if is_taken(&e) => Err(Conflict::Exists.into()),
        rows => Ok(rows?),
    }
}

pub(super) fn find(c: &Connection, hash: &Digest) -> Result<KeyRecord, Error> {
    let mut statement = c.prepare_cached(BY_HASH)?;
    let mut rows = statement.query_and_then([hash.to_string()], record)?;
    rows.next().ok_or(Error::NotFound)?
}

pub(super) fn list(
    c: &Connection,
    tenant: &Tenant,
    after: Option<Moment<KeyId>>,
    rows: u32,
) -> Result<Vec<KeyRecord>, Error> {
    let (at, id) = after.map_or((i64::MAX, String::new()), |m| {
        (m.at.as_microsecond(), m.id.to_string())
    });
    let mut statement = c.prepare_cached(PAGE)?;
    let found = statement.query_and_then((tenant.as_str(), at, id, rows), record)?;
    found.collect()
}

pub(super) fn revoke(c: &Connection, tenant: &Tenant, id: KeyId, at: Timestamp) -> Result<KeyRecord, Error> {
    let mut statement = c.prepare_cached(REVOKE)?;
    let revoked = (tenant.as_str(), id.to_string(), at.as_microsecond());
    let mut rows = statement.query_and_then(revoked, record)?;
    rows.next().ok_or(Error::NotFound)?
}

pub(super) fn replace(
    c: &Connection,
    tenant: &Tenant,
    old: KeyId,
    new: &KeyRecord,
    at: Timestamp,
) -> Result<(), Error> {
    let revoked = (tenant.as_str(), old.to_string(), at.as_microsecond());
    if c.prepare_cached(REVOKE_LIVE)?.execute(revoked)? == 0 {
        return Err(Error::NotFound);
    }
    add(c, new)
}

fn record(row: &Row<'_>) -> Result<KeyRecord, Error> {
    Ok(KeyRecord {
        id: text(row, "id")?,
        tenant: text(row, "tenant")?,
        name: row.get("name")?,
        hint: row.get("hint")?,
        hash: text(row, "hash")?,
        scopes: json(row, "scopes")?,
        created_at: time(row, "created_at")?,
        expires_at: optional_time(row, "expires_at")?,
        revoked_at: optional_time(row, "revoked_at")?,
    })
}
