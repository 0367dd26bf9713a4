//! One function per system call that no safe crate offers; the only place with `unsafe`.

#![cfg(target_os = "linux")]
#![expect(
    unsafe_code,
    reason = "this is the one place; each block says why it is sound"
)]

use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::event::Timespec;
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Gid, Pid, Signal, Uid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, futex, set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};

/// Lets go of the pages of this program's code; those that are needed come back from the system's cache.
pub fn let_go_of_code() -> io::Result<()> {
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    let code = maps
        .lines()
        .filter(|line| line.contains(" r-xp ") && !line.contains('['));
    for (start, end) in code.filter_map(|line| line.split(' ').next()?.split_once('-')) {
        let [start, end] = [start, end].map(|text| usize::from_str_radix(text, 16).map_err(io::Error::other));
        let (start, end) = (start?, end?);
        // SAFETY: code is mapped from its file and never written, so it is read again as it was.
        if unsafe { libc::madvise(start as *mut _, end - start, libc::MADV_DONTNEED) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
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

/// Takes away the handlers that Rust's runtime installs to explain a stack overflow. PID 1 may not have them: signals of
/// a program that arrive together nest on their small stack until it overflows, and the kernel then kills even PID 1,
/// which it shields from every signal that has no handler.
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

/// What [`clone_into_namespaces`] makes of the child before anything of ours runs in it.
#[derive(Debug)]
pub struct Birth<'a> {
    /// The cgroup (version 2) that it is born in; the caller's own if `None`.
    pub cgroup: Option<BorrowedFd<'a>>,
    /// The executable that it becomes.
    pub program: BorrowedFd<'a>,
    /// The program's only argument.
    pub command: &'static CStr,
    /// Becomes descriptor 0. The child waits for one byte on it before it does anything.
    pub link: BorrowedFd<'a>,
    /// Becomes descriptor 1.
    pub null: BorrowedFd<'a>,
    /// Becomes descriptor 2.
    pub diagnostics: BorrowedFd<'a>,
    /// The user and group inside.
    pub id: u32,
    /// Whether the supplementary groups can be given up.
    pub groups: Groups,
}

/// What becomes of supplementary groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Groups {
    /// Replaced by the group inside.
    Replaced,
    /// Kept: the kernel lets an ordinary user not give them up.
    Kept,
}

/// A child of [`clone_into_namespaces`].
#[derive(Debug)]
pub struct Child {
    /// Its id.
    pub id: Pid,
    /// Stands for it.
    pub process: OwnedFd,
    /// What it runs on until it is its program.
    pub cradle: Cradle,
}

/// The memory that a child shares with this process and runs on until it becomes its program or ends.
#[derive(Debug)]
pub struct Cradle(Option<Box<InCradle>>);

struct InCradle {
    /// The kernel makes it 0, and wakes who waits, when the child has left this memory for its own, or ended.
    occupied: AtomicU32,
    child: Unborn,
    /// Aligned as every architecture wants it.
    stack: Box<[MaybeUninit<u128>]>,
}

/// What the child needs to know. It has the numbers of this process's descriptors, and copies of these.
struct Unborn {
    program: RawFd,
    command: &'static CStr,
    link: RawFd,
    null: RawFd,
    diagnostics: RawFd,
    id: u32,
    groups: Groups,
    /// Whether this process could be dumped before.
    dumpable: DumpableBehavior,
}

/// Far more than the child's few calls take, also where nothing is optimised.
const STACK_BYTES: usize = 64 * 1024;

impl Cradle {
    /// Waits until the child is its program, or has ended.
    pub fn wait(&self, at_most: Duration) -> io::Result<()> {
        let Some(cradle) = &self.0 else { return Ok(()) };
        let give_up = Instant::now() + at_most;
        loop {
            let occupied = cradle.occupied.load(Ordering::Acquire);
            let left = give_up.saturating_duration_since(Instant::now());
            if occupied == 0 {
                return Ok(());
            }
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            let left = Timespec::try_from(left).map_err(io::Error::other)?;
            // Not a private one: the kernel wakes whoever shares the memory.
            match futex::wait(&cradle.occupied, futex::Flags::empty(), occupied, Some(&left)) {
                Ok(()) | Err(Errno::AGAIN | Errno::INTR | Errno::TIMEDOUT) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Drop for Cradle {
    fn drop(&mut self) {
        if let Some(cradle) = self.0.take()
            && cradle.occupied.load(Ordering::Acquire) != 0
        {
            // Somebody still runs on it.
            std::mem::forget(cradle);
        }
    }
}

impl std::fmt::Debug for InCradle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InCradle").finish_non_exhaustive()
    }
}

/// Starts a child in new user, mount, PID, network, IPC and UTS namespaces, as PID 1 there, that waits for its id map and
/// then becomes `birth.program` with every capability of its own namespace and no descriptor but three.
///
/// Until then it shares this process's memory: a copy of it would have to be made, and each page that this process writes to
/// afterwards be copied once more, which costs more than all the rest of a birth.
///
/// The child dies with the *thread* that calls this.
pub fn clone_into_namespaces(birth: &Birth<'_>) -> io::Result<Child> {
    const NAMESPACES: libc::c_int = libc::CLONE_NEWUSER
        | libc::CLONE_NEWNS
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWNET
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUTS;
    const MEMORY: libc::c_int = libc::CLONE_VM | libc::CLONE_CHILD_CLEARTID;
    const CLONE_INTO_CGROUP: u64 = 1 << 33;
    let mut cradle = Box::new(InCradle {
        occupied: AtomicU32::new(1),
        child: Unborn {
            program: birth.program.as_raw_fd(),
            command: birth.command,
            link: birth.link.as_raw_fd(),
            null: birth.null.as_raw_fd(),
            diagnostics: birth.diagnostics.as_raw_fd(),
            id: birth.id,
            groups: birth.groups,
            dumpable: match rustix::process::dumpable_behavior()? {
                DumpableBehavior::Dumpable => DumpableBehavior::Dumpable,
                // Nobody can choose the third.
                _ => DumpableBehavior::NotDumpable,
            },
        },
        stack: Box::new_uninit_slice(STACK_BYTES / size_of::<u128>()),
    });
    let mut pidfd: RawFd = -1;
    let flags = u64::from((NAMESPACES | MEMORY | libc::CLONE_PIDFD).unsigned_abs());
    let arguments = libc::clone_args {
        flags: flags | birth.cgroup.map_or(0, |_| CLONE_INTO_CGROUP),
        pidfd: (&raw mut pidfd) as u64,
        child_tid: cradle.occupied.as_ptr() as u64,
        parent_tid: 0,
        exit_signal: u64::from(libc::SIGCHLD.unsigned_abs()),
        stack: cradle.stack.as_mut_ptr() as u64,
        stack_size: STACK_BYTES as u64,
        tls: 0,
        set_tid: 0,
        set_tid_size: 0,
        cgroup: birth
            .cgroup
            .map_or(0, |folder| u64::from(folder.as_raw_fd().unsigned_abs())),
    };
    // The child only makes plain system calls, and writes to nothing else but this thread's `errno`.
    // SAFETY: the arguments outlive the call; what the child runs on lives until the kernel says that it has left it.
    let id = unsafe { clone_onto_stack(&arguments, &raw const cradle.child) };
    let Some(id) = i32::try_from(id).ok().and_then(Pid::from_raw) else {
        return Err(io::Error::from_raw_os_error(
            i32::try_from(-id).unwrap_or(libc::EIO),
        ));
    };
    Ok(Child {
        id,
        // SAFETY: the kernel has just made this descriptor for us and nobody else knows it.
        process: unsafe { OwnedFd::from_raw_fd(pidfd) },
        cradle: Cradle(Some(cradle)),
    })
}

/// The system call itself, since the child comes back from it on another stack: its id, or the error as a negative number.
#[cfg(target_arch = "x86_64")]
unsafe fn clone_onto_stack(arguments: &libc::clone_args, child: *const Unborn) -> i64 {
    let result: i64;
    // SAFETY: the child leaves this function at once and never returns to it; for us this is a system call like any other.
    unsafe {
        std::arch::asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, r12",
            "call r13",
            "ud2",
            "2:",
            inlateout("rax") libc::SYS_clone3 => result,
            in("rdi") &raw const *arguments,
            in("rsi") size_of::<libc::clone_args>(),
            in("r12") child,
            in("r13") live as extern "C" fn(&Unborn) -> !,
            lateout("rcx") _,
            lateout("r11") _,
        );
    }
    result
}

/// As above.
#[cfg(target_arch = "aarch64")]
unsafe fn clone_onto_stack(arguments: &libc::clone_args, child: *const Unborn) -> i64 {
    let result: i64;
    // SAFETY: the child leaves this function at once and never returns to it; for us this is a system call like any other.
    unsafe {
        std::arch::asm!(
            "svc #0",
            "cbnz x0, 2f",
            "mov x29, xzr",
            "mov x0, x20",
            "blr x21",
            "brk #1",
            "2:",
            inlateout("x0") &raw const *arguments => result,
            in("x1") size_of::<libc::clone_args>(),
            in("x8") libc::SYS_clone3,
            in("x20") child,
            in("x21") live as extern "C" fn(&Unborn) -> !,
        );
    }
    result
}

/// The child's whole life before it is its program.
extern "C" fn live(child: &Unborn) -> ! {
    let errno = become_program(child).raw_os_error();
    // SAFETY: ends this process, which is the child, at once; nothing of the parent's is run.
    unsafe { libc::_exit(errno) }
}

/// The child's side: no allocation, no lock, only system calls, each error the child's exit code. A word on descriptor 2
/// says which one it was.
fn become_program(child: &Unborn) -> Errno {
    let failed = |what: &'static [u8]| {
        move |errno: Errno| {
            let _ = rustix::io::write(rustix::stdio::stderr(), what);
            errno
        }
    };
    let result = || -> Result<(), Errno> {
        // First of all, or a server that dies now leaves a child that holds a copy of every descriptor of its, the other
        // end of this link too, and so never hears of that death.
        for (given, standard) in [(child.link, 0), (child.null, 1), (child.diagnostics, 2)] {
            replace(given, standard)?;
        }
        keep_only(child.program)
            .map_err(failed(b"close_range was refused; Linux 5.11 or newer is needed"))?;
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        if rustix::io::read(rustix::stdio::stdin(), &mut [0; 1])? == 0 {
            return Err(Errno::PIPE);
        }
        let (user, group) = (Uid::from_raw(child.id), Gid::from_raw(child.id));
        if child.groups == Groups::Replaced {
            set_thread_groups(&[group]).map_err(failed(b"setgroups was refused"))?;
        }
        set_thread_res_gid(group, group, group).map_err(failed(b"setresgid was refused"))?;
        set_thread_res_uid(user, user, user).map_err(failed(b"setresuid was refused"))?;
        // Becoming somebody else changed it for whoever shares this memory, too.
        rustix::process::set_dumpable_behavior(child.dumpable)?;
        keep_capabilities().map_err(failed(b"keeping capabilities was refused"))?;
        // Becoming somebody else undid it.
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
    };
    if let Err(errno) = result() {
        return errno;
    }
    let errno = execute(child.command);
    failed(b"execveat was refused")(errno)
}

/// Lets the descriptor `standard` mean what `given` means.
fn replace(given: RawFd, standard: RawFd) -> Result<(), Errno> {
    // SAFETY: nothing in this process, which is the child, uses the descriptor that is replaced.
    if unsafe { libc::dup2(given, standard) } == -1 {
        return Err(last_errno());
    }
    Ok(())
}

/// Makes this thread's capabilities survive an exec by a user that is not root.
fn keep_capabilities() -> Result<(), Errno> {
    let held = rustix::thread::capabilities(None)?;
    let sets = CapabilitySets {
        inheritable: held.permitted,
        ..held
    };
    rustix::thread::set_capabilities(None, sets)?;
    for bit in 0..u64::BITS {
        let capability = CapabilitySet::from_bits_retain(1 << bit);
        if held.permitted.contains(capability) {
            rustix::thread::configure_capability_in_ambient_set(capability, true)?;
        }
    }
    Ok(())
}

/// Where [`keep_only`] puts what it keeps.
const PROGRAM: RawFd = 3;

/// Closes every descriptor but the three standard ones and `program`, which becomes [`PROGRAM`] and goes at exec.
fn keep_only(program: RawFd) -> Result<(), Errno> {
    replace(program, PROGRAM)?;
    close_range(PROGRAM + 1, 0)?;
    close_range(PROGRAM, libc::CLOSE_RANGE_CLOEXEC)
}

fn close_range(first: RawFd, flags: libc::c_uint) -> Result<(), Errno> {
    // SAFETY: nothing in this process, which is the child, uses these descriptors any more.
    let result = unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, flags) };
    if result == 0 { Ok(()) } else { Err(last_errno()) }
}

/// Becomes [`PROGRAM`], with `command` as its only argument and no environment. Returns only on failure.
fn execute(command: &CStr) -> Errno {
    let arguments = [c"skillbox".as_ptr(), command.as_ptr(), std::ptr::null()];
    let environment = [std::ptr::null::<libc::c_char>()];
    // SAFETY: every pointer leads to a terminated string or list that lives until the call has replaced or refused us.
    unsafe {
        libc::syscall(
            libc::SYS_execveat,
            PROGRAM,
            c"".as_ptr(),
            arguments.as_ptr(),
            environment.as_ptr(),
            libc::AT_EMPTY_PATH,
        )
    };
    last_errno()
}

fn last_errno() -> Errno {
    Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)
}

/// How far a change of mount attributes reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The mount alone.
    One,
    /// The mount and all below it.
    All,
}

/// Adds attributes (`MOUNT_ATTR_…` of libc) to the mount that `mount` stands for. Needs Linux 5.12.
pub fn mount_setattr(mount: BorrowedFd<'_>, attributes: u64, reach: Reach) -> io::Result<()> {
    let change = libc::mount_attr {
        attr_set: attributes,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    let recursive = if reach == Reach::All {
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

/// Gives this process, which must have one thread, namespaces of its own (`CLONE_NEW…` of libc).
pub fn unshare_namespaces(namespaces: libc::c_int) -> io::Result<()> {
    // SAFETY: unshare takes an integer; new namespaces change no memory and no descriptor of ours.
    if unsafe { libc::unshare(namespaces & !(libc::CLONE_FILES | libc::CLONE_FS)) } == 0 {
        Ok(())
    } else {
        Err(last_errno().into())
    }
}

/// Puts this thread, and all that it starts, under a filter for good.
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
