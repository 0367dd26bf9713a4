//! Admission of executions: which request runs now, waits or is rejected.

mod queue;
mod rate;
mod refusal;
mod submissions;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::engine::Tenants;
use crate::error::{Code, Error};
use crate::ids::{ExecutionId, Tenant};
use crate::limits;

use queue::{FairQueue, OpenLanes, Waiter};

pub(super) use rate::Rate;
pub(super) use submissions::SubmissionLimit;

/// A fixed number of slots with limited queues in front of them.
///
/// Free slots go to the tenants in turn, so a tenant that fills its queues delays only itself (T-15, R-12). Within a tenant,
/// interactive and queued requests alternate. While interactive requests arrive, one slot is reserved for them unless no queued
/// execution runs at all; submissions and queued executions also yield to them briefly.
#[derive(Debug)]
pub(super) struct Admission(Arc<Inner>);

#[derive(Clone, Copy, Debug)]
pub(super) struct AdmissionLimits {
    pub(super) slots: usize,
    pub(super) slots_per_tenant: usize,
    /// Waiting interactive requests of one tenant.
    pub(super) interactive: usize,
    /// Queued executions of one tenant.
    pub(super) queued: usize,
    /// Longest wait of an interactive request.
    pub(super) wait: Duration,
}

impl AdmissionLimits {
    fn tenant_may_run(self, running: &HashMap<Tenant, usize>, tenant: &Tenant) -> bool {
        running.get(tenant).copied().unwrap_or(0) < self.slots_per_tenant
    }
}

/// Use of the slots and the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Executions that may run at once.
    pub slots: usize,
    pub running: usize,
    /// Waiting requests.
    pub waiting: usize,
    /// Longest wait of these.
    pub oldest: Option<Duration>,
}

/// A request for a slot.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) tenant: Tenant,
    pub(super) lane: Lane,
    /// `None` until the execution has an id.
    pub(super) execution: Option<ExecutionId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    /// A client waits for the result.
    Interactive,
    /// Waits in the queue without a time limit.
    Queued,
    /// As `Queued`, but an earlier process admitted it: queue limits do not apply.
    Recovered,
}

/// Position of an execution in its tenant's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LanePosition {
    /// 1 for the next one.
    pub(super) position: usize,
    /// Length of this lane.
    pub(super) waiting: usize,
}

#[derive(Debug)]
struct Inner {
    state: Mutex<State>,
    limits: AdmissionLimits,
    /// Notified when interactive requests no longer need priority.
    interactive_settled: Notify,
}

#[derive(Debug)]
struct State {
    free: usize,
    /// Slots taken by queued executions.
    queued: usize,
    last_interactive_at: Option<Instant>,
    closed: bool,
    /// Never 0 for any tenant in it.
    running: HashMap<Tenant, usize>,
    queue: FairQueue,
}

/// The right to run one execution, until dropped.
#[derive(Debug)]
pub(super) struct Slot {
    inner: Arc<Inner>,
    tenant: Tenant,
    lane: Lane,
}

#[derive(Debug)]
pub(super) enum Ticket {
    Granted(Slot),
    Waiting(QueueEntry),
}

impl Ticket {
    /// Waits for the slot; `None` if the request was removed or the process shuts down.
    pub(super) async fn slot(self) -> Option<Slot> {
        match self {
            Self::Granted(slot) => Some(slot),
            Self::Waiting(mut entry) => (&mut entry.grant).await.ok(),
        }
    }
}

impl Admission {
    pub(super) fn new(limits: AdmissionLimits) -> Self {
        let state = Mutex::new(State {
            free: limits.slots,
            queued: 0,
            last_interactive_at: None,
            closed: false,
            running: HashMap::new(),
            queue: FairQueue::default(),
        });
        Self(Arc::new(Inner {
            state,
            limits,
            interactive_settled: Notify::new(),
        }))
    }

    /// Admits an interactive request, now or after a limited wait.
    pub(super) async fn admit(&self, tenant: &Tenant) -> Result<Slot, Error> {
        let ticket = self.request(Request {
            tenant: tenant.clone(),
            lane: Lane::Interactive,
            execution: None,
        })?;
        self.wait(ticket).await
    }

    /// As [`admit`](Self::admit); leaves the queue when `gone` is cancelled.
    pub(super) async fn admit_unless_gone(
        &self,
        tenant: &Tenant,
        gone: &CancellationToken,
    ) -> Result<Slot, Error> {
        let admitted = gone.run_until_cancelled(self.admit(tenant)).await;
        admitted.ok_or_else(|| Error::new(Code::Busy, "the caller left the queue"))?
    }

    /// Grants a slot or enters the queue; an error if the queue is full.
    pub(super) fn request(&self, request: Request) -> Result<Ticket, Error> {
        self.0.request(request)
    }

    /// Waits for the slot of an interactive request, up to the configured limit.
    pub(super) async fn wait(&self, ticket: Ticket) -> Result<Slot, Error> {
        match tokio::time::timeout(self.0.limits.wait, ticket.slot()).await {
            Ok(slot) => slot.ok_or_else(refusal::shutting_down),
            Err(_elapsed) => Err(refusal::busy("no slot became free in time")),
        }
    }

    /// Waits for interactive executions that have just started, at most [`limits::YIELD_MAX`]. A request that the queue
    /// would reject does not wait for that.
    pub(super) async fn yield_to_interactive(&self, request: &Request) {
        let settled = self.0.interactive_settled.notified();
        if self.0.has_interactive_burst() && self.0.fits_queue(request) {
            let _ = tokio::time::timeout(limits::YIELD_MAX, settled).await;
        }
    }

    /// The position of a waiting execution; `None` if it does not wait.
    pub(super) fn position(&self, tenant: &Tenant, execution: ExecutionId) -> Option<LanePosition> {
        self.0.state().queue.position(tenant, execution)
    }

    pub(super) fn waiting(&self) -> usize {
        self.0.state().queue.len()
    }

    pub(super) fn running(&self) -> usize {
        self.0.limits.slots - self.0.state().free
    }

    /// What these tenants run and wait for.
    pub(super) fn load(&self, tenants: Tenants<'_>) -> Load {
        let state = self.0.state();
        let (waiting, first) = state.queue.waiting(tenants);
        Load {
            slots: match tenants {
                Tenants::All => self.0.limits.slots,
                Tenants::One(_) => self.0.limits.slots.min(self.0.limits.slots_per_tenant),
            },
            running: match tenants {
                Tenants::All => self.0.limits.slots - state.free,
                Tenants::One(tenant) => state.running.get(tenant).copied().unwrap_or(0),
            },
            waiting,
            oldest: first.map(|since| since.elapsed()),
        }
    }

    /// Waiting executions that no client waits for.
    pub(super) fn queued(&self, tenant: &Tenant) -> usize {
        self.0.state().queue.len_of(tenant, Lane::Queued)
    }

    /// Removes a waiting execution from the queue.
    pub(super) fn remove(&self, tenant: &Tenant, execution: ExecutionId) {
        self.0.state().queue.remove(tenant, execution);
    }

    /// Grants slots that were reserved for interactive requests and no longer are.
    pub(super) fn grant_free_slots(&self) {
        self.0.grant_free_slots(self.0.state());
    }

    /// Rejects all requests from now on, waiting ones included.
    pub(super) fn close(&self) {
        let mut state = self.0.state();
        state.closed = true;
        state.queue = FairQueue::default();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.0.state().closed
    }
}

impl Inner {
    fn request(self: &Arc<Self>, request: Request) -> Result<Ticket, Error> {
        if request.lane != Lane::Interactive {
            // A slot that is no longer reserved belongs to earlier queued requests first.
            self.grant_free_slots(self.state());
        }
        let mut state = self.state();
        if state.closed {
            return Err(refusal::shutting_down());
        }
        let may_run = self.limits.tenant_may_run(&state.running, &request.tenant);
        let is_open = match state.open_lanes() {
            Some(OpenLanes::All) => true,
            Some(OpenLanes::Interactive) => request.lane == Lane::Interactive,
            None => false,
        };
        if is_open && may_run {
            state.record_arrival(request.lane);
            state.take_slot(&request.tenant, request.lane);
            return Ok(Ticket::Granted(self.slot(request.tenant, request.lane)));
        }
        self.check_queue_limits(&state.queue, &request)?;
        if may_run {
            state.record_arrival(request.lane);
        }
        let (sender, grant) = oneshot::channel();
        state.queue.push(
            &request,
            Waiter {
                lane: request.lane,
                execution: request.execution,
                since: Instant::now(),
                sender,
            },
        );
        Ok(Ticket::Waiting(QueueEntry {
            grant,
            tenant: request.tenant,
            inner: self.clone(),
        }))
    }

    /// Grants every free slot: more than one if a reserved slot is no longer reserved.
    fn grant_free_slots(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        let next: Vec<_> = std::iter::from_fn(|| state.next(self.limits)).collect();
        drop(state);
        // A request that has just been cancelled drops the slot it is sent, which passes the slot on.
        for (tenant, waiter) in next {
            let _ = waiter.sender.send(self.slot(tenant, waiter.lane));
        }
    }

    fn check_queue_limits(&self, queue: &FairQueue, request: &Request) -> Result<(), Error> {
        let max = match request.lane {
            Lane::Interactive => self.limits.interactive,
            Lane::Queued => self.limits.queued,
            Lane::Recovered => return Ok(()),
        };
        if queue.len_of(&request.tenant, request.lane) >= max {
            return Err(refusal::tenant_queue_full(max));
        }
        if queue.len_of_lane(request.lane) >= max.saturating_mul(limits::QUEUES_MAX) {
            return Err(refusal::busy("all slots and the queue are full"));
        }
        Ok(())
    }

    fn fits_queue(&self, request: &Request) -> bool {
        self.check_queue_limits(&self.state().queue, request).is_ok()
    }

    /// Whether interactive executions hold a quarter of the slots or more, and one of them has just arrived.
    fn has_interactive_burst(&self) -> bool {
        let state = self.state();
        let interactive = self.limits.slots - state.free - state.queued;
        interactive * 4 >= self.limits.slots && state.had_interactive_within(limits::YIELD_MAX)
    }

    fn slot(self: &Arc<Self>, tenant: Tenant, lane: Lane) -> Slot {
        Slot {
            inner: self.clone(),
            tenant,
            lane,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn had_interactive_within(&self, time: Duration) -> bool {
        self.last_interactive_at.is_some_and(|at| at.elapsed() < time)
    }

    /// The lanes that may have a free slot now; `None` if no slot is free.
    fn open_lanes(&self) -> Option<OpenLanes> {
        let is_interactive_used = self.had_interactive_within(limits::SLOT_RESERVED_FOR);
        match self.free {
            0 => None,
            1 if self.queued > 0 && is_interactive_used => Some(OpenLanes::Interactive),
            _ => Some(OpenLanes::All),
        }
    }

    /// Records the arrival of a request that could run if a slot were free.
    fn record_arrival(&mut self, lane: Lane) {
        if lane == Lane::Interactive {
            self.last_interactive_at = Some(Instant::now());
        }
    }

    fn take_slot(&mut self, tenant: &Tenant, lane: Lane) {
        self.free -= 1;
        self.queued += usize::from(lane != Lane::Interactive);
        *self.running.entry(tenant.clone()).or_default() += 1;
    }

    fn release_slot(&mut self, tenant: &Tenant, lane: Lane) {
        self.free += 1;
        self.queued -= usize::from(lane != Lane::Interactive);
        if let Some(running) = self.running.get_mut(tenant) {
            *running -= 1;
            if *running == 0 {
                self.running.remove(tenant);
            }
        }
    }

    /// Removes the next waiter from the queue and takes a slot for it.
    fn next(&mut self, limits: AdmissionLimits) -> Option<(Tenant, Waiter)> {
        let open = self.open_lanes()?;
        let may_run = |tenant: &Tenant| limits.tenant_may_run(&self.running, tenant);
        let (tenant, waiter) = self.queue.next(open, may_run)?;
        self.take_slot(&tenant, waiter.lane);
        Some((tenant, waiter))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut state = self.inner.state();
        state.release_slot(&self.tenant, self.lane);
        self.inner.grant_free_slots(state);
        if self.lane == Lane::Interactive && !self.inner.has_interactive_burst() {
            self.inner.interactive_settled.notify_waiters();
        }
    }
}

/// An entry in the queue, removed when dropped.
#[derive(Debug)]
pub(super) struct QueueEntry {
    grant: oneshot::Receiver<Slot>,
    tenant: Tenant,
    inner: Arc<Inner>,
}

impl Drop for QueueEntry {
    fn drop(&mut self) {
        self.grant.close();
        // A slot that was sent and not taken goes back first, outside the lock.
        drop(self.grant.try_recv());
        self.inner.state().queue.remove_closed(&self.tenant);
    }
}
