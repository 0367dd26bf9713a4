//! The host's side of one execution: speaks to the guest over any byte stream and believes nothing it says.

mod blobs;
mod guest;
mod half_closed;
mod log_stream;
mod results;

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::oneshot;
use tokio::time::{Instant, interval_at, sleep_until, timeout};

use crate::execution::{FileEntry, Logs, Shown, Skipped, Stream, Transcript, Usage};
use crate::guest::wire::{
    self, Caps, Channel, Input, InputPlace, Link, ProgramEnd, Start, ToGuest, ToHost, Workspace,
};
use crate::limits;
use crate::sandbox::{Collect, Egress, Job, ProgramOutput};
use crate::secret::Mask;

use blobs::Blobs;
use guest::Streams;
use log_stream::{LogLineMasker, OutputMasker};
use results::ResultReceiver;

pub(super) use guest::Guest;

/// What the guest said by the time it, or its connection, ended.
#[derive(Debug)]
pub(super) struct GuestReport {
    /// How the program ended; `None` if the guest never said.
    pub(super) end: Option<ProgramEnd>,
    /// Whether it waited for this.
    pub(super) warm: bool,
    /// Whether the guest answered at all.
    pub(super) hello: bool,
    /// Whether everything it had to say was heard.
    pub(super) complete: bool,
    pub(super) output: ProgramOutput,
    pub(super) shown: Shown,
    pub(super) logs: Logs,
    pub(super) files: Vec<FileEntry>,
    pub(super) skipped: Vec<Skipped>,
    pub(super) skipped_total: u64,
    pub(super) blobs: Vec<FileEntry>,
    pub(super) usage: Usage,
    pub(super) started_at: Option<Instant>,
    pub(super) ended_at: Option<Instant>,
    /// The connection, once all was heard: its end tells the guest to go.
    pub(super) link: Option<Link>,
}

/// What the host may keep of one execution.
fn caps(job: &Job) -> Caps {
    let caps = Caps {
        output_bytes: limits::OUTPUT_BYTES_MAX,
        results_bytes: limits::RESULTS_BYTES_MAX,
        log_bytes: limits::LOG_BYTES_MAX,
        log_lines_bytes: limits::LOG_LINES_BYTES_MAX,
        files: limits::FILES_MAX,
        files_bytes: limits::FILES_BYTES_MAX,
        files_depth: limits::FILES_DEPTH_MAX,
        path_bytes: limits::FILE_PATH_BYTES_MAX,
        paths_bytes: limits::FILE_PATHS_BYTES_MAX,
        skipped_named: limits::SKIPPED_NAMED_MAX,
        blobs: limits::OUTPUT_BLOBS_MAX,
        blobs_bytes: limits::OUTPUT_BLOBS_BYTES_MAX,
    };
    match job.collect {
        Collect::Out | Collect::Workspace => caps,
        Collect::Packages => Caps {
            files: limits::PACKAGES_FILES_MAX,
            // As much as there is room for: what of it is kept, the installer decides.
            files_bytes: limits::PACKAGES_BYTES_MAX.min(job.limits.sandbox_bytes),
            path_bytes: limits::ARCHIVE_PATH_BYTES_MAX,
            paths_bytes: limits::PACKAGES_PATHS_BYTES_MAX,
            blobs: 0,
            ..caps
        },
    }
}

/// How long reading back what a job left may take.
fn collect_max(job: &Job) -> Duration {
    match job.collect {
        Collect::Out | Collect::Workspace => limits::COLLECT_MAX,
        Collect::Packages => limits::PACKAGES_COLLECT_MAX,
    }
}

/// Runs `job` by this guest and listens until it is done, its connection ends, or it is overdue.
/// Whatever happens, the caller destroys the sandbox afterwards.
pub(super) async fn drive(guest: Guest, job: &Job, run: super::Run<'_>) -> GuestReport {
    let Guest { mut link, streams } = guest;
    let mut guest_report = GuestReport {
        end: None,
        warm: streams.is_some(),
        hello: false,
        complete: false,
        output: ProgramOutput::Missing,
        shown: Shown::default(),
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
    // An error here means that the connection broke: what was heard until then is all there is.
    if let Err(error) = listen((&mut link, streams), job, run, &mut guest_report).await {
        tracing::warn!(%error, execution = %job.execution, "Stopped listening to a guest before it was done");
    }
    guest_report.link = guest_report.complete.then_some(link);
    guest_report
}

async fn listen(
    (link, warm): (&mut Link, Option<Streams>),
    job: &Job,
    run: super::Run<'_>,
    guest_report: &mut GuestReport,
) -> io::Result<()> {
    let super::Run {
        artifacts,
        blobs: blobs_tar,
        cancel,
        go,
        transcript,
    } = run;
    let mut state = ProgramState {
        hello: warm.is_some(),
        ..ProgramState::default()
    };
    let Streams {
        mut control,
        inputs,
        stdout,
        stderr,
        results,
        log,
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
    } = guest_report;
    let mut lines = Vec::new();
    let mut collected = ResultReceiver {
        mask: &job.mask,
        artifacts,
        output,
        shown,
        files,
        skipped,
        skipped_total,
        blobs: Blobs::into(blobs_tar, blobs),
        caps: caps(job),
        bytes: 0,
        paths_bytes: 0,
    };
    let result = {
        let streams = async {
            // A guest without its inputs says so, or falls silent; one that is done may go before it is told their end.
            let (_, printed, results) = tokio::join!(
                send_inputs(inputs, job),
                collect_output((stdout, stderr, log), (logs, &mut lines), (transcript, &job.mask)),
                collected.receive(results)
            );
            printed.and(results)
        };
        let states = state.follow(&mut control, job, (cancel, go));
        let both = join_both(streams, states, collect_max(job));
        let total = limits::SANDBOX_START_MAX + job.limits.timeout + limits::KILL_GRACE + collect_max(job);
        tokio::select! {
            guest_report = with_timeout(total, both) => guest_report,
            broken = forward_egress(link, job.egress.as_ref()) => broken,
        }
    };
    guest_report.finish(state, &lines, result.is_ok());
    result
}

/// Reads what is printed and logged to its end, keeps the head of each, and tells it meanwhile.
async fn collect_output(
    (stdout, stderr, log): (wire::Stream, wire::Stream, wire::Stream),
    (logs, lines): (&mut Logs, &mut Vec<u8>),
    (transcript, mask): (&Transcript, &Mask),
) -> io::Result<()> {
    let output = |stream| OutputMasker::new(transcript, mask, stream);
    let (mut out, mut err) = (output(Stream::Stdout), output(Stream::Stderr));
    let mut logging = LogLineMasker::new(transcript, mask);
    let max = limits::LOG_BYTES_MAX;
    let (stdout, stderr, log) = tokio::join!(
        copy_head(stdout, (&mut logs.stdout, max), |bytes| out.push(bytes)),
        copy_head(stderr, (&mut logs.stderr, max), |bytes| err.push(bytes)),
        copy_head(log, (lines, limits::LOG_LINES_BYTES_MAX), |bytes| logging
            .push(bytes)),
    );
    stdout.and(stderr).and(log)
}

/// Waits for the streams and the states; the first that fails ends both.
async fn join_both(
    streams: impl Future<Output = io::Result<()>>,
    states: impl Future<Output = io::Result<()>>,
    collect_max: Duration,
) -> io::Result<()> {
    tokio::pin!(streams, states);
    tokio::select! {
        guest_report = &mut streams => {
            guest_report?;
            states.await
        }
        said = &mut states => {
            said?;
            // All was said: what is still on its way arrives soon.
            with_timeout(collect_max, streams).await
        }
    }
}

/// Hands on the connections that are made inside, where the job has a way out; ends only when the guest opens what nobody
/// asked for.
async fn forward_egress(link: &mut Link, egress: Option<&Egress>) -> io::Result<()> {
    let Some(egress) = egress else {
        return std::future::pending().await;
    };
    loop {
        match link.accept().await {
            Ok((Channel::Egress, stream)) => egress.forward(stream),
            Ok(_) => return Err(wire::invalid("a channel that only the host opens")),
            // What was said before is still to be read.
            Err(_) => return std::future::pending().await,
        }
    }
}

impl GuestReport {
    /// Takes what was said; what was not heard is said (P9).
    fn finish(&mut self, state: ProgramState, lines: &[u8], complete: bool) {
        // Without the guest's count nobody knows how much of the logs was lost.
        let unheard = u64::from(!complete && state.started_at.is_some());
        let [stdout, stderr, log] = state.totals;
        self.logs.stdout_total = stdout.max(self.logs.stdout.len() as u64 + unheard);
        self.logs.stderr_total = stderr.max(self.logs.stderr.len() as u64 + unheard);
        self.logs.take_lines(lines, log.max(lines.len() as u64 + unheard));
        self.complete = complete;
        self.hello = state.hello;
        self.end = state.end;
        self.usage = state.usage;
        self.started_at = state.started_at;
        self.ended_at = state.ended_at;
    }
}

fn start(job: &Job) -> Start {
    Start {
        version: wire::VERSION,
        skill: job.skill.as_ref().map(|skill| skill.name.to_string()),
        argv: job.argv.clone(),
        env: job.env.variables().to_vec(),
        workspace: match job.collect {
            Collect::Out | Collect::Packages => Workspace::Scratch,
            Collect::Workspace => Workspace::Results,
        },
        timeout_ms: u64::try_from(job.limits.timeout.as_millis()).unwrap_or(u64::MAX),
        egress: job.egress.is_some().then_some(Egress::PORT),
        caps: caps(job),
    }
}

async fn send_inputs(mut stream: wire::Stream, job: &Job) -> io::Result<()> {
    let json = job.input.as_str().as_bytes();
    let files = job
        .files
        .iter()
        .map(|file| (InputPlace::Workspace(file.path.clone()), &file.content[..]));
    let stdin = job
        .stdin
        .as_ref()
        .map(|content| (InputPlace::Stdin, &content[..]));
    let code = job
        .code
        .as_ref()
        .map(|content| (InputPlace::Code, content.as_bytes()));
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
    for blob in &job.blobs {
        blobs::send(&mut stream, blob).await?;
    }
    stream.shutdown().await
}

/// Reads what is printed to its end and keeps its head, which is told as it comes.
async fn copy_head(
    mut stream: wire::Stream,
    (kept, bytes_max): (&mut Vec<u8>, u64),
    mut observe: impl FnMut(&[u8]),
) -> io::Result<()> {
    let bytes_max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
    let mut buffer = vec![0; 32 * 1024];
    loop {
        let read = stream.read(&mut buffer).await?;
        if read == 0 {
            return Ok(());
        }
        let head = &buffer[..read.min(bytes_max - kept.len())];
        kept.extend_from_slice(head);
        observe(head);
    }
}

/// What the guest says about the program.
#[derive(Default)]
struct ProgramState {
    hello: bool,
    end: Option<ProgramEnd>,
    /// Bytes of the two streams and of the log.
    totals: [u64; 3],
    usage: Usage,
    started_at: Option<Instant>,
    ended_at: Option<Instant>,
}

impl ProgramState {
    /// Waits for the word to start the program.
    async fn wait_for_start(&mut self, go: oneshot::Receiver<()>) -> io::Result<()> {
        let told = go.await;
        if told.is_err() {
            self.end = Some(ProgramEnd::NotStarted(
                "its execution could not be recorded".to_owned(),
            ));
        }
        told.map_err(io::Error::other)
    }

    /// Starts the program and follows the guest's states until it is done. Passes a cancel on, and gives up on a guest that is overdue.
    async fn follow(
        &mut self,
        control: &mut wire::Stream,
        job: &Job,
        (cancel, go): (tokio_util::sync::CancellationToken, oneshot::Receiver<()>),
    ) -> io::Result<()> {
        self.wait_for_start(go).await?;
        let (mut reader, mut writer) = tokio::io::split(control);
        let mut overdue = Instant::now() + limits::SANDBOX_START_MAX;
        send_before(&mut writer, ToGuest::Start(start(job)), overdue).await?;
        let mut keep_alive = interval_at(Instant::now() + KEEP_ALIVE_EVERY, KEEP_ALIVE_EVERY);
        let mut cancelled = false;
        let receive = |mut reader| async move {
            let frame = wire::receive::<_, ToHost>(&mut reader, wire::FRAME_TO_HOST_BYTES_MAX).await;
            (frame, reader)
        };
        // One read runs across the other branches: a frame that was half read must not be lost.
        let mut next = Box::pin(receive(reader));
        loop {
            let said = tokio::select! {
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
                    let due = self.take(frame, job)?;
                    // A cancelled program is not given its time again because a state was still on its way.
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
            if said
                .as_ref()
                .is_err_and(|error| error.kind() == io::ErrorKind::TimedOut)
            {
                self.time_out(cancelled);
            }
            said?;
        }
    }

    /// A guest that cannot keep the deadline, starved by its own program perhaps, does not change what happened.
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

    /// Takes one state; each may come once, in order. Returns when the next is overdue.
    fn take(&mut self, frame: ToHost, job: &Job) -> io::Result<Instant> {
        let now = Instant::now();
        match frame {
            ToHost::Hello { version } if version == wire::VERSION && !self.hello => {
                self.hello = true;
                Ok(now + limits::SANDBOX_START_MAX)
            }
            ToHost::Started if self.hello && self.started_at.is_none() => {
                self.started_at = Some(now);
                Ok(now + job.limits.timeout + limits::KILL_GRACE)
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

/// Says one thing while there is still time for it: an engine that has stalled takes nothing more.
async fn send_before<W>(writer: &mut W, words: ToGuest, overdue: Instant) -> io::Result<()>
where
    W: AsyncWrite + Unpin,
{
    let left = overdue.saturating_duration_since(Instant::now());
    with_timeout(left, wire::send(writer, &words)).await
}

/// A guest that hears nothing any more may be done: what it said before is still to be read, and tells.
fn ignore_closed(said: io::Result<()>) -> io::Result<()> {
    said.or_else(|error| match error.kind() {
        io::ErrorKind::TimedOut => Err(error),
        _ => Ok(()),
    })
}

async fn with_timeout(limit: Duration, act: impl Future<Output = io::Result<()>>) -> io::Result<()> {
    timeout(limit, act)
        .await
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// Well below the 10 minutes after which proxies cut an idle tunnel.
const KEEP_ALIVE_EVERY: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests;
