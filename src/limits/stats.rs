//! Limits of statistics and of the stream of changes.

use std::time::Duration;

/// Buckets of one request, by default and at most.
pub const STATS_BUCKETS: usize = 60;
/// See [`STATS_BUCKETS`].
pub const STATS_BUCKETS_MAX: usize = 200;
/// Fewer cannot always cover a time whose ends are moved to whole buckets.
pub const STATS_BUCKETS_MIN: usize = 2;
/// Time of a request that names none.
pub const STATS_RANGE: Duration = Duration::from_secs(24 * 3600);
/// Skills of one answer.
pub const STATS_SKILLS_MAX: usize = 50;
/// Skills of one tenant that are considered for it.
pub const COUNTED_SKILLS_MAX: usize = 2000;
/// Maintenance counts executions this long after their end: a busy database may record an end late
/// (see [`RECORD_MAX`](super::RECORD_MAX)).
pub const COUNTED_AFTER: Duration = Duration::from_secs(120);
/// Executions that ended within this time are read by each request, if they are not counted yet.
pub const LIVE_COUNTED_FOR: Duration = Duration::from_secs(3600);
/// Executions that a request reads for that.
pub const LIVE_COUNTED_MAX: u32 = 200_000;
/// Executions counted in one transaction, which other writers wait for.
pub const COUNTED_PER_QUERY: u32 = 2000;
/// Time for counting in one round of maintenance.
pub const COUNT_ROUND_MAX: Duration = Duration::from_secs(3);
/// Old counts deleted in one transaction.
pub const COUNTS_DELETED_PER_QUERY: u32 = 1000;
/// Time for which counts of five minutes are stored.
pub const FIVE_MINUTE_COUNTS_FOR: Duration = Duration::from_secs(3 * DAY);
/// Time for which counts of hours are stored.
pub const HOUR_COUNTS_FOR: Duration = Duration::from_secs(35 * DAY);
/// Time for which counts of days are stored.
pub const DAY_COUNTS_FOR: Duration = Duration::from_secs(400 * DAY);

/// Changes of one tenant that are kept for clients that were disconnected.
pub const CHANGES_PER_TENANT: usize = 200;
/// Tenants whose changes are kept.
pub const CHANGED_TENANTS_MAX: usize = 64;
/// Executions of other processes that are read in one round.
pub const OTHER_EXECUTIONS_POLLED: usize = 100;
/// Rounds between two while no other process is registered: a short command may come and go.
pub const OTHER_PROCESS_POLLS_SKIPPED: u32 = 5;
/// After this time a stream of changes ends, so that its client authenticates again.
pub const CHANGES_STREAM_MAX: Duration = Duration::from_secs(600);

const DAY: u64 = 24 * 3600;
