//! The changes of a tenant as they happen, also those of other processes on the same database.

mod log;
mod others;

use std::collections::HashMap;
use std::fmt::{self, Display};
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::auth::Caller;
use crate::engine::{Changes, Engine, clock};
use crate::error::Error;
use crate::execution::{Execution, NewExecution, Omitted, Outcome, Status, Summary};
use crate::ids::{ExecutionId, InstanceId, KeyId, SessionId, Tenant};
use crate::store;

use log::ChangeLog;

pub use log::{Change, SkillAction, SkillChange};

/// Changes of this process and those who read them.
#[derive(Debug, Default)]
pub(super) struct Published {
    log: ChangeLog,
    readers: Mutex<Readers>,
    /// Wakes readers when a key or a session has ended.
    credentials: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct Readers {
    /// Open streams of each tenant; never 0.
    by_tenant: HashMap<Tenant, usize>,
    /// Whether a task reads the changes of other processes.
    is_polled: bool,
}

/// A position in the changes of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeId {
    instance: InstanceId,
    number: u64,
}

#[derive(Debug, thiserror::Error)]
#[error("not an id of this stream; omit it, and load everything")]
pub struct InvalidChangeId;

impl Display for ChangeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.number, self.instance)
    }
}

impl FromStr for ChangeId {
    type Err = InvalidChangeId;

    fn from_str(text: &str) -> Result<Self, InvalidChangeId> {
        let (number, instance) = text.split_once('-').ok_or(InvalidChangeId)?;
        // A sign is no part of it.
        if !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(InvalidChangeId);
        }
        Ok(Self {
            number: number.parse().map_err(|_| InvalidChangeId)?,
            instance: instance.parse().map_err(|_| InvalidChangeId)?,
        })
    }
}

/// The changes of a tenant from a position on.
#[derive(Debug)]
pub struct ChangeSubscription {
    engine: Engine,
    tenant: Tenant,
    key: KeyId,
    session: Option<SessionId>,
    credentials: watch::Receiver<()>,
    /// `None` after a position of another process.
    position: Option<u64>,
    changed: watch::Receiver<u64>,
}

impl Changes<'_> {
    /// From now on, or after `from`.
    #[must_use]
    pub fn follow(self, caller: &Caller, from: Option<ChangeId>) -> ChangeSubscription {
        let published = &self.engine.published;
        // First, so that no change in between is missed.
        let changed = published.log.watch();
        published.enter(caller.tenant());
        self.poll_others();
        let position = match from {
            None => Some(published.log.last()),
            Some(from) if from.instance == self.engine.instance() => Some(from.number),
            Some(_) => None,
        };
        ChangeSubscription {
            engine: self.engine.clone(),
            tenant: caller.tenant().clone(),
            key: caller.key(),
            session: caller.session(),
            credentials: published.credentials.subscribe(),
            position,
            changed,
        }
    }
}

impl ChangeSubscription {
    /// The position after the last change.
    #[must_use]
    pub fn id(&self) -> ChangeId {
        ChangeId {
            instance: self.engine.instance(),
            number: self.position.unwrap_or_else(|| self.engine.published.log.last()),
        }
    }

    /// The next change; `None` when the process, the key or the session ends. Cancel-safe.
    pub async fn next(&mut self) -> Option<Change> {
        let closed = self.engine.running.closed();
        loop {
            self.changed.mark_unchanged();
            let log = &self.engine.published.log;
            let Some(position) = self.position else {
                self.position = Some(log.last());
                return Some(Change::Reset);
            };
            if let Some(next) = log.next(&self.tenant, position) {
                self.position = Some(next.number);
                return Some(next.change);
            }
            tokio::select! {
                biased;
                () = closed.cancelled() => return None,
                changed = self.credentials.changed() => {
                    changed.ok()?;
                    if !self.is_allowed().await {
                        return None;
                    }
                }
                changed = self.changed.changed() => changed.ok()?,
            }
        }
    }

    /// Whether the key and the session may still be used: a stream can outlive them.
    pub async fn is_allowed(&self) -> bool {
        let store = &self.engine.store;
        let found = match self.session {
            Some(session) => store.session(&self.tenant, session).await.map(|found| {
                let is_live = found.session.is_live(clock::now());
                is_live.then_some(found.key)
            }),
            None => store.key_by_id(&self.tenant, self.key).await.map(Some),
        };
        match found {
            Ok(key) => key.is_some_and(|key| Caller::check(&key, clock::now()).is_ok()),
            Err(store::Error::NotFound(_)) => false,
            // Checked again in the next round.
            Err(_) => true,
        }
    }
}

impl Drop for ChangeSubscription {
    fn drop(&mut self) {
        self.engine.published.leave(&self.tenant);
    }
}

impl Published {
    fn enter(&self, tenant: &Tenant) {
        *self.readers().by_tenant.entry(tenant.clone()).or_default() += 1;
    }

    fn leave(&self, tenant: &Tenant) {
        let mut readers = self.readers();
        if let Some(count) = readers.by_tenant.get_mut(tenant) {
            *count -= 1;
            if *count == 0 {
                readers.by_tenant.remove(tenant);
            }
        }
    }

    fn readers(&self) -> MutexGuard<'_, Readers> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine {
    /// Publishes an execution that was accepted or started.
    pub(super) fn publish_live(&self, new: &NewExecution, status: Status) {
        self.publish(&Execution {
            new: new.clone(),
            status,
            outcome: None,
        });
    }

    pub(super) fn publish_end(&self, new: &NewExecution, outcome: &Outcome) {
        let brief = Outcome {
            error: outcome.error.clone(),
            exit_code: outcome.exit_code,
            ..Outcome::bare(outcome.status, outcome.finished_at)
        };
        self.publish(&Execution {
            new: new.clone(),
            status: outcome.status,
            outcome: Some(brief),
        });
    }

    /// Publishes an execution as a list shows it.
    pub(super) fn publish(&self, execution: &Execution) {
        let mut item = Summary::from(execution);
        if let Some(error) = &mut item.error {
            error.exception = None;
        }
        let change = Change::Execution(Arc::new(item));
        self.published.log.add(&execution.new.tenant, change);
    }

    pub(super) fn publish_deletion(&self, tenant: &Tenant, id: ExecutionId) {
        self.published.log.add(tenant, Change::ExecutionDeleted(id));
    }

    pub(super) fn publish_skill(&self, tenant: &Tenant, change: SkillChange) {
        self.published.log.add(tenant, Change::Skill(change));
    }

    /// Ends the streams of a key or session that has ended.
    pub(super) fn recheck_readers(&self) {
        self.published.credentials.send_replace(());
    }

    /// Publishes that more has changed than is worth naming.
    pub(super) fn publish_reset(&self, tenant: &Tenant) {
        self.published.log.add(tenant, Change::Reset);
    }

    /// Publishes the recorded state of an execution that other code has ended.
    pub(super) async fn publish_recorded(&self, tenant: &Tenant, id: ExecutionId) -> Result<(), Error> {
        let omitted = Omitted {
            logs: true,
            results: true,
            output: true,
        };
        let execution = self.store.execution_without(tenant, id, omitted).await?;
        self.publish(&execution);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_survives_display_and_parse() {
        let id = ChangeId {
            instance: InstanceId::generate(),
            number: 42,
        };
        assert_eq!(id.to_string().parse::<ChangeId>().unwrap(), id);
        for wrong in ["", "42", "42-", "-1-x", "x", "0-0-0-start"] {
            assert!(wrong.parse::<ChangeId>().is_err(), "{wrong:?}");
        }
    }
}
