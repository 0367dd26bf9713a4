//! Messages of executions from and to the types of `api`.

use super::call::{each, field, invalid, optional, or_default, unknown, unknown_text};
use super::proto::{self, ExecutionPart, ExecutionStatus, RunCodeRequest, RunSkillRequest};
use crate::api::{Args, CreateExecution, Files, Mode};
use crate::engine::{OnDisconnect, RunOptions, RunSpec};
use crate::error::Error;
use crate::execution::{
    AskedLimits, Envelope, EnvelopePart, Exception, ExecutionKey, ExecutionLimits, Failure, FileLink,
    GrantedLimits, JsonText, LogLine, Logs, Omitted, OutputBlob, QueuePlace, ResultForm, RichResult, Skipped,
    Status, Summary, Timings, Usage, Workdir,
};
use crate::sandbox::InputFile;
use crate::skill::Language;

/// A program to run, and how.
pub(super) struct Program {
    pub(super) spec: RunSpec,
    pub(super) mode: Mode,
    pub(super) options: RunOptions,
}

/// The fields that both messages have; the others are given.
macro_rules! create_execution {
    ($message:ident, $($field:ident: $value:expr),*) => {
        CreateExecution {
            input: json("input", $message.input)?,
            args: Args::Words($message.args),
            files: files($message.files)?,
            blobs: each("blobs", &$message.blobs)?,
            stdin: $message.stdin,
            mount_skills: each("mount_skills", &$message.mount_skills)?,
            requirements: $message.requirements,
            timeout: $message.timeout,
            callback_url: $message.callback_url,
            mode: mode($message.mode)?,
            on_disconnect: on_disconnect($message.on_disconnect)?,
            $($field: $value),*
        }
    };
}

impl TryFrom<RunSkillRequest> for Program {
    type Error = Error;

    fn try_from(message: RunSkillRequest) -> Result<Self, Error> {
        let create = create_execution!(message,
            skill: Some(field("skill", &message.skill)?),
            version: Some(or_default("version", &message.version)?),
            code: None,
            language: None,
            script: message.script,
            workdir: workdir(message.workdir)?
        );
        Self::new(create, message.idempotency_key)
    }
}

impl TryFrom<RunCodeRequest> for Program {
    type Error = Error;

    fn try_from(message: RunCodeRequest) -> Result<Self, Error> {
        let create = create_execution!(message,
            skill: None,
            version: None,
            code: Some(message.code),
            language: language(&message.language)?,
            script: None,
            workdir: None
        );
        Self::new(create, message.idempotency_key)
    }
}

impl Program {
    fn new(create: CreateExecution, key: Option<String>) -> Result<Self, Error> {
        let (mode, on_disconnect) = (create.mode, create.on_disconnect);
        mode.check(on_disconnect, None)?;
        Ok(Self {
            spec: create.try_into()?,
            mode,
            options: RunOptions {
                idempotency_key: optional("idempotency_key", key)?,
                on_disconnect: on_disconnect.unwrap_or_default(),
                key: None,
            },
        })
    }
}

fn json(name: &str, bytes: Option<Vec<u8>>) -> Result<Option<JsonText>, Error> {
    let parsed = bytes.map(|bytes| JsonText::parse(&bytes)).transpose();
    parsed.map_err(|error| invalid(name, error))
}

fn files(files: Vec<proto::InputFile>) -> Result<Files, Error> {
    let mut read = Files::default();
    for proto::InputFile { path, content } in files {
        read.push(InputFile { path, content })
            .map_err(|error| invalid("files", error))?;
    }
    Ok(read)
}

fn language(text: &str) -> Result<Option<Language>, Error> {
    if text.is_empty() {
        return Ok(None);
    }
    let language = Language::from_alias(text).ok_or_else(|| unknown_text("language", text))?;
    Ok(Some(language))
}

fn mode(number: i32) -> Result<Mode, Error> {
    match proto::Mode::try_from(number) {
        Ok(proto::Mode::Unspecified | proto::Mode::Sync) => Ok(Mode::Sync),
        Ok(proto::Mode::Async) => Ok(Mode::Async),
        Err(_) => Err(unknown("mode", number)),
    }
}

fn on_disconnect(number: i32) -> Result<Option<OnDisconnect>, Error> {
    match proto::OnDisconnect::try_from(number) {
        Ok(proto::OnDisconnect::Unspecified) => Ok(None),
        Ok(proto::OnDisconnect::Continue) => Ok(Some(OnDisconnect::Continue)),
        Ok(proto::OnDisconnect::Cancel) => Ok(Some(OnDisconnect::Cancel)),
        Err(_) => Err(unknown("on_disconnect", number)),
    }
}

fn workdir(number: i32) -> Result<Option<Workdir>, Error> {
    match proto::Workdir::try_from(number) {
        Ok(proto::Workdir::Unspecified) => Ok(None),
        Ok(proto::Workdir::Request) => Ok(Some(Workdir::Request)),
        Ok(proto::Workdir::Skill) => Ok(Some(Workdir::Skill)),
        Err(_) => Err(unknown("workdir", number)),
    }
}

pub(super) fn status(number: i32) -> Result<Status, Error> {
    let known = |status: &Status| status_number(*status) == number;
    let status = Status::ALL.into_iter().find(known);
    status.ok_or_else(|| unknown("statuses", number))
}

pub(super) fn omitted(parts: &[i32]) -> Result<Omitted, Error> {
    let part = |number: &i32| match ExecutionPart::try_from(*number) {
        Ok(ExecutionPart::Logs) => Ok(EnvelopePart::Logs),
        Ok(ExecutionPart::Results) => Ok(EnvelopePart::Results),
        Ok(ExecutionPart::Output) => Ok(EnvelopePart::Output),
        Ok(ExecutionPart::Unspecified) | Err(_) => Err(unknown("omit", *number)),
    };
    parts.iter().map(part).collect()
}

pub(super) fn status_number(status: Status) -> i32 {
    match status {
        Status::Queued => ExecutionStatus::Queued,
        Status::Running => ExecutionStatus::Running,
        Status::Success => ExecutionStatus::Success,
        Status::Failed => ExecutionStatus::Failed,
        Status::Timeout => ExecutionStatus::Timeout,
        Status::Oom => ExecutionStatus::Oom,
        Status::Cancelled => ExecutionStatus::Cancelled,
        Status::Denied => ExecutionStatus::Denied,
        Status::Interrupted => ExecutionStatus::Interrupted,
    }
    .into()
}

fn part_number(part: EnvelopePart) -> i32 {
    match part {
        EnvelopePart::Logs => ExecutionPart::Logs,
        EnvelopePart::Results => ExecutionPart::Results,
        EnvelopePart::Output => ExecutionPart::Output,
    }
    .into()
}

fn workdir_number(workdir: Option<Workdir>) -> i32 {
    match workdir {
        None => proto::Workdir::Unspecified,
        Some(Workdir::Request) => proto::Workdir::Request,
        Some(Workdir::Skill) => proto::Workdir::Skill,
    }
    .into()
}

/// An execution with the bytes of its logs, which the envelope has as text.
pub(super) fn execution(envelope: Envelope, logs: Option<&Logs>) -> proto::Execution {
    proto::Execution {
        execution_id: envelope.execution_id.to_string(),
        status: status_number(envelope.status),
        skill: envelope.skill.map(|skill| skill.to_string()),
        version: envelope.version.map(|version| version.to_string()),
        digest: envelope.digest.map(|digest| digest.to_string()),
        language: envelope.language.map(|language| language.as_str().to_owned()),
        backend: envelope.backend,
        backend_reason: envelope.backend_reason,
        degraded: envelope.degraded,
        output: envelope.output.map(|output| output.as_str().as_bytes().to_vec()),
        output_preview: envelope.output_preview,
        results: into_all(envelope.results),
        results_truncated: envelope.results_truncated,
        error: envelope.error.map(Into::into),
        exit_code: envelope.exit_code,
        logs: Some(logs.map(Into::into).unwrap_or_default()),
        logs_preview: envelope.logs_preview,
        files: into_all(envelope.files),
        files_url: envelope.files_url,
        files_list: envelope.files_list,
        files_skipped: into_all(envelope.files_skipped),
        files_skipped_total: envelope.files_skipped_total,
        output_blobs: into_all(envelope.output_blobs),
        queue: envelope.queue.map(Into::into),
        workdir: workdir_number(envelope.workdir),
        requirements: envelope.requirements.unwrap_or_default(),
        key: envelope.key.map(Into::into),
        duration_ms: envelope.duration_ms,
        limits: envelope.limits.map(Into::into),
        timings: envelope.timings.map(Into::into),
        usage: envelope.usage.map(Into::into),
        created_at: envelope.created_at.to_string(),
        finished_at: envelope.finished_at.map(|at| at.to_string()),
        omitted: envelope.omitted.into_iter().map(part_number).collect(),
    }
}

pub(super) fn into_all<T, M: From<T>>(all: Vec<T>) -> Vec<M> {
    all.into_iter().map(M::from).collect()
}

impl From<Summary> for proto::ExecutionSummary {
    fn from(summary: Summary) -> Self {
        Self {
            execution_id: summary.execution_id.to_string(),
            status: status_number(summary.status),
            skill: summary.skill.map(|skill| skill.to_string()),
            version: summary.version.map(|version| version.to_string()),
            digest: summary.digest.map(|digest| digest.to_string()),
            language: summary.language.map(|language| language.as_str().to_owned()),
            backend: summary.backend,
            error: summary.error.map(Into::into),
            exit_code: summary.exit_code,
            key: summary.key.map(Into::into),
            duration_ms: summary.duration_ms,
            created_at: summary.created_at.to_string(),
            finished_at: summary.finished_at.map(|at| at.to_string()),
        }
    }
}

impl From<RichResult> for proto::RichResult {
    fn from(result: RichResult) -> Self {
        let form = |form: ResultForm| Some((form.to_string(), result.content(form)?.into_owned()));
        Self {
            forms: result.forms().filter_map(form).collect(),
            is_main_result: result.is_main_result,
            truncated: result.truncated,
            urls: result.urls.into_iter().collect(),
        }
    }
}

impl From<Failure> for proto::Failure {
    fn from(failure: Failure) -> Self {
        let Failure {
            code,
            message,
            exception,
        } = failure;
        let exception = exception.map(
            |Exception {
                 name,
                 value,
                 traceback,
             }| proto::Exception {
                name,
                value,
                traceback,
            },
        );
        Self {
            code,
            message,
            exception,
        }
    }
}

impl From<&Logs> for proto::Logs {
    fn from(logs: &Logs) -> Self {
        Self {
            stdout: logs.stdout.clone(),
            stderr: logs.stderr.clone(),
            truncated: logs.truncated(),
            lines: into_all(logs.lines.clone()),
            lines_truncated: logs.lines_truncated,
        }
    }
}

impl From<LogLine> for proto::LogLine {
    fn from(line: LogLine) -> Self {
        Self {
            time: line.time.map(|time| time.to_string()),
            level: line.level.as_str().to_ascii_lowercase(),
            message: line.message,
            fields: line.fields.map(|fields| fields.as_str().as_bytes().to_vec()),
        }
    }
}

impl From<FileLink> for proto::FileLink {
    fn from(file: FileLink) -> Self {
        Self {
            path: file.path,
            size: file.size,
            sha256: file.sha256.to_string(),
            media_type: file.media_type,
            url: file.url,
        }
    }
}

impl From<Skipped> for proto::SkippedFile {
    fn from(Skipped { path, reason }: Skipped) -> Self {
        Self { path, reason }
    }
}

impl From<OutputBlob> for proto::OutputBlob {
    fn from(OutputBlob { blob_id, size }: OutputBlob) -> Self {
        let blob_id = blob_id.to_string();
        Self { blob_id, size }
    }
}

impl From<QueuePlace> for proto::QueuePlace {
    fn from(place: QueuePlace) -> Self {
        Self {
            position: place.position as u64,
            waiting: place.waiting as u64,
            waited_ms: place.waited_ms,
        }
    }
}

impl From<ExecutionKey> for proto::ExecutionKey {
    fn from(ExecutionKey { id, name }: ExecutionKey) -> Self {
        let id = id.to_string();
        Self { id, name }
    }
}

impl From<ExecutionLimits> for proto::ExecutionLimits {
    fn from(ExecutionLimits { asked, granted }: ExecutionLimits) -> Self {
        let AskedLimits {
            memory_bytes,
            cpu_millis,
            timeout_ms,
            workspace_bytes,
        } = asked;
        let asked = proto::Limits {
            memory_bytes,
            cpu_millis,
            timeout_ms,
            workspace_bytes,
        };
        let GrantedLimits {
            memory_bytes,
            cpu_millis,
            timeout_ms,
            workspace_bytes,
        } = granted;
        let granted = proto::Limits {
            memory_bytes: Some(memory_bytes),
            cpu_millis: Some(cpu_millis),
            timeout_ms: Some(timeout_ms),
            workspace_bytes: Some(workspace_bytes),
        };
        Self {
            asked: Some(asked),
            granted: Some(granted),
        }
    }
}

impl From<Timings> for proto::Timings {
    fn from(timings: Timings) -> Self {
        Self {
            queue_ms: timings.queue_ms,
            sandbox_ms: timings.sandbox_ms,
            run_ms: timings.run_ms,
            collect_ms: timings.collect_ms,
            warm: timings.warm,
        }
    }
}

impl From<Usage> for proto::Usage {
    fn from(usage: Usage) -> Self {
        Self {
            cpu_ms: usage.cpu_ms,
            memory_peak_bytes: usage.memory_peak_bytes,
            processes_peak: usage.processes_peak,
            oom_kills: usage.oom_kills,
        }
    }
}
