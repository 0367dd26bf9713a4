//! `/v1/prove`: attacks test sandboxes on the server's host and shows the report.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use super::authorization::Call;
use super::extract::JsonOrDefault;
use super::problem::ProblemResponse;
use crate::api::prove::{self, ProofView, StartProof};
use crate::error::Error;
use crate::prove::Selection;

/// Prove the promises of the sandbox
///
/// Runs `skillbox prove` in a process of its own with low priority, one at a time: a conflict while one runs. It takes about a minute
/// for each backend. Needs an administrator of tenant `default`.
#[utoipa::path(post, path = "/v1/prove", tag = "server", operation_id = "start_proof",
    request_body = Option<StartProof>,
    responses((status = ACCEPTED, description = "Started", body = ProofView)))]
pub(crate) async fn start(
    call: Call,
    JsonOrDefault(body, _held): JsonOrDefault<StartProof>,
) -> Result<Response, ProblemResponse> {
    Selection::named(&body.only).map_err(|error| Error::invalid(format!("only: {error}")))?;
    let view = prove::start(call.engine(), &call.caller, body).await?;
    Ok((StatusCode::ACCEPTED, call.json(&view)?).into_response())
}

/// Show the last proof
///
/// The report stays until the next proof ends, also after a restart. Needs an administrator of tenant `default`.
#[utoipa::path(get, path = "/v1/prove", tag = "server", operation_id = "show_proof",
    responses((status = OK, body = ProofView)))]
pub(crate) async fn show(call: Call) -> Result<Response, ProblemResponse> {
    let view = prove::status(call.engine(), &call.caller).await?;
    Ok(call.json(&view)?)
}
