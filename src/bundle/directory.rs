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
    /// Position of its local header.
    header: u64,
    /// Position of its data.
    pub(super) data: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Folder,
}

const END_BYTES: u64 = 22;
const LOCAL_BYTES: usize = 30;
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
        .map(|(name, member)| locate(archive, name, member))
        .collect::<Result<Vec<_>, _>>()?;
    apart(members, end.start)
}

/// The end record: position of the directory and number of entries.
struct End {
    start: u64,
    size: u64,
    entries: usize,
}

impl End {
    /// Finds the only end record whose comment ends with the file.
    fn find(archive: &File, length: u64) -> Result<Self, Error> {
        let tail_start = length.saturating_sub(END_BYTES + u64::from(u16::MAX));
        let tail = bytes_at(archive, tail_start, length - tail_start)?;
        let ends: Vec<usize> = (0..tail.len()).filter(|at| is_end(&tail[*at..])).collect();
        let [at] = ends[..] else {
            let rule = if ends.is_empty() {
                "is not a zip, or is truncated"
            } else {
                "has a comment that looks like a second end"
            };
            return Err(refused(rule));
        };
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
        Ok(Self {
            start,
            size,
            entries: entries.into(),
        })
    }
}

fn is_end(tail: &[u8]) -> bool {
    tail.starts_with(b"PK\x05\x06")
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
    let _extra_and_comment = cursor.bytes(usize::from(lengths[1]) + usize::from(lengths[2]))?;

    let name = std::str::from_utf8(raw).map_err(|_| {
        Error::entry(
            &String::from_utf8_lossy(raw),
            "has a name that is not UTF-8; rename it",
        )
    })?;
    let name = &*separated(name, made_by);
    let refuse = |rule: &str| Err(Error::entry(name, rule));
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

/// Finds the data of an entry. Rejects a local header that differs from the directory, because other readers use it.
fn locate(archive: &File, name: &[u8], mut member: Member) -> Result<Member, Error> {
    let fixed = bytes_at(archive, member.header, LOCAL_BYTES as u64)?;
    let mut cursor = FieldReader(&fixed);
    let signature = cursor.bytes(4)?;
    let _version = cursor.u16()?;
    let (flags, method) = (cursor.u16()?, cursor.u16()?);
    let _time = cursor.bytes(4)?;
    let told = [cursor.u32()?, cursor.u32()?, cursor.u32()?].map(u64::from);
    let (name_length, extra_length) = (cursor.u16()?, cursor.u16()?);
    let local_name = bytes_at(archive, member.header + fixed.len() as u64, name_length.into())?;

    let known = [member.crc32.into(), member.packed, member.size];
    // Streaming writers write zeros here; sizes may also be in a zip64 field, which is not read.
    let later = flags & 8 != 0;
    let agrees = |(told, known): (u64, u64)| told == known || later || told == u64::from(SATURATED);
    let same = signature == b"PK\x03\x04"
        && local_name == name
        && (method == 8) == member.deflated
        && flags & 0x2041 == 0
        && told.into_iter().zip(known).all(agrees);
    if !same {
        return Err(Error::entry(
            &member.path,
            "has contradictory headers; pack the archive again",
        ));
    }
    member.data = member.header + fixed.len() as u64 + u64::from(name_length) + u64::from(extra_length);
    Ok(member)
}

/// Sorts entries by position and rejects overlaps with each other or with the directory.
fn apart(mut members: Vec<Member>, directory_start: u64) -> Result<Vec<Member>, Error> {
    members.sort_unstable_by_key(|member| member.header);
    let ends = members
        .iter()
        .skip(1)
        .map(|next| next.header)
        .chain([directory_start]);
    for (member, end) in members.iter().zip(ends) {
        if member.data + member.packed > end {
            return Err(Error::entry(
                &member.path,
                "shares its data with another entry, or is truncated",
            ));
        }
    }
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

fn refused(rule: &str) -> Error {
    Error::Refused(format!("the archive {rule}"))
}

/// Reads exactly `length` bytes. The caller limits `length`.
fn bytes_at(archive: &File, offset: u64, length: u64) -> Result<Vec<u8>, Error> {
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
struct FieldReader<'a>(&'a [u8]);

impl<'a> FieldReader<'a> {
    fn bytes(&mut self, length: usize) -> Result<&'a [u8], Error> {
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

    fn u16(&mut self) -> Result<u16, Error> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, Error> {
        self.array().map(u32::from_le_bytes)
    }
}
