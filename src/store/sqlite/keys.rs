//! API keys.

use jiff::Timestamp;
use rusqlite::{Connection, Row, named_params};

use super::Sqlite;
use super::row::{all, before, execute, first, is_taken, json, optional_time, text, time, to_json};
use crate::auth::KeyRecord;
use crate::ids::{Digest, KeyId, Tenant};
use crate::store::cursor::Moment;
use crate::store::keys::Keys;
use crate::store::{Conflict, Error};

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
pub(super) const BY_ID: &str = concat!("select ", columns!(), " from keys where tenant = ?1 and id = ?2");
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

impl Keys for Sqlite {
    async fn add_key(&self, key: KeyRecord) -> Result<(), Error> {
        self.write(move |c| add(c, &key)).await
    }

    async fn bootstrap_key(&self, key: KeyRecord) -> Result<bool, Error> {
        self.write(move |c| Ok(insert(c, INSERT_FIRST, &key)? == 1)).await
    }

    async fn key(&self, hash: &Digest) -> Result<KeyRecord, Error> {
        let hash = hash.to_string();
        let found = match self.try_read_now(|c| first(c, BY_HASH, [&hash], record)) {
            Some(found) => found?,
            None => self.read(move |c| first(c, BY_HASH, [hash], record)).await?,
        };
        found.ok_or_else(|| Error::NotFound("key".to_owned()))
    }

    async fn key_by_id(&self, tenant: &Tenant, id: KeyId) -> Result<KeyRecord, Error> {
        let terms = (tenant.to_string(), id.to_string());
        self.read(move |c| first(c, BY_ID, terms, record)?.ok_or_else(|| Error::not_found("key", id)))
            .await
    }

    async fn revoke_key(&self, tenant: &Tenant, id: KeyId, at: Timestamp) -> Result<KeyRecord, Error> {
        let terms = (tenant.to_string(), id.to_string(), at.as_microsecond());
        self.write(move |c| first(c, REVOKE, terms, record)?.ok_or_else(|| Error::not_found("key", id)))
            .await
    }

    async fn replace_key(
        &self,
        tenant: &Tenant,
        old: KeyId,
        new: KeyRecord,
        at: Timestamp,
    ) -> Result<(), Error> {
        let terms = (tenant.to_string(), old.to_string(), at.as_microsecond());
        self.write(move |c| match execute(c, REVOKE_LIVE, terms)? {
            0 => Err(Error::not_found("key", old)),
            _ => add(c, &new),
        })
        .await
    }

    async fn keys(
        &self,
        tenant: &Tenant,
        after: Option<Moment<KeyId>>,
        rows: u32,
    ) -> Result<Vec<KeyRecord>, Error> {
        let (tenant, (at, id)) = (tenant.to_string(), before(after));
        self.read(move |c| all(c, PAGE, (tenant, at, id, rows), record))
            .await
    }
}

pub(super) fn add(c: &Connection, key: &KeyRecord) -> Result<(), Error> {
    insert(c, INSERT, key).map(drop)
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
        Err(e) if is_taken(&e) => Err(Conflict::Exists.of("key")),
        rows => Ok(rows?),
    }
}

pub(super) fn record(row: &Row<'_>) -> Result<KeyRecord, Error> {
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
