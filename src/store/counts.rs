//! Ended executions, counted by time of end for statistics. An execution stays counted when it is deleted.

use jiff::Timestamp;

use crate::execution::ExecutionCounts;
use crate::ids::Tenant;
use crate::skill::SkillName;
use crate::store::{Error, acts};

/// Length of the periods for which counts are stored. Each is a multiple of the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CountPeriod {
    FiveMinutes,
    Hour,
    Day,
}

impl CountPeriod {
    pub const ALL: [Self; 3] = [Self::FiveMinutes, Self::Hour, Self::Day];

    #[must_use]
    pub const fn seconds(self) -> i64 {
        match self {
            Self::FiveMinutes => 300,
            Self::Hour => 3600,
            Self::Day => 86_400,
        }
    }

    /// The longest period of which `seconds` are a multiple.
    #[must_use]
    pub fn dividing(seconds: i64) -> Self {
        let longest_first = Self::ALL.into_iter().rev();
        let mut fitting = longest_first.filter(|period| seconds % period.seconds() == 0);
        fitting.next().unwrap_or(Self::FiveMinutes)
    }
}

/// Consecutive buckets of equal length. Times are seconds since 1970, and multiples of `seconds`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buckets {
    pub start: i64,
    pub seconds: i64,
    pub count: usize,
}

impl Buckets {
    #[must_use]
    pub fn end(&self) -> i64 {
        self.start + self.seconds * i64::try_from(self.count).unwrap_or(0)
    }

    /// The bucket of a time; `None` outside of all.
    #[must_use]
    pub fn index(&self, second: i64) -> Option<usize> {
        let index = usize::try_from((second - self.start).div_euclid(self.seconds)).ok()?;
        (index < self.count).then_some(index)
    }
}

/// Which counts are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountQuery {
    pub buckets: Buckets,
    /// Only executions of this skill.
    pub skill: Option<SkillName>,
    /// Executions that are not counted yet are read if they ended since then.
    pub live_since: Timestamp,
    /// At most this many skills, those with the most executions.
    pub skills_max: usize,
}

/// Counts of some buckets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BucketCounts {
    /// One for each bucket.
    pub buckets: Vec<ExecutionCounts>,
    /// Most executions first.
    pub skills: Vec<SkillCounts>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillCounts {
    /// `None` for code.
    pub skill: Option<SkillName>,
    /// Of all buckets.
    pub counts: ExecutionCounts,
    /// Executions in each bucket.
    pub by_bucket: Vec<u64>,
}

/// Old periods to delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OldCounts {
    pub period: CountPeriod,
    pub before: Timestamp,
}

acts! {
    trait Counts {
        /// Tenants with executions that ended before this time and are not counted.
        async fn uncounted_tenants(&self, until: Timestamp) -> Result<Vec<Tenant>, Error>;
        /// Counts at most about `rows` executions of a tenant that ended before `until`; whether there are more.
        async fn count_ended(&self, tenant: &Tenant, until: Timestamp, rows: u32) -> Result<bool, Error>;
        async fn execution_counts(&self, tenant: &Tenant, query: CountQuery) -> Result<BucketCounts, Error>;
        /// Deletes at most `rows` counts of old periods and returns their number.
        async fn delete_counts(&self, old: OldCounts, rows: u32) -> Result<u32, Error>;
    }
}
