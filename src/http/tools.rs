//! `/v1/tools`: skills as the tools of a model.

use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use super::authorization::Call;
use super::extract::Query;
use super::page::{PageQuery, Paging};
use super::problem::ProblemResponse;
use crate::api::tools::{self, ToolDefinition};
use crate::api::{List, page_request};
use crate::error::Error;
use crate::skill::{ToolFormat, prompt};

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ToolQuery {
    /// Format of the definitions.
    #[serde(default)]
    #[param(value_type = Option<ToolFormat>, inline)]
    format: ToolFormat,
    /// Skills per page, at least 1. Larger values are reduced to 200.
    #[param(value_type = Option<u64>, minimum = 1, maximum = 9223372036854775807_u64, example = 50)]
    limit: Option<String>,
    /// `next_page_token` of the previous page.
    #[param(format = "page-token")]
    page_token: Option<String>,
}

/// List skills as tools
///
/// The latest version of each skill, by name, as a tool definition: pass `items` to the model. The name of a tool is
/// the skill's name with `_` for each dot. The model's arguments are the `input` of an execution; for a skill that is
/// a set of scripts, they are `script`, `args`, `stdin` and `files`. An `input_schema` of another type than object
/// becomes the member `input`. Skills with instructions only are omitted, so a page may have fewer rows than `limit`.
#[utoipa::path(get, path = "/v1/tools", tag = "skills", operation_id = "list_tools", params(ToolQuery),
    responses((status = OK, body = List<ToolDefinition>)))]
pub(crate) async fn list(call: Call, Query(query): Query<ToolQuery>) -> Result<Response, ProblemResponse> {
    let page = page_request(query.limit.as_deref(), query.page_token.as_deref())?;
    let list = tools::list(call.engine(), &call.caller, query.format, page).await?;
    Ok(call.json(&list)?)
}

/// List skills for a prompt
///
/// The latest version of each skill, by name, as the `<available_skills>` text of the Agent Skills specification, for
/// a model that reads files. `location` is the path at which a skill is mounted. The header `X-Next-Page-Token`
/// contains the `page_token` of the next page, if any.
#[utoipa::path(get, path = "/v1/tools/prompt", tag = "skills", operation_id = "prompt_skills", params(PageQuery),
    responses((status = OK, body = String, content_type = "text/plain")))]
pub(crate) async fn for_prompt(call: Call, Paging(page): Paging) -> Result<Response, ProblemResponse> {
    let page = tools::prompt_entries(call.engine(), &call.caller, page).await?;
    let text = prompt(page.items);
    let body = call.body(text.into_bytes())?;
    let mut response = ([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], body).into_response();
    if let Some(next) = page.next_page_token {
        let next = HeaderValue::try_from(next).map_err(Error::internal)?;
        response.headers_mut().insert(NEXT_PAGE, next);
    }
    Ok(response)
}

/// Header of the next page, for responses that are not JSON.
pub(crate) const NEXT_PAGE: HeaderName = HeaderName::from_static("x-next-page-token");
