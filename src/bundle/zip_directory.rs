//! Strict reader of a zip's directory: checks everything that can be known without inflating.
//!
//! Our own, because a tolerant reader would find other entries in the same bytes, so that the checked content would
//! not be the unpacked content.

use std::borrow::Cow;
use std::fs::File;
use std::io;

use crate::bundle::{
    Error,
    disk::ReadAt as _,
    names::{Named, check_path, clash},
    zip_layout,
};
use crate::error::quoted;
use crate::limits;

/// A checked entry. Its data is inside the archive and overlaps no other entry.
#[derive(Debug)]
pub(super) struct Member {
    /// Checked path, without a trailing `/`.
    pub(super) path: String,
    pub(super) kind: Kind,
    pub(super) executable: bool,
    pub(super) deflated: bool,
    pub(super) crc32: u32,
    /// Compressed size.
    pub(super) packed: u64,
    /// Declared size.
    pub(super) size: u64,
    /// Flags of its record in the directory.
    pub(super) flags: u16,
    /// Whether its local header has a zip64 field.
    pub(super) has_zip64: bool,
    /// Position of its local header.
    pub(super) header: u64,
    /// Position of its data.
    pub(super) data: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Folder,
}

const END_BYTES: u64 = 22;
const END_SIGNATURE: &[u8] = b"PK\x05\x06";
const SATURATED: u32 = u32::MAX;

/// Reads and checks the directory. Entries are in the order of their data.
pub(super) fn read(archive: &File) -> Result<Vec<Member>, Error> {
    let length = archive.metadata()?.len();
    if length > limits::ARCHIVE_BYTES_MAX {
        let max = limits::ARCHIVE_BYTES_MAX / limits::MIB;
        return Err(Error::TooLarge(format!(
            "the archive is larger than {max} MiB; remove files that the skill does not need"
        )));
    }
    let end = End::find(archive, length)?;
    let records = bytes_at(archive, end.start, end.size)?;
    let mut cursor = FieldReader(&records);
    let mut members = Vec::with_capacity(end.entries);
    let mut total = 0;
    for _ in 0..end.entries {
        let (name, member) = central(&mut cursor)?;
        total += member.size;
        if total > limits::UNPACKED_BYTES_MAX {
            let max = limits::UNPACKED_BYTES_MAX / limits::MIB;
            return Err(Error::TooLarge(format!(
                "the archive unpacks to more than {max} MiB; remove files that the skill does not need"
            )));
        }
        members.push((name, member));
    }
    if !cursor.0.is_empty() {
        return Err(refused("lists more entries than it counts"));
    }
    let members = members
        .into_iter()
        .map(|(name, member)| zip_layout::locate(archive, name, member))
        .collect::<Result<Vec<_>, _>>()?;
    sorted(archive, members, end.start)
}

/// The end record: position of the directory and number of entries.
struct End {
    start: u64,
    size: u64,
    entries: usize,
}

impl End {
    /// Finds the only end record whose comment ends with the file. Other readers take the last signature, whatever its
    /// comment's length.
    fn find(archive: &File, length: u64) -> Result<Self, Error> {
        let tail_start = length.saturating_sub(END_BYTES + u64::from(u16::MAX));
        let tail = bytes_at(archive, tail_start, length - tail_start)?;
        let signatures: Vec<usize> = (0..tail.len())
            .filter(|at| tail[*at..].starts_with(END_SIGNATURE))
            .collect();
        let mut ends = signatures.iter().copied().filter(|at| is_end(&tail[*at..]));
        let at = ends
            .next()
            .ok_or_else(|| refused("is not a zip, is truncated, or has bytes after its end"))?;
        if ends.next().is_some() || signatures.last() != Some(&at) {
            return Err(refused("has a comment that looks like a second end"));
        }
        Self::parse(&mut FieldReader(&tail[at + 4..]), tail_start + at as u64)
    }

    fn parse(record: &mut FieldReader<'_>, at: u64) -> Result<Self, Error> {
        let disks = [record.u16()?, record.u16()?];
        let (here, entries) = (record.u16()?, record.u16()?);
        let (size, start) = (record.u32()?, record.u32()?);
        if usize::from(entries) > limits::ARCHIVE_ENTRIES_MAX {
            let max = limits::ARCHIVE_ENTRIES_MAX;
            return Err(Error::TooLarge(format!(
                "the archive has more than {max} entries; remove files that the skill does not need"
            )));
        }
        if size == SATURATED || start == SATURATED {
            return Err(refused(
                "uses zip64, which is not needed at this size; pack it again",
            ));
        }
        if disks != [0, 0] || here != entries {
            return Err(refused("is one part of several; pack it as one file"));
        }
        if entries == 0 {
            return Err(refused("is empty"));
        }
        let (start, size) = (u64::from(start), u64::from(size));
        if size > limits::ARCHIVE_DIRECTORY_BYTES_MAX {
            return Err(Error::TooLarge(
                "the archive's directory is larger than 8 MiB; pack it again without extra fields".to_owned(),
            ));
        }
        if start + size > at {
            return Err(refused("has a directory outside of the file, or is truncated"));
        }
        if start + size < at {
            return Err(refused(
                "has bytes between its directory and its end, such as a zip64 record; pack it again",
            ));
        }
        Ok(Self {
            start,
            size,
            entries: entries.into(),
        })
    }
}

fn is_end(tail: &[u8]) -> bool {
    tail.starts_with(END_SIGNATURE)
        && tail.get(20..22).is_some_and(|comment| {
            tail.len() == 22 + usize::from(u16::from_le_bytes([comment[0], comment[1]]))
        })
}

/// A record of the central directory: the raw name, and the entry without positions.
fn central<'a>(cursor: &mut FieldReader<'a>) -> Result<(&'a [u8], Member), Error> {
    if cursor.bytes(4)? != b"PK\x01\x02" {
        return Err(refused("has a damaged directory"));
    }
    let made_by = cursor.u16()? >> 8;
    let _needed = cursor.u16()?;
    let (flags, method) = (cursor.u16()?, cursor.u16()?);
    let _time = cursor.bytes(4)?;
    let (crc32, packed, size) = (cursor.u32()?, cursor.u32()?, cursor.u32()?);
    let lengths = [cursor.u16()?, cursor.u16()?, cursor.u16()?];
    let disk = cursor.u16()?;
    let _internal = cursor.u16()?;
    let (attributes, header) = (cursor.u32()?, cursor.u32()?);
    let raw = cursor.bytes(lengths[0].into())?;
    let extra = cursor.bytes(lengths[1].into())?;
    let _comment = cursor.bytes(lengths[2].into())?;

    let name = std::str::from_utf8(raw).map_err(|_| {
        Error::entry(
            &String::from_utf8_lossy(raw),
            "has a name that is not UTF-8; rename it",
        )
    })?;
    let name = &*separated(name, made_by);
    let refuse = |rule: &str| Err(Error::entry(name, rule));
    zip_layout::check_extra(extra, raw).map_err(|rule| Error::entry(name, rule))?;
    if flags & 0x2041 != 0 {
        return refuse("is encrypted; pack it without a password");
    }
    if !matches!(method, 0 | 8) || flags & 0x20 != 0 {
        return refuse(&format!(
            "is compressed by method {method}{}; pack it with deflate",
            method_name(method)
        ));
    }
    if [packed, size, header].contains(&SATURATED) {
        return refuse("uses zip64, which is not needed at this size; pack it again");
    }
    if disk != 0 {
        return refuse("is in another part of a split archive; pack it as one file");
    }
    let (path, kind) = name
        .strip_suffix('/')
        .map_or((name, Kind::File), |path| (path, Kind::Folder));
    check_path(path).map_err(|rule| Error::entry(name, rule))?;
    let executable = mode(attributes >> 16, kind).map_err(|rule| Error::entry(name, rule))?;
    if kind == Kind::Folder && size != 0 {
        return refuse("is a folder with content; pack it again");
    }
    if method == 0 && packed != size {
        return refuse("is stored with two different sizes; pack it again");
    }
    let member = Member {
        path: path.to_owned(),
        kind,
        executable,
        deflated: method == 8,
        crc32,
        packed: packed.into(),
        size: size.into(),
        flags,
        has_zip64: false,
        header: header.into(),
        data: 0,
    };
    Ok((raw, member))
}

/// Systems whose archivers write `\` between folders: FAT, NTFS and VFAT, which allow no `\` in names.
const WITH_BACKSLASHES: [u16; 3] = [0, 10, 14];

/// The name with `/` as separator.
fn separated(name: &str, made_by: u16) -> Cow<'_, str> {
    if WITH_BACKSLASHES.contains(&made_by) && name.contains('\\') {
        Cow::Owned(name.replace('\\', "/"))
    } else {
        Cow::Borrowed(name)
    }
}

/// Whether the Unix mode is executable; 0 if the archive has no modes. Other permission bits are ignored.
fn mode(mode: u32, kind: Kind) -> Result<bool, &'static str> {
    match (mode & 0o170_000, kind) {
        (0 | 0o100_000, Kind::File) => Ok(mode & 0o111 != 0),
        (0 | 0o040_000, Kind::Folder) => Ok(false),
        (0o120_000, _) => Err("is a link; replace it by the file"),
        (0o010_000 | 0o020_000 | 0o060_000 | 0o140_000, _) => Err("is a device, pipe or socket; remove it"),
        _ => Err("is neither a regular file nor a folder; remove it"),
    }
}

fn method_name(method: u16) -> &'static str {
    match method {
        9 => " (deflate64)",
        12 => " (bzip2)",
        14 => " (lzma)",
        93 => " (zstd)",
        95 => " (xz)",
        99 => " (AES encryption)",
        _ => "",
    }
}

/// Sorts entries by position. Rejects bytes that belong to none of them, and names that collide.
fn sorted(archive: &File, mut members: Vec<Member>, directory_start: u64) -> Result<Vec<Member>, Error> {
    members.sort_unstable_by_key(|member| member.header);
    zip_layout::check_coverage(archive, &members, directory_start)?;
    let names = members.iter().map(|member| Named {
        path: &member.path,
        folder: member.kind == Kind::Folder,
    });
    if let Some((one, other)) = clash(names) {
        let rule = format!(
            "and entry {} are one name on some file systems; rename one",
            quoted(other)
        );
        return Err(Error::entry(one, rule));
    }
    Ok(members)
}

pub(super) fn refused(rule: &str) -> Error {
    Error::Refused(format!("the archive {rule}"))
}

/// Reads exactly `length` bytes. The caller limits `length`.
pub(super) fn bytes_at(archive: &File, offset: u64, length: u64) -> Result<Vec<u8>, Error> {
    let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
    archive
        .read_exact_at(&mut bytes, offset)
        .map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => refused("is truncated"),
            _ => error.into(),
        })?;
    Ok(bytes)
}

/// Reads little-endian numbers.
pub(super) struct FieldReader<'a>(pub(super) &'a [u8]);

impl<'a> FieldReader<'a> {
    pub(super) fn bytes(&mut self, length: usize) -> Result<&'a [u8], Error> {
        let (taken, rest) = self
            .0
            .split_at_checked(length)
            .ok_or_else(|| refused("has a damaged directory"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let (taken, rest) = self
            .0
            .split_first_chunk()
            .ok_or_else(|| refused("has a damaged directory"))?;
        self.0 = rest;
        Ok(*taken)
    }

    pub(super) fn u16(&mut self) -> Result<u16, Error> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Error> {
        self.array().map(u32::from_le_bytes)
    }
}
