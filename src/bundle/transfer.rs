//! Copies content through a fixed buffer and measures it.

use std::io::{self, Read, Write};

use sha2::Digest as _;

use crate::ids::Digest;

const BUFFER_BYTES: usize = 64 * 1024;

pub(super) struct Content {
    pub(super) bytes: u64,
    pub(super) sha256: Digest,
    pub(super) crc32: u32,
}

/// Copies everything; fails with `InvalidData` beyond `max` bytes.
pub(super) fn transfer(from: &mut impl Read, to: &mut impl Write, max: u64) -> io::Result<Content> {
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut bytes = 0;
    let mut sha256 = sha2::Sha256::new();
    let mut crc32 = flate2::Crc::new();
    loop {
        let read = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        bytes += read as u64;
        if bytes > max {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "more bytes than announced",
            ));
        }
        sha256.update(&buffer[..read]);
        crc32.update(&buffer[..read]);
        to.write_all(&buffer[..read])?;
    }
    Ok(Content {
        bytes,
        sha256: Digest::from_bytes(sha256.finalize().into()),
        crc32: crc32.sum(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::Error;

    #[test]
    fn stops_at_the_limit() {
        let mut copied = Vec::new();
        let content = transfer(&mut &b"abc"[..], &mut copied, 3).unwrap();
        assert_eq!(
            (copied.as_slice(), content.bytes, content.sha256),
            (&b"abc"[..], 3, Digest::of(b"abc"))
        );
        let error = transfer(&mut io::repeat(0), &mut io::sink(), 1 << 20)
            .err()
            .unwrap();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }

    /// Z-28.
    #[test]
    fn reports_full_disk() {
        let mut full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let error = transfer(&mut &b"abc"[..], &mut full, 3).err().unwrap();
        assert!(matches!(Error::from(error), Error::Full(_)));
    }
}
