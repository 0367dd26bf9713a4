//! Which webhooks are sent next: tenants take turns, within limits per tenant and per host.
//!
//! A look reads a limited number of rows for each tenant, its oldest and its newest: behind a long list for a receiver that never
//! answers, a new webhook for another receiver is still found.

use std::collections::{HashMap, HashSet};

use rusqlite::Connection;

use super::deliveries::{NEWEST, NEXT_TENANT, OLDEST, SENT};
use super::row::{all, first};
use crate::limits;
use crate::store::{DeliveryClaim, Error};

struct Due {
    id: String,
    host: String,
    next_at: i64,
}

/// How many webhooks a tenant sends now: in total, and to each host.
#[derive(Default)]
struct Sent {
    all: u32,
    to_host: HashMap<String, u32>,
}

/// What can be claimed now, in fair order.
pub(super) fn due(c: &Connection, claim: &DeliveryClaim) -> Result<Vec<String>, Error> {
    let mut sent = sent(c, claim)?;
    let mut turns = Vec::new();
    let mut next = next_tenant(c, "")?;
    while let Some(tenant) = next {
        let mut sends = sent.remove(&tenant).unwrap_or_default();
        for due in of_tenant(c, &tenant, claim)? {
            let to_host = sends.to_host.entry(due.host).or_default();
            if sends.all < claim.per_tenant && *to_host < claim.per_host {
                sends.all += 1;
                *to_host += 1;
                turns.push((sends.all, due.next_at, due.id));
            }
        }
        next = next_tenant(c, &tenant)?;
    }
    turns.sort();
    turns.truncate(usize::try_from(claim.rows).unwrap_or(usize::MAX));
    Ok(turns.into_iter().map(|(_, _, id)| id).collect())
}

fn sent(c: &Connection, claim: &DeliveryClaim) -> Result<HashMap<String, Sent>, Error> {
    let mut sent: HashMap<String, Sent> = HashMap::new();
    let mut statement = c.prepare_cached(SENT)?;
    let mut rows = statement.query([claim.now.as_microsecond()])?;
    while let Some(row) = rows.next()? {
        let of_tenant = sent.entry(row.get("tenant")?).or_default();
        let count = row.get("count")?;
        of_tenant.all += count;
        of_tenant.to_host.insert(row.get("host")?, count);
    }
    Ok(sent)
}

fn next_tenant(c: &Connection, after: &str) -> Result<Option<String>, Error> {
    first(c, NEXT_TENANT, [after], |row| Ok(row.get(0)?))
}

/// The newest and the oldest in turn.
fn of_tenant(c: &Connection, tenant: &str, claim: &DeliveryClaim) -> Result<Vec<Due>, Error> {
    let mut newest = candidates(c, NEWEST, tenant, claim)?.into_iter();
    let mut oldest = candidates(c, OLDEST, tenant, claim)?.into_iter();
    let (mut seen, mut all) = (HashSet::new(), Vec::new());
    loop {
        let pair = [newest.next(), oldest.next()];
        if pair.iter().all(Option::is_none) {
            return Ok(all);
        }
        let unseen = pair
            .into_iter()
            .flatten()
            .filter(|due| seen.insert(due.id.clone()));
        all.extend(unseen);
    }
}

fn candidates(c: &Connection, sql: &str, tenant: &str, claim: &DeliveryClaim) -> Result<Vec<Due>, Error> {
    let terms = (tenant, claim.now.as_microsecond(), limits::DELIVERIES_CONSIDERED);
    all(c, sql, terms, |row| {
        Ok(Due {
            id: row.get("id")?,
            host: row.get("host")?,
            next_at: row.get("next_at")?,
        })
    })
}
