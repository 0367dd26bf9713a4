//! Limits of an execution: requested by the skill, capped by the server's maxima.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::limits;
use crate::skill::{File, LintFinding, Manifest, Resources, RuleSet, Severity};

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

/// What a skill and a request ask for. `null` where they leave it to the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AskedLimits {
    /// Memory in bytes.
    #[schema(required)]
    pub memory_bytes: Option<u64>,
    /// CPU in thousandths of a core.
    #[schema(required)]
    pub cpu_millis: Option<u32>,
    /// Wall clock limit in milliseconds.
    #[schema(required)]
    pub timeout_ms: Option<u64>,
    /// Size of the working directory in bytes.
    #[schema(required)]
    pub workspace_bytes: Option<u64>,
}

impl AskedLimits {
    /// A request asks instead of its skill.
    #[must_use]
    pub fn new(
        asked: &Resources,
        skill_timeout: Option<Duration>,
        request_timeout: Option<Duration>,
    ) -> Self {
        let timeout = request_timeout.or(skill_timeout);
        Self {
            memory_bytes: asked.memory_bytes,
            cpu_millis: asked.cpu_millis,
            timeout_ms: timeout.map(whole_milliseconds),
            workspace_bytes: asked.disk_bytes,
        }
    }
}

/// What the server grants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct GrantedLimits {
    /// Memory in bytes, including that of all files.
    pub memory_bytes: u64,
    /// CPU in thousandths of a core.
    pub cpu_millis: u32,
    /// Wall clock limit in milliseconds.
    pub timeout_ms: u64,
    /// Size of the working directory in bytes.
    pub workspace_bytes: u64,
}

impl From<&ResourceLimits> for GrantedLimits {
    fn from(limits: &ResourceLimits) -> Self {
        Self {
            memory_bytes: limits.memory_bytes,
            cpu_millis: limits.cpu_millis,
            timeout_ms: whole_milliseconds(limits.timeout),
            workspace_bytes: limits.workspace_bytes,
        }
    }
}

/// Limits of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ExecutionLimits {
    pub asked: AskedLimits,
    pub granted: GrantedLimits,
}

impl ExecutionLimits {
    /// Those of a skill whose request asks for nothing.
    #[must_use]
    pub fn of(asked: &Resources, timeout: Option<Duration>, maxima: &Maxima) -> Self {
        Self {
            asked: AskedLimits::new(asked, timeout, None),
            granted: GrantedLimits::from(&ResourceLimits::clamp(asked, timeout, None, maxima)),
        }
    }

    /// What is granted although more memory is asked for, and how to get more.
    #[must_use]
    pub fn memory_cut(&self) -> Option<String> {
        let asked = self.asked.memory_bytes?;
        (asked > self.granted.memory_bytes).then(|| {
            let asked = size(asked);
            format!("the skill asks for {asked}; raise limits.memory")
        })
    }

    /// As [`memory_cut`](Self::memory_cut), of the wall clock limit.
    #[must_use]
    pub fn timeout_cut(&self) -> Option<String> {
        let asked = self.asked.timeout_ms?;
        (asked > self.granted.timeout_ms).then(|| {
            let seconds = Duration::from_millis(asked).as_secs_f64();
            format!(
                "{seconds} s are asked for; a request only shortens the skill's timeout or limits.timeout_default, \
                 and a skill gets at most limits.timeout_max"
            )
        })
    }

    /// A warning for each limit of `manifest` that a server with `maxima` lowers.
    pub fn lint(manifest: &Manifest, maxima: &Maxima) -> impl Iterator<Item = LintFinding> {
        let limits = Self::of(&manifest.resources, manifest.timeout, maxima);
        limits.cuts().into_iter().map(|message| LintFinding {
            rule_set: RuleSet::Skillbox,
            severity: Severity::Warning,
            file: File::SkillMd.as_str().to_owned(),
            line: None,
            message,
        })
    }

    /// A line for each limit that is lower than asked for.
    #[must_use]
    pub fn cuts(&self) -> Vec<String> {
        let cpu = self
            .asked
            .cpu_millis
            .filter(|asked| *asked > self.granted.cpu_millis);
        let workspace = self
            .asked
            .workspace_bytes
            .filter(|asked| *asked > self.granted.workspace_bytes);
        let cores = |millis: u32| f64::from(millis) / 1000.0;
        let lines = [
            self.memory_cut()
                .map(|why| format!("memory is limited to {}: {why}", size(self.granted.memory_bytes))),
            cpu.map(|asked| {
                let granted = cores(self.granted.cpu_millis);
                let asked = cores(asked);
                format!("CPU is limited to {granted} cores: the skill asks for {asked}; raise limits.cpu")
            }),
            self.timeout_cut().map(|why| {
                let seconds = Duration::from_millis(self.granted.timeout_ms).as_secs_f64();
                format!("time is limited to {seconds} s: {why}")
            }),
            workspace.map(|asked| {
                let (granted, asked) = (size(self.granted.workspace_bytes), size(asked));
                format!("the working directory is limited to {granted}: the skill asks for {asked}")
            }),
        ];
        lines.into_iter().flatten().collect()
    }
}

fn whole_milliseconds(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// `8 GiB`, `512 MiB`, `0.5 MiB`.
#[must_use]
pub fn size(bytes: u64) -> String {
    let gib = 1024 * limits::MIB;
    if bytes >= gib && bytes.is_multiple_of(gib) {
        return format!("{} GiB", bytes / gib);
    }
    let tenths = bytes.saturating_mul(10).div_ceil(limits::MIB);
    if tenths.is_multiple_of(10) {
        format!("{} MiB", tenths / 10)
    } else {
        format!("{}.{} MiB", tenths / 10, tenths % 10)
    }
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

    /// Nothing is lowered in silence.
    #[test]
    fn names_each_limit_that_is_lower_than_asked() {
        let asked = Resources {
            memory_bytes: Some(8 << 30),
            cpu_millis: Some(4000),
            disk_bytes: Some(1 << 30),
        };
        let hour = Some(Duration::from_secs(3600));
        let maxima = Maxima::default();
        let cuts = ExecutionLimits::of(&asked, hour, &maxima).cuts();
        assert_eq!(cuts.len(), 4, "{cuts:?}");
        assert_eq!(
            cuts[0],
            "memory is limited to 512 MiB: the skill asks for 8 GiB; raise limits.memory"
        );
        let less = Resources {
            memory_bytes: Some(128 << 20),
            ..Resources::default()
        };
        let lowered = ExecutionLimits::of(&less, Some(Duration::from_secs(1)), &maxima);
        assert_eq!(lowered.cuts(), Vec::<String>::new());
        assert_eq!(lowered.granted.memory_bytes, 128 << 20);
    }
}
