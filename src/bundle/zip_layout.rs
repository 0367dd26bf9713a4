//! The bytes between the entries of a zip: each belongs to a local header, its data, its descriptor, the directory or
//! the end record.
//!
//! Other readers start from other places: from the first header, from the end, from what a descriptor says. Bytes that
//! belong to nothing could hold a second archive for them.

use std::fs::File;

use crate::bundle::Error;
use crate::bundle::zip_directory::{FieldReader, Member, bytes_at, refused};

const LOCAL_BYTES: usize = 30;
const SATURATED: u32 = u32::MAX;
/// The sizes follow the data, in a descriptor.
const HAS_DESCRIPTOR: u16 = 0x08;
/// Flags that both headers of an entry must share: the one above, and names in UTF-8.
const SAME_FLAGS: u16 = HAS_DESCRIPTOR | 0x0800;
const ENCRYPTED: u16 = 0x2041;
const ZIP64: u16 = 0x0001;
/// Info-ZIP's second name of an entry, in UTF-8.
const UNICODE_PATH: u16 = 0x7075;
const CONTRADICTORY: &str = "has contradictory headers; pack the archive again";

/// Finds the data of an entry. Rejects a local header that differs from the directory, because other readers use it.
pub(super) fn locate(archive: &File, name: &[u8], mut member: Member) -> Result<Member, Error> {
    let fixed = bytes_at(archive, member.header, LOCAL_BYTES as u64)?;
    let mut header = FieldReader(&fixed);
    let signature = header.bytes(4)?;
    let _version = header.u16()?;
    let (flags, method) = (header.u16()?, header.u16()?);
    let _time = header.bytes(4)?;
    let (crc32, packed, size) = (header.u32()?, header.u32()?, header.u32()?);
    let (name_length, extra_length) = (u64::from(header.u16()?), u64::from(header.u16()?));
    let name_at = member.header + LOCAL_BYTES as u64;
    let local_name = bytes_at(archive, name_at, name_length)?;
    let extra = bytes_at(archive, name_at + name_length, extra_length)?;

    let zip64 = check_extra(&extra, name).map_err(|rule| Error::entry(&member.path, rule))?;
    // Streaming writers write zeros before the data, and the values behind it.
    let later = flags & HAS_DESCRIPTOR != 0;
    let is_same = |told: u64, known: u64| told == known || (later && told == 0);
    let is_size = |told: u32, in_zip64: Option<u64>, known: u64| {
        in_zip64.is_none_or(|told| is_same(told, known))
            && ((told == SATURATED && in_zip64.is_some()) || is_same(told.into(), known))
    };
    let same = signature == b"PK\x03\x04"
        && local_name == name
        && (method == 8) == member.deflated
        && flags & ENCRYPTED == 0
        && (flags ^ member.flags) & SAME_FLAGS == 0
        && is_same(crc32.into(), member.crc32.into())
        && is_size(size, zip64.map(|sizes| sizes[0]), member.size)
        && is_size(packed, zip64.map(|sizes| sizes[1]), member.packed);
    if !same {
        return Err(Error::entry(&member.path, CONTRADICTORY));
    }
    member.data = name_at + name_length + extra_length;
    member.has_zip64 = zip64.is_some();
    Ok(member)
}

/// Checks the extra fields of a header. Returns the size and the packed size of a zip64 field.
pub(super) fn check_extra(extra: &[u8], name: &[u8]) -> Result<Option<[u64; 2]>, &'static str> {
    const DAMAGED: &str = "has damaged extra fields; pack the archive again";
    let mut zip64 = None;
    let mut fields = extra;
    // Java ends with an incomplete field of zeros.
    while fields.iter().any(|byte| *byte != 0) {
        let (head, rest) = fields.split_first_chunk::<4>().ok_or(DAMAGED)?;
        let [kind, length] = [[head[0], head[1]], [head[2], head[3]]].map(u16::from_le_bytes);
        let (value, rest) = rest.split_at_checked(length.into()).ok_or(DAMAGED)?;
        fields = rest;
        match kind {
            ZIP64 => {
                let number = |at: usize| value.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes);
                let sizes = number(0).zip(number(8)).map(<[u64; 2]>::from);
                if zip64.replace(sizes.ok_or(DAMAGED)?).is_some() {
                    return Err(DAMAGED);
                }
            }
            // Version, checksum of the header's name, name.
            UNICODE_PATH if value.get(5..) != Some(name) => {
                return Err("has two different names; pack the archive again");
            }
            _ => {}
        }
    }
    Ok(zip64)
}

/// Checks that entries, in the order of their headers, fill the file up to the directory.
pub(super) fn check_coverage(archive: &File, members: &[Member], directory_start: u64) -> Result<(), Error> {
    if members.first().is_some_and(|first| first.header != 0) {
        return Err(refused(
            "has bytes before its first entry, as a self-extracting program has; pack it again as a plain zip",
        ));
    }
    let ends = members
        .iter()
        .skip(1)
        .map(|next| next.header)
        .chain([directory_start]);
    for (member, end) in members.iter().zip(ends) {
        let gap = end.checked_sub(member.data + member.packed).ok_or_else(|| {
            Error::entry(
                &member.path,
                "shares its data with another entry, or is truncated",
            )
        })?;
        let is_covered = match member.flags & HAS_DESCRIPTOR {
            0 => gap == 0,
            _ => gap <= 24 && is_descriptor(&bytes_at(archive, end - gap, gap)?, member),
        };
        if !is_covered {
            return Err(Error::entry(
                &member.path,
                "is followed by bytes that belong to no entry; pack the archive again",
            ));
        }
    }
    Ok(())
}

/// Whether these bytes are the descriptor of this entry, with or without signature. Its sizes have 8 bytes only after a
/// local header with a zip64 field.
fn is_descriptor(bytes: &[u8], member: &Member) -> bool {
    let values = bytes.strip_prefix(b"PK\x07\x08").unwrap_or(bytes);
    // A checksum may look like the signature.
    [values, bytes].into_iter().any(|values| {
        let short = [member.packed, member.size].map(|size| u32::try_from(size).unwrap_or(SATURATED));
        let short = [member.crc32, short[0], short[1]].map(u32::to_le_bytes).concat();
        let long = [member.packed, member.size].map(u64::to_le_bytes).concat();
        let long = [&member.crc32.to_le_bytes()[..], &long].concat();
        values == short || (member.has_zip64 && values == long)
    })
}
