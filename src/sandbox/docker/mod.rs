//! Sandboxes as containers of a Docker-compatible engine, local, remote or behind a socket proxy.
//!
//! Containers share no folder with the host: files are mounted from volume containers, results are streamed.

mod attached_socket;
mod container;
mod engine;
mod guest_binary;
mod image;
mod policy;
mod reconcile;
mod volume_containers;
mod volume_tar;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use crate::ids::{ExecutionId, InstanceId};
use crate::limits;
use crate::sandbox::protocol::{self, Guest, GuestReport};
use crate::sandbox::report::report;
use crate::sandbox::warm_key::WarmKey;
use crate::sandbox::warm_pool::{PendingSandbox, WarmFactory, WarmPool};
use crate::sandbox::{
    Backend, Error, Job, ProgressSender, Report, RunContext, SandboxSpec, WarmPoolSettings,
};
use crate::telemetry::WarmPoolStats;

use attached_socket::Diagnostics;
use container::Container;
use engine::{Connection, Connector};
use guest_binary::Loader;
use policy::ContainerSpec;
use volume_containers::VolumeContainers;

pub use engine::EngineFacts;

/// Settings of the container engine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// `unix:///…` (on Windows `npipe:////./pipe/…`), `tcp://…`, `http://…`; `DOCKER_HOST` or the local socket or pipe if absent.
    pub host: Option<String>,
    /// Name of another runtime of the engine, for example `runsc`.
    pub runtime: Option<String>,
    /// Guest binary for an engine of another operating system or architecture.
    pub guest_binary: Option<PathBuf>,
}

/// The engine need not run: each use reconnects if necessary.
#[derive(Debug)]
pub struct Docker {
    factory: Arc<ContainerFactory>,
    warm: WarmPool<AttachedContainer>,
}

#[derive(Debug)]
struct ContainerFactory {
    settings: Settings,
    instance: InstanceId,
    connector: Connector,
    images: image::Images,
    volume_containers: VolumeContainers,
    /// Background removals.
    removals: TaskTracker,
}

/// A container and the connection to its guest.
#[derive(Debug)]
struct AttachedContainer {
    guest: Guest,
    diagnostics: Diagnostics,
    container: Container,
}

impl Docker {
    pub(super) fn new(settings: Settings, instance: InstanceId) -> Self {
        let connector = Connector::new(settings.clone());
        Self {
            factory: Arc::new(ContainerFactory {
                settings,
                instance,
                connector,
                images: image::Images::default(),
                volume_containers: VolumeContainers::default(),
                removals: TaskTracker::new(),
            }),
            warm: WarmPool::new(TaskTracker::new()),
        }
    }

    pub(super) fn warm_pool_stats(&self) -> WarmPoolStats {
        self.warm.stats()
    }

    pub(super) fn set_warm_pool(&self, pool: WarmPoolSettings) {
        self.warm.configure(pool);
    }

    pub async fn facts(&self) -> Result<EngineFacts, Error> {
        self.factory.connector.connect().await?.facts().await
    }

    /// Whether the configured runtime is gVisor, by its name.
    #[must_use]
    pub fn is_on_gvisor(&self) -> bool {
        Loader::of(self.factory.settings.runtime.as_deref()) == Loader::UserSpace
    }

    /// Checks that an engine responds and can enforce every limit.
    pub(super) async fn check_promises(&self) -> Result<(), Error> {
        let connection = self.factory.connector.connect().await?;
        connection.ping().await?;
        connection.check_promises().await
    }

    /// Number of containers of this process's executions.
    pub async fn live_runs(&self) -> Result<usize, Error> {
        let connection = self.factory.connector.connect().await?;
        reconcile::live_runs(&connection, self.factory.instance).await
    }

    /// Pulls the image if it is missing.
    pub async fn ensure_image(
        &self,
        image: &crate::skill::ApprovedImage,
        progress: Option<&ProgressSender>,
    ) -> Result<(), Error> {
        let connection = self.factory.connector.connect().await?;
        self.factory.images.ensure(&connection, image, progress).await
    }

    /// Id of the image; known once the job was prepared.
    pub(super) fn base(&self, job: &Job) -> Option<String> {
        self.factory.images.id(&job.sandbox.image)
    }
}

impl ContainerFactory {
    /// A container that was not started yet.
    async fn create_attached(
        &self,
        spec: &SandboxSpec,
        execution: ExecutionId,
    ) -> Result<AttachedContainer, Error> {
        let connection = self.connector.connect().await?;
        let container = self.create(&connection, spec, execution).await?;
        let (socket, diagnostics) = container.attach().await?;
        Ok(AttachedContainer {
            guest: Guest::at(socket),
            diagnostics,
            container,
        })
    }

    /// Ensures the image and the volume containers; returns the names of the latter.
    async fn prepare(
        &self,
        connection: &Arc<Connection>,
        spec: &SandboxSpec,
        progress: Option<&ProgressSender>,
    ) -> Result<Vec<String>, Error> {
        self.images.ensure(connection, &spec.image, progress).await?;
        self.volume_containers.ensure(connection, spec).await
    }

    /// Creates the image and the volume containers again, once, if they were removed meanwhile.
    async fn create(
        &self,
        connection: &Arc<Connection>,
        spec: &SandboxSpec,
        execution: ExecutionId,
    ) -> Result<Container, Error> {
        let volumes = self.prepare(connection, spec, None).await?;
        match self.create_once(connection, spec, execution, &volumes).await? {
            // 400: a volume container does not exist; 404: the image does not exist.
            Err(error) if engine::is_status(&error, &[400, 404]) => {
                self.images.forget(&spec.image);
                self.volume_containers.forget(&volumes);
                let volumes = self.prepare(connection, spec, None).await?;
                self.create_once(connection, spec, execution, &volumes).await?
            }
            other => other,
        }
        .map_err(|error| engine::failed("creating the container", error))
    }

    async fn create_once(
        &self,
        connection: &Arc<Connection>,
        spec: &SandboxSpec,
        execution: ExecutionId,
        volume_containers: &[String],
    ) -> Result<Result<Container, bollard::errors::Error>, Error> {
        let spec = ContainerSpec {
            execution,
            instance: self.instance,
            image: &spec.image,
            limits: &spec.limits,
            volume_containers,
            seccomp: &connection.seccomp,
            runtime: self.settings.runtime.as_deref(),
            loader: connection.guest.loader,
            created: jiff::Timestamp::now().as_second(),
        };
        let name = format!("skillbox-run-{execution}");
        Container::create(connection, &self.removals, &name, policy::container(&spec)).await
    }
}

impl WarmFactory for ContainerFactory {
    type Sandbox = AttachedContainer;

    const REFILL_DELAY: Duration = Duration::ZERO;
    const REFILLS_OTHERS: bool = false;

    fn is_connected(sandbox: &mut AttachedContainer) -> bool {
        sandbox.guest.is_connected()
    }

    async fn create_warm(
        self: &Arc<Self>,
        pending: &PendingSandbox<AttachedContainer>,
    ) -> Result<AttachedContainer, Error> {
        let mut created = self
            .create_attached(&pending.spec, ExecutionId::generate())
            .await?;
        created.container.start().await?;
        let warm_up = created.guest.warm_up(pending.command());
        match tokio::time::timeout(limits::SANDBOX_START_MAX, warm_up).await {
            Ok(Ok(())) => Ok(created),
            _ => Err(Error::Unavailable(format!(
                "the container's first process printed {:?}",
                created.diagnostics.text()
            ))),
        }
    }

    async fn refill_others(self: &Arc<Self>, _background: &TaskTracker) {}

    async fn release(self: &Arc<Self>) {
        self.removals.close();
        self.removals.wait().await;
        self.removals.reopen();
    }
}

impl Backend for Docker {
    async fn prepare(&self, job: &Job, progress: Option<&ProgressSender>) -> Result<(), Error> {
        let connection = self.factory.connector.connect().await?;
        self.factory
            .prepare(&connection, &job.sandbox, progress)
            .await
            .map(drop)
    }

    async fn run(&self, job: &Job, mut context: RunContext<'_>) -> Result<Report, Error> {
        let requested_at = Instant::now();
        let key = WarmKey::of(job);
        let warm = match key.and_then(|key| self.warm.checkout::<ContainerFactory>(key)) {
            Some(ready) => run_warm(ready, job, &mut context).await,
            None => None,
        };
        let (guest_report, container, diagnostics) = match warm {
            Some(ran) => ran,
            None => {
                let ready = self
                    .factory
                    .create_attached(&job.sandbox, job.program.execution)
                    .await?;
                let driving = protocol::drive(ready.guest, job, &mut context);
                let guest_report = start_and_drive(&ready.container, driving).await?;
                (guest_report, ready.container, ready.diagnostics)
            }
        };
        let report = match &guest_report.end {
            Some(_) => report(guest_report, requested_at),
            None if guest_report.not_stored => report(guest_report, requested_at),
            None => {
                let end = container.explain(&guest_report, &diagnostics).await?;
                Report {
                    end,
                    ..report(guest_report, requested_at)
                }
            }
        };
        container.remove_in_background();
        self.warm.refill(&self.factory, key, job);
        Ok(report)
    }

    async fn check(&self) -> Result<(), Error> {
        self.factory.connector.connect().await?.ping().await
    }

    async fn reconcile(&self, dead: &[InstanceId]) -> Result<usize, Error> {
        drop(self.warm.evict_expired());
        let connection = self.factory.connector.connect().await?;
        reconcile::reconcile(
            &connection,
            self.factory.instance,
            dead,
            &self.factory.volume_containers,
        )
        .await
    }

    async fn drain(&self) {
        self.warm.drain(Some(&self.factory)).await;
    }
}

/// `None` if the container ended before its program could start: it may have been removed from outside.
async fn run_warm(
    ready: AttachedContainer,
    job: &Job,
    context: &mut RunContext<'_>,
) -> Option<(GuestReport, Container, Diagnostics)> {
    let guest_report = protocol::drive(ready.guest, job, context).await;
    if guest_report.is_stillborn() {
        tracing::warn!(execution = %job.program.execution, "A warm container ended before its program; starting another");
        ready.container.remove_in_background();
        return None;
    }
    Some((guest_report, ready.container, ready.diagnostics))
}

/// Starts the container while already receiving, because the guest may send before the engine answers the start.
async fn start_and_drive(
    container: &Container,
    driving: impl Future<Output = GuestReport>,
) -> Result<GuestReport, Error> {
    let start = container.start();
    tokio::pin!(start, driving);
    let mut started = false;
    let guest_report = loop {
        tokio::select! {
            result = &mut start, if !started => {
                result?;
                started = true;
            }
            guest_report = &mut driving => break guest_report,
        }
    };
    if guest_report.end.is_none() && !guest_report.hello && !started {
        // The engine knows why the guest sent nothing.
        start.await?;
    }
    Ok(guest_report)
}
