//! Limits of proofs that a server runs.

use std::time::Duration;

use super::MIB;

/// Names of promises and probes in one request.
pub const PROOF_NAMES_MAX: usize = 64;
/// Time of a proof of all backends; on a slow host each attack may take 20 times as long as usual.
pub const PROOF_TIME_MAX: Duration = Duration::from_secs(3600);
/// Time in which a cancelled proof removes its sandboxes.
pub const PROOF_END_MAX: Duration = Duration::from_secs(40);
/// Report of a proof, as JSON.
pub const PROOF_REPORT_BYTES_MAX: u64 = 8 * MIB;
/// Messages of a proof.
pub const PROOF_MESSAGES_BYTES_MAX: u64 = MIB;
/// The last message of a failed proof.
pub const PROOF_LINE_BYTES_MAX: usize = 512;
