//! Why a request may not even wait.

use crate::error::{Code, Error};
use crate::limits;

/// One tenant has its share of the queue; other tenants are still admitted.
pub(super) fn tenant_queue_full(max: usize) -> Error {
    let message =
        format!("{max} executions of this tenant already wait, the limit; try again when some have ended");
    Error::new(Code::RateLimited, message).with_retry_after(limits::QUEUE_RETRY_AFTER)
}

pub(super) fn busy(why: &str) -> Error {
    let message = format!("{why}; try again later, or raise limits.concurrency or limits.queue");
    Error::new(Code::Busy, message).with_retry_after(limits::QUEUE_RETRY_AFTER)
}

pub(super) fn shutting_down() -> Error {
    Error::new(Code::Busy, "the server is shutting down")
}
