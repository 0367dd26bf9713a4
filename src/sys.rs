//! One function per system call that no safe crate offers; the only place with `unsafe`.

#![cfg(target_os = "linux")]
#![expect(
    unsafe_code,
    reason = "this is the one place; each block says why it is sound"
)]

use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::Pid;

/// Releases the pages of this program's code. They are read again from the page cache when needed.
pub fn release_code_pages() -> io::Result<()> {
    for Range { start, end } in mapped(&["r-xp"])? {
        // SAFETY: code is mapped from its file and never written, so it is read again as it was.
        if unsafe { libc::madvise(start as *mut _, end - start, libc::MADV_DONTNEED) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Collapses this program's code and constants into huge pages: children of this process then map 2 MiB with one fault. Without
/// effect before Linux 6.1, for a program on disk, or if memory is fragmented.
pub fn collapse_code_pages() {
    for Range { start, end } in mapped(&["r-xp", "r--p"]).unwrap_or_default() {
        // SAFETY: the kernel moves pages, and what is read there stays the same.
        unsafe { libc::madvise(start as *mut _, end - start, MADV_COLLAPSE) };
    }
}

/// `<linux/mman.h>` since Linux 6.1; the `libc` crate has it for one C library only.
const MADV_COLLAPSE: libc::c_int = 25;

/// Address ranges of this program with one of these permissions.
fn mapped(permissions: &[&str]) -> io::Result<Vec<Range<usize>>> {
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    let address = |text| usize::from_str_radix(text, 16).map_err(io::Error::other);
    let of_file = maps.lines().filter(|line| line.contains('/'));
    let bounds = of_file.filter_map(|line| {
        let (bounds, rest) = line.split_once(' ')?;
        permissions
            .iter()
            .any(|known| rest.starts_with(known))
            .then_some(bounds)?
            .split_once('-')
    });
    bounds
        .map(|(start, end)| Ok(address(start)?..address(end)?))
        .collect()
}

/// Returns free memory to the system, where the allocator supports it.
pub fn trim_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes a number of bytes to keep, and moves nothing that is in use.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Kills every process that this one may signal, except itself. As PID 1 of a PID namespace: everything in it.
pub fn kill_everything() -> io::Result<()> {
    if std::process::id() != 1 {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "only PID 1 may kill everything",
        ));
    }
    // SAFETY: kill takes two integers and touches no memory of ours.
    if unsafe { libc::kill(-1, libc::SIGKILL) } == 0 {
        return Ok(());
    }
    match io::Error::last_os_error() {
        error if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
        error => Err(error),
    }
}

/// Removes the stack overflow handlers of Rust's runtime. With a handler, signals of a program could nest until its stack
/// overflows and the kernel kills PID 1; without one, the kernel protects it.
pub fn drop_fault_handlers() -> io::Result<()> {
    for signal in [libc::SIGSEGV, libc::SIGBUS] {
        // SAFETY: the default action is no function of ours that a signal could run into.
        if unsafe { libc::signal(signal, libc::SIG_DFL) } == libc::SIG_ERR {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// CPU time of this process and of all its children that were waited for.
pub fn cpu_time() -> io::Result<Duration> {
    let mut sum = Duration::ZERO;
    for who in [libc::RUSAGE_SELF, libc::RUSAGE_CHILDREN] {
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::uninit();
        // SAFETY: `usage` is a writable rusage, which is all that getrusage asks for.
        if unsafe { libc::getrusage(who, usage.as_mut_ptr()) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: getrusage returned 0, so it has filled the whole structure.
        let usage = unsafe { usage.assume_init() };
        for time in [usage.ru_utime, usage.ru_stime] {
            sum += Duration::from_secs(time.tv_sec.unsigned_abs())
                + Duration::from_micros(time.tv_usec.unsigned_abs());
        }
    }
    Ok(sum)
}

#[derive(Debug)]
pub enum Forked {
    /// Id of the child.
    Parent(Pid),
    Child,
}

/// Forks this process, which must be single-threaded, into new user, mount, PID, network, IPC and UTS namespaces. The
/// child is PID 1 there with all capabilities, in `cgroup` (version 2) or this process's own.
///
/// It is a child of this process's parent, which reaps it.
pub fn fork_into_namespaces(cgroup: Option<BorrowedFd<'_>>) -> io::Result<Forked> {
    const NAMESPACES: libc::c_int = libc::CLONE_NEWUSER
        | libc::CLONE_NEWNS
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWNET
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUTS;
    const CLONE_INTO_CGROUP: u64 = 1 << 33;
    // The kernel refuses this to a process of several threads, and else does nothing.
    // SAFETY: unshare takes an integer, and this one changes nothing.
    if unsafe { libc::unshare(libc::CLONE_THREAD) } != 0 {
        return Err(io::Error::other("a process of several threads cannot be copied"));
    }
    let flags = u64::from((NAMESPACES | libc::CLONE_PARENT).unsigned_abs());
    let arguments = libc::clone_args {
        flags: flags | cgroup.map_or(0, |_| CLONE_INTO_CGROUP),
        pidfd: 0,
        child_tid: 0,
        parent_tid: 0,
        // The cgroup of this process.
        exit_signal: 0,
        stack: 0,
        stack_size: 0,
        tls: 0,
        set_tid: 0,
        set_tid_size: 0,
        cgroup: cgroup.map_or(0, |folder| u64::from(folder.as_raw_fd().unsigned_abs())),
    };
    // SAFETY: the arguments outlive the call; the child has a copy of all memory, and no other thread could have held a lock.
    let id = unsafe {
        libc::syscall(
            libc::SYS_clone3,
            &raw const arguments,
            size_of::<libc::clone_args>(),
        )
    };
    match i32::try_from(id) {
        Ok(0) => Ok(Forked::Child),
        Ok(id) if let Some(id) = Some(id).filter(|id| *id > 0).and_then(Pid::from_raw) => {
            Ok(Forked::Parent(id))
        }
        _ => Err(io::Error::last_os_error()),
    }
}

/// Sets the ids by which this thread's access to files is checked. Effective ids set them, too.
pub fn set_file_system_ids(user: u32, group: u32) {
    // SAFETY: both take an integer and change only this thread.
    unsafe {
        libc::setfsgid(group);
        libc::setfsuid(user);
    }
}

/// Closes all descriptors except the three standard ones. No value may own one of them.
pub fn close_all_but_standard() -> io::Result<()> {
    // SAFETY: the caller has just begun, and none of these is its own.
    let result = unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) };
    if result == 0 {
        Ok(())
    } else {
        Err(last_errno().into())
    }
}

fn last_errno() -> Errno {
    Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MountScope {
    One,
    /// The mount and all below it.
    All,
}

/// Adds attributes (`MOUNT_ATTR_…` of libc) to a mount. Needs Linux 5.12.
pub fn mount_setattr(mount: BorrowedFd<'_>, attributes: u64, reach: MountScope) -> io::Result<()> {
    let change = libc::mount_attr {
        attr_set: attributes,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    let recursive = if reach == MountScope::All {
        libc::AT_RECURSIVE
    } else {
        0
    };
    let flags = libc::AT_EMPTY_PATH | recursive;
    // SAFETY: the path is terminated, and `change` is a whole mount_attr of the size that is given.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const change,
            size_of::<libc::mount_attr>(),
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(last_errno().into())
    }
}

/// Gives this process, which must be single-threaded, new namespaces (`CLONE_NEW…` of libc).
pub fn unshare_namespaces(namespaces: libc::c_int) -> io::Result<()> {
    // SAFETY: unshare takes an integer; new namespaces change no memory and no descriptor of ours.
    if unsafe { libc::unshare(namespaces & !(libc::CLONE_FILES | libc::CLONE_FS)) } == 0 {
        Ok(())
    } else {
        Err(last_errno().into())
    }
}

/// Applies a filter permanently to this thread and its descendants.
pub fn seccomp_filter(filter: &mut [libc::sock_filter]) -> io::Result<()> {
    let program = libc::sock_fprog {
        len: u16::try_from(filter.len()).map_err(|_| Errno::TOOBIG)?,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: the program points to as many instructions as it says; the kernel copies and checks them.
    let result = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            0,
            &raw const program,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(last_errno().into())
    }
}
