//! Statistics of ended executions.

use jiff::Timestamp;
use serde::Serialize;

use super::{RUN, require};
use crate::auth::Caller;
use crate::engine::{self, Engine, StatsRequest};
use crate::error::Error;
use crate::execution::{Durations, ExecutionCounts, OutcomeCounts};
use crate::limits;
use crate::skill::SkillName;
use crate::store::SkillCounts;

/// Ended executions, by time of end.
#[derive(Clone, Debug, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = Stats)]
pub struct StatsInfo {
    /// Start of the first bucket: at `since` or a little earlier.
    #[schema(value_type = String, format = DateTime)]
    pub since: Timestamp,
    /// End of the last bucket: at `until` or a little later.
    #[schema(value_type = String, format = DateTime)]
    pub until: Timestamp,
    /// Length of a bucket.
    pub bucket_seconds: i64,
    /// Of all buckets.
    pub totals: OutcomeCounts,
    pub duration_ms: DurationInfo,
    /// From the oldest to the newest, without gaps.
    pub buckets: Vec<BucketInfo>,
    /// The 50 skills with the most executions, and code; most executions first.
    pub skills: Vec<SkillStats>,
}

/// Milliseconds from acceptance to end, within 3 %; `null` without executions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = DurationPercentiles)]
pub struct DurationInfo {
    /// Half of the executions took at most this long.
    #[schema(required)]
    pub p50: Option<f64>,
    /// 95 % of the executions.
    #[schema(required)]
    pub p95: Option<f64>,
    /// 99 % of the executions.
    #[schema(required)]
    pub p99: Option<f64>,
}

/// Executions that ended within one bucket.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = StatsBucket)]
pub struct BucketInfo {
    /// Start of the bucket.
    #[schema(value_type = String, format = DateTime)]
    pub start: Timestamp,
    pub counts: OutcomeCounts,
    /// As in `duration_ms`.
    #[schema(required)]
    pub p50_ms: Option<f64>,
    /// As in `duration_ms`.
    #[schema(required)]
    pub p95_ms: Option<f64>,
}

/// Executions of one skill.
#[derive(Clone, Debug, PartialEq, Serialize, utoipa::ToSchema)]
pub struct SkillStats {
    /// Skill; `null` for code.
    #[schema(value_type = Option<String>, format = "skill-name", required)]
    pub skill: Option<SkillName>,
    /// Executions.
    pub count: u64,
    /// Executions that were neither successful nor cancelled.
    pub failed: u64,
    /// As in `duration_ms`.
    #[schema(required)]
    pub p50_ms: Option<f64>,
    /// As in `duration_ms`.
    #[schema(required)]
    pub p95_ms: Option<f64>,
    /// Executions in each of `buckets`.
    pub spark: Vec<u64>,
}

/// Counts and durations of the caller's executions.
pub async fn show(engine: &Engine, caller: &Caller, request: StatsRequest) -> Result<StatsInfo, Error> {
    require(caller, RUN)?;
    let stats = engine.overview().stats(caller.tenant(), request).await?;
    StatsInfo::of(&stats)
}

/// Parses `buckets`.
pub fn bucket_count(text: Option<&str>) -> Result<usize, Error> {
    let Some(text) = text else {
        return Ok(limits::STATS_BUCKETS);
    };
    let allowed = limits::STATS_BUCKETS_MIN..=limits::STATS_BUCKETS_MAX;
    let count = text.parse().ok().filter(|count| allowed.contains(count));
    count.ok_or_else(|| {
        let (min, max) = (allowed.start(), allowed.end());
        Error::invalid(format!("buckets: must be a whole number from {min} to {max}"))
    })
}

impl StatsInfo {
    fn of(stats: &engine::Stats) -> Result<Self, Error> {
        let (buckets, counts) = (&stats.buckets, &stats.counts);
        let mut all = ExecutionCounts::default();
        counts.buckets.iter().for_each(|bucket| all += bucket);
        let starts = (0..).map(|index| buckets.start + index * buckets.seconds);
        let infos = starts.zip(&counts.buckets).map(|(start, bucket)| {
            Ok(BucketInfo {
                start: time(start)?,
                counts: bucket.outcomes,
                p50_ms: bucket.durations.percentile_ms(0.5),
                p95_ms: bucket.durations.percentile_ms(0.95),
            })
        });
        Ok(Self {
            since: time(buckets.start)?,
            until: time(buckets.end())?,
            bucket_seconds: buckets.seconds,
            totals: all.outcomes,
            duration_ms: DurationInfo::from(&all.durations),
            buckets: infos.collect::<Result<_, Error>>()?,
            skills: counts.skills.iter().map(SkillStats::from).collect(),
        })
    }
}

/// A bucket may begin or end beyond the last representable time.
fn time(second: i64) -> Result<Timestamp, Error> {
    let (min, max) = (Timestamp::MIN.as_second(), Timestamp::MAX.as_second());
    Timestamp::from_second(second.clamp(min, max)).map_err(Error::internal)
}

impl From<&Durations> for DurationInfo {
    fn from(durations: &Durations) -> Self {
        Self {
            p50: durations.percentile_ms(0.5),
            p95: durations.percentile_ms(0.95),
            p99: durations.percentile_ms(0.99),
        }
    }
}

impl From<&SkillCounts> for SkillStats {
    fn from(of: &SkillCounts) -> Self {
        let counts = &of.counts;
        Self {
            skill: of.skill.clone(),
            count: counts.outcomes.total(),
            failed: counts.outcomes.failures(),
            p50_ms: counts.durations.percentile_ms(0.5),
            p95_ms: counts.durations.percentile_ms(0.95),
            spark: of.by_bucket.clone(),
        }
    }
}
