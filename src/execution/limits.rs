//! Limits of an execution: requested by the skill, capped by the server's maxima.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::limits;
use crate::skill::Resources;

/// Limits of a sandbox, all positive. Scratch space always fits into memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceLimits {
    /// Memory in bytes, including swap and tmpfs.
    pub memory_bytes: u64,
    /// CPU in thousandths of a core.
    pub cpu_millis: u32,
    pub processes_max: u32,
    /// From the program's start.
    pub timeout: Duration,
    /// Size of `/workspace` in bytes.
    pub workspace_bytes: u64,
    /// Size of `/sandbox` in bytes.
    pub sandbox_bytes: u64,
    /// Size of `/tmp` in bytes.
    pub tmp_bytes: u64,
    /// Size of `/root` in bytes.
    pub root_bytes: u64,
    /// Size of `/dev/shm` in bytes.
    pub shm_bytes: u64,
    /// Size of `/blobs` in bytes.
    #[serde(default = "no_blobs")]
    pub blobs_bytes: u64,
}

/// For executions of older versions.
fn no_blobs() -> u64 {
    limits::BLOBS_BYTES_MIN
}

/// Maxima of this server, which are also defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Maxima {
    pub memory_bytes: u64,
    /// In thousandths of a core.
    pub cpu_millis: u32,
    /// Default wall clock limit.
    pub timeout_default: Duration,
    /// Maximum wall clock limit.
    pub timeout_max: Duration,
}

impl Default for Maxima {
    fn default() -> Self {
        Self {
            memory_bytes: limits::MEMORY_BYTES,
            cpu_millis: limits::CPU_MILLIS,
            timeout_default: limits::TIMEOUT,
            timeout_max: limits::TIMEOUT_MAX,
        }
    }
}

impl ResourceLimits {
    /// Limits of an execution. A skill may lower the defaults, and raise its timeout up to the maximum; a request may
    /// only shorten the timeout.
    #[must_use]
    pub fn clamp(
        asked: &Resources,
        skill_timeout: Option<Duration>,
        request_timeout: Option<Duration>,
        maxima: &Maxima,
    ) -> Self {
        let memory_bytes = asked.memory_bytes.unwrap_or(maxima.memory_bytes).clamp(
            limits::MEMORY_BYTES_MIN,
            maxima.memory_bytes.max(limits::MEMORY_BYTES_MIN),
        );
        let cpu_millis = asked.cpu_millis.unwrap_or(maxima.cpu_millis).clamp(
            limits::CPU_MILLIS_MIN,
            maxima.cpu_millis.max(limits::CPU_MILLIS_MIN),
        );
        let timeout = skill_timeout
            .unwrap_or(maxima.timeout_default)
            .min(maxima.timeout_max);
        let timeout = request_timeout
            .map_or(timeout, |asked| asked.min(timeout))
            .clamp(limits::TIMEOUT_MIN, limits::TIMEOUT_MAX);
        let workspace = asked
            .disk_bytes
            .unwrap_or(limits::WORKSPACE_BYTES)
            .clamp(limits::MIB, limits::WORKSPACE_BYTES);
        let wanted = [
            workspace,
            limits::SANDBOX_BYTES,
            limits::TMP_BYTES,
            limits::ROOT_BYTES,
            limits::SHM_BYTES,
        ];
        let [workspace_bytes, sandbox_bytes, tmp_bytes, root_bytes, shm_bytes] = fit(
            wanted,
            memory_bytes - limits::MEMORY_BEYOND_SCRATCH_BYTES - limits::BLOBS_BYTES_MIN,
        );
        Self {
            memory_bytes,
            cpu_millis,
            processes_max: limits::PROCESSES_MAX,
            timeout,
            workspace_bytes,
            sandbox_bytes,
            tmp_bytes,
            root_bytes,
            shm_bytes,
            blobs_bytes: limits::BLOBS_BYTES_MIN,
        }
    }

    /// Adds space for blobs of these sizes, each in pages of its own; other scratch space shrinks if memory is short.
    /// `None` if blobs would need more than half of all scratch space.
    #[must_use]
    pub fn with_blobs(self, sizes: impl Iterator<Item = u64>) -> Option<Self> {
        let blobs_bytes: u64 = sizes.map(|size| size.next_multiple_of(PAGE)).sum();
        let blobs_bytes = blobs_bytes.max(limits::BLOBS_BYTES_MIN);
        let budget = self.memory_bytes - limits::MEMORY_BEYOND_SCRATCH_BYTES;
        if blobs_bytes > budget / 2 {
            return None;
        }
        let sizes = [
            self.workspace_bytes,
            self.sandbox_bytes,
            self.tmp_bytes,
            self.root_bytes,
            self.shm_bytes,
        ];
        let [workspace_bytes, sandbox_bytes, tmp_bytes, root_bytes, shm_bytes] =
            fit(sizes, budget - blobs_bytes);
        Some(Self {
            workspace_bytes,
            sandbox_bytes,
            tmp_bytes,
            root_bytes,
            shm_bytes,
            blobs_bytes,
            ..self
        })
    }
}

/// Size of a file in memory.
const PAGE: u64 = 4096;

/// Shrinks all sizes in proportion until their sum is at most `budget`, page-aligned: a full tmpfs must fail with
/// `ENOSPC` instead of an out-of-memory kill.
fn fit<const N: usize>(sizes: [u64; N], budget: u64) -> [u64; N] {
    let sum: u64 = sizes.iter().sum();
    if sum <= budget {
        return sizes;
    }
    sizes.map(|size| {
        let share = u128::from(size) * u128::from(budget) / u128::from(sum);
        (u64::try_from(share).unwrap_or(size) / PAGE * PAGE).max(PAGE)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(limits: &ResourceLimits) -> u64 {
        limits.workspace_bytes
            + limits.sandbox_bytes
            + limits.tmp_bytes
            + limits.root_bytes
            + limits.shm_bytes
            + limits.blobs_bytes
    }

    #[test]
    fn blobs_reduce_scratch_but_not_to_zero() {
        let asked = |memory_bytes| Resources {
            memory_bytes: Some(memory_bytes),
            ..Resources::default()
        };
        let limited = |memory| ResourceLimits::clamp(&asked(memory), None, None, &Maxima::default());
        for memory in [limits::MEMORY_BYTES_MIN, 200 * limits::MIB, limits::MEMORY_BYTES] {
            let some = limited(memory)
                .with_blobs([1, 4096, 5000, limits::MIB].into_iter())
                .unwrap();
            assert_eq!(some.blobs_bytes, 4096 * 4 + limits::MIB);
            assert!(scratch(&some) + limits::MEMORY_BEYOND_SCRATCH_BYTES <= some.memory_bytes);
            assert!(some.root_bytes > 0);
        }
        let none = limited(limits::MEMORY_BYTES);
        assert_eq!(none.with_blobs(std::iter::empty()), Some(none));
        let most = std::iter::once(limits::INPUT_BLOBS_BYTES_MAX);
        assert_eq!(limited(limits::MEMORY_BYTES_MIN).with_blobs(most), None);
    }

    #[test]
    fn scratch_always_fits_into_memory() {
        for memory_bytes in [
            0,
            limits::MEMORY_BYTES_MIN,
            64 * limits::MIB,
            200 * limits::MIB,
            limits::MEMORY_BYTES,
        ] {
            let asked = Resources {
                memory_bytes: Some(memory_bytes),
                ..Resources::default()
            };
            let clamped = ResourceLimits::clamp(&asked, None, None, &Maxima::default());
            assert!(scratch(&clamped) + limits::MEMORY_BEYOND_SCRATCH_BYTES <= clamped.memory_bytes);
            // A tmpfs of size 0 has no bound at all.
            assert!(clamped.root_bytes > 0);
        }
    }

    /// Z-21: nothing asked for becomes "unlimited".
    #[test]
    fn clamps_requested_limits_to_maxima() {
        let asked = Resources {
            memory_bytes: Some(u64::MAX),
            cpu_millis: Some(u32::MAX),
            disk_bytes: Some(u64::MAX),
        };
        let clamped = ResourceLimits::clamp(
            &asked,
            Some(Duration::MAX),
            Some(Duration::MAX),
            &Maxima::default(),
        );
        assert_eq!(clamped.memory_bytes, limits::MEMORY_BYTES);
        assert_eq!(clamped.cpu_millis, limits::CPU_MILLIS);
        assert_eq!(clamped.timeout, limits::TIMEOUT_MAX);
    }

    #[test]
    fn request_only_lowers_limits() {
        let maxima = Maxima::default();
        let seconds = Duration::from_secs;
        let timeout =
            |skill, request| ResourceLimits::clamp(&Resources::default(), skill, request, &maxima).timeout;
        assert_eq!(timeout(None, None), limits::TIMEOUT);
        assert_eq!(timeout(Some(seconds(10)), Some(seconds(100))), seconds(10));
        assert_eq!(timeout(Some(seconds(10)), Some(seconds(3))), seconds(3));
        assert_eq!(timeout(Some(seconds(300)), None), seconds(300));
    }
}
