//! The JSON of an execution, the same for every transport and the command line. Absent values are `null`, never
//! missing.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::execution::{
    EnvelopePart, Execution, ExecutionKey, ExecutionLimits, Failure, JsonText, LogLine, Logs, Outcome,
    OutputBlob, RichResult, Skipped, Status, Timings, Usage,
};
use crate::execution::{Workdir, preview};
use crate::ids::{Digest, ExecutionId};
use crate::skill::{Language, SkillName, Version};

/// An execution with output, logs and files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Envelope {
    #[schema(value_type = String, format = Uuid)]
    pub execution_id: ExecutionId,
    /// State.
    pub status: Status,
    /// Skill; `null` for code.
    #[schema(value_type = Option<String>, format = "skill-name", required, example = "data-analysis")]
    pub skill: Option<SkillName>,
    /// Version of the skill.
    #[schema(value_type = Option<String>, format = "version", required, example = "1.2.0")]
    pub version: Option<Version>,
    /// Digest of the content that ran.
    #[schema(value_type = Option<String>, format = "digest", required)]
    pub digest: Option<Digest>,
    /// Language of the program; `null` from servers of earlier releases.
    #[serde(default)]
    #[schema(required)]
    pub language: Option<Language>,
    /// Backend; `null` until the execution has a slot.
    #[schema(required, example = "docker")]
    pub backend: Option<String>,
    /// Why this backend was selected.
    #[schema(required)]
    pub backend_reason: Option<String>,
    /// Promises that this host only keeps partly, such as `P6`. Usually empty.
    #[serde(default)]
    #[schema(required)]
    pub degraded: Vec<String>,
    /// Content of `output.json`, byte for byte.
    #[schema(value_type = Option<serde_json::Value>, required)]
    pub output: Option<JsonText>,
    /// Start of the output for a model, at most 4 KiB, with a note about truncation.
    #[schema(required)]
    pub output_preview: Option<String>,
    /// Rich results of called code, such as charts.
    pub results: Vec<RichResult>,
    /// Whether results were discarded.
    #[serde(default)]
    #[schema(required)]
    pub results_truncated: bool,
    /// Why the execution is not a success.
    #[schema(required)]
    pub error: Option<Failure>,
    /// Exit code, if the program exited by itself.
    #[schema(required)]
    pub exit_code: Option<i32>,
    /// Standard output, standard error and log.
    pub logs: LogTexts,
    /// End of both streams for a model, at most 2 KiB, with a note about truncation.
    #[serde(default)]
    #[schema(required)]
    pub logs_preview: String,
    /// File artifacts.
    pub files: Vec<FileLink>,
    /// URL of all files as one `tar.gz`; `null` if there are none.
    #[schema(required)]
    pub files_url: Option<String>,
    /// Paths of `files`.
    pub files_list: Vec<String>,
    /// First files that were not collected.
    pub files_skipped: Vec<Skipped>,
    /// Number of files that were not collected.
    pub files_skipped_total: u64,
    /// Blobs that the program returned.
    pub output_blobs: Vec<OutputBlob>,
    /// Position in the queue; `null` once it has a slot.
    #[serde(default)]
    #[schema(required)]
    pub queue: Option<QueuePlace>,
    /// What the working directory started with; `null` for executions of earlier releases.
    #[serde(default)]
    #[schema(required)]
    pub workdir: Option<Workdir>,
    /// Packages that were added to the published skill, then those of the request; not those that its files declare. `null` for
    /// executions of earlier releases.
    #[serde(default)]
    #[schema(required)]
    pub requirements: Option<Vec<String>>,
    /// API key that started it; `null` for executions of earlier releases and of command lines.
    #[serde(default)]
    #[schema(required)]
    pub key: Option<ExecutionKey>,
    /// Milliseconds from acceptance to end; `null` while it runs.
    #[schema(required)]
    pub duration_ms: Option<u64>,
    /// What was asked for and what was granted.
    #[serde(default)]
    #[schema(required)]
    pub limits: Option<ExecutionLimits>,
    /// Duration of each phase; `null` while it runs.
    #[schema(required)]
    pub timings: Option<Timings>,
    /// Resource usage; `null` while it runs.
    #[schema(required)]
    pub usage: Option<Usage>,
    /// Time of acceptance.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: jiff::Timestamp,
    /// Time of the end.
    #[schema(value_type = Option<String>, format = DateTime, required)]
    pub finished_at: Option<jiff::Timestamp>,
    /// Parts that the request omitted: their members are empty here, whatever the execution left.
    #[serde(default)]
    #[schema(required)]
    pub omitted: Vec<EnvelopePart>,
}

/// Recorded output as text. Invalid UTF-8 is shown as U+FFFD.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LogTexts {
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// Whether output was discarded.
    pub truncated: bool,
    /// Lines of the helper `log`.
    #[serde(default)]
    #[schema(required)]
    pub lines: Vec<LogLine>,
    /// Whether further lines were discarded.
    #[serde(default)]
    #[schema(required)]
    pub lines_truncated: bool,
}

/// Position in the tenant's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct QueuePlace {
    /// 1 for the next.
    #[schema(minimum = 1)]
    pub position: usize,
    /// Number of waiting executions.
    pub waiting: usize,
    /// Milliseconds since acceptance.
    pub waited_ms: u64,
}

/// A file artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct FileLink {
    /// Path below `out/files`.
    #[schema(example = "report.pdf")]
    pub path: String,
    /// Size in bytes.
    pub size: u64,
    /// Digest of the content.
    #[schema(value_type = String, format = "digest")]
    pub sha256: Digest,
    /// Derived from the extension.
    #[schema(example = "application/pdf")]
    pub media_type: String,
    /// URL that works without a key until it expires; `null` without a server.
    #[schema(required)]
    pub url: Option<String>,
}

/// An execution in a list, without output, logs and files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Summary {
    #[schema(value_type = String, format = Uuid)]
    pub execution_id: ExecutionId,
    /// State.
    pub status: Status,
    /// Skill; `null` for code.
    #[schema(value_type = Option<String>, format = "skill-name", required)]
    pub skill: Option<SkillName>,
    /// Version of the skill.
    #[schema(value_type = Option<String>, format = "version", required)]
    pub version: Option<Version>,
    /// Digest of the content that ran.
    #[schema(value_type = Option<String>, format = "digest", required)]
    pub digest: Option<Digest>,
    /// Language of the program; `null` from servers of earlier releases.
    #[serde(default)]
    #[schema(required)]
    pub language: Option<Language>,
    /// Backend; `null` until the execution has a slot.
    #[schema(required)]
    pub backend: Option<String>,
    /// Why the execution is not a success.
    #[schema(required)]
    pub error: Option<Failure>,
    /// Exit code, if the program exited by itself.
    #[schema(required)]
    pub exit_code: Option<i32>,
    /// API key that started it; `null` for executions of earlier releases and of command lines.
    #[serde(default)]
    #[schema(required)]
    pub key: Option<ExecutionKey>,
    /// Milliseconds from acceptance to end; `null` while it runs.
    #[schema(required)]
    pub duration_ms: Option<u64>,
    /// Time of acceptance.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: jiff::Timestamp,
    /// Time of the end.
    #[schema(value_type = Option<String>, format = DateTime, required)]
    pub finished_at: Option<jiff::Timestamp>,
}

/// Signed links to an execution's files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Links {
    pub archive: String,
    /// In the order of [`Outcome::files`].
    pub files: Vec<String>,
    /// Of each form, in the order of [`Outcome::results`].
    pub results: Vec<BTreeMap<String, String>>,
}

impl Envelope {
    /// Without `links` every `url` is `null`.
    #[must_use]
    pub fn from_execution(execution: &Execution, links: Option<&Links>) -> Self {
        let new = &execution.new;
        let backend = new.backend.as_ref();
        let outcome = execution.outcome.as_ref();
        let files = outcome.map_or_else(Vec::new, |outcome| file_links(outcome, links));
        Self {
            execution_id: new.id,
            status: execution.status,
            skill: new.skill.clone(),
            version: new.version.clone(),
            digest: new.digest,
            language: Some(new.language),
            backend: backend.map(|backend| backend.name.clone()),
            backend_reason: backend.map(|backend| backend.reason.clone()),
            degraded: backend.map_or_else(Vec::new, |backend| backend.degraded.clone()),
            output: outcome.and_then(|o| o.output.clone()),
            output_preview: outcome.and_then(|o| o.output.as_ref()).map(preview::of_output),
            results: outcome.map_or_else(Vec::new, |o| linked_results(o, links)),
            results_truncated: outcome.is_some_and(|o| o.results_truncated),
            error: outcome.and_then(|o| o.error.clone()),
            exit_code: outcome.and_then(|o| o.exit_code),
            logs: outcome.map_or_else(LogTexts::default, |o| LogTexts::from(&o.logs)),
            logs_preview: outcome.map_or_else(String::new, |o| preview::of_logs(&o.logs)),
            files_url: links
                .filter(|_| !files.is_empty())
                .map(|links| links.archive.clone()),
            files_list: files.iter().map(|file| file.path.clone()).collect(),
            files,
            files_skipped: outcome.map_or_else(Vec::new, |o| o.skipped.clone()),
            files_skipped_total: outcome.map_or(0, |o| o.skipped_total),
            output_blobs: outcome.map_or_else(Vec::new, |o| o.blobs.clone()),
            queue: None,
            workdir: new.workdir,
            requirements: new.requirements.clone(),
            key: new.key.clone(),
            duration_ms: duration_ms(execution),
            limits: Some(new.limits()),
            timings: outcome.map(|o| o.timings),
            usage: outcome.map(|o| o.usage),
            created_at: new.created_at,
            finished_at: outcome.map(|o| o.finished_at),
            omitted: Vec::new(),
        }
    }
}

impl From<&Execution> for Summary {
    fn from(execution: &Execution) -> Self {
        let new = &execution.new;
        let outcome = execution.outcome.as_ref();
        Self {
            execution_id: new.id,
            status: execution.status,
            skill: new.skill.clone(),
            version: new.version.clone(),
            digest: new.digest,
            language: Some(new.language),
            backend: new.backend.as_ref().map(|backend| backend.name.clone()),
            error: outcome.and_then(|o| o.error.clone()),
            exit_code: outcome.and_then(|o| o.exit_code),
            key: new.key.clone(),
            duration_ms: duration_ms(execution),
            created_at: new.created_at,
            finished_at: outcome.map(|o| o.finished_at),
        }
    }
}

impl From<&Logs> for LogTexts {
    fn from(logs: &Logs) -> Self {
        Self {
            stdout: String::from_utf8_lossy(&logs.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&logs.stderr).into_owned(),
            truncated: logs.truncated(),
            lines: logs.lines.clone(),
            lines_truncated: logs.lines_truncated,
        }
    }
}

/// Derived from the extension only, since the content is untrusted.
#[must_use]
pub fn media_type(path: &str) -> String {
    mime_guess::from_path(path).first_or_octet_stream().to_string()
}

fn file_links(outcome: &Outcome, links: Option<&Links>) -> Vec<FileLink> {
    let url = |index: usize| links.and_then(|links| links.files.get(index).cloned());
    outcome
        .files
        .iter()
        .enumerate()
        .map(|(index, file)| FileLink {
            path: file.path.clone(),
            size: file.size,
            sha256: file.sha256,
            media_type: media_type(&file.path),
            url: url(index),
        })
        .collect()
}

fn linked_results(outcome: &Outcome, links: Option<&Links>) -> Vec<RichResult> {
    let mut results = outcome.results.clone();
    for (result, urls) in results
        .iter_mut()
        .zip(links.iter().flat_map(|links| &links.results))
    {
        result.urls.clone_from(urls);
    }
    results
}

/// 0 if the clock was set back.
fn duration_ms(execution: &Execution) -> Option<u64> {
    let finished_at = execution.outcome.as_ref()?.finished_at;
    let duration = finished_at.duration_since(execution.new.created_at);
    Some(u64::try_from(duration.as_millis()).unwrap_or(0))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::execution::{AskedLimits, ChosenBackend, FileEntry, NewExecution, ResourceLimits};
    use crate::ids::{InstanceId, Tenant};

    fn running() -> Execution {
        Execution {
            new: NewExecution {
                id: ExecutionId::generate(),
                tenant: Tenant::default_tenant(),
                skill: Some("text-summary".parse().unwrap()),
                version: Some("1.2.0".parse().unwrap()),
                digest: Some(Digest::of(b"skill")),
                language: Language::Python,
                image: "python:3.12-slim".to_owned(),
                backend: Some(ChosenBackend {
                    name: "docker".to_owned(),
                    reason: "configured".to_owned(),
                    degraded: vec!["P6".to_owned()],
                }),
                limits: ResourceLimits::clamp(
                    &crate::skill::Resources::default(),
                    None,
                    None,
                    &crate::execution::Maxima::default(),
                ),
                asked: AskedLimits::default(),
                instance: InstanceId::generate(),
                created_at: "2026-01-02T03:04:05Z".parse().unwrap(),
                workdir: Some(Workdir::Skill),
                requirements: Some(vec!["pypdf".to_owned()]),
                key: None,
                callback_url: None,
                kept_request: None,
            },
            status: Status::Running,
            outcome: None,
        }
    }

    pub(in crate::execution) fn finished() -> Execution {
        Execution {
            status: Status::Success,
            outcome: Some(Outcome {
                status: Status::Success,
                error: None,
                exit_code: Some(0),
                output: Some(JsonText::parse(b"{\"n\": 9007199254740993}").unwrap()),
                results: Vec::new(),
                results_truncated: false,
                logs: Logs {
                    stdout: b"a\xffb".to_vec(),
                    stdout_total: 3,
                    ..Logs::default()
                },
                files: vec![FileEntry {
                    path: "plots/report.pdf".to_owned(),
                    size: 4,
                    sha256: Digest::of(b"%PDF"),
                    offset: 512,
                }],
                skipped: Vec::new(),
                skipped_total: 0,
                blobs: Vec::new(),
                usage: Usage::default(),
                timings: Timings::default(),
                finished_at: "2026-01-02T03:04:05.012Z".parse().unwrap(),
            }),
            ..running()
        }
    }

    const MEMBERS: [&str; 34] = [
        "execution_id",
        "status",
        "skill",
        "version",
        "digest",
        "language",
        "backend",
        "backend_reason",
        "degraded",
        "output",
        "output_preview",
        "results",
        "results_truncated",
        "error",
        "exit_code",
        "logs",
        "logs_preview",
        "files",
        "files_url",
        "files_list",
        "files_skipped",
        "files_skipped_total",
        "output_blobs",
        "queue",
        "workdir",
        "requirements",
        "key",
        "duration_ms",
        "limits",
        "timings",
        "usage",
        "created_at",
        "finished_at",
        "omitted",
    ];

    #[test]
    fn running_and_ended_executions_have_all_fields() {
        for execution in [running(), finished()] {
            let json = serde_json::to_value(Envelope::from_execution(&execution, None)).unwrap();
            let members: Vec<_> = json.as_object().unwrap().keys().map(String::as_str).collect();
            assert_eq!(members, MEMBERS);
        }
    }

    ///
    #[test]
    fn returns_output_byte_for_byte() {
        let text = serde_json::to_string(&Envelope::from_execution(&finished(), None)).unwrap();
        assert!(text.contains("\"output\":{\"n\": 9007199254740993}"), "{text}");
        let read: Envelope = serde_json::from_str(&text).unwrap();
        assert_eq!(read.output.unwrap().as_str(), "{\"n\": 9007199254740993}");
    }

    #[test]
    fn files_have_a_type_and_a_link() {
        let links = Links {
            archive: "/all".to_owned(),
            files: vec!["/one".to_owned()],
            results: Vec::new(),
        };
        let envelope = Envelope::from_execution(&finished(), Some(&links));
        assert_eq!(envelope.files[0].media_type, "application/pdf");
        assert_eq!(envelope.files[0].url.as_deref(), Some("/one"));
        assert_eq!(envelope.files_url.as_deref(), Some("/all"));
        assert_eq!(envelope.files_list, ["plots/report.pdf"]);
        assert_eq!(envelope.duration_ms, Some(12));
        assert_eq!(envelope.logs.stdout, "a\u{fffd}b");
        assert_eq!(Envelope::from_execution(&running(), Some(&links)).files_url, None);
    }
}
