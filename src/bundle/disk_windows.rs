//! Files of bundles on Windows, which has no permission bits: the ACL of the parent folder protects them.

use std::fs::{DirBuilder, File, FileTimes, Metadata, OpenOptions};
use std::io;
use std::os::windows::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use crate::bundle::unpack::Use;

/// Opens the end of a path itself, even a link.
const FILE_FLAG_OPEN_REPARSE_POINT: u32 = 0x0020_0000;

/// Marks executables like Samba and Cygwin, since Windows has no such bit and the digest depends on it. Scripts
/// written on Windows lack it, and do not need it if an interpreter runs them.
const FILE_ATTRIBUTE_SYSTEM: u32 = 0x4;

/// Opens for reading; fails on a link.
pub(super) fn open(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(FILE_FLAG_OPEN_REPARSE_POINT)
        .open(path)?;
    if file.metadata()?.is_symlink() {
        return Err(io::Error::other("it is a link"));
    }
    Ok(file)
}

/// Whether the file was executable when it was packed.
pub(super) fn is_executable(metadata: &Metadata) -> bool {
    metadata.file_attributes() & FILE_ATTRIBUTE_SYSTEM != 0
}

/// Creates a file for writing: never through a link and never over an existing file.
pub(super) fn create(to: &Path, for_what: Use) -> io::Result<File> {
    let mut options = OpenOptions::new();
    if for_what == Use::Execute {
        options.attributes(FILE_ATTRIBUTE_SYSTEM);
    }
    options.write(true).create_new(true).open(to)
}

/// Sets the time of a written file. Making it read-only would only hinder its removal.
pub(super) fn settle_file(file: &File, _use: Use, times: FileTimes) -> io::Result<()> {
    file.set_times(times)
}

pub(super) fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().create(path)
}

/// Not needed: sandboxes receive a tar of this folder, in which every folder has the fixed time.
pub(super) fn settle_folder(_path: &Path, _times: FileTimes) -> io::Result<()> {
    Ok(())
}

/// Reads at an offset.
pub(super) trait ReadAt {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
}

impl ReadAt for File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.seek_read(buffer, offset)
    }

    fn read_exact_at(&self, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
        while !buffer.is_empty() {
            match self.read_at(buffer, offset) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => {
                    buffer = &mut buffer[read..];
                    offset += read as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
