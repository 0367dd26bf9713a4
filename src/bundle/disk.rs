//! What a bundle's files are on a Unix disk: read without following links, made with their permissions.

use std::fs::{DirBuilder, File, FileTimes, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use crate::bundle::unpack::Use;

pub(super) use std::os::unix::fs::FileExt as ReadAt;

/// Opens for reading; fails on a link, and does not wait for anybody at a pipe.
pub(super) fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)
}

/// Whether anybody may execute the file.
pub(super) fn is_executable(metadata: &Metadata) -> bool {
    metadata.permissions().mode() & 0o111 != 0
}

/// Makes a file for writing: never through a link and never over anything that is already there.
pub(super) fn create(to: &Path, _use: Use) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(to)
}

/// Gives the written file its permissions and its time. Its owner may write it, since copies take that along; where it is
/// seen it is mounted read-only.
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

/// Gives a folder that is full its permissions and its time.
pub(super) fn settle_folder(path: &Path, times: FileTimes) -> io::Result<()> {
    let folder = File::open(path)?;
    folder.set_permissions(Permissions::from_mode(0o755))?;
    folder.set_times(times)
}
