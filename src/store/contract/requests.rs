//! Promises about requests that are kept with their executions.

use bytes::Bytes;

use super::Place;
use super::samples::{at, execution, outcome, tenant};
use crate::execution::{NewExecution, Status};
use crate::ids::{ExecutionId, InstanceId};
use crate::store::{Error, QueueRecovery, Queued, Store};

const REQUEST: &[u8] = b"\x78\0\xff'; drop table execution_requests; --";

fn with_request(micros: i64) -> NewExecution {
    NewExecution {
        kept_request: Some(Bytes::from_static(REQUEST)),
        ..execution(micros)
    }
}

fn queued(new: &NewExecution) -> Queued {
    Queued {
        execution: NewExecution {
            backend: None,
            ..new.clone()
        },
        request: None,
        key: None,
    }
}

async fn kept(store: &Store, new: &NewExecution) -> Option<Vec<u8>> {
    store.kept_request(&new.tenant, new.id).await.unwrap()
}

async fn has_none(store: &Store, new: &NewExecution) -> bool {
    let found = store.kept_request(&new.tenant, new.id).await;
    matches!(found, Err(Error::NotFound(_)))
}

/// Large ones are stored at another place.
const LARGE: &[u8] = &[b'x'; 5000];

///
pub(in crate::store) async fn kept_request_reads_back_until_its_execution_is_deleted(place: &impl Place) {
    let store = place.open().await;
    let large = NewExecution {
        kept_request: Some(Bytes::from_static(LARGE)),
        ..execution(2)
    };
    let (new, bystander) = (with_request(0), with_request(1));
    for new in [&new, &bystander, &large] {
        store.insert_running(new.clone(), || ()).await.unwrap();
    }
    assert_eq!(kept(&store, &new).await.as_deref(), Some(REQUEST));
    assert_eq!(kept(&store, &large).await.as_deref(), Some(LARGE));
    let end = outcome(Status::Failed);
    assert!(store.finish(&large.tenant, large.id, end).await.unwrap());
    assert!(store.storage_used(&large.tenant).await.unwrap() > LARGE.len() as u64);
    store.delete_execution(&large.tenant, large.id).await.unwrap();
    assert!(has_none(&store, &large).await);
    assert_eq!(store.storage_used(&large.tenant).await.unwrap(), 0);
    let end = outcome(Status::Failed);
    assert!(store.finish(&new.tenant, new.id, end).await.unwrap());
    assert_eq!(kept(&store, &new).await.as_deref(), Some(REQUEST));
    store.delete_execution(&new.tenant, new.id).await.unwrap();
    assert!(has_none(&store, &new).await);
    assert_eq!(kept(&store, &bystander).await.as_deref(), Some(REQUEST));
    // Rows that outlive their execution would be found again under the same id.
    for deleted in [new, large] {
        let again = NewExecution {
            kept_request: None,
            ..deleted
        };
        store.insert_running(again.clone(), || ()).await.unwrap();
        assert_eq!(kept(&store, &again).await, None);
    }
}

pub(in crate::store) async fn queued_execution_keeps_its_request_when_it_starts(place: &impl Place) {
    let store = place.open().await;
    let new = with_request(0);
    store.enqueue(queued(&new)).await.unwrap();
    assert_eq!(kept(&store, &new).await.as_deref(), Some(REQUEST));
    let started = NewExecution {
        kept_request: None,
        ..new.clone()
    };
    assert!(store.start_queued(started).await.unwrap());
    assert_eq!(kept(&store, &new).await.as_deref(), Some(REQUEST));
}

pub(in crate::store) async fn execution_without_kept_request_has_none(place: &impl Place) {
    let store = place.open().await;
    let new = execution(0);
    store.insert_running(new.clone(), || ()).await.unwrap();
    assert_eq!(kept(&store, &new).await, None);
    let never = NewExecution {
        id: ExecutionId::generate(),
        ..new
    };
    assert!(has_none(&store, &never).await);
}

pub(in crate::store) async fn withdrawn_executions_lose_their_requests(place: &impl Place) {
    let store = place.open().await;
    let (running, waiting) = (with_request(0), with_request(1));
    store.insert_running(running.clone(), || ()).await.unwrap();
    store.enqueue(queued(&waiting)).await.unwrap();
    assert!(store.withdraw(&running.tenant, running.id).await.unwrap());
    assert!(store.delete_queued(&waiting.tenant, waiting.id).await.unwrap());
    for new in [&running, &waiting] {
        assert!(has_none(&store, new).await);
        store
            .insert_running(
                NewExecution {
                    kept_request: None,
                    ..new.clone()
                },
                || (),
            )
            .await
            .unwrap();
        assert_eq!(kept(&store, new).await, None);
    }
    assert_eq!(store.storage_used(&running.tenant).await.unwrap(), 0);
}

/// whatever ends an execution.
pub(in crate::store) async fn kept_requests_of_ended_executions_count_as_storage(place: &impl Place) {
    let store = place.open().await;
    let dead = InstanceId::generate();
    let of = |owner: &str| NewExecution {
        tenant: tenant(owner),
        instance: dead,
        ..with_request(0)
    };
    let [finished, cancelled, interrupted, waiting] = ["a", "b", "c", "d"].map(of);
    for new in [&finished, &interrupted] {
        store.insert_running(new.clone(), || ()).await.unwrap();
    }
    for new in [&cancelled, &waiting] {
        store.enqueue(queued(new)).await.unwrap();
    }
    let used = async |new: &NewExecution| store.storage_used(&new.tenant).await.unwrap();
    assert_eq!(used(&finished).await, 0, "not before its end");

    let end = || crate::execution::Outcome::bare(Status::Cancelled, at(1));
    assert!(store.finish(&finished.tenant, finished.id, end()).await.unwrap());
    let left = store.finish_queued(&cancelled.tenant, cancelled.id, end()).await;
    assert!(left.unwrap());
    store.interrupt_running(dead, at(1)).await.unwrap();
    let recovery = QueueRecovery {
        dead,
        new_owner: InstanceId::generate(),
        at: at(1),
    };
    store.recover_queue(recovery).await.unwrap();

    let bare = used(&finished).await - REQUEST.len() as u64;
    assert!(bare < 100, "lists of nothing: {bare}");
    assert_eq!(used(&cancelled).await, used(&finished).await);
    for new in [&interrupted, &waiting] {
        assert_eq!(used(new).await, REQUEST.len() as u64);
    }
    for new in [&finished, &cancelled, &interrupted, &waiting] {
        store.delete_execution(&new.tenant, new.id).await.unwrap();
        assert_eq!(used(new).await, 0);
    }
}

/// T-02.
pub(in crate::store) async fn a_tenant_never_sees_the_requests_of_another(place: &impl Place) {
    let store = place.open().await;
    let new = with_request(0);
    store.insert_running(new.clone(), || ()).await.unwrap();
    let foreign = NewExecution {
        tenant: tenant("default2"),
        ..new.clone()
    };
    assert!(has_none(&store, &foreign).await);
    assert!(kept(&store, &new).await.is_some());
}
