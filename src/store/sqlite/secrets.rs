//! Secrets, sealed.

use rusqlite::{Row, named_params};

use super::Sqlite;
use super::row::{all, execute, exists, first, text, time};
use crate::ids::Tenant;
use crate::skill::SecretName;
use crate::store::secrets::Secrets;
use crate::store::{Error, NewSecret, Saved, SecretRecord};

const EXISTS: &str = "select 1 from secrets where tenant = ?1 and name = ?2";
pub(super) const COUNT: &str = "select count(*) from secrets where tenant = ?1";
const PUT: &str = "
    insert into secrets (tenant, name, sealed, created_at, updated_at) values (:tenant, :name, :sealed, :at, :at)
    on conflict (tenant, name) do update set sealed = excluded.sealed, updated_at = excluded.updated_at";
pub(super) const SEALED: &str = "select sealed from secrets where tenant = ?1 and name = ?2";
pub(super) const PAGE: &str = "
    select tenant, name, created_at, updated_at from secrets
    where tenant = ?1 and name > ?2 order by name limit ?3";
const DELETE: &str = "delete from secrets where tenant = ?1 and name = ?2";

impl Secrets for Sqlite {
    async fn put_secret(&self, new: NewSecret, max: u32) -> Result<Saved, Error> {
        self.write(move |c| {
            let (tenant, name) = (new.tenant.as_str(), new.name.as_str());
            let saved = if exists(c, EXISTS, (tenant, name))? {
                Saved::Existing
            } else {
                let count: Option<u32> = first(c, COUNT, [tenant], |row| Ok(row.get(0)?))?;
                if count >= Some(max) {
                    return Err(Error::Quota);
                }
                Saved::New
            };
            c.prepare_cached(PUT)?.execute(named_params! {
                ":tenant": tenant,
                ":name": name,
                ":sealed": new.sealed,
                ":at": new.at.as_microsecond(),
            })?;
            Ok(saved)
        })
        .await
    }

    async fn secret_count(&self, tenant: &Tenant) -> Result<u64, Error> {
        let tenant = tenant.to_string();
        let count = self.read(move |c| first(c, COUNT, [tenant], |row| Ok(row.get(0)?)));
        Ok(count.await?.unwrap_or(0))
    }

    async fn sealed_secret(&self, tenant: &Tenant, name: &SecretName) -> Result<Vec<u8>, Error> {
        let terms = (tenant.to_string(), name.to_string());
        let sealed = self.read(move |c| first(c, SEALED, terms, |row| Ok(row.get(0)?)));
        sealed.await?.ok_or_else(|| Error::not_found("secret", name))
    }

    async fn delete_secret(&self, tenant: &Tenant, name: &SecretName) -> Result<(), Error> {
        let terms = (tenant.to_string(), name.to_string());
        self.write(move |c| match execute(c, DELETE, [&terms.0, &terms.1])? {
            0 => Err(Error::not_found("secret", &terms.1)),
            _ => Ok(()),
        })
        .await
    }

    async fn secrets(
        &self,
        tenant: &Tenant,
        after: Option<SecretName>,
        rows: u32,
    ) -> Result<Vec<SecretRecord>, Error> {
        // Every name sorts after the empty text.
        let after = after.map_or_else(String::new, |name| name.to_string());
        let terms = (tenant.to_string(), after, rows);
        self.read(move |c| all(c, PAGE, terms, record)).await
    }
}

fn record(row: &Row<'_>) -> Result<SecretRecord, Error> {
    Ok(SecretRecord {
        tenant: text(row, "tenant")?,
        name: text(row, "name")?,
        created_at: time(row, "created_at")?,
        updated_at: time(row, "updated_at")?,
    })
}
