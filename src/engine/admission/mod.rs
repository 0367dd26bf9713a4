//! Who may run now, who waits, who is sent away.

mod few;
mod line;
mod rate;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::error::{Code, Error};
use crate::ids::{ExecutionId, Tenant};
use crate::limits;

use line::{Line, OpenTo, Waiter};

pub(super) use few::Few;
pub(super) use rate::Rate;

/// A fixed number of slots, and bounded lines before them.
///
/// A slot that becomes free goes to the tenants in turn: one that fills its lines makes itself wait and nobody else (T-15, R-12).
/// Within a tenant callers who wait and executions in the queue take turns. As long as callers come, the queue leaves them a
/// slot, unless nothing of it would run at all; and what is submitted or begun from it gives way to them for a moment.
#[derive(Debug)]
pub(super) struct Admission(Arc<Inner>);

/// How much at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Executions at once.
    pub(super) slots: usize,
    /// Executions of one tenant at once.
    pub(super) slots_of_tenant: usize,
    /// Callers of one tenant who wait.
    pub(super) callers: usize,
    /// Executions of one tenant in the queue.
    pub(super) queued: usize,
    /// Longest wait of a caller.
    pub(super) wait: Duration,
}

impl Bounds {
    /// Whether a tenant that has what is in `running` may have one more.
    fn let_run(self, running: &HashMap<Tenant, usize>, tenant: &Tenant) -> bool {
        running.get(tenant).copied().unwrap_or(0) < self.slots_of_tenant
    }
}

/// Who wants a slot.
#[derive(Clone, Debug)]
pub(super) struct Comer {
    pub(super) tenant: Tenant,
    pub(super) lane: Lane,
    /// What will run, if that has a name already.
    pub(super) execution: Option<ExecutionId>,
}

/// How somebody waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    /// With somebody at the other end.
    Caller,
    /// In the queue, for as long as it takes.
    Queued,
    /// As `Queued`; it was let in by a process before this one.
    Adopted,
}

/// Where an execution stands in its tenant's line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LinePlace {
    /// 1 for the next one.
    pub(super) position: usize,
    /// How many wait in this line.
    pub(super) waiting: usize,
}

#[derive(Debug)]
struct Inner {
    state: Mutex<State>,
    bounds: Bounds,
    /// Told when nobody has to give way any more.
    calm: Notify,
}

#[derive(Debug)]
struct State {
    free: usize,
    /// Slots of executions from the queue.
    queued: usize,
    /// When the last caller came.
    called_at: Option<Instant>,
    closed: bool,
    /// Never 0 for any tenant in it.
    running: HashMap<Tenant, usize>,
    line: Line,
}

/// The right to run one execution, until dropped.
#[derive(Debug)]
pub(super) struct Slot {
    inner: Arc<Inner>,
    tenant: Tenant,
    lane: Lane,
}

/// A slot, or a place in the line.
#[derive(Debug)]
pub(super) enum Place {
    Slot(Slot),
    Line(Waiting),
}

impl Place {
    /// The slot, after however long it takes; `None` when the process ends first.
    pub(super) async fn turn(self) -> Option<Slot> {
        match self {
            Self::Slot(slot) => Some(slot),
            Self::Line(mut place) => (&mut place.turn).await.ok(),
        }
    }
}

impl Admission {
    pub(super) fn new(bounds: Bounds) -> Self {
        let state = Mutex::new(State {
            free: bounds.slots,
            queued: 0,
            called_at: None,
            closed: false,
            running: HashMap::new(),
            line: Line::default(),
        });
        Self(Arc::new(Inner {
            state,
            bounds,
            calm: Notify::new(),
        }))
    }

    /// A slot, now or after a bounded wait.
    pub(super) async fn admit(&self, tenant: &Tenant) -> Result<Slot, Error> {
        let entered = self.enter(Comer {
            tenant: tenant.clone(),
            lane: Lane::Caller,
            execution: None,
        })?;
        self.wait(entered).await
    }

    /// The same for a caller who may go; one that goes leaves the line.
    pub(super) async fn admit_unless(
        &self,
        tenant: &Tenant,
        gone: &CancellationToken,
    ) -> Result<Slot, Error> {
        let admitted = gone.run_until_cancelled(self.admit(tenant)).await;
        admitted.ok_or_else(|| Error::new(Code::Busy, "the caller left the queue"))?
    }

    /// A slot or a place in the line; an error where there is neither.
    pub(super) fn enter(&self, comer: Comer) -> Result<Place, Error> {
        self.0.enter(comer)
    }

    /// Waits for the turn of a caller, for so long.
    pub(super) async fn wait(&self, entered: Place) -> Result<Slot, Error> {
        match tokio::time::timeout(self.0.bounds.wait, entered.turn()).await {
            Ok(turn) => turn.ok_or_else(shutting_down),
            Err(_elapsed) => Err(busy("no slot became free in time")),
        }
    }

    /// Waits for callers whose executions have just begun, for [`limits::GIVE_WAY_MAX`] at most. Whoever finds no room hears of it
    /// without that.
    pub(super) async fn give_way(&self, comer: &Comer) {
        let calm = self.0.calm.notified();
        if self.0.is_hurried() && self.0.has_room(comer) {
            let _ = tokio::time::timeout(limits::GIVE_WAY_MAX, calm).await;
        }
    }

    /// Where this execution waits; `None` if it does not.
    pub(super) fn place(&self, tenant: &Tenant, execution: ExecutionId) -> Option<LinePlace> {
        self.0.state().line.place(tenant, execution)
    }

    /// How many wait in all.
    pub(super) fn waiting(&self) -> usize {
        self.0.state().line.len()
    }

    /// How many slots are taken.
    pub(super) fn running(&self) -> usize {
        self.0.bounds.slots - self.0.state().free
    }

    /// Sends one that waits away, if it does.
    pub(super) fn send_away(&self, tenant: &Tenant, execution: ExecutionId) {
        self.0.state().line.send_away(tenant, execution);
    }

    /// Gives out what was left for callers, should none have come for a while.
    pub(super) fn look_again(&self) {
        self.0.hand_out(self.0.state());
    }

    /// Lets nobody in any more; who waits is sent away.
    pub(super) fn close(&self) {
        let mut state = self.0.state();
        state.closed = true;
        state.line = Line::default();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.0.state().closed
    }
}

impl Inner {
    fn enter(self: &Arc<Self>, comer: Comer) -> Result<Place, Error> {
        if comer.lane != Lane::Caller {
            // A slot that was left for callers and is left no more is for those of the queue who came before.
            self.hand_out(self.state());
        }
        let mut state = self.state();
        if state.closed {
            return Err(shutting_down());
        }
        let may_run = self.bounds.let_run(&state.running, &comer.tenant);
        let is_open = match state.open_to() {
            Some(OpenTo::All) => true,
            Some(OpenTo::Callers) => comer.lane == Lane::Caller,
            None => false,
        };
        if is_open && may_run {
            state.call(comer.lane);
            state.take(&comer.tenant, comer.lane);
            return Ok(Place::Slot(self.slot(comer.tenant, comer.lane)));
        }
        self.check_room(&state.line, &comer)?;
        if may_run {
            state.call(comer.lane);
        }
        let (sender, turn) = oneshot::channel();
        state.line.push(
            &comer,
            Waiter {
                lane: comer.lane,
                execution: comer.execution,
                sender,
            },
        );
        Ok(Place::Line(Waiting {
            turn,
            tenant: comer.tenant,
            inner: self.clone(),
        }))
    }

    /// Gives every slot that is free to whoever's turn it is: more than one, if one that was left for callers is left no more.
    fn hand_out(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        let next: Vec<_> = std::iter::from_fn(|| state.next(self.bounds)).collect();
        drop(state);
        // One that has just left drops the slot that it is sent, and so passes it on.
        for (tenant, waiter) in next {
            let _ = waiter.sender.send(self.slot(tenant, waiter.lane));
        }
    }

    fn check_room(&self, line: &Line, comer: &Comer) -> Result<(), Error> {
        let max = match comer.lane {
            Lane::Caller => self.bounds.callers,
            Lane::Queued => self.bounds.queued,
            Lane::Adopted => return Ok(()),
        };
        if line.of_tenant(&comer.tenant, comer.lane) >= max {
            return Err(Error::new(
                Code::RateLimited,
                format!("{max} executions of yours wait already, the most that may; try again when some have ended"),
            )
            .with_retry_after(limits::QUEUE_RETRY_AFTER));
        }
        if line.of_all(comer.lane) >= max.saturating_mul(limits::QUEUES_MAX) {
            return Err(busy("all slots and the queue are full"));
        }
        Ok(())
    }

    fn has_room(&self, comer: &Comer) -> bool {
        self.check_room(&self.state().line, comer).is_ok()
    }

    /// Whether callers have a quarter of the slots or more, and one of them has just come.
    fn is_hurried(&self) -> bool {
        let state = self.state();
        let of_callers = self.bounds.slots - state.free - state.queued;
        of_callers * 4 >= self.bounds.slots && state.called_within(limits::GIVE_WAY_MAX)
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
    /// Whether the last caller came no longer ago than this.
    fn called_within(&self, time: Duration) -> bool {
        self.called_at.is_some_and(|at| at.elapsed() < time)
    }

    /// Whom a slot may be given to now; `None` if there is none.
    fn open_to(&self) -> Option<OpenTo> {
        let callers_come = self.called_within(limits::CALLERS_COME_WITHIN);
        match self.free {
            0 => None,
            1 if self.queued > 0 && callers_come => Some(OpenTo::Callers),
            _ => Some(OpenTo::All),
        }
    }

    /// Notes that somebody came who could run, were there a slot.
    fn call(&mut self, lane: Lane) {
        if lane == Lane::Caller {
            self.called_at = Some(Instant::now());
        }
    }

    fn take(&mut self, tenant: &Tenant, lane: Lane) {
        self.free -= 1;
        self.queued += usize::from(lane != Lane::Caller);
        *self.running.entry(tenant.clone()).or_default() += 1;
    }

    fn give_back(&mut self, tenant: &Tenant, lane: Lane) {
        self.free += 1;
        self.queued -= usize::from(lane != Lane::Caller);
        if let Some(running) = self.running.get_mut(tenant) {
            *running -= 1;
            if *running == 0 {
                self.running.remove(tenant);
            }
        }
    }

    /// The waiter whose turn it is, with a slot taken for it.
    fn next(&mut self, bounds: Bounds) -> Option<(Tenant, Waiter)> {
        let open_to = self.open_to()?;
        let may_run = |tenant: &Tenant| bounds.let_run(&self.running, tenant);
        let (tenant, waiter) = self.line.next(open_to, may_run)?;
        self.take(&tenant, waiter.lane);
        Some((tenant, waiter))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut state = self.inner.state();
        state.give_back(&self.tenant, self.lane);
        self.inner.hand_out(state);
        if self.lane == Lane::Caller && !self.inner.is_hurried() {
            self.inner.calm.notify_waiters();
        }
    }
}

/// A place in the line, given up when dropped.
#[derive(Debug)]
pub(super) struct Waiting {
    turn: oneshot::Receiver<Slot>,
    tenant: Tenant,
    inner: Arc<Inner>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.turn.close();
        // A slot that was sent and not taken goes back first, outside the lock.
        drop(self.turn.try_recv());
        self.inner.state().line.forget_gone(&self.tenant);
    }
}

fn shutting_down() -> Error {
    Error::new(Code::Busy, "the server is shutting down")
}

fn busy(why: &str) -> Error {
    let message = format!("{why}; try again later, or raise limits.concurrency or limits.queue");
    Error::new(Code::Busy, message).with_retry_after(limits::QUEUE_RETRY_AFTER)
}
