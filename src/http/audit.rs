//! `/v1/audit`: who changed what.

use super::authorization::Call;
use super::page::{PageQuery, Paging};
use super::problem::JsonResult;
use crate::api::List;
use crate::api::audit::{self, AuditEntryInfo};

/// List the audit trail
///
/// Acts on keys, secrets, skills, sessions and webhooks, newest first. No request changes or deletes an entry; entries older
/// than a year, and those beyond the newest 100,000 of the tenant, are deleted.
#[utoipa::path(get, path = "/v1/audit", tag = "audit", operation_id = "list_audit", params(PageQuery),
    responses((status = OK, body = List<AuditEntryInfo>)))]
pub(crate) async fn list(call: Call, Paging(page): Paging) -> JsonResult<List<AuditEntryInfo>> {
    Ok(axum::Json(audit::list(call.engine(), &call.caller, page).await?))
}
