//! Statistics of ended executions: read for callers, and counted by maintenance.

use std::time::Instant;

use jiff::{SignedDuration, Timestamp};

use crate::engine::{Maintenance, Overview, clock};
use crate::error::Error;
use crate::execution::ExecutionCounts;
use crate::ids::Tenant;
use crate::limits;
use crate::skill::SkillName;
use crate::store::{BucketCounts, Buckets, CountPeriod, CountQuery, OldCounts};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatsRequest {
    /// A day before `until` if absent.
    pub since: Option<Timestamp>,
    /// Now if absent.
    pub until: Option<Timestamp>,
    /// At most this many.
    pub buckets: usize,
    pub skill: Option<SkillName>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stats {
    pub buckets: Buckets,
    pub counts: BucketCounts,
}

const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;
/// Lengths of a bucket in seconds, each a multiple of a period whose counts are stored.
const LENGTHS: [i64; 15] = [
    300,
    600,
    900,
    1800,
    HOUR,
    2 * HOUR,
    3 * HOUR,
    6 * HOUR,
    12 * HOUR,
    DAY,
    2 * DAY,
    7 * DAY,
    30 * DAY,
    365 * DAY,
    36_500 * DAY,
];

impl Overview<'_> {
    /// Counts and durations by time of end. Both ends are moved outward to whole buckets.
    pub async fn stats(self, tenant: &Tenant, request: StatsRequest) -> Result<Stats, Error> {
        let now = clock::now();
        let until = request.until.unwrap_or(now);
        let since = request
            .since
            .unwrap_or_else(|| before(until, limits::STATS_RANGE));
        let buckets = buckets(since, until, request.buckets, now)?;
        let query = CountQuery {
            buckets,
            skill: request.skill,
            live_since: before(now, limits::LIVE_COUNTED_FOR),
            skills_max: limits::STATS_SKILLS_MAX,
        };
        let counts = self.engine.store.execution_counts(tenant, query).await?;
        Ok(Stats { buckets, counts })
    }

    /// The sum of the last 24 hours, to five minutes.
    pub(super) async fn last_day(self, tenant: &Tenant) -> Result<ExecutionCounts, Error> {
        let now = clock::now();
        let seconds = CountPeriod::FiveMinutes.seconds();
        let end = (now.as_second().div_euclid(seconds) + 1) * seconds;
        let query = CountQuery {
            buckets: Buckets {
                start: end - DAY,
                seconds,
                count: 288,
            },
            skill: None,
            live_since: before(now, limits::LIVE_COUNTED_FOR),
            skills_max: 0,
        };
        let counts = self.engine.store.execution_counts(tenant, query).await?;
        let mut total = ExecutionCounts::default();
        counts.buckets.iter().for_each(|bucket| total += bucket);
        Ok(total)
    }
}

/// The shortest buckets of which at most `count` cover the time, and whose counts are still stored.
fn buckets(since: Timestamp, until: Timestamp, count: usize, now: Timestamp) -> Result<Buckets, Error> {
    if since >= until {
        return Err(Error::invalid("since: must be before `until`"));
    }
    let end = |seconds: i64| {
        // A time within a second belongs to that second.
        let last = until.as_microsecond().saturating_sub(1).div_euclid(1_000_000);
        (last.div_euclid(seconds) + 1) * seconds
    };
    let of = |seconds: i64| {
        let start = since.as_microsecond().div_euclid(1_000_000 * seconds) * seconds;
        Buckets {
            start,
            seconds,
            count: usize::try_from((end(seconds) - start) / seconds).unwrap_or(usize::MAX),
        }
    };
    let is_stored = |buckets: &Buckets| {
        let period = CountPeriod::dividing(buckets.seconds);
        period == CountPeriod::Day || buckets.start >= before(now, stored_for(period)).as_second()
    };
    let mut fitting = LENGTHS.into_iter().map(of);
    let fitting = fitting.find(|buckets| buckets.count <= count && is_stored(buckets));
    fitting.ok_or_else(|| {
        let min = limits::STATS_BUCKETS_MIN;
        Error::invalid(format!("buckets: must be at least {min}"))
    })
}

fn stored_for(period: CountPeriod) -> std::time::Duration {
    match period {
        CountPeriod::FiveMinutes => limits::FIVE_MINUTE_COUNTS_FOR,
        CountPeriod::Hour => limits::HOUR_COUNTS_FOR,
        CountPeriod::Day => limits::DAY_COUNTS_FOR,
    }
}

pub(super) fn before(time: Timestamp, span: std::time::Duration) -> Timestamp {
    let span = SignedDuration::try_from(span).unwrap_or(SignedDuration::MAX);
    time.checked_sub(span).unwrap_or(Timestamp::MIN)
}

impl Maintenance<'_> {
    /// Counts executions that have ended, in short transactions and for a limited time: the next round goes on.
    pub async fn count_ended(self) -> Result<(), Error> {
        let give_up = Instant::now() + limits::COUNT_ROUND_MAX;
        let until = before(clock::now(), limits::COUNTED_AFTER);
        let store = &self.engine.store;
        for tenant in store.uncounted_tenants(until).await? {
            while store
                .count_ended(&tenant, until, limits::COUNTED_PER_QUERY)
                .await?
            {
                if Instant::now() >= give_up {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Deletes counts that are too old, one transaction for each period: the next round goes on.
    pub(super) async fn delete_old_counts(self) -> Result<(), Error> {
        for period in CountPeriod::ALL {
            // Buckets of a request may begin at the day before.
            let before = before(before(clock::now(), stored_for(period)), limits::STATS_RANGE);
            let old = OldCounts { period, before };
            let rows = limits::COUNTS_DELETED_PER_QUERY;
            self.engine.store.delete_counts(old, rows).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn of(since: &str, until: &str, count: usize) -> Buckets {
        buckets(at(since), at(until), count, at("2026-07-10T12:00:00Z")).unwrap()
    }

    #[test]
    fn buckets_cover_the_time_and_are_as_short_as_allowed() {
        let day = of("2026-07-09T12:00:00Z", "2026-07-10T12:00:00Z", 60);
        assert_eq!((day.seconds, day.count), (1800, 48));
        let week = of("2026-07-03T11:59:00Z", "2026-07-10T11:59:00.5Z", 200);
        assert_eq!((week.seconds, week.count), (3600, 169));
        assert_eq!(week.start, at("2026-07-03T11:00:00Z").as_second());
        assert_eq!(week.end(), at("2026-07-10T12:00:00Z").as_second());
        let minute = of("2026-07-10T11:59:00Z", "2026-07-10T12:00:00Z", 200);
        assert_eq!((minute.seconds, minute.count), (300, 1));
        let across = of("2026-07-09T23:59:00Z", "2026-07-10T00:01:00Z", 2);
        assert_eq!((across.seconds, across.count), (300, 2));
    }

    #[test]
    fn older_times_have_longer_buckets() {
        let hour = of("2026-06-30T11:00:00Z", "2026-06-30T12:00:00Z", 200);
        assert_eq!((hour.seconds, hour.count), (3600, 1));
        let day = of("2026-01-01T11:00:00Z", "2026-01-01T12:00:00Z", 200);
        assert_eq!((day.seconds, day.count), (86_400, 1));
        let all = of("-009999-01-02T01:59:59Z", "9999-12-30T22:00:00Z", 201);
        assert!(all.count <= 201 && all.start <= -377_000_000_000, "{all:?}");
    }

    #[test]
    fn rejects_a_time_that_ends_before_it_begins() {
        let time = at("2026-01-01T00:00:00Z");
        let refused = buckets(time, time, 60, time).unwrap_err();
        assert!(refused.to_string().starts_with("since: "), "{refused}");
    }
}
