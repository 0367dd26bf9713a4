//! Blobs. A retired row has `expires_at` 0.

use jiff::Timestamp;
use rusqlite::{Connection, Row, named_params};

use super::Sqlite;
use super::row::{all, before, execute, first, text, time};
use crate::ids::{BlobObject, Digest, Tenant};
use crate::store::blobs::Blobs;
use crate::store::cursor::Moment;
use crate::store::{BlobQuota, BlobRecord, Error, SavedBlob};

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
const RETIRE: &str = concat!(
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
const RETIRE_EXPIRED: &str = concat!(
    "update blobs set expires_at = 0 where rowid in (",
    expired!(),
    ") returning ",
    columns!()
);
pub(super) const OBJECTS: &str = "select object from blobs where tenant = ?1";
const DELETE: &str = "delete from blobs where tenant = ?1 and digest = ?2 and object = ?3 and expires_at = 0";

impl Blobs for Sqlite {
    async fn put_blob(&self, new: BlobRecord, quota: BlobQuota) -> Result<SavedBlob, Error> {
        self.write(move |c| {
            let (tenant, digest) = (new.tenant.as_str(), new.digest.to_string());
            let existing = first(c, BY_DIGEST, (tenant, &digest), record)?;
            if existing
                .as_ref()
                .is_some_and(|blob| blob.expires_at > new.created_at)
            {
                let extended = (tenant, &digest, new.expires_at.as_microsecond());
                let extended = first(c, EXTEND, extended, record)?;
                return extended
                    .map(SavedBlob::Existing)
                    .ok_or_else(|| Error::not_found("blob", digest));
            }
            let used = used(c, tenant)?;
            if used.count >= quota.count || new.size > quota.bytes.saturating_sub(used.bytes) {
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
            Ok(SavedBlob::New {
                replaced: existing.map(|blob| blob.object),
            })
        })
        .await
    }

    async fn blob(&self, tenant: &Tenant, digest: &Digest, now: Timestamp) -> Result<BlobRecord, Error> {
        let terms = (tenant.to_string(), digest.to_string());
        let found = self.read(move |c| first(c, BY_DIGEST, terms, record)).await?;
        let found = found.filter(|blob| blob.expires_at > now);
        found.ok_or_else(|| Error::not_found("blob", digest))
    }

    async fn blobs_used(&self, tenant: &Tenant) -> Result<BlobQuota, Error> {
        let tenant = tenant.to_string();
        self.read(move |c| used(c, &tenant)).await
    }

    async fn retire_blob(
        &self,
        tenant: &Tenant,
        digest: &Digest,
        now: Timestamp,
    ) -> Result<BlobRecord, Error> {
        let (digest, terms) = (
            *digest,
            (tenant.to_string(), digest.to_string(), now.as_microsecond()),
        );
        self.write(move |c| first(c, RETIRE, terms, record)?.ok_or_else(|| Error::not_found("blob", digest)))
            .await
    }

    async fn retire_expired_blobs(&self, now: Timestamp, rows: u32) -> Result<Vec<BlobRecord>, Error> {
        self.write(move |c| all(c, RETIRE_EXPIRED, (now.as_microsecond(), rows), record))
            .await
    }

    async fn blob_objects(&self, tenant: &Tenant) -> Result<Vec<BlobObject>, Error> {
        let tenant = tenant.to_string();
        self.read(move |c| all(c, OBJECTS, [tenant], |row| text(row, "object")))
            .await
    }

    async fn delete_retired_blob(&self, blob: &BlobRecord) -> Result<(), Error> {
        let BlobRecord {
            tenant,
            digest,
            object,
            ..
        } = blob;
        let terms = (tenant.to_string(), digest.to_string(), object.to_string());
        self.write(move |c| execute(c, DELETE, terms).map(drop)).await
    }

    async fn blobs(
        &self,
        tenant: &Tenant,
        now: Timestamp,
        after: Option<Moment<Digest>>,
        rows: u32,
    ) -> Result<Vec<BlobRecord>, Error> {
        let (at, digest) = before(after);
        let terms = (tenant.to_string(), at, digest, now.as_microsecond(), rows);
        self.read(move |c| all(c, PAGE, terms, record)).await
    }
}

fn used(c: &Connection, tenant: &str) -> Result<BlobQuota, Error> {
    let used = c.prepare_cached(USED)?.query_row([tenant], |row| {
        Ok(BlobQuota {
            count: row.get("count")?,
            bytes: row.get("bytes")?,
        })
    });
    Ok(used?)
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
