//! Keeps what this process holds in memory, the master key and secrets above all, out of core dumps.

use std::io;

use rustix::process::{self, DumpableBehavior, Resource, Rlimit};

/// Lets no core be written of this process and of what it starts, for good. Root's is not dumpable either: the kernel then hands nothing
/// to a program that collects cores, and nobody may trace it.
///
/// An ordinary user's stays dumpable, or its `/proc` would be root's, and it could not map the users of native sandboxes; programs
/// that collect cores look at the limit.
pub(super) fn keep_out_of_cores() -> io::Result<()> {
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    process::setrlimit(Resource::Core, none)?;
    if process::geteuid().is_root() {
        process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S-31.
    #[test]
    fn no_core_of_this_process_is_written() {
        keep_out_of_cores().unwrap();
        let limit = process::getrlimit(Resource::Core);
        assert_eq!((limit.current, limit.maximum), (Some(0), Some(0)));
        let dumpable = process::dumpable_behavior().unwrap();
        assert_eq!(
            dumpable == DumpableBehavior::NotDumpable,
            process::geteuid().is_root()
        );
    }
}
