//! Follows an execution that this or another process runs, or that has ended.

use tokio::time::sleep;

use crate::engine::running::Registration;
use crate::engine::{Engine, Executions};
use crate::error::Error;
use crate::execution::{
    BeyondEnd, Bookmark, Execution, Phase, Reader, Reason, Status, Transcript, TranscriptEvent,
};
use crate::ids::{ExecutionId, Tenant};
use crate::limits;
use crate::store;

/// The events of an execution from a position on, whichever process runs it.
#[derive(Debug)]
pub struct Subscription {
    followed: Followed,
    reader: Reader,
    /// For an execution of another process, which reports only its end.
    record: Option<Transcript>,
    queue_position: Option<usize>,
    is_over: bool,
}

#[derive(Debug)]
struct Followed {
    engine: Engine,
    tenant: Tenant,
    id: ExecutionId,
}

impl Executions<'_> {
    /// Also for an execution that has ended.
    pub async fn follow(
        self,
        tenant: &Tenant,
        id: ExecutionId,
        from: Bookmark,
    ) -> Result<Subscription, Error> {
        let reader = |reader: Result<Reader, BeyondEnd>| {
            reader.map_err(|error| Error::invalid(format!("last_event_id: {error}")))
        };
        if let Some(live) = self.engine.running.reader(tenant, id, from) {
            return Ok(self.subscription(tenant, id, reader(live)?));
        }
        let execution = self.get(tenant, id).await?;
        // It may have started meanwhile.
        if !execution.status.is_final()
            && let Some(live) = self.engine.running.reader(tenant, id, from)
        {
            return Ok(self.subscription(tenant, id, reader(live)?));
        }
        let record = Transcript::of_other_process();
        take(&record, execution);
        let follow = self.subscription(tenant, id, reader(record.reader(from))?);
        Ok(Subscription {
            record: Some(record),
            ..follow
        })
    }

    /// From the beginning, for an execution of this process.
    pub(super) fn follow_here(self, registration: &Registration) -> Subscription {
        let reader = registration.transcript().reader(Bookmark::default());
        let reader = reader.expect("the beginning is never too far");
        self.subscription(registration.tenant(), registration.id(), reader)
    }

    fn subscription(self, tenant: &Tenant, id: ExecutionId, reader: Reader) -> Subscription {
        Subscription {
            followed: Followed {
                engine: self.engine.clone(),
                tenant: tenant.clone(),
                id,
            },
            reader,
            record: None,
            queue_position: None,
            is_over: false,
        }
    }
}

impl Subscription {
    #[must_use]
    pub fn id(&self) -> ExecutionId {
        self.followed.id
    }

    /// The position after the last event.
    #[must_use]
    pub fn bookmark(&self) -> Bookmark {
        self.reader.bookmark()
    }

    /// The last reported position in the tenant's queue, from 1.
    #[must_use]
    pub fn queue_position(&self) -> Option<usize> {
        self.queue_position
    }

    /// The next event. The last one is [`TranscriptEvent::End`], followed by `None`. Cancel-safe.
    pub async fn next(&mut self) -> Option<TranscriptEvent> {
        if self.is_over || self.bookmark().phase == Phase::End {
            return None;
        }
        let event = self.event().await;
        match event {
            TranscriptEvent::Status(Status::Queued) => self.queue_position = self.followed.queue_position(),
            TranscriptEvent::Status(_) => self.queue_position = None,
            TranscriptEvent::End { .. } => self.is_over = true,
            TranscriptEvent::Printed { .. } | TranscriptEvent::Logged(_) | TranscriptEvent::Result(_) => {}
        }
        Some(event)
    }

    async fn event(&mut self) -> TranscriptEvent {
        let over = self.followed.engine.running.closed();
        loop {
            let waits = self.bookmark().phase == Phase::Queued;
            tokio::select! {
                biased;
                event = self.reader.next() => match event {
                    Some(event) => return event,
                    // The owner failed to record the outcome. Poll until another process records one.
                    None => self.follow_other_process(),
                },
                () = self.followed.position_changed(self.queue_position), if waits => return TranscriptEvent::Status(Status::Queued),
                () = self.followed.poll_other_process(self.record.as_ref()) => return self.shutdown_event(),
                () = over.cancelled() => return self.shutdown_event(),
            }
        }
    }

    fn shutdown_event(&self) -> TranscriptEvent {
        TranscriptEvent::End {
            status: self.reader.status(),
            reason: Reason::Shutdown,
        }
    }

    fn follow_other_process(&mut self) {
        let record = Transcript::of_other_process();
        record.set_status(self.reader.status());
        if let Ok(reader) = record.reader(self.bookmark()) {
            self.reader = reader;
        }
        self.record = Some(record);
    }
}

impl Followed {
    fn queue_position(&self) -> Option<usize> {
        let place = self.engine.admission.position(&self.tenant, self.id);
        place.map(|place| place.position)
    }

    /// Waits until the position in the queue changes.
    async fn position_changed(&self, reported: Option<usize>) {
        loop {
            sleep(limits::QUEUE_POLL_EVERY).await;
            let position = self.queue_position();
            if position.is_some() && position != reported {
                return;
            }
        }
    }

    /// Polls an execution of another process. Returns when the execution was deleted.
    async fn poll_other_process(&self, record: Option<&Transcript>) {
        let Some(record) = record else {
            return std::future::pending().await;
        };
        loop {
            sleep(limits::OTHER_PROCESS_POLL_EVERY).await;
            match self.engine.store.execution(&self.tenant, self.id).await {
                Ok(execution) => take(record, execution),
                Err(store::Error::NotFound(_)) => return,
                // Retried in the next round.
                Err(_) => {}
            }
        }
    }
}

fn take(record: &Transcript, execution: Execution) {
    if execution.status.is_final() {
        record.end(execution);
    } else {
        record.set_status(execution.status);
    }
}
