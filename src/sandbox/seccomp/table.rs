//! The table of system calls. Everything else is rejected; a new entry needs a reason and a probe.

use super::{Masked, Rule, is};

/// `S_IFMT`, and the only type of node that a program may create.
const FIFO: (u32, u32) = (0o170_000, 0o010_000);
/// `CLONE_NEWNS`, `NEWCGROUP`, `NEWUTS`, `NEWIPC`, `NEWUSER`, `NEWPID`, `NEWNET`.
const CLONE_NAMESPACES: u32 = 0x7e02_0000;

/// Injects input into a terminal (S-24).
const TIOCSTI: u32 = 0x5412;
/// Pastes a console's selection as input.
const TIOCLINUX: u32 = 0x541c;
/// Attaches a line discipline to a terminal, even to a pseudo terminal of the program: old drivers of modems and
/// radios, loaded on demand, that no program here needs.
const TIOCSETD: u32 = 0x5423;

const PID_ONE: &[u32] = &[1];
const ENOSYS: u32 = 38;

const AF_UNIX: u32 = 1;
const AF_INET: u32 = 2;
const AF_INET6: u32 = 10;
const AF_NETLINK: u32 = 16;
const TCP: u32 = 6;
const UDP: u32 = 17;
/// `SOCK_STREAM` and `SOCK_DGRAM`, without the flags in the same argument.
const STREAM: Masked = socket_type(1);
const DATAGRAM: Masked = socket_type(2);

const fn socket_type(value: u32) -> Masked {
    Masked {
        index: 1,
        mask: 0xf,
        value,
    }
}

/// Allowed system calls.
pub const RULES: &[Rule] = &[
    Rule::Always(FILES),
    Rule::Always(FOLDERS_AND_NAMES),
    Rule::Always(MEMORY),
    Rule::Always(PROCESSES),
    Rule::Always(SIGNALS),
    Rule::Always(TIME),
    Rule::Always(WAITING),
    Rule::Always(SOCKETS),
    Rule::Always(SYSTEM_V),
    Rule::Always(SELF_RESTRICTION),
    // Threads and processes, but no namespaces. `clone3` hides its flags behind a pointer, so programs must fall back
    // to `clone`.
    Rule::When(
        "clone",
        &[Masked {
            index: 0,
            mask: CLONE_NAMESPACES,
            value: 0,
        }],
    ),
    Rule::Answered("clone3", ENOSYS),
    // Sockets on the sandbox's own loopback, with the two usual protocols. Protocol 0 is the type's default: with
    // types 5, 6 and 10 it would be SCTP, DCCP and AF_PACKET.
    Rule::When("socket", &[is(0, AF_UNIX)]),
    Rule::When("socket", &[is(0, AF_INET), STREAM, is(2, 0)]),
    Rule::When("socket", &[is(0, AF_INET), STREAM, is(2, TCP)]),
    Rule::When("socket", &[is(0, AF_INET), DATAGRAM, is(2, 0)]),
    Rule::When("socket", &[is(0, AF_INET), DATAGRAM, is(2, UDP)]),
    Rule::When("socket", &[is(0, AF_INET6), STREAM, is(2, 0)]),
    Rule::When("socket", &[is(0, AF_INET6), STREAM, is(2, TCP)]),
    Rule::When("socket", &[is(0, AF_INET6), DATAGRAM, is(2, 0)]),
    Rule::When("socket", &[is(0, AF_INET6), DATAGRAM, is(2, UDP)]),
    // NETLINK_ROUTE: getifaddrs and the resolver query addresses with it.
    Rule::When("socket", &[is(0, AF_NETLINK), is(2, 0)]),
    Rule::When("socketpair", &[is(0, AF_UNIX)]),
    // PER_LINUX, and the query of the current personality.
    Rule::When("personality", &[is(0, 0)]),
    Rule::When("personality", &[is(0, u32::MAX)]),
    Rule::When(
        "mknod",
        &[Masked {
            index: 1,
            mask: FIFO.0,
            value: FIFO.1,
        }],
    ),
    Rule::When(
        "mknodat",
        &[Masked {
            index: 2,
            mask: FIFO.0,
            value: FIFO.1,
        }],
    ),
    // A program may limit itself and its children. PID 1 has the same uid and must not be limited, or it would stop
    // collecting (P16).
    Rule::Unless("prlimit64", &[], 0, PID_ONE),
    Rule::Unless("sched_setaffinity", &[], 0, PID_ONE),
    Rule::Unless("sched_setscheduler", &[], 0, PID_ONE),
    Rule::Unless("sched_setparam", &[], 0, PID_ONE),
    Rule::Unless("sched_setattr", &[], 0, PID_ONE),
    // Only PRIO_PROCESS: PRIO_USER and PRIO_PGRP affect PID 1.
    Rule::Unless("setpriority", &[is(0, 0)], 1, PID_ONE),
    Rule::Unless("ioctl", &[], 1, &[TIOCSTI, TIOCLINUX, TIOCSETD]),
    // All writable files are in memory, so nothing needs a sync. Real calls would flush every disk of the host, and
    // those of volume containers.
    Rule::Answered("sync", 0),
    Rule::Answered("syncfs", 0),
];

const FILES: &[&str] = &[
    "read",
    "write",
    "readv",
    "writev",
    "pread64",
    "pwrite64",
    "preadv",
    "pwritev",
    "preadv2",
    "pwritev2",
    "open",
    "openat",
    "openat2",
    "creat",
    "close",
    "close_range",
    "lseek",
    "dup",
    "dup2",
    "dup3",
    "fcntl",
    "flock",
    "fsync",
    "fdatasync",
    "sync_file_range",
    "truncate",
    "ftruncate",
    "fallocate",
    "fadvise64",
    "readahead",
    "copy_file_range",
    "sendfile",
    "splice",
    "tee",
    "pipe",
    "pipe2",
    "stat",
    "fstat",
    "lstat",
    "newfstatat",
    "statx",
    "statfs",
    "fstatfs",
    "memfd_create",
];

const FOLDERS_AND_NAMES: &[&str] = &[
    "getdents",
    "getdents64",
    "getcwd",
    "chdir",
    "fchdir",
    "mkdir",
    "mkdirat",
    "rmdir",
    "link",
    "linkat",
    "unlink",
    "unlinkat",
    "symlink",
    "symlinkat",
    "readlink",
    "readlinkat",
    "rename",
    "renameat",
    "renameat2",
    "access",
    "faccessat",
    "faccessat2",
    "chmod",
    "fchmod",
    "fchmodat",
    "fchmodat2",
    "chown",
    "fchown",
    "fchownat",
    "lchown",
    "umask",
    "utime",
    "utimes",
    "utimensat",
    "futimesat",
    "getxattr",
    "lgetxattr",
    "fgetxattr",
    "setxattr",
    "lsetxattr",
    "fsetxattr",
    "listxattr",
    "llistxattr",
    "flistxattr",
    "removexattr",
    "lremovexattr",
    "fremovexattr",
    "inotify_init",
    "inotify_init1",
    "inotify_add_watch",
    "inotify_rm_watch",
];

const MEMORY: &[&str] = &[
    "brk",
    "mmap",
    "munmap",
    "mremap",
    "mprotect",
    "madvise",
    "mincore",
    "msync",
    "mlock",
    "mlock2",
    "mlockall",
    "munlock",
    "munlockall",
    "membarrier",
    "pkey_alloc",
    "pkey_free",
    "pkey_mprotect",
    "mseal",
];

const PROCESSES: &[&str] = &[
    "fork",
    "vfork",
    "execve",
    "execveat",
    "exit",
    "exit_group",
    "wait4",
    "waitid",
    "getpid",
    "getppid",
    "gettid",
    "getpgid",
    "getpgrp",
    "setpgid",
    "getsid",
    "setsid",
    "getuid",
    "geteuid",
    "getgid",
    "getegid",
    "getresuid",
    "getresgid",
    "getgroups",
    "setuid",
    "setgid",
    "setreuid",
    "setregid",
    "setresuid",
    "setresgid",
    "setgroups",
    "setfsuid",
    "setfsgid",
    "capget",
    "prctl",
    "arch_prctl",
    "set_tid_address",
    "set_thread_area",
    "get_thread_area",
    "set_robust_list",
    "get_robust_list",
    "rseq",
    "futex",
    "futex_wait",
    "futex_wake",
    "futex_waitv",
    "futex_requeue",
    "getrlimit",
    "setrlimit",
    "getrusage",
    "getpriority",
    "sched_yield",
    "sched_getaffinity",
    "sched_getattr",
    "sched_getparam",
    "sched_getscheduler",
    "sched_get_priority_max",
    "sched_get_priority_min",
    "sched_rr_get_interval",
    "ioprio_get",
    "getcpu",
    "uname",
    "sysinfo",
    "getrandom",
    "pidfd_open",
];

const SIGNALS: &[&str] = &[
    "kill",
    "tkill",
    "tgkill",
    "rt_sigaction",
    "rt_sigpending",
    "rt_sigprocmask",
    "rt_sigqueueinfo",
    "rt_tgsigqueueinfo",
    "rt_sigreturn",
    "rt_sigsuspend",
    "rt_sigtimedwait",
    "sigaltstack",
    "signalfd",
    "signalfd4",
    "pidfd_send_signal",
    "pause",
    "restart_syscall",
];

const TIME: &[&str] = &[
    "time",
    "times",
    "gettimeofday",
    "clock_gettime",
    "clock_getres",
    "clock_nanosleep",
    "nanosleep",
    "alarm",
    "getitimer",
    "setitimer",
    "timer_create",
    "timer_delete",
    "timer_gettime",
    "timer_settime",
    "timer_getoverrun",
    "timerfd_create",
    "timerfd_gettime",
    "timerfd_settime",
];

const WAITING: &[&str] = &[
    "poll",
    "ppoll",
    "select",
    "pselect6",
    "epoll_create",
    "epoll_create1",
    "epoll_ctl",
    "epoll_wait",
    "epoll_pwait",
    "epoll_pwait2",
    "eventfd",
    "eventfd2",
];

/// On the sandbox's own loopback and between its own processes. The rules above limit which sockets can be created.
const SOCKETS: &[&str] = &[
    "accept",
    "accept4",
    "bind",
    "connect",
    "listen",
    "getpeername",
    "getsockname",
    "getsockopt",
    "setsockopt",
    "recvfrom",
    "recvmsg",
    "recvmmsg",
    "sendto",
    "sendmsg",
    "sendmmsg",
    "shutdown",
];

/// In an IPC namespace of its own; databases and old numeric code use it.
const SYSTEM_V: &[&str] = &[
    "shmget",
    "shmat",
    "shmctl",
    "shmdt",
    "semget",
    "semop",
    "semctl",
    "semtimedop",
    "msgget",
    "msgsnd",
    "msgrcv",
    "msgctl",
];

/// A program may drop privileges.
const SELF_RESTRICTION: &[&str] = &[
    "seccomp",
    "landlock_create_ruleset",
    "landlock_add_rule",
    "landlock_restrict_self",
];
