//! Bounds of executions that wait, and of waiting for them.

use std::time::Duration;

use super::MIB;

/// Executions of one tenant that wait for a free slot; more are answered `busy`.
pub const QUEUE_MAX: usize = 256;
/// Bytes of all requests of one tenant that wait for their turn.
pub const QUEUED_BYTES_MAX: u64 = 256 * MIB;
/// Executions of one tenant that nobody waits for, before their turn.
pub const ASYNC_QUEUE_MAX: usize = 1000;
/// As long as a caller has come within this time, the queue leaves a slot free for the next one.
pub const CALLERS_COME_WITHIN: Duration = Duration::from_secs(5);
/// Submissions of one tenant that are taken down at once; the others wait a moment.
pub const SUBMISSIONS_AT_ONCE: usize = 2;
/// How long a submission gives way to callers whose executions have just begun, at most.
pub const GIVE_WAY_MAX: Duration = Duration::from_millis(25);
/// Who finds a queue full is told to come back after this.
pub const QUEUE_RETRY_AFTER: Duration = Duration::from_secs(5);
/// How long an `Idempotency-Key` stands for its request.
pub const IDEMPOTENCY_KEY_LIFE: Duration = Duration::from_secs(24 * 3600);
/// Longest wait for an end that one request may ask for.
pub const WAIT_MAX: Duration = Duration::from_secs(60);
/// Full queues of this many tenants are the most that waits in all.
pub const QUEUES_MAX: usize = 4;
/// Longest wait for a free slot.
pub const QUEUE_WAIT_MAX: Duration = Duration::from_secs(60);
/// Whoever watches an execution that waits for its turn is told its place this late at most.
pub const QUEUE_LOOK_EVERY: Duration = Duration::from_secs(1);
/// Waiting executions that can be configured.
pub const QUEUE_CONFIGURED_MAX: usize = 100_000;
/// Whoever watches an execution that another process runs is told its end this late at most.
pub const ELSEWHERE_LOOK_EVERY: Duration = Duration::from_secs(1);
/// A process that runs something beside others looks this often for requests of theirs to cancel it.
pub const CANCEL_POLL_EVERY: Duration = Duration::from_secs(1);
