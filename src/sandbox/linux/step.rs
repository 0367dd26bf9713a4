//! The steps of plans: every operation that creates a sandbox.

use serde::{Deserialize, Serialize};

/// Steps in order. The first failure ends the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SetupPlan {
    pub(super) steps: Vec<Step>,
    pub(super) then: Then,
}

/// What follows a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Then {
    /// Waiting for the rest of the plan.
    Wait,
    /// The guest.
    Serve,
}

/// A single operation. Paths are those of the sandbox; `from` is a path of the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub(super) enum Step {
    /// Gives up the controlling terminal (S-24).
    LeaveTerminal,
    /// A cgroup namespace with the current cgroup as its root.
    HideCgroup,
    /// Hides the host's name.
    NameHost {
        name: String,
    },
    /// Stops propagation of mounts in both directions.
    CutPropagation,
    /// An empty tmpfs becomes `/`; the host's root moves to the hidden folder of `plan.rs` until it is unmounted.
    ReplaceRoot {
        /// Size in bytes: for empty folders, links and a few lines of text.
        bytes: u64,
        inodes: u64,
    },
    /// A folder, readable for all.
    Folder {
        path: String,
    },
    Link {
        path: String,
        /// Target.
        to: String,
    },
    /// A file with our own text.
    File {
        path: String,
        text: String,
    },
    /// A folder of the host with all mounts below it: read-only, without set-uid and devices from the moment it is
    /// visible.
    BindFolder {
        from: String,
        to: String,
    },
    /// A file of the host, restricted as in [`Step::Bind`].
    BindFile {
        from: String,
        to: String,
    },
    /// A read-only mount received as a descriptor, for paths that the sandbox's user cannot open.
    AttachHanded {
        to: String,
    },
    /// A harmless device of the host, which cannot be changed.
    Device {
        /// Name in `/dev`.
        name: String,
    },
    /// Terminals of its own.
    Terminals,
    /// The `/proc` of this PID namespace.
    Processes,
    /// Scratch space in memory: limited, not executable, no set-uid, no devices (P10).
    Scratch {
        path: String,
        bytes: u64,
        inodes: u64,
        /// Permission bits of its root, in octal.
        mode: String,
    },
    /// Resizes a [`Step::Scratch`].
    Resize {
        path: String,
        bytes: u64,
        inodes: u64,
    },
    /// Limits what the kernel counts for each user, for all users of this namespace.
    LimitUser {
        /// File below `/proc/sys/user`.
        name: String,
        value: u64,
    },
    /// Hides an existing path: a file by `/dev/null`, a folder by an empty one (S-15).
    Mask {
        path: String,
    },
    /// Makes an existing path read-only (S-16).
    Freeze {
        path: String,
    },
    /// Unmounts the host's root and removes its mount point.
    ForgetHost,
    /// Makes `/` read-only (P2).
    FreezeRoot,
    StartLoopback,
    /// A second pair of user and mount namespaces, which locks every mount attribute, even for a process that gains
    /// capabilities (S-07). The id inside is mapped to itself.
    LockMounts {
        id: u32,
    },
    /// A limit that cannot be raised inside.
    Limit {
        resource: Resource,
        value: u64,
    },
    /// No exec gains privileges (P4).
    NoNewPrivileges,
    /// A second layer, if the kernel has Landlock: read and execute everywhere, write only below these paths.
    Landlock {
        writable: Vec<String>,
    },
    /// Drops all capabilities from all sets (P4).
    DropCapabilities,
    /// The sandbox dies with the thread that created it (P15).
    DieWithServer,
    /// PID 1 cannot be traced or read (P16).
    HideFirstProcess,
    /// A filter before the table's, for calls that the table allows but this host cannot limit. The stricter verdict
    /// applies.
    RefuseCalls {
        calls: Vec<String>,
    },
    /// The last step: the table of system calls (P13).
    FilterCalls,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Resource {
    /// Open descriptors per process.
    OpenFiles,
    /// Bytes of a core dump.
    CoreBytes,
    /// Locked memory per process, in bytes.
    LockedBytes,
    /// Data per process, in bytes: the degraded form's limit below the watchdog's.
    DataBytes,
    /// Queued signals and POSIX timers of this user namespace.
    PendingSignals,
    /// Processes and threads of this user namespace, in addition to the cgroup's limit.
    Processes,
}
