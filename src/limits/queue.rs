//! Limits of the queue and of waiting.

use std::time::Duration;

use super::MIB;

/// Waiting interactive requests per tenant; further ones are answered `rate_limited`.
pub const QUEUE_MAX: usize = 256;
/// Bytes of all queued requests of a tenant.
pub const QUEUED_BYTES_MAX: u64 = 256 * MIB;
/// Queued executions per tenant.
pub const ASYNC_QUEUE_MAX: usize = 1000;
/// While a caller has arrived within this time, one slot stays reserved for interactive requests.
pub const SLOT_RESERVED_FOR: Duration = Duration::from_secs(5);
/// Submissions of a tenant that are recorded concurrently.
pub const SUBMISSIONS_AT_ONCE: usize = 2;
/// Maximum time that a submission yields to interactive executions that have just started.
pub const YIELD_MAX: Duration = Duration::from_millis(25);
/// `Retry-After` of a full queue.
pub const QUEUE_RETRY_AFTER: Duration = Duration::from_secs(5);
/// `Retry-After` while no sandbox can be made: a container engine restarts in about this time.
pub const SANDBOX_RETRY_AFTER: Duration = Duration::from_secs(5);
/// Lifetime of an `Idempotency-Key`.
pub const IDEMPOTENCY_KEY_LIFE: Duration = Duration::from_secs(24 * 3600);
/// Maximum wait for an end per request.
pub const WAIT_MAX: Duration = Duration::from_secs(60);
/// Full queues of this many tenants are the maximum in all; further requests are answered `busy`.
pub const QUEUES_MAX: usize = 4;
/// Maximum wait for a slot.
pub const QUEUE_WAIT_MAX: Duration = Duration::from_secs(60);
/// Interval at which subscribers receive a changed queue position.
pub const QUEUE_POLL_EVERY: Duration = Duration::from_secs(1);
/// Maximum configurable queue.
pub const QUEUE_CONFIGURED_MAX: usize = 100_000;
/// Interval at which subscribers poll an execution of another process.
pub const OTHER_PROCESS_POLL_EVERY: Duration = Duration::from_secs(1);
/// Interval at which a process polls for cancel requests of others, while it runs executions.
pub const CANCEL_POLL_EVERY: Duration = Duration::from_secs(1);
