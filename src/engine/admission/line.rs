//! Who waits, and whose turn is next.

use std::collections::{HashMap, VecDeque};

use tokio::sync::oneshot;

use super::{Comer, Lane, LinePlace, Slot};
use crate::ids::{ExecutionId, Tenant};

/// One who waits.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) lane: Lane,
    pub(super) execution: Option<ExecutionId>,
    pub(super) sender: oneshot::Sender<Slot>,
}

/// Whom a free slot may be given to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OpenTo {
    /// Whoever waits.
    All,
    /// Those with somebody at the other end.
    Callers,
}

/// The lines of all tenants.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// Never empty for any tenant in it.
    waiting: HashMap<Tenant, Lanes>,
    /// The tenants that wait, each once, the next one first.
    turns: VecDeque<Tenant>,
}

/// The two lines of one tenant.
#[derive(Debug, Default)]
struct Lanes {
    callers: VecDeque<Waiter>,
    queued: VecDeque<Waiter>,
    /// Whether the turn before was a caller's.
    was_caller: bool,
}

impl Line {
    pub(super) fn push(&mut self, comer: &Comer, waiter: Waiter) {
        if !self.waiting.contains_key(&comer.tenant) {
            self.turns.push_back(comer.tenant.clone());
        }
        let lanes = self.waiting.entry(comer.tenant.clone()).or_default();
        lanes.lane(comer.lane).push_back(waiter);
    }

    /// The next one of the next tenant that may run.
    pub(super) fn next(
        &mut self,
        open_to: OpenTo,
        may_run: impl Fn(&Tenant) -> bool,
    ) -> Option<(Tenant, Waiter)> {
        let has_one = |tenant: &Tenant| {
            let lanes = self.waiting.get(tenant);
            open_to == OpenTo::All || lanes.is_some_and(|lanes| !lanes.callers.is_empty())
        };
        let at = self
            .turns
            .iter()
            .position(|tenant| may_run(tenant) && has_one(tenant))?;
        let tenant = self.turns.remove(at)?;
        let lanes = self.waiting.get_mut(&tenant)?;
        let waiter = match open_to {
            OpenTo::All => lanes.next(),
            OpenTo::Callers => lanes.callers.pop_front(),
        };
        if lanes.len() == 0 {
            self.waiting.remove(&tenant);
        } else {
            self.turns.push_back(tenant.clone());
        }
        waiter.map(|waiter| (tenant, waiter))
    }

    pub(super) fn of_tenant(&self, tenant: &Tenant, lane: Lane) -> usize {
        self.waiting.get(tenant).map_or(0, |lanes| lanes.in_lane(lane))
    }

    pub(super) fn of_all(&self, lane: Lane) -> usize {
        self.waiting.values().map(|lanes| lanes.in_lane(lane)).sum()
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.values().map(Lanes::len).sum()
    }

    pub(super) fn place(&self, tenant: &Tenant, execution: ExecutionId) -> Option<LinePlace> {
        let lanes = self.waiting.get(tenant)?;
        [&lanes.callers, &lanes.queued].into_iter().find_map(|lane| {
            let index = lane
                .iter()
                .position(|waiter| waiter.execution == Some(execution))?;
            Some(LinePlace {
                position: index + 1,
                waiting: lane.len(),
            })
        })
    }

    pub(super) fn send_away(&mut self, tenant: &Tenant, execution: ExecutionId) {
        self.keep(tenant, |waiter| waiter.execution != Some(execution));
    }

    pub(super) fn forget_gone(&mut self, tenant: &Tenant) {
        self.keep(tenant, |waiter| !waiter.sender.is_closed());
    }

    fn keep(&mut self, tenant: &Tenant, stays: impl Fn(&Waiter) -> bool) {
        let Some(lanes) = self.waiting.get_mut(tenant) else {
            return;
        };
        lanes.callers.retain(&stays);
        lanes.queued.retain(&stays);
        if lanes.len() == 0 {
            self.waiting.remove(tenant);
            self.turns.retain(|waiting| waiting != tenant);
        }
    }
}

impl Lanes {
    fn lane(&mut self, lane: Lane) -> &mut VecDeque<Waiter> {
        match lane {
            Lane::Caller => &mut self.callers,
            Lane::Queued | Lane::Adopted => &mut self.queued,
        }
    }

    fn in_lane(&self, lane: Lane) -> usize {
        match lane {
            Lane::Caller => self.callers.len(),
            Lane::Queued | Lane::Adopted => self.queued.len(),
        }
    }

    fn len(&self) -> usize {
        self.callers.len() + self.queued.len()
    }

    /// Callers and the queue take turns: neither keeps the other waiting for ever.
    fn next(&mut self) -> Option<Waiter> {
        let is_callers_turn = !self.callers.is_empty() && (!self.was_caller || self.queued.is_empty());
        self.was_caller = is_callers_turn;
        if is_callers_turn {
            self.callers.pop_front()
        } else {
            self.queued.pop_front()
        }
    }
}
