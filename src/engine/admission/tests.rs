//! Claims about the order of admission.

use super::*;

fn admission(slots: usize, interactive: usize) -> Admission {
    Admission::new(AdmissionLimits {
        slots,
        slots_per_tenant: slots,
        interactive,
        queued: 3,
        wait: Duration::from_secs(10),
    })
}

fn tenant(name: &str) -> Tenant {
    name.parse().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_rejects_and_a_long_wait_ends() {
    let admission = Arc::new(admission(1, 1));
    let slot = admission.admit(&tenant("a")).await.unwrap();
    let waiter = tokio::spawn({
        let admission = admission.clone();
        async move { admission.admit(&tenant("a")).await }
    });
    tokio::task::yield_now().await;
    let refused = admission.admit(&tenant("a")).await.unwrap_err();
    assert_eq!(refused.code(), Code::RateLimited);
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
async fn serves_in_order_and_frees_the_place_of_a_cancelled_request() {
    let admission = Arc::new(admission(1, 3));
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
    assert_eq!(admission.waiting(), 0);
    assert!(admission.admit(&tenant("a")).await.is_ok());
}

#[tokio::test]
async fn closing_rejects_waiting_requests() {
    let admission = Arc::new(admission(1, 3));
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
async fn a_waiting_request_gets_the_freed_slot() {
    let admission = Arc::new(admission(1, 1));
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
async fn a_tenant_with_a_full_queue_delays_no_other_tenant() {
    let admission = Arc::new(admission(1, 3));
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
async fn a_slot_sent_to_a_cancelled_request_is_passed_on() {
    let admission = admission(1, 3);
    let slot = admission.admit(&tenant("a")).await.unwrap();
    let Ticket::Waiting(entry) = admission.request(request("a", Lane::Interactive)).unwrap() else {
        panic!("there is no free slot");
    };
    drop(slot);
    assert_eq!(admission.0.state().free, 0, "the slot was sent");
    drop(entry);
    assert_eq!(admission.0.state().free, 1);
}

fn request(name: &str, lane: Lane) -> Request {
    Request {
        tenant: tenant(name),
        lane,
        execution: Some(ExecutionId::generate()),
    }
}

fn entry_of(entered: Ticket) -> QueueEntry {
    match entered {
        Ticket::Waiting(entry) => entry,
        Ticket::Granted(_) => panic!("there is no free slot"),
    }
}

///
#[tokio::test]
async fn limits_waiting_requests_of_all_tenants() {
    let admission = admission(1, 1);
    let _slot = admission.admit(&tenant("x")).await.unwrap();
    let mut entries = Vec::new();
    for name in ["a", "b", "c", "d"] {
        entries.push(entry_of(
            admission.request(request(name, Lane::Interactive)).unwrap(),
        ));
    }
    let refused = admission.request(request("e", Lane::Interactive)).unwrap_err();
    assert_eq!(refused.code(), Code::Busy);
    assert!(refused.retry_after().is_some());
    assert!(
        admission.request(request("e", Lane::Queued)).is_ok(),
        "another lane"
    );
}

///
#[tokio::test]
async fn a_full_queue_rejects_with_retry_after() {
    let admission = admission(1, 1);
    let _slot = admission.admit(&tenant("a")).await.unwrap();
    let mut entries = Vec::new();
    for _ in 0..3 {
        entries.push(entry_of(admission.request(request("a", Lane::Queued)).unwrap()));
    }
    let refused = admission.request(request("a", Lane::Queued)).unwrap_err();
    assert_eq!(refused.code(), Code::RateLimited);
    assert!(refused.retry_after().is_some());
    entries.push(entry_of(
        admission.request(request("a", Lane::Recovered)).unwrap(),
    ));
    assert!(admission.request(request("b", Lane::Queued)).is_ok());
}

#[tokio::test]
async fn interactive_and_queued_requests_alternate() {
    let admission = admission(1, 3);
    let mut slot = admission.admit(&tenant("a")).await.unwrap();
    let mut entries = Vec::new();
    for lane in [
        Lane::Queued,
        Lane::Queued,
        Lane::Queued,
        Lane::Interactive,
        Lane::Interactive,
    ] {
        entries.push((lane, entry_of(admission.request(request("a", lane)).unwrap())));
    }
    let mut order = Vec::new();
    while !entries.is_empty() {
        drop(slot);
        let served = entries
            .iter_mut()
            .position(|(_, entry)| !entry.grant.is_empty())
            .unwrap();
        let (lane, mut entry) = entries.remove(served);
        slot = entry.grant.try_recv().unwrap();
        order.push(lane);
    }
    assert_eq!(
        order,
        [
            Lane::Interactive,
            Lane::Queued,
            Lane::Interactive,
            Lane::Queued,
            Lane::Queued
        ]
    );
}

#[tokio::test]
async fn limits_slots_per_tenant() {
    let admission = Admission::new(AdmissionLimits {
        slots: 3,
        slots_per_tenant: 2,
        interactive: 3,
        queued: 3,
        wait: Duration::from_secs(10),
    });
    let first = admission.admit(&tenant("a")).await.unwrap();
    let _second = admission.admit(&tenant("a")).await.unwrap();
    let mut third = entry_of(admission.request(request("a", Lane::Interactive)).unwrap());
    let other = admission.admit(&tenant("b")).await.unwrap();
    let mut waiting = entry_of(admission.request(request("b", Lane::Interactive)).unwrap());
    assert_eq!(admission.running(), 3);
    drop(other);
    let other = waiting
        .grant
        .try_recv()
        .expect("the other tenant goes first: the first one has its two");
    drop(first);
    let third = third.grant.try_recv().expect("now it has one");
    drop((third, other));
    assert_eq!(admission.running(), 1);
}

#[tokio::test]
async fn reports_position_and_removes_executions() {
    let admission = admission(1, 3);
    let slot = admission.admit(&tenant("a")).await.unwrap();
    let (first, second) = (request("a", Lane::Queued), request("a", Lane::Queued));
    let (one, two) = (first.execution.unwrap(), second.execution.unwrap());
    let first = entry_of(admission.request(first).unwrap());
    let second = entry_of(admission.request(second).unwrap());
    let position = |id| {
        admission
            .position(&tenant("a"), id)
            .map(|found| (found.position, found.waiting))
    };
    assert_eq!((position(one), position(two)), (Some((1, 2)), Some((2, 2))));
    admission.remove(&tenant("a"), one);
    assert_eq!((position(one), position(two)), (None, Some((1, 1))));
    assert!(Ticket::Waiting(first).slot().await.is_none());
    drop(slot);
    assert!(Ticket::Waiting(second).slot().await.is_some());
    assert_eq!(admission.running(), 0);
}

/// One step of the model.
#[derive(Clone, Debug)]
enum Action {
    /// Requests a slot: which tenant, in which lane.
    Arrive(usize, Lane),
    /// The n-th holder releases its slot.
    Finish(usize),
    /// The n-th waiting request is dropped.
    Leave(usize),
    /// The n-th waiting request is removed.
    Remove(usize),
    /// The n-th waiting request polls for its slot.
    Poll(usize),
}

fn action() -> impl proptest::strategy::Strategy<Value = Action> {
    use proptest::prelude::*;
    let lane = prop_oneof![Just(Lane::Interactive), Just(Lane::Queued), Just(Lane::Recovered)];
    prop_oneof![
        4 => (0..3_usize, lane).prop_map(|(tenant, lane)| Action::Arrive(tenant, lane)),
        3 => (0..8_usize).prop_map(Action::Finish),
        1 => (0..8_usize).prop_map(Action::Leave),
        1 => (0..8_usize).prop_map(Action::Remove),
        3 => (0..8_usize).prop_map(Action::Poll),
    ]
}

/// All that is world: who holds a slot, and who waits with what name.
#[derive(Default)]
struct World {
    slots: Vec<Slot>,
    waiting: Vec<(Tenant, ExecutionId, QueueEntry)>,
}

const NAMES: [&str; 3] = ["a", "b", "c"];
const SLOTS: usize = 3;
const PER_TENANT: usize = 2;

impl World {
    fn apply(&mut self, admission: &Admission, action: Action) {
        let nth = |n: usize, len: usize| (len > 0).then(|| n % len);
        match action {
            Action::Arrive(tenant, lane) => {
                let request = request(NAMES[tenant], lane);
                let (tenant, id) = (request.tenant.clone(), request.execution.unwrap());
                match admission.request(request) {
                    Ok(Ticket::Granted(slot)) => self.slots.push(slot),
                    Ok(Ticket::Waiting(waiting)) => self.waiting.push((tenant, id, waiting)),
                    Err(error) => assert!(error.retry_after().is_some()),
                }
            }
            Action::Finish(n) => drop(nth(n, self.slots.len()).map(|n| self.slots.remove(n))),
            Action::Leave(n) => drop(nth(n, self.waiting.len()).map(|n| self.waiting.remove(n))),
            Action::Remove(n) => {
                if let Some(n) = nth(n, self.waiting.len()) {
                    let (tenant, id, _) = &self.waiting[n];
                    admission.remove(tenant, *id);
                }
            }
            Action::Poll(n) => {
                if let Some(n) = nth(n, self.waiting.len()) {
                    match self.waiting[n].2.grant.try_recv() {
                        Ok(slot) => {
                            self.slots.push(slot);
                            self.waiting.remove(n);
                        }
                        Err(oneshot::error::TryRecvError::Empty) => {}
                        Err(oneshot::error::TryRecvError::Closed) => drop(self.waiting.remove(n)),
                    }
                }
            }
        }
    }
}

/// No slot is lost or granted twice, no tenant exceeds its share, and no request waits for a free slot, except for the slot that
/// is reserved for interactive requests while a queued execution runs.
fn assert_invariants(admission: &Admission) {
    let state = admission.0.state();
    let running: usize = state.running.values().sum();
    assert_eq!(running + state.free, SLOTS);
    assert!(
        state
            .running
            .values()
            .all(|running| (1..=PER_TENANT).contains(running))
    );
    if state.free > 0 {
        for name in NAMES.map(tenant) {
            let queued = match state.open_lanes() {
                Some(OpenLanes::All) => state.queue.len_of(&name, Lane::Queued),
                Some(OpenLanes::Interactive) | None => 0,
            };
            let waits = state.queue.len_of(&name, Lane::Interactive) + queued;
            assert!(
                waits == 0 || state.running.get(&name) == Some(&PER_TENANT),
                "{name} waits although a slot is free"
            );
        }
    }
}

proptest::proptest! {
    /// C-10: any actions in any order.
    #[test]
    fn no_slot_is_lost_and_no_request_waits_for_a_free_slot(actions in proptest::collection::vec(action(), 1..200)) {
        let admission = Admission::new(AdmissionLimits {
            slots: SLOTS,
            slots_per_tenant: PER_TENANT,
            interactive: 2,
            queued: 2,
            wait: Duration::from_secs(10),
        });
        let mut world = World::default();
        for action in actions {
            world.apply(&admission, action);
            assert_invariants(&admission);
        }
        drop(world);
        assert_invariants(&admission);
        assert_eq!((admission.running(), admission.waiting()), (0, 0));
    }
}

/// C-10: the same from many threads at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn requests_of_many_threads_are_all_granted() {
    let admission = Arc::new(Admission::new(AdmissionLimits {
        slots: SLOTS,
        slots_per_tenant: PER_TENANT,
        interactive: 1000,
        queued: 1000,
        wait: Duration::from_secs(60),
    }));
    let requests = (0..900).map(|n| {
        let admission = admission.clone();
        tokio::spawn(async move {
            let lane = [Lane::Interactive, Lane::Queued, Lane::Recovered][n % 3];
            let ticket = admission.request(request(NAMES[n % NAMES.len()], lane)).unwrap();
            if n % 7 == 0 {
                return;
            }
            let slot = ticket.slot().await.expect("nothing removes it");
            tokio::task::yield_now().await;
            drop(slot);
        })
    });
    for request in requests.collect::<Vec<_>>() {
        request.await.unwrap();
    }
    assert_eq!((admission.running(), admission.waiting()), (0, 0));
}

/// while interactive requests arrive, the next one finds a slot however long the queue is; and the queue still advances.
#[tokio::test]
async fn the_queue_reserves_a_slot_for_interactive_requests() {
    let admission = admission(2, 3);
    let queued = |name| admission.request(request(name, Lane::Queued)).unwrap();
    let granted = |entry: &mut QueueEntry| entry.grant.try_recv().ok();
    // No interactive requests: the queue has all slots.
    let (first, second) = (queued("a"), queued("a"));
    assert_eq!(admission.running(), 2);
    let mut third = entry_of(queued("a"));
    let mut caller = entry_of(admission.request(request("b", Lane::Interactive)).unwrap());
    drop(first);
    let caller = granted(&mut caller).expect("the other tenant's turn");
    assert!(granted(&mut third).is_none());
    drop(caller);
    assert!(
        granted(&mut third).is_none(),
        "a queued execution runs, and interactive requests arrive"
    );
    let caller = admission.admit(&tenant("b")).await.unwrap();
    drop(second);
    let third = granted(&mut third).expect("no queued execution runs any more");
    drop((third, caller));
    assert_eq!(admission.running(), 0);
}

/// thousands of submissions do not delay an interactive request, which in turn delays them only briefly.
#[tokio::test(start_paused = true)]
async fn submissions_yield_briefly_to_interactive_requests() {
    let admission = admission(4, 1);
    let entered = |lane| admission.request(request("a", lane)).unwrap();
    let submission = request("a", Lane::Queued);
    let is_held_up =
        || futures::FutureExt::now_or_never(admission.yield_to_interactive(&submission)).is_none();
    let _queued = entered(Lane::Queued);
    assert!(!is_held_up(), "no interactive request arrived");
    let caller = entered(Lane::Interactive);
    let mut held_up = Box::pin(admission.yield_to_interactive(&submission));
    assert!(futures::poll!(&mut held_up).is_pending());
    drop(caller);
    assert!(
        futures::poll!(&mut held_up).is_ready(),
        "no interactive request is left"
    );
    let _caller = entered(Lane::Interactive);
    let began = Instant::now();
    admission.yield_to_interactive(&submission).await;
    assert!(began.elapsed() >= limits::YIELD_MAX);
    assert!(!is_held_up(), "a long execution is not waited for");
    let _callers = [entered(Lane::Interactive), entered(Lane::Interactive)];
    assert!(is_held_up());
    let _line = [(); 3].map(|()| entered(Lane::Queued));
    assert!(!is_held_up(), "the queue would reject it");
}
