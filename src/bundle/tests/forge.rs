//! Makes zips for tests, honest or not: every field can lie.

use std::fs::File;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::DeflateEncoder;

/// One entry, as its local header, its data and its directory record will say.
#[derive(Clone)]
pub(super) struct Piece {
    pub(super) name: Vec<u8>,
    /// The name in the local header, where it differs.
    pub(super) local_name: Option<Vec<u8>>,
    pub(super) packed: Vec<u8>,
    pub(super) flags: u16,
    /// Flags of the local header, where they differ.
    pub(super) local_flags: Option<u16>,
    /// Checksum, packed size and size of the local header, where they differ.
    pub(super) local_sizes: Option<[u32; 3]>,
    /// Extra fields of the local header, where they differ.
    pub(super) local_extra: Option<Vec<u8>>,
    /// Bytes before the local header and after the data.
    pub(super) around: [Vec<u8>; 2],
    pub(super) method: u16,
    pub(super) crc32: u32,
    /// What both headers claim.
    pub(super) packed_size: u32,
    pub(super) size: u32,
    pub(super) disk: u16,
    /// Unix mode.
    pub(super) mode: u32,
    pub(super) extra: Vec<u8>,
    /// The system and version that claims to have made it.
    pub(super) made_by: u16,
    /// Points the directory at another place, and writes nothing there.
    pub(super) at: Option<u32>,
}

/// An honest stored file.
pub(super) fn stored(name: &str, content: &[u8]) -> Piece {
    let length = u32::try_from(content.len()).unwrap();
    let mut crc = flate2::Crc::new();
    crc.update(content);
    Piece {
        name: name.as_bytes().to_vec(),
        local_name: None,
        packed: content.to_vec(),
        flags: 0,
        local_flags: None,
        local_sizes: None,
        local_extra: None,
        around: [Vec::new(), Vec::new()],
        method: 0,
        crc32: crc.sum(),
        packed_size: length,
        size: length,
        disk: 0,
        mode: 0o100_644,
        extra: Vec::new(),
        made_by: 0x0314,
        at: None,
    }
}

/// An honest deflated file.
pub(super) fn deflated(name: &str, content: &[u8]) -> Piece {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content).unwrap();
    let packed = encoder.finish().unwrap();
    let packed_size = u32::try_from(packed.len()).unwrap();
    Piece {
        packed,
        packed_size,
        method: 8,
        ..stored(name, content)
    }
}

/// A SKILL.md that loads.
pub(super) fn skill_md() -> Piece {
    deflated("SKILL.md", b"---\nname: a\ndescription: Adds.\n---\nBody\n")
}

/// What the end record says.
pub(super) struct End {
    pub(super) disks: [u16; 2],
    pub(super) counts: [u16; 2],
    pub(super) size: u32,
    pub(super) start: u32,
    pub(super) comment: Vec<u8>,
    /// Bytes between the directory and the end record.
    pub(super) before: Vec<u8>,
}

/// An archive of these entries.
pub(super) fn zip(pieces: &[Piece]) -> Vec<u8> {
    zip_ending(pieces, |_| {})
}

/// An archive whose end record was changed.
pub(super) fn zip_ending(pieces: &[Piece], change: impl Fn(&mut End)) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut directory = Vec::new();
    for piece in pieces {
        if piece.at.is_none() {
            bytes.extend(&piece.around[0]);
        }
        let at = piece.at.unwrap_or_else(|| u32::try_from(bytes.len()).unwrap());
        if piece.at.is_none() {
            local(&mut bytes, piece);
            bytes.extend(&piece.around[1]);
        }
        central(&mut directory, piece, at);
    }
    let count = u16::try_from(pieces.len()).unwrap_or(u16::MAX);
    let mut end = End {
        disks: [0, 0],
        counts: [count, count],
        size: u32::try_from(directory.len()).unwrap(),
        start: u32::try_from(bytes.len()).unwrap(),
        comment: Vec::new(),
        before: Vec::new(),
    };
    change(&mut end);
    bytes.extend(directory);
    bytes.extend(&end.before);
    bytes.extend(b"PK\x05\x06");
    put16(
        &mut bytes,
        &[end.disks[0], end.disks[1], end.counts[0], end.counts[1]],
    );
    put32(&mut bytes, &[end.size, end.start]);
    put16(&mut bytes, &[u16::try_from(end.comment.len()).unwrap()]);
    bytes.extend(end.comment);
    bytes
}

/// The bytes as an open file.
pub(super) fn file_of(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file
}

fn local(bytes: &mut Vec<u8>, piece: &Piece) {
    let name = piece.local_name.as_ref().unwrap_or(&piece.name);
    bytes.extend(b"PK\x03\x04");
    let flags = piece.local_flags.unwrap_or(piece.flags);
    put16(bytes, &[20, flags, piece.method, 0, 33]);
    let sizes = [piece.crc32, piece.packed_size, piece.size];
    put32(bytes, &piece.local_sizes.unwrap_or(sizes));
    let extra = piece.local_extra.as_ref().unwrap_or(&piece.extra);
    put16(
        bytes,
        &[
            u16::try_from(name.len()).unwrap(),
            u16::try_from(extra.len()).unwrap(),
        ],
    );
    bytes.extend(name);
    bytes.extend(extra);
    bytes.extend(&piece.packed);
}

fn central(bytes: &mut Vec<u8>, piece: &Piece, at: u32) {
    bytes.extend(b"PK\x01\x02");
    put16(bytes, &[piece.made_by, 20, piece.flags, piece.method, 0, 33]);
    put32(bytes, &[piece.crc32, piece.packed_size, piece.size]);
    put16(
        bytes,
        &[
            u16::try_from(piece.name.len()).unwrap(),
            u16::try_from(piece.extra.len()).unwrap(),
            0,
            piece.disk,
            0,
        ],
    );
    put32(bytes, &[piece.mode << 16, at]);
    bytes.extend(&piece.name);
    bytes.extend(&piece.extra);
}

fn put16(bytes: &mut Vec<u8>, values: &[u16]) {
    bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
}

fn put32(bytes: &mut Vec<u8>, values: &[u32]) {
    bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
}
