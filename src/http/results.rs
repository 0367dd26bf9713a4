//! `/v1/executions/{id}/results/{n}/{form}`: one form of a rich result, which pages of this server may show in a frame without scripts (O-15).

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::response::Response;

use super::authorization::FileTenant;
use super::content::{self, Whole};
use super::document::Raw;
use super::extract::Path;
use super::inert::inert;
use super::links::{Download, Part};
use super::problem::ProblemResponse;
use super::response;
use super::state::ApiState;
use crate::api::executions;
use crate::error::Error;
use crate::execution::ResultForm;
use crate::ids::Digest;

/// Scripts never run, nothing is fetched, and only pages of this server may frame it.
const POLICY: &str = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'self'";

pub(super) const ROUTE: &str = "/v1/executions/{id}/results/{n}/{form}";

/// Show one form of a result
///
/// Requires a key, or the `urls` of the result. Served without scripts and without anything from other places: JavaScript is plain
/// text, and a PDF a download.
#[utoipa::path(get, path = "/v1/executions/{id}/results/{n}/{form}", tag = "executions", operation_id = "show_result",
    params(
        ("id" = uuid::Uuid, Path, description = "The execution"),
        ("n" = u32, Path, description = "Position in `results`, from 0"),
        ("form" = inline(ResultForm), Path, description = "Member of the result"),
    ),
    responses(
        (status = OK, description = "The form, with its type", body = Raw, content_type = "*/*"),
        (status = NOT_MODIFIED, description = "The client has this content"),
    ))]
pub(crate) async fn form(
    State(state): State<Arc<ApiState>>,
    FileTenant(tenant): FileTenant,
    Path(download): Path<Download>,
    method: Method,
    request_headers: HeaderMap,
) -> Result<Response, ProblemResponse> {
    let Part::Result(n, form) = download.part else {
        return Err(Error::internal("the route of results has a form").into());
    };
    let content = executions::result(&state.engine, &tenant, download.id, n, form).await?;
    let content = if matches!(form, ResultForm::Html | ResultForm::Svg) {
        inert(&content)
    } else {
        content
    };
    let mut headers = content::headers(&download.content_type(), &download.content_disposition())?;
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    let whole = Whole {
        headers,
        tag: format!("\"{}\"", Digest::of(&content).hex()),
        size: content.len() as u64,
    };
    whole.answer(&method, &request_headers, || {
        response::body(&state.answers, &tenant, content)
    })
}
