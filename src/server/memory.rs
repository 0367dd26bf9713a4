//! Keeps the memory of this process, with the master key and secrets, out of core dumps.

use std::io;

use rustix::process::{self, DumpableBehavior, Resource, Rlimit};

/// Disables core dumps of this process and its children permanently. A process of root is also made undumpable, so
/// that the kernel gives nothing to crash handlers and no process may trace it.
///
/// A process of an ordinary user stays dumpable: otherwise its `/proc` would belong to root, and it could not map the
/// users of native sandboxes. Crash handlers respect the limit.
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
    fn disables_core_dumps() {
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
