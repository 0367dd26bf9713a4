//! The binary: PID 1 of a sandbox if started as such, otherwise the command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    // Before threads, the runtime and argument parsing.
    let first = std::env::args_os().nth(1);
    if first
        .as_ref()
        .is_some_and(|argument| argument == skillbox::guest::COMMAND)
    {
        return skillbox::guest::main();
    }
    #[cfg(target_os = "linux")]
    if first.is_some_and(|argument| argument == skillbox::sandbox::linux::COMMAND) {
        return skillbox::guest::main_inside(skillbox::sandbox::linux::enter);
    }
    skillbox::cli::main()
}
