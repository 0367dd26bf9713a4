//! `/v1/executions/{id}/request` and `/rerun`: the request of an execution, shown and run again.

use axum::http::HeaderMap;
use axum::response::Response;

use super::authorization::Call;
use super::events::Events;
use super::executions::{self, RunQuery, WaitQuery};
use super::extract::{JsonOrDefault, Path, Query};
use super::problem::ProblemResponse;
use crate::api::rerun::{self, RerunExecution, ShownRequest};
use crate::execution::Envelope;
use crate::ids::ExecutionId;

/// Show the request of an execution
///
/// Requests are kept up to the size in the setting `executions.keep_request`, and deleted with their execution. Files that exceed it
/// are listed, and their contents are missing.
#[utoipa::path(get, path = "/v1/executions/{id}/request", tag = "executions", operation_id = "show_request",
    params(("id" = uuid::Uuid, Path, description = "The execution")),
    responses((status = OK, body = ShownRequest)))]
pub(crate) async fn request(call: Call, Path(id): Path<ExecutionId>) -> Result<Response, ProblemResponse> {
    let shown = rerun::request(call.engine(), &call.caller, id).await?;
    Ok(call.json(&shown)?)
}

/// Run the request of an execution again
///
/// Creates another execution, and responds as `POST /v1/executions` does. A request that was not kept completely is `invalid`.
#[utoipa::path(post, path = "/v1/executions/{id}/rerun", tag = "executions", operation_id = "rerun_execution",
    params(("id" = uuid::Uuid, Path, description = "The execution"), WaitQuery,
        ("Idempotency-Key" = Option<String>, Header, format = "idempotency-key", description = "Unique name of this request, such as a UUID")),
    request_body = Option<RerunExecution>,
    responses((status = OK, description = "The result, or the events as they occur",
            content((Envelope = "application/json"), (Events = "text/event-stream"))),
        (status = ACCEPTED, description = "Queued or running; `Location` is the URL of the execution", body = Envelope)))]
pub(crate) async fn rerun(
    call: Call,
    Path(id): Path<ExecutionId>,
    Query(query): Query<WaitQuery>,
    headers: HeaderMap,
    JsonOrDefault(body, held): JsonOrDefault<RerunExecution>,
) -> Result<Response, ProblemResponse> {
    let RerunExecution {
        version,
        mode,
        on_disconnect,
    } = body;
    let asked = RunQuery::new(&query, &headers, mode, on_disconnect)?;
    let spec = rerun::rerun_spec(call.engine(), &call.caller, id, version).await?;
    executions::answer(call, spec.into(), asked, held).await
}
