//! Blobs: what is kept, for whom and how long.
//!
//! Whoever is about to remove a blob's bytes ends its row first (`expires_at` 0), and an ended row is never brought back
//! to its bytes. No clock decides this: an upload may have begun long before.

use jiff::Timestamp;
use rusqlite::{Connection, Row, named_params};

use super::row::{text, time};
use crate::ids::{BlobObject, Digest, Tenant};
use crate::store::{BlobQuota, BlobRecord, Error, KeptBlob, Moment};

macro_rules! columns {
    () => {
        "tenant, digest, object, size, media_type, created_at, expires_at"
    };
}

pub(super) const BY_DIGEST: &str = concat!(
    "select ",
    columns!(),
    " from blobs where tenant = ?1 and digest = ?2"
);
pub(super) const USED: &str =
    "select count(*) as count, coalesce(sum(size), 0) as bytes from blobs where tenant = ?1";
const PUT: &str = concat!(
    "insert or replace into blobs (",
    columns!(),
    ") values (:tenant, :digest, :object, :size, :media_type, :created_at, :expires_at)"
);
const EXTEND: &str = concat!(
    "update blobs set expires_at = max(expires_at, ?3) where tenant = ?1 and digest = ?2 returning ",
    columns!()
);
pub(super) const PAGE: &str = concat!(
    "select ",
    columns!(),
    " from blobs where tenant = ?1 and (created_at, digest) < (?2, ?3) and expires_at > ?4
    order by created_at desc, digest desc limit ?5"
);
const END: &str = concat!(
    "update blobs set expires_at = 0 where tenant = ?1 and digest = ?2 and expires_at > ?3 returning ",
    columns!()
);
macro_rules! expired {
    () => {
        "select rowid from blobs where expires_at <= ?1 order by expires_at limit ?2"
    };
}
#[cfg(test)]
pub(super) const EXPIRED: &str = expired!();
const END_EXPIRED: &str = concat!(
    "update blobs set expires_at = 0 where rowid in (",
    expired!(),
    ") returning ",
    columns!()
);
pub(super) const OBJECTS: &str = "select object from blobs where tenant = ?1";
const FORGET: &str = "delete from blobs where tenant = ?1 and digest = ?2 and object = ?3 and expires_at = 0";

pub(super) fn keep(c: &Connection, new: &BlobRecord, quota: BlobQuota) -> Result<KeptBlob, Error> {
    let (tenant, digest) = (new.tenant.as_str(), new.digest.to_string());
    let there = at(c, &new.tenant, &new.digest)?;
    if there
        .as_ref()
        .is_some_and(|there| there.expires_at > new.created_at)
    {
        let mut statement = c.prepare_cached(EXTEND)?;
        let mut rows =
            statement.query_and_then((tenant, &digest, new.expires_at.as_microsecond()), record)?;
        return rows.next().ok_or(Error::NotFound)?.map(KeptBlob::Again);
    }
    let (count, bytes) = c.prepare_cached(USED)?.query_row([tenant], |row| {
        Ok((row.get::<_, u64>("count")?, row.get::<_, u64>("bytes")?))
    })?;
    if count >= quota.count || new.size > quota.bytes.saturating_sub(bytes) {
        return Err(Error::Quota);
    }
    c.prepare_cached(PUT)?.execute(named_params! {
        ":tenant": tenant,
        ":digest": digest,
        ":object": new.object.to_string(),
        ":size": new.size,
        ":media_type": new.media_type,
        ":created_at": new.created_at.as_microsecond(),
        ":expires_at": new.expires_at.as_microsecond(),
    })?;
    Ok(KeptBlob::New {
        replaced: there.map(|there| there.object),
    })
}

fn at(c: &Connection, tenant: &Tenant, digest: &Digest) -> Result<Option<BlobRecord>, Error> {
    let mut statement = c.prepare_cached(BY_DIGEST)?;
    let mut rows = statement.query_and_then((tenant.as_str(), digest.to_string()), record)?;
    rows.next().transpose()
}

pub(super) fn find(
    c: &Connection,
    tenant: &Tenant,
    digest: &Digest,
    now: Timestamp,
) -> Result<BlobRecord, Error> {
    at(c, tenant, digest)?
        .filter(|blob| blob.expires_at > now)
        .ok_or(Error::NotFound)
}

pub(super) fn list(
    c: &Connection,
    tenant: &Tenant,
    after: Option<Moment<Digest>>,
    (now, rows): (Timestamp, u32),
) -> Result<Vec<BlobRecord>, Error> {
    let (at, digest) = after.map_or((i64::MAX, String::new()), |m| {
        (m.at.as_microsecond(), m.id.to_string())
    });
    let mut statement = c.prepare_cached(PAGE)?;
    let terms = (tenant.as_str(), at, digest, now.as_microsecond(), rows);
    let found = statement.query_and_then(terms, record)?;
    found.collect()
}

pub(super) fn end(
    c: &Connection,
    tenant: &Tenant,
    digest: &Digest,
    now: Timestamp,
) -> Result<BlobRecord, Error> {
    let mut statement = c.prepare_cached(END)?;
    let living = (tenant.as_str(), digest.to_string(), now.as_microsecond());
    let mut rows = statement.query_and_then(living, record)?;
    rows.next().ok_or(Error::NotFound)?
}

pub(super) fn end_expired(c: &Connection, now: Timestamp, rows: u32) -> Result<Vec<BlobRecord>, Error> {
    let mut statement = c.prepare_cached(END_EXPIRED)?;
    let ended = statement.query_and_then((now.as_microsecond(), rows), record)?;
    ended.collect()
}

pub(super) fn objects(c: &Connection, tenant: &Tenant) -> Result<Vec<BlobObject>, Error> {
    let mut statement = c.prepare_cached(OBJECTS)?;
    let found = statement.query_and_then([tenant.as_str()], |row| text(row, "object"))?;
    found.collect()
}

pub(super) fn forget(c: &Connection, blob: &BlobRecord) -> Result<(), Error> {
    let terms = (
        blob.tenant.as_str(),
        blob.digest.to_string(),
        blob.object.to_string(),
    );
    c.prepare_cached(FORGET)?.execute(terms)?;
    Ok(())
}

fn record(row: &Row<'_>) -> Result<BlobRecord, Error> {
    Ok(BlobRecord {
        tenant: text(row, "tenant")?,
        digest: text(row, "digest")?,
        object: text(row, "object")?,
        size: row.get("size")?,
        media_type: row.get("media_type")?,
        created_at: time(row, "created_at")?,
        expires_at: time(row, "expires_at")?,
    })
}
