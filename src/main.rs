//! The binary: PID 1 of a sandbox if it is called so, else the command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    // Before any thread, runtime or argument parser exists.
    if std::env::args_os()
        .nth(1)
        .is_some_and(|argument| argument == skillbox::guest::COMMAND)
    {
        return skillbox::guest::main();
    }
    skillbox::cli::main()
}
