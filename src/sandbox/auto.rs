//! Whatever keeps every promise on this host: decided for each execution, the reason kept.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::docker::Docker;
#[cfg(target_os = "linux")]
use super::linux::Native;
use super::{Backend as _, Choice, Error, Job, Kind, ProgressSender, Report, Run};
use crate::ids::InstanceId;

/// A container engine where one can serve, else the native sandbox.
#[derive(Debug)]
pub struct Auto {
    docker: Docker,
    #[cfg(target_os = "linux")]
    native: Native,
    /// When the engine was last found missing, and why.
    missed: Mutex<Option<(Instant, String)>>,
}

/// An engine that was missing is looked for again after this long: looking may take many times as long as a run.
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(10);

impl Auto {
    pub(super) fn new(docker: Docker, #[cfg(target_os = "linux")] native: Native) -> Self {
        Self {
            docker,
            #[cfg(target_os = "linux")]
            native,
            missed: Mutex::default(),
        }
    }

    /// The container engine, if there is one.
    #[must_use]
    pub fn docker(&self) -> &Docker {
        &self.docker
    }

    /// The native sandbox, if this host lets us.
    #[cfg(target_os = "linux")]
    #[must_use]
    pub fn native(&self) -> &Native {
        &self.native
    }

    pub(super) async fn prepare(
        &self,
        job: &Job,
        progress: Option<&ProgressSender>,
    ) -> Result<Choice, Error> {
        let by_docker = match self.missed() {
            Some(why) => Err(Error::Unavailable(why)),
            None => self.docker.prepare(job, progress).await,
        };
        let Err(error) = by_docker else {
            return Ok(Choice {
                kind: Kind::Docker,
                reason: "auto: the container engine keeps every promise".to_owned(),
                degraded: &[],
            });
        };
        if let Error::Unavailable(why) = &error {
            *self.missed.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), why.clone()));
        }
        self.prepare_native(job, error).await
    }

    #[cfg(target_os = "linux")]
    async fn prepare_native(&self, job: &Job, docker: Error) -> Result<Choice, Error> {
        match self.native.prepare(job, None).await {
            Ok(()) => Ok(Choice {
                kind: Kind::Native,
                reason: format!(
                    "auto: no container engine can serve ({docker}); the native sandbox keeps every promise"
                ),
                degraded: &[],
            }),
            Err(native) => Err(neither(&docker, &native)),
        }
    }

    #[cfg(not(target_os = "linux"))]
    async fn prepare_native(&self, _job: &Job, docker: Error) -> Result<Choice, Error> {
        Err(docker)
    }

    pub(super) async fn run(&self, choice: &Choice, job: &Job, run: Run<'_>) -> Result<Report, Error> {
        match choice.kind {
            #[cfg(target_os = "linux")]
            Kind::Native => self.native.run(job, run).await,
            _ => self.docker.run(job, run).await,
        }
    }

    pub(super) async fn check(&self) -> Result<(), Error> {
        let Err(docker) = self.docker.check().await else {
            return Ok(());
        };
        #[cfg(target_os = "linux")]
        return self
            .native
            .check()
            .await
            .map_err(|native| neither(&docker, &native));
        #[cfg(not(target_os = "linux"))]
        Err(docker)
    }

    pub(super) async fn reconcile(&self, dead: &[InstanceId]) -> Result<usize, Error> {
        // One that is not there holds nothing of ours.
        let engine = match self.docker.reconcile(dead).await {
            Err(Error::Unavailable(_)) => 0,
            other => other?,
        };
        #[cfg(target_os = "linux")]
        if let Ok(native) = self.native.reconcile(dead).await {
            return Ok(engine + native);
        }
        Ok(engine)
    }

    pub(super) async fn settle(&self) {
        self.docker.settle().await;
        #[cfg(target_os = "linux")]
        self.native.settle().await;
    }

    /// Why the engine was missing a moment ago.
    fn missed(&self) -> Option<String> {
        let missed = self.missed.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, why) = missed.as_ref()?;
        (at.elapsed() < LOOK_AGAIN_AFTER).then(|| why.clone())
    }
}

#[cfg(target_os = "linux")]
fn neither(docker: &Error, native: &Error) -> Error {
    Error::Unavailable(format!(
        "no backend keeps every promise here: {docker}; and native: {native}"
    ))
}
