//! Values for the contract tests.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use crate::auth::{KeyRecord, Scope, Scopes};
use crate::execution::{
    Arrivals, AskedLimits, ChosenBackend, Exception, ExecutionKey, Failure, FileEntry, JsonText, LogLine,
    LogSource, Logs, Maxima, NewExecution, Outcome, OutputBlob, ResourceLimits, RichResult, Skipped, Status,
    Timings, Usage, Workdir,
};
use crate::ids::{Digest, ExecutionId, InstanceId, KeyId, Tenant};
use crate::skill::{Language, Manifest, Resources, SkillName};
use crate::store::SkillRecord;

/// A moment some microseconds after a fixed one.
pub(super) fn at(micros: i64) -> Timestamp {
    let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    start + SignedDuration::from_micros(micros)
}

pub(super) fn tenant(name: &str) -> Tenant {
    name.parse().unwrap()
}

/// A record of `name@version`, for example `csv@1.2.0`, whose content is that text.
pub(super) fn skill(label: &str) -> SkillRecord {
    let (name, version) = label.split_once('@').unwrap();
    SkillRecord {
        tenant: Tenant::default_tenant(),
        name: name.parse().unwrap(),
        version: version.parse().unwrap(),
        digest: Digest::of(label.as_bytes()),
        manifest: manifest(name.parse().unwrap()),
        archive_bytes: 1234,
        unpacked_bytes: 5678,
        files: 3,
        folder: Some(name.to_owned()),
        pushed_by: "01900000-0000-7000-8000-000000000001".parse().ok(),
        requirements: vec!["pandas>=2,<3".to_owned()],
        created_at: at(0),
    }
}

fn manifest(name: SkillName) -> Manifest {
    Manifest {
        name,
        version: None,
        description: "it's \"quoted\"; drop table skills; -- \u{202e}\0".to_owned(),
        language: Some(Language::Python),
        entrypoint: Some("scripts/main.py".to_owned()),
        dialect: crate::skill::Dialect::default(),
        function: None,
        modules: Vec::new(),
        origins: std::collections::BTreeMap::new(),
        permissions: crate::skill::Permissions::default(),
        actions: Vec::new(),
        image: None,
        timeout: Some(std::time::Duration::from_millis(1500)),
        resources: Resources::default(),
        input_schema: Some(serde_json::json!({"type": "object", "a": 0.1})),
        output_schema: None,
        license: None,
        compatibility: None,
        metadata: BTreeMap::from([("k".to_owned(), "v".to_owned())]),
        allowed_tools: None,
        instructions: "# Hello\r\n".to_owned(),
        warnings: Vec::new(),
    }
}

pub(super) fn execution(micros: i64) -> NewExecution {
    NewExecution {
        id: ExecutionId::generate(),
        tenant: Tenant::default_tenant(),
        skill: Some("csv".parse().unwrap()),
        version: Some("1.2.0".parse().unwrap()),
        digest: Some(Digest::of(b"csv")),
        language: Language::Node,
        image: "node:20-slim".to_owned(),
        backend: Some(ChosenBackend {
            name: "docker".to_owned(),
            reason: "configured".to_owned(),
            degraded: vec!["P6".to_owned(), "P7".to_owned()],
        }),
        limits: ResourceLimits::clamp(&Resources::default(), None, None, &Maxima::default()),
        asked: AskedLimits {
            memory_bytes: Some(8 << 30),
            ..AskedLimits::default()
        },
        instance: InstanceId::generate(),
        created_at: at(micros),
        workdir: Some(Workdir::Request),
        requirements: Some(vec!["six>=1".to_owned()]),
        key: Some(ExecutionKey {
            id: "01900000-0000-7000-8000-000000000002".parse().unwrap(),
            name: "it's \0".to_owned(),
        }),
        callback_url: None,
        kept_request: None,
    }
}

fn arrivals() -> Arrivals {
    let mut arrivals = Arrivals::default();
    for (source, count) in [
        (LogSource::Stderr, 4),
        (LogSource::Stdout, 4),
        (LogSource::Log, 1),
    ] {
        arrivals.add(source, count, jiff::Timestamp::UNIX_EPOCH);
    }
    arrivals
}

/// An end with something in every field.
pub(super) fn outcome(status: Status) -> Outcome {
    Outcome {
        status,
        error: Some(Failure {
            code: "exit_code".to_owned(),
            message: "exited with 1; '; drop table executions; --\0".to_owned(),
            exception: Some(Exception {
                name: "E".to_owned(),
                value: "\0".to_owned(),
                traceback: "'".to_owned(),
            }),
        }),
        exit_code: Some(1),
        output: Some(JsonText::parse(br#"{"n": 9007199254740993,  "x":1e400, "n":0.10}"#).unwrap()),
        logs: Logs {
            stdout: vec![0, 0xff, b'\n', 0x1b],
            stderr: b"it's".to_vec(),
            stdout_total: 1 << 40,
            stderr_total: 4,
            lines: LogLine::parse_all(br#"{"message": "'", "fields": {"n": 0.10}}"#),
            lines_truncated: true,
            arrivals: arrivals(),
        },
        results: vec![RichResult {
            json: JsonText::parse(b"{\"n\": 1e400}").ok(),
            ..RichResult::default()
        }],
        results_truncated: true,
        files: vec![FileEntry {
            path: "a/\u{202e}b.txt".to_owned(),
            size: 3,
            sha256: Digest::of(b"abc"),
            offset: 512,
        }],
        skipped: vec![Skipped {
            path: "l".to_owned(),
            reason: "link".to_owned(),
        }],
        skipped_total: 7,
        blobs: vec![OutputBlob {
            blob_id: Digest::of(b"blob"),
            size: 4,
        }],
        usage: Usage {
            cpu_ms: 1,
            memory_peak_bytes: 2,
            processes_peak: 3,
            oom_kills: 4,
        },
        timings: Timings {
            queue_ms: 0.1,
            sandbox_ms: 2.5,
            run_ms: 1e-7,
            collect_ms: 0.0,
            warm: true,
        },
        finished_at: at(1_000_000),
    }
}

pub(super) fn key(secret: &str) -> KeyRecord {
    KeyRecord {
        id: KeyId::generate(),
        tenant: Tenant::default_tenant(),
        name: "ci'; drop table keys; --\0".to_owned(),
        hint: "skb_abcd".to_owned(),
        hash: Digest::of(secret.as_bytes()),
        scopes: Scopes::new([Scope::Run, Scope::Admin]),
        created_at: at(0),
        expires_at: Some(at(60_000_000)),
        revoked_at: None,
    }
}
