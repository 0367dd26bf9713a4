//! Promises about executions that wait, and about requests that are sent again.

use super::Place;
use super::samples::{at, execution, outcome, skill, tenant};
use crate::execution::{ChosenBackend, NewExecution, Status};
use crate::ids::{Digest, ExecutionId, InstanceId, Tenant};
use crate::limits;
use crate::store::{Conflict, Enqueued, Error, KeyedRequest, QueueRecovery, Queued, Store};

fn waiting(micros: i64) -> NewExecution {
    NewExecution {
        backend: None,
        ..execution(micros)
    }
}

fn queued(execution: NewExecution) -> Queued {
    Queued {
        execution,
        request: Some(b"{\"what\": 1}".to_vec()),
        key: None,
    }
}

fn keyed(key: &str, request: &str, since: i64) -> KeyedRequest {
    KeyedRequest {
        key: key.parse().unwrap(),
        fingerprint: Digest::of(request.as_bytes()),
        since: at(since),
    }
}

async fn status(store: &Store, new: &NewExecution) -> Status {
    store.execution(&new.tenant, new.id).await.unwrap().status
}

pub(in crate::store) async fn queued_execution_starts_once_and_its_request_is_deleted(place: &impl Place) {
    let store = place.open().await;
    let new = waiting(1);
    assert_eq!(store.enqueue(queued(new.clone())).await.unwrap(), Enqueued::New);
    let there = store.execution(&new.tenant, new.id).await.unwrap();
    assert_eq!((there.new, there.status), (new.clone(), Status::Queued));
    let request = store.queued_request(&new.tenant, new.id).await.unwrap();
    assert_eq!(request, b"{\"what\": 1}");
    assert!(
        !store
            .finish(&new.tenant, new.id, outcome(Status::Success))
            .await
            .unwrap()
    );

    let started = NewExecution {
        instance: InstanceId::generate(),
        image: "other".to_owned(),
        backend: Some(ChosenBackend {
            name: "native".to_owned(),
            reason: "configured".to_owned(),
            degraded: vec!["P6".to_owned()],
        }),
        ..new.clone()
    };
    assert!(store.start_queued(started.clone()).await.unwrap());
    assert!(!store.start_queued(started.clone()).await.unwrap(), "once");
    let there = store.execution(&new.tenant, new.id).await.unwrap();
    assert_eq!((there.new, there.status), (started, Status::Running));
    let gone = store.queued_request(&new.tenant, new.id).await;
    assert!(matches!(gone, Err(Error::NotFound(_))));
    assert!(
        !store
            .finish_queued(&new.tenant, new.id, outcome(Status::Cancelled))
            .await
            .unwrap()
    );
    assert!(!store.delete_queued(&new.tenant, new.id).await.unwrap());
    assert!(
        store
            .finish(&new.tenant, new.id, outcome(Status::Success))
            .await
            .unwrap()
    );
}

/// C-11.
pub(in crate::store) async fn finished_or_deleted_queued_execution_never_starts(place: &impl Place) {
    let store = place.open().await;
    let (cancelled, withdrawn) = (waiting(0), waiting(0));
    for new in [&cancelled, &withdrawn] {
        store.enqueue(queued(new.clone())).await.unwrap();
    }
    let foreign = tenant("other");
    assert!(
        !store
            .finish_queued(&foreign, cancelled.id, outcome(Status::Cancelled))
            .await
            .unwrap()
    );
    assert!(!store.delete_queued(&foreign, withdrawn.id).await.unwrap());
    let end = outcome(Status::Cancelled);
    assert!(
        store
            .finish_queued(&cancelled.tenant, cancelled.id, end.clone())
            .await
            .unwrap()
    );
    assert!(
        store
            .delete_queued(&withdrawn.tenant, withdrawn.id)
            .await
            .unwrap()
    );
    for new in [&cancelled, &withdrawn] {
        let new = NewExecution {
            backend: execution(0).backend,
            ..new.clone()
        };
        assert!(!store.start_queued(new.clone()).await.unwrap());
        assert!(store.queued_request(&new.tenant, new.id).await.is_err());
    }
    let there = store.execution(&cancelled.tenant, cancelled.id).await.unwrap();
    assert_eq!((there.status, there.outcome), (Status::Cancelled, Some(end)));
    let gone = store.execution(&withdrawn.tenant, withdrawn.id).await;
    assert!(matches!(gone, Err(Error::NotFound(_))));
}

pub(in crate::store) async fn repeated_request_returns_same_execution(place: &impl Place) {
    let store = place.open().await;
    let ask = async |new: &NewExecution, key: KeyedRequest| {
        let queued = Queued {
            key: Some(key),
            ..queued(new.clone())
        };
        store.enqueue(queued).await
    };
    let (first, second) = (waiting(10), waiting(11));
    let before = async |key| store.execution_by_key(&first.tenant, key).await;
    assert_eq!(before(keyed("k", "a", 0)).await.unwrap(), None);
    assert_eq!(ask(&first, keyed("k", "a", 0)).await.unwrap(), Enqueued::New);
    assert_eq!(before(keyed("k", "a", 0)).await.unwrap(), Some(first.id));
    let other = before(keyed("k", "b", 0)).await;
    assert!(matches!(
        other,
        Err(Error::Conflict {
            conflict: Conflict::OtherRequest,
            ..
        })
    ));
    assert_eq!(
        ask(&second, keyed("k", "a", 0)).await.unwrap(),
        Enqueued::Duplicate(first.id)
    );
    let other = ask(&second, keyed("k", "b", 0)).await;
    assert!(matches!(
        other,
        Err(Error::Conflict {
            conflict: Conflict::OtherRequest,
            ..
        })
    ));
    assert!(
        store.execution(&second.tenant, second.id).await.is_err(),
        "nothing was recorded"
    );
    let of_other = NewExecution {
        tenant: tenant("other"),
        ..waiting(12)
    };
    assert_eq!(ask(&of_other, keyed("k", "b", 0)).await.unwrap(), Enqueued::New);
    // After its time the key is free.
    assert_eq!(ask(&second, keyed("k", "b", 11)).await.unwrap(), Enqueued::New);
    store.delete_idempotency_keys(at(12)).await.unwrap();
    let third = waiting(13);
    assert_eq!(ask(&third, keyed("k", "c", 0)).await.unwrap(), Enqueued::New);
    assert!(store.delete_queued(&third.tenant, third.id).await.unwrap());
    let fourth = waiting(14);
    assert_eq!(
        ask(&fourth, keyed("k", "d", 0)).await.unwrap(),
        Enqueued::New,
        "it went with it"
    );
}

/// Safe under concurrency: of many one counts.
pub(in crate::store) async fn concurrent_repeated_requests_create_one_execution(place: &impl Place) {
    let stores = [place.open().await, place.open().await];
    let asked = (0..20).zip(stores.iter().cycle()).map(|(n, store)| async move {
        let new = waiting(n);
        let queued = Queued {
            key: Some(keyed("k", "a", 0)),
            ..queued(new.clone())
        };
        (new.id, store.enqueue(queued).await.unwrap())
    });
    let asked = futures::future::join_all(asked).await;
    let new: Vec<ExecutionId> = asked
        .iter()
        .filter_map(|(id, enqueued)| (*enqueued == Enqueued::New).then_some(*id))
        .collect();
    assert_eq!(new.len(), 1);
    assert!(
        asked
            .iter()
            .all(|(id, enqueued)| *id == new[0] || *enqueued == Enqueued::Duplicate(new[0]))
    );
}

/// F-02: what waited in a process that died waits in the next one; where the request went with its caller, it is ended.
pub(in crate::store) async fn queue_of_dead_process_is_recovered_in_order(place: &impl Place) {
    let store = place.open().await;
    let (dead, heir) = (InstanceId::generate(), InstanceId::generate());
    let of = |micros, owner: &str| NewExecution {
        instance: dead,
        tenant: tenant(owner),
        ..waiting(micros)
    };
    let (late, early, alone) = (of(9, "a"), of(3, "b"), of(5, "a"));
    for new in [&late, &early] {
        store.enqueue(queued(new.clone())).await.unwrap();
    }
    let without = Queued {
        request: None,
        ..queued(alone.clone())
    };
    store.enqueue(without).await.unwrap();
    assert_eq!(store.queue_owners().await.unwrap(), [dead]);
    assert!(
        store.interrupt_running(dead, at(20)).await.unwrap().is_empty(),
        "nothing of it runs"
    );
    let recovery = |micros| QueueRecovery {
        dead,
        new_owner: heir,
        at: at(micros),
    };
    let adopted = store.recover_queue(recovery(20)).await.unwrap();
    let expected: Vec<(Tenant, ExecutionId)> =
        [&early, &late].map(|new| (new.tenant.clone(), new.id)).to_vec();
    assert_eq!(adopted, expected);
    assert_eq!(store.queue_owners().await.unwrap(), [heir]);
    assert!(store.recover_queue(recovery(21)).await.unwrap().is_empty());
    assert_eq!(status(&store, &alone).await, Status::Interrupted);
    assert_eq!(status(&store, &early).await, Status::Queued);
}

///
pub(in crate::store) async fn queued_requests_of_a_tenant_are_limited_in_total(place: &impl Place) {
    let store = place.open().await;
    let half = usize::try_from(limits::QUEUED_BYTES_MAX / 2).unwrap();
    let large = |owner: &str| Queued {
        request: Some(vec![b' '; half]),
        ..queued(NewExecution {
            tenant: tenant(owner),
            ..waiting(0)
        })
    };
    let first = large("a");
    for queued in [first.clone(), large("a"), large("b")] {
        store.enqueue(queued).await.unwrap();
    }
    let more = Queued {
        request: Some(vec![b' ']),
        ..large("a")
    };
    let refused = store.enqueue(more.clone()).await;
    assert!(matches!(refused, Err(Error::Quota)));
    assert!(
        store
            .execution(&more.execution.tenant, more.execution.id)
            .await
            .is_err()
    );
    let (owner, id) = (&first.execution.tenant, first.execution.id);
    assert!(store.delete_queued(owner, id).await.unwrap());
    store.enqueue(more).await.unwrap();
}

///
pub(in crate::store) async fn counts_stored_bytes_of_tenant(place: &impl Place) {
    let store = place.open().await;
    let owner = Tenant::default_tenant();
    let used = async || store.storage_used(&owner).await.unwrap();
    assert_eq!(used().await, 0);
    let published = skill("csv@1.2.0");
    store.publish(published.clone()).await.unwrap();
    store.publish(published.clone()).await.unwrap();
    assert_eq!(used().await, published.archive_bytes, "once");
    let new = execution(0);
    store.insert_running(new.clone(), || ()).await.unwrap();
    let end = outcome(Status::Success);
    store.finish(&owner, new.id, end.clone()).await.unwrap();
    store.finish(&owner, new.id, end.clone()).await.unwrap();
    let left = used().await - published.archive_bytes;
    let texts = end.output.unwrap().as_str().len() + end.logs.stdout.len() + end.logs.stderr.len();
    assert!(left >= end.files[0].size + texts as u64, "{left}");
    assert_eq!(store.storage_used(&tenant("other")).await.unwrap(), 0);
    store.delete_execution(&owner, new.id).await.unwrap();
    assert_eq!(used().await, published.archive_bytes);
    store
        .delete_version(&owner, &published.name, &published.version)
        .await
        .unwrap();
    assert_eq!(used().await, 0);
}
