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
/// What may go through them while one set of packages is installed, both ways together.
pub const EGRESS_BYTES_MAX: u64 = 4 * 1024 * MIB;
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
/// Memory of a sandbox that installs packages, its files included, unless any sandbox may have more.
pub const BUILDER_MEMORY_BYTES: u64 = 1024 * MIB;
/// Of it for files: what is installed and what that is unpacked from.
pub const BUILDER_FILES_BYTES: u64 = 832 * MIB;
/// Wall clock of an installation.
pub const BUILDER_TIMEOUT: Duration = Duration::from_secs(600);
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
/// Files of one set of installed packages, bytecode included.
pub const PACKAGES_FILES_MAX: usize = 60_000;
/// Their bytes.
pub const PACKAGES_BYTES_MAX: u64 = 768 * MIB;
/// Bytes of all their paths together.
pub const PACKAGES_PATHS_BYTES_MAX: usize = 8 * 1024 * 1024;
