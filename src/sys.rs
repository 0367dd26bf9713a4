//! One function per system call that no safe crate offers; the only place with `unsafe`.

#![expect(
    unsafe_code,
    reason = "this is the one place; each block says why it is sound"
)]

use std::io;
use std::time::Duration;

/// Kills every process that this one may signal, except itself. As PID 1 of a PID namespace: everything in it.
#[cfg(target_os = "linux")]
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
#[cfg(target_os = "linux")]
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
#[cfg(target_os = "linux")]
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
