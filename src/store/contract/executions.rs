//! Promises about executions, begun and ended.

use super::Place;
use super::samples::{at, execution, outcome, tenant};
use crate::execution::{ChosenBackend, Logs, NewExecution, Omitted, Outcome, Status};
use crate::ids::{ExecutionId, InstanceId, Tenant};
use crate::store::{Conflict, Error, ExecutionFilter, Store};

async fn status(store: &Store, id: ExecutionId) -> Status {
    let found = store.execution(&Tenant::default_tenant(), id).await;
    found.unwrap().status
}

/// A-04, O-11, O-17: output is stored byte for byte.
pub(in crate::store) async fn an_execution_reads_back_byte_for_byte(place: &impl Place) {
    let store = place.open().await;
    let new = execution(5);
    store.insert_running(new.clone(), || ()).await.unwrap();
    let running = store.execution(&new.tenant, new.id).await.unwrap();
    assert_eq!(
        (running.new, running.status, running.outcome),
        (new.clone(), Status::Running, None)
    );
    let end = outcome(Status::Failed);
    assert!(store.finish(&new.tenant, new.id, end.clone()).await.unwrap());
    let ended = store.execution(&new.tenant, new.id).await.unwrap();
    assert_eq!(
        (ended.new, ended.status, ended.outcome),
        (new, Status::Failed, Some(end))
    );
}

/// The parts that can be large are empty, and all others are not.
pub(in crate::store) async fn omitted_parts_of_an_execution_are_empty(place: &impl Place) {
    let store = place.open().await;
    let (new, end) = (execution(5), outcome(Status::Failed));
    store.insert_running(new.clone(), || ()).await.unwrap();
    store.finish(&new.tenant, new.id, end.clone()).await.unwrap();
    let without = async |omitted| {
        let found = store.execution_without(&new.tenant, new.id, omitted).await;
        found.unwrap().outcome.unwrap()
    };
    let omitted = Omitted {
        logs: true,
        ..Omitted::default()
    };
    let logs = Logs {
        stdout_total: end.logs.stdout_total,
        stderr_total: end.logs.stderr_total,
        lines_truncated: end.logs.lines_truncated,
        ..Logs::default()
    };
    let expected = Outcome { logs, ..end.clone() };
    assert_eq!(without(omitted).await, expected);
    let omitted = Omitted {
        results: true,
        output: true,
        ..Omitted::default()
    };
    let expected = Outcome {
        results: Vec::new(),
        output: None,
        ..end
    };
    assert_eq!(without(omitted).await, expected);
    let stranger = tenant("default2");
    let foreign = store.execution_without(&stranger, new.id, omitted).await;
    assert!(matches!(foreign, Err(Error::NotFound(_))));
}

pub(in crate::store) async fn execution_is_inserted_once(place: &impl Place) {
    let store = place.open().await;
    let new = execution(0);
    store.insert_running(new.clone(), || ()).await.unwrap();
    let again = store.insert_running(new, || ()).await;
    assert!(matches!(
        again,
        Err(Error::Conflict {
            conflict: Conflict::Exists,
            ..
        })
    ));
}

/// Only what never ran can be withdrawn.
pub(in crate::store) async fn running_execution_is_withdrawn(place: &impl Place) {
    let store = place.open().await;
    let [running, ended] = [execution(0), execution(1)];
    for new in [&running, &ended] {
        store.insert_running(new.clone(), || ()).await.unwrap();
    }
    let outcome = outcome(Status::Failed);
    assert!(store.finish(&ended.tenant, ended.id, outcome).await.unwrap());
    let stranger = tenant("stranger");
    assert!(!store.withdraw(&stranger, running.id).await.unwrap());
    assert!(store.withdraw(&running.tenant, running.id).await.unwrap());
    assert!(!store.withdraw(&running.tenant, running.id).await.unwrap());
    assert!(!store.withdraw(&ended.tenant, ended.id).await.unwrap());
    let gone = store.execution(&running.tenant, running.id).await;
    assert!(matches!(gone, Err(Error::NotFound(_))));
    assert_eq!(status(&store, ended.id).await, Status::Failed);
}

pub(in crate::store) async fn execution_is_finished_once(place: &impl Place) {
    let store = place.open().await;
    let new = execution(0);
    store.insert_running(new.clone(), || ()).await.unwrap();
    assert!(
        store
            .finish(&new.tenant, new.id, outcome(Status::Cancelled))
            .await
            .unwrap()
    );
    assert!(
        !store
            .finish(&new.tenant, new.id, outcome(Status::Success))
            .await
            .unwrap()
    );
    assert_eq!(status(&store, new.id).await, Status::Cancelled);
    let unknown = ExecutionId::generate();
    assert!(
        !store
            .finish(&new.tenant, unknown, outcome(Status::Success))
            .await
            .unwrap()
    );
}

/// C-11.
pub(in crate::store) async fn one_of_concurrent_finishes_wins(place: &impl Place) {
    let stores = [place.open().await, place.open().await];
    let new = execution(0);
    stores[0].insert_running(new.clone(), || ()).await.unwrap();
    let ends = (0..20).zip(stores.iter().cycle()).map(|(code, store)| {
        let end = Outcome {
            exit_code: Some(code),
            ..outcome(Status::Failed)
        };
        let tenant = &new.tenant;
        async move { store.finish(tenant, new.id, end).await.unwrap().then_some(code) }
    });
    let counted: Vec<i32> = futures::future::join_all(ends)
        .await
        .into_iter()
        .flatten()
        .collect();
    assert_eq!(counted.len(), 1);
    let ended = stores[1].execution(&new.tenant, new.id).await.unwrap();
    assert_eq!(ended.outcome.unwrap().exit_code, Some(counted[0]));
}

/// F-02, F-03: no row stays `running` without a process behind it.
pub(in crate::store) async fn interrupts_executions_of_dead_process(place: &impl Place) {
    let store = place.open().await;
    let (dead, alive) = (InstanceId::generate(), InstanceId::generate());
    let mut of_dead = Vec::new();
    for (n, instance) in [dead, dead, alive].into_iter().enumerate() {
        let new = NewExecution {
            instance,
            tenant: tenant(["a", "b", "default"][n]),
            ..execution(0)
        };
        store.insert_running(new.clone(), || ()).await.unwrap();
        if instance == dead {
            of_dead.push((new.tenant.clone(), new.id));
        }
    }
    let ended = execution(0);
    let ended_of_dead = NewExecution {
        instance: dead,
        ..ended
    };
    store.insert_running(ended_of_dead.clone(), || ()).await.unwrap();
    store
        .finish(&ended_of_dead.tenant, ended_of_dead.id, outcome(Status::Success))
        .await
        .unwrap();

    let mut owners = store.running_instances().await.unwrap();
    owners.sort();
    assert_eq!(owners, [dead, alive]);
    let mut interrupted = store.interrupt_running(dead, at(9)).await.unwrap();
    interrupted.sort();
    assert_eq!(interrupted, of_dead);
    assert_eq!(store.running_instances().await.unwrap(), [alive]);
    assert_eq!(status(&store, ended_of_dead.id).await, Status::Success);

    let (owner, id) = &of_dead[0];
    assert!(!store.finish(owner, *id, outcome(Status::Success)).await.unwrap());
    let end = store.execution(owner, *id).await.unwrap().outcome.unwrap();
    assert_eq!((end.status, end.finished_at), (Status::Interrupted, at(9)));
    assert_eq!(end.error.unwrap().code, "interrupted");
}

/// C-11.
pub(in crate::store) async fn a_cancel_request_reaches_the_owner_until_the_execution_ends(
    place: &impl Place,
) {
    let store = place.open().await;
    let (new, bystander) = (execution(0), execution(1));
    store.insert_running(new.clone(), || ()).await.unwrap();
    store.insert_running(bystander.clone(), || ()).await.unwrap();
    let requested = |tenant: Tenant, micros| {
        let (store, id) = (&store, new.id);
        async move { store.request_cancel(&tenant, id, at(micros)).await.unwrap() }
    };
    assert!(!requested(tenant("default2"), 1).await, "T-02: of another tenant");
    assert_eq!(store.cancel_requests(new.instance).await.unwrap(), []);
    assert!(requested(new.tenant.clone(), 2).await);
    assert!(requested(new.tenant.clone(), 3).await, "twice is once");
    let owner = place.open().await;
    let requests = owner.cancel_requests(new.instance).await.unwrap();
    assert_eq!(requests, [(new.tenant.clone(), new.id)]);
    assert_eq!(store.cancel_requests(InstanceId::generate()).await.unwrap(), []);
    assert_eq!(status(&store, new.id).await, Status::Running);
    owner
        .finish(&new.tenant, new.id, outcome(Status::Cancelled))
        .await
        .unwrap();
    assert_eq!(store.cancel_requests(new.instance).await.unwrap(), []);
    assert!(!requested(new.tenant.clone(), 4).await, "it has ended");
}

/// quotes, statements and NUL in any free text are kept as they are and do nothing.
pub(in crate::store) async fn text_is_never_executed_as_sql(place: &impl Place) {
    let store = place.open().await;
    let text = "x'; drop table executions; --\" %_\\ \0 \u{202e}".to_owned();
    let new = NewExecution {
        image: text.clone(),
        backend: Some(ChosenBackend {
            name: text.clone(),
            reason: text,
            degraded: Vec::new(),
        }),
        ..execution(0)
    };
    store.insert_running(new.clone(), || ()).await.unwrap();
    let bystander = execution(1);
    store.insert_running(bystander.clone(), || ()).await.unwrap();
    assert_eq!(store.execution(&new.tenant, new.id).await.unwrap().new, new);
    assert_eq!(status(&store, bystander.id).await, Status::Running);
}

/// T-02.
pub(in crate::store) async fn a_tenant_never_sees_the_executions_of_another(place: &impl Place) {
    let store = place.open().await;
    let new = execution(0);
    store.insert_running(new.clone(), || ()).await.unwrap();
    let foreign = tenant("default2");
    let ended = store.finish(&foreign, new.id, outcome(Status::Failed)).await;
    assert!(!ended.unwrap());
    store
        .finish(&new.tenant, new.id, outcome(Status::Success))
        .await
        .unwrap();
    let found = store.execution(&foreign, new.id).await;
    assert!(matches!(found, Err(Error::NotFound(_))));
    let page = store
        .executions(&foreign, &ExecutionFilter::default(), None, 10)
        .await;
    assert!(page.unwrap().items.is_empty());
    let forgotten = store.delete_execution(&foreign, new.id).await;
    assert!(matches!(forgotten, Err(Error::NotFound(_))));
    assert_eq!(status(&store, new.id).await, Status::Success);
}
