//! Ends sandboxes in the background.

use std::time::Duration;

use tokio_util::task::TaskTracker;

use super::cgroup::Cell;
use super::spawn::FirstProcess;
use crate::guest::wire::Link;

/// Background work after a run starts this much later, so that it does not compete with recording and answering the
/// result.
pub(super) const TEARDOWN_DELAY: Duration = Duration::from_millis(5);

/// Ends the sandbox in the background when dropped.
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

    /// Without a connection, ends the sandbox at once. With one, the guest has reported everything and runs nothing:
    /// the sandbox ends after [`TEARDOWN_DELAY`].
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

    /// The process that a watchdog must limit.
    pub(super) fn without_cgroup(&self) -> Option<&FirstProcess> {
        self.body.as_ref().filter(|body| body.cell.is_none())
    }
}

impl Drop for SandboxGuard {
    fn drop(&mut self) {
        let Some(body) = self.body.take() else { return };
        // Kills immediately and waits in the background.
        body.kill();
        if tokio::runtime::Handle::try_current().is_ok() {
            self.background.spawn(async move {
                tokio::time::sleep(TEARDOWN_DELAY).await;
                // If the runtime ends first, the drop waits here.
                let _ = tokio::task::spawn_blocking(move || drop(body)).await;
            });
        }
    }
}
