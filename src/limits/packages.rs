//! Limits of package lists and installations.

use std::time::Duration;

use super::{KIB, MIB};

/// Packages per program.
pub const REQUIREMENTS_MAX: usize = 200;
/// Constraints per program.
pub const CONSTRAINTS_MAX: usize = 1000;
/// Bytes of one requirement.
pub const REQUIREMENT_BYTES_MAX: usize = 4096;
/// Files that a `requirements.txt` may include, itself counted.
pub const REQUIREMENTS_FILES_MAX: usize = 16;
/// Scripts of a skill whose imports are compared with its package lists, and the size of each.
pub const SCRIPTS_LINTED_MAX: usize = 500;
pub const SCRIPT_LINTED_BYTES_MAX: u64 = 512 * KIB;
/// A `requirements.txt` or `package.json`.
pub const REQUIREMENTS_BYTES_MAX: u64 = 256 * KIB;
/// A `package-lock.json`.
pub const NODE_LOCK_BYTES_MAX: u64 = 8 * MIB;
/// Concurrent connections of an installer to package indexes.
pub const EGRESS_CONNECTIONS_MAX: usize = 8;
/// Bytes through these connections during one installation, in both directions. Wheels are smaller than their
/// content.
pub const EGRESS_BYTES_MAX: u64 = PACKAGES_BYTES_MAX;
/// Header fields of a proxy request.
pub const EGRESS_HEADERS_MAX: usize = 32;
/// Bytes of such a request.
pub const EGRESS_HEAD_BYTES_MAX: usize = 16 * 1024;
/// Time to receive such a request, and time to connect to its host.
pub const EGRESS_CONNECT_MAX: Duration = Duration::from_secs(15);
/// Idle time of a connection.
pub const EGRESS_IDLE_MAX: Duration = Duration::from_secs(60);
/// Addresses tried per host.
pub const EGRESS_ADDRESSES_MAX: usize = 4;
/// Memory of an installer, in addition to its files.
pub const BUILDER_MEMORY_BYTES: u64 = 256 * MIB;
/// Space for the files of an installer: the packages, and half as much for archives.
#[must_use]
pub const fn builder_files_bytes(set_bytes: u64) -> u64 {
    set_bytes + set_bytes / 2
}
/// Time limit of an installation.
pub const BUILDER_TIMEOUT: Duration = Duration::from_secs(600);
/// Time limit of a prefetch; packages installed by then stay.
pub const PREFETCH_MAX: Duration = Duration::from_secs(30 * 60);
/// Last lines of an installer that an error message repeats.
pub const INSTALLER_LINES: usize = 6;
/// Characters of each line.
pub const INSTALLER_LINE_CHARS: usize = 300;
/// File of certificate authorities.
pub const CA_BUNDLE_BYTES_MAX: u64 = 4 * MIB;
/// Default size of all installed packages.
pub const PACKAGES_CACHE_BYTES: u64 = 10 * 1024 * MIB;
/// Uses of a package set within this time are recorded once.
pub const PACKAGES_USED_EVERY: Duration = Duration::from_secs(3600);
/// Skills whose package lists are kept in memory.
pub const PACKAGE_LISTS_CACHED_MAX: usize = 1024;
/// Maximum size of such a list.
pub const PACKAGE_LIST_CACHED_BYTES_MAX: usize = 8 * 1024;
/// Images that are known to lack an interpreter.
pub const MISSING_INTERPRETERS_MAX: usize = 256;
/// Files of a package set, including bytecode.
pub const PACKAGES_FILES_MAX: usize = 60_000;
/// Default size of a package set on a host with [`PACKAGES_HOST_SHARE`] times as much memory.
pub const PACKAGES_BYTES: u64 = 2 * 1024 * MIB;
/// Default size of a package set on other hosts.
pub const PACKAGES_BYTES_SMALL: u64 = 768 * MIB;
pub const PACKAGES_BYTES_MAX: u64 = 8 * 1024 * MIB;
pub const PACKAGES_BYTES_MIN: u64 = 64 * MIB;
/// A package set is in memory while it is installed: at most this share of the host's.
pub const PACKAGES_HOST_SHARE: u64 = 4;
/// Time to read a set from its installer or copy it into a volume container.
pub const PACKAGES_COLLECT_MAX: Duration = Duration::from_secs(240);
/// All paths of a package set.
pub const PACKAGES_PATHS_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Interval at which an installation reports what it has downloaded.
pub const INSTALL_PROGRESS_EVERY: Duration = Duration::from_secs(1);
