//! The audit trail.

use jiff::Timestamp;
use rusqlite::{Row, named_params};

use super::Sqlite;
use super::row::{all, execute, optional_text, text, time};
use crate::auth::{AuditEntry, RequestSource};
use crate::ids::Tenant;
use crate::store::Error;
use crate::store::audit::{Audit, NumberedEntry};

const INSERT: &str = "insert into audit
        (tenant, number, id, at, key, key_name, session, action, target, address, request_id)
    values (:tenant, 1 + coalesce((select max(number) from audit where tenant = :tenant), 0),
        :id, :at, :key, :key_name, :session, :action, :target, :address, :request_id)";
const EVICT: &str = "delete from audit
    where tenant = ?1 and number <= (select max(number) from audit where tenant = ?1) - ?2";
const PAGE: &str =
    "select tenant, number, id, at, key, key_name, session, action, target, address, request_id from audit
    where tenant = ?1 and number < ?2 order by number desc limit ?3";
const DELETE_OLD: &str = "delete from audit where (tenant, number) in (
    select tenant, number from audit where at < ?1 order by at limit ?2)";

impl Audit for Sqlite {
    async fn add_audit_entry(&self, entry: AuditEntry, max: u32) -> Result<(), Error> {
        self.write(move |c| {
            let tenant = entry.tenant.as_str();
            c.prepare_cached(INSERT)?.execute(named_params! {
                ":tenant": tenant,
                ":id": entry.id.to_string(),
                ":at": entry.at.as_microsecond(),
                ":key": entry.key.to_string(),
                ":key_name": entry.key_name,
                ":session": entry.session.map(|id| id.to_string()),
                ":action": entry.action.as_str(),
                ":target": entry.target,
                ":address": entry.source.address.map(|address| address.to_string()),
                ":request_id": entry.source.request_id,
            })?;
            execute(c, EVICT, (tenant, max)).map(drop)
        })
        .await
    }

    async fn delete_audit_entries(&self, before: Timestamp, rows: u32) -> Result<(), Error> {
        let terms = (before.as_microsecond(), rows);
        self.write(move |c| execute(c, DELETE_OLD, terms).map(drop)).await
    }

    async fn audit_entries(
        &self,
        tenant: &Tenant,
        after: Option<u64>,
        rows: u32,
    ) -> Result<Vec<NumberedEntry>, Error> {
        let below = after.map_or(i64::MAX, |number| i64::try_from(number).unwrap_or(i64::MAX));
        let terms = (tenant.to_string(), below, rows);
        self.read(move |c| all(c, PAGE, terms, numbered)).await
    }
}

fn numbered(row: &Row<'_>) -> Result<NumberedEntry, Error> {
    Ok(NumberedEntry {
        number: row.get("number")?,
        entry: AuditEntry {
            id: text(row, "id")?,
            tenant: text(row, "tenant")?,
            at: time(row, "at")?,
            key: text(row, "key")?,
            key_name: row.get("key_name")?,
            session: optional_text(row, "session")?,
            action: text(row, "action")?,
            target: row.get("target")?,
            source: RequestSource {
                address: optional_text(row, "address")?,
                request_id: row.get("request_id")?,
            },
        },
    })
}
