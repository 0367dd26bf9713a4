//! The program of the sandbox: starts it, copies its streams, reaps all processes.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, WaitStatus};
use tokio::io::AsyncWriteExt as _;
use tokio::net::unix::pipe;

use crate::guest::layout;
use crate::guest::wire;
use crate::limits;

/// The started program: its id and the read ends of its two pipes.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) pid: Pid,
    pub(super) stdout: pipe::Receiver,
    pub(super) stderr: pipe::Receiver,
}

/// Starts the program in a process group of its own, with exactly the given environment and standard input.
///
/// The error is a message for the skill's author.
pub(super) fn start(
    argv: &[String],
    env: &[(String, String)],
    stdin: Option<File>,
) -> Result<Program, String> {
    let (name, arguments) = argv.split_first().ok_or("the command is empty")?;
    let path = find(name, env).ok_or_else(|| format!("`{name}` was not found in the sandbox's PATH"))?;
    let (stdout, stdout_writer) = pipe().map_err(|error| format!("cannot make a pipe: {error}"))?;
    let (stderr, stderr_writer) = pipe().map_err(|error| format!("cannot make a pipe: {error}"))?;
    // Here and not in the child: a child that only executes is spawned without copying this process.
    std::env::set_current_dir(layout::WORKSPACE)
        .map_err(|error| format!("cannot enter {}: {error}", layout::WORKSPACE))?;
    let child = Command::new(path)
        .arg0(name)
        .args(arguments)
        .env_clear()
        .envs(env.iter().map(|(key, value)| (key, value)))
        .stdin(stdin.map_or_else(Stdio::null, Stdio::from))
        .stdout(stdout_writer)
        .stderr(stderr_writer)
        .process_group(0)
        .spawn()
        .map_err(|error| format!("cannot start `{name}`: {error}"))?;
    prefer_out_of_memory_kill(child.id());
    let pid = i32::try_from(child.id())
        .ok()
        .and_then(Pid::from_raw)
        .ok_or("the program has no process id")?;
    Ok(Program { pid, stdout, stderr })
}

/// If memory runs out, the kernel then kills the program, never PID 1. Until the kernel has completed the program's start,
/// it inherits that PID 1 cannot be dumped, and the file belongs to root.
fn prefer_out_of_memory_kill(program: u32) {
    let file = format!("/proc/{program}/oom_score_adj");
    for _ in 0..limits::OOM_SCORE_ATTEMPTS {
        match std::fs::write(&file, "1000") {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                std::thread::sleep(limits::OOM_SCORE_RETRY_DELAY);
            }
            Ok(()) | Err(_) => return,
        }
    }
}

/// The file sent as standard input, else the input.
pub(super) fn standard_input() -> Option<File> {
    let sent = File::open(layout::STDIN);
    // Programs see only documented files.
    let _ = std::fs::remove_file(layout::STDIN);
    sent.or_else(|_| File::open(layout::INPUT)).ok()
}

fn pipe() -> io::Result<(pipe::Receiver, OwnedFd)> {
    let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    Ok((pipe::Receiver::from_owned_fd(reader)?, writer))
}

/// The file of `name` in the program's `PATH`.
fn find(name: &str, env: &[(String, String)]) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name));
    }
    let path = env
        .iter()
        .find_map(|(key, value)| (key == "PATH").then_some(value))?;
    path.split(':')
        .map(|folder| Path::new(folder).join(name))
        .find(|candidate| {
            candidate
                .metadata()
                .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
        })
}

/// Sends a pipe's bytes to the host up to the limit, then reads on and discards, because a full pipe would block the
/// program. Counts all bytes in `total`. Returns the stream, which is closed together with the others.
pub(super) async fn pump(
    mut pipe: pipe::Receiver,
    mut stream: wire::Stream,
    bytes_max: u64,
    total: Arc<AtomicU64>,
) -> wire::Stream {
    use tokio::io::AsyncReadExt as _;

    let mut left = bytes_max;
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let read = match pipe.read(&mut buffer).await {
            Ok(0) | Err(_) => break,
            Ok(read) => read,
        };
        total.fetch_add(read as u64, Ordering::Relaxed);
        let kept = usize::try_from(left).unwrap_or(usize::MAX).min(read);
        left -= kept as u64;
        if kept > 0 && stream.write_all(&buffer[..kept]).await.is_err() {
            left = 0;
        }
    }
    stream
}

/// Reaps every ended child. Returns how the process `main` ended, if it was among them.
pub(super) fn reap(main: Pid) -> Option<WaitStatus> {
    let mut ended = None;
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if pid == main => ended = Some(status),
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) | Err(_) => return ended,
        }
    }
}

pub(super) fn has_no_children() -> bool {
    matches!(rustix::process::wait(WaitOptions::NOHANG), Err(Errno::CHILD))
}
