//! `/v1/tools`: the skills of a tenant as the tools of a model.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};

use super::authorization::Authenticated;
use super::extract::Query;
use super::page::{List, PageQuery, page_request};
use super::problem::ProblemResponse;
use super::response;
use super::state::ApiState;
use crate::error::Error;
use crate::skill::{ToolFormat, prompt, prompt_entry, tool};
use crate::store::{Cursor, SkillRecord};

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

/// A tool as a model's API takes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(transparent)]
#[schema(value_type = Object)]
pub struct ToolDefinition(serde_json::Value);

impl ToolDefinition {
    /// The definition of the tool that calls the skill of `record`, if there is anything to call.
    pub(crate) fn of(record: &SkillRecord, format: ToolFormat) -> Option<Self> {
        tool(&record.manifest, &record.version, format).map(Self)
    }

    /// What the model calls it.
    pub(crate) fn name(&self) -> &str {
        self.text("name")
    }

    /// What it does.
    pub(crate) fn description(&self) -> &str {
        self.text("description")
    }

    fn text(&self, member: &str) -> &str {
        let function = self.0.get("function").unwrap_or(&self.0);
        function[member].as_str().unwrap_or_default()
    }
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
    let page = state.engine.skills(&caller, page).await?;
    let tools = page.items.iter();
    let list = List {
        items: tools
            .filter_map(|record| ToolDefinition::of(record, query.format))
            .collect(),
        next_page_token: page.next.as_ref().map(Cursor::to_string),
    };
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
    let page = state.engine.skills(&caller, page.into_request()?).await?;
    let text = prompt(page.items.iter().map(|skill| prompt_entry(&skill.manifest)));
    let body = response::body(&state.answers, caller.tenant(), text.into_bytes())?;
    let mut response = ([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], body).into_response();
    if let Some(next) = page.next {
        let next = HeaderValue::try_from(next.to_string()).map_err(Error::internal)?;
        response.headers_mut().insert(NEXT_PAGE, next);
    }
    Ok(response)
}

/// Where the answer's body has no room to say it.
pub(crate) const NEXT_PAGE: HeaderName = HeaderName::from_static("x-next-page-token");
