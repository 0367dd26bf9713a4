//! The promises P1 to P16 of every sandbox, and the mechanism by which each backend keeps them.

/// Titles of the promises; `SECURITY.md` has the full text.
pub const PROMISES: &[(&str, &str)] = &[
    ("P1", "no network"),
    ("P2", "root and skill are read-only"),
    ("P3", "the program is nobody"),
    ("P4", "no capability, no new privileges"),
    ("P5", "at most 128 processes"),
    ("P6", "memory is bounded"),
    ("P7", "CPU is bounded"),
    ("P8", "wall clock is limited"),
    ("P9", "output is limited, and truncation is reported"),
    ("P10", "scratch is limited and noexec"),
    ("P11", "the environment is an allowlist"),
    ("P12", "nothing of the host is visible"),
    ("P13", "one seccomp table of our own"),
    ("P14", "single use"),
    ("P15", "no leftovers"),
    ("P16", "PID 1 cannot be traced, replaced or starved"),
];

const SECURITY: &str = include_str!("../../SECURITY.md");

/// How a promise is kept in a container and in a native sandbox.
struct Mechanism {
    promise: &'static str,
    docker: &'static str,
    native: &'static str,
}

/// The guest is the same in both, so what it does is the same sentence.
const fn guest(promise: &'static str, by: &'static str) -> Mechanism {
    Mechanism {
        promise,
        docker: by,
        native: by,
    }
}

const MECHANISMS: &[Mechanism] = &[
    Mechanism {
        promise: "P1",
        docker: "network mode `none`, and seccomp",
        native: "a network namespace without interfaces but its own loopback, and seccomp",
    },
    Mechanism {
        promise: "P2",
        docker: "a read-only root filesystem and read-only volumes",
        native: "read-only mounts, locked by a second mount namespace",
    },
    Mechanism {
        promise: "P3",
        docker: "user and group 65534 of the container",
        native: "a user namespace in which the program is 65534",
    },
    Mechanism {
        promise: "P4",
        docker: "every capability dropped, `no-new-privileges`",
        native: "every capability dropped, no_new_privs, nosuid mounts",
    },
    Mechanism {
        promise: "P5",
        docker: "the process limit of the container's cgroup",
        native: "the process limit of the cgroup, or RLIMIT_NPROC within the user namespace",
    },
    Mechanism {
        promise: "P6",
        docker: "the memory limit of the container's cgroup, without swap",
        native: "the memory limit of the cgroup, or a watchdog",
    },
    Mechanism {
        promise: "P7",
        docker: "the CPU limit of the container's cgroup",
        native: "the CPU limit of the cgroup, or a watchdog",
    },
    guest(
        "P8",
        "a deadline in PID 1 of the sandbox, and a second one in the server",
    ),
    guest(
        "P9",
        "limits in PID 1 of the sandbox, checked again by the server",
    ),
    guest("P10", "tmpfs mounts with a size, a number of inodes and `noexec`"),
    guest("P11", "an environment that the server builds from a fixed list"),
    Mechanism {
        promise: "P12",
        docker: "masked paths, and PID, mount and IPC namespaces of the container",
        native: "PID, mount and IPC namespaces, no sysfs, no cgroups inside",
    },
    Mechanism {
        promise: "P13",
        docker: "our seccomp profile, passed to the engine",
        native: "our seccomp table, compiled for this kernel",
    },
    guest("P14", "a new sandbox for each execution, never used again"),
    Mechanism {
        promise: "P15",
        docker: "a container that the engine removes when its connection closes, and a reconciler",
        native: "the death of the PID namespace with its first process, and that with the server",
    },
    guest(
        "P16",
        "our own PID 1, which belongs to another user than the program and reaps all processes",
    ),
];

/// The title of a promise, such as `no network` of `P1`.
#[must_use]
pub fn title(promise: &str) -> Option<&'static str> {
    let mut all = PROMISES.iter();
    all.find(|(known, _)| *known == promise).map(|(_, title)| *title)
}

/// The text of a promise in `SECURITY.md`.
#[must_use]
pub fn text(promise: &str) -> &'static str {
    let mut rows = SECURITY.lines().filter_map(|line| {
        let row = line.strip_prefix("| ")?.strip_suffix(" |")?;
        row.split_once(" | ")
    });
    rows.find(|(id, _)| *id == promise).map_or("", |(_, text)| text)
}

/// How a backend keeps a promise. What depends on the host is in [`Outlook::mechanisms`](super::Outlook::mechanisms).
pub(super) fn mechanism(promise: &str, backend: &str) -> &'static str {
    let mut all = MECHANISMS.iter();
    let found = all.find(|mechanism| mechanism.promise == promise);
    found.map_or("", |mechanism| match backend {
        "docker" => mechanism.docker,
        _ => mechanism.native,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_promise_has_a_text_and_a_mechanism() {
        for (promise, _) in PROMISES {
            assert!(text(promise).ends_with('.'), "{promise}: {:?}", text(promise));
            for backend in ["docker", "native"] {
                assert!(!mechanism(promise, backend).is_empty(), "{promise} on {backend}");
            }
        }
        assert_eq!(MECHANISMS.len(), PROMISES.len());
        assert!(text("P1").starts_with("No network."));
        assert_eq!((text("P17"), title("P17")), ("", None));
    }
}
