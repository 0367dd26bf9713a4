//! The latest changes of each tenant, numbered, in limited memory. A reader that falls behind is told to load everything again.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::execution::Summary;
use crate::ids::{ExecutionId, Tenant};
use crate::limits;
use crate::skill::{SkillName, Version};

/// What a client that shows lists must know.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// The execution was accepted, was started or has ended; as a list shows it.
    Execution(Arc<Summary>),
    ExecutionDeleted(ExecutionId),
    Skill(SkillChange),
    /// Changes are missing: load everything again.
    Reset,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillChange {
    pub name: SkillName,
    pub version: Version,
    pub action: SkillAction,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkillAction {
    Published,
    Deleted,
}

#[derive(Debug)]
pub(super) struct ChangeLog {
    state: Mutex<LogState>,
    /// The number of the last change, which wakes readers.
    last: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct LogState {
    last: u64,
    tenants: HashMap<Tenant, Recent>,
    /// The last number when a tenant's changes were dropped as a whole.
    dropped: u64,
}

/// The changes of one tenant.
#[derive(Debug, Default)]
struct Recent {
    changes: VecDeque<(u64, Change)>,
    /// Up to this number changes may be missing.
    missing: u64,
}

/// A change, and the position after it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Numbered {
    pub(super) number: u64,
    pub(super) change: Change,
}

impl Default for ChangeLog {
    fn default() -> Self {
        let (last, _) = watch::channel(0);
        let state = Mutex::default();
        Self { state, last }
    }
}

impl ChangeLog {
    pub(super) fn add(&self, tenant: &Tenant, change: Change) {
        let mut state = self.state();
        state.last += 1;
        let number = state.last;
        if !state.tenants.contains_key(tenant) {
            state.make_room();
            let recent = Recent {
                missing: state.dropped,
                ..Recent::default()
            };
            state.tenants.insert(tenant.clone(), recent);
        }
        if let Some(recent) = state.tenants.get_mut(tenant) {
            recent.add(number, change);
        }
        drop(state);
        self.last.send_replace(number);
    }

    pub(super) fn last(&self) -> u64 {
        self.state().last
    }

    pub(super) fn watch(&self) -> watch::Receiver<u64> {
        self.last.subscribe()
    }

    /// The tenant's first change after `position`; a reset if some are missing or the position is not one of this log.
    pub(super) fn next(&self, tenant: &Tenant, position: u64) -> Option<Numbered> {
        let state = self.state();
        let recent = state.tenants.get(tenant);
        let missing = recent.map_or(state.dropped, |recent| recent.missing);
        if position < missing || position > state.last {
            return Some(Numbered {
                number: state.last,
                change: Change::Reset,
            });
        }
        let changes = &recent?.changes;
        let next = changes.get(changes.partition_point(|(number, _)| *number <= position));
        next.map(|(number, change)| Numbered {
            number: *number,
            change: change.clone(),
        })
    }

    fn state(&self) -> MutexGuard<'_, LogState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LogState {
    /// Drops the changes of the tenant without a change for longest.
    fn make_room(&mut self) {
        if self.tenants.len() < limits::CHANGED_TENANTS_MAX {
            return;
        }
        let newest = |recent: &Recent| recent.changes.back().map_or(0, |(number, _)| *number);
        let oldest = self.tenants.iter().min_by_key(|(_, recent)| newest(recent));
        if let Some(tenant) = oldest.map(|(tenant, _)| tenant.clone()) {
            self.tenants.remove(&tenant);
            self.dropped = self.last;
        }
    }
}

impl Recent {
    fn add(&mut self, number: u64, change: Change) {
        if self.changes.len() >= limits::CHANGES_PER_TENANT
            && let Some((dropped, _)) = self.changes.pop_front()
        {
            self.missing = dropped;
        }
        self.changes.push_back((number, change));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant(name: &str) -> Tenant {
        name.parse().unwrap()
    }

    fn change() -> Change {
        Change::ExecutionDeleted(ExecutionId::generate())
    }

    fn numbers(log: &ChangeLog, tenant: &Tenant, mut position: u64) -> Vec<u64> {
        std::iter::from_fn(|| {
            let next = log.next(tenant, position)?;
            assert_ne!(next.change, Change::Reset);
            position = next.number;
            Some(position)
        })
        .collect()
    }

    fn is_reset(log: &ChangeLog, tenant: &Tenant, position: u64) -> bool {
        let next = log.next(tenant, position);
        next.is_some_and(|next| next.change == Change::Reset && next.number == log.last())
    }

    /// T-02.
    #[test]
    fn a_reader_gets_each_change_of_its_tenant_once_and_in_order() {
        let (log, a, b) = (ChangeLog::default(), tenant("a"), tenant("b"));
        for owner in [&a, &b, &a, &a] {
            log.add(owner, change());
        }
        assert_eq!(numbers(&log, &a, 0), [1, 3, 4]);
        assert_eq!(numbers(&log, &a, 2), [3, 4]);
        assert_eq!(numbers(&log, &b, 0), [2]);
        assert!(numbers(&log, &tenant("c"), 0).is_empty());
        assert!(is_reset(&log, &a, 5), "a number of the future");
    }

    #[test]
    fn a_reader_that_is_behind_gets_one_reset() {
        let (log, a) = (ChangeLog::default(), tenant("a"));
        let count = limits::CHANGES_PER_TENANT as u64 + 3;
        for _ in 0..count {
            log.add(&a, change());
        }
        assert!(is_reset(&log, &a, 2));
        assert_eq!(numbers(&log, &a, 3).len(), limits::CHANGES_PER_TENANT);
        assert!(numbers(&log, &a, count).is_empty());
    }

    #[test]
    fn number_of_tenants_is_limited() {
        let log = ChangeLog::default();
        let all: Vec<_> = (0..=limits::CHANGED_TENANTS_MAX)
            .map(|n| tenant(&format!("t{n}")))
            .collect();
        for owner in &all {
            log.add(owner, change());
        }
        assert_eq!(log.state().tenants.len(), limits::CHANGED_TENANTS_MAX);
        assert!(is_reset(&log, &all[0], 0), "its change is dropped");
        assert!(is_reset(&log, &all[0], 1), "and others may be");
        assert_eq!(numbers(&log, &all[1], 0), [2]);
        assert!(numbers(&log, &all[0], log.last()).is_empty());
    }
}
