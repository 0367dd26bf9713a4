//! Webhooks: written with their execution, due with its end (a trigger of the schema sees to that), claimed by one, tried again.

use jiff::Timestamp;
use rusqlite::{Connection, Row, named_params};

use super::executions;
use super::row::{optional_time, text, time};
use crate::error;
use crate::execution::NewExecution;
use crate::ids::{DeliveryId, ExecutionId, Tenant};
use crate::store::deliveries::{Attempted, Claimed, Delivery, DeliveryStatus, SealedSigning, Then, Wanted};
use crate::store::{Conflict, Error, Moment};

macro_rules! columns {
    () => {
        "id, tenant, execution, url, status, attempts, next_at, last_at, last_status, last_error, created_at"
    };
}

const EXPECT: &str = "
    insert into deliveries (id, execution, tenant, url, host, created_at)
    values (:id, :execution, :tenant, :url, :host, :created_at)";
pub(super) const NEXT: &str = "select min(next_at) from deliveries where next_at is not null";
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
const ATTEMPTED: &str = "
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
const IS_THERE: &str = "select 1 from executions where tenant = ?1 and id = ?2";
const STATUS: &str = "select status, next_at from deliveries where tenant = ?1 and id = ?2";
const REDELIVER: &str = concat!(
    "update deliveries set status = 'pending', next_at = ?3, before = attempts where tenant = ?1 and id = ?2 returning ",
    columns!()
);
const SIGNING: &str =
    "select sealed, created_at, previous, previous_until from signing_secrets where tenant = ?1";
const KEEP_SIGNING: &str =
    "insert or ignore into signing_secrets (tenant, sealed, created_at) values (:tenant, :sealed, :at)";
const ROTATE_SIGNING: &str = "
    insert into signing_secrets (tenant, sealed, created_at) values (:tenant, :sealed, :at)
    on conflict (tenant) do update set
        previous = sealed, previous_until = :until, sealed = excluded.sealed, created_at = excluded.created_at";

/// Writes down that the end of this execution is to be told, if it is.
pub(super) fn expect(c: &Connection, new: &NewExecution) -> Result<(), Error> {
    let Some(url) = &new.callback_url else {
        return Ok(());
    };
    c.prepare_cached(EXPECT)?.execute(named_params! {
        ":id": DeliveryId::generate().to_string(),
        ":execution": new.id.to_string(),
        ":tenant": new.tenant.as_str(),
        ":url": url.as_str(),
        ":host": url.host(),
        ":created_at": new.created_at.as_microsecond(),
    })?;
    Ok(())
}

pub(super) fn next(c: &Connection) -> Result<Option<Timestamp>, Error> {
    let at: Option<i64> = c.prepare_cached(NEXT)?.query_row([], |row| row.get(0))?;
    at.map(|at| Timestamp::from_microsecond(at).map_err(Error::backend))
        .transpose()
}

/// Claims those of `due` that nobody else has claimed meanwhile. One that cannot be read stays claimed until it is due again:
/// it holds up no other.
pub(super) fn claim(c: &Connection, due: &[String], wanted: &Wanted) -> Result<Vec<Claimed>, Error> {
    let mut claimed = Vec::new();
    let mut statement = c.prepare_cached(CLAIM)?;
    for id in due {
        let found = statement.query_map(
            named_params! {
                ":id": id,
                ":now": wanted.now.as_microsecond(),
                ":until": wanted.until.as_microsecond(),
            },
            |row| Ok(to_send(c, row)),
        )?;
        for read in found {
            match read? {
                Ok(one) => claimed.push(one),
                Err(error) => {
                    let cause = error::causes(&error);
                    tracing::error!(
                        delivery.id = id,
                        cause,
                        "A webhook cannot be read and is not sent"
                    );
                }
            }
        }
    }
    Ok(claimed)
}

fn to_send(c: &Connection, row: &Row<'_>) -> Result<Claimed, Error> {
    let (delivery, before) = (record(row)?, row.get("before")?);
    Ok(Claimed {
        number: delivery.attempts.saturating_sub(before),
        execution: executions::in_brief(c, &delivery.tenant, delivery.execution)?,
        delivery,
    })
}

pub(super) fn attempted(c: &Connection, attempted: &Attempted) -> Result<bool, Error> {
    let (status, next_at) = match attempted.then {
        Then::Delivered => (DeliveryStatus::Delivered, None),
        Then::Gone => (DeliveryStatus::Gone, None),
        Then::Failed => (DeliveryStatus::Failed, None),
        Then::Again(at) => (DeliveryStatus::Pending, Some(at.as_microsecond())),
    };
    let changed = c.prepare_cached(ATTEMPTED)?.execute(named_params! {
        ":id": attempted.id.to_string(),
        ":attempts": attempted.attempts,
        ":status": status.as_str(),
        ":next_at": next_at,
        ":last_status": attempted.status,
        ":last_error": attempted.error,
    })?;
    Ok(changed > 0)
}

pub(super) fn list(
    c: &Connection,
    tenant: &Tenant,
    after: Option<Moment<DeliveryId>>,
    rows: u32,
) -> Result<Vec<Delivery>, Error> {
    let (at, id) = after.map_or((i64::MAX, String::new()), |m| {
        (m.at.as_microsecond(), m.id.to_string())
    });
    let mut statement = c.prepare_cached(PAGE)?;
    let found = statement.query_and_then((tenant.as_str(), at, id, rows), record)?;
    found.collect()
}

pub(super) fn of_execution(
    c: &Connection,
    tenant: &Tenant,
    id: ExecutionId,
) -> Result<Option<Delivery>, Error> {
    let terms = (tenant.as_str(), id.to_string());
    c.prepare_cached(IS_THERE)?
        .query_row((terms.0, &terms.1), |_| Ok(()))?;
    let mut statement = c.prepare_cached(OF_EXECUTION)?;
    let mut rows = statement.query_and_then(terms, record)?;
    rows.next().transpose()
}

pub(super) fn redeliver(
    c: &Connection,
    tenant: &Tenant,
    id: DeliveryId,
    at: Timestamp,
) -> Result<Delivery, Error> {
    let (tenant, id) = (tenant.as_str(), id.to_string());
    let stands = c.prepare_cached(STATUS)?.query_row((tenant, &id), |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, Option<i64>>(1)?))
    })?;
    match (DeliveryStatus::from_name(&stands.0), stands.1) {
        (Some(DeliveryStatus::Waiting), _) => return Err(Conflict::NotEnded.into()),
        // Until whoever sends it is given up.
        (Some(DeliveryStatus::Sending), Some(until)) if until > at.as_microsecond() => {
            return Err(Conflict::BeingSent.into());
        }
        _ => {}
    }
    let mut statement = c.prepare_cached(REDELIVER)?;
    let mut rows = statement.query_and_then((tenant, &id, at.as_microsecond()), record)?;
    rows.next().ok_or(Error::NotFound)?
}

pub(super) fn signing(c: &Connection, tenant: &Tenant) -> Result<SealedSigning, Error> {
    let mut statement = c.prepare_cached(SIGNING)?;
    let mut rows = statement.query_and_then([tenant.as_str()], |row| {
        let previous: Option<Vec<u8>> = row.get("previous")?;
        Ok(SealedSigning {
            sealed: row.get("sealed")?,
            created_at: time(row, "created_at")?,
            previous: previous.zip(optional_time(row, "previous_until")?),
        })
    })?;
    rows.next().ok_or(Error::NotFound)?
}

pub(super) fn keep_signing(
    c: &Connection,
    tenant: &Tenant,
    new: &SealedSigning,
) -> Result<SealedSigning, Error> {
    c.prepare_cached(KEEP_SIGNING)?.execute(named_params! {
        ":tenant": tenant.as_str(),
        ":sealed": new.sealed,
        ":at": new.created_at.as_microsecond(),
    })?;
    signing(c, tenant)
}

pub(super) fn rotate_signing(
    c: &Connection,
    tenant: &Tenant,
    new: &SealedSigning,
    until: Timestamp,
) -> Result<SealedSigning, Error> {
    c.prepare_cached(ROTATE_SIGNING)?.execute(named_params! {
        ":tenant": tenant.as_str(),
        ":sealed": new.sealed,
        ":at": new.created_at.as_microsecond(),
        ":until": until.as_microsecond(),
    })?;
    signing(c, tenant)
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
