//! Ended executions, counted by time of end. A count only grows, so an execution may be counted in any order, but only once: those
//! that ended before the tenant's mark are counted, and others when they are deleted.

use std::collections::HashMap;

use jiff::Timestamp;
use rusqlite::{Connection, Row, named_params};

use super::row::{all, execute, first};
use super::{Sqlite, retention};
use crate::execution::{CountedEnd, ExecutionCounts, OutcomeCounts, Status};
use crate::ids::Tenant;
use crate::store::counts::Counts;
use crate::store::{BucketCounts, CountPeriod, CountQuery, Error, OldCounts};

const MARK: &str = "select until from execution_counts_until where tenant = ?1";
const SET_MARK: &str = "insert or replace into execution_counts_until (tenant, until) values (?1, ?2)";
pub(super) const HAS_UNCOUNTED: &str = "
    select 1 from executions indexed by executions_by_end
    where tenant = ?1 and finished_at >= ?2 and finished_at < ?3 limit 1";
pub(super) const ENDED: &str = "
    select finished_at, status, skill, created_at, cpu_ms from executions indexed by executions_by_end
    where tenant = ?1 and finished_at >= ?2 and finished_at < ?3 order by finished_at limit ?4";
const COUNTS: &str = "
    select success, failed, timeout, oom, cancelled, denied, interrupted, cpu_ms, durations from execution_counts
    where tenant = ?1 and seconds = ?2 and skill = ?3 and start = ?4";
const PUT_COUNTS: &str = "
    insert or replace into execution_counts (
        tenant, seconds, skill, start, success, failed, timeout, oom, cancelled, denied, interrupted, cpu_ms, durations
    ) values (
        :tenant, :seconds, :skill, :start, :success, :failed, :timeout, :oom, :cancelled, :denied, :interrupted, :cpu_ms,
        :durations
    )";
pub(super) const OLD: &str =
    "select tenant, seconds, skill, start from execution_counts where seconds = ?1 and start < ?2 limit ?3";
const DELETE: &str =
    "delete from execution_counts where tenant = ?1 and seconds = ?2 and skill = ?3 and start = ?4";

/// Stands for all skills, and for code. Neither is a name of a skill.
pub(super) const ALL_SKILLS: &str = "*";
pub(super) const CODE: &str = "";

impl Counts for Sqlite {
    async fn uncounted_tenants(&self, until: Timestamp) -> Result<Vec<Tenant>, Error> {
        self.read(move |c| uncounted_tenants(c, until)).await
    }

    async fn count_ended(&self, tenant: &Tenant, until: Timestamp, rows: u32) -> Result<bool, Error> {
        let tenant = tenant.clone();
        self.write(move |c| count_ended(c, &tenant, until, rows)).await
    }

    async fn execution_counts(&self, tenant: &Tenant, query: CountQuery) -> Result<BucketCounts, Error> {
        let tenant = tenant.clone();
        self.read(move |c| super::count_queries::read(c, &tenant, &query))
            .await
    }

    async fn delete_counts(&self, old: OldCounts, rows: u32) -> Result<u32, Error> {
        let terms = (old.period.seconds(), old.before.as_second(), rows);
        let old = self.read(move |c| {
            all(c, OLD, terms, |row| {
                let (tenant, skill): (String, String) = (row.get("tenant")?, row.get("skill")?);
                Ok((
                    tenant,
                    row.get::<_, i64>("seconds")?,
                    skill,
                    row.get::<_, i64>("start")?,
                ))
            })
        });
        let old = old.await?;
        if old.is_empty() {
            return Ok(0);
        }
        self.write(move |c| {
            let mut deleted = 0;
            for key in old {
                deleted += execute(c, DELETE, key)?;
            }
            Ok(u32::try_from(deleted).unwrap_or(u32::MAX))
        })
        .await
    }
}

/// An execution that has ended, as the index has it.
pub(super) struct Ended {
    /// Microseconds.
    pub(super) at: i64,
    pub(super) skill: Option<String>,
    pub(super) end: CountedEnd,
}

impl Ended {
    pub(super) fn of(row: &Row<'_>) -> Result<Self, Error> {
        let at: i64 = row.get("finished_at")?;
        let status = row.get_ref("status")?.as_str().map_err(Error::backend)?;
        let status =
            Status::from_name(status).ok_or_else(|| Error::backend("column status: unknown name"))?;
        let created_at: i64 = row.get("created_at")?;
        Ok(Self {
            at,
            skill: row.get("skill")?,
            end: CountedEnd {
                status,
                micros: at.saturating_sub(created_at),
                cpu_ms: row.get::<_, Option<u64>>("cpu_ms")?.unwrap_or(0),
            },
        })
    }
}

/// Counts to be added to the stored ones, by period, skill and start.
#[derive(Default)]
struct Added(HashMap<(i64, String, i64), ExecutionCounts>);

impl Added {
    fn add(&mut self, ended: Ended) {
        let skill = ended.skill.unwrap_or_else(|| CODE.to_owned());
        let second = ended.at.div_euclid(1_000_000);
        for period in CountPeriod::ALL {
            let seconds = period.seconds();
            let start = second.div_euclid(seconds) * seconds;
            for name in [skill.as_str(), ALL_SKILLS] {
                let counts = self.0.entry((seconds, name.to_owned(), start));
                counts.or_default().add(ended.end);
            }
        }
    }

    fn save(self, c: &Connection, tenant: &str) -> Result<(), Error> {
        for ((seconds, skill, start), mut counts) in self.0 {
            let terms = (tenant, seconds, &skill, start);
            first(c, COUNTS, terms, |row| add_row(row, &mut counts))?;
            let outcomes = &counts.outcomes;
            c.prepare_cached(PUT_COUNTS)?.execute(named_params! {
                ":tenant": tenant,
                ":seconds": seconds,
                ":skill": skill,
                ":start": start,
                ":success": outcomes.success,
                ":failed": outcomes.failed,
                ":timeout": outcomes.timeout,
                ":oom": outcomes.oom,
                ":cancelled": outcomes.cancelled,
                ":denied": outcomes.denied,
                ":interrupted": outcomes.interrupted,
                ":cpu_ms": counts.cpu_ms,
                ":durations": counts.durations.to_bytes(),
            })?;
        }
        Ok(())
    }
}

/// Adds a row to counts.
pub(super) fn add_row(row: &Row<'_>, counts: &mut ExecutionCounts) -> Result<(), Error> {
    counts.outcomes += OutcomeCounts {
        success: row.get("success")?,
        failed: row.get("failed")?,
        timeout: row.get("timeout")?,
        oom: row.get("oom")?,
        cancelled: row.get("cancelled")?,
        denied: row.get("denied")?,
        interrupted: row.get("interrupted")?,
    };
    counts.cpu_ms += row.get::<_, u64>("cpu_ms")?;
    let durations = row.get_ref("durations")?.as_blob().map_err(Error::backend)?;
    counts.durations.add_bytes(durations).map_err(Error::backend)
}

/// Microseconds; executions that ended before are counted.
pub(super) fn mark(c: &Connection, tenant: &str) -> Result<i64, Error> {
    Ok(first(c, MARK, [tenant], |row| Ok(row.get(0)?))?.unwrap_or(i64::MIN))
}

fn uncounted_tenants(c: &Connection, until: Timestamp) -> Result<Vec<Tenant>, Error> {
    let mut found = Vec::new();
    let mut next = retention::next_tenant(c, "")?;
    while let Some(tenant) = next {
        let terms = (&tenant, mark(c, &tenant)?, until.as_microsecond());
        if super::row::exists(c, HAS_UNCOUNTED, terms)? {
            found.push(tenant.parse().map_err(Error::backend)?);
        }
        next = retention::next_tenant(c, &tenant)?;
    }
    Ok(found)
}

fn count_ended(c: &Connection, tenant: &Tenant, until: Timestamp, rows: u32) -> Result<bool, Error> {
    let tenant = tenant.as_str();
    let mark = mark(c, tenant)?;
    let mut ended = all(c, ENDED, (tenant, mark, until.as_microsecond(), rows), Ended::of)?;
    let more = ended.len() >= rows as usize;
    let Some(last) = ended.last().map(|last| last.at) else {
        return Ok(false);
    };
    if more {
        // Others of the last microsecond may follow.
        ended.retain(|ended| ended.at < last);
        ended.extend(all(c, ENDED, (tenant, last, last + 1, u32::MAX), Ended::of)?);
    }
    let mut added = Added::default();
    ended.into_iter().for_each(|ended| added.add(ended));
    added.save(c, tenant)?;
    execute(c, SET_MARK, (tenant, last + 1))?;
    Ok(more)
}

/// Counts an execution that is deleted, unless it is counted.
pub(super) fn count_deleted(c: &Connection, tenant: &Tenant, ended: Ended) -> Result<(), Error> {
    if ended.at < mark(c, tenant.as_str())? {
        return Ok(());
    }
    let mut added = Added::default();
    added.add(ended);
    added.save(c, tenant.as_str())
}
