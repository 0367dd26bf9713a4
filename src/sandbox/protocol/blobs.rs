//! Sends and receives blobs. A received blob must have the digest in its name.

use std::io::{self, SeekFrom};

use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _};

use super::results::copy_to_tar;
use crate::bundle::artifacts::ArtifactTar;
use crate::execution::FileEntry;
use crate::guest::wire::{self, Input, InputPlace};
use crate::ids::Digest;
use crate::limits;
use crate::sandbox::InputBlob;

/// Sends a blob to the program.
pub(super) async fn send(stream: &mut wire::Stream, blob: &InputBlob) -> io::Result<()> {
    let input = Input {
        place: InputPlace::Blob(blob.digest.hex()),
        size: blob.size,
    };
    wire::send(stream, &input).await?;
    let mut file = tokio::fs::File::from_std(blob.content.try_clone()?);
    file.seek(SeekFrom::Start(0)).await?;
    let sent = tokio::io::copy(&mut file.take(blob.size), stream).await?;
    if sent == blob.size {
        Ok(())
    } else {
        Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            "a blob is shorter than it was",
        ))
    }
}

/// Receives the blobs of a program.
pub(super) struct Blobs<'a> {
    tar: &'a mut ArtifactTar,
    taken: &'a mut Vec<FileEntry>,
    count: usize,
    bytes: u64,
}

impl<'a> Blobs<'a> {
    pub(super) fn into(tar: &'a mut ArtifactTar, taken: &'a mut Vec<FileEntry>) -> Self {
        Self {
            tar,
            taken,
            count: 0,
            bytes: 0,
        }
    }

    /// Receives a blob. If its content does not match its name, returns its path instead.
    pub(super) async fn receive(
        &mut self,
        stream: &mut wire::Stream,
        name: &str,
        size: u64,
    ) -> io::Result<Option<String>> {
        let digest = format!("sha256:{name}").parse::<Digest>();
        let digest = digest.map_err(|_| wire::invalid("a blob with an impossible name"))?;
        let is_known = self.taken.iter().any(|taken| taken.sha256 == digest);
        if is_known
            || self.count >= limits::OUTPUT_BLOBS_MAX
            || size > limits::OUTPUT_BLOBS_BYTES_MAX - self.bytes
        {
            return Err(wire::invalid("blobs above the cap"));
        }
        self.count += 1;
        self.bytes += size;
        let entry = copy_to_tar(stream, self.tar, name, size).await?;
        if entry.sha256 == digest {
            self.taken.push(entry);
            Ok(None)
        } else {
            Ok(Some(format!("/sandbox/out/blobs/{name}")))
        }
    }
}
