//! Follows an execution that this or another process runs, or that has ended.

use tokio::time::sleep;

use crate::engine::running::Registration;
use crate::engine::{Engine, Executions};
use crate::error::Error;
use crate::execution::{Bookmark, Execution, News, Phase, Reader, Reason, Status, TooFar, Transcript};
use crate::ids::{ExecutionId, Tenant};
use crate::limits;
use crate::store;

/// Hears all that an execution tells from a place on, whoever runs it, until there is an end.
#[derive(Debug)]
pub struct Subscription {
    followed: Followed,
    reader: Reader,
    /// Written by ourselves where the execution does not run here: all that can be seen of it is how it ended.
    record: Option<Transcript>,
    queue_position: Option<usize>,
    is_over: bool,
}

/// Which execution, and where.
#[derive(Debug)]
struct Followed {
    engine: Engine,
    tenant: Tenant,
    id: ExecutionId,
}

impl Executions<'_> {
    /// Follows an execution from a position on, also one that has ended.
    pub async fn follow(
        self,
        tenant: &Tenant,
        id: ExecutionId,
        from: Bookmark,
    ) -> Result<Subscription, Error> {
        let reader = |reader: Result<Reader, TooFar>| {
            reader.map_err(|error| Error::invalid(format!("last_event_id: {error}")))
        };
        if let Some(live) = self.engine.running.reader(tenant, id, from) {
            return Ok(self.subscription(tenant, id, reader(live)?));
        }
        let execution = self.get(tenant, id).await?;
        // It may have begun since we looked.
        if !execution.status.is_final()
            && let Some(live) = self.engine.running.reader(tenant, id, from)
        {
            return Ok(self.subscription(tenant, id, reader(live)?));
        }
        let record = Transcript::elsewhere();
        take(&record, execution);
        let follow = self.subscription(tenant, id, reader(record.reader(from))?);
        Ok(Subscription {
            record: Some(record),
            ..follow
        })
    }

    /// Follows an execution of this process from its beginning.
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
    /// Which execution.
    #[must_use]
    pub fn id(&self) -> ExecutionId {
        self.followed.id
    }

    /// The place after the last news.
    #[must_use]
    pub fn bookmark(&self) -> Bookmark {
        self.reader.bookmark()
    }

    /// Where it waited in its tenant's line when that was told last, 1 for the next one.
    #[must_use]
    pub fn queue_position(&self) -> Option<usize> {
        self.queue_position
    }

    /// Waits for what comes next. The last is always [`News::End`]; after it comes `None`. Nothing is lost if this is dropped.
    pub async fn next(&mut self) -> Option<News> {
        if self.is_over || self.bookmark().phase == Phase::End {
            return None;
        }
        let news = self.news().await;
        match news {
            News::Status(Status::Queued) => self.queue_position = self.followed.queue_position(),
            News::Status(_) => self.queue_position = None,
            News::End { .. } => self.is_over = true,
            News::Printed { .. } | News::Logged(_) | News::Result(_) => {}
        }
        Some(news)
    }

    async fn news(&mut self) -> News {
        let over = self.followed.engine.running.closed();
        loop {
            let waits = self.bookmark().phase == Phase::Queued;
            tokio::select! {
                biased;
                news = self.reader.next() => match news {
                    Some(news) => return news,
                    // Who ran it could not record its end; somebody will.
                    None => self.go_on_elsewhere(),
                },
                () = self.followed.moves(self.queue_position), if waits => return News::Status(Status::Queued),
                () = self.followed.look_again(self.record.as_ref()) => return self.leave(),
                () = over.cancelled() => return self.leave(),
            }
        }
    }

    fn leave(&self) -> News {
        News::End {
            status: self.reader.status(),
            reason: Reason::Shutdown,
        }
    }

    fn go_on_elsewhere(&mut self) {
        let record = Transcript::elsewhere();
        record.stands(self.reader.status());
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

    /// Waits until it waits elsewhere in the line than was told.
    async fn moves(&self, told: Option<usize>) {
        loop {
            sleep(limits::QUEUE_LOOK_EVERY).await;
            let position = self.queue_position();
            if position.is_some() && position != told {
                return;
            }
        }
    }

    /// Looks now and then whether what runs elsewhere has ended; ends when it was forgotten.
    async fn look_again(&self, record: Option<&Transcript>) {
        let Some(record) = record else {
            return std::future::pending().await;
        };
        loop {
            sleep(limits::ELSEWHERE_LOOK_EVERY).await;
            match self.engine.store.execution(&self.tenant, self.id).await {
                Ok(execution) => take(record, execution),
                Err(store::Error::NotFound(_)) => return,
                // It is asked again.
                Err(_) => {}
            }
        }
    }
}

fn take(record: &Transcript, execution: Execution) {
    if execution.status.is_final() {
        record.end(execution);
    } else {
        record.stands(execution.status);
    }
}
