//! Waiting for the end of an execution, without asking the database again and again.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::auth::{Caller, Scope};
use crate::engine::{Engine, require};
use crate::error::{Code, Error};
use crate::execution::{Bookmark, Execution};
use crate::ids::{ExecutionId, Tenant};
use crate::limits;

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
    pub(super) async fn await_other(
        &self,
        tenant: &Tenant,
        id: ExecutionId,
        gone: &CancellationToken,
    ) -> Result<Execution, Error> {
        let until = Instant::now() + self.0.settings.queue_wait + limits::TIMEOUT_MAX + limits::COLLECT_MAX;
        match gone.run_until_cancelled(self.await_end(tenant, id, until)).await {
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
            let reader = self.0.running.reader(tenant, id, Bookmark::default());
            let here = reader.and_then(Result::ok);
            if let Some(mut reader) = here
                && let Ok(Some(execution)) = timeout_at(until, reader.ended()).await
            {
                return Ok(Arc::unwrap_or_clone(execution));
            }
            let execution = self.find_execution(tenant, id).await?;
            if execution.status.is_final() || Instant::now() >= until || self.0.admission.is_closed() {
                return Ok(execution);
            }
            // Another process runs it, and tells nobody here.
            sleep_until(until.min(Instant::now() + limits::ELSEWHERE_LOOK_EVERY)).await;
        }
    }
}
