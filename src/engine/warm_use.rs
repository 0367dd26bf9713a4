//! How many executions of the last hour used a warm sandbox, by tenant.

use std::collections::{HashMap, VecDeque};
use std::ops::AddAssign;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::engine::Tenants;
use crate::ids::Tenant;

/// Counts in one-minute parts, so that the oldest part can be dropped.
#[derive(Debug)]
pub(super) struct WarmUse {
    began: Instant,
    minutes: Mutex<VecDeque<Minute>>,
}

#[derive(Debug)]
struct Minute {
    /// Minutes since the start.
    number: u64,
    by_tenant: HashMap<Tenant, WarmCounts>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WarmCounts {
    pub hits: u64,
    pub misses: u64,
}

const MINUTES: u64 = 60;

impl AddAssign for WarmCounts {
    fn add_assign(&mut self, more: Self) {
        self.hits += more.hits;
        self.misses += more.misses;
    }
}

impl WarmUse {
    pub(super) fn new(began: Instant) -> Self {
        let minutes = Mutex::default();
        Self { began, minutes }
    }

    pub(super) fn add(&self, tenant: &Tenant, more: WarmCounts, now: Instant) {
        self.with(now, |minutes, number| {
            if minutes.back().is_none_or(|last| last.number < number) {
                let by_tenant = HashMap::new();
                minutes.push_back(Minute { number, by_tenant });
            }
            if let Some(last) = minutes.back_mut() {
                *last.by_tenant.entry(tenant.clone()).or_default() += more;
            }
        });
    }

    pub(super) fn last_hour(&self, tenants: Tenants<'_>, now: Instant) -> WarmCounts {
        self.with(now, |minutes, _| {
            let mut total = WarmCounts::default();
            let counts = minutes.iter().flat_map(|minute| &minute.by_tenant);
            for (_, counts) in counts.filter(|(tenant, _)| tenants.include(tenant)) {
                total += *counts;
            }
            total
        })
    }

    fn with<T>(&self, now: Instant, act: impl FnOnce(&mut VecDeque<Minute>, u64) -> T) -> T {
        let number = now.saturating_duration_since(self.began).as_secs() / 60;
        let mut minutes = self.minutes.lock().unwrap_or_else(PoisonError::into_inner);
        while minutes
            .front()
            .is_some_and(|first| first.number + MINUTES <= number)
        {
            minutes.pop_front();
        }
        act(&mut minutes, number)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn counts_the_last_hour_of_each_tenant() {
        let began = Instant::now();
        let warm = WarmUse::new(began);
        let (a, b): (Tenant, Tenant) = ("a".parse().unwrap(), "b".parse().unwrap());
        let minute = |n: u64| began + Duration::from_secs(n * 60 + 1);
        let (hit, miss) = (
            WarmCounts { hits: 1, misses: 0 },
            WarmCounts { hits: 0, misses: 1 },
        );
        warm.add(&a, hit, minute(0));
        warm.add(&a, miss, minute(0));
        warm.add(&b, hit, minute(30));
        let both = WarmCounts { hits: 1, misses: 1 };
        assert_eq!(warm.last_hour(Tenants::One(&a), minute(59)), both);
        assert_eq!(
            warm.last_hour(Tenants::All, minute(59)),
            WarmCounts { hits: 2, misses: 1 }
        );
        assert_eq!(
            warm.last_hour(Tenants::One(&a), minute(60)),
            WarmCounts::default()
        );
        assert_eq!(warm.last_hour(Tenants::One(&b), minute(89)), hit);
        assert_eq!(warm.last_hour(Tenants::All, minute(90)), WarmCounts::default());
    }
}
