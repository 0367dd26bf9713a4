//! The protocol of host and guest: streams of one yamux connection, and the frames on them.
//!
//! Each side treats the other as untrusted: every frame has a size limit.

use std::{fmt, io};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

pub use crate::guest::link::{Link, Opener, Side, Stream};

/// Host and guest are one binary, so any difference is rejected.
pub const VERSION: u32 = 5;
/// Maximum frame of the host: a job with its environment and arguments, in which JSON may escape every byte as six.
pub const FRAME_TO_GUEST_BYTES_MAX: u32 = 8 * 1024 * 1024;
/// Maximum frame of the guest: a state or one file's name.
pub const FRAME_TO_HOST_BYTES_MAX: u32 = 64 * 1024;

/// A stream of the connection, identified by its first byte. The host opens all but the tunnels.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Channel {
    /// [`ToGuest`] and [`ToHost`] frames.
    Control = b'c',
    /// Host to guest: [`Input`] frames, each followed by its content; ends with the stream.
    Inputs = b'i',
    /// Guest to host: the program's standard output.
    Stdout = b'o',
    /// Guest to host: the program's standard error.
    Stderr = b'e',
    /// Guest to host: [`Item`] frames, each followed by its content.
    Results = b'r',
    /// Guest to host: the lines that the program logs.
    Log = b'l',
    /// Opened by the guest, any number of times, if [`Start::egress`] is set: an outgoing connection of the program.
    Egress = b'x',
}

impl Channel {
    /// Channels that the host opens, each once.
    pub const ALL: [Self; 6] = [
        Self::Control,
        Self::Inputs,
        Self::Stdout,
        Self::Stderr,
        Self::Results,
        Self::Log,
    ];

    #[must_use]
    pub fn from_byte(byte: u8) -> Option<Self> {
        let mut all = Self::ALL.into_iter().chain([Self::Egress]);
        all.find(|channel| *channel as u8 == byte)
    }
}

/// Commands of the host on [`Channel::Control`].
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToGuest {
    /// Prepare for a program, pre-start its interpreter, and wait. At most once, as the first command.
    Warm(Warm),
    /// Start the program, once.
    Start(Start),
    /// Kill it and report.
    Cancel,
    /// Prevents proxies between host and engine from closing an idle connection.
    KeepAlive,
}

/// Properties of a program before its run, without anything of a request.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Warm {
    /// [`VERSION`] of the host.
    pub version: u32,
    /// As in [`Start::skill`].
    pub skill: Option<String>,
    /// The interpreter and its file: the start of [`Start::argv`]. Empty if no interpreter is pre-started.
    pub argv: Vec<String>,
    /// Variables that interpreters read at start-up, as in [`Start::env`].
    pub env: Vec<(String, String)>,
}

/// The program to start.
#[derive(Default, Serialize, Deserialize)]
pub struct Start {
    /// [`VERSION`] of the host.
    pub version: u32,
    /// Name of the skill, for the link `/sandbox/scripts`.
    pub skill: Option<String>,
    /// Program and arguments; the program is looked up in `PATH` of `env`.
    pub argv: Vec<String>,
    pub env: Vec<(String, String)>,
    /// Wall clock limit from the program's start, in milliseconds.
    pub timeout_ms: u64,
    /// Whether the skill's folders are copied to `/workspace`, and new or changed files there are results.
    pub workspace: Workspace,
    /// The loopback port whose connections are forwarded to the host, if any.
    pub egress: Option<u16>,
    pub caps: Caps,
}

impl fmt::Debug for Start {
    /// Without the environment, which contains secrets, and without the arguments of the caller.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Start")
            .field("skill", &self.skill)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Workspace {
    /// Scratch space that is discarded.
    #[default]
    Scratch,
    /// Contains the skill's files; new and changed files are results.
    Results,
    /// Contains the skill's files that the arguments from this index on name; new and changed files are results.
    RequestResults { args_from: usize },
}

/// Limits on the guest's messages. The host enforces them again.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Caps {
    /// Bytes of `output.json`.
    pub output_bytes: u64,
    /// Bytes of rich results.
    pub results_bytes: u64,
    /// Bytes of each of stdout and stderr.
    pub log_bytes: u64,
    /// Bytes of log lines.
    pub log_lines_bytes: u64,
    /// Files.
    pub files: usize,
    /// Bytes of all files together.
    pub files_bytes: u64,
    /// Directory depth below `out/files`.
    pub files_depth: usize,
    /// Bytes of one path below `out/files`.
    pub path_bytes: usize,
    /// Bytes of all paths of files.
    pub paths_bytes: usize,
    /// Reported skipped files.
    pub skipped_named: usize,
    /// Blobs.
    pub blobs: usize,
    pub blobs_bytes: u64,
}

/// A file that the host places before the program starts. Its content follows the frame.
#[derive(Debug, Serialize, Deserialize)]
pub struct Input {
    pub place: InputPlace,
    pub size: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputPlace {
    /// `/sandbox/input.json`, also the default standard input.
    Json,
    Stdin,
    /// `/sandbox/code`, for the shim.
    Code,
    /// A relative path below `/workspace`.
    Workspace(String),
    /// An empty folder below `/workspace`.
    Folder(String),
    /// `/blobs`, read-only, named by the 64 hex digits of its digest.
    Blob(String),
}

/// Reports of the guest on [`Channel::Control`].
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToHost {
    /// The guest runs and is restricted.
    Hello {
        /// [`VERSION`] of the guest.
        version: u32,
    },
    /// The interpreter waits in its start-up.
    Warm,
    Started,
    /// The program has ended and everything in the sandbox was killed; results follow on their channels.
    Ended {
        end: ProgramEnd,
    },
    /// Everything was sent; the guest exits.
    Done {
        /// Bytes written to standard output.
        stdout_bytes: u64,
        /// Bytes written to standard error.
        stderr_bytes: u64,
        /// Bytes of log lines.
        log_lines_bytes: u64,
        usage: GuestUsage,
    },
}

/// How the program ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProgramEnd {
    /// Exit code.
    Exited(i32),
    /// Ended by this signal.
    Signaled(i32),
    /// The deadline passed.
    TimedOut,
    /// Cancelled by the host.
    Cancelled,
    /// It could not be started.
    NotStarted(String),
}

/// Usage of the sandbox, as far as visible to the guest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestUsage {
    /// CPU time in milliseconds.
    pub cpu_ms: u64,
    /// Peak memory in bytes; 0 if unknown.
    pub memory_peak_bytes: u64,
    /// Peak number of processes; 0 if unknown.
    pub processes_peak: u64,
    /// Processes killed because the sandbox was out of memory.
    pub oom_kills: u64,
}

/// A part of the results. The content of an output or a file follows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Item {
    /// `output.json`.
    Output {
        /// Bytes that follow.
        size: u64,
    },
    /// `output.json` exceeds the limit.
    LargeOutput { size: u64 },
    /// `output.json` exists but is unusable: a link, not a regular file or unreadable.
    BadOutput { reason: String },
    /// Rich results of called code, truncated at the limit.
    Results {
        /// Bytes that follow.
        size: u64,
        /// Total bytes.
        total: u64,
    },
    /// A file artifact.
    File {
        /// Path below `out/files`; backslashes and invalid UTF-8 written `\xNN`.
        path: String,
        /// Bytes that follow.
        size: u64,
    },
    /// A blob of the program.
    Blob {
        /// Its name: 64 hex digits, which the host compares with the content's digest.
        name: String,
        /// Bytes that follow.
        size: u64,
    },
    /// A skipped file.
    Skipped {
        /// As for a file; the start of a long path.
        path: String,
        reason: String,
    },
    End {
        /// Number of skipped files.
        skipped_total: u64,
    },
}

/// Writes a frame: its length as 4 bytes, big endian, then JSON.
pub async fn send<W, T>(writer: &mut W, frame: &T) -> io::Result<()>
where
    W: AsyncWrite + Unpin,
    T: Serialize,
{
    let mut bytes = vec![0; 4];
    serde_json::to_writer(&mut bytes, frame)?;
    let length = u32::try_from(bytes.len() - 4).map_err(|_| invalid("frame too large"))?;
    bytes[..4].copy_from_slice(&length.to_be_bytes());
    writer.write_all(&bytes).await?;
    writer.flush().await
}

/// Reads a frame of at most `bytes_max`; `None` if the stream ends between two frames.
pub async fn receive<R, T>(reader: &mut R, bytes_max: u32) -> io::Result<Option<T>>
where
    R: AsyncRead + Unpin,
    T: DeserializeOwned,
{
    let mut length = [0; 4];
    if reader.read(&mut length[..1]).await? == 0 {
        return Ok(None);
    }
    reader.read_exact(&mut length[1..]).await?;
    let length = u32::from_be_bytes(length);
    if length > bytes_max {
        return Err(invalid("frame too large"));
    }
    let mut bytes = Vec::new();
    reader.take(u64::from(length)).read_to_end(&mut bytes).await?;
    serde_json::from_slice(&bytes)
        .map(Some)
        .map_err(|_| invalid("malformed frame"))
}

/// An error about a frame of the other side.
#[must_use]
pub fn invalid(message: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}

pub(super) fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the connection has ended")
}

#[cfg(test)]
mod tests;
