//! PID 1 of every sandbox: single-threaded, non-dumpable from its first instruction.
//!
//! The end of a run, in this order: the main process ends, everything is killed and reaped, the pipes are drained,
//! `out/` is read, all of it is sent, then PID 1 exits and the kernel ends the rest.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::fs::FileType;
use rustix::process::{DumpableBehavior, WaitStatus};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};

use crate::guest::cgroup::Counters;
use crate::guest::collect::OutFolder;
use crate::guest::egress;
use crate::guest::layout;
use crate::guest::pre_started::{self, Interpreter};
use crate::guest::program::{self, Program};
use crate::guest::runtime::{self, Log};
use crate::guest::wire::{self, Channel, Link, ProgramEnd, Side, Start, ToGuest, ToHost, Warm, Workspace};
use crate::guest::workspace::{WorkspaceContent, WorkspaceSnapshot};
use crate::limits;
use crate::sys;

/// A guest that has done everything that needs no host.
#[derive(Debug)]
pub struct Guest {
    runtime: Runtime,
}

impl Guest {
    fn new() -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        Ok(Self { runtime })
    }

    /// In a blank process: writes our own modules, too.
    fn prepare() -> io::Result<Self> {
        runtime::write_modules()?;
        Self::new()
    }

    /// Serves one execution and exits. An error of our own ends the sandbox: the host sees the connection close.
    fn main(self) -> ExitCode {
        match run(&self.runtime) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => failed(&error),
        }
    }
}

pub(super) fn main() -> ExitCode {
    let hidden = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let guest = hidden.map_err(io::Error::from).and_then(|()| Guest::new());
    guest.map_or_else(|error| failed(&error), Guest::main)
}

/// Errors go to standard error, which the server records.
pub(super) fn main_inside(
    enter: impl FnOnce(fn() -> io::Result<Guest>) -> Result<Guest, String>,
) -> ExitCode {
    if let Err(error) = pre_fault() {
        return failed(&error);
    }
    enter(Guest::prepare).map_or_else(
        |error| {
            eprintln!("{error}");
            ExitCode::FAILURE
        },
        Guest::main,
    )
}

/// Runs the protocol once with itself, so that the pages of this code are mapped in all children of the zygote. The
/// runtime has no I/O driver: all children would share its events.
fn pre_fault() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    runtime.block_on(async {
        let (near, far) = tokio::io::duplex(4096);
        let (mut host, mut guest) = (Link::new(near, Side::Host), Link::new(far, Side::Guest));
        let mut opened = Vec::new();
        for channel in Channel::ALL {
            opened.push(host.open(channel).await?);
        }
        let mut channels = Channels::accept(&mut guest).await?;
        wire::send(&mut opened[0], &ToGuest::Start(Start::default())).await?;
        wire::receive::<_, ToGuest>(&mut channels.control, wire::FRAME_TO_GUEST_BYTES_MAX).await?;
        wire::send(&mut channels.control, &ToHost::Started).await
    })
}

fn failed(error: &io::Error) -> ExitCode {
    eprintln!("skillbox sandbox-init: {error}");
    ExitCode::FAILURE
}

fn run(runtime: &Runtime) -> io::Result<()> {
    // The file's mode (0111, owned by root) makes the kernel set this at exec. This covers other cases.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    sys::drop_fault_handlers()?;
    if std::process::id() != 1 {
        return Err(io::Error::other(
            "this is PID 1 of a sandbox; the server starts it, nobody else does",
        ));
    }
    let connection = take_stdio()?;
    runtime.block_on(async {
        match connection {
            HostConnection::Socket(socket) => serve(UnixStream::from_std(socket)?).await,
            HostConnection::Pipes(reader, writer) => serve(PipeSocket::new(reader, writer)?).await,
        }
    })
}

enum HostConnection {
    /// Descriptor 0, in both directions: the native sandbox.
    Socket(std::os::unix::net::UnixStream),
    /// Descriptors 0 and 1: a container.
    Pipes(OwnedFd, OwnedFd),
}

/// Moves the connection away from descriptors 0 and 1, which a program would inherit.
fn take_stdio() -> io::Result<HostConnection> {
    let reader = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let kind = FileType::from_raw_mode(rustix::fs::fstat(&reader)?.st_mode);
    let connection = if kind == FileType::Socket {
        rustix::io::ioctl_fionbio(&reader, true)?;
        HostConnection::Socket(reader.into())
    } else {
        let writer = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
        HostConnection::Pipes(reader, writer)
    };
    let null = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    Ok(connection)
}

async fn serve(socket: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> io::Result<()> {
    let mut link = Link::new(socket, Side::Guest);
    let mut channels = Channels::accept(&mut link).await?;
    let hello = ToHost::Hello {
        version: wire::VERSION,
    };
    wire::send(&mut channels.control, &hello).await?;
    let mut children = signal(SignalKind::child())?;
    let (start, ready) = match receive_command(&mut channels.control).await? {
        ToGuest::Warm(warm) => {
            let mut ready = PreparedRun::lay_out(warm.skill.as_deref())?;
            if !warm.argv.is_empty() {
                ready.interpreter = Some(Interpreter::start(&warm, &mut children).await?);
            }
            ready.counters.restart_cpu_count();
            wire::send(&mut channels.control, &ToHost::Warm).await?;
            // Inputs may arrive before the start command.
            let asked = async {
                let word = receive_command(&mut channels.control);
                tokio::try_join!(word, layout::receive_inputs(&mut channels.inputs))
            };
            let (word, inputs_placed) = tokio::select! {
                asked = asked => asked?,
                // Evicted from the warm pool.
                () = link.ended() => return Ok(()),
                error = pre_started::ended(ready.interpreter.as_ref(), &mut children) => return Err(error),
            };
            let ToGuest::Start(start) = word else {
                return Err(wire::invalid("expected a start"));
            };
            ready.inputs_placed = inputs_placed;
            (start, ready)
        }
        ToGuest::Start(start) => {
            let mut ready = PreparedRun::lay_out(start.skill.as_deref())?;
            ready.inputs_placed = layout::receive_inputs(&mut channels.inputs).await?;
            (start, ready)
        }
        ToGuest::Cancel | ToGuest::KeepAlive => return Err(wire::invalid("expected a start")),
    };
    execute(&start, ready, children, channels, &mut link).await?;
    // The host closes first, once it has read everything: its writes to a closed guest would break the connection and
    // lose unread data.
    let _ = timeout(limits::DRAIN_MAX, link.ended()).await;
    link.close().await;
    Ok(())
}

/// The next start or warm-up command.
async fn receive_command(control: &mut wire::Stream) -> io::Result<ToGuest> {
    loop {
        match wire::receive(control, wire::FRAME_TO_GUEST_BYTES_MAX).await? {
            Some(ToGuest::KeepAlive) => {}
            Some(ToGuest::Start(Start { version, .. }) | ToGuest::Warm(Warm { version, .. }))
                if version != wire::VERSION =>
            {
                return Err(wire::invalid("the host speaks another version"));
            }
            Some(word @ (ToGuest::Start(_) | ToGuest::Warm(_))) => return Ok(word),
            Some(ToGuest::Cancel) | None => return Err(wire::invalid("expected a start")),
        }
    }
}

/// Opened before the program starts, since later names may be gone and descriptors exhausted.
struct PreparedRun {
    /// Why an input could not be placed.
    inputs_placed: Result<(), String>,
    interpreter: Option<Interpreter>,
    out: OutFolder,
    counters: Counters,
    lines: Log,
}

impl PreparedRun {
    fn lay_out(skill: Option<&str>) -> io::Result<Self> {
        layout::lay_out(skill)?;
        Ok(Self {
            inputs_placed: Ok(()),
            interpreter: None,
            out: OutFolder::open()?,
            counters: Counters::open(),
            lines: Log::open()?,
        })
    }

    /// The error is a message for the caller.
    async fn program(&mut self, start: &Start) -> Result<Program, String> {
        std::mem::replace(&mut self.inputs_placed, Ok(()))?;
        if let Some(before) = prepare_workspace(start)? {
            let opened = self.out.compare_with(before);
            opened.map_err(|error| format!("the workspace cannot be read: {error}"))?;
        }
        match self.interpreter.take() {
            Some(interpreter) => interpreter.release(start).await,
            None => program::start(&start.argv, &start.env, program::standard_input()),
        }
    }
}

async fn execute(
    start: &Start,
    mut ready: PreparedRun,
    mut children: Signal,
    channels: Channels,
    link: &mut Link,
) -> io::Result<()> {
    let Channels {
        mut control,
        inputs: _,
        stdout,
        stderr,
        log,
        mut results,
    } = channels;
    if let Some(port) = start.egress {
        egress::listen(port, link.opener()).await?;
    }
    let program = ready.program(start).await;
    let PreparedRun {
        out, counters, lines, ..
    } = ready;
    let (end, mut pumps) = match program {
        Err(reason) => (ProgramEnd::NotStarted(reason), None),
        Ok(Program {
            pid,
            stdout: stdout_pipe,
            stderr: stderr_pipe,
        }) => {
            let deadline = Instant::now() + Duration::from_millis(start.timeout_ms);
            wire::send(&mut control, &ToHost::Started).await?;
            let Log { reader, writer } = lines;
            let pumps = Pumps {
                stdout: Pump::start(stdout_pipe, stdout, start.caps.log_bytes),
                stderr: Pump::start(stderr_pipe, stderr, start.caps.log_bytes),
                log: Pump::start(reader, log, start.caps.log_lines_bytes),
            };
            let end = tokio::select! {
                status = main_process_ended(&mut children, pid) => end_of(status),
                () = sleep_until(deadline) => ProgramEnd::TimedOut,
                () = cancelled(&mut control) => ProgramEnd::Cancelled,
                () = link.ended() => return Err(io::ErrorKind::ConnectionAborted.into()),
            };
            kill_all(&mut children, pid).await?;
            // The last writer: its reader sees the end.
            drop(writer);
            (end, Some(pumps))
        }
    };
    wire::send(&mut control, &ToHost::Ended { end }).await?;
    let drained = match &mut pumps {
        Some(pumps) => pumps.drain().await,
        None => Vec::new(),
    };
    let usage = counters.read();
    out.send(&mut results, &start.caps).await?;
    shut(drained).await;
    let [stdout_bytes, stderr_bytes, log_lines_bytes] = pumps.map_or([0; 3], |pumps| pumps.totals());
    wire::send(
        &mut control,
        &ToHost::Done {
            stdout_bytes,
            stderr_bytes,
            log_lines_bytes,
            usage,
        },
    )
    .await
}

/// Closes streams. A host that reads no more closes the connection, which is handled elsewhere.
async fn shut(streams: Vec<wire::Stream>) {
    for mut stream in streams {
        let _ = stream.shutdown().await;
    }
}

/// Prepares the workspace once all inputs are placed. The error is a message for the caller.
fn prepare_workspace(start: &Start) -> Result<Option<WorkspaceSnapshot>, String> {
    let content = match start.workspace {
        Workspace::Scratch => return Ok(None),
        Workspace::Results => WorkspaceContent::Skill,
        Workspace::RequestResults { args_from } => {
            WorkspaceContent::Named(start.argv.get(args_from..).unwrap_or_default())
        }
    };
    WorkspaceSnapshot::prepare(start.skill.as_deref(), &start.argv, content)
        .map(Some)
        .map_err(|error| format!("the skill's files cannot be placed in the workspace: {error}"))
}

struct Channels {
    control: wire::Stream,
    inputs: wire::Stream,
    stdout: wire::Stream,
    stderr: wire::Stream,
    log: wire::Stream,
    results: wire::Stream,
}

impl Channels {
    /// Takes the six streams, in any order.
    async fn accept(link: &mut Link) -> io::Result<Self> {
        let mut arrived: HashMap<Channel, wire::Stream> = HashMap::new();
        while arrived.len() < Channel::ALL.len() {
            let (channel, stream) = link.accept().await?;
            if arrived.insert(channel, stream).is_some() {
                return Err(wire::invalid("a channel was opened twice"));
            }
        }
        let mut take = |channel| {
            arrived
                .remove(&channel)
                .ok_or_else(|| wire::invalid("a channel is missing"))
        };
        Ok(Self {
            control: take(Channel::Control)?,
            inputs: take(Channel::Inputs)?,
            stdout: take(Channel::Stdout)?,
            stderr: take(Channel::Stderr)?,
            log: take(Channel::Log)?,
            results: take(Channel::Results)?,
        })
    }
}

async fn main_process_ended(children: &mut Signal, main: rustix::process::Pid) -> WaitStatus {
    loop {
        if let Some(status) = program::reap(main) {
            return status;
        }
        children.recv().await;
    }
}

fn end_of(status: WaitStatus) -> ProgramEnd {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => ProgramEnd::Exited(code),
        (None, Some(signal)) => ProgramEnd::Signaled(signal),
        (None, None) => ProgramEnd::NotStarted("the program ended in no known way".to_owned()),
    }
}

/// Resolves when the host requests the end.
async fn cancelled(control: &mut wire::Stream) {
    loop {
        match wire::receive(control, wire::FRAME_TO_GUEST_BYTES_MAX).await {
            Ok(Some(ToGuest::KeepAlive)) => {}
            Ok(Some(ToGuest::Cancel)) => return,
            // The end of the connection is handled elsewhere.
            Ok(Some(ToGuest::Start(_) | ToGuest::Warm(_)) | None) | Err(_) => std::future::pending().await,
        }
    }
}

/// Kills and reaps until no child is left. A process that is being forked is killed in the next round.
async fn kill_all(children: &mut Signal, main: rustix::process::Pid) -> io::Result<()> {
    loop {
        sys::kill_everything()?;
        program::reap(main);
        if program::has_no_children() {
            return Ok(());
        }
        let _ = timeout(Duration::from_millis(5), children.recv()).await;
    }
}

/// A running copy of one of the program's streams.
struct Pump {
    task: JoinHandle<wire::Stream>,
    /// Bytes the program wrote so far.
    total: Arc<AtomicU64>,
}

impl Pump {
    fn start(pipe: pipe::Receiver, stream: wire::Stream, bytes_max: u64) -> Self {
        let total = Arc::new(AtomicU64::new(0));
        let task = tokio::spawn(program::pump(pipe, stream, bytes_max, total.clone()));
        Self { task, total }
    }
}

struct Pumps {
    stdout: Pump,
    stderr: Pump,
    log: Pump,
}

impl Pumps {
    /// Every writer is dead, so each pipe ends soon; streams that the host does not read are reset. Returns the
    /// others, which are closed together with the results, to wake the host once.
    async fn drain(&mut self) -> Vec<wire::Stream> {
        let all = async { tokio::join!(&mut self.stdout.task, &mut self.stderr.task, &mut self.log.task) };
        let drained = timeout(limits::DRAIN_MAX, all).await.into_iter();
        let streams = drained.flat_map(|(stdout, stderr, log)| [stdout, stderr, log]);
        streams.flatten().collect()
    }

    /// Including bytes beyond the limit.
    fn totals(&self) -> [u64; 3] {
        let read = |pump: &Pump| pump.total.load(Ordering::Relaxed);
        [&self.stdout, &self.stderr, &self.log].map(read)
    }
}

/// Descriptors 0 and 1 as one connection. They are pipes in a container.
struct PipeSocket {
    reader: pipe::Receiver,
    writer: pipe::Sender,
}

impl PipeSocket {
    fn new(reader: OwnedFd, writer: OwnedFd) -> io::Result<Self> {
        Ok(Self {
            reader: pipe::Receiver::from_owned_fd(reader)?,
            writer: pipe::Sender::from_owned_fd(writer)?,
        })
    }
}

impl AsyncRead for PipeSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.reader).poll_read(cx, buffer)
    }
}

impl AsyncWrite for PipeSocket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.writer).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.writer).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.writer).poll_shutdown(cx)
    }
}
