//! Bounds of what programs ask for and of how it is installed.

use std::time::Duration;

use super::{KIB, MIB};

/// Packages that one program may ask for.
pub const REQUIREMENTS_MAX: usize = 200;
/// Versions that lists of constraints may narrow.
pub const CONSTRAINTS_MAX: usize = 1000;
/// Bytes of one of them.
pub const REQUIREMENT_BYTES_MAX: usize = 4096;
/// Files that a `requirements.txt` may lead to, itself included.
pub const REQUIREMENTS_FILES_MAX: usize = 16;
/// A `requirements.txt` or `package.json`.
pub const REQUIREMENTS_BYTES_MAX: u64 = 256 * KIB;
/// A `package-lock.json`.
pub const NODE_LOCK_BYTES_MAX: u64 = 8 * MIB;
/// Connections that a builder may have to package indexes at a time.
pub const EGRESS_CONNECTIONS_MAX: usize = 8;
/// What may go through them while one set of packages is installed, both ways together: wheels are smaller than what is in them.
pub const EGRESS_BYTES_MAX: u64 = PACKAGES_BYTES_MAX;
/// Header fields of a request for one.
pub const EGRESS_HEADERS_MAX: usize = 32;
/// Bytes of such a request.
pub const EGRESS_HEAD_BYTES_MAX: usize = 16 * 1024;
/// Such a request must have come, and its host have been reached, within this time each.
pub const EGRESS_CONNECT_MAX: Duration = Duration::from_secs(15);
/// Nothing may move on one for so long.
pub const EGRESS_IDLE_MAX: Duration = Duration::from_secs(60);
/// Addresses of one host that are tried.
pub const EGRESS_ADDRESSES_MAX: usize = 4;
/// Memory of a sandbox that installs packages, beside its files.
pub const BUILDER_MEMORY_BYTES: u64 = 256 * MIB;
/// Room for the files of such a sandbox: what is installed, and half as much for what that is unpacked from.
#[must_use]
pub const fn builder_files_bytes(set_bytes: u64) -> u64 {
    set_bytes + set_bytes / 2
}
/// Wall clock of an installation.
pub const BUILDER_TIMEOUT: Duration = Duration::from_secs(600);
/// All that one request to install in advance may take; what it has installed by then stays.
pub const PREFETCH_MAX: Duration = Duration::from_secs(30 * 60);
/// The last lines of an installer's words that an error repeats.
pub const INSTALLER_LINES: usize = 6;
/// Characters of each.
pub const INSTALLER_LINE_CHARS: usize = 300;
/// A file of certificate authorities.
pub const CA_BUNDLE_BYTES_MAX: u64 = 4 * MIB;
/// Installed packages that are kept, all together.
pub const PACKAGES_CACHE_BYTES: u64 = 10 * 1024 * MIB;
/// Uses of installed packages closer together than this are remembered as one.
pub const PACKAGES_USED_EVERY: Duration = Duration::from_secs(3600);
/// Skills of which it is remembered what packages they ask for.
pub const WANTED_REMEMBERED_MAX: usize = 1024;
/// Bytes of such a list; a longer one is read again each time.
pub const WANTED_REMEMBERED_BYTES_MAX: usize = 8 * 1024;
/// Images and interpreters that they lack, as far as they are remembered.
pub const PACKAGES_BASES_LACKING_MAX: usize = 256;
/// Files of one set of installed packages, bytecode included.
pub const PACKAGES_FILES_MAX: usize = 60_000;
/// Their bytes, unless the operator says otherwise and where this host has [`PACKAGES_HOST_SHARE`] times as much memory.
pub const PACKAGES_BYTES: u64 = 2 * 1024 * MIB;
/// Their bytes where it has less, or does not tell.
pub const PACKAGES_BYTES_SMALL: u64 = 768 * MIB;
/// The most that can be configured.
pub const PACKAGES_BYTES_MAX: u64 = 8 * 1024 * MIB;
/// The least.
pub const PACKAGES_BYTES_MIN: u64 = 64 * MIB;
/// A set lies in memory while it is installed: it may have this part of the host's.
pub const PACKAGES_HOST_SHARE: u64 = 4;
/// Reading a set back from its installer, or into an engine's keeper, may take this long.
pub const PACKAGES_COLLECT_MAX: Duration = Duration::from_secs(240);
/// Bytes of all their paths together.
pub const PACKAGES_PATHS_BYTES_MAX: usize = 8 * 1024 * 1024;
