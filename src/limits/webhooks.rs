//! Limits of webhooks.

use std::time::Duration;

use super::KIB;

/// Callback URL.
pub const CALLBACK_URL_BYTES_MAX: usize = 2048;
/// One attempt: resolving, connecting, sending, receiving.
pub const DELIVERY_ATTEMPT_MAX: Duration = Duration::from_secs(10);
/// Connecting to one of several addresses.
pub const DELIVERY_CONNECT_MAX: Duration = Duration::from_secs(3);
/// Time to receive the rest of a response after its status.
pub const DELIVERY_REST_MAX: Duration = Duration::from_secs(1);
/// Bytes read of that rest.
pub const DELIVERY_REST_BYTES_MAX: u64 = KIB;
/// Head of a response.
pub const DELIVERY_HEAD_BYTES_MAX: usize = 16 * 1024;
/// Header lines of a response.
pub const DELIVERY_HEADERS_MAX: usize = 100;
/// Addresses tried per host.
pub const DELIVERY_ADDRESSES_MAX: usize = 4;
/// Concurrent attempts.
pub const DELIVERIES_AT_ONCE: usize = 32;
/// Concurrent attempts of a tenant.
pub const DELIVERIES_OF_TENANT_AT_ONCE: u32 = 8;
/// Concurrent attempts of a tenant to one host: a slow host must not block the others.
pub const DELIVERIES_TO_HOST_AT_ONCE: u32 = 4;
/// Webhooks considered per selection: the oldest of each tenant, and as many of its newest.
pub const DELIVERIES_CONSIDERED: u32 = 200;
/// Default pauses before the second and later attempts.
pub const DELIVERY_RETRIES: [Duration; 7] = [
    Duration::from_secs(5),
    Duration::from_secs(60),
    Duration::from_secs(5 * 60),
    Duration::from_secs(30 * 60),
    Duration::from_secs(2 * 3600),
    Duration::from_secs(5 * 3600),
    Duration::from_secs(10 * 3600),
];
/// Maximum `Retry-After` that is respected.
pub const DELIVERY_RETRY_AFTER_MAX: Duration = Duration::from_secs(3600);
/// Maximum configurable number of retries.
pub const DELIVERY_RETRIES_MAX: usize = 20;
/// Maximum configurable pause.
pub const DELIVERY_RETRY_MAX: Duration = Duration::from_secs(7 * 24 * 3600);
/// Maximum interval at which the sender looks for webhooks of other processes.
pub const DELIVERIES_POLL_EVERY: Duration = Duration::from_secs(10);
/// Pause after a selection that found only busy hosts or failed.
pub const DELIVERIES_RETRY_AFTER: Duration = Duration::from_secs(1);
/// Time for running attempts at shutdown.
pub const DELIVERIES_DRAIN_MAX: Duration = Duration::from_secs(2);
/// Characters of an execution's error in a payload.
pub const DELIVERY_ERROR_CHARS_MAX: usize = 1000;
/// Time for which a replaced signing secret still signs.
pub const SIGNING_SECRET_OVERLAP: Duration = Duration::from_secs(24 * 3600);
