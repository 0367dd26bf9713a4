//! Requests of executions: shown, and run again.

use serde::{Deserialize, Serialize};

use super::{CreateExecution, Mode, RUN, require, unless_null};
use crate::auth::Caller;
use crate::engine::{Engine, OnDisconnect, RequestRecord, RerunVersion, RunSpec};
use crate::error::Error;
use crate::ids::{Digest, ExecutionId};
use crate::sandbox::InputFile;

/// The request of an execution.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ShownRequest {
    /// Whether the request was kept.
    pub kept: bool,
    /// Why it, or a part of it, is missing here.
    #[schema(required)]
    pub reason: Option<String>,
    /// As it was sent, as a body for `POST /v1/executions`. It lacks the files that were not kept.
    #[schema(required)]
    pub request: Option<CreateExecution>,
    /// All files of the request.
    pub files: Vec<ShownFile>,
}

/// A file of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ShownFile {
    /// Path below `/workspace`.
    #[schema(example = "sales.csv")]
    pub path: String,
    /// Size in bytes.
    pub size: u64,
    /// Digest of the content.
    #[schema(value_type = String, format = "digest")]
    pub sha256: Digest,
    /// Whether the content was kept.
    pub kept: bool,
}

/// How to run a request again.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"version": "same"}))]
pub struct RerunExecution {
    /// Version of the skill; without effect on code. Default: `same`.
    #[serde(default, deserialize_with = "unless_null")]
    #[schema(value_type = Option<RerunVersion>)]
    pub version: RerunVersion,
    /// Respond at the end of the execution, or immediately.
    #[serde(default, deserialize_with = "unless_null")]
    #[schema(value_type = Option<Mode>)]
    pub mode: Mode,
    /// What happens when the client disconnects. Only for `mode: sync`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<OnDisconnect>)]
    pub on_disconnect: Option<OnDisconnect>,
}

/// What is kept of the request of an execution.
pub async fn request(engine: &Engine, caller: &Caller, id: ExecutionId) -> Result<ShownRequest, Error> {
    require(caller, RUN)?;
    let record = engine.executions().request(caller.tenant(), id).await?;
    // Digests of up to 100 files.
    tokio::task::spawn_blocking(move || ShownRequest::from(record))
        .await
        .map_err(Error::internal)
}

/// The request of an execution, to be run again. An error names what was not kept.
pub async fn rerun_spec(
    engine: &Engine,
    caller: &Caller,
    id: ExecutionId,
    version: RerunVersion,
) -> Result<RunSpec, Error> {
    require(caller, RUN)?;
    engine.executions().rerun_spec(caller.tenant(), id, version).await
}

impl From<RequestRecord> for ShownRequest {
    fn from(record: RequestRecord) -> Self {
        let (mut spec, left_out) = match record {
            RequestRecord::Kept { spec, left_out } => (*spec, left_out),
            RequestRecord::NotKept(reason) => {
                return Self {
                    kept: false,
                    reason: Some(reason),
                    request: None,
                    files: Vec::new(),
                };
            }
        };
        let mut files: Vec<_> = spec.files.iter().map(ShownFile::from).collect();
        files.extend(left_out.iter().map(|file| ShownFile {
            path: file.path.clone(),
            size: file.size,
            sha256: file.sha256,
            kept: false,
        }));
        files.sort_by(|a, b| a.path.cmp(&b.path));
        let stdin = spec.stdin.take_if(|stdin| std::str::from_utf8(stdin).is_err());
        let reason = match (stdin.is_some(), left_out.is_empty()) {
            (true, _) => Some("its standard input is not UTF-8, and is kept but not shown"),
            (false, false) => Some("the contents of some files exceed `executions.keep_request`"),
            (false, true) => None,
        };
        Self {
            kept: true,
            reason: reason.map(ToOwned::to_owned),
            request: CreateExecution::try_from(spec).ok(),
            files,
        }
    }
}

impl From<&InputFile> for ShownFile {
    fn from(file: &InputFile) -> Self {
        Self {
            path: file.path.clone(),
            size: file.content.len() as u64,
            sha256: Digest::of(&file.content),
            kept: true,
        }
    }
}
