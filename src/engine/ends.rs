//! Waiting for the end of an execution, without asking the database again and again.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::auth::{Caller, Scope};
use crate::engine::{Engine, require};
use crate::error::{Code, Error};
use crate::execution::Execution;
use crate::ids::{ExecutionId, Tenant};
use crate::limits;

/// Those who wait for an end that this process will record.
#[derive(Debug, Default)]
pub(super) struct Ends(Mutex<HashMap<ExecutionId, Awaited>>);

#[derive(Debug, Default)]
struct Awaited {
    ended: CancellationToken,
    by: usize,
}

/// One who waits, until dropped.
#[derive(Debug)]
struct Wait<'a> {
    ends: &'a Ends,
    id: ExecutionId,
    ended: CancellationToken,
}

impl Ends {
    /// Hears of the end from now on: look whether it has come only after this.
    fn wait(&self, id: ExecutionId) -> Wait<'_> {
        let mut awaited = self.locked();
        let awaited = awaited.entry(id).or_default();
        awaited.by += 1;
        Wait {
            ends: self,
            id,
            ended: awaited.ended.clone(),
        }
    }

    /// Tells those who wait.
    pub(super) fn has_come(&self, id: ExecutionId) {
        if let Some(awaited) = self.locked().remove(&id) {
            awaited.ended.cancel();
        }
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<ExecutionId, Awaited>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        let mut awaited = self.ends.locked();
        if let Some(there) = awaited.get_mut(&self.id) {
            there.by = there.by.saturating_sub(1);
            if there.by == 0 {
                awaited.remove(&self.id);
            }
        }
    }
}

impl Engine {
    /// An execution when it has ended, or as it stands after `within`.
    pub async fn execution_within(
        &self,
        caller: &Caller,
        id: ExecutionId,
        within: Duration,
    ) -> Result<Execution, Error> {
        require(caller, &[Scope::Run])?;
        let until = Instant::now() + within.min(limits::WAIT_MAX);
        self.await_end(caller.tenant(), id, until).await
    }

    /// Waits for an execution that somebody else has asked for, for as long as it may take.
    pub(super) async fn follow(
        &self,
        tenant: &Tenant,
        id: ExecutionId,
        gone: &CancellationToken,
    ) -> Result<Execution, Error> {
        let until = Instant::now() + self.0.settings.queue_wait + limits::TIMEOUT_MAX + limits::COLLECT_MAX;
        let ended = gone.run_until_cancelled(self.await_end(tenant, id, until)).await;
        match ended {
            Some(Err(error)) if error.code() == Code::NotFound => Err(Error::new(
                Code::Busy,
                "the first request with this Idempotency-Key gave up before its turn came; send it again",
            )),
            Some(ended) => ended,
            None => Err(Error::new(Code::Busy, "the caller left")),
        }
    }

    /// The execution when it has ended, or as it stands then.
    pub(super) async fn await_end(
        &self,
        tenant: &Tenant,
        id: ExecutionId,
        until: Instant,
    ) -> Result<Execution, Error> {
        loop {
            let wait = self.0.ends.wait(id);
            let execution = self.find_execution(tenant, id).await?;
            let stopping = self.0.admission.is_closed() && !execution.status.is_final();
            if execution.status.is_final() || Instant::now() >= until || stopping {
                return Ok(execution);
            }
            // Nobody tells of what another process does.
            let look_again = if execution.new.instance == self.instance() {
                until
            } else {
                until.min(Instant::now() + limits::FOREIGN_END_EVERY)
            };
            let _ = tokio::time::timeout_at(look_again, wait.ended.cancelled()).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_end_is_told_to_all_who_wait_and_nothing_is_left() {
        let ends = Ends::default();
        let id = ExecutionId::generate();
        ends.has_come(id);
        let (first, second) = (ends.wait(id), ends.wait(id));
        assert!(!first.ended.is_cancelled());
        ends.has_come(id);
        first.ended.cancelled().await;
        second.ended.cancelled().await;
        drop((first, second));
        let third = ends.wait(id);
        assert!(!third.ended.is_cancelled(), "an earlier end is not told");
        drop(third);
        assert!(ends.locked().is_empty());
    }
}
