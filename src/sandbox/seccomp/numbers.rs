//! Numbers of system calls on this machine's architecture.

/// The number of a call; `None` if this architecture lacks it.
pub(super) fn number(name: &str) -> Option<u32> {
    [EVERYWHERE, HERE, YOUNG].iter().find_map(|calls| {
        let index = calls
            .binary_search_by_key(&name, |(constant, _)| constant.trim_start_matches("SYS_"))
            .ok()?;
        u32::try_from(calls[index].1).ok()
    })
}

/// The architecture in `seccomp_data.arch`.
#[cfg(target_arch = "x86_64")]
pub(super) const ARCHITECTURE: Option<u32> = Some(0xc000_003e);
/// The architecture in `seccomp_data.arch`.
#[cfg(target_arch = "aarch64")]
pub(super) const ARCHITECTURE: Option<u32> = Some(0xc000_00b7);
/// No filter exists for any other.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) const ARCHITECTURE: Option<u32> = None;

/// Constants of libc, sorted by name.
type Calls = &'static [(&'static str, i64)];

macro_rules! calls {
    ($($constant:ident)*) => { &[$((stringify!($constant), libc::$constant)),*] };
}

/// Calls newer than libc's list, or missing in it for one architecture; their numbers are the same on all.
const YOUNG: Calls = &[
    ("SYS_fchmodat2", 452),
    ("SYS_futex_requeue", 456),
    ("SYS_futex_wait", 455),
    ("SYS_futex_wake", 454),
];

/// Additional calls of older architectures.
#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
const HERE: Calls = calls![
    SYS_access SYS_alarm SYS_arch_prctl SYS_chmod SYS_chown SYS_creat SYS_dup2 SYS_epoll_create
    SYS_epoll_wait SYS_eventfd SYS_fork SYS_futimesat SYS_get_thread_area SYS_getdents SYS_getpgrp
    SYS_getrlimit SYS_inotify_init SYS_lchown SYS_link SYS_lstat SYS_mkdir SYS_mknod SYS_open SYS_pause
    SYS_pipe SYS_poll SYS_readlink SYS_rename SYS_renameat SYS_rmdir SYS_select SYS_set_thread_area
    SYS_setrlimit SYS_signalfd SYS_stat SYS_symlink SYS_sync_file_range SYS_time SYS_unlink SYS_utime
    SYS_utimes SYS_vfork
];

/// Missing in libc for this architecture.
#[cfg(not(target_arch = "x86_64"))]
const HERE: Calls = &[
    ("SYS_getrlimit", 163),
    ("SYS_renameat", 38),
    ("SYS_setrlimit", 164),
    ("SYS_sync_file_range", 84),
];

#[rustfmt::skip]
const EVERYWHERE: Calls = calls![
    SYS_accept SYS_accept4 SYS_bind SYS_brk SYS_capget SYS_chdir SYS_clock_getres SYS_clock_gettime
    SYS_clock_nanosleep SYS_clone SYS_clone3 SYS_close SYS_close_range SYS_connect SYS_copy_file_range
    SYS_dup SYS_dup3 SYS_epoll_create1 SYS_epoll_ctl SYS_epoll_pwait SYS_epoll_pwait2 SYS_eventfd2
    SYS_execve SYS_execveat SYS_exit SYS_exit_group SYS_faccessat SYS_faccessat2 SYS_fadvise64 SYS_fallocate
    SYS_fchdir SYS_fchmod SYS_fchmodat SYS_fchown SYS_fchownat SYS_fcntl SYS_fdatasync SYS_fgetxattr
    SYS_flistxattr SYS_flock SYS_fremovexattr SYS_fsetxattr SYS_fstat SYS_fstatfs SYS_fsync SYS_ftruncate
    SYS_futex SYS_futex_waitv SYS_get_robust_list SYS_getcpu SYS_getcwd SYS_getdents64 SYS_getegid
    SYS_geteuid SYS_getgid SYS_getgroups SYS_getitimer SYS_getpeername SYS_getpgid SYS_getpid SYS_getppid
    SYS_getpriority SYS_getrandom SYS_getresgid SYS_getresuid SYS_getrusage SYS_getsid SYS_getsockname
    SYS_getsockopt SYS_gettid SYS_gettimeofday SYS_getuid SYS_getxattr SYS_inotify_add_watch
    SYS_inotify_init1 SYS_inotify_rm_watch SYS_ioctl SYS_ioprio_get SYS_kill SYS_landlock_add_rule
    SYS_landlock_create_ruleset SYS_landlock_restrict_self SYS_lgetxattr SYS_linkat SYS_listen SYS_listxattr
    SYS_llistxattr SYS_lremovexattr SYS_lseek SYS_lsetxattr SYS_madvise SYS_membarrier SYS_memfd_create
    SYS_mincore SYS_mkdirat SYS_mknodat SYS_mlock SYS_mlock2 SYS_mlockall SYS_mmap SYS_mprotect SYS_mremap
    SYS_mseal SYS_msgctl SYS_msgget SYS_msgrcv SYS_msgsnd SYS_msync SYS_munlock SYS_munlockall SYS_munmap
    SYS_nanosleep SYS_newfstatat SYS_openat SYS_openat2 SYS_personality SYS_pidfd_open SYS_pidfd_send_signal
    SYS_pipe2 SYS_pkey_alloc SYS_pkey_free SYS_pkey_mprotect SYS_ppoll SYS_prctl SYS_pread64 SYS_preadv
    SYS_preadv2 SYS_prlimit64 SYS_pselect6 SYS_pwrite64 SYS_pwritev SYS_pwritev2 SYS_read SYS_readahead
    SYS_readlinkat SYS_readv SYS_recvfrom SYS_recvmmsg SYS_recvmsg SYS_removexattr SYS_renameat2
    SYS_restart_syscall SYS_rseq SYS_rt_sigaction SYS_rt_sigpending SYS_rt_sigprocmask SYS_rt_sigqueueinfo
    SYS_rt_sigreturn SYS_rt_sigsuspend SYS_rt_sigtimedwait SYS_rt_tgsigqueueinfo SYS_sched_get_priority_max
    SYS_sched_get_priority_min SYS_sched_getaffinity SYS_sched_getattr SYS_sched_getparam
    SYS_sched_getscheduler SYS_sched_rr_get_interval SYS_sched_setaffinity SYS_sched_setattr
    SYS_sched_setparam SYS_sched_setscheduler SYS_sched_yield SYS_seccomp SYS_semctl SYS_semget SYS_semop
    SYS_semtimedop SYS_sendfile SYS_sendmmsg SYS_sendmsg SYS_sendto SYS_set_robust_list SYS_set_tid_address
    SYS_setfsgid SYS_setfsuid SYS_setgid SYS_setgroups SYS_setitimer SYS_setpgid SYS_setpriority
    SYS_setregid SYS_setresgid SYS_setresuid SYS_setreuid SYS_setsid SYS_setsockopt SYS_setuid SYS_setxattr
    SYS_shmat SYS_shmctl SYS_shmdt SYS_shmget SYS_shutdown SYS_sigaltstack SYS_signalfd4 SYS_socket
    SYS_socketpair SYS_splice SYS_statfs SYS_statx SYS_symlinkat SYS_sync SYS_syncfs SYS_sysinfo SYS_tee
    SYS_tgkill SYS_timer_create SYS_timer_delete SYS_timer_getoverrun SYS_timer_gettime SYS_timer_settime
    SYS_timerfd_create SYS_timerfd_gettime SYS_timerfd_settime SYS_times SYS_tkill SYS_truncate SYS_umask
    SYS_uname SYS_unlinkat SYS_utimensat SYS_wait4 SYS_waitid SYS_write SYS_writev
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_sorted() {
        for calls in [EVERYWHERE, HERE, YOUNG] {
            let name = |call: &(&'static str, i64)| call.0.trim_start_matches("SYS_");
            assert!(calls.windows(2).all(|pair| name(&pair[0]) < name(&pair[1])));
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn each_call_of_the_table_has_a_number() {
        for name in crate::sandbox::seccomp::RULES
            .iter()
            .flat_map(crate::sandbox::seccomp::names)
        {
            assert!(number(name).is_some(), "{name}");
        }
        assert_eq!(
            number("mount_setattr"),
            None,
            "not in the table, so not in the list"
        );
    }
}
