//! The vocabulary of plans: each thing that is ever done to make a sandbox.

use serde::{Deserialize, Serialize};

/// Steps in their order. The first that fails ends the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SetupPlan {
    pub(super) steps: Vec<Step>,
    /// What comes after them.
    pub(super) then: Then,
}

/// What comes after a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Then {
    /// Waiting for the rest of the plan.
    Wait,
    /// The guest.
    Serve,
}

/// One thing that is done, once. Paths are those of the sandbox; `from` is a path of the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub(super) enum Step {
    /// Give up the controlling terminal (S-24).
    LeaveTerminal,
    /// A cgroup namespace of its own, whose root is the cgroup that the sandbox is in by now.
    HideCgroup,
    /// The host's name stays its secret.
    NameHost {
        /// The name inside.
        name: String,
    },
    /// Nothing mounted here or on the host from now on crosses over.
    CutPropagation,
    /// An empty tmpfs becomes `/`; the host's root moves to the hidden folder of `plan.rs` until it is forgotten.
    ReplaceRoot {
        /// Its size in bytes: it holds empty folders, links and a few lines of text.
        bytes: u64,
        /// Its inodes.
        inodes: u64,
    },
    /// A folder that everybody may read.
    Folder {
        /// Where.
        path: String,
    },
    /// A symbolic link.
    Link {
        /// Where.
        path: String,
        /// What it holds.
        to: String,
    },
    /// A file of our own writing.
    File {
        /// Where.
        path: String,
        /// What it holds.
        text: String,
    },
    /// A folder of the host with all that is mounted below it: read-only, without set-uid and devices, from the instant
    /// that it can be seen.
    BindFolder {
        /// The host's.
        from: String,
        /// Where.
        to: String,
    },
    /// One file of the host, likewise.
    BindFile {
        /// The host's.
        from: String,
        /// Where.
        to: String,
    },
    /// A mount that the host handed over as a descriptor, read-only already: the way to it is closed to the sandbox's user.
    AttachHanded {
        /// Where.
        to: String,
    },
    /// A harmless device of the host: it works, nothing about it can be changed.
    Device {
        /// Its name in `/dev`, there and here.
        name: String,
    },
    /// Terminals of its own.
    Terminals,
    /// The processes of this PID namespace and no other.
    Processes,
    /// Scratch in memory: bounded, not executable, no set-uid, no devices (P10).
    Scratch {
        /// Where.
        path: String,
        /// Its size in bytes.
        bytes: u64,
        /// Its inodes.
        inodes: u64,
        /// Permission bits of its root, in octal.
        mode: String,
    },
    /// The size of a [`Step::Scratch`] changes.
    Resize {
        /// Which.
        path: String,
        /// Its size in bytes.
        bytes: u64,
        /// Its inodes.
        inodes: u64,
    },
    /// Covered where it exists: a file by `/dev/null`, a folder by an empty one (S-15).
    Mask {
        /// What.
        path: String,
    },
    /// Read-only where it exists (S-16).
    Freeze {
        /// What.
        path: String,
    },
    /// The host's root is unmounted and its place removed.
    ForgetHost,
    /// `/` itself becomes read-only (P2).
    FreezeRoot,
    /// The loopback interface comes up.
    StartLoopback,
    /// A second pair of user and mount namespaces: every mount attribute is locked from now on, for whoever gains
    /// capabilities by whatever mistake (S-07). The id inside is mapped to itself.
    LockMounts {
        /// The user and group inside.
        id: u32,
    },
    /// A limit that neither the sandbox nor anything in it can raise.
    Limit {
        /// On what.
        resource: Resource,
        /// How much.
        value: u64,
    },
    /// No exec ever gains a privilege (P4).
    NoNewPrivileges,
    /// A second layer where the kernel has Landlock: read and execute everywhere, write only below these.
    Landlock {
        /// Where writing is possible.
        writable: Vec<String>,
    },
    /// Every capability goes, out of every set (P4).
    DropCapabilities,
    /// The sandbox dies with the thread that made it (P15).
    DieWithServer,
    /// Nobody may trace or read PID 1 (P16).
    HideFirstProcess,
    /// Calls that the table allows and this host cannot bound: a filter of their own before the table's, whose answer
    /// counts where it is the stricter.
    RefuseCalls {
        /// Their names.
        calls: Vec<String>,
    },
    /// The last step: the table of system calls (P13).
    FilterCalls,
}

/// What a [`Step::Limit`] limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Resource {
    /// Open descriptors of one process.
    OpenFiles,
    /// Bytes of a core dump.
    CoreBytes,
    /// Bytes that one process can lock in memory.
    LockedBytes,
    /// Bytes of data of one process: the degraded form's bound within the watchdog's.
    DataBytes,
    /// Processes and threads of this user namespace: behind the cgroup's own limit.
    Processes,
}
