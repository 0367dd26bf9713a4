//! Executions of other processes on the same database: their newest and unfinished ones are polled while a client follows.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use tokio::time::sleep;

use crate::engine::{Changes, Engine, EngineState};
use crate::error::{Code, Error};
use crate::execution::{Execution, Status};
use crate::ids::{ExecutionId, Tenant};
use crate::limits;
use crate::store::ExecutionFilter;

/// What was seen of the executions of other processes.
type Seen = HashMap<ExecutionId, Status>;

impl Changes<'_> {
    /// Starts the task that polls, unless it runs.
    pub(super) fn poll_others(self) {
        let is_polled = std::mem::replace(&mut self.engine.published.readers().is_polled, true);
        if !is_polled {
            tokio::spawn(poll(Arc::downgrade(&self.engine.0)));
        }
    }

    /// Publishes what has changed since `seen`; nothing for a tenant that was not seen before.
    async fn publish_others(self, tenant: &Tenant, seen: Option<&Seen>) -> Result<Seen, Error> {
        let (now, is_complete) = self.of_others(tenant).await?;
        let Some(seen) = seen else {
            return Ok(states(&now));
        };
        let is_known = |execution: &Execution| seen.contains_key(&execution.new.id);
        let are_many = now.len() * 2 >= limits::OTHER_EXECUTIONS_POLLED;
        if !is_complete && are_many && !now.iter().any(is_known) {
            // Too many to know which are missing.
            self.engine.publish_reset(tenant);
            return Ok(states(&now));
        }
        // Oldest first, as they happened.
        for execution in now.iter().rev() {
            if seen.get(&execution.new.id) != Some(&execution.status) {
                self.engine.publish(execution);
            }
        }
        let known = states(&now);
        let left = seen
            .iter()
            .filter(|(id, status)| !status.is_final() && !known.contains_key(id));
        for (id, _) in left.take(limits::OTHER_EXECUTIONS_POLLED) {
            match self.engine.publish_recorded(tenant, *id).await {
                Err(error) if error.code() == Code::NotFound => {
                    self.engine.publish_deletion(tenant, *id);
                }
                done => done?,
            }
        }
        Ok(known)
    }

    /// The newest and the unfinished executions of other processes, newest first, and whether these are all.
    async fn of_others(self, tenant: &Tenant) -> Result<(Vec<Execution>, bool), Error> {
        let unfinished = ExecutionFilter {
            statuses: [Status::Queued, Status::Running].into_iter().collect(),
            ..ExecutionFilter::default()
        };
        let rows = u32::try_from(limits::OTHER_EXECUTIONS_POLLED).unwrap_or(u32::MAX);
        let store = &self.engine.store;
        let newest = store
            .executions(tenant, &ExecutionFilter::default(), None, rows)
            .await?;
        let unfinished = store.executions(tenant, &unfinished, None, rows).await?;
        let is_complete = newest.next.is_none();
        // The later read wins: an execution never starts again.
        let mut found: HashMap<_, _> = HashMap::new();
        for execution in unfinished.items.into_iter().chain(newest.items) {
            let known = found.get(&execution.new.id);
            if known.is_none_or(|known: &Execution| !known.status.is_final()) {
                found.insert(execution.new.id, execution);
            }
        }
        let own = self.engine.instance();
        let mut found: Vec<_> = found
            .into_values()
            .filter(|found| found.new.instance != own)
            .collect();
        found.sort_by_key(|found| std::cmp::Reverse((found.new.created_at, found.new.id)));
        Ok((found, is_complete))
    }
}

fn states(executions: &[Execution]) -> Seen {
    let states = executions
        .iter()
        .map(|execution| (execution.new.id, execution.status));
    states.collect()
}

/// Holds the engine only while polling, so that the process can end.
async fn poll(engine: Weak<EngineState>) {
    let mut seen: HashMap<Tenant, Seen> = HashMap::new();
    let mut round = 0_u32;
    loop {
        sleep(limits::OTHER_PROCESS_POLL_EVERY).await;
        let Some(engine) = engine.upgrade().map(Engine) else {
            return;
        };
        let tenants: Vec<Tenant> = {
            let mut readers = engine.published.readers();
            if readers.by_tenant.is_empty() {
                readers.is_polled = false;
                return;
            }
            readers.by_tenant.keys().cloned().collect()
        };
        round = round.wrapping_add(1);
        let is_skipped = !round.is_multiple_of(limits::OTHER_PROCESS_POLLS_SKIPPED);
        if is_skipped
            && !engine.instance.has_others()
            && tenants.iter().all(|tenant| seen.contains_key(tenant))
        {
            continue;
        }
        let mut now = HashMap::new();
        for tenant in tenants {
            match engine.changes().publish_others(&tenant, seen.get(&tenant)).await {
                Ok(states) => drop(now.insert(tenant, states)),
                Err(error) => {
                    tracing::warn!(%error, "Changes of other processes could not be read; trying again");
                    let before = seen.remove(&tenant);
                    now.extend(before.map(|before| (tenant, before)));
                }
            }
        }
        seen = now;
    }
}
