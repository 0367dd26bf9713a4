//! Webhooks. A trigger of the schema makes them due when their execution ends.

use jiff::Timestamp;
use rusqlite::{Connection, Row, named_params};

use super::row::{all, before, exists, first, optional_time, text, time};
use super::{Sqlite, due, executions};
use crate::error;
use crate::execution::NewExecution;
use crate::ids::{DeliveryId, ExecutionId, Tenant};
use crate::store::cursor::Moment;
use crate::store::deliveries::Deliveries;
use crate::store::{
    Attempt, ClaimedDelivery, Conflict, Delivery, DeliveryClaim, DeliveryStatus, Error, NextStep,
    SealedSigningSecret,
};

macro_rules! columns {
    () => {
        "id, tenant, execution, url, status, attempts, next_at, last_at, last_status, last_error, created_at"
    };
}

const INSERT: &str = "
    insert into deliveries (id, execution, tenant, url, host, created_at)
    values (:id, :execution, :tenant, :url, :host, :created_at)";
pub(super) const NEXT: &str = "select min(next_at) as next_at from deliveries where next_at is not null";
pub(super) const SENT: &str = "
    select tenant, host, count(*) as count from deliveries where status = 'sending' and next_at > ?1 group by tenant, host";
pub(super) const NEXT_TENANT: &str =
    "select tenant from deliveries where next_at is not null and tenant > ?1 order by tenant limit 1";
macro_rules! due {
    ($order:literal) => {
        concat!(
            "select id, host, next_at from deliveries where next_at is not null and tenant = ?1 and next_at <= ?2 order by ",
            $order,
            " limit ?3"
        )
    };
}
pub(super) const OLDEST: &str = due!("next_at, id");
pub(super) const NEWEST: &str = due!("next_at desc, id desc");
const CLAIM: &str = concat!(
    "update deliveries set status = 'sending', attempts = attempts + 1, last_at = :now, next_at = :until
    where id = :id and next_at <= :now returning before, ",
    columns!()
);
const RECORD_ATTEMPT: &str = "
    update deliveries set status = :status, next_at = :next_at, last_status = :last_status, last_error = :last_error
    where id = :id and attempts = :attempts and status = 'sending'";
pub(super) const PAGE: &str = concat!(
    "select ",
    columns!(),
    " from deliveries where tenant = ?1 and (created_at, id) < (?2, ?3) order by created_at desc, id desc limit ?4"
);
pub(super) const OF_EXECUTION: &str = concat!(
    "select ",
    columns!(),
    " from deliveries where execution = ?2 and tenant = ?1"
);
const EXECUTION_EXISTS: &str = "select 1 from executions where tenant = ?1 and id = ?2";
const STATUS: &str = "select status, next_at from deliveries where tenant = ?1 and id = ?2";
const REDELIVER: &str = concat!(
    "update deliveries set status = 'pending', next_at = ?3, before = attempts where tenant = ?1 and id = ?2 returning ",
    columns!()
);
const SIGNING: &str =
    "select sealed, created_at, previous, previous_until from signing_secrets where tenant = ?1";
const INIT_SIGNING: &str =
    "insert or ignore into signing_secrets (tenant, sealed, created_at) values (:tenant, :sealed, :at)";
const ROTATE_SIGNING: &str = "
    insert into signing_secrets (tenant, sealed, created_at) values (:tenant, :sealed, :at)
    on conflict (tenant) do update set
        previous = sealed, previous_until = :until, sealed = excluded.sealed, created_at = excluded.created_at";

impl Deliveries for Sqlite {
    async fn claim_deliveries(&self, claim: DeliveryClaim) -> Result<Vec<ClaimedDelivery>, Error> {
        let due = self.read(move |c| due::due(c, &claim)).await?;
        if due.is_empty() {
            return Ok(Vec::new());
        }
        self.write(move |c| claim_all(c, &due, &claim)).await
    }

    async fn record_attempt(&self, attempt: Attempt) -> Result<bool, Error> {
        let (status, next_at) = match attempt.next {
            NextStep::Delivered => (DeliveryStatus::Delivered, None),
            NextStep::Gone => (DeliveryStatus::Gone, None),
            NextStep::Failed => (DeliveryStatus::Failed, None),
            NextStep::Retry(at) => (DeliveryStatus::Pending, Some(at.as_microsecond())),
        };
        self.write(move |c| {
            let changed = c.prepare_cached(RECORD_ATTEMPT)?.execute(named_params! {
                ":id": attempt.id.to_string(),
                ":attempts": attempt.attempts,
                ":status": status.as_str(),
                ":next_at": next_at,
                ":last_status": attempt.status,
                ":last_error": attempt.error,
            })?;
            Ok(changed > 0)
        })
        .await
    }

    async fn next_delivery(&self) -> Result<Option<Timestamp>, Error> {
        let next = self.read(|c| first(c, NEXT, [], |row| optional_time(row, "next_at")));
        Ok(next.await?.flatten())
    }

    async fn execution_delivery(&self, tenant: &Tenant, id: ExecutionId) -> Result<Option<Delivery>, Error> {
        let terms = [tenant.to_string(), id.to_string()];
        self.read(move |c| {
            if !exists(c, EXECUTION_EXISTS, terms.each_ref())? {
                return Err(Error::not_found("execution", id));
            }
            first(c, OF_EXECUTION, terms, record)
        })
        .await
    }

    async fn redeliver(&self, tenant: &Tenant, id: DeliveryId, at: Timestamp) -> Result<Delivery, Error> {
        let (tenant, text, at) = (tenant.to_string(), id.to_string(), at.as_microsecond());
        self.write(move |c| {
            let recorded = first(c, STATUS, (&tenant, &text), |row| {
                let status: String = row.get("status")?;
                Ok((
                    DeliveryStatus::from_name(&status),
                    row.get::<_, Option<i64>>("next_at")?,
                ))
            })?;
            let conflict = match recorded {
                None => return Err(not_found(id)),
                Some((Some(DeliveryStatus::Waiting), _)) => Conflict::NotEnded,
                // Until the claim expires.
                Some((Some(DeliveryStatus::Sending), Some(until))) if until > at => Conflict::BeingSent,
                Some(_) => {
                    let due = first(c, REDELIVER, (tenant, text, at), record)?;
                    return due.ok_or_else(|| not_found(id));
                }
            };
            Err(conflict.of(format!("webhook `{id}`")))
        })
        .await
    }

    async fn signing_secret(&self, tenant: &Tenant) -> Result<SealedSigningSecret, Error> {
        let tenant = tenant.clone();
        self.read(move |c| signing_secret(c, &tenant)).await
    }

    async fn init_signing_secret(
        &self,
        tenant: &Tenant,
        new: SealedSigningSecret,
    ) -> Result<SealedSigningSecret, Error> {
        let tenant = tenant.clone();
        self.write(move |c| {
            c.prepare_cached(INIT_SIGNING)?.execute(named_params! {
                ":tenant": tenant.as_str(),
                ":sealed": new.sealed,
                ":at": new.created_at.as_microsecond(),
            })?;
            signing_secret(c, &tenant)
        })
        .await
    }

    async fn rotate_signing_secret(
        &self,
        tenant: &Tenant,
        new: SealedSigningSecret,
        until: Timestamp,
    ) -> Result<SealedSigningSecret, Error> {
        let tenant = tenant.clone();
        self.write(move |c| {
            c.prepare_cached(ROTATE_SIGNING)?.execute(named_params! {
                ":tenant": tenant.as_str(),
                ":sealed": new.sealed,
                ":at": new.created_at.as_microsecond(),
                ":until": until.as_microsecond(),
            })?;
            signing_secret(c, &tenant)
        })
        .await
    }

    async fn deliveries(
        &self,
        tenant: &Tenant,
        after: Option<Moment<DeliveryId>>,
        rows: u32,
    ) -> Result<Vec<Delivery>, Error> {
        let (tenant, (at, id)) = (tenant.to_string(), before(after));
        self.read(move |c| all(c, PAGE, (tenant, at, id, rows), record))
            .await
    }
}

/// Inserts the webhook of an execution that has a callback URL.
pub(super) fn insert(c: &Connection, new: &NewExecution) -> Result<(), Error> {
    let Some(url) = &new.callback_url else {
        return Ok(());
    };
    c.prepare_cached(INSERT)?.execute(named_params! {
        ":id": DeliveryId::generate().to_string(),
        ":execution": new.id.to_string(),
        ":tenant": new.tenant.as_str(),
        ":url": url.as_str(),
        ":host": url.host(),
        ":created_at": new.created_at.as_microsecond(),
    })?;
    Ok(())
}

/// Claims those of `due` that no other process has claimed since. A row that cannot be read stays claimed until it is due again,
/// so that it delays no other.
fn claim_all(c: &Connection, due: &[String], claim: &DeliveryClaim) -> Result<Vec<ClaimedDelivery>, Error> {
    let mut claimed = Vec::new();
    for id in due {
        let terms = named_params! {
            ":id": id,
            ":now": claim.now.as_microsecond(),
            ":until": claim.until.as_microsecond(),
        };
        match first(c, CLAIM, terms, |row| Ok(claimed_delivery(c, row)))? {
            Some(Ok(delivery)) => claimed.push(delivery),
            Some(Err(error)) => {
                let cause = error::causes(&error);
                tracing::error!(
                    delivery.id = id,
                    cause,
                    "Webhook not sent: its row cannot be read"
                );
            }
            None => {}
        }
    }
    Ok(claimed)
}

fn claimed_delivery(c: &Connection, row: &Row<'_>) -> Result<ClaimedDelivery, Error> {
    let (delivery, before) = (record(row)?, row.get("before")?);
    Ok(ClaimedDelivery {
        number: delivery.attempts.saturating_sub(before),
        execution: executions::in_brief(c, &delivery.tenant, delivery.execution)?,
        delivery,
    })
}

fn signing_secret(c: &Connection, tenant: &Tenant) -> Result<SealedSigningSecret, Error> {
    let found = first(c, SIGNING, [tenant.as_str()], |row| {
        let previous: Option<Vec<u8>> = row.get("previous")?;
        Ok(SealedSigningSecret {
            sealed: row.get("sealed")?,
            created_at: time(row, "created_at")?,
            previous: previous.zip(optional_time(row, "previous_until")?),
        })
    })?;
    found.ok_or_else(|| Error::NotFound("signing secret".to_owned()))
}

fn not_found(id: DeliveryId) -> Error {
    Error::not_found("webhook", id)
}

fn record(row: &Row<'_>) -> Result<Delivery, Error> {
    let status: String = row.get("status")?;
    Ok(Delivery {
        id: text(row, "id")?,
        tenant: text(row, "tenant")?,
        execution: text(row, "execution")?,
        url: text(row, "url")?,
        status: DeliveryStatus::from_name(&status)
            .ok_or_else(|| Error::backend("column status: unknown name"))?,
        attempts: row.get("attempts")?,
        next_at: optional_time(row, "next_at")?,
        last_at: optional_time(row, "last_at")?,
        last_status: row.get("last_status")?,
        last_error: row.get("last_error")?,
        created_at: time(row, "created_at")?,
    })
}
