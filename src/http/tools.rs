//! `/v1/tools`: the skills of a tenant as the tools of a model.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use super::authorization::Authenticated;
use super::extract::Query;
use super::page::PageQuery;
use super::problem::ProblemResponse;
use super::response;
use super::state::ApiState;
use crate::api::tools::{self, ToolDefinition};
use crate::api::{List, page_request};
use crate::error::Error;
use crate::skill::{ToolFormat, prompt};

/// The query of the list.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ToolQuery {
    /// Whose shape the definitions have.
    #[serde(default)]
    #[param(value_type = Option<ToolFormat>, inline)]
    format: ToolFormat,
    /// Skills of one page: at least 1; more than 200 are cut to 200.
    #[param(value_type = Option<u64>, minimum = 1, example = 50)]
    limit: Option<String>,
    /// `next_page_token` of the page before.
    #[param(max_length = 256)]
    page_token: Option<String>,
}

/// List skills as tools
///
/// The latest version of each skill, by name, as a tool definition: hand `items` to the model as they are. The name of a tool is the skill's with `_` for each dot. What the model gives is the `input` of an execution; of a skill that is a set of scripts it is `script`, `args`, `stdin` and `files`. An `input_schema` that takes no object stands in the member `input`. Skills that are instructions only have nothing to call and are left out, so a page may hold fewer than `limit`.
#[utoipa::path(get, path = "/v1/tools", tag = "skills", operation_id = "list_tools", params(ToolQuery),
    responses((status = OK, body = List<ToolDefinition>)))]
pub(crate) async fn list(
    State(state): State<Arc<ApiState>>,
    Authenticated(caller): Authenticated,
    Query(query): Query<ToolQuery>,
) -> Result<Response, ProblemResponse> {
    let page = page_request(query.limit.as_deref(), query.page_token.as_deref())?;
    let list = tools::list(&state.engine, &caller, query.format, page).await?;
    Ok(response::json(&state.answers, caller.tenant(), &list)?)
}

/// Skills for a prompt
///
/// The latest version of each skill, by name, as the `<available_skills>` text of the Agent Skills specification, for a model that reads files. Where a skill is mounted, its `location` is there. If there are more, the header `X-Next-Page-Token` holds the `page_token` of the next page.
#[utoipa::path(get, path = "/v1/tools/prompt", tag = "skills", operation_id = "prompt_skills", params(PageQuery),
    responses((status = OK, body = String, content_type = "text/plain")))]
pub(crate) async fn for_prompt(
    State(state): State<Arc<ApiState>>,
    Authenticated(caller): Authenticated,
    Query(page): Query<PageQuery>,
) -> Result<Response, ProblemResponse> {
    let page = tools::prompt_entries(&state.engine, &caller, page.into_request()?).await?;
    let text = prompt(page.items);
    let body = response::body(&state.answers, caller.tenant(), text.into_bytes())?;
    let mut response = ([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], body).into_response();
    if let Some(next) = page.next_page_token {
        let next = HeaderValue::try_from(next).map_err(Error::internal)?;
        response.headers_mut().insert(NEXT_PAGE, next);
    }
    Ok(response)
}

/// Where the answer's body has no room to say it.
pub(crate) const NEXT_PAGE: HeaderName = HeaderName::from_static("x-next-page-token");
