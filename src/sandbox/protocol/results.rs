//! Receives the results of a program, within limits.

use std::collections::HashSet;
use std::io;

use tokio::io::AsyncReadExt as _;

use super::blobs::Blobs;
use crate::bundle::artifacts::ArtifactTar;
use crate::execution::{CodeResults, FileEntry, JsonText, Skipped};
use crate::guest::wire::{self, Caps, Item};
use crate::limits;
use crate::sandbox::ProgramOutput;
use crate::secret::Mask;

/// Checks every count and length again, since the program may control the guest.
pub(super) struct ResultReceiver<'a> {
    pub(super) mask: &'a Mask,
    pub(super) artifacts: &'a mut ArtifactTar,
    pub(super) output: &'a mut ProgramOutput,
    pub(super) shown: &'a mut CodeResults,
    pub(super) files: &'a mut Vec<FileEntry>,
    pub(super) skipped: &'a mut Vec<Skipped>,
    pub(super) skipped_total: &'a mut u64,
    pub(super) blobs: Blobs<'a>,
    pub(super) caps: Caps,
    pub(super) bytes: u64,
    pub(super) paths_bytes: usize,
    /// Whether the host failed to store results. The guest then notices the closed stream, perhaps first.
    pub(super) not_stored: bool,
}

impl ResultReceiver<'_> {
    pub(super) async fn receive(&mut self, stream: wire::Stream) -> io::Result<()> {
        let received = self.receive_items(stream).await;
        self.not_stored = received.as_ref().is_err_and(is_storage_error);
        received
    }

    async fn receive_items(&mut self, mut stream: wire::Stream) -> io::Result<()> {
        let (mut paths, mut kept) = (HashSet::new(), HashSet::new());
        loop {
            let item = wire::receive(&mut stream, wire::FRAME_TO_HOST_BYTES_MAX).await?;
            match item.ok_or_else(|| wire::invalid("results without an end"))? {
                Item::Output { size } => self.output(&mut stream, size).await?,
                Item::LargeOutput { size } => *self.output = ProgramOutput::TooLarge(size),
                Item::BadOutput { reason } => {
                    *self.output = ProgramOutput::Invalid(format!("output.json: {reason}"))
                }
                Item::Results { size, total } => self.shown(&mut stream, size, total).await?,
                Item::File { path, size } => {
                    if !is_plain(&path) || !paths.insert(path.clone()) {
                        return Err(wire::invalid("a file with an impossible name"));
                    }
                    let masked = self.mask.mask_text(&path);
                    // Names that differ only in a secret are equal once masked.
                    if self.mask.is_empty() || kept.insert(masked.to_string()) {
                        self.file(&mut stream, &masked, size).await?;
                    } else {
                        self.discard(&mut stream, size).await?;
                        self.skip(masked.into_owned(), "duplicate");
                    }
                }
                Item::Blob { name, size } => {
                    if let Some(path) = self.blobs.receive(&mut stream, &name, size).await? {
                        self.skip(path, "content");
                    }
                }
                Item::Skipped { path, .. } if path.len() > limits::FILE_PATH_BYTES_MAX => {
                    return Err(wire::invalid("a skipped file with an impossible name"));
                }
                Item::Skipped { path, reason } => {
                    if self.skipped.len() < limits::SKIPPED_NAMED_MAX {
                        self.skipped.push(Skipped { path, reason });
                    }
                }
                Item::End { skipped_total } => {
                    let total = skipped_total.saturating_add(*self.skipped_total);
                    *self.skipped_total = total.max(self.skipped.len() as u64);
                    return Ok(());
                }
            }
        }
    }

    /// Discards a file that the guest has sent.
    fn skip(&mut self, path: String, reason: &str) {
        *self.skipped_total += 1;
        if self.skipped.len() < limits::SKIPPED_NAMED_MAX {
            let reason = reason.to_owned();
            self.skipped.push(Skipped { path, reason });
        }
    }

    async fn discard(&mut self, stream: &mut wire::Stream, size: u64) -> io::Result<()> {
        if size > self.caps.files_bytes - self.bytes {
            return Err(wire::invalid("files above the cap"));
        }
        self.bytes += size;
        let passed = tokio::io::copy(&mut stream.take(size), &mut tokio::io::sink()).await?;
        if passed == size {
            Ok(())
        } else {
            Err(io::ErrorKind::UnexpectedEof.into())
        }
    }

    async fn output(&mut self, stream: &mut wire::Stream, size: u64) -> io::Result<()> {
        if size > limits::OUTPUT_BYTES_MAX {
            return Err(wire::invalid("an output above the cap"));
        }
        let bytes = read_exactly(stream, size).await?;
        *self.output = match JsonText::parse(&bytes) {
            Ok(text) => ProgramOutput::Json(text),
            Err(error) => ProgramOutput::Invalid(format!("output.json is {error}")),
        };
        Ok(())
    }

    async fn shown(&mut self, stream: &mut wire::Stream, size: u64, total: u64) -> io::Result<()> {
        if size > limits::RESULTS_BYTES_MAX {
            return Err(wire::invalid("results above the cap"));
        }
        *self.shown = CodeResults::parse(&read_exactly(stream, size).await?);
        self.shown.truncated |= total > size;
        Ok(())
    }

    async fn file(&mut self, stream: &mut wire::Stream, path: &str, size: u64) -> io::Result<()> {
        self.paths_bytes += path.len();
        if self.files.len() >= self.caps.files
            || size > self.caps.files_bytes - self.bytes
            || self.paths_bytes > self.caps.paths_bytes
        {
            return Err(wire::invalid("files above the cap"));
        }
        self.bytes += size;
        self.files
            .push(copy_to_tar(stream, self.artifacts, path, size).await?);
        Ok(())
    }
}

async fn read_exactly(stream: &mut wire::Stream, size: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if stream.take(size).read_to_end(&mut bytes).await? as u64 == size {
        Ok(bytes)
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

/// Whether a path has a valid length, only plain components and no control character, so that no reader of an archive is misled.
pub(super) fn is_plain(path: &str) -> bool {
    let length = 1..=limits::FILE_PATH_BYTES_MAX;
    length.contains(&path.len())
        && !path.contains(char::is_control)
        && path.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

/// The host could not store results; other errors are the guest's.
#[derive(Debug, thiserror::Error)]
#[error("storing results failed: {0}")]
struct NotStored(#[source] io::Error);

fn not_stored(error: io::Error) -> io::Error {
    io::Error::other(NotStored(error))
}

fn is_storage_error(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<NotStored>())
}

/// Writes the stream to `tar` while it arrives.
pub(super) async fn copy_to_tar(
    stream: &mut wire::Stream,
    tar: &mut ArtifactTar,
    path: &str,
    size: u64,
) -> io::Result<FileEntry> {
    tar.start(path, size).map_err(not_stored)?;
    let mut buffer = vec![0; 64 * 1024];
    let mut left = size;
    while left > 0 {
        let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        let read = stream.read(&mut buffer[..wanted]).await?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        tar.write(&buffer[..read]).map_err(not_stored)?;
        left -= read as u64;
    }
    tar.end().map_err(not_stored)
}
