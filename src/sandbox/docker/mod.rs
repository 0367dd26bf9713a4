//! Sandboxes as containers of a Docker-compatible engine, local, remote or behind a socket proxy.
//!
//! No container of ours shares a folder with the host: files go in through keepers, results come back as a stream.

mod container;
mod engine;
mod guest_binary;
mod image;
mod keeper_tar;
mod keepers;
mod link;
mod policy;
mod reconcile;

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use crate::ids::InstanceId;
use crate::limits;
use crate::sandbox::report::report;
use crate::sandbox::session::{self, Guest, Heard};
use crate::sandbox::warm::{Making, Recurring, Shelf};
use crate::sandbox::{Backend, Error, Job, Pool, ProgressSender, Report, Run};
use crate::telemetry::Warmth;

use container::Container;
use engine::{Connection, Connector};
use guest_binary::Loader;
use keepers::Keepers;
use link::Diagnostics;
use policy::Plan;

pub use engine::EngineFacts;

/// How the engine is reached and used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// `unix:///…` (on Windows `npipe:////./pipe/…`), `tcp://…`, `http://…`; `DOCKER_HOST` or the local socket or pipe if absent.
    pub host: Option<String>,
    /// Another runtime of the engine by name, for example `runsc`.
    pub runtime: Option<String>,
    /// The guest for an engine of another operating system or architecture than this binary's.
    pub guest_binary: Option<PathBuf>,
}

/// The Docker backend. Made without an engine; each use finds out anew whether one is there.
#[derive(Debug)]
pub struct Docker {
    maker: Arc<Maker>,
    /// Containers that wait for a program.
    warm: Arc<Shelf<Ready>>,
    /// Containers that are made while nobody waits.
    background: TaskTracker,
}

/// Makes containers.
#[derive(Debug)]
struct Maker {
    settings: Settings,
    instance: InstanceId,
    connector: Connector,
    images: image::Images,
    keepers: Keepers,
    /// Removals that nobody waits for.
    removals: TaskTracker,
}

/// A container whose guest is spoken to, or will be.
#[derive(Debug)]
struct Ready {
    guest: Guest,
    diagnostics: Diagnostics,
    container: Container,
}

impl Docker {
    pub(super) fn new(settings: Settings, instance: InstanceId) -> Self {
        let connector = Connector::new(settings.clone());
        Self {
            maker: Arc::new(Maker {
                settings,
                instance,
                connector,
                images: image::Images::default(),
                keepers: Keepers::default(),
                removals: TaskTracker::new(),
            }),
            warm: Arc::new(Shelf::empty()),
            background: TaskTracker::new(),
        }
    }

    pub(super) fn warmth(&self) -> Warmth {
        self.warm.warmth()
    }

    /// Makes sandboxes in advance from now on.
    pub(super) fn keep_warm(&self, pool: Pool) {
        self.warm.allow(pool);
    }

    /// What the engine says of itself.
    pub async fn facts(&self) -> Result<EngineFacts, Error> {
        self.maker.connector.connect().await?.facts().await
    }

    /// Whether the configured runtime is gVisor, by its name.
    #[must_use]
    pub fn is_on_gvisor(&self) -> bool {
        Loader::of(self.maker.settings.runtime.as_deref()) == Loader::UserSpace
    }

    /// Whether an engine answers and can hold every bound that a sandbox needs.
    pub(super) async fn keeps_every_promise(&self) -> Result<(), Error> {
        let connection = self.maker.connector.connect().await?;
        connection.ping().await?;
        connection.keeps_every_promise().await
    }

    /// How many containers of this process's executions the engine knows at this moment.
    pub async fn standing(&self) -> Result<usize, Error> {
        let connection = self.maker.connector.connect().await?;
        reconcile::standing(&connection, self.maker.instance).await
    }

    /// Makes sure that the image is there, pulling it if it is missing.
    pub async fn ensure_image(
        &self,
        image: &crate::skill::ApprovedImage,
        progress: Option<&ProgressSender>,
    ) -> Result<(), Error> {
        let connection = self.maker.connector.connect().await?;
        self.maker.images.ensure(&connection, image, progress).await
    }

    /// What packages for this job's program are built for; known once it was prepared.
    pub(super) fn base(&self, job: &Job) -> Option<String> {
        self.maker.images.id(&job.image)
    }

    /// Makes one more container wait for jobs like this if they are worth it, off everybody's path.
    fn refill(&self, recurring: Option<Recurring>, job: &Job) {
        if self.background.is_closed() {
            return;
        }
        let Some(mut making) = recurring.and_then(|recurring| self.warm.begin(recurring, job)) else {
            return;
        };
        let (maker, warm) = (self.maker.clone(), self.warm.clone());
        self.background.spawn(async move {
            making.make_room();
            let made = maker.warmed(&making).await;
            warm.end(making, made);
        });
    }
}

impl Maker {
    /// A container that was not started yet, attached to.
    async fn make(&self, job: &Job) -> Result<Ready, Error> {
        let connection = self.connector.connect().await?;
        let container = self.create(&connection, job).await?;
        let (socket, diagnostics) = container.attach().await?;
        Ok(Ready {
            guest: Guest::at(socket),
            diagnostics,
            container,
        })
    }

    /// A container that waits.
    async fn warmed(&self, making: &Making<Ready>) -> Result<Ready, Error> {
        let mut ready = self.make(&making.job).await?;
        ready.container.start().await?;
        let warm = ready.guest.warm_up(making.warm());
        match tokio::time::timeout(limits::SANDBOX_START_MAX, warm).await {
            Ok(Ok(())) => Ok(ready),
            _ => Err(Error::Unavailable(format!(
                "the container's first process said {:?}",
                ready.diagnostics.text()
            ))),
        }
    }

    /// Makes sure of image and keepers; returns the keepers' names.
    async fn make_ready(
        &self,
        connection: &Arc<Connection>,
        job: &Job,
        progress: Option<&ProgressSender>,
    ) -> Result<Vec<String>, Error> {
        self.images.ensure(connection, &job.image, progress).await?;
        self.keepers.ensure(connection, job).await
    }

    /// Makes the container. Image and keepers are made again, once, if they have gone meanwhile.
    async fn create(&self, connection: &Arc<Connection>, job: &Job) -> Result<Container, Error> {
        let mut keepers = self.make_ready(connection, job, None).await?;
        match self.create_once(connection, job, &keepers).await? {
            // 400: a keeper has gone; 404: the image has gone.
            Err(error) if engine::is_status(&error, &[400, 404]) => {
                self.images.forget(&job.image);
                self.keepers.forget(&keepers);
                keepers = self.make_ready(connection, job, None).await?;
                self.create_once(connection, job, &keepers).await?
            }
            other => other,
        }
        .map_err(|error| engine::failed("creating the container", error))
    }

    async fn create_once(
        &self,
        connection: &Arc<Connection>,
        job: &Job,
        keepers: &[String],
    ) -> Result<Result<Container, bollard::errors::Error>, Error> {
        let plan = Plan {
            execution: job.execution,
            instance: self.instance,
            image: &job.image,
            limits: &job.limits,
            keepers,
            seccomp: &connection.seccomp,
            runtime: self.settings.runtime.as_deref(),
            loader: connection.guest.loader,
            created: jiff::Timestamp::now().as_second(),
        };
        let name = format!("skillbox-run-{}", job.execution);
        Container::create(connection, &self.removals, &name, policy::container(&plan)).await
    }
}

impl Backend for Docker {
    async fn prepare(&self, job: &Job, progress: Option<&ProgressSender>) -> Result<(), Error> {
        let connection = self.maker.connector.connect().await?;
        self.maker.make_ready(&connection, job, progress).await.map(drop)
    }

    async fn run(&self, job: &Job, run: Run<'_>) -> Result<Report, Error> {
        let asked_at = Instant::now();
        let recurring = Recurring::of(job);
        let waiting = recurring.and_then(|recurring| {
            let is_there = |ready: &mut Ready| ready.guest.is_there();
            self.warm.take(&recurring, is_there)
        });
        let (heard, container, diagnostics) = match waiting {
            Some(ready) => {
                let heard = session::converse(ready.guest, job, run).await;
                (heard, ready.container, ready.diagnostics)
            }
            None => {
                let ready = self.maker.make(job).await?;
                let conversation = session::converse(ready.guest, job, run);
                let heard = converse_and_start(&ready.container, conversation).await?;
                (heard, ready.container, ready.diagnostics)
            }
        };
        let report = match &heard.end {
            Some(_) => report(heard, asked_at),
            None => {
                let end = container.explain(&heard, &diagnostics).await?;
                Report {
                    end,
                    ..report(heard, asked_at)
                }
            }
        };
        container.remove_in_background();
        self.refill(recurring, job);
        Ok(report)
    }

    async fn check(&self) -> Result<(), Error> {
        self.maker.connector.connect().await?.ping().await
    }

    async fn reconcile(&self, dead: &[InstanceId]) -> Result<usize, Error> {
        drop(self.warm.expired());
        let connection = self.maker.connector.connect().await?;
        reconcile::round(&connection, self.maker.instance, dead, &self.maker.keepers).await
    }

    async fn settle(&self) {
        self.background.close();
        self.background.wait().await;
        drop(self.warm.clear());
        self.background.reopen();
        self.maker.removals.close();
        self.maker.removals.wait().await;
        self.maker.removals.reopen();
    }
}

/// Starts the container while already listening: the guest may speak before the engine has answered that it started it.
async fn converse_and_start(
    container: &Container,
    conversation: impl Future<Output = Heard>,
) -> Result<Heard, Error> {
    let start = container.start();
    tokio::pin!(start, conversation);
    let mut started = false;
    let heard = loop {
        tokio::select! {
            result = &mut start, if !started => {
                result?;
                started = true;
            }
            heard = &mut conversation => break heard,
        }
    };
    if heard.end.is_none() && !heard.hello && !started {
        // The engine knows why nobody spoke.
        start.await?;
    }
    Ok(heard)
}
