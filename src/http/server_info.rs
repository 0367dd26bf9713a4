//! `/v1/server` and `/v1/usage`: state of the server, and what a tenant uses of it.

use super::authorization::Call;
use super::problem::JsonResult;
use crate::api::server::{self, ServerInfo};
use crate::api::usage::{self, UsageInfo};

/// Show the state of the server
///
/// Backend, promises, slots, queue, warm pool and limits of this process. Numbers are those of the key's tenant; an administrator of
/// the tenant `default` gets those of all tenants.
#[utoipa::path(get, path = "/v1/server", tag = "server", operation_id = "show_server",
    responses((status = OK, body = ServerInfo)))]
pub(crate) async fn show(call: Call) -> JsonResult<ServerInfo> {
    Ok(axum::Json(server::show(call.engine(), &call.caller).await?))
}

/// Show what the tenant uses
///
/// Storage, blobs, secrets, packages and the queue with their quotas, and the executions of the last 24 hours.
#[utoipa::path(get, path = "/v1/usage", tag = "server", operation_id = "show_usage",
    responses((status = OK, body = UsageInfo)))]
pub(crate) async fn usage(call: Call) -> JsonResult<UsageInfo> {
    Ok(axum::Json(usage::show(call.engine(), &call.caller).await?))
}
