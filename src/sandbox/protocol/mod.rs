//! The host's side of the guest protocol, over any byte stream. Messages of the guest are untrusted.

mod blobs;
mod guest;
mod half_closed;
mod log_stream;
mod results;
mod start_command;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::FutureExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::oneshot;
use tokio::time::{Instant, interval_at, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::execution::{CodeResults, FileEntry, Logs, Skipped, Stream, Transcript, Usage};
use crate::guest::wire::{self, Channel, Input, InputPlace, Link, ProgramEnd, ToGuest, ToHost};
use crate::limits;
use crate::sandbox::{Egress, Job, ProgramOutput, ProgramRun, RunContext};
use crate::secret::Mask;

use blobs::Blobs;
use guest::{PrintedStreams, Streams};
use log_stream::{LogLineMasker, OutputMasker};
use results::ResultReceiver;
use start_command::{caps, collect_max, start_command};

pub(super) use guest::Guest;

/// The guest's reports until it or its connection ended.
#[derive(Debug)]
pub(super) struct GuestReport {
    /// `None` if not reported.
    pub(super) end: Option<ProgramEnd>,
    /// Whether the start signal came. Until then nothing was sent that starts the program.
    pub(super) was_released: bool,
    pub(super) warm: bool,
    /// Whether the guest has sent anything.
    pub(super) hello: bool,
    pub(super) complete: bool,
    /// Whether the host failed to store results.
    pub(super) not_stored: bool,
    pub(super) output: ProgramOutput,
    pub(super) shown: CodeResults,
    pub(super) logs: Logs,
    pub(super) files: Vec<FileEntry>,
    pub(super) skipped: Vec<Skipped>,
    pub(super) skipped_total: u64,
    pub(super) blobs: Vec<FileEntry>,
    pub(super) usage: Usage,
    pub(super) started_at: Option<Instant>,
    pub(super) ended_at: Option<Instant>,
    /// The connection, once everything was received. Closing it makes the guest exit.
    pub(super) link: Option<Link>,
}

/// Runs the job's program in the guest until it has ended, the connection is closed, or it is overdue. The caller
/// destroys the sandbox in every case.
///
/// If the sandbox ends before the start signal, another one can be driven with the same context.
pub(super) async fn drive(guest: Guest, job: &Job, context: &mut RunContext<'_>) -> GuestReport {
    let Guest { mut link, streams } = guest;
    let mut report = GuestReport {
        end: None,
        was_released: false,
        warm: streams.is_some(),
        hello: false,
        complete: false,
        not_stored: false,
        output: ProgramOutput::Missing,
        shown: CodeResults::default(),
        logs: Logs::default(),
        files: Vec::new(),
        skipped: Vec::new(),
        skipped_total: 0,
        blobs: Vec::new(),
        usage: Usage::default(),
        started_at: None,
        ended_at: None,
        link: None,
    };
    // The report contains everything received before an error.
    if let Err(error) = drive_channels(&mut link, streams, job, context, &mut report).await {
        let execution = job.program.execution;
        if report.not_stored {
            tracing::error!(%error, %execution, "Results of execution {execution} could not be stored");
        } else {
            tracing::warn!(%error, %execution, "Connection to the guest ended before it was done");
        }
    }
    report.link = report.complete.then_some(link);
    report
}

async fn drive_channels(
    link: &mut Link,
    warm: Option<Streams>,
    job: &Job,
    context: &mut RunContext<'_>,
    report: &mut GuestReport,
) -> io::Result<()> {
    let mut state = ProgramState {
        hello: warm.is_some(),
        ..ProgramState::default()
    };
    let was_released = AtomicBool::new(false);
    let Streams {
        mut control,
        inputs,
        printed,
        results,
    } = match warm {
        Some(streams) => streams,
        None => Streams::open(link).await?,
    };

    let GuestReport {
        logs,
        output,
        shown,
        files,
        skipped,
        skipped_total,
        blobs,
        ..
    } = report;
    let mut lines = Vec::new();
    let mut collected = ResultReceiver {
        mask: &job.program.mask,
        artifacts: &mut *context.artifacts,
        output,
        shown,
        files,
        skipped,
        skipped_total,
        blobs: Blobs::into(context.blobs, blobs),
        caps: caps(job),
        bytes: 0,
        paths_bytes: 0,
        not_stored: false,
    };
    let result = {
        let streams = async {
            // A guest without its inputs reports that; one that has ended may close before it has read all of them.
            let (_, printed, results) = tokio::join!(
                send_inputs(inputs, &job.program),
                receive_printed(printed, logs, &mut lines, context.transcript, &job.program.mask),
                collected.receive(results)
            );
            match was_released.load(Ordering::Relaxed) {
                true => printed.and(results),
                false => Err(wire::invalid("the sandbox ended before its start")),
            }
        };
        let released = (&mut context.start).inspect(|_| was_released.store(true, Ordering::Relaxed));
        let states = state.follow(&mut control, job, context.cancel.clone(), released);
        let both = join_both(streams, states, collect_max(job));
        let total =
            limits::SANDBOX_START_MAX + job.sandbox.limits.timeout + limits::KILL_GRACE + collect_max(job);
        tokio::select! {
            received = with_timeout(total, both) => received,
            broken = forward_egress(link, job.kind.egress()) => broken,
        }
    };
    report.not_stored = collected.not_stored;
    report.was_released = was_released.into_inner();
    report.finish(state, &lines, result.is_ok());
    result
}

/// Receives output and log lines, records the start of each stream, and publishes both.
async fn receive_printed(
    streams: PrintedStreams,
    logs: &mut Logs,
    lines: &mut Vec<u8>,
    transcript: &Transcript,
    mask: &Mask,
) -> io::Result<()> {
    let output = |stream| OutputMasker::new(transcript, mask, stream);
    let (mut out, mut err) = (output(Stream::Stdout), output(Stream::Stderr));
    let mut log_lines = LogLineMasker::new(transcript, mask);
    let (max, lines_max) = (limits::LOG_BYTES_MAX, limits::LOG_LINES_BYTES_MAX);
    let PrintedStreams { stdout, stderr, log } = streams;
    let (stdout, stderr, log) = tokio::join!(
        receive_head(stdout, &mut logs.stdout, max, |bytes| out.push(bytes)),
        receive_head(stderr, &mut logs.stderr, max, |bytes| err.push(bytes)),
        receive_head(log, lines, lines_max, |bytes| log_lines.push(bytes)),
    );
    stdout.and(stderr).and(log)
}

/// Waits for the streams and the states; the first failure ends both.
async fn join_both(
    streams: impl Future<Output = io::Result<()>>,
    states: impl Future<Output = io::Result<()>>,
    collect_max: Duration,
) -> io::Result<()> {
    tokio::pin!(streams, states);
    tokio::select! {
        received = &mut streams => {
            received?;
            states.await
        }
        done = &mut states => {
            done?;
            // The guest has sent everything; the rest arrives soon.
            with_timeout(collect_max, streams).await
        }
    }
}

/// Forwards the connections of a build. Ends only if the guest opens a forbidden channel.
async fn forward_egress(link: &mut Link, egress: Option<&Egress>) -> io::Result<()> {
    let Some(egress) = egress else {
        return std::future::pending().await;
    };
    loop {
        match link.accept().await {
            Ok((Channel::Egress, stream)) => egress.forward(stream),
            Ok(_) => return Err(wire::invalid("a channel that only the host opens")),
            // Earlier messages of the guest are still unread.
            Err(_) => return std::future::pending().await,
        }
    }
}

impl GuestReport {
    /// The sandbox ended before its program could start: nothing was lost but the sandbox.
    pub(super) fn is_stillborn(&self) -> bool {
        !self.was_released && self.end.is_none() && !self.not_stored
    }

    fn finish(&mut self, state: ProgramState, lines: &[u8], complete: bool) {
        // Without the guest's counts at least one byte counts as lost, so that truncation is reported (P9).
        let lost = u64::from(!complete && state.started_at.is_some());
        let [stdout, stderr, log] = state.totals;
        self.logs.stdout_total = stdout.max(self.logs.stdout.len() as u64 + lost);
        self.logs.stderr_total = stderr.max(self.logs.stderr.len() as u64 + lost);
        self.logs.take_lines(lines, log.max(lines.len() as u64 + lost));
        self.complete = complete;
        self.hello = state.hello;
        self.end = state.end;
        self.usage = state.usage;
        self.started_at = state.started_at;
        self.ended_at = state.ended_at;
    }
}

async fn send_inputs(mut stream: wire::Stream, program: &ProgramRun) -> io::Result<()> {
    let json = program.input.as_str().as_bytes();
    let files = program.files.iter().map(|file| match file.folder() {
        Some(folder) => (InputPlace::Folder(folder.to_owned()), &[][..]),
        None => (InputPlace::Workspace(file.path.clone()), &file.content[..]),
    });
    let stdin = program.stdin.as_ref();
    let stdin = stdin.map(|content| (InputPlace::Stdin, &content[..]));
    let code = program.code.as_ref();
    let code = code.map(|content| (InputPlace::Code, content.as_bytes()));
    let before = [(InputPlace::Json, json)].into_iter().chain(stdin).chain(code);
    for (place, content) in before.chain(files) {
        wire::send(
            &mut stream,
            &Input {
                place,
                size: content.len() as u64,
            },
        )
        .await?;
        stream.write_all(content).await?;
    }
    for blob in &program.blobs {
        blobs::send(&mut stream, blob).await?;
    }
    stream.shutdown().await
}

/// Reads a stream to its end, records its start, and publishes that while it arrives.
async fn receive_head(
    mut stream: wire::Stream,
    head: &mut Vec<u8>,
    bytes_max: u64,
    mut publish: impl FnMut(&[u8]),
) -> io::Result<()> {
    let bytes_max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
    let mut buffer = vec![0; 32 * 1024];
    loop {
        let read = stream.read(&mut buffer).await?;
        if read == 0 {
            return Ok(());
        }
        let retained = &buffer[..read.min(bytes_max - head.len())];
        head.extend_from_slice(retained);
        publish(retained);
    }
}

/// An error if the sender was dropped.
type StartSignal = Result<(), oneshot::error::RecvError>;

/// The guest's reports about the program.
#[derive(Default)]
struct ProgramState {
    hello: bool,
    end: Option<ProgramEnd>,
    /// Bytes of both streams and of the log.
    totals: [u64; 3],
    usage: Usage,
    started_at: Option<Instant>,
    ended_at: Option<Instant>,
}

impl ProgramState {
    async fn wait_for_start(&mut self, start: impl Future<Output = StartSignal>) -> io::Result<()> {
        let signal = start.await;
        if signal.is_err() {
            self.end = Some(ProgramEnd::NotStarted(
                "its execution could not be recorded".to_owned(),
            ));
        }
        signal.map_err(io::Error::other)
    }

    /// Starts the program and receives states until it has ended. Forwards a cancellation, and times out an overdue
    /// guest.
    async fn follow(
        &mut self,
        control: &mut wire::Stream,
        job: &Job,
        cancel: CancellationToken,
        start: impl Future<Output = StartSignal>,
    ) -> io::Result<()> {
        self.wait_for_start(start).await?;
        let (mut reader, mut writer) = tokio::io::split(control);
        let mut overdue = Instant::now() + limits::SANDBOX_START_MAX;
        send_before(&mut writer, ToGuest::Start(start_command(job)), overdue).await?;
        let mut keep_alive = interval_at(Instant::now() + KEEP_ALIVE_EVERY, KEEP_ALIVE_EVERY);
        let mut cancelled = false;
        let receive = |mut reader| async move {
            let frame = wire::receive::<_, ToHost>(&mut reader, wire::FRAME_TO_HOST_BYTES_MAX).await;
            (frame, reader)
        };
        // Not cancelled by the other branches, which would lose half of a frame.
        let mut next = Box::pin(receive(reader));
        loop {
            let step = tokio::select! {
                (frame, back) = &mut next => {
                    reader = back;
                    let frame = frame?.ok_or_else(|| wire::invalid("the guest fell silent"))?;
                    if let ToHost::Done { stdout_bytes, stderr_bytes, log_lines_bytes, usage } = frame {
                        self.totals = [stdout_bytes, stderr_bytes, log_lines_bytes];
                        self.usage = Usage {
                            cpu_ms: usage.cpu_ms,
                            memory_peak_bytes: usage.memory_peak_bytes,
                            processes_peak: usage.processes_peak,
                            oom_kills: usage.oom_kills,
                        };
                        return Ok(());
                    }
                    let due = self.apply(frame, job)?;
                    // A state that was already sent must not extend the time of a cancelled program.
                    overdue = if cancelled && self.end.is_none() { overdue.min(due) } else { due };
                    next = Box::pin(receive(reader));
                    Ok(())
                }
                () = cancel.cancelled(), if !cancelled => {
                    cancelled = true;
                    overdue = overdue.min(Instant::now() + limits::KILL_GRACE);
                    ignore_closed(send_before(&mut writer, ToGuest::Cancel, overdue).await)
                }
                _ = keep_alive.tick() => ignore_closed(send_before(&mut writer, ToGuest::KeepAlive, overdue).await),
                () = sleep_until(overdue) => Err(io::ErrorKind::TimedOut.into()),
            };
            if step
                .as_ref()
                .is_err_and(|error| error.kind() == io::ErrorKind::TimedOut)
            {
                self.time_out(cancelled);
            }
            step?;
        }
    }

    /// The guest missed the deadline, perhaps starved by its program. The cause of the end stays the same.
    fn time_out(&mut self, cancelled: bool) {
        if self.end.is_some() {
            return;
        }
        if cancelled {
            self.end = Some(ProgramEnd::Cancelled);
        } else if self.started_at.is_some() {
            self.end = Some(ProgramEnd::TimedOut);
        }
        self.ended_at = Some(Instant::now());
    }

    /// Each state may arrive once, in order. Returns when the next is overdue.
    fn apply(&mut self, frame: ToHost, job: &Job) -> io::Result<Instant> {
        let now = Instant::now();
        match frame {
            ToHost::Hello { version } if version == wire::VERSION && !self.hello => {
                self.hello = true;
                Ok(now + limits::SANDBOX_START_MAX)
            }
            ToHost::Started if self.hello && self.started_at.is_none() => {
                self.started_at = Some(now);
                Ok(now + job.sandbox.limits.timeout + limits::KILL_GRACE)
            }
            ToHost::Ended { end } if self.hello && self.end.is_none() => {
                self.end = Some(end);
                self.ended_at = Some(now);
                Ok(now + collect_max(job))
            }
            ToHost::Hello { .. }
            | ToHost::Warm
            | ToHost::Started
            | ToHost::Ended { .. }
            | ToHost::Done { .. } => Err(wire::invalid("a state out of order")),
        }
    }
}

/// A stalled engine accepts no more bytes: sending ends when the guest is overdue.
async fn send_before<W>(writer: &mut W, command: ToGuest, overdue: Instant) -> io::Result<()>
where
    W: AsyncWrite + Unpin,
{
    let left = overdue.saturating_duration_since(Instant::now());
    with_timeout(left, wire::send(writer, &command)).await
}

/// A guest that closed its side may have ended; its earlier messages are still read.
fn ignore_closed(sent: io::Result<()>) -> io::Result<()> {
    sent.or_else(|error| match error.kind() {
        io::ErrorKind::TimedOut => Err(error),
        _ => Ok(()),
    })
}

async fn with_timeout(limit: Duration, future: impl Future<Output = io::Result<()>>) -> io::Result<()> {
    timeout(limit, future)
        .await
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// Well below the 10 minutes after which proxies cut an idle connection.
const KEEP_ALIVE_EVERY: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests;
