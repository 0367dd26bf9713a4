//! Files of bundles on Unix: read without following links, created with their permissions.

use std::fs::{DirBuilder, File, FileTimes, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use crate::bundle::unpack::Use;

pub(super) use std::os::unix::fs::FileExt as ReadAt;

/// Opens for reading. Fails on a link and does not block on a pipe.
pub(super) fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)
}

pub(super) fn is_executable(metadata: &Metadata) -> bool {
    metadata.permissions().mode() & 0o111 != 0
}

/// Creates a file for writing: never through a link and never over an existing file.
pub(super) fn create(to: &Path, _use: Use) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(to)
}

/// Sets permissions and time of a written file. Its owner may write it, since copies inherit that; mounts are
/// read-only.
pub(super) fn settle_file(file: &File, for_what: Use, times: FileTimes) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(match for_what {
        Use::Execute => 0o755,
        Use::Read => 0o644,
    }))?;
    file.set_times(times)
}

pub(super) fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o755).create(path)
}

/// Sets permissions and time of a complete folder.
pub(super) fn settle_folder(path: &Path, times: FileTimes) -> io::Result<()> {
    let folder = File::open(path)?;
    folder.set_permissions(Permissions::from_mode(0o755))?;
    folder.set_times(times)
}
