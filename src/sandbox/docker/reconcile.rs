//! Removes what should not be there any more, whoever made it. Runs at start and every minute.

use std::time::Duration;

use bollard::models::{ContainerSummary, ContainerSummaryStateEnum as State};

use crate::ids::InstanceId;
use crate::limits;
use crate::sandbox::Error;
use crate::sandbox::docker::container::remove;
use crate::sandbox::docker::engine::Connection;
use crate::sandbox::docker::keepers::Keepers;
use crate::sandbox::docker::policy::{
    LABEL_CREATED, LABEL_EXPIRES, LABEL_INSTANCE, LABEL_ROLE, ROLE_KEEPER, ROLE_RUN,
};

/// A keeper of this age that the process has not used yet goes, too: making it again costs well under a second.
const KEEPER_UNUSED_AGE_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

/// One round. Returns how many containers were removed; one that cannot be removed is left to the next round.
pub(super) async fn round(
    connection: &Connection,
    own: InstanceId,
    dead: &[InstanceId],
    keepers: &Keepers,
) -> Result<usize, Error> {
    let now = jiff::Timestamp::now().as_second();
    let mut removed = 0;
    for container in connection.ours().await? {
        let Some(id) = container.id.as_deref() else {
            continue;
        };
        let Some(found) = Found::read(&container) else {
            continue;
        };
        let verdict = match found.role.as_str() {
            ROLE_RUN => found.is_leftover_run(now, own, dead),
            ROLE_KEEPER => found.is_leftover_keeper(now, keepers),
            _ => false,
        };
        if !verdict {
            continue;
        }
        tracing::info!(container.id = %id, role = found.role, "Removing leftover container {id}");
        match remove(connection, id).await {
            Ok(()) => {
                removed += 1;
                keepers.forget(&[found.name]);
            }
            Err(error) => {
                tracing::warn!(container.id = %id, %error, "Could not remove container {id}; trying again in a minute")
            }
        }
    }
    Ok(removed)
}

/// What the labels and the engine say of a container of ours.
#[derive(Debug, Clone)]
struct Found {
    role: String,
    name: String,
    state: State,
    instance: Option<InstanceId>,
    created: i64,
    expires: Option<i64>,
}

impl Found {
    fn read(container: &ContainerSummary) -> Option<Self> {
        let labels = container.labels.as_ref()?;
        let number = |label: &str| labels.get(label).and_then(|text| text.parse().ok());
        Some(Self {
            role: labels.get(LABEL_ROLE)?.clone(),
            name: container
                .names
                .as_ref()?
                .first()?
                .trim_start_matches('/')
                .to_owned(),
            state: container.state?,
            instance: labels.get(LABEL_INSTANCE).and_then(|text| text.parse().ok()),
            created: number(LABEL_CREATED).or(container.created)?,
            expires: number(LABEL_EXPIRES),
        })
    }

    fn age(&self, now: i64) -> Duration {
        Duration::from_secs(u64::try_from(now - self.created).unwrap_or(0))
    }

    /// Ended, expired, of a dead process, or made and never started. A live, unexpired one belongs to its process alone.
    fn is_leftover_run(&self, now: i64, own: InstanceId, dead: &[InstanceId]) -> bool {
        let orphan = self
            .instance
            .is_some_and(|instance| instance != own && dead.contains(&instance));
        let expired = self.expires.is_some_and(|at| at <= now);
        match self.state {
            State::EXITED | State::DEAD => true,
            State::CREATED => orphan || self.age(now) >= limits::CREATED_NEVER_STARTED_MAX,
            State::RUNNING | State::PAUSED | State::RESTARTING | State::STOPPING => orphan || expired,
            State::REMOVING | State::EMPTY => false,
        }
    }

    /// Never completed, or not used for long.
    fn is_leftover_keeper(&self, now: i64, keepers: &Keepers) -> bool {
        if self.name.starts_with("skillbox-making-") {
            return self.age(now) >= limits::CREATED_NEVER_STARTED_MAX;
        }
        match keepers.idle(&self.name) {
            Some(idle) => idle >= limits::KEEPER_IDLE_MAX,
            None => self.age(now) >= KEEPER_UNUSED_AGE_MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(state: State, instance: InstanceId) -> Found {
        Found {
            role: ROLE_RUN.to_owned(),
            name: "skillbox-run-x".to_owned(),
            state,
            instance: Some(instance),
            created: 1000,
            expires: Some(2000),
        }
    }

    /// F-03: two servers on one engine leave each other's sandboxes alone.
    #[test]
    fn a_live_sandbox_of_another_process_is_left_alone() {
        let (own, other) = (InstanceId::generate(), InstanceId::generate());
        assert!(!found(State::RUNNING, other).is_leftover_run(1500, own, &[]));
        assert!(!found(State::RUNNING, own).is_leftover_run(1500, own, &[own]));
        assert!(found(State::RUNNING, other).is_leftover_run(1500, own, &[other]));
    }

    #[test]
    fn what_ended_expired_or_never_started_goes() {
        let (own, other) = (InstanceId::generate(), InstanceId::generate());
        assert!(found(State::EXITED, other).is_leftover_run(1500, own, &[]));
        assert!(found(State::RUNNING, other).is_leftover_run(2000, own, &[]));
        assert!(!found(State::CREATED, other).is_leftover_run(1500, own, &[]));
        let later = 1000 + i64::try_from(limits::CREATED_NEVER_STARTED_MAX.as_secs()).unwrap();
        assert!(found(State::CREATED, other).is_leftover_run(later, own, &[]));
    }
}
