//! Installed packages.

use jiff::Timestamp;
use rusqlite::{Row, named_params};

use super::Sqlite;
use super::row::{all, before, execute, exists, first, json, text, time, to_json};
use crate::ids::{Digest, Tenant};
use crate::store::cursor::Moment;
use crate::store::packages::Packages;
use crate::store::{Error, PackageSet};

macro_rules! columns {
    () => {
        "tenant, key, language, wanted, digest, bytes, files, created_at, used_at"
    };
}

const PUT: &str = concat!(
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
const TOUCH: &str = "update package_sets set used_at = max(used_at, ?3) where tenant = ?1 and key = ?2";
const DELETE: &str = concat!(
    "delete from package_sets where tenant = ?1 and key = ?2 returning ",
    columns!()
);
/// Evicts the tenant with the most bytes first, and its least recently used sets first (T-15).
const SURPLUS: &str = concat!(
    "select ",
    columns!(),
    " from (select *, sum(bytes) over (order by own_so_far, used_at desc, tenant, key) as so_far",
    " from (select *, sum(bytes) over (partition by tenant order by used_at desc, key desc) as own_so_far",
    " from package_sets))",
    " where so_far > ?1 order by own_so_far desc, used_at limit ?2"
);
const USED: &str = "select coalesce(sum(bytes), 0) from package_sets where tenant = ?1";
const DIGEST_IS_USED: &str = "select 1 from package_sets where tenant = ?1 and digest = ?2 limit 1";

impl Packages for Sqlite {
    async fn put_packages(&self, set: PackageSet) -> Result<(), Error> {
        self.write(move |c| {
            c.prepare_cached(PUT)?.execute(named_params! {
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
        })
        .await
    }

    async fn packages(&self, tenant: &Tenant, key: &Digest) -> Result<PackageSet, Error> {
        let terms = (tenant.to_string(), key.to_string());
        let found = self.read(move |c| first(c, BY_KEY, terms, record)).await?;
        found.ok_or_else(not_found)
    }

    async fn touch_packages(&self, tenant: &Tenant, key: &Digest, at: Timestamp) -> Result<(), Error> {
        let terms = (tenant.to_string(), key.to_string(), at.as_microsecond());
        self.write(move |c| execute(c, TOUCH, terms).map(drop)).await
    }

    async fn delete_packages(&self, tenant: &Tenant, key: &Digest) -> Result<PackageSet, Error> {
        let terms = (tenant.to_string(), key.to_string());
        self.write(move |c| first(c, DELETE, terms, record)?.ok_or_else(not_found))
            .await
    }

    async fn surplus_packages(&self, bytes_max: u64, rows: u32) -> Result<Vec<PackageSet>, Error> {
        let bytes_max = i64::try_from(bytes_max).unwrap_or(i64::MAX);
        self.read(move |c| all(c, SURPLUS, (bytes_max, rows), record))
            .await
    }

    async fn packages_used(&self, tenant: &Tenant) -> Result<u64, Error> {
        let tenant = tenant.to_string();
        let used = self.read(move |c| first(c, USED, [tenant], |row| Ok(row.get(0)?)));
        Ok(used.await?.unwrap_or(0))
    }

    async fn packages_digest_is_used(&self, tenant: &Tenant, digest: &Digest) -> Result<bool, Error> {
        let (tenant, digest) = (tenant.to_string(), digest.to_string());
        self.read(move |c| exists(c, DIGEST_IS_USED, [tenant, digest]))
            .await
    }

    async fn package_sets(
        &self,
        tenant: &Tenant,
        after: Option<Moment<Digest>>,
        rows: u32,
    ) -> Result<Vec<PackageSet>, Error> {
        let (tenant, (at, key)) = (tenant.to_string(), before(after));
        self.read(move |c| all(c, PAGE, (tenant, at, key, rows), record))
            .await
    }
}

fn not_found() -> Error {
    Error::NotFound("installed packages".to_owned())
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
