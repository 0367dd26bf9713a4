//! PID 1 of sandboxes and its protocol. Independent of the server.
//!
//! The host uses only [`wire`].

#[cfg(target_os = "linux")]
mod cgroup;
#[cfg(target_os = "linux")]
mod collect;
#[cfg(target_os = "linux")]
mod egress;
#[cfg(target_os = "linux")]
mod init;
#[cfg(target_os = "linux")]
mod layout;
mod link;
#[cfg(target_os = "linux")]
mod pre_started;
#[cfg(target_os = "linux")]
mod program;
#[cfg(target_os = "linux")]
mod runtime;
pub mod wire;
mod workspace;

#[cfg(target_os = "linux")]
pub use init::Guest;

/// Argument that turns the binary into PID 1 of a sandbox.
pub const COMMAND: &str = "sandbox-init";

/// Runs as PID 1 of a sandbox, then exits.
#[cfg(target_os = "linux")]
#[must_use]
pub fn main() -> std::process::ExitCode {
    init::main()
}

/// Runs as PID 1 of a sandbox that `enter` creates in a child of this process. `enter` calls its argument in the
/// blank process, once files can be written.
#[cfg(target_os = "linux")]
#[must_use]
pub fn main_inside(
    enter: impl FnOnce(fn() -> std::io::Result<Guest>) -> Result<Guest, String>,
) -> std::process::ExitCode {
    init::main_inside(enter)
}

/// Unsupported on this operating system.
#[cfg(not(target_os = "linux"))]
#[must_use]
pub fn main() -> std::process::ExitCode {
    eprintln!("{COMMAND} runs only inside a Linux sandbox");
    std::process::ExitCode::FAILURE
}
