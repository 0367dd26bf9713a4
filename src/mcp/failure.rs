//! Errors of the API as results of tools and as errors of the protocol.

use rmcp::ErrorData;
use rmcp::model::{CallToolResult, ContentBlock, ErrorCode, MetaObject};
use serde_json::{Value, json};

use super::McpClient;
use crate::api::Problem;
use crate::error::{Code, Error};
use crate::telemetry::field;

impl McpClient {
    /// A tool call that was rejected: the model reads the reason and can correct its call.
    pub(super) fn rejected(&self, error: &Error) -> CallToolResult {
        let problem = self.problem(error);
        let mut result = CallToolResult::error(vec![ContentBlock::text(&problem.detail)]);
        result.meta = Some(meta([("skillbox/problem", json!(problem))]));
        result
    }

    /// An error of the protocol, for requests that are no tool calls.
    pub(super) fn protocol_error(&self, error: &Error) -> ErrorData {
        let problem = self.problem(error);
        let code = match error.code() {
            Code::NotFound => ErrorCode::RESOURCE_NOT_FOUND,
            Code::Internal => ErrorCode::INTERNAL_ERROR,
            Code::Invalid
            | Code::Unauthenticated
            | Code::Forbidden
            | Code::MethodNotAllowed
            | Code::RequestTimeout
            | Code::Conflict
            | Code::KeyReused
            | Code::TooLarge
            | Code::UnsupportedMediaType
            | Code::RangeNotSatisfiable
            | Code::Misdirected
            | Code::RateLimited
            | Code::Busy
            | Code::SandboxUnavailable
            | Code::DependenciesFailed
            | Code::StorageFull => ErrorCode::INVALID_PARAMS,
        };
        ErrorData::new(code, problem.detail.clone(), Some(json!(problem)))
    }

    /// The problem document of an error, which is logged here, since the HTTP status of the answer is 200.
    fn problem(&self, error: &Error) -> Problem {
        let (code, cause) = (error.code().as_str(), error.hidden());
        match error.code() {
            Code::Internal => {
                tracing::error!(
                    { field::CODE } = code,
                    { field::CAUSE } = cause,
                    "Message of MCP failed"
                );
            }
            _ => tracing::info!(
                { field::CODE } = code,
                { field::CAUSE } = cause,
                "Message of MCP rejected"
            ),
        }
        Problem::new(error, &self.request_id)
    }
}

/// Metadata of an answer. Names of this product are prefixed, as the protocol wants.
pub(super) fn meta(members: impl IntoIterator<Item = (&'static str, Value)>) -> MetaObject {
    let members = members.into_iter().map(|(name, value)| (name.to_owned(), value));
    MetaObject(members.collect())
}
