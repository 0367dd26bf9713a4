//! Reads counts of executions: stored ones, and those of executions that are not counted yet.

use std::collections::HashMap;

use rusqlite::Connection;

use super::counts::{ALL_SKILLS, CODE, ENDED, Ended, add_row, mark};
use super::row::{all, first};
use crate::execution::ExecutionCounts;
use crate::ids::Tenant;
use crate::limits;
use crate::skill::SkillName;
use crate::store::{BucketCounts, Buckets, CountPeriod, CountQuery, Error, SkillCounts};

pub(super) const COUNTS_BETWEEN: &str = "
    select start, success, failed, timeout, oom, cancelled, denied, interrupted, cpu_ms, durations from execution_counts
    where tenant = ?1 and seconds = ?2 and skill = ?3 and start >= ?4 and start < ?5";
pub(super) const TOTALS_BETWEEN: &str = "
    select start, success + failed + timeout + oom + cancelled + denied + interrupted as total from execution_counts
    where tenant = ?1 and seconds = ?2 and skill = ?3 and start >= ?4 and start < ?5";
pub(super) const NEXT_SKILL: &str = "
    select skill from execution_counts where tenant = ?1 and seconds = ?2 and skill > ?3 order by skill limit 1";

pub(super) fn read(c: &Connection, tenant: &Tenant, query: &CountQuery) -> Result<BucketCounts, Error> {
    let tenant = tenant.as_str();
    let only = query.skill.as_ref().map(SkillName::as_str);
    let live = live(c, tenant, query)?;
    let mut buckets = stored_buckets(c, tenant, query, only.unwrap_or(ALL_SKILLS))?;
    let mut live_skills: HashMap<String, Vec<Ended>> = HashMap::new();
    for ended in live {
        if let Some(index) = query.buckets.index(ended.at.div_euclid(1_000_000)) {
            buckets[index].add(ended.end);
        }
        let skill = ended.skill.clone().unwrap_or_else(|| CODE.to_owned());
        live_skills.entry(skill).or_default().push(ended);
    }
    let names = match only {
        Some(only) => vec![only.to_owned()],
        None => skill_names(c, tenant, &live_skills)?,
    };
    let mut skills = Vec::new();
    for name in names.into_iter().filter(|_| query.skills_max > 0) {
        let mut counts = stored_total(c, tenant, &query.buckets, &name)?;
        for ended in live_skills.get(&name).into_iter().flatten() {
            counts.add(ended.end);
        }
        if counts.outcomes.total() > 0 {
            skills.push((name, counts));
        }
    }
    skills.sort_by(|(name, counts), (other, others)| {
        let most_first = others.outcomes.total().cmp(&counts.outcomes.total());
        most_first.then_with(|| name.cmp(other))
    });
    skills.truncate(query.skills_max);
    let skills = skills.into_iter().map(|(name, counts)| {
        let mut by_bucket = stored_totals(c, tenant, &query.buckets, &name)?;
        for ended in live_skills.get(&name).into_iter().flatten() {
            if let Some(index) = query.buckets.index(ended.at.div_euclid(1_000_000)) {
                by_bucket[index] += 1;
            }
        }
        Ok(SkillCounts {
            skill: match name.as_str() {
                CODE => None,
                name => Some(name.parse().map_err(Error::backend)?),
            },
            counts,
            by_bucket,
        })
    });
    Ok(BucketCounts {
        skills: skills.collect::<Result<_, Error>>()?,
        buckets,
    })
}

/// Executions of the buckets that are not counted.
fn live(c: &Connection, tenant: &str, query: &CountQuery) -> Result<Vec<Ended>, Error> {
    let micros = |seconds: i64| seconds.saturating_mul(1_000_000);
    let from = mark(c, tenant)?
        .max(micros(query.buckets.start))
        .max(query.live_since.as_microsecond());
    let terms = (
        tenant,
        from,
        micros(query.buckets.end()),
        limits::LIVE_COUNTED_MAX,
    );
    let mut live = all(c, ENDED, terms, Ended::of)?;
    if let Some(only) = &query.skill {
        live.retain(|ended| ended.skill.as_deref() == Some(only.as_str()));
    }
    Ok(live)
}

fn stored_buckets(
    c: &Connection,
    tenant: &str,
    query: &CountQuery,
    skill: &str,
) -> Result<Vec<ExecutionCounts>, Error> {
    let buckets = query.buckets;
    let mut found = vec![ExecutionCounts::default(); buckets.count];
    let period = CountPeriod::dividing(buckets.seconds).seconds();
    let terms = (tenant, period, skill, buckets.start, buckets.end());
    all(c, COUNTS_BETWEEN, terms, |row| {
        match buckets.index(row.get("start")?) {
            Some(index) => add_row(row, &mut found[index]),
            None => Ok(()),
        }
    })?;
    Ok(found)
}

/// Executions of a skill in each bucket.
fn stored_totals(c: &Connection, tenant: &str, buckets: &Buckets, skill: &str) -> Result<Vec<u64>, Error> {
    let mut found = vec![0; buckets.count];
    let period = CountPeriod::dividing(buckets.seconds).seconds();
    let terms = (tenant, period, skill, buckets.start, buckets.end());
    let stored = all(c, TOTALS_BETWEEN, terms, |row| {
        Ok((row.get::<_, i64>("start")?, row.get::<_, u64>("total")?))
    })?;
    for (start, total) in stored {
        if let Some(index) = buckets.index(start) {
            found[index] += total;
        }
    }
    Ok(found)
}

/// All counts of a skill, from as few rows as possible: whole days, and hours and minutes at both ends.
fn stored_total(
    c: &Connection,
    tenant: &str,
    buckets: &Buckets,
    skill: &str,
) -> Result<ExecutionCounts, Error> {
    let mut total = ExecutionCounts::default();
    let smallest = CountPeriod::dividing(buckets.seconds);
    for span in spans(buckets.start, buckets.end(), smallest) {
        let terms = (tenant, span.period.seconds(), skill, span.start, span.end);
        all(c, COUNTS_BETWEEN, terms, |row| add_row(row, &mut total))?;
    }
    Ok(total)
}

/// A part of the time that whole periods fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    period: CountPeriod,
    start: i64,
    end: i64,
}

/// Fills the time with the longest periods, down to `smallest`, of which both ends are multiples.
fn spans(start: i64, end: i64, smallest: CountPeriod) -> Vec<Span> {
    let mut found = Vec::new();
    // What is left before and after the longer periods.
    let mut gaps = vec![(start, end)];
    for period in CountPeriod::ALL
        .into_iter()
        .rev()
        .filter(|period| *period >= smallest)
    {
        let seconds = period.seconds();
        let mut smaller_gaps = Vec::new();
        for (start, end) in gaps {
            let first = (start + seconds - 1).div_euclid(seconds) * seconds;
            let last = end.div_euclid(seconds) * seconds;
            if first >= last {
                smaller_gaps.push((start, end));
                continue;
            }
            found.push(Span {
                period,
                start: first,
                end: last,
            });
            smaller_gaps.extend([(start, first), (last, end)]);
        }
        gaps = smaller_gaps;
        gaps.retain(|(start, end)| start < end);
    }
    found
}

/// All skills with counts, or with executions that are not counted; a limited number.
fn skill_names(
    c: &Connection,
    tenant: &str,
    live: &HashMap<String, Vec<Ended>>,
) -> Result<Vec<String>, Error> {
    let day = CountPeriod::Day.seconds();
    let mut names: Vec<String> = live.keys().cloned().collect();
    if !live.contains_key(CODE) {
        names.push(CODE.to_owned());
    }
    let mut last = ALL_SKILLS.to_owned();
    while names.len() < limits::COUNTED_SKILLS_MAX {
        let next: Option<String> = first(c, NEXT_SKILL, (tenant, day, &last), |row| Ok(row.get(0)?))?;
        let Some(name) = next else { break };
        if !live.contains_key(&name) {
            names.push(name.clone());
        }
        last = name;
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covered(start: i64, end: i64, smallest: CountPeriod) -> Vec<(i64, i64, i64)> {
        let mut spans: Vec<_> = spans(start, end, smallest)
            .into_iter()
            .map(|span| (span.start, span.end, span.period.seconds()))
            .collect();
        spans.sort_unstable();
        spans
    }

    #[test]
    fn spans_cover_the_time_once_with_longest_periods() {
        let (hour, day) = (3600, 86_400);
        assert_eq!(
            covered(day, 3 * day, CountPeriod::FiveMinutes),
            [(day, 3 * day, day)]
        );
        assert_eq!(
            covered(day - 2 * hour, 2 * day + hour, CountPeriod::Hour),
            [
                (day - 2 * hour, day, hour),
                (day, 2 * day, day),
                (2 * day, 2 * day + hour, hour)
            ]
        );
        let spans = covered(hour - 600, 3 * day + hour + 300, CountPeriod::FiveMinutes);
        let mut at = hour - 600;
        for (start, end, seconds) in &spans {
            assert_eq!((*start, (end - start) % seconds), (at, 0), "{spans:?}");
            at = *end;
        }
        assert_eq!((at, spans.len()), (3 * day + hour + 300, 5));
        assert_eq!(covered(0, 0, CountPeriod::FiveMinutes), []);
    }
}
