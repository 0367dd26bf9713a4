//! Waits for the end of an execution without polling the database, where this process runs it.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::engine::Executions;
use crate::error::{Code, Error};
use crate::execution::{Bookmark, Execution};
use crate::ids::{ExecutionId, Tenant};
use crate::limits;

impl Executions<'_> {
    /// The execution once it has ended, or its state after `within`.
    pub async fn ended_within(
        self,
        tenant: &Tenant,
        id: ExecutionId,
        within: Duration,
    ) -> Result<Execution, Error> {
        let until = Instant::now() + within.min(limits::WAIT_MAX);
        self.await_end(tenant, id, until).await
    }

    /// Waits for an execution that another request started, for as long as it may take.
    pub(super) async fn await_other(
        self,
        tenant: &Tenant,
        id: ExecutionId,
        gone: &CancellationToken,
    ) -> Result<Execution, Error> {
        let until =
            Instant::now() + self.engine.settings.queue_wait + limits::TIMEOUT_MAX + limits::COLLECT_MAX;
        match gone.run_until_cancelled(self.await_end(tenant, id, until)).await {
            Some(Err(error)) if error.code() == Code::NotFound => Err(Error::new(
                Code::Busy,
                "the first request with this Idempotency-Key was dropped from the queue; send it again",
            )),
            Some(ended) => ended,
            None => Err(Error::new(Code::Busy, "the caller disconnected")),
        }
    }

    /// The execution once it has ended, or its state at `until`.
    pub(super) async fn await_end(
        self,
        tenant: &Tenant,
        id: ExecutionId,
        until: Instant,
    ) -> Result<Execution, Error> {
        loop {
            let reader = self.engine.running.reader(tenant, id, Bookmark::default());
            let here = reader.and_then(Result::ok);
            if let Some(mut reader) = here
                && let Ok(Some(execution)) = timeout_at(until, reader.ended()).await
            {
                return Ok(Arc::unwrap_or_clone(execution));
            }
            let execution = self.get(tenant, id).await?;
            if execution.status.is_final() || Instant::now() >= until || self.engine.admission.is_closed() {
                return Ok(execution);
            }
            // Another process runs it and reports nothing to this one.
            sleep_until(until.min(Instant::now() + limits::OTHER_PROCESS_POLL_EVERY)).await;
        }
    }
}
