//! Executions that wait for a slot, and the idempotency keys of requests.

use jiff::Timestamp;

use crate::execution::{NewExecution, Outcome};
use crate::ids::{Digest, ExecutionId, IdempotencyKey, InstanceId, Tenant};
use crate::store::{Error, acts};

/// An execution to be queued.
#[derive(Clone, Debug)]
pub struct Queued {
    pub execution: NewExecution,
    /// The request, for the process that starts it; `None` if its caller waits and holds the request.
    pub request: Option<Vec<u8>>,
    pub key: Option<KeyedRequest>,
}

/// A request and the idempotency key it was sent with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyedRequest {
    pub key: IdempotencyKey,
    /// The digest of the whole request.
    pub fingerprint: Digest,
    /// Earlier requests do not count any more.
    pub since: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enqueued {
    New,
    /// The same request was sent before under the same key; this is its execution.
    Duplicate(ExecutionId),
}

/// Which queue another process takes over.
#[derive(Clone, Copy, Debug)]
pub struct QueueRecovery {
    pub dead: InstanceId,
    pub new_owner: InstanceId,
    pub at: Timestamp,
}

acts! {
    trait Queue {
        /// Inserts an execution as queued, unless the same request was sent before under the same key. Durable when this returns.
        ///
        /// # Errors
        ///
        /// [`Conflict::OtherRequest`](crate::store::Conflict::OtherRequest) for another request under that key, [`Error::Quota`]
        /// if the tenant's queued requests would exceed [`limits::QUEUED_BYTES_MAX`](crate::limits::QUEUED_BYTES_MAX) together.
        async fn enqueue(&self, queued: Queued) -> Result<Enqueued, Error>;
        /// The execution of the same request under this key, if there was one; a conflict if the key was sent with another request.
        async fn execution_by_key(&self, tenant: &Tenant, key: KeyedRequest) -> Result<Option<ExecutionId>, Error>;
        async fn queued_request(&self, tenant: &Tenant, id: ExecutionId) -> Result<Vec<u8>, Error>;
        /// Sets a queued execution to running; `false` if it has left the queue. Durable when this returns.
        async fn start_queued(&self, execution: NewExecution) -> Result<bool, Error>;
        /// Records the outcome of an execution that never started; `false` if it has started or ended.
        async fn finish_queued(&self, tenant: &Tenant, id: ExecutionId, outcome: Outcome) -> Result<bool, Error>;
        /// Deletes an execution that never started, its key included; `false` if it has started or ended.
        async fn delete_queued(&self, tenant: &Tenant, id: ExecutionId) -> Result<bool, Error>;
        /// The processes that have queued executions.
        async fn queue_owners(&self) -> Result<Vec<InstanceId>, Error>;
        /// Moves the queue of a dead process to another one and returns it, oldest first. Executions whose caller waited in the dead
        /// process end as interrupted.
        async fn recover_queue(&self, recovery: QueueRecovery) -> Result<Vec<(Tenant, ExecutionId)>, Error>;
        /// Deletes idempotency keys of requests made before this time.
        async fn delete_idempotency_keys(&self, before: Timestamp) -> Result<(), Error>;
    }
}
