//! Chooses a backend for each execution: Docker where it keeps every promise, else native.
//!
//! Native runs only what Docker lacks: no engine, an engine that is silent or cannot limit, a missing image. A rejection or a
//! failure of Docker is returned to the caller.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::mpsc;

use super::docker::Docker;
#[cfg(target_os = "linux")]
use super::linux::Native;
use super::outlook::{OtherBackend, Outlook, first_clause};
use super::{
    Backend as _, BackendChoice, BackendKind, Error, Job, ProgressSender, Report, RunContext,
    WarmPoolSettings,
};
use crate::ids::InstanceId;
use crate::limits;
use crate::skill::ApprovedImage;
use crate::telemetry::WarmPoolStats;

#[derive(Debug)]
pub struct Auto {
    docker: Docker,
    #[cfg(target_os = "linux")]
    native: Native,
    /// Parts that were missing at the last check: at most the engine and the allowed images.
    missing: Mutex<HashMap<EnginePart, MissingPart>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum EnginePart {
    Engine,
    Image(ApprovedImage),
}

#[derive(Debug)]
struct MissingPart {
    why: String,
    retry_at: Instant,
}

impl Auto {
    pub(super) fn new(docker: Docker, #[cfg(target_os = "linux")] native: Native) -> Self {
        Self {
            docker,
            #[cfg(target_os = "linux")]
            native,
            missing: Mutex::default(),
        }
    }

    #[must_use]
    pub fn docker(&self) -> &Docker {
        &self.docker
    }

    #[cfg(target_os = "linux")]
    #[must_use]
    pub fn native(&self) -> &Native {
        &self.native
    }

    pub(super) fn warm_pool_stats(&self) -> WarmPoolStats {
        #[cfg(target_os = "linux")]
        return self.docker.warm_pool_stats() + self.native.warm_pool_stats();
        #[cfg(not(target_os = "linux"))]
        self.docker.warm_pool_stats()
    }

    pub(super) fn set_warm_pool(&self, pool: WarmPoolSettings) {
        self.docker.set_warm_pool(pool);
        #[cfg(target_os = "linux")]
        self.native.set_warm_pool(pool);
    }

    pub(super) async fn prepare(
        &self,
        job: &Job,
        progress: Option<&ProgressSender>,
    ) -> Result<BackendChoice, Error> {
        match self.prepare_engine(job, progress).await {
            Ok(()) => Ok(BackendChoice {
                kind: BackendKind::Docker,
                reason: ENGINE_REASON.to_owned(),
                degraded: &[],
            }),
            Err(absent @ (Error::Unavailable(_) | Error::ImageMissing(_))) => {
                self.prepare_native(job, absent).await
            }
            Err(error @ (Error::Image(_) | Error::Engine { .. })) => Err(error),
        }
    }

    async fn prepare_engine(&self, job: &Job, progress: Option<&ProgressSender>) -> Result<(), Error> {
        self.unless_missing(EnginePart::Engine, self.find_engine())
            .await?;
        let (sender, signs) = mpsc::channel(limits::PROGRESS_QUEUE);
        let prepared = self.docker.prepare(job, Some(&sender));
        let prepared = with_silence_timeout(prepared, signs, progress);
        self.unless_missing(EnginePart::Image(job.sandbox.image.clone()), prepared)
            .await
    }

    async fn find_engine(&self) -> Result<(), Error> {
        let (_sender, signs) = mpsc::channel(1);
        with_silence_timeout(self.docker.check_promises(), signs, None).await
    }

    /// Checks for a part, unless it was missing recently: the check may take much longer than a run.
    async fn unless_missing(
        &self,
        part: EnginePart,
        looking: impl Future<Output = Result<(), Error>>,
    ) -> Result<(), Error> {
        if let Some(missing) = self.locked().get(&part)
            && Instant::now() < missing.retry_at
        {
            return Err(Error::Unavailable(missing.why.clone()));
        }
        let started = Instant::now();
        let found = looking.await;
        if let Err(Error::Unavailable(why) | Error::ImageMissing(why)) = &found {
            let pause = limits::ENGINE_RECHECK_AFTER.max(started.elapsed() * RETRY_SHARE);
            let missing = MissingPart {
                why: why.clone(),
                retry_at: Instant::now() + pause,
            };
            self.locked().insert(part, missing);
        }
        found
    }

    #[cfg(target_os = "linux")]
    async fn prepare_native(&self, job: &Job, docker: Error) -> Result<BackendChoice, Error> {
        match self.native.prepare(job, None).await {
            Ok(()) => Ok(BackendChoice {
                kind: BackendKind::Native,
                reason: native_reason(&docker),
                degraded: &[],
            }),
            Err(native) => Err(both_failed(&docker, &native)),
        }
    }

    #[cfg(not(target_os = "linux"))]
    async fn prepare_native(&self, _job: &Job, docker: Error) -> Result<BackendChoice, Error> {
        Err(docker)
    }

    pub(super) async fn run(
        &self,
        choice: &BackendChoice,
        job: &Job,
        context: RunContext<'_>,
    ) -> Result<Report, Error> {
        match choice.kind {
            #[cfg(target_os = "linux")]
            BackendKind::Native => Box::pin(self.native.run(job, context)).await,
            _ => Box::pin(self.docker.run(job, context)).await,
        }
    }

    pub(super) fn base(&self, choice: &BackendChoice, job: &Job) -> Option<String> {
        match choice.kind {
            #[cfg(target_os = "linux")]
            BackendKind::Native => Native::base(job),
            _ => self.docker.base(job),
        }
    }

    pub(super) async fn check(&self) -> Result<BackendKind, Error> {
        let Err(docker) = self.unless_missing(EnginePart::Engine, self.find_engine()).await else {
            return Ok(BackendKind::Docker);
        };
        #[cfg(target_os = "linux")]
        return self
            .native
            .check()
            .await
            .map(|()| BackendKind::Native)
            .map_err(|native| both_failed(&docker, &native));
        #[cfg(not(target_os = "linux"))]
        Err(docker)
    }

    /// As [`Self::check`], with reasons.
    pub(super) async fn outlook(&self) -> Outlook {
        let Err(docker) = self.unless_missing(EnginePart::Engine, self.find_engine()).await else {
            let why_not = "the container engine keeps every promise and has precedence";
            let others = vec![OtherBackend::new("native", why_not)];
            return Outlook::of("docker", ENGINE_REASON.to_owned(), others);
        };
        let missing = OtherBackend::new("docker", first_clause(&docker.to_string()));
        #[cfg(target_os = "linux")]
        match self.native.check().await {
            Ok(()) => {
                let outlook = Outlook::of("native", native_reason(&docker), vec![missing]);
                outlook.on_host(&self.native.setup().await)
            }
            Err(native) => Outlook {
                chosen: None,
                others: vec![
                    missing,
                    OtherBackend::new("native", first_clause(&native.to_string())),
                ],
                ..Outlook::of(
                    "native",
                    "no backend keeps every promise here".to_owned(),
                    Vec::new(),
                )
            },
        }
        #[cfg(not(target_os = "linux"))]
        Outlook {
            chosen: None,
            others: vec![missing],
            ..Outlook::of(
                "docker",
                "the container engine is the only backend here".to_owned(),
                Vec::new(),
            )
        }
    }

    pub(super) async fn reconcile(&self, dead: &[InstanceId]) -> Result<usize, Error> {
        // Each backend is reconciled even if the other fails. An unavailable backend has no sandboxes of ours.
        let of_absent = |error| match error {
            Error::Unavailable(_) => Ok(0),
            error => Err(error),
        };
        let engine = self.docker.reconcile(dead).await.or_else(of_absent);
        #[cfg(target_os = "linux")]
        let native = self.native.reconcile(dead).await.or_else(of_absent);
        #[cfg(not(target_os = "linux"))]
        let native = Ok::<_, Error>(0);
        Ok(engine? + native?)
    }

    pub(super) async fn drain(&self) {
        self.docker.drain().await;
        #[cfg(target_os = "linux")]
        self.native.drain().await;
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<EnginePart, MissingPart>> {
        self.missing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const ENGINE_REASON: &str = "auto: the container engine keeps every promise";

#[cfg(target_os = "linux")]
fn native_reason(docker: &Error) -> String {
    let why = docker.to_string();
    format!(
        "auto: {}; the native sandbox keeps every promise",
        first_clause(&why)
    )
}

/// Checks for a missing part use at most this share of the time (1 / n).
const RETRY_SHARE: u32 = 6;

/// Fails if the engine reports no progress for too long. Forwards its progress.
async fn with_silence_timeout(
    prepared: impl Future<Output = Result<(), Error>>,
    mut signs: mpsc::Receiver<super::Progress>,
    progress: Option<&ProgressSender>,
) -> Result<(), Error> {
    tokio::pin!(prepared);
    loop {
        tokio::select! {
            biased;
            result = &mut prepared => return result,
            Some(sign) = signs.recv() => {
                if let Some(progress) = progress {
                    let _ = progress.try_send(sign);
                }
            }
            () = tokio::time::sleep(limits::ENGINE_SILENCE_MAX) => return Err(silent()),
        }
    }
}

fn silent() -> Error {
    Error::Unavailable(format!(
        "no response of the container engine or its registry for {} s; see its log, or restart it",
        limits::ENGINE_SILENCE_MAX.as_secs()
    ))
}

#[cfg(target_os = "linux")]
fn both_failed(docker: &Error, native: &Error) -> Error {
    let native = native.to_string();
    let (native, remedy) = native.split_once('\n').unwrap_or((&native, ""));
    let text =
        format!("no sandbox can be created on this host\n  docker: {docker}\n  native: {native}\n{remedy}");
    Error::Unavailable(text.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::Progress;

    fn pulling() -> Progress {
        Progress::Pulling {
            image: "bash:5".to_owned(),
            detail: "a layer".to_owned(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn silent_engine_times_out() {
        let (_sender, signs) = mpsc::channel(1);
        let error = with_silence_timeout(std::future::pending(), signs, None)
            .await
            .unwrap_err();
        assert!(
            error.to_string().contains("no response of the container engine"),
            "{error}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn slow_pull_with_progress_is_awaited_and_reported() {
        let (sender, signs) = mpsc::channel(1);
        let (watcher, mut watched) = mpsc::channel(64);
        let prepared = async {
            for _ in 0..20 {
                tokio::time::sleep(limits::ENGINE_SILENCE_MAX / 2).await;
                sender.try_send(pulling()).unwrap();
            }
            Ok(())
        };
        with_silence_timeout(prepared, signs, Some(&watcher))
            .await
            .unwrap();
        let mut reported = 0;
        while watched.try_recv().is_ok() {
            reported += 1;
        }
        assert!(reported >= 19, "{reported}");
    }
}
