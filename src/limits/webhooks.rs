//! Bounds of webhooks.

use std::time::Duration;

use super::KIB;

/// An address that the end of an execution is told to.
pub const CALLBACK_URL_BYTES_MAX: usize = 2048;
/// All that one attempt may take: resolving, connecting, sending, the answer.
pub const DELIVERY_ATTEMPT_MAX: Duration = Duration::from_secs(10);
/// Connecting to one of several addresses.
pub const DELIVERY_CONNECT_MAX: Duration = Duration::from_secs(3);
/// How long is waited for the rest of an answer whose status is known.
pub const DELIVERY_REST_MAX: Duration = Duration::from_secs(1);
/// What is read of it.
pub const DELIVERY_REST_BYTES_MAX: u64 = KIB;
/// The head of an answer.
pub const DELIVERY_HEAD_BYTES_MAX: usize = 16 * 1024;
/// Its lines.
pub const DELIVERY_HEADERS_MAX: usize = 100;
/// Addresses of one host that are tried.
pub const DELIVERY_ADDRESSES_MAX: usize = 4;
/// Attempts at once, in all.
pub const DELIVERIES_AT_ONCE: usize = 32;
/// Those of one tenant.
pub const DELIVERIES_OF_TENANT_AT_ONCE: u32 = 8;
/// Those of one tenant to one host: one that never answers leaves places for the others.
pub const DELIVERIES_TO_HOST_AT_ONCE: u32 = 4;
/// Webhooks that are looked at when some are chosen: so many of the oldest of each tenant, and as many of its newest.
pub const DELIVERIES_LOOKED_AT: u32 = 200;
/// Pauses before the second attempt and those after it, unless the operator says otherwise.
pub const DELIVERY_RETRIES: [Duration; 7] = [
    Duration::from_secs(5),
    Duration::from_secs(60),
    Duration::from_secs(5 * 60),
    Duration::from_secs(30 * 60),
    Duration::from_secs(2 * 3600),
    Duration::from_secs(5 * 3600),
    Duration::from_secs(10 * 3600),
];
/// The longest `Retry-After` of a receiver that is heeded where the pause would be shorter.
pub const DELIVERY_RETRY_AFTER_MAX: Duration = Duration::from_secs(3600);
/// The most that can be configured.
pub const DELIVERY_RETRIES_MAX: usize = 20;
/// The longest pause that can be configured.
pub const DELIVERY_RETRY_MAX: Duration = Duration::from_secs(7 * 24 * 3600);
/// Whoever sends looks for what others have left at least so often.
pub const DELIVERIES_LOOK_EVERY: Duration = Duration::from_secs(10);
/// The pause after a look that found everything busy, or failed.
pub const DELIVERIES_LOOK_AGAIN: Duration = Duration::from_secs(1);
/// At the end of a server, attempts that are under way have this long.
pub const DELIVERIES_DRAIN_MAX: Duration = Duration::from_secs(2);
/// Characters of an execution's error that are told.
pub const DELIVERY_ERROR_CHARS_MAX: usize = 1000;
/// A signing secret that was replaced goes on signing for this long.
pub const SIGNING_SECRET_OVERLAP: Duration = Duration::from_secs(24 * 3600);
