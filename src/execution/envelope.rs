//! The JSON of an execution: one shape for every door and the command line. Absent values are `null`, never missing.

use serde::{Deserialize, Serialize};

use crate::execution::preview;
use crate::execution::{
    Execution, Failure, JsonText, LogLine, Logs, Outcome, OutputBlob, RichResult, Skipped, Status, Timings,
    Usage,
};
use crate::ids::{Digest, ExecutionId};
use crate::skill::{SkillName, Version};

/// One execution with its output, logs and files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Envelope {
    /// Its id.
    #[schema(value_type = String, format = Uuid)]
    pub execution_id: ExecutionId,
    /// Where it stands.
    pub status: Status,
    /// The skill; `null` for code sent with the request.
    #[schema(value_type = Option<String>, required, example = "data-analysis")]
    pub skill: Option<SkillName>,
    /// The skill's version.
    #[schema(value_type = Option<String>, required, example = "1.2.0")]
    pub version: Option<Version>,
    /// What ran, by content.
    #[schema(value_type = Option<String>, required)]
    pub digest: Option<Digest>,
    /// The kind of sandbox that ran it; `null` until its turn has come.
    #[schema(required, example = "docker")]
    pub backend: Option<String>,
    /// Why this kind.
    #[schema(required)]
    pub backend_reason: Option<String>,
    /// The promises that were kept only as well as this host lets the sandbox, such as `P6`; empty as a rule.
    #[serde(default)]
    #[schema(required)]
    pub degraded: Vec<String>,
    /// What the program wrote to `output.json`, byte for byte.
    #[schema(value_type = Option<serde_json::Value>, required)]
    pub output: Option<JsonText>,
    /// As much of the output as a model is shown at first, at most 4 KiB; says what was cut.
    #[schema(required)]
    pub output_preview: Option<String>,
    /// Rich results of called code, such as charts.
    pub results: Vec<RichResult>,
    /// Whether anything was left out of `results`.
    #[serde(default)]
    #[schema(required)]
    pub results_truncated: bool,
    /// Why it is not a success.
    #[schema(required)]
    pub error: Option<Failure>,
    /// The exit code, where the program exited by itself.
    #[schema(required)]
    pub exit_code: Option<i32>,
    /// The two streams.
    pub logs: LogTexts,
    /// The end of the two streams as a model is shown it at first, at most 2 KiB; says what was cut.
    #[serde(default)]
    #[schema(required)]
    pub logs_preview: String,
    /// The file artifacts.
    pub files: Vec<FileLink>,
    /// Where all files can be fetched as one `tar.gz`; `null` where there are none.
    #[schema(required)]
    pub files_url: Option<String>,
    /// The paths of `files`.
    pub files_list: Vec<String>,
    /// The first files that were written but not collected.
    pub files_skipped: Vec<Skipped>,
    /// How many files were not collected in all.
    pub files_skipped_total: u64,
    /// Blobs the program made.
    pub output_blobs: Vec<OutputBlob>,
    /// Where it waits for its turn; `null` once that has come.
    #[serde(default)]
    #[schema(required)]
    pub queue: Option<QueuePlace>,
    /// From acceptance to end, in milliseconds; `null` while it runs.
    #[schema(required)]
    pub duration_ms: Option<u64>,
    /// Where the time went; `null` while it runs.
    #[schema(required)]
    pub timings: Option<Timings>,
    /// What was used; `null` while it runs.
    #[schema(required)]
    pub usage: Option<Usage>,
    /// When it was accepted.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: jiff::Timestamp,
    /// When it ended.
    #[schema(value_type = Option<String>, format = DateTime, required)]
    pub finished_at: Option<jiff::Timestamp>,
}

/// What was kept of the two streams, as text: what is not UTF-8 is shown as U+FFFD.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LogTexts {
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// Whether anything was left out of either.
    pub truncated: bool,
    /// What the program logged by the helper `log`.
    #[serde(default)]
    #[schema(required)]
    pub lines: Vec<LogLine>,
    /// Whether it logged more.
    #[serde(default)]
    #[schema(required)]
    pub lines_truncated: bool,
}

/// Where an execution waits for its turn, among those of its tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct QueuePlace {
    /// 1 for the next one.
    #[schema(minimum = 1)]
    pub position: usize,
    /// How many wait in all.
    pub waiting: usize,
    /// How long it has waited, in milliseconds.
    pub waited_ms: u64,
}

/// One file artifact and where to fetch it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct FileLink {
    /// Path below `out/files`.
    #[schema(example = "report.pdf")]
    pub path: String,
    /// Size in bytes.
    pub size: u64,
    /// Digest of the content.
    #[schema(value_type = String)]
    pub sha256: Digest,
    /// Guessed from the path's ending.
    #[schema(example = "application/pdf")]
    pub media_type: String,
    /// Where to fetch it without a key, for a limited time; `null` where no server is involved.
    #[schema(required)]
    pub url: Option<String>,
}

/// One execution in a list: without output, logs and files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Summary {
    /// Its id.
    #[schema(value_type = String, format = Uuid)]
    pub execution_id: ExecutionId,
    /// Where it stands.
    pub status: Status,
    /// The skill; `null` for code sent with the request.
    #[schema(value_type = Option<String>, required)]
    pub skill: Option<SkillName>,
    /// The skill's version.
    #[schema(value_type = Option<String>, required)]
    pub version: Option<Version>,
    /// What ran, by content.
    #[schema(value_type = Option<String>, required)]
    pub digest: Option<Digest>,
    /// The kind of sandbox that ran it; `null` until its turn has come.
    #[schema(required)]
    pub backend: Option<String>,
    /// Why it is not a success.
    #[schema(required)]
    pub error: Option<Failure>,
    /// The exit code, where the program exited by itself.
    #[schema(required)]
    pub exit_code: Option<i32>,
    /// From acceptance to end, in milliseconds; `null` while it runs.
    #[schema(required)]
    pub duration_ms: Option<u64>,
    /// When it was accepted.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: jiff::Timestamp,
    /// When it ended.
    #[schema(value_type = Option<String>, format = DateTime, required)]
    pub finished_at: Option<jiff::Timestamp>,
}

/// Where an execution's files can be fetched without a key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Links {
    /// All files as one `tar.gz`.
    pub archive: String,
    /// Each file, in the order of [`Outcome::files`].
    pub files: Vec<String>,
}

impl Envelope {
    /// The JSON of `execution`; without `links` every `url` is `null`.
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
            backend: backend.map(|backend| backend.name.clone()),
            backend_reason: backend.map(|backend| backend.reason.clone()),
            degraded: backend.map_or_else(Vec::new, |backend| backend.degraded.clone()),
            output: outcome.and_then(|o| o.output.clone()),
            output_preview: outcome.and_then(|o| o.output.as_ref()).map(preview::of_output),
            results: outcome.map_or_else(Vec::new, |o| o.results.clone()),
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
            duration_ms: duration_ms(execution),
            timings: outcome.map(|o| o.timings),
            usage: outcome.map(|o| o.usage),
            created_at: new.created_at,
            finished_at: outcome.map(|o| o.finished_at),
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
            backend: new.backend.as_ref().map(|backend| backend.name.clone()),
            error: outcome.and_then(|o| o.error.clone()),
            exit_code: outcome.and_then(|o| o.exit_code),
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

/// The media type of a file, guessed from its path's ending alone: the content is the program's and proves nothing.
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

/// A clock that was set back while it ran gives 0.
fn duration_ms(execution: &Execution) -> Option<u64> {
    let finished_at = execution.outcome.as_ref()?.finished_at;
    let duration = finished_at.duration_since(execution.new.created_at);
    Some(u64::try_from(duration.as_millis()).unwrap_or(0))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::execution::{ChosenBackend, FileEntry, NewExecution, ResourceLimits};
    use crate::ids::{InstanceId, Tenant};
    use crate::skill::Language;

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
                instance: InstanceId::generate(),
                created_at: "2026-01-02T03:04:05Z".parse().unwrap(),
                callback_url: None,
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

    const MEMBERS: [&str; 28] = [
        "execution_id",
        "status",
        "skill",
        "version",
        "digest",
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
        "duration_ms",
        "timings",
        "usage",
        "created_at",
        "finished_at",
    ];

    #[test]
    fn every_member_is_there_before_and_after_the_end() {
        for execution in [running(), finished()] {
            let json = serde_json::to_value(Envelope::from_execution(&execution, None)).unwrap();
            let members: Vec<_> = json.as_object().unwrap().keys().map(String::as_str).collect();
            assert_eq!(members, MEMBERS);
        }
    }

    ///
    #[test]
    fn the_output_is_handed_out_byte_for_byte() {
        let text = serde_json::to_string(&Envelope::from_execution(&finished(), None)).unwrap();
        assert!(text.contains("\"output\":{\"n\": 9007199254740993}"), "{text}");
        let read: Envelope = serde_json::from_str(&text).unwrap();
        assert_eq!(read.output.unwrap().as_str(), "{\"n\": 9007199254740993}");
    }

    #[test]
    fn files_carry_their_type_and_their_link() {
        let links = Links {
            archive: "/all".to_owned(),
            files: vec!["/one".to_owned()],
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
