//! The end of a sandbox, off everybody's path.

use std::time::Duration;

use tokio_util::task::TaskTracker;

use super::cgroup::Cell;
use super::spawn::FirstProcess;
use crate::guest::wire::Link;

/// What a run leaves to the background begins this much later: until then its end is being recorded and answered, and
/// neither should share a processor with it, or pages with a process that is being made.
pub(super) const TEARDOWN_DELAY: Duration = Duration::from_millis(5);

/// A sandbox's process and bounds, ended in the background when this is dropped.
#[derive(Debug)]
pub(super) struct SandboxGuard {
    pub(super) body: Option<FirstProcess>,
    pub(super) background: TaskTracker,
}

impl SandboxGuard {
    pub(super) async fn exit_description(&self) -> String {
        match &self.body {
            Some(body) => body.exit_description().await,
            None => String::new(),
        }
    }

    pub(super) fn cell(&self) -> Option<&Cell> {
        self.body.as_ref().and_then(|body| body.cell.as_ref())
    }

    /// Ends at once a sandbox that somebody might still live in; a guest that has said all is alone, and goes
    /// [`AFTERWARDS`].
    pub(super) fn tear_down_later(mut self, link: Option<Link>) {
        if let (Some(link), Ok(_)) = (link, tokio::runtime::Handle::try_current())
            && let Some(body) = self.body.take()
        {
            self.background.spawn(async move {
                tokio::time::sleep(TEARDOWN_DELAY).await;
                drop(link);
                body.kill();
                let _ = tokio::task::spawn_blocking(move || drop(body)).await;
            });
        }
    }

    /// One that no cgroup bounds.
    pub(super) fn without_cgroup(&self) -> Option<&FirstProcess> {
        self.body.as_ref().filter(|body| body.cell.is_none())
    }
}

impl Drop for SandboxGuard {
    fn drop(&mut self) {
        let Some(body) = self.body.take() else { return };
        // At once; only the waiting is left to the background.
        body.kill();
        if tokio::runtime::Handle::try_current().is_ok() {
            self.background.spawn(async move {
                tokio::time::sleep(TEARDOWN_DELAY).await;
                // If the runtime ends first, it waits here.
                let _ = tokio::task::spawn_blocking(move || drop(body)).await;
            });
        }
    }
}
