//! The system calls of a sandbox: one allowlist for every backend, whatever the engine's default is (P13).
//!
//! Arguments have 64 bits here and 32 bits in most system calls: `socket(40 | 1 << 32)` bypasses a rule that compares
//! all 64. So every argument rule uses a mask, and no rule denies by argument.

#[cfg(target_os = "linux")]
pub(super) mod bpf;
#[cfg(all(test, target_os = "linux"))]
mod mutation;
#[cfg(target_os = "linux")]
mod numbers;
mod table;

pub use table::RULES;

use serde_json::{Value, json};

/// The effect of an entry.
#[derive(Debug, Clone, Copy)]
pub enum Rule {
    /// These calls, with any arguments.
    Always(&'static [&'static str]),
    /// This call if every comparison holds; further entries for the same call are alternatives.
    When(&'static str, &'static [Masked]),
    /// This call if every comparison holds and the low 32 bits of the argument at this index are none of the values.
    Unless(&'static str, &'static [Masked], u32, &'static [u32]),
    /// This call does nothing and returns this errno; 0 looks like success.
    Answered(&'static str, u32),
}

/// A comparison of an argument: `argument & mask == value`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Masked {
    /// Index from 0.
    pub index: u32,
    /// Compared bits, at most the low 32.
    pub mask: u32,
    pub value: u32,
}

/// All 32 bits must equal `value`.
const fn is(index: u32, value: u32) -> Masked {
    Masked {
        index,
        mask: u32::MAX,
        value,
    }
}

/// The errno of a rejected call: `EPERM`.
pub const REFUSED: u32 = 1;

/// The alternatives of an entry: a call is allowed if all comparisons of one set hold. An empty set always holds.
fn alternatives(rule: &Rule) -> Vec<Vec<Masked>> {
    match rule {
        Rule::Always(_) | Rule::Answered(..) => vec![Vec::new()],
        Rule::When(_, comparisons) => vec![comparisons.to_vec()],
        Rule::Unless(_, comparisons, index, values) => none_of(*index, values)
            .into_iter()
            .map(|differs| [comparisons, &[differs][..]].concat())
            .collect(),
    }
}

/// "Is none of `values`" as masked equalities: the argument differs from each value in some bit.
fn none_of(index: u32, values: &[u32]) -> Vec<Masked> {
    let mut ways = Vec::new();
    for value in values {
        for bit in (0..32).rev() {
            let mask = u32::MAX << bit;
            let value = (value ^ (1 << bit)) & mask;
            let way = Masked { index, mask, value };
            if values.iter().all(|other| other & mask != value) && !ways.contains(&way) {
                ways.push(way);
            }
        }
    }
    ways
}

/// The calls of an entry.
fn names(rule: &Rule) -> &[&'static str] {
    match rule {
        Rule::Always(names) => names,
        Rule::When(name, _) | Rule::Unless(name, ..) | Rule::Answered(name, _) => std::slice::from_ref(name),
    }
}

/// The profile in the format of a container engine, for its architecture (`amd64`, `arm64`).
///
/// Only the native ABI is listed, so calls through any other (i386, x32) end the thread.
#[must_use]
pub fn docker_profile(architecture: &str) -> Value {
    profile_of(RULES, architecture)
}

fn profile_of(rules: &[Rule], architecture: &str) -> Value {
    let native = match architecture {
        "arm64" | "aarch64" => "SCMP_ARCH_AARCH64",
        _ => "SCMP_ARCH_X86_64",
    };
    let syscalls: Vec<Value> = rules.iter().flat_map(entries).collect();
    json!({
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": REFUSED,
        "architectures": [native],
        "syscalls": syscalls,
    })
}

fn entries(rule: &Rule) -> Vec<Value> {
    if let Rule::Answered(name, errno) = rule {
        return vec![json!({ "names": [name], "action": "SCMP_ACT_ERRNO", "errnoRet": errno })];
    }
    let entry = |comparisons: Vec<Masked>| {
        let args: Vec<Value> = comparisons
            .iter()
            .map(|c| json!({ "index": c.index, "value": c.mask, "valueTwo": c.value, "op": "SCMP_CMP_MASKED_EQ" }))
            .collect();
        json!({ "names": names(rule), "action": "SCMP_ACT_ALLOW", "args": args })
    };
    alternatives(rule).into_iter().map(entry).collect()
}

/// One line for each entry of a profile.
#[cfg(test)]
pub(super) fn lines(profile: &Value) -> String {
    let entries = profile["syscalls"].as_array().expect("a profile lists its calls");
    let lines: Vec<_> = entries.iter().map(ToString::to_string).collect();
    format!(
        "{} {}\n{}",
        profile["defaultAction"],
        profile["architectures"],
        lines.join("\n")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the table allows a call with these arguments, judged as the kernel judges: 64-bit arguments.
    fn allows(name: &str, arguments: [u64; 6]) -> bool {
        let holds = |c: &Masked| {
            let argument = arguments[usize::try_from(c.index).unwrap()];
            argument & u64::from(c.mask) == u64::from(c.value)
        };
        RULES
            .iter()
            .filter(|rule| !matches!(rule, Rule::Answered(..)) && names(rule).contains(&name))
            .any(|rule| alternatives(rule).iter().any(|set| set.iter().all(holds)))
    }

    /// S-10, S-11, S-09.
    #[test]
    fn table_omits_calls_that_reach_the_host() {
        let forbidden = [
            "bpf",
            "perf_event_open",
            "userfaultfd",
            "kexec_load",
            "init_module",
            "finit_module",
            "open_by_handle_at",
            "name_to_handle_at",
            "fanotify_init",
            "quotactl",
            "acct",
            "swapon",
            "reboot",
            "settimeofday",
            "clock_settime",
            "clock_adjtime",
            "adjtimex",
            "syslog",
            "iopl",
            "ioperm",
            "add_key",
            "request_key",
            "keyctl",
            "mbind",
            "move_pages",
            "io_uring_setup",
            "io_uring_enter",
            "io_uring_register",
            "mount",
            "umount2",
            "pivot_root",
            "chroot",
            "unshare",
            "setns",
            "fsopen",
            "fsmount",
            "move_mount",
            "open_tree",
            "mount_setattr",
            "clone3",
            "ptrace",
            "process_vm_readv",
            "process_vm_writev",
            "pidfd_getfd",
            "kcmp",
            "process_madvise",
            "ioprio_set",
            "modify_ldt",
            "lookup_dcookie",
            "vhangup",
            "io_setup",
            "vmsplice",
            "set_mempolicy",
            "memfd_secret",
            "sync",
            "syncfs",
        ];
        for name in forbidden {
            assert!(!allows(name, [0; 6]), "{name}");
        }
    }

    /// P13: the high half of an argument changes nothing.
    #[test]
    fn rules_compare_high_bits() {
        const HIGH: u64 = 1 << 32;
        const AF_VSOCK: u64 = 40;
        for family in [AF_VSOCK, 17, 38, 44, 0, 3] {
            assert!(!allows("socket", [family, 1, 0, 0, 0, 0]), "{family}");
            assert!(!allows("socket", [family | HIGH, 1, 0, 0, 0, 0]), "{family}");
        }
        for family in [1, 2, 10] {
            assert!(allows("socket", [family, 1, 0, 0, 0, 0]), "{family}");
        }
        const SOCK_CLOEXEC: u64 = 0o2_000_000;
        for (kind, protocol) in [
            (1, 132),
            (5, 0),
            (6, 0),
            (6, 33),
            (10, 0),
            (3, 0),
            (1, 262),
            (2, 136),
            (1, 17),
            (2, 6),
        ] {
            for family in [2, 10] {
                assert!(
                    !allows("socket", [family, kind, protocol, 0, 0, 0]),
                    "{kind} {protocol}"
                );
                assert!(
                    !allows("socket", [family, kind | SOCK_CLOEXEC, protocol | HIGH, 0, 0, 0]),
                    "{kind} {protocol}"
                );
            }
        }
        for (kind, protocol) in [(1, 0), (1, 6), (2, 0), (2, 17)] {
            assert!(
                allows("socket", [10, kind | SOCK_CLOEXEC, protocol, 0, 0, 0]),
                "{kind} {protocol}"
            );
        }
        for name in [
            "prlimit64",
            "sched_setaffinity",
            "sched_setscheduler",
            "sched_setparam",
            "sched_setattr",
        ] {
            assert!(!allows(name, [1, 0, 0, 0, 0, 0]), "{name}");
            assert!(!allows(name, [1 | HIGH, 0, 0, 0, 0, 0]), "{name}");
            for pid in [0, 2, 3, 4711, 1 << 31] {
                assert!(allows(name, [pid, 0, 0, 0, 0, 0]), "{name} {pid}");
            }
        }
        assert!(
            !allows("setpriority", [2, 0, 19, 0, 0, 0]),
            "PRIO_USER reaches PID 1 too"
        );
        assert!(!allows("setpriority", [0, 1 | HIGH, 19, 0, 0, 0]));
        for pid in [0, 2, 4711] {
            assert!(allows("setpriority", [0, pid, 19, 0, 0, 0]), "{pid}");
            assert!(!allows("setpriority", [1, pid, 19, 0, 0, 0]), "{pid}");
        }
    }

    /// S-24.
    #[test]
    fn only_three_requests_of_terminals_are_refused() {
        const REFUSED: [u64; 3] = [0x5412, 0x541c, 0x5423];
        for request in REFUSED {
            for high in [0, 1 << 32, 1 << 40, 7 << 32] {
                assert!(!allows("ioctl", [0, request | high, 0, 0, 0, 0]), "{request:x}");
            }
        }
        let one_bit_off = REFUSED.map(|request| (0..32).map(move |bit| request ^ (1 << bit)));
        for request in (0x5400..0x5500)
            .chain([0, 0x12, 0x1c, 0x8004_5430, 0xffff_ffff])
            .chain(one_bit_off.into_iter().flatten())
        {
            assert_eq!(
                allows("ioctl", [0, request, 0, 0, 0, 0]),
                !REFUSED.contains(&request),
                "{request:x}"
            );
        }
    }

    /// S-09.
    #[test]
    fn clone_allows_threads_and_processes_but_no_namespace() {
        const CLONE_THREAD_FLAGS: u64 = 0x003d_0f00;
        assert!(allows("clone", [CLONE_THREAD_FLAGS, 0, 0, 0, 0, 0]));
        assert!(allows("clone", [17, 0, 0, 0, 0, 0]));
        for namespace in [
            0x0002_0000,
            0x0200_0000,
            0x0400_0000,
            0x0800_0000,
            0x1000_0000,
            0x2000_0000,
            0x4000_0000,
        ] {
            assert!(!allows("clone", [namespace | 17, 0, 0, 0, 0, 0]), "{namespace:x}");
        }
    }

    /// S-20: FIFOs yes, devices no.
    #[test]
    fn mknod_allows_fifos_only() {
        assert!(allows("mknod", [0, 0o010_644, 0, 0, 0, 0]));
        for mode in [0o020_600, 0o060_600] {
            assert!(!allows("mknod", [0, mode, 0, 0, 0, 0]));
            assert!(!allows("mknodat", [0, 0, mode, 0, 0, 0]));
        }
    }

    #[test]
    fn no_call_is_both_unconditional_and_conditional() {
        let unconditional: Vec<_> = RULES
            .iter()
            .filter(|rule| matches!(rule, Rule::Always(_)))
            .flat_map(names)
            .collect();
        let unique: std::collections::BTreeSet<_> = unconditional.iter().collect();
        assert_eq!(unique.len(), unconditional.len(), "a call is listed twice");
        for rule in RULES.iter().filter(|rule| !matches!(rule, Rule::Always(_))) {
            for name in names(rule) {
                assert!(
                    !unconditional.contains(&name),
                    "{name} has a rule that an unconditional entry undoes"
                );
            }
        }
    }
}
