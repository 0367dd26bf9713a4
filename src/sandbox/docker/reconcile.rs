//! Removes leftover containers of all processes. Runs at start and every minute.

use std::time::Duration;

use bollard::models::{ContainerSummary, ContainerSummaryStateEnum as State};

use crate::ids::InstanceId;
use crate::limits;
use crate::sandbox::Error;
use crate::sandbox::docker::container::remove;
use crate::sandbox::docker::engine::Connection;
use crate::sandbox::docker::policy::{
    LABEL_CREATED, LABEL_EXPIRES, LABEL_INSTANCE, LABEL_ROLE, ROLE_RUN, ROLE_VOLUME_CONTAINER,
};
use crate::sandbox::docker::volume_containers::VolumeContainers;

/// Returns the number of removed containers. Failures are retried in the next round.
pub(super) async fn reconcile(
    connection: &Connection,
    own: InstanceId,
    dead: &[InstanceId],
    volume_containers: &VolumeContainers,
) -> Result<usize, Error> {
    let now = jiff::Timestamp::now().as_second();
    let found: Vec<_> = connection
        .own_containers()
        .await?
        .iter()
        .filter_map(ListedContainer::read)
        .collect();
    let idle = |name: &str| volume_containers.idle(name);
    let mut removed = 0;
    for ListedContainer { id, role, name, .. } in leftovers(found, now, own, dead, idle) {
        tracing::info!(container.id = %id, role, "Removing leftover container {id}");
        match remove(connection, &id).await {
            Ok(()) => {
                removed += 1;
                volume_containers.forget(&[name]);
            }
            Err(error) => {
                tracing::warn!(container.id = %id, %error, "Could not remove container {id}; trying again in a minute")
            }
        }
    }
    Ok(removed)
}

/// Counts containers of executions of `own`, in any state.
pub(super) async fn live_runs(connection: &Connection, own: InstanceId) -> Result<usize, Error> {
    let found = connection.own_containers().await?;
    let is_own = |found: &ListedContainer| found.role == ROLE_RUN && found.instance == Some(own);
    Ok(found
        .iter()
        .filter_map(ListedContainer::read)
        .filter(is_own)
        .count())
}

fn leftovers(
    found: Vec<ListedContainer>,
    now: i64,
    own: InstanceId,
    dead: &[InstanceId],
    idle: impl Fn(&str) -> Option<Duration>,
) -> Vec<ListedContainer> {
    let (mut leftovers, mut kept) = (Vec::new(), Vec::new());
    for container in found {
        match container.role.as_str() {
            ROLE_RUN if container.is_leftover_run(now, own, dead) => leftovers.push(container),
            ROLE_VOLUME_CONTAINER if !container.is_unfinished() => {
                // A volume container of another process: its age counts from creation, since that process can create
                // it again quickly.
                let idle = idle(&container.name).unwrap_or_else(|| container.age(now));
                kept.push((idle, container));
            }
            ROLE_VOLUME_CONTAINER if container.age(now) >= limits::CREATED_NEVER_STARTED_MAX => {
                leftovers.push(container)
            }
            _ => {}
        }
    }
    kept.sort_by_key(|(idle, _)| *idle);
    let fresh = kept.partition_point(|(idle, _)| *idle < limits::VOLUME_CONTAINER_IDLE_MAX);
    let gone = kept.drain(fresh.min(limits::VOLUME_CONTAINERS_MAX)..);
    leftovers.extend(gone.map(|(_, container)| container));
    leftovers
}

/// A container with our label.
#[derive(Debug, Clone)]
struct ListedContainer {
    id: String,
    role: String,
    name: String,
    state: State,
    instance: Option<InstanceId>,
    created: i64,
    expires: Option<i64>,
}

impl ListedContainer {
    fn read(container: &ContainerSummary) -> Option<Self> {
        let labels = container.labels.as_ref()?;
        let number = |label: &str| labels.get(label).and_then(|text| text.parse().ok());
        Some(Self {
            id: container.id.clone()?,
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

    /// Ended, expired, of a dead process, or created and never started.
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

    /// A volume container that is being filled, or is incomplete.
    fn is_unfinished(&self) -> bool {
        self.name.starts_with("skillbox-making-")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(state: State, instance: InstanceId) -> ListedContainer {
        ListedContainer {
            id: "x".to_owned(),
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
    fn live_sandbox_of_another_process_is_not_removed() {
        let (own, other) = (InstanceId::generate(), InstanceId::generate());
        assert!(!found(State::RUNNING, other).is_leftover_run(1500, own, &[]));
        assert!(!found(State::RUNNING, own).is_leftover_run(1500, own, &[own]));
        assert!(found(State::RUNNING, other).is_leftover_run(1500, own, &[other]));
    }

    #[test]
    fn removes_ended_expired_and_never_started_containers() {
        let (own, other) = (InstanceId::generate(), InstanceId::generate());
        assert!(found(State::EXITED, other).is_leftover_run(1500, own, &[]));
        assert!(found(State::RUNNING, other).is_leftover_run(2000, own, &[]));
        assert!(!found(State::CREATED, other).is_leftover_run(1500, own, &[]));
        let later = 1000 + i64::try_from(limits::CREATED_NEVER_STARTED_MAX.as_secs()).unwrap();
        assert!(found(State::CREATED, other).is_leftover_run(later, own, &[]));
    }

    fn volume_container(name: &str, created: i64) -> ListedContainer {
        ListedContainer {
            role: ROLE_VOLUME_CONTAINER.to_owned(),
            name: name.to_owned(),
            created,
            ..found(State::CREATED, InstanceId::generate())
        }
    }

    fn gone(found: Vec<ListedContainer>, now: i64, used: &[(&str, u64)]) -> Vec<String> {
        let idle = |name: &str| {
            let known = used.iter().find(|(used, _)| *used == name);
            known.map(|(_, seconds)| Duration::from_secs(*seconds))
        };
        let gone = leftovers(found, now, InstanceId::generate(), &[], idle);
        gone.into_iter().map(|container| container.name).collect()
    }

    #[test]
    fn removes_idle_volume_containers() {
        let idle_max = i64::try_from(limits::VOLUME_CONTAINER_IDLE_MAX.as_secs()).unwrap();
        let volume_containers = || {
            vec![
                volume_container("busy", 0),
                volume_container("strange", 0),
                volume_container("skillbox-making-1", idle_max),
            ]
        };
        assert_eq!(gone(volume_containers(), idle_max - 1, &[]), [""; 0]);
        assert_eq!(gone(volume_containers(), idle_max, &[("busy", 60)]), ["strange"]);
        let unfinished = gone(
            volume_containers(),
            idle_max + 900,
            &[("busy", 60), ("strange", 60)],
        );
        assert_eq!(unfinished, ["skillbox-making-1"]);
    }

    #[test]
    fn evicts_least_recently_used_volume_containers() {
        let volume_containers =
            (0..=limits::VOLUME_CONTAINERS_MAX).map(|n| volume_container(&n.to_string(), 1000));
        let now = 1000 + 3600;
        let used: Vec<_> = (1..=limits::VOLUME_CONTAINERS_MAX)
            .map(|n| n.to_string())
            .collect();
        let used: Vec<_> = used.iter().map(|name| (name.as_str(), 60)).collect();
        assert_eq!(gone(volume_containers.collect(), now, &used), ["0"]);
    }
}
