//! Promises about webhooks: none is lost, none is sent by two, none is anybody else's.

use super::Place;
use super::samples::{at, execution, outcome, tenant};
use crate::execution::{NewExecution, Outcome, Status};
use crate::ids::{DeliveryId, ExecutionId, InstanceId, Tenant};
use crate::limits;
use crate::store::{
    Attempt, ClaimedDelivery, Conflict, Delivery, DeliveryClaim, DeliveryStatus, Error, NextStep,
    QueueRecovery, Queued, Retention, SealedSigningSecret, Store,
};

const FOR_EVER: i64 = 1 << 50;

fn told(owner: &str, host: &str, micros: i64) -> NewExecution {
    NewExecution {
        tenant: tenant(owner),
        callback_url: format!("https://{host}/hook?token=x").parse().ok(),
        ..execution(micros)
    }
}

/// One that has ended at this microsecond, and so is due.
pub(in crate::store) async fn ended(store: &Store, owner: &str, host: &str, micros: i64) -> NewExecution {
    let new = told(owner, host, micros);
    store.insert_running(new.clone(), || ()).await.unwrap();
    let end = Outcome {
        finished_at: at(micros),
        ..outcome(Status::Success)
    };
    assert!(store.finish(&new.tenant, new.id, end).await.unwrap());
    new
}

pub(in crate::store) fn claim(now: i64) -> DeliveryClaim {
    DeliveryClaim {
        now: at(now),
        until: at(now + 100),
        rows: 100,
        per_tenant: 100,
        per_host: 100,
    }
}

async fn claimed(store: &Store, claim: DeliveryClaim) -> Vec<ClaimedDelivery> {
    store.claim_deliveries(claim).await.unwrap()
}

async fn of(store: &Store, new: &NewExecution) -> Delivery {
    store
        .execution_delivery(&new.tenant, new.id)
        .await
        .unwrap()
        .unwrap()
}

fn ending(claimed: &ClaimedDelivery, next: NextStep) -> Attempt {
    Attempt {
        id: claimed.delivery.id,
        attempts: claimed.delivery.attempts,
        status: Some(500),
        error: Some("it's '; drop table deliveries; --".to_owned()),
        next,
    }
}

fn executions(claimed: &[ClaimedDelivery]) -> Vec<ExecutionId> {
    claimed.iter().map(|claimed| claimed.delivery.execution).collect()
}

/// F-01: a webhook exists from the start and becomes due at the end, whether [`Store::finish`] or another process records it.
pub(in crate::store) async fn every_outcome_makes_its_webhook_due(place: &impl Place) {
    let store = place.open().await;
    let dead = InstanceId::generate();
    let [finished, interrupted, running] = ["a", "b", "c"].map(|owner| NewExecution {
        instance: dead,
        ..told(owner, "hooks.example", 1)
    });
    for new in [&finished, &interrupted] {
        store.insert_running(new.clone(), || ()).await.unwrap();
    }
    let silent = execution(1);
    store.insert_running(silent.clone(), || ()).await.unwrap();
    assert_eq!(store.next_delivery().await.unwrap(), None);
    assert_eq!(of(&store, &finished).await.status, DeliveryStatus::Waiting);
    let read = store.execution(&finished.tenant, finished.id).await.unwrap();
    assert_eq!(read.new, finished);

    let end = || Outcome {
        finished_at: at(5),
        ..outcome(Status::Failed)
    };
    store.finish(&finished.tenant, finished.id, end()).await.unwrap();
    store.finish(&silent.tenant, silent.id, end()).await.unwrap();
    store.interrupt_running(dead, at(7)).await.unwrap();
    store
        .insert_running(
            NewExecution {
                instance: InstanceId::generate(),
                ..running
            },
            || (),
        )
        .await
        .unwrap();
    assert_eq!(store.next_delivery().await.unwrap(), Some(at(5)));
    assert!(claimed(&store, claim(4)).await.is_empty());
    let mut found = claimed(&store, claim(7)).await;
    found.sort_by_key(|claimed| claimed.delivery.next_at);
    assert_eq!(executions(&found), [finished.id, interrupted.id]);
    let statuses = found.iter().map(|claimed| claimed.execution.status);
    assert_eq!(
        statuses.collect::<Vec<_>>(),
        [Status::Failed, Status::Interrupted]
    );
    assert_eq!(found[0].delivery.url, finished.callback_url.unwrap());
    assert_eq!(
        store.execution_delivery(&silent.tenant, silent.id).await.unwrap(),
        None
    );
}

/// The same for executions that never ran: cancelled, rejected or left by a dead process. A withdrawn one has no webhook.
pub(in crate::store) async fn outcomes_of_queued_executions_make_webhooks_due(place: &impl Place) {
    let store = place.open().await;
    let dead = InstanceId::generate();
    let [refused, alone, withdrawn] = ["a", "b", "c"].map(|owner| NewExecution {
        instance: dead,
        ..told(owner, "hooks.example", 1)
    });
    for new in [&refused, &alone, &withdrawn] {
        let queued = Queued {
            execution: new.clone(),
            request: None,
            key: None,
        };
        store.enqueue(queued).await.unwrap();
    }
    assert_eq!(store.next_delivery().await.unwrap(), None);
    let end = Outcome {
        finished_at: at(5),
        ..outcome(Status::Denied)
    };
    assert!(
        store
            .finish_queued(&refused.tenant, refused.id, end)
            .await
            .unwrap()
    );
    assert!(
        store
            .delete_queued(&withdrawn.tenant, withdrawn.id)
            .await
            .unwrap()
    );
    let recovery = QueueRecovery {
        dead,
        new_owner: InstanceId::generate(),
        at: at(7),
    };
    store.recover_queue(recovery).await.unwrap();
    let mut found = claimed(&store, claim(9)).await;
    found.sort_by_key(|claimed| claimed.execution.new.tenant.clone());
    assert_eq!(executions(&found), [refused.id, alone.id]);
    let statuses = found.iter().map(|claimed| claimed.execution.status);
    assert_eq!(
        statuses.collect::<Vec<_>>(),
        [Status::Denied, Status::Interrupted]
    );
}

pub(in crate::store) async fn webhook_is_claimed_once(place: &impl Place) {
    let stores = [place.open().await, place.open().await];
    let mut all = Vec::new();
    for micros in 0..20 {
        all.push(ended(&stores[0], "a", "hooks.example", micros).await.id);
    }
    let claims = (0..10)
        .zip(stores.iter().cycle())
        .map(|(_, store)| claimed(store, DeliveryClaim { rows: 3, ..claim(50) }));
    let mut got: Vec<_> = futures::future::join_all(claims)
        .await
        .iter()
        .flat_map(|claimed| executions(claimed))
        .collect();
    while got.len() < all.len() {
        let more = claimed(&stores[1], claim(50)).await;
        assert!(!more.is_empty(), "{} of {}", got.len(), all.len());
        got.extend(executions(&more));
    }
    got.sort();
    all.sort();
    assert_eq!(got, all);
    assert!(claimed(&stores[0], claim(149)).await.is_empty());
}

/// F-01: who dies while it sends is given up, and what it says late changes nothing.
pub(in crate::store) async fn expired_claim_is_due_again(place: &impl Place) {
    let store = place.open().await;
    let new = ended(&store, "a", "hooks.example", 0).await;
    let first = claimed(&store, claim(10)).await.remove(0);
    assert_eq!((first.number, first.delivery.attempts), (1, 1));
    assert_eq!(of(&store, &new).await.status, DeliveryStatus::Sending);
    let second = claimed(&store, claim(110)).await.remove(0);
    assert_eq!((second.number, second.delivery.attempts), (2, 2));
    assert_eq!(second.delivery.id, first.delivery.id);
    assert!(
        !store
            .record_attempt(ending(&first, NextStep::Delivered))
            .await
            .unwrap()
    );
    assert_eq!(of(&store, &new).await.status, DeliveryStatus::Sending);
    assert!(
        store
            .record_attempt(ending(&second, NextStep::Gone))
            .await
            .unwrap()
    );
    assert!(
        !store
            .record_attempt(ending(&second, NextStep::Delivered))
            .await
            .unwrap()
    );
    assert_eq!(of(&store, &new).await.status, DeliveryStatus::Gone);
}

pub(in crate::store) async fn attempt_ends_or_schedules_a_retry(place: &impl Place) {
    let store = place.open().await;
    let new = ended(&store, "a", "hooks.example", 0).await;
    let first = claimed(&store, claim(1)).await.remove(0);
    store
        .record_attempt(ending(&first, NextStep::Retry(at(40))))
        .await
        .unwrap();
    let waiting = of(&store, &new).await;
    assert_eq!(
        (waiting.status, waiting.next_at, waiting.last_at),
        (DeliveryStatus::Pending, Some(at(40)), Some(at(1)))
    );
    assert_eq!(waiting.last_status, Some(500));
    assert!(waiting.last_error.unwrap().contains("drop table"));
    assert!(claimed(&store, claim(39)).await.is_empty());
    let second = claimed(&store, claim(40)).await.remove(0);
    let over = Attempt {
        status: Some(204),
        error: None,
        ..ending(&second, NextStep::Delivered)
    };
    store.record_attempt(over).await.unwrap();
    let there = of(&store, &new).await;
    assert_eq!(
        (there.status, there.attempts, there.next_at, there.last_error),
        (DeliveryStatus::Delivered, 2, None, None)
    );
    assert!(claimed(&store, claim(FOR_EVER)).await.is_empty());
    assert_eq!(store.next_delivery().await.unwrap(), None);
}

/// a receiver that never answers, and a tenant with many of them, delay no other tenant.
pub(in crate::store) async fn tenants_and_hosts_take_turns(place: &impl Place) {
    let store = place.open().await;
    for micros in 0..20 {
        ended(&store, "a", "stuck.example", micros).await;
    }
    let other_host = ended(&store, "a", "well.example", 30).await;
    for micros in 31..34 {
        ended(&store, "b", "stuck.example", micros).await;
    }
    let some = |now| DeliveryClaim {
        rows: 6,
        per_tenant: 3,
        per_host: 2,
        ..claim(now)
    };
    let hosts = |claimed: &[ClaimedDelivery]| -> Vec<String> {
        let name = |claimed: &ClaimedDelivery| {
            format!("{} {}", claimed.delivery.tenant, claimed.delivery.url.host())
        };
        let mut names: Vec<_> = claimed.iter().map(name).collect();
        names.sort();
        names
    };
    let first = claimed(&store, some(50)).await;
    let expected = [
        "a stuck.example",
        "a stuck.example",
        "a well.example",
        "b stuck.example",
        "b stuck.example",
    ];
    assert_eq!(hosts(&first), expected);
    // Until they end, the tenant gets no more.
    assert!(claimed(&store, some(51)).await.is_empty());
    let well = first
        .iter()
        .find(|claimed| claimed.delivery.execution == other_host.id)
        .unwrap();
    store
        .record_attempt(ending(well, NextStep::Delivered))
        .await
        .unwrap();
    assert!(claimed(&store, some(52)).await.is_empty());
    ended(&store, "a", "well.example", 53).await;
    assert_eq!(hosts(&claimed(&store, some(54)).await), ["a well.example"]);
    // With one place only, the tenants take it in turn.
    let one = |now| DeliveryClaim { rows: 1, ..some(now) };
    let mut turns = Vec::new();
    for now in [200, 201] {
        let claimed = claimed(&store, one(now)).await;
        turns.extend(claimed.iter().map(|claimed| claimed.delivery.tenant.to_string()));
    }
    turns.sort();
    assert_eq!(turns, ["a", "b"]);
}

/// more deliveries to a dead receiver than one query considers do not hide new ones.
pub(in crate::store) async fn long_list_for_one_host_delays_no_other_host(place: &impl Place) {
    let store = place.open().await;
    let longer = i64::from(limits::DELIVERIES_CONSIDERED) + 50;
    for micros in 0..longer {
        ended(&store, "a", "stuck.example", micros).await;
    }
    ended(&store, "a", "well.example", longer).await;
    let some = DeliveryClaim {
        per_tenant: 8,
        per_host: 4,
        ..claim(longer)
    };
    let claimed = claimed(&store, some).await;
    let is_well = |claimed: &&ClaimedDelivery| claimed.delivery.url.host() == "well.example";
    assert_eq!((claimed.len(), claimed.iter().filter(is_well).count()), (5, 1));
}

pub(in crate::store) async fn redelivery_makes_webhook_due_again(place: &impl Place) {
    let store = place.open().await;
    let running = told("a", "hooks.example", 0);
    store.insert_running(running.clone(), || ()).await.unwrap();
    let early = store
        .redeliver(&running.tenant, of(&store, &running).await.id, at(1))
        .await;
    assert!(matches!(
        early,
        Err(Error::Conflict {
            conflict: Conflict::NotEnded,
            ..
        })
    ));
    let new = ended(&store, "a", "hooks.example", 0).await;
    let first = claimed(&store, claim(1)).await.remove(0);
    let id = first.delivery.id;
    let meanwhile = store.redeliver(&new.tenant, id, at(2)).await;
    assert!(matches!(
        meanwhile,
        Err(Error::Conflict {
            conflict: Conflict::BeingSent,
            ..
        })
    ));
    store
        .record_attempt(ending(&first, NextStep::Failed))
        .await
        .unwrap();
    let again = store.redeliver(&new.tenant, id, at(9)).await.unwrap();
    assert_eq!(
        (again.status, again.next_at, again.attempts),
        (DeliveryStatus::Pending, Some(at(9)), 1)
    );
    let second = claimed(&store, claim(9)).await.remove(0);
    assert_eq!((second.number, second.delivery.attempts), (1, 2));
    // The process that sends it is considered dead.
    assert!(store.redeliver(&new.tenant, id, at(109)).await.is_ok());
    let unknown = store.redeliver(&new.tenant, DeliveryId::generate(), at(1)).await;
    assert!(matches!(unknown, Err(Error::NotFound(_))));
}

pub(in crate::store) async fn webhooks_are_deleted_with_their_execution(place: &impl Place) {
    let store = place.open().await;
    let new = ended(&store, "a", "hooks.example", 0).await;
    let retention = Retention {
        ended_before: Some(at(1)),
        per_tenant: None,
    };
    assert_eq!(
        store.expired_executions(&retention, 9).await.unwrap(),
        [(new.tenant.clone(), new.id)]
    );
    store.delete_execution(&new.tenant, new.id).await.unwrap();
    assert_eq!(store.next_delivery().await.unwrap(), None);
    assert!(claimed(&store, claim(9)).await.is_empty());
    assert!(matches!(
        store.execution_delivery(&new.tenant, new.id).await,
        Err(Error::NotFound(_))
    ));
}

/// T-02.
pub(in crate::store) async fn a_tenant_never_sees_the_webhooks_of_another(place: &impl Place) {
    let store = place.open().await;
    let mut mine = Vec::new();
    for micros in 0..5 {
        mine.push(ended(&store, "a", "hooks.example", micros).await.id);
    }
    let theirs = ended(&store, "b", "hooks.example", 9).await;
    mine.reverse();
    let (me, mut found, mut after) = (tenant("a"), Vec::new(), None);
    loop {
        let page = store.deliveries(&me, after, 2).await.unwrap();
        found.extend(page.items.iter().map(|delivery| delivery.execution));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(found, mine);
    assert!(matches!(
        store.execution_delivery(&me, theirs.id).await,
        Err(Error::NotFound(_))
    ));
    let foreign = of(&store, &theirs).await.id;
    assert!(matches!(
        store.redeliver(&me, foreign, at(1)).await,
        Err(Error::NotFound(_))
    ));
}

fn sealed(text: &[u8], micros: i64) -> SealedSigningSecret {
    SealedSigningSecret {
        sealed: text.to_vec(),
        created_at: at(micros),
        previous: None,
    }
}

pub(in crate::store) async fn signing_secret_is_created_once_and_rotated(place: &impl Place) {
    let stores = [place.open().await, place.open().await];
    let (mine, theirs) = (Tenant::default_tenant(), tenant("other"));
    assert!(matches!(
        stores[0].signing_secret(&mine).await,
        Err(Error::NotFound(_))
    ));
    let made = (0..8_u8).zip(stores.iter().cycle()).map(|(n, store)| {
        let mine = &mine;
        async move { store.init_signing_secret(mine, sealed(&[n], 1)).await.unwrap() }
    });
    let made = futures::future::join_all(made).await;
    assert!(made.iter().all(|one| *one == made[0]), "{made:?}");
    let first = made[0].sealed.clone();
    let rotated = stores[0]
        .rotate_signing_secret(&mine, sealed(b"two", 5), at(9))
        .await
        .unwrap();
    let expected = SealedSigningSecret {
        previous: Some((first, at(9))),
        ..sealed(b"two", 5)
    };
    assert_eq!(rotated, expected);
    assert_eq!(stores[1].signing_secret(&mine).await.unwrap(), expected);
    let fresh = stores[1]
        .rotate_signing_secret(&theirs, sealed(b"x", 5), at(9))
        .await
        .unwrap();
    assert_eq!(fresh, sealed(b"x", 5));
}
