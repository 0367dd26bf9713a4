//! Which webhooks are sent next: each tenant in its turn, and of one tenant no more to one host than it may.
//!
//! However much is due, a look costs a bounded number of rows for each tenant. They are its oldest and its newest: behind a
//! long list for a receiver that never answers, what has just ended for another is still seen.

use std::collections::{HashMap, HashSet};

use rusqlite::{Connection, OptionalExtension as _};

use super::deliveries::{NEWEST, NEXT_TENANT, OLDEST, SENT};
use crate::limits;
use crate::store::Error;
use crate::store::deliveries::Wanted;

/// One that could be sent.
struct Due {
    id: String,
    host: String,
    next_at: i64,
}

/// How many a tenant sends: in all, and to each host.
#[derive(Default)]
struct Sent {
    all: u32,
    to_host: HashMap<String, u32>,
}

/// What could be claimed now, in the order in which that is fair.
pub(super) fn due(c: &Connection, wanted: &Wanted) -> Result<Vec<String>, Error> {
    let mut sent = sent(c, wanted)?;
    let mut turns = Vec::new();
    let mut next = next_tenant(c, "")?;
    while let Some(tenant) = next {
        let mut sends = sent.remove(&tenant).unwrap_or_default();
        for due in of_tenant(c, &tenant, wanted)? {
            let to_host = sends.to_host.entry(due.host).or_default();
            if sends.all < wanted.of_tenant && *to_host < wanted.to_host {
                sends.all += 1;
                *to_host += 1;
                turns.push((sends.all, due.next_at, due.id));
            }
        }
        next = next_tenant(c, &tenant)?;
    }
    turns.sort();
    turns.truncate(usize::try_from(wanted.rows).unwrap_or(usize::MAX));
    Ok(turns.into_iter().map(|(_, _, id)| id).collect())
}

fn sent(c: &Connection, wanted: &Wanted) -> Result<HashMap<String, Sent>, Error> {
    let mut sent: HashMap<String, Sent> = HashMap::new();
    let mut statement = c.prepare_cached(SENT)?;
    let mut rows = statement.query([wanted.now.as_microsecond()])?;
    while let Some(row) = rows.next()? {
        let of_tenant = sent.entry(row.get("tenant")?).or_default();
        let count = row.get("count")?;
        of_tenant.all += count;
        of_tenant.to_host.insert(row.get("host")?, count);
    }
    Ok(sent)
}

fn next_tenant(c: &Connection, after: &str) -> Result<Option<String>, Error> {
    let mut statement = c.prepare_cached(NEXT_TENANT)?;
    Ok(statement.query_row([after], |row| row.get(0)).optional()?)
}

/// Its newest and its oldest in turn.
fn of_tenant(c: &Connection, tenant: &str, wanted: &Wanted) -> Result<Vec<Due>, Error> {
    let mut newest = looked_at(c, NEWEST, (tenant, wanted))?.into_iter();
    let mut oldest = looked_at(c, OLDEST, (tenant, wanted))?.into_iter();
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

fn looked_at(c: &Connection, sql: &str, (tenant, wanted): (&str, &Wanted)) -> Result<Vec<Due>, Error> {
    let mut statement = c.prepare_cached(sql)?;
    let terms = (tenant, wanted.now.as_microsecond(), limits::DELIVERIES_LOOKED_AT);
    let found = statement.query_map(terms, |row| {
        Ok(Due {
            id: row.get("id")?,
            host: row.get("host")?,
            next_at: row.get("next_at")?,
        })
    })?;
    Ok(found.collect::<Result<_, _>>()?)
}
