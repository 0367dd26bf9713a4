//! Limits of sessions, sign-in links and the audit trail.

use std::time::Duration;

use super::KIB;

/// A session ends at this age.
pub const SESSION_LIFE: Duration = Duration::from_secs(7 * 24 * 3600);
/// A session ends after this time without a request.
pub const SESSION_IDLE_MAX: Duration = Duration::from_secs(12 * 3600);
/// Interval at which the use of a session is recorded: each record is a write.
pub const SESSION_USE_RECORDED_EVERY: Duration = Duration::from_secs(5 * 60);
/// Sessions of one key; the least recently used is ended for a further one.
pub const SESSIONS_PER_KEY_MAX: u32 = 32;
/// Sessions of one tenant; the least recently used is ended for a further one.
pub const SESSIONS_PER_TENANT_MAX: u32 = 256;
/// Lifetime of a sign-in link.
pub const SIGN_IN_LINK_LIFE: Duration = Duration::from_secs(10 * 60);
/// Unused sign-in links of one key; a further one replaces the oldest.
pub const SIGN_IN_LINKS_PER_KEY_MAX: u32 = 16;
/// Ended sessions, and as many expired links, that one round of maintenance deletes.
pub const ENDED_SESSIONS_PER_ROUND: u32 = 10_000;
/// Entries of the audit trail per tenant; the oldest is deleted for a further one.
pub const AUDIT_ENTRIES_PER_TENANT_MAX: u32 = 100_000;
/// Entries of the audit trail are deleted at this age.
pub const AUDIT_AGE_MAX: Duration = Duration::from_secs(365 * 24 * 3600);
/// Old entries that one round of maintenance deletes.
pub const AUDIT_ENTRIES_PER_ROUND: u32 = 10_000;
/// Body of a sign-in.
pub const SIGN_IN_BODY_BYTES_MAX: u64 = 4 * KIB;
