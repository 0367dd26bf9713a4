//! Promises about what is kept and what goes.

use super::Place;
use super::samples::{at, execution, outcome, tenant};
use crate::execution::{NewExecution, Outcome, Status};
use crate::ids::{ExecutionId, Tenant};
use crate::store::{Error, Retention, Store};

/// One that was accepted and ended at this microsecond.
async fn ended(store: &Store, owner: &Tenant, micros: i64) -> (Tenant, ExecutionId) {
    let new = NewExecution {
        tenant: owner.clone(),
        ..execution(micros)
    };
    let end = Outcome {
        finished_at: at(micros),
        ..outcome(Status::Success)
    };
    store.insert_running(new.clone(), || ()).await.unwrap();
    assert!(store.finish(owner, new.id, end).await.unwrap());
    (new.tenant, new.id)
}

pub(in crate::store) async fn old_executions_expire(place: &impl Place) {
    let store = place.open().await;
    let (a, b) = (tenant("a"), tenant("b"));
    let old = [
        ended(&store, &a, 1).await,
        ended(&store, &a, 2).await,
        ended(&store, &b, 3).await,
    ];
    ended(&store, &b, 4).await;
    store.insert_running(execution(0), || ()).await.unwrap();
    let retention = Retention {
        ended_before: Some(at(4)),
        per_tenant: None,
    };
    assert_eq!(store.expired_executions(&retention, 10).await.unwrap(), old);
    assert_eq!(store.expired_executions(&retention, 2).await.unwrap(), old[..2]);
    let forever = Retention::default();
    assert!(store.expired_executions(&forever, 10).await.unwrap().is_empty());
}

pub(in crate::store) async fn retains_most_recent_executions_of_each_tenant(place: &impl Place) {
    let store = place.open().await;
    let (a, b) = (tenant("a"), tenant("b"));
    let mut of_a = Vec::new();
    for micros in 0..4 {
        of_a.push(ended(&store, &a, micros).await);
    }
    ended(&store, &b, 0).await;
    let keep = |count| Retention {
        ended_before: None,
        per_tenant: Some(count),
    };
    assert_eq!(store.expired_executions(&keep(2), 10).await.unwrap(), of_a[..2]);
    assert_eq!(store.expired_executions(&keep(0), 10).await.unwrap().len(), 5);
    assert!(store.expired_executions(&keep(4), 10).await.unwrap().is_empty());
    let both = Retention {
        ended_before: Some(at(1)),
        per_tenant: Some(2),
    };
    assert_eq!(store.expired_executions(&both, 10).await.unwrap().len(), 3);
}

pub(in crate::store) async fn running_execution_is_never_deleted(place: &impl Place) {
    let store = place.open().await;
    let running = execution(0);
    store.insert_running(running.clone(), || ()).await.unwrap();
    let all = Retention {
        ended_before: Some(at(i64::from(u32::MAX))),
        per_tenant: Some(0),
    };
    assert!(store.expired_executions(&all, 10).await.unwrap().is_empty());
    let forgotten = store.delete_execution(&running.tenant, running.id).await;
    assert!(matches!(forgotten, Err(Error::NotFound(_))));
    assert!(store.execution(&running.tenant, running.id).await.is_ok());
}

/// T-12, C-08.
pub(in crate::store) async fn deleted_execution_is_not_found(place: &impl Place) {
    let store = place.open().await;
    let (owner, id) = ended(&store, &tenant("a"), 0).await;
    let kept = ended(&store, &tenant("a"), 1).await;
    store.delete_execution(&owner, id).await.unwrap();
    assert!(matches!(
        store.execution(&owner, id).await,
        Err(Error::NotFound(_))
    ));
    assert!(matches!(
        store.delete_execution(&owner, id).await,
        Err(Error::NotFound(_))
    ));
    assert!(store.execution(&kept.0, kept.1).await.is_ok());
}
