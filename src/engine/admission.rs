//! Who may run now, who waits, who is sent away.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::error::{Code, Error};
use crate::ids::Tenant;
use crate::limits;

/// A fixed number of slots and bounded queues before them, one for each tenant.
///
/// A slot that becomes free goes to the tenants in turn: one that fills its queue makes itself wait and nobody else (T-15).
#[derive(Debug)]
pub(super) struct Admission(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    state: Mutex<State>,
    /// Who may wait of one tenant.
    queue: usize,
    wait: Duration,
}

#[derive(Debug)]
struct State {
    free: usize,
    closed: bool,
    /// Never empty for any tenant in it.
    waiting: HashMap<Tenant, VecDeque<oneshot::Sender<Slot>>>,
    /// The tenants that wait, each once, the next one first.
    turns: VecDeque<Tenant>,
}

/// The right to run one execution, until dropped.
#[derive(Debug)]
pub(super) struct Slot(Arc<Inner>);

impl Admission {
    pub(super) fn new(concurrency: usize, queue: usize, wait: Duration) -> Self {
        let state = Mutex::new(State {
            free: concurrency,
            closed: false,
            waiting: HashMap::new(),
            turns: VecDeque::new(),
        });
        Self(Arc::new(Inner { state, queue, wait }))
    }

    /// A slot, now or after a bounded wait.
    pub(super) async fn admit(&self, tenant: &Tenant) -> Result<Slot, Error> {
        let mut place = match self.0.enter(tenant)? {
            Entered::Slot(slot) => return Ok(slot),
            Entered::Queue(place) => place,
        };
        match tokio::time::timeout(self.0.wait, &mut place.turn).await {
            Ok(Ok(slot)) => Ok(slot),
            Ok(Err(_closed)) => Err(shutting_down()),
            Err(_elapsed) => Err(busy("no slot became free in time")),
        }
    }

    /// The same for a caller who may go; one that goes leaves the queue.
    pub(super) async fn admit_unless(
        &self,
        tenant: &Tenant,
        gone: &CancellationToken,
    ) -> Result<Slot, Error> {
        let admitted = gone.run_until_cancelled(self.admit(tenant)).await;
        admitted.ok_or_else(|| Error::new(Code::Busy, "the caller left the queue"))?
    }

    /// Lets nobody in any more; who waits is sent away.
    pub(super) fn close(&self) {
        let mut state = self.0.state();
        state.closed = true;
        state.turns.clear();
        state.waiting.clear();
    }

    /// How many wait.
    pub(super) fn queued(&self) -> u64 {
        self.0
            .state()
            .waiting
            .values()
            .map(|queue| queue.len() as u64)
            .sum()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.0.state().closed
    }
}

enum Entered {
    Slot(Slot),
    Queue(Place),
}

impl Inner {
    fn enter(self: &Arc<Self>, tenant: &Tenant) -> Result<Entered, Error> {
        let mut state = self.state();
        if state.closed {
            return Err(shutting_down());
        }
        if state.free > 0 {
            state.free -= 1;
            return Ok(Entered::Slot(Slot(self.clone())));
        }
        let own = state.waiting.get(tenant).map_or(0, VecDeque::len);
        let all: usize = state.waiting.values().map(VecDeque::len).sum();
        if own >= self.queue || all >= self.queue.saturating_mul(limits::QUEUES_MAX) {
            return Err(busy("all slots and the queue are full"));
        }
        let (sender, turn) = oneshot::channel();
        if own == 0 {
            state.turns.push_back(tenant.clone());
        }
        state.waiting.entry(tenant.clone()).or_default().push_back(sender);
        Ok(Entered::Queue(Place {
            turn,
            tenant: tenant.clone(),
            inner: self.clone(),
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The waiter whose turn it is.
    fn next(&mut self) -> Option<oneshot::Sender<Slot>> {
        let tenant = self.turns.pop_front()?;
        let queue = self.waiting.get_mut(&tenant)?;
        let next = queue.pop_front();
        if queue.is_empty() {
            self.waiting.remove(&tenant);
        } else {
            self.turns.push_back(tenant);
        }
        next
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut state = self.0.state();
        let next = state.next();
        if next.is_none() {
            state.free += 1;
        }
        drop(state);
        // One that has just left drops the slot that it is sent, and so passes it on.
        if let Some(next) = next {
            let _ = next.send(Slot(self.0.clone()));
        }
    }
}

/// A place in the queue, given up when dropped.
struct Place {
    turn: oneshot::Receiver<Slot>,
    tenant: Tenant,
    inner: Arc<Inner>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.turn.close();
        let mut state = self.inner.state();
        let Some(queue) = state.waiting.get_mut(&self.tenant) else {
            return;
        };
        queue.retain(|waiter| !waiter.is_closed());
        if queue.is_empty() {
            state.waiting.remove(&self.tenant);
            state.turns.retain(|tenant| *tenant != self.tenant);
        }
    }
}

fn shutting_down() -> Error {
    Error::new(Code::Busy, "the server is shutting down")
}

fn busy(why: &str) -> Error {
    let message = format!("{why}; try again later, or raise limits.concurrency or limits.queue");
    Error::new(Code::Busy, message).with_retry_after(Duration::from_secs(5))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant(name: &str) -> Tenant {
        name.parse().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_queue_sends_away_and_a_long_wait_ends() {
        let admission = Arc::new(Admission::new(1, 1, Duration::from_secs(10)));
        let slot = admission.admit(&tenant("a")).await.unwrap();
        let waiter = tokio::spawn({
            let admission = admission.clone();
            async move { admission.admit(&tenant("a")).await }
        });
        tokio::task::yield_now().await;
        let refused = admission.admit(&tenant("a")).await.unwrap_err();
        assert_eq!(refused.code(), Code::Busy);
        assert!(refused.retry_after().is_some());
        let waited = waiter.await.unwrap().unwrap_err();
        assert_eq!(waited.code(), Code::Busy);
        drop(slot);
        assert!(admission.admit(&tenant("a")).await.is_ok());
    }

    fn wait(
        admission: &Arc<Admission>,
        turns: &tokio::sync::mpsc::UnboundedSender<usize>,
        turn: usize,
    ) -> tokio::task::JoinHandle<Result<(), Error>> {
        let (admission, turns) = (admission.clone(), turns.clone());
        tokio::spawn(async move {
            let _slot = admission.admit(&tenant("a")).await?;
            turns.send(turn).unwrap();
            Ok(())
        })
    }

    #[tokio::test]
    async fn who_came_first_goes_first_and_who_leaves_gives_up_the_place() {
        let admission = Arc::new(Admission::new(1, 3, Duration::from_secs(10)));
        let (turns, mut taken) = tokio::sync::mpsc::unbounded_channel();
        let slot = admission.admit(&tenant("a")).await.unwrap();
        let mut waiters = Vec::new();
        for turn in 0..3 {
            waiters.push(wait(&admission, &turns, turn));
            tokio::task::yield_now().await;
        }
        assert!(admission.admit(&tenant("a")).await.is_err(), "the queue is full");
        waiters[1].abort();
        tokio::task::yield_now().await;
        waiters.push(wait(&admission, &turns, 3));
        tokio::task::yield_now().await;
        drop((slot, turns));
        let mut order = Vec::new();
        while let Some(turn) = taken.recv().await {
            order.push(turn);
        }
        assert_eq!(order, [0, 2, 3]);
        assert!(admission.0.state().waiting.is_empty() && admission.0.state().turns.is_empty());
        assert!(admission.admit(&tenant("a")).await.is_ok());
    }

    #[tokio::test]
    async fn a_closing_server_sends_the_waiting_away() {
        let admission = Arc::new(Admission::new(1, 3, Duration::from_secs(10)));
        let (turns, _taken) = tokio::sync::mpsc::unbounded_channel();
        let _slot = admission.admit(&tenant("a")).await.unwrap();
        let waiter = wait(&admission, &turns, 0);
        tokio::task::yield_now().await;
        admission.close();
        for refused in [
            waiter.await.unwrap(),
            admission.admit(&tenant("a")).await.map(drop),
        ] {
            let refused = refused.unwrap_err();
            assert_eq!(
                (refused.code(), refused.to_string().as_str()),
                (Code::Busy, "the server is shutting down")
            );
        }
    }

    #[tokio::test]
    async fn who_waits_gets_the_slot_that_is_freed() {
        let admission = Arc::new(Admission::new(1, 1, Duration::from_secs(10)));
        let slot = admission.admit(&tenant("a")).await.unwrap();
        let waiter = tokio::spawn({
            let admission = admission.clone();
            async move { admission.admit(&tenant("a")).await }
        });
        drop(slot);
        assert!(waiter.await.unwrap().is_ok());
    }

    /// T-15.
    #[tokio::test]
    async fn a_tenant_that_fills_its_queue_keeps_nobody_else_waiting() {
        let admission = Arc::new(Admission::new(1, 3, Duration::from_secs(10)));
        let slot = admission.admit(&tenant("a")).await.unwrap();
        let (turns, mut taken) = tokio::sync::mpsc::unbounded_channel();
        for (turn, name) in ["a", "a", "a", "b", "b"].into_iter().enumerate() {
            let (admission, turns) = (admission.clone(), turns.clone());
            tokio::spawn(async move {
                let _slot = admission.admit(&tenant(name)).await.unwrap();
                turns.send(turn).unwrap();
            });
            tokio::task::yield_now().await;
        }
        assert!(admission.admit(&tenant("a")).await.is_err(), "its queue is full");
        drop((slot, turns));
        let mut order = Vec::new();
        while let Some(turn) = taken.recv().await {
            order.push(turn);
        }
        assert_eq!(order, [0, 3, 1, 4, 2]);
    }

    #[tokio::test]
    async fn a_slot_sent_to_one_that_has_left_is_passed_on() {
        let admission = Admission::new(1, 3, Duration::from_secs(10));
        let slot = admission.admit(&tenant("a")).await.unwrap();
        let Entered::Queue(place) = admission.0.enter(&tenant("a")).unwrap() else {
            panic!("there is no free slot");
        };
        drop(slot);
        assert_eq!(admission.0.state().free, 0, "the slot was sent");
        drop(place);
        assert_eq!(admission.0.state().free, 1);
    }
}
