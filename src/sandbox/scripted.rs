//! A sandbox that answers from a script, for tests of the rooms above.

use crate::ids::InstanceId;
use crate::sandbox::{Backend, Error, Job, ProgressSender, Report, Run};

/// Answers every job with its script.
#[derive(Debug)]
pub struct Scripted {
    script: fn(&Job) -> Result<Report, Error>,
}

impl Scripted {
    pub(super) fn new(script: fn(&Job) -> Result<Report, Error>) -> Self {
        Self { script }
    }
}

impl Backend for Scripted {
    async fn run(&self, job: &Job, _run: Run<'_>) -> Result<Report, Error> {
        (self.script)(job)
    }

    async fn prepare(&self, _job: &Job, _progress: Option<&ProgressSender>) -> Result<(), Error> {
        Ok(())
    }

    async fn check(&self) -> Result<(), Error> {
        Ok(())
    }

    async fn reconcile(&self, _dead: &[InstanceId]) -> Result<usize, Error> {
        Ok(0)
    }

    async fn settle(&self) {}
}
