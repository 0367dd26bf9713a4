//! The queue of waiting requests: tenants in turn, and two lanes within each tenant.

use std::collections::{HashMap, VecDeque};

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::{Lane, LanePosition, Request, Slot};
use crate::engine::Tenants;
use crate::ids::{ExecutionId, Tenant};

#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) lane: Lane,
    pub(super) execution: Option<ExecutionId>,
    pub(super) since: Instant,
    pub(super) sender: oneshot::Sender<Slot>,
}

/// The lanes that may have a free slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OpenLanes {
    All,
    Interactive,
}

#[derive(Debug, Default)]
pub(super) struct FairQueue {
    /// Never empty for any tenant in it.
    waiting: HashMap<Tenant, TenantLanes>,
    /// The waiting tenants, each once, the next one first.
    turns: VecDeque<Tenant>,
}

#[derive(Debug, Default)]
struct TenantLanes {
    interactive: VecDeque<Waiter>,
    queued: VecDeque<Waiter>,
    /// Whether the last slot went to the interactive lane.
    was_interactive: bool,
}

impl FairQueue {
    pub(super) fn push(&mut self, request: &Request, waiter: Waiter) {
        if !self.waiting.contains_key(&request.tenant) {
            self.turns.push_back(request.tenant.clone());
        }
        let lanes = self.waiting.entry(request.tenant.clone()).or_default();
        lanes.lane_mut(request.lane).push_back(waiter);
    }

    /// Removes the next waiter of the next tenant that may run.
    pub(super) fn next(
        &mut self,
        open: OpenLanes,
        may_run: impl Fn(&Tenant) -> bool,
    ) -> Option<(Tenant, Waiter)> {
        let has_waiter = |tenant: &Tenant| {
            let lanes = self.waiting.get(tenant);
            open == OpenLanes::All || lanes.is_some_and(|lanes| !lanes.interactive.is_empty())
        };
        let at = self
            .turns
            .iter()
            .position(|tenant| may_run(tenant) && has_waiter(tenant))?;
        let tenant = self.turns.remove(at)?;
        let lanes = self.waiting.get_mut(&tenant)?;
        let waiter = match open {
            OpenLanes::All => lanes.next(),
            OpenLanes::Interactive => lanes.interactive.pop_front(),
        };
        if lanes.len() == 0 {
            self.waiting.remove(&tenant);
        } else {
            self.turns.push_back(tenant.clone());
        }
        waiter.map(|waiter| (tenant, waiter))
    }

    pub(super) fn len_of(&self, tenant: &Tenant, lane: Lane) -> usize {
        self.waiting.get(tenant).map_or(0, |lanes| lanes.len_of(lane))
    }

    pub(super) fn len_of_lane(&self, lane: Lane) -> usize {
        self.waiting.values().map(|lanes| lanes.len_of(lane)).sum()
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.values().map(TenantLanes::len).sum()
    }

    /// How many requests wait, and since when the first does.
    pub(super) fn waiting(&self, tenants: Tenants<'_>) -> (usize, Option<Instant>) {
        let lanes = self.waiting.iter().filter(|(tenant, _)| tenants.include(tenant));
        let lanes = lanes.flat_map(|(_, lanes)| [&lanes.interactive, &lanes.queued]);
        let (mut count, mut first) = (0, None);
        for waiter in lanes.flatten() {
            count += 1;
            first = Some(first.map_or(waiter.since, |first: Instant| first.min(waiter.since)));
        }
        (count, first)
    }

    pub(super) fn position(&self, tenant: &Tenant, execution: ExecutionId) -> Option<LanePosition> {
        let lanes = self.waiting.get(tenant)?;
        [&lanes.interactive, &lanes.queued].into_iter().find_map(|lane| {
            let index = lane
                .iter()
                .position(|waiter| waiter.execution == Some(execution))?;
            Some(LanePosition {
                position: index + 1,
                waiting: lane.len(),
            })
        })
    }

    pub(super) fn remove(&mut self, tenant: &Tenant, execution: ExecutionId) {
        self.retain(tenant, |waiter| waiter.execution != Some(execution));
    }

    pub(super) fn remove_closed(&mut self, tenant: &Tenant) {
        self.retain(tenant, |waiter| !waiter.sender.is_closed());
    }

    fn retain(&mut self, tenant: &Tenant, stays: impl Fn(&Waiter) -> bool) {
        let Some(lanes) = self.waiting.get_mut(tenant) else {
            return;
        };
        lanes.interactive.retain(&stays);
        lanes.queued.retain(&stays);
        if lanes.len() == 0 {
            self.waiting.remove(tenant);
            self.turns.retain(|waiting| waiting != tenant);
        }
    }
}

impl TenantLanes {
    fn lane_mut(&mut self, lane: Lane) -> &mut VecDeque<Waiter> {
        match lane {
            Lane::Interactive => &mut self.interactive,
            Lane::Queued | Lane::Recovered => &mut self.queued,
        }
    }

    fn len_of(&self, lane: Lane) -> usize {
        match lane {
            Lane::Interactive => self.interactive.len(),
            Lane::Queued | Lane::Recovered => self.queued.len(),
        }
    }

    fn len(&self) -> usize {
        self.interactive.len() + self.queued.len()
    }

    /// Alternates between the lanes, so that neither starves.
    fn next(&mut self) -> Option<Waiter> {
        let is_interactive =
            !self.interactive.is_empty() && (!self.was_interactive || self.queued.is_empty());
        self.was_interactive = is_interactive;
        if is_interactive {
            self.interactive.pop_front()
        } else {
            self.queued.pop_front()
        }
    }
}
