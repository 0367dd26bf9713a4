//! Pages of executions. A list of several statuses merges one index range of each, so that it stops after its rows.

use jiff::Timestamp;
use rusqlite::Connection;
use rusqlite::types::Value;

use super::executions::{columns, record};
use super::row::{all, before};
use crate::execution::{Execution, Status};
use crate::ids::{ExecutionId, Tenant};
use crate::store::cursor::Moment;
use crate::store::{Error, ExecutionFilter, ExecutionSource, Statuses};

// Each names its index: otherwise the planner reads all rows of a tenant to find those of one status.
macro_rules! range {
    ($index:literal, $filter:literal, $status:literal) => {
        concat!(
            "select ",
            columns!(),
            " from executions indexed by ",
            $index,
            " where tenant = :tenant",
            $filter,
            $status,
            " and (created_at, id) < (:at, :id) and created_at >= :since"
        )
    };
}

macro_rules! page {
    ($first:expr $(, $more:expr)*) => {
        concat!($first, $(" union all ", $more,)* " order by created_at desc, id desc limit :rows")
    };
}

/// One range for each status; a status that is null has no rows.
macro_rules! page_of_statuses {
    ($index:literal, $filter:literal) => {
        page!(
            range!($index, $filter, " and status = :status0"),
            range!($index, $filter, " and status = :status1"),
            range!($index, $filter, " and status = :status2"),
            range!($index, $filter, " and status = :status3"),
            range!($index, $filter, " and status = :status4"),
            range!($index, $filter, " and status = :status5"),
            range!($index, $filter, " and status = :status6"),
            range!($index, $filter, " and status = :status7"),
            range!($index, $filter, " and status = :status8")
        )
    };
}

pub(super) const PAGE: &str = page!(range!("executions_by_time", "", ""));
pub(super) const PAGE_OF_STATUSES: &str = page_of_statuses!("executions_by_status", "");
/// A skill that is null stands for code.
pub(super) const PAGE_OF_SKILL: &str =
    page_of_statuses!("executions_by_skill_and_status", " and skill is :skill");
pub(super) const PAGE_OF_KEY: &str = page_of_statuses!("executions_by_key", " and key_id = :key");
/// Reads past the other executions of the key.
pub(super) const PAGE_OF_KEY_AND_SKILL: &str =
    page_of_statuses!("executions_by_key", " and key_id = :key and skill is :skill");

const STATUSES: [&str; Status::ALL.len()] = [
    ":status0", ":status1", ":status2", ":status3", ":status4", ":status5", ":status6", ":status7",
    ":status8",
];

/// One page of a list, as its statement and the terms.
pub(super) struct Page {
    sql: &'static str,
    terms: Vec<(&'static str, Value)>,
}

impl Page {
    pub(super) fn of(
        tenant: &Tenant,
        filter: &ExecutionFilter,
        after: Option<Moment<ExecutionId>>,
        rows: u32,
    ) -> Self {
        // Before every id of its microsecond, which excludes all of them.
        let until = (
            filter.until.map_or(i64::MAX, Timestamp::as_microsecond),
            String::new(),
        );
        let (at, id) = until.min(before(after));
        let since = filter.since.map_or(i64::MIN, Timestamp::as_microsecond);
        let skill = filter.source.as_ref().map(|source| match source {
            ExecutionSource::Code => Value::Null,
            ExecutionSource::Skill(name) => Value::from(name.to_string()),
        });
        let key = filter.key.map(|key| Value::from(key.to_string()));
        let sql = match (&key, &skill) {
            (None, None) if filter.statuses.is_empty() => PAGE,
            (None, None) => PAGE_OF_STATUSES,
            (None, Some(_)) => PAGE_OF_SKILL,
            (Some(_), None) => PAGE_OF_KEY,
            (Some(_), Some(_)) => PAGE_OF_KEY_AND_SKILL,
        };
        let mut terms = vec![
            (":tenant", Value::from(tenant.to_string())),
            (":at", at.into()),
            (":id", id.into()),
            (":since", since.into()),
            (":rows", rows.into()),
        ];
        terms.extend(skill.map(|skill| (":skill", skill)));
        terms.extend(key.map(|key| (":key", key)));
        if sql != PAGE {
            terms.extend(statuses(&filter.statuses));
        }
        Self { sql, terms }
    }

    pub(super) fn read(&self, c: &Connection) -> Result<Vec<Execution>, Error> {
        all(c, self.sql, self.terms.as_slice(), record)
    }
}

/// A term for each range of [`page_of_statuses`].
fn statuses(wanted: &Statuses) -> impl Iterator<Item = (&'static str, Value)> {
    let wanted: Vec<_> = match wanted.is_empty() {
        true => Status::ALL.to_vec(),
        false => wanted.iter().collect(),
    };
    let names = wanted.into_iter().map(|status| Value::from(status.to_string()));
    let rest = std::iter::repeat(Value::Null);
    STATUSES.into_iter().zip(names.chain(rest))
}
