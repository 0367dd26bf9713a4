//! Limits of commands that read what a person gives them.

use std::time::Duration;

use super::MIB;

/// Scripts of one language that `skill lint` parses.
pub const LINTED_SCRIPTS_MAX: usize = 64;
/// Size of a script that `skill lint` parses.
pub const LINTED_SCRIPT_BYTES_MAX: u64 = MIB;
/// Time of an interpreter that parses scripts for `skill lint`.
pub const LINTER_TIME_MAX: Duration = Duration::from_secs(10);
/// Messages of an interpreter that `skill lint` reads.
pub const LINTER_OUTPUT_BYTES_MAX: u64 = 64 * 1024;
/// Interval at which `skill dev` looks for changed files.
pub const DEV_WATCH_EVERY: Duration = Duration::from_millis(250);
/// A pipe at standard input that no option reads is passed to the program if it has content within this time.
pub const PIPED_STDIN_BEGINS_WITHIN: Duration = Duration::from_millis(200);
/// Longest time until its end.
pub const PIPED_STDIN_ENDS_WITHIN: Duration = Duration::from_secs(10);
