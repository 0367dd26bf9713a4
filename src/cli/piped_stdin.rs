//! Standard input that no option reads: a file or pipe with content becomes the program's standard input.

use std::fs::File;
use std::io::{self, Stdin};
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileExt as _;
use std::time::Instant;

use bytes::Bytes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::FileType;

use crate::cli::exit::Exit;
use crate::cli::failure::{Failure, Result};
use crate::limits;

/// What standard input has for the program.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PipedStdin {
    Content(Bytes),
    /// A terminal, a device, a socket, or a file or pipe without content.
    Nothing,
    /// A pipe that may have content later. Automation often leaves one open, so it is not waited for.
    Silent,
}

const TOO_LONG: &str =
    "standard input: more than 10 MiB; pass a file with --file, or nothing with </dev/null";

pub(crate) fn read() -> Result<PipedStdin> {
    let stdin = io::stdin();
    let kind = rustix::fs::fstat(&stdin).map(|stat| FileType::from_raw_mode(stat.st_mode));
    match kind {
        Ok(FileType::RegularFile) => read_file(&stdin),
        Ok(FileType::Fifo) => read_pipe(&stdin),
        _ => Ok(PipedStdin::Nothing),
    }
}

/// Leaves the position where it is, so that a loop of the shell that reads lines of this file goes on.
fn read_file(stdin: &Stdin) -> Result<PipedStdin> {
    let failed = |error: io::Error| Failure::refused(format!("reading standard input: {error}"));
    let file = File::from(stdin.as_fd().try_clone_to_owned().map_err(failed)?);
    let start = rustix::fs::tell(&file).map_err(|error| failed(error.into()))?;
    let (mut content, mut buffer) = (Vec::new(), vec![0; CHUNK]);
    loop {
        let position = start.saturating_add(content.len() as u64);
        match file.read_at(&mut buffer, position).map_err(failed)? {
            0 => return Ok(content_of(content)),
            read => content.extend_from_slice(&buffer[..read]),
        }
        if content.len() as u64 > limits::INPUT_BYTES_MAX {
            return Err(Failure::refused(TOO_LONG));
        }
    }
}

/// Waits shortly for the first byte, and not long for the end.
fn read_pipe(stdin: &Stdin) -> Result<PipedStdin> {
    let started = Instant::now();
    let mut wait = limits::PIPED_STDIN_BEGINS_WITHIN;
    let (mut content, mut buffer) = (Vec::new(), vec![0; CHUNK]);
    loop {
        let mut watched = [PollFd::new(stdin, PollFlags::IN)];
        let left = Timespec::try_from(wait.saturating_sub(started.elapsed())).ok();
        let ready = match poll(&mut watched, left.as_ref()) {
            Err(rustix::io::Errno::INTR) => continue,
            polled => polled.map_err(|error| Failure::refused(format!("reading standard input: {error}")))?,
        };
        if ready == 0 && content.is_empty() {
            return Ok(PipedStdin::Silent);
        }
        if ready == 0 {
            let message = format!("standard input has not ended within {} s", wait.as_secs());
            return Err(Failure::new(Exit::Usage, message)
                .hint("wait for its end with --stdin -, or pass nothing with </dev/null"));
        }
        let read = rustix::io::read(stdin, &mut buffer)
            .map_err(|error| Failure::refused(format!("reading standard input: {error}")))?;
        if read == 0 {
            return Ok(content_of(content));
        }
        wait = limits::PIPED_STDIN_ENDS_WITHIN;
        content.extend_from_slice(&buffer[..read]);
        if content.len() as u64 > limits::INPUT_BYTES_MAX {
            return Err(Failure::refused(TOO_LONG));
        }
    }
}

const CHUNK: usize = 64 * 1024;

fn content_of(content: Vec<u8>) -> PipedStdin {
    match content.is_empty() {
        true => PipedStdin::Nothing,
        false => PipedStdin::Content(content.into()),
    }
}
