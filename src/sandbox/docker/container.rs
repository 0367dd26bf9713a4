//! One container, removed when dropped.

use std::sync::Arc;
use std::time::Duration;

use bollard::models::ContainerCreateBody;
use bollard::query_parameters::{
    AttachContainerOptionsBuilder, CreateContainerOptionsBuilder, EventsOptionsBuilder,
    RemoveContainerOptionsBuilder,
};
use futures::StreamExt as _;
use tokio_util::task::TaskTracker;

use crate::limits;
use crate::sandbox::docker::attached_socket::{AttachedSocket, Diagnostics};
use crate::sandbox::docker::engine::{self, Connection};
use crate::sandbox::protocol::GuestReport;
use crate::sandbox::{Completion, Error};

/// `Drop` removes the container in the background; the reconciler handles failures.
#[derive(Debug)]
pub(super) struct Container {
    connection: Arc<Connection>,
    removals: TaskTracker,
    id: String,
    created: jiff::Timestamp,
}

impl Container {
    /// The outer error means that the engine does not respond; the inner one is its response.
    pub(super) async fn create(
        connection: &Arc<Connection>,
        removals: &TaskTracker,
        name: &str,
        body: ContainerCreateBody,
    ) -> Result<Result<Self, bollard::errors::Error>, Error> {
        let options = CreateContainerOptionsBuilder::default().name(name).build();
        let created = jiff::Timestamp::now();
        let answer =
            engine::with_call_timeout(connection.docker.create_container(Some(options), body)).await?;
        Ok(answer.map(|answer| Self {
            connection: connection.clone(),
            removals: removals.clone(),
            id: answer.id,
            created,
        }))
    }

    /// Attaches to all three streams. Must precede the start, or the guest's first frames are lost. Only once, or the
    /// end is not reported.
    pub(super) async fn attach(&self) -> Result<(AttachedSocket, Diagnostics), Error> {
        let options = AttachContainerOptionsBuilder::default()
            .stdin(true)
            .stdout(true)
            .stderr(true)
            .stream(true)
            .build();
        let attached = engine::with_call_timeout(
            self.connection
                .long_calls
                .attach_container(&self.id, Some(options)),
        )
        .await?
        .map_err(|error| engine::failed("attaching to the container", error))?;
        Ok(AttachedSocket::new(attached))
    }

    pub(super) async fn start(&self) -> Result<(), Error> {
        engine::with_call_timeout(self.connection.docker.start_container(&self.id, None))
            .await?
            .map_err(|error| engine::failed("starting the container", error))
    }

    /// Why the guest never reported an end: out of memory, or lost.
    pub(super) async fn explain(
        &self,
        guest_report: &GuestReport,
        diagnostics: &Diagnostics,
    ) -> Result<Completion, Error> {
        if self.was_out_of_memory().await {
            return Ok(Completion::OutOfMemory);
        }
        tracing::warn!(container.id = %self.id, hello = guest_report.hello, said = %diagnostics.text(), "Sandbox ended without a report");
        if guest_report.hello {
            if let Err(error) = self.connection.ping().await {
                return Ok(Completion::EngineLost(format!("the sandbox was lost: {error}")));
            }
            Ok(Completion::Lost("the sandbox ended before it could report; it was removed from outside, or the engine restarted".to_owned()))
        } else {
            Err(Error::Unavailable(format!(
                "the sandbox's first process did not start and printed {:?}; `skillbox doctor` shows what this engine supports",
                diagnostics.text()
            )))
        }
    }

    /// Uses the engine's events, which remain when the container is removed.
    async fn was_out_of_memory(&self) -> bool {
        const PATIENCE: Duration = Duration::from_secs(5);
        // The engine reports the end of a container 25 ms late, and later under load.
        const LATENESS: Duration = Duration::from_secs(1);
        let seconds = |time: jiff::Timestamp| format!("{}.{:09}", time.as_second(), time.subsec_nanosecond());
        let since = seconds(self.created - limits::CLOCKS_APART_MAX);
        let until = seconds(jiff::Timestamp::now() + LATENESS);
        let filters =
            std::collections::HashMap::from([("container", vec![self.id.as_str()]), ("event", vec!["oom"])]);
        let options = EventsOptionsBuilder::default()
            .since(&since)
            .until(&until)
            .filters(&filters)
            .build();
        let mut events = Box::pin(self.connection.docker.events(Some(options)));
        matches!(
            tokio::time::timeout(PATIENCE, events.next()).await,
            Ok(Some(Ok(_)))
        )
    }

    pub(super) fn remove_in_background(self) {
        drop(self);
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        let (connection, id) = (self.connection.clone(), std::mem::take(&mut self.id));
        self.removals.spawn(async move {
            if let Err(error) = remove(&connection, &id).await {
                tracing::warn!(container.id = %id, %error, "Left container {id} to the reconciler");
            }
        });
    }
}

/// Kills and removes a container and its volumes. No error if it is already removed.
pub(super) async fn remove(connection: &Connection, id: &str) -> Result<(), Error> {
    let options = RemoveContainerOptionsBuilder::default()
        .force(true)
        .v(true)
        .build();
    match engine::with_call_timeout(connection.docker.remove_container(id, Some(options))).await? {
        Ok(()) => Ok(()),
        Err(error) if engine::is_status(&error, &[404, 409]) => Ok(()),
        Err(error) => Err(engine::failed("removing a container", error)),
    }
}
