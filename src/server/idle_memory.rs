//! Releases memory of an idle server.

use tokio_util::sync::CancellationToken;

use crate::engine::Engine;
use crate::limits;
use crate::sys;

/// Releases memory when the server has been idle for a while. The system restores pages when they are needed.
pub(super) async fn release_when_idle(engine: Engine, closing: CancellationToken) {
    let look = async {
        release_memory(&engine).await;
        let mut has_worked = true;
        loop {
            let before = sys::cpu_time().unwrap_or_default();
            tokio::time::sleep(limits::IDLE_CHECK_EVERY).await;
            let used = sys::cpu_time().unwrap_or_default().saturating_sub(before);
            let is_idle = used < limits::IDLE_CPU_MAX;
            if is_idle && has_worked {
                release_memory(&engine).await;
            }
            has_worked = !is_idle;
        }
    };
    closing.run_until_cancelled(look).await;
}

async fn release_memory(engine: &Engine) {
    let engine = engine.clone();
    let release_memory = move || {
        engine.maintenance().trim_memory();
        sys::trim_heap();
        sys::release_code_pages()
    };
    match tokio::task::spawn_blocking(release_memory).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "Releasing code pages failed"),
        Err(error) => tracing::debug!(%error, "Releasing memory failed"),
    }
}
