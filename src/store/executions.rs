//! Executions that run or have ended.

use jiff::Timestamp;

use crate::execution::{Execution, NewExecution, Omitted, Outcome, RichResult, Status};
use crate::ids::{ExecutionId, InstanceId, KeyId, Tenant};
use crate::skill::SkillName;
use crate::store::cursor::{List, Moment};
use crate::store::{Error, acts};

/// Which executions a list shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExecutionFilter {
    pub statuses: Statuses,
    /// All if `None`, as below.
    pub source: Option<ExecutionSource>,
    /// Only those that this key started.
    pub key: Option<KeyId>,
    /// Only those accepted at this time or later.
    pub since: Option<Timestamp>,
    /// Only those accepted before this time.
    pub until: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExecutionSource {
    /// Code of a request.
    Code,
    Skill(SkillName),
}

/// A set of statuses; empty stands for all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statuses(Vec<Status>);

impl Statuses {
    pub fn iter(&self) -> impl Iterator<Item = Status> + '_ {
        self.0.iter().copied()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<Status> for Statuses {
    /// In one order, so that equal sets have the same cursors.
    fn from_iter<I: IntoIterator<Item = Status>>(statuses: I) -> Self {
        let wanted: Vec<_> = statuses.into_iter().collect();
        let in_order = Status::ALL.into_iter().filter(|status| wanted.contains(status));
        Self(in_order.collect())
    }
}

impl From<Option<Status>> for Statuses {
    fn from(status: Option<Status>) -> Self {
        status.into_iter().collect()
    }
}

/// Which executions are retained; each `None` retains all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// Those that ended before this time expire.
    pub ended_before: Option<Timestamp>,
    /// Only this many of each tenant stay: the most recent.
    pub per_tenant: Option<u64>,
}

acts! {
    trait Executions {
        /// Inserts an execution as running. Durable when this returns. `on_visible` is called as soon as every reader sees the row,
        /// also if this process is killed; a power failure until this returns may lose it.
        async fn insert_running(&self, execution: NewExecution, on_visible: impl FnOnce() + Send) -> Result<(), Error>;
        /// Deletes a running execution whose program never started; `false` if it has ended meanwhile.
        async fn withdraw(&self, tenant: &Tenant, id: ExecutionId) -> Result<bool, Error>;
        /// Records the outcome of a running execution; `false`, and no change, if it has one already.
        async fn finish(&self, tenant: &Tenant, id: ExecutionId, outcome: Outcome) -> Result<bool, Error>;
        async fn execution(&self, tenant: &Tenant, id: ExecutionId) -> Result<Execution, Error>;
        /// Does not read these parts, which are empty then.
        async fn execution_without(&self, tenant: &Tenant, id: ExecutionId, omitted: Omitted) -> Result<Execution, Error>;
        /// The rich results of an execution; none before its end.
        async fn results(&self, tenant: &Tenant, id: ExecutionId) -> Result<Vec<RichResult>, Error>;
        /// The request as it was inserted with the execution, if one was.
        async fn kept_request(&self, tenant: &Tenant, id: ExecutionId) -> Result<Option<Vec<u8>>, Error>;
        /// Ends the running executions of a dead process as interrupted and returns them.
        async fn interrupt_running(&self, owner: InstanceId, at: Timestamp) -> Result<Vec<(Tenant, ExecutionId)>, Error>;
        /// The processes that have running executions.
        async fn running_instances(&self) -> Result<Vec<InstanceId>, Error>;
        /// Asks the process that owns an execution to cancel it; `false` if the execution has ended.
        async fn request_cancel(&self, tenant: &Tenant, id: ExecutionId, at: Timestamp) -> Result<bool, Error>;
        /// The executions of a process that other processes asked it to cancel, and that have not ended.
        async fn cancel_requests(&self, owner: InstanceId) -> Result<Vec<(Tenant, ExecutionId)>, Error>;
        /// At most `rows` ended executions beyond `retention`, each tenant's oldest first.
        async fn expired_executions(&self, retention: &Retention, rows: u32) -> Result<Vec<(Tenant, ExecutionId)>, Error>;
        /// Deletes an ended execution; one that runs is [`Error::NotFound`] here.
        async fn delete_execution(&self, tenant: &Tenant, id: ExecutionId) -> Result<(), Error>;
        /// Bytes of a tenant's archives, and of the results and requests of its ended executions.
        async fn storage_used(&self, tenant: &Tenant) -> Result<u64, Error>;
    }
    lists {
        /// Executions, the newest first. Their outcomes come without output, logs, files and the names of skipped files.
        async fn executions(&self, tenant: &Tenant, filter: &ExecutionFilter) -> Execution
            = List::Executions(tenant, filter), after Moment<ExecutionId>: |found| Moment::new(found.new.created_at, found.new.id);
    }
}
