//! The body of a webhook: the outcome of an execution and its URL, without output and logs.

use jiff::Timestamp;
use serde::Serialize;

use crate::execution::{Execution, Status, Summary};
use crate::ids::ExecutionId;
use crate::limits;
use crate::skill::{SkillName, Version};

const EXECUTION_FINISHED: &str = "execution.finished";

#[derive(Serialize)]
struct Event {
    #[serde(rename = "type")]
    kind: &'static str,
    timestamp: Timestamp,
    data: Data,
}

#[derive(Serialize)]
struct Data {
    execution_id: ExecutionId,
    status: Status,
    skill: Option<SkillName>,
    version: Option<Version>,
    error: Option<Reason>,
    exit_code: Option<i32>,
    duration_ms: Option<u64>,
    created_at: Timestamp,
    finished_at: Option<Timestamp>,
    url: String,
}

#[derive(Serialize)]
struct Reason {
    code: String,
    message: String,
}

/// The same body for every attempt.
pub(super) fn body(execution: &Execution, server_url: Option<&str>) -> serde_json::Result<Vec<u8>> {
    let summary = Summary::from(execution);
    let base = server_url.unwrap_or_default().trim_end_matches('/');
    let reason = summary.error.map(|failure| Reason {
        code: failure.code,
        message: truncate(failure.message),
    });
    serde_json::to_vec(&Event {
        kind: EXECUTION_FINISHED,
        timestamp: summary.finished_at.unwrap_or(summary.created_at),
        data: Data {
            execution_id: summary.execution_id,
            status: summary.status,
            skill: summary.skill,
            version: summary.version,
            error: reason,
            exit_code: summary.exit_code,
            duration_ms: summary.duration_ms,
            created_at: summary.created_at,
            finished_at: summary.finished_at,
            url: format!("{base}/v1/executions/{}", summary.execution_id),
        },
    })
}

fn truncate(message: String) -> String {
    match message.char_indices().nth(limits::DELIVERY_ERROR_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None => message,
    }
}
