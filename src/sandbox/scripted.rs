//! A scripted backend for tests of higher layers.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::bundle::artifacts::ArtifactTar;
use crate::execution::{CodeResults, Logs, Usage};
use crate::ids::InstanceId;
use crate::sandbox::{
    Backend, Completion, Error, Job, ProgramOutput, ProgressSender, Report, RunContext, WarmPoolSettings,
};
use crate::telemetry::WarmPoolStats;

/// Plays a job: may write files, returns the report.
pub type Script = fn(&Job, &mut ArtifactTar) -> Result<Report, Error>;

#[derive(Debug)]
pub struct Scripted {
    script: Script,
    /// Remaining preparations that fail.
    refusals: AtomicU32,
}

impl Scripted {
    pub(super) fn new(script: Script, refusals: u32) -> Self {
        Self {
            script,
            refusals: AtomicU32::new(refusals),
        }
    }

    pub(super) fn warm_pool_stats(&self) -> WarmPoolStats {
        WarmPoolStats::default()
    }

    pub(super) fn set_warm_pool(&self, _pool: WarmPoolSettings) {}
}

impl Report {
    /// A report without duration and results.
    #[must_use]
    pub fn bare(end: Completion) -> Self {
        Self {
            end,
            output: ProgramOutput::Missing,
            shown: CodeResults::default(),
            logs: Logs::default(),
            files: Vec::new(),
            skipped: Vec::new(),
            skipped_total: 0,
            blobs: Vec::new(),
            complete: true,
            usage: Usage::default(),
            sandbox_time: Duration::ZERO,
            run_time: Duration::ZERO,
            collect_time: Duration::ZERO,
            warm: false,
        }
    }
}

impl Backend for Scripted {
    async fn run(&self, job: &Job, context: RunContext<'_>) -> Result<Report, Error> {
        if context.start.await.is_err() {
            return Err(Error::Unavailable(
                "its execution could not be recorded".to_owned(),
            ));
        }
        // A script may block its thread, so let the tasks run first that the start signal woke.
        tokio::task::yield_now().await;
        (self.script)(job, context.artifacts)
    }

    async fn prepare(&self, _job: &Job, _progress: Option<&ProgressSender>) -> Result<(), Error> {
        let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        let refused = self.refusals.fetch_update(set, fetch, |left| left.checked_sub(1));
        refused.map_or(Ok(()), |_| Err(Error::Unavailable("not ready yet".to_owned())))
    }

    async fn check(&self) -> Result<(), Error> {
        Ok(())
    }

    async fn reconcile(&self, _dead: &[InstanceId]) -> Result<usize, Error> {
        Ok(0)
    }

    async fn drain(&self) {}
}
