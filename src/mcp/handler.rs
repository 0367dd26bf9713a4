//! Answers the requests of the protocol.

use std::borrow::Cow;

use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorCode, ErrorData,
    GetSkillRequestParams, GetSkillResult, Implementation, ListResourceTemplatesResult, ListResourcesResult,
    ListSkillsResult, ListToolsResult, PaginatedRequestParams, ReadResourceDirectoryRequestParams,
    ReadResourceDirectoryResult, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult,
    ResourceTemplate, ServerCapabilities, ServerConfig,
};
use rmcp::service::{RequestContext, RoleServer};
use serde::Deserialize;
use serde_json::json;

use super::Handler;
use super::arguments::{CODE_MEMBERS, SKILL_MEMBERS, run_request, skill_request};
use super::call::CallContext;
use super::catalog::{GenericTool, skill_of};
use super::content::{OutputKind, resource_block};
use crate::api::{page_request, parse_json, skills, tools};
use crate::engine::RunSpec;
use crate::error::Error;
use crate::limits;
use crate::skill::Selector;

const INSTRUCTIONS: &str = "Runs skills and code in sandboxes without network. Pass files as base64 in `files`; results link to files that are large, which `read_file` and resources/read return.";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListArguments {
    limit: Option<u32>,
    page_token: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SearchArguments {
    query: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadArguments {
    uri: String,
}

impl Handler {
    async fn call(
        &self,
        request: CallToolRequestParams,
        context: CallContext,
    ) -> Result<CallToolResult, Error> {
        let arguments = self.arguments(&request)?;
        let Some(tool) = GenericTool::from_name(&request.name) else {
            return self.call_skill(&request.name, &arguments, context).await;
        };
        match tool {
            GenericTool::RunSkill => self.run(run_request(&arguments, &SKILL_MEMBERS)?, context).await,
            GenericTool::RunCode => self.run(run_request(&arguments, &CODE_MEMBERS)?, context).await,
            GenericTool::ListSkills => self.list(parse_json(arguments.as_bytes())?).await,
            GenericTool::SearchSkills => {
                let SearchArguments { query } = parse_json(arguments.as_bytes())?;
                let found = tools::search(&self.client.engine, &self.client.caller, &query).await?;
                Ok(structured(&json!({ "items": found })))
            }
            GenericTool::ReadFile => {
                let ReadArguments { uri } = parse_json(arguments.as_bytes())?;
                let read = self.client.read(&uri).await?;
                Ok(CallToolResult::success(vec![resource_block(read, &uri)]))
            }
        }
    }

    /// The text of the arguments as it was sent, if the transport knows it.
    fn arguments<'a>(&'a self, request: &CallToolRequestParams) -> Result<Cow<'a, str>, Error> {
        match (&self.arguments, &request.arguments) {
            (Some(sent), _) => Ok(sent.get().into()),
            (None, Some(parsed)) => Ok(serde_json::to_string(parsed).map_err(Error::internal)?.into()),
            (None, None) => Ok("{}".into()),
        }
    }

    async fn call_skill(
        &self,
        tool: &str,
        arguments: &str,
        context: CallContext,
    ) -> Result<CallToolResult, Error> {
        let unknown = || Error::not_found(format!("tool {:?}", tool.chars().take(80).collect::<String>()));
        let name = skill_of(tool).ok_or_else(unknown)?;
        let (engine, caller) = (&self.client.engine, &self.client.caller);
        let skill = skills::get(engine, caller, &name, &Selector::Latest).await?;
        let kind = OutputKind::of(&skill);
        self.answer(skill_request(&skill, arguments)?, kind, context)
            .await
    }

    async fn run(&self, spec: RunSpec, context: CallContext) -> Result<CallToolResult, Error> {
        self.answer(spec, OutputKind::Text, context).await
    }

    async fn answer(
        &self,
        spec: RunSpec,
        kind: OutputKind,
        context: CallContext,
    ) -> Result<CallToolResult, Error> {
        match self.client.run(spec, context).await? {
            Some(execution) => self.client.result(&execution, kind).await,
            None => Ok(CallToolResult::error(vec![ContentBlock::text("cancelled")])),
        }
    }

    async fn list(
        &self,
        ListArguments { limit, page_token }: ListArguments,
    ) -> Result<CallToolResult, Error> {
        let limit = limit.map(|limit| limit.to_string());
        let page = page_request(limit.as_deref(), page_token.as_deref())?;
        let listed = skills::list(&self.client.engine, &self.client.caller, page).await?;
        let items: Vec<_> = listed
            .items
            .iter()
            .map(|skill| json!({ "name": skill.name, "version": skill.version, "description": skill.description }))
            .collect();
        Ok(structured(
            &json!({ "items": items, "next_page_token": listed.next_page_token }),
        ))
    }

    fn rejected<T>(&self, result: Result<T, Error>) -> Result<T, ErrorData> {
        result.map_err(|error| self.client.protocol_error(&error))
    }

    /// The skills extension has no code of its own for what does not exist.
    fn not_described<T>(&self, result: Result<T, Error>) -> Result<T, ErrorData> {
        self.rejected(result).map_err(|error| match error.code {
            ErrorCode::RESOURCE_NOT_FOUND => ErrorData {
                code: ErrorCode::INVALID_PARAMS,
                ..error
            },
            _ => error,
        })
    }
}

/// JSON for programs, and the same as text for models.
fn structured(value: &serde_json::Value) -> CallToolResult {
    let mut result = CallToolResult::success(vec![ContentBlock::text(value.to_string())]);
    result.structured_content = Some(value.clone());
    result
}

fn cursor(request: Option<PaginatedRequestParams>) -> Option<String> {
    request?.cursor
}

fn list_age_ms() -> u64 {
    u64::try_from(limits::MCP_LIST_AGE_MAX.as_millis()).unwrap_or(u64::MAX)
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_skills_with_directory_read()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("skillbox", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.rejected(self.client.tools().await)?;
        Ok(ListToolsResult::with_all_items(tools)
            .with_ttl_ms(list_age_ms())
            .with_cache_scope(CacheScope::Private))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let context = CallContext::of(self, context);
        // Boxed: the future is large and would be copied on the caller's stack.
        let called = Box::pin(self.call(request, context)).await;
        let result = called.unwrap_or_else(|error| self.client.rejected(&error));
        Ok(result.into())
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        self.rejected(self.client.skill_documents(cursor(request)).await)
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let templates = [
            ("skill://{name}/{+path}", "File of a skill"),
            (
                "skill://versions/{version}/{name}/{+path}",
                "File of a version of a skill",
            ),
            (
                "skillbox://executions/{id}/files/{+path}",
                "File that an execution wrote",
            ),
            ("skillbox://executions/{id}/output", "Output of an execution"),
            (
                "skillbox://executions/{id}/stdout",
                "Standard output of an execution",
            ),
            (
                "skillbox://executions/{id}/stderr",
                "Standard error of an execution",
            ),
        ];
        let templates = templates.map(|(uri, name)| ResourceTemplate::new(uri, name));
        Ok(ListResourceTemplatesResult::with_all_items(templates.to_vec()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let read = self.rejected(self.client.read(&request.uri).await)?;
        Ok(ReadResourceResult::new(vec![read.into_contents(&request.uri)])
            .with_ttl_ms(0)
            .with_cache_scope(CacheScope::Private)
            .into())
    }

    async fn list_skills(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListSkillsResult, ErrorData> {
        let listed = self.rejected(self.client.listed_skills(cursor(request)).await)?;
        Ok(listed
            .with_ttl_ms(list_age_ms())
            .with_cache_scope(CacheScope::Private))
    }

    async fn get_skill(
        &self,
        request: GetSkillRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetSkillResult, ErrorData> {
        let skill = self.not_described(self.client.listed_skill(&request.uri).await)?;
        Ok(GetSkillResult::new(skill)
            .with_ttl_ms(list_age_ms())
            .with_cache_scope(CacheScope::Private))
    }

    async fn read_resource_directory(
        &self,
        request: ReadResourceDirectoryRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceDirectoryResult, ErrorData> {
        self.not_described(self.client.directory(&request.uri).await)
    }
}
