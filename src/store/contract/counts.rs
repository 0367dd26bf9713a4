//! Promises about counts of ended executions.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::Place;
use super::samples::{at, execution, outcome, tenant};
use crate::execution::{CountedEnd, ExecutionCounts, NewExecution, Outcome, Status, Usage};
use crate::ids::{ExecutionId, Tenant};
use crate::store::{BucketCounts, Buckets, CountPeriod, CountQuery, OldCounts, Store};

/// Seconds between two ends, so that periods of every length have some.
const APART: i64 = 1237;
const ENDED: usize = 200;

/// An execution as it was recorded, and when it ended.
struct Ended {
    id: ExecutionId,
    skill: Option<String>,
    second: i64,
    end: CountedEnd,
}

/// Many ended executions of several skills and of code, in two days.
async fn ended(store: &Store, owner: &Tenant) -> Vec<Ended> {
    let statuses = [
        Status::Success,
        Status::Failed,
        Status::Timeout,
        Status::Cancelled,
    ];
    let skills = [None, Some("csv"), Some("csv"), Some("tex")];
    let mut all = Vec::new();
    for n in 0..ENDED {
        let micros = i64::try_from(n).unwrap() * APART * 1_000_000;
        let skill = skills[n % 4];
        let new = NewExecution {
            tenant: owner.clone(),
            skill: skill.map(|name| name.parse().unwrap()),
            ..execution(micros)
        };
        let (status, cpu_ms) = (statuses[n / 4 % 4], n as u64);
        let took = 1000 * (1 + i64::try_from(n * n).unwrap());
        let usage = Usage {
            cpu_ms,
            ..Usage::default()
        };
        let end = Outcome {
            finished_at: at(micros + took),
            usage,
            ..outcome(status)
        };
        store.insert_running(new.clone(), || ()).await.unwrap();
        store.finish(owner, new.id, end.clone()).await.unwrap();
        all.push(Ended {
            id: new.id,
            skill: skill.map(ToOwned::to_owned),
            second: end.finished_at.as_second(),
            end: CountedEnd {
                status,
                micros: took,
                cpu_ms,
            },
        });
    }
    store.insert_running(execution(0), || ()).await.unwrap();
    all
}

fn query(seconds: i64, first: i64, count: usize) -> CountQuery {
    CountQuery {
        buckets: Buckets {
            start: at(0).as_second() + first * seconds,
            seconds,
            count,
        },
        skill: None,
        live_since: Timestamp::MIN,
        skills_max: 10,
    }
}

/// From one bucket to all, by each length.
fn queries() -> Vec<CountQuery> {
    let mut all = vec![query(86_400, -1, 5), query(86_400, 1, 1), query(7200, 3, 20)];
    all.extend([
        query(3600, 0, 72),
        query(300, 0, 900),
        query(1800, 5, 7),
        query(300, 11, 100),
    ]);
    let of_skill = all.iter().map(|query| CountQuery {
        skill: "csv".parse().ok(),
        ..query.clone()
    });
    let of_skill: Vec<_> = of_skill.collect();
    all.extend(of_skill);
    all
}

fn expected(all: &[Ended], query: &CountQuery) -> BucketCounts {
    let mut counts = BucketCounts {
        buckets: vec![ExecutionCounts::default(); query.buckets.count],
        ..BucketCounts::default()
    };
    let mut skills = BTreeMap::<Option<String>, (ExecutionCounts, Vec<u64>)>::new();
    let only = query.skill.as_ref().map(ToString::to_string);
    for ended in all.iter().filter(|ended| only.is_none() || ended.skill == only) {
        let Some(index) = query.buckets.index(ended.second) else {
            continue;
        };
        counts.buckets[index].add(ended.end);
        let none = || (ExecutionCounts::default(), vec![0; query.buckets.count]);
        let (total, by_bucket) = skills.entry(ended.skill.clone()).or_insert_with(none);
        total.add(ended.end);
        by_bucket[index] += 1;
    }
    let skills = skills
        .into_iter()
        .map(|(skill, (counts, by_bucket))| crate::store::SkillCounts {
            skill: skill.map(|name| name.parse().unwrap()),
            counts,
            by_bucket,
        });
    counts.skills = skills.collect();
    counts
        .skills
        .sort_by_key(|skill| std::cmp::Reverse(skill.counts.outcomes.total()));
    counts
}

async fn assert_counted(store: &Store, owner: &Tenant, all: &[Ended]) {
    for query in queries() {
        let found = store.execution_counts(owner, query.clone()).await.unwrap();
        assert_eq!(found, expected(all, &query), "{query:?}");
    }
}

async fn count_all(store: &Store, until: Timestamp) {
    for owner in store.uncounted_tenants(until).await.unwrap() {
        while store.count_ended(&owner, until, 7).await.unwrap() {}
    }
}

/// Before they are counted, partly counted, and counted.
pub(in crate::store) async fn each_ended_execution_is_counted_once(place: &impl Place) {
    let store = place.open().await;
    let owner = Tenant::default_tenant();
    let all = ended(&store, &owner).await;
    assert_counted(&store, &owner, &all).await;
    count_all(&store, at(90_000_000_000)).await;
    assert_counted(&store, &owner, &all).await;
    assert!(
        store
            .uncounted_tenants(at(90_000_000_000))
            .await
            .unwrap()
            .is_empty()
    );
    count_all(&store, Timestamp::MAX).await;
    assert_counted(&store, &owner, &all).await;
    let counted = CountQuery {
        live_since: Timestamp::MAX,
        ..query(86_400, 0, 4)
    };
    let stored = store.execution_counts(&owner, counted.clone()).await.unwrap();
    assert_eq!(
        stored,
        expected(&all, &counted),
        "nothing is read from executions"
    );
}

pub(in crate::store) async fn a_deleted_execution_stays_counted_once(place: &impl Place) {
    let store = place.open().await;
    let owner = Tenant::default_tenant();
    let all = ended(&store, &owner).await;
    for (n, ended) in all.iter().enumerate() {
        if n == ENDED / 2 {
            count_all(&store, at(90_000_000_000)).await;
        }
        if n % 3 > 0 {
            store.delete_execution(&owner, ended.id).await.unwrap();
        }
    }
    assert_counted(&store, &owner, &all).await;
    count_all(&store, Timestamp::MAX).await;
    assert_counted(&store, &owner, &all).await;
    for ended in all.iter().step_by(3) {
        store.delete_execution(&owner, ended.id).await.unwrap();
    }
    assert_counted(&store, &owner, &all).await;
}

/// Executions that ended in the same microsecond are counted together, however many one call counts.
pub(in crate::store) async fn executions_of_one_microsecond_are_counted_once(place: &impl Place) {
    let store = place.open().await;
    let owner = Tenant::default_tenant();
    for _ in 0..20 {
        let new = execution(0);
        store.insert_running(new.clone(), || ()).await.unwrap();
        store
            .finish(&owner, new.id, outcome(Status::Success))
            .await
            .unwrap();
    }
    count_all(&store, Timestamp::MAX).await;
    let found = store.execution_counts(&owner, query(300, 0, 1)).await.unwrap();
    assert_eq!(found.buckets[0].outcomes.success, 20);
}

pub(in crate::store) async fn old_counts_are_deleted(place: &impl Place) {
    let store = place.open().await;
    let owner = Tenant::default_tenant();
    let all = ended(&store, &owner).await;
    count_all(&store, Timestamp::MAX).await;
    for ended in &all {
        store.delete_execution(&owner, ended.id).await.unwrap();
    }
    let old = OldCounts {
        period: CountPeriod::FiveMinutes,
        before: at(86_400_000_000),
    };
    let mut deleted = 0;
    loop {
        match store.delete_counts(old, 10).await.unwrap() {
            0 => break,
            count => deleted += count,
        }
    }
    assert!(deleted > 20, "{deleted}");
    let first_day = query(300, 0, 288);
    let found = store.execution_counts(&owner, first_day).await.unwrap();
    assert!(found.buckets.iter().all(|bucket| bucket.outcomes.total() == 0));
    for kept in [query(300, 288, 288), query(3600, 0, 24)] {
        let found = store.execution_counts(&owner, kept.clone()).await.unwrap();
        assert_eq!(found, expected(&all, &kept));
    }
}

/// T-02.
pub(in crate::store) async fn a_tenant_never_sees_the_counts_of_another(place: &impl Place) {
    let store = place.open().await;
    let (a, b) = (tenant("a"), tenant("b"));
    let of_a = ended(&store, &a).await;
    for until in [at(0), at(90_000_000_000), Timestamp::MAX] {
        count_all(&store, until).await;
        assert_counted(&store, &a, &of_a).await;
        assert_counted(&store, &b, &[]).await;
    }
}
