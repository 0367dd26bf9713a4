//! Claims about who goes first.

use super::*;

fn admission(slots: usize, callers: usize) -> Admission {
    Admission::new(Bounds {
        slots,
        slots_of_tenant: slots,
        callers,
        queued: 3,
        wait: Duration::from_secs(10),
    })
}

fn tenant(name: &str) -> Tenant {
    name.parse().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_sends_away_and_a_long_wait_ends() {
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
async fn who_came_first_goes_first_and_who_leaves_gives_up_the_place() {
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
async fn a_closing_server_sends_the_waiting_away() {
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
async fn who_waits_gets_the_slot_that_is_freed() {
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
async fn a_tenant_that_fills_its_queue_keeps_nobody_else_waiting() {
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
async fn a_slot_sent_to_one_that_has_left_is_passed_on() {
    let admission = admission(1, 3);
    let slot = admission.admit(&tenant("a")).await.unwrap();
    let Place::Line(place) = admission.enter(comer("a", Lane::Caller)).unwrap() else {
        panic!("there is no free slot");
    };
    drop(slot);
    assert_eq!(admission.0.state().free, 0, "the slot was sent");
    drop(place);
    assert_eq!(admission.0.state().free, 1);
}

fn comer(name: &str, lane: Lane) -> Comer {
    Comer {
        tenant: tenant(name),
        lane,
        execution: Some(ExecutionId::generate()),
    }
}

fn place_of(entered: Place) -> Waiting {
    match entered {
        Place::Line(place) => place,
        Place::Slot(_) => panic!("there is no free slot"),
    }
}

///
#[tokio::test]
async fn all_may_wait_for_so_many_in_all() {
    let admission = admission(1, 1);
    let _slot = admission.admit(&tenant("x")).await.unwrap();
    let mut places = Vec::new();
    for name in ["a", "b", "c", "d"] {
        places.push(place_of(admission.enter(comer(name, Lane::Caller)).unwrap()));
    }
    let refused = admission.enter(comer("e", Lane::Caller)).unwrap_err();
    assert_eq!(refused.code(), Code::Busy);
    assert!(refused.retry_after().is_some());
    assert!(admission.enter(comer("e", Lane::Queued)).is_ok(), "another lane");
}

///
#[tokio::test]
async fn a_full_queue_is_refused_and_says_when_to_come_back() {
    let admission = admission(1, 1);
    let _slot = admission.admit(&tenant("a")).await.unwrap();
    let mut places = Vec::new();
    for _ in 0..3 {
        places.push(place_of(admission.enter(comer("a", Lane::Queued)).unwrap()));
    }
    let refused = admission.enter(comer("a", Lane::Queued)).unwrap_err();
    assert_eq!(refused.code(), Code::RateLimited);
    assert!(refused.retry_after().is_some());
    places.push(place_of(admission.enter(comer("a", Lane::Adopted)).unwrap()));
    assert!(admission.enter(comer("b", Lane::Queued)).is_ok());
}

#[tokio::test]
async fn callers_and_the_queue_take_turns() {
    let admission = admission(1, 3);
    let mut slot = admission.admit(&tenant("a")).await.unwrap();
    let mut places = Vec::new();
    for lane in [
        Lane::Queued,
        Lane::Queued,
        Lane::Queued,
        Lane::Caller,
        Lane::Caller,
    ] {
        places.push((lane, place_of(admission.enter(comer("a", lane)).unwrap())));
    }
    let mut order = Vec::new();
    while !places.is_empty() {
        drop(slot);
        let served = places
            .iter_mut()
            .position(|(_, place)| !place.turn.is_empty())
            .unwrap();
        let (lane, mut place) = places.remove(served);
        slot = place.turn.try_recv().unwrap();
        order.push(lane);
    }
    assert_eq!(
        order,
        [
            Lane::Caller,
            Lane::Queued,
            Lane::Caller,
            Lane::Queued,
            Lane::Queued
        ]
    );
}

#[tokio::test]
async fn a_tenant_has_so_many_slots_and_others_have_the_rest() {
    let admission = Admission::new(Bounds {
        slots: 3,
        slots_of_tenant: 2,
        callers: 3,
        queued: 3,
        wait: Duration::from_secs(10),
    });
    let first = admission.admit(&tenant("a")).await.unwrap();
    let _second = admission.admit(&tenant("a")).await.unwrap();
    let mut third = place_of(admission.enter(comer("a", Lane::Caller)).unwrap());
    let other = admission.admit(&tenant("b")).await.unwrap();
    let mut waiting = place_of(admission.enter(comer("b", Lane::Caller)).unwrap());
    assert_eq!(admission.running(), 3);
    drop(other);
    let other = waiting
        .turn
        .try_recv()
        .expect("the other tenant goes first: the first one has its two");
    drop(first);
    let third = third.turn.try_recv().expect("now it has one");
    drop((third, other));
    assert_eq!(admission.running(), 1);
}

#[tokio::test]
async fn an_execution_knows_its_place_and_can_be_sent_away() {
    let admission = admission(1, 3);
    let slot = admission.admit(&tenant("a")).await.unwrap();
    let (first, second) = (comer("a", Lane::Queued), comer("a", Lane::Queued));
    let (one, two) = (first.execution.unwrap(), second.execution.unwrap());
    let first = place_of(admission.enter(first).unwrap());
    let second = place_of(admission.enter(second).unwrap());
    let position = |id| {
        admission
            .place(&tenant("a"), id)
            .map(|place| (place.position, place.waiting))
    };
    assert_eq!((position(one), position(two)), (Some((1, 2)), Some((2, 2))));
    admission.send_away(&tenant("a"), one);
    assert_eq!((position(one), position(two)), (None, Some((1, 1))));
    assert!(Place::Line(first).turn().await.is_none());
    drop(slot);
    assert!(Place::Line(second).turn().await.is_some());
    assert_eq!(admission.running(), 0);
}

/// What somebody does.
#[derive(Clone, Debug)]
enum Act {
    /// Wants a slot: which tenant, in which lane.
    Come(usize, Lane),
    /// The n-th of those that hold a slot gives it back.
    Finish(usize),
    /// The n-th of those that wait leaves.
    Leave(usize),
    /// The n-th of those that wait is sent away.
    SendAway(usize),
    /// The n-th of those that wait looks whether its turn has come.
    Look(usize),
}

fn act() -> impl proptest::strategy::Strategy<Value = Act> {
    use proptest::prelude::*;
    let lane = prop_oneof![Just(Lane::Caller), Just(Lane::Queued), Just(Lane::Adopted)];
    prop_oneof![
        4 => (0..3_usize, lane).prop_map(|(tenant, lane)| Act::Come(tenant, lane)),
        3 => (0..8_usize).prop_map(Act::Finish),
        1 => (0..8_usize).prop_map(Act::Leave),
        1 => (0..8_usize).prop_map(Act::SendAway),
        3 => (0..8_usize).prop_map(Act::Look),
    ]
}

/// All that is outside: who holds a slot, and who waits with what name.
#[derive(Default)]
struct Outside {
    slots: Vec<Slot>,
    waiting: Vec<(Tenant, ExecutionId, Waiting)>,
}

const NAMES: [&str; 3] = ["a", "b", "c"];
const SLOTS: usize = 3;
const OF_TENANT: usize = 2;

impl Outside {
    fn does(&mut self, admission: &Admission, act: Act) {
        let nth = |n: usize, len: usize| (len > 0).then(|| n % len);
        match act {
            Act::Come(tenant, lane) => {
                let comer = comer(NAMES[tenant], lane);
                let (tenant, id) = (comer.tenant.clone(), comer.execution.unwrap());
                match admission.enter(comer) {
                    Ok(Place::Slot(slot)) => self.slots.push(slot),
                    Ok(Place::Line(waiting)) => self.waiting.push((tenant, id, waiting)),
                    Err(error) => assert!(error.retry_after().is_some()),
                }
            }
            Act::Finish(n) => drop(nth(n, self.slots.len()).map(|n| self.slots.remove(n))),
            Act::Leave(n) => drop(nth(n, self.waiting.len()).map(|n| self.waiting.remove(n))),
            Act::SendAway(n) => {
                if let Some(n) = nth(n, self.waiting.len()) {
                    let (tenant, id, _) = &self.waiting[n];
                    admission.send_away(tenant, *id);
                }
            }
            Act::Look(n) => {
                if let Some(n) = nth(n, self.waiting.len()) {
                    match self.waiting[n].2.turn.try_recv() {
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

/// No slot is lost or given twice, no tenant has more than its share, and nobody waits for what is free, but for the one slot that
/// the queue leaves to callers while something of it runs.
fn all_is_well(admission: &Admission) {
    let state = admission.0.state();
    let running: usize = state.running.values().sum();
    assert_eq!(running + state.free, SLOTS);
    assert!(
        state
            .running
            .values()
            .all(|running| (1..=OF_TENANT).contains(running))
    );
    if state.free > 0 {
        for name in NAMES.map(tenant) {
            let queued = match state.open_to() {
                Some(OpenTo::All) => state.line.of_tenant(&name, Lane::Queued),
                Some(OpenTo::Callers) | None => 0,
            };
            let waits = state.line.of_tenant(&name, Lane::Caller) + queued;
            assert!(
                waits == 0 || state.running.get(&name) == Some(&OF_TENANT),
                "{name} waits for what is free"
            );
        }
    }
}

proptest::proptest! {
    /// C-10: whatever happens in whatever order.
    #[test]
    fn no_slot_is_lost_and_nobody_waits_for_what_is_free(acts in proptest::collection::vec(act(), 1..200)) {
        let admission = Admission::new(Bounds {
            slots: SLOTS,
            slots_of_tenant: OF_TENANT,
            callers: 2,
            queued: 2,
            wait: Duration::from_secs(10),
        });
        let mut outside = Outside::default();
        for act in acts {
            outside.does(&admission, act);
            all_is_well(&admission);
        }
        drop(outside);
        all_is_well(&admission);
        assert_eq!((admission.running(), admission.waiting()), (0, 0));
    }
}

/// C-10: the same from many threads at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn turns_taken_from_many_threads_all_come() {
    let admission = Arc::new(Admission::new(Bounds {
        slots: SLOTS,
        slots_of_tenant: OF_TENANT,
        callers: 1000,
        queued: 1000,
        wait: Duration::from_secs(60),
    }));
    let comers = (0..900).map(|n| {
        let admission = admission.clone();
        tokio::spawn(async move {
            let lane = [Lane::Caller, Lane::Queued, Lane::Adopted][n % 3];
            let place = admission.enter(comer(NAMES[n % NAMES.len()], lane)).unwrap();
            if n % 7 == 0 {
                return;
            }
            let slot = place.turn().await.expect("nobody sends it away");
            tokio::task::yield_now().await;
            drop(slot);
        })
    });
    for comer in comers.collect::<Vec<_>>() {
        comer.await.unwrap();
    }
    assert_eq!((admission.running(), admission.waiting()), (0, 0));
}

/// as long as callers come, the next one finds a slot, however much is in the queue; and the queue always goes on.
#[tokio::test]
async fn the_queue_leaves_a_slot_to_callers() {
    let admission = admission(2, 3);
    let queued = |name| admission.enter(comer(name, Lane::Queued)).unwrap();
    let turn = |place: &mut Waiting| place.turn.try_recv().ok();
    // Nobody calls: the queue has it all.
    let (first, second) = (queued("a"), queued("a"));
    assert_eq!(admission.running(), 2);
    let mut third = place_of(queued("a"));
    let mut caller = place_of(admission.enter(comer("b", Lane::Caller)).unwrap());
    drop(first);
    let caller = turn(&mut caller).expect("the other tenant's turn");
    assert!(turn(&mut third).is_none());
    drop(caller);
    assert!(
        turn(&mut third).is_none(),
        "one of the queue runs, and callers come"
    );
    let caller = admission.admit(&tenant("b")).await.unwrap();
    drop(second);
    let third = turn(&mut third).expect("nothing of the queue runs any more");
    drop((third, caller));
    assert_eq!(admission.running(), 0);
}

/// a tenant that submits thousands hinders nobody who has just asked for one, and is not held up by him for long.
#[tokio::test(start_paused = true)]
async fn what_is_submitted_gives_way_to_callers_for_a_moment() {
    let admission = admission(4, 1);
    let entered = |lane| admission.enter(comer("a", lane)).unwrap();
    let submission = comer("a", Lane::Queued);
    let is_held_up = || futures::FutureExt::now_or_never(admission.give_way(&submission)).is_none();
    let _queued = entered(Lane::Queued);
    assert!(!is_held_up(), "nobody calls");
    let caller = entered(Lane::Caller);
    let mut held_up = Box::pin(admission.give_way(&submission));
    assert!(futures::poll!(&mut held_up).is_pending());
    drop(caller);
    assert!(futures::poll!(&mut held_up).is_ready(), "nobody calls any more");
    let _caller = entered(Lane::Caller);
    let began = Instant::now();
    admission.give_way(&submission).await;
    assert!(began.elapsed() >= limits::GIVE_WAY_MAX);
    assert!(!is_held_up(), "one that runs for long is not waited for");
    let _callers = [entered(Lane::Caller), entered(Lane::Caller)];
    assert!(is_held_up());
    let _line = [(); 3].map(|()| entered(Lane::Queued));
    assert!(!is_held_up(), "there is no room that it could wait for");
}
