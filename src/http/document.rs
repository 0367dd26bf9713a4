//! The OpenAPI document, generated from the code.

use std::sync::Arc;

use axum::Extension;
use axum::body::Bytes;
use axum::http::header;
use axum::response::IntoResponse;
use serde_json::{Value, json};
use utoipa::openapi::path::Operation;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{
    Components, Content, Info, License, OpenApi, OpenApiBuilder, Ref, RefOr, ResponseBuilder, Tag,
};
use utoipa::{PartialSchema as _, ToSchema as _};

use super::access::Access;
use super::events;
use super::problem;
use super::routes::RouteTable;
use super::text_formats;
use crate::api::{CreateExecution, Problem};
use crate::error::Fault;
use crate::limits;

/// Name of the security scheme of API keys.
pub(crate) const KEY_SCHEME: &str = "api_key";
/// Name of the security scheme of signed links.
pub(crate) const LINK_SCHEME: &str = "signed_link";

/// A binary body.
#[derive(utoipa::ToSchema)]
#[schema(value_type = String, format = Binary)]
#[expect(dead_code, reason = "for the document only")]
pub(crate) struct Raw(Vec<u8>);

/// The serialized document.
#[derive(Clone, Debug)]
pub(crate) struct OpenApiText(Arc<Bytes>);

/// OpenAPI document
///
/// OpenAPI 3.1, generated from the code.
#[utoipa::path(get, path = "/openapi.json", tag = "server",
    responses((status = OK, description = "The document", body = serde_json::Value, content_type = "application/json")))]
pub(crate) async fn openapi(Extension(OpenApiText(text)): Extension<OpenApiText>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], Bytes::clone(&text))
}

/// Adds the errors of every operation.
pub(crate) fn complete(operation: &mut Operation, access: Access) {
    let problem = |description: &str| {
        let content = Content::new(Some(Ref::from_schema_name(Problem::name())));
        ResponseBuilder::new()
            .description(description)
            .content(problem::MEDIA_TYPE, content)
            .build()
    };
    let responses = &mut operation.responses.responses;
    let summary = operation.summary.clone().unwrap_or_default();
    for response in responses.values_mut() {
        if let RefOr::T(response) = response
            && response.description.is_empty()
        {
            response.description.clone_from(&summary);
        }
    }
    responses.insert("default".to_owned(), problem("An error, named by `code`").into());
    if access != Access::Open {
        responses.insert("401".to_owned(), problem("No valid API key").into());
        responses.insert(
            "403".to_owned(),
            problem("The API key lacks the scope, or the link is not valid").into(),
        );
    }
}

/// The document as JSON.
pub(crate) fn document(table: &RouteTable) -> Value {
    let mut document = serde_json::to_value(described(table)).expect("the document always serializes");
    for section in document
        .as_object_mut()
        .into_iter()
        .flat_map(|members| members.values_mut())
    {
        text_formats::replace(section);
    }
    let schemas = &mut document["components"]["schemas"];
    refer_to_items(schemas);
    let rules = CreateExecution::document_rules();
    for (keyword, rule) in rules.as_object().into_iter().flatten() {
        schemas["CreateExecution"][keyword] = rule.clone();
    }
    schemas["SignIn"]["oneOf"] = json!([{"required": ["key"]}, {"required": ["token"]}]);
    let members = &mut schemas["CreateExecution"]["properties"];
    members["files"]["maxProperties"] = json!(limits::INPUT_FILES_MAX);
    members["mount_skills"]["uniqueItems"] = json!(true);
    let words = &mut schemas["Args"]["oneOf"][0];
    words["maxItems"] = json!(limits::ARGS_MAX);
    words["items"]["pattern"] = json!(r"^[^\x00]*$");
    for operation in document["paths"]
        .as_object_mut()
        .into_iter()
        .flatten()
        .flat_map(|(_, path)| path.as_object_mut())
        .flatten()
    {
        describe_wire(operation.1);
    }
    // A request without a body stores the empty blob.
    document["paths"]["/v1/blobs"]["post"]["requestBody"]["required"] = json!(false);
    document["paths"]["/v1/skills"]["post"]["requestBody"]["content"]["multipart/form-data"]["encoding"] =
        json!({"file": {"contentType": "application/zip"}});
    document
}

/// A parameter or a body cannot be `null`, only absent. An event stream is text, whose structure is that of its events.
fn describe_wire(operation: &mut Value) {
    let parameters = operation.get_mut("parameters").and_then(Value::as_array_mut);
    for parameter in parameters.into_iter().flatten() {
        if let Some(kind) = parameter.pointer_mut("/schema/type")
            && *kind == json!(["string", "null"])
        {
            *kind = json!("string");
        }
    }
    let body = operation.pointer_mut("/requestBody/content/application~1json/schema");
    if let Some(schema) = body
        && let Some(kinds) = schema.get("oneOf").and_then(Value::as_array)
        && kinds.contains(&json!({"type": "null"}))
    {
        *schema = kinds[0].clone();
    }
    let responses = operation.get_mut("responses").and_then(Value::as_object_mut);
    for (_, response) in responses.into_iter().flatten() {
        if let Some(content) = response
            .get_mut("content")
            .and_then(|content| content.get_mut(events::MEDIA_TYPE))
        {
            let events = content["schema"].take();
            content["schema"] =
                json!({"type": "string", "contentMediaType": events::MEDIA_TYPE, "contentSchema": events});
        }
    }
}

/// Refers to the schema of the items of each list: generated clients then have one type for it, not two.
fn refer_to_items(schemas: &mut Value) {
    let names: Vec<String> = schemas
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, _)| name.clone())
        .collect();
    for (name, schema) in schemas.as_object_mut().into_iter().flatten() {
        let item = name
            .strip_prefix("List_")
            .filter(|item| names.iter().any(|name| name == item));
        if let Some(item) = item {
            schema["properties"]["items"]["items"] = json!({"$ref": format!("#/components/schemas/{item}")});
        }
    }
}

fn described(table: &RouteTable) -> OpenApi {
    let mut document = table.router.get_openapi().clone();
    // Wildcards are syntax of the router, not of OpenAPI.
    document.paths.paths = document
        .paths
        .paths
        .into_iter()
        .map(|(path, item)| (path.replace("{*path}", "{path}"), item))
        .collect();
    let components = document.components.get_or_insert_with(Components::default);
    components
        .schemas
        .insert(Problem::name().into_owned(), Problem::schema());
    components
        .schemas
        .insert(Fault::name().into_owned(), Fault::schema());
    let key = Http::builder()
        .scheme(HttpAuthScheme::Bearer)
        .bearer_format("skb_…")
        .description(Some(
            "An API key. Roles are scopes; `admin` includes all others. A request with the header `X-Skillbox-Tenant` is `forbidden` \
             if its key belongs to another tenant; the header chooses no tenant.",
        ))
        .build();
    let link = ApiKeyValue::with_description(
        "signature",
        "A link from an execution's `url` members, used unchanged: `signature` covers `expires` and `tenant`.",
    );
    components.add_security_scheme(KEY_SCHEME, SecurityScheme::Http(key));
    components.add_security_scheme(LINK_SCHEME, SecurityScheme::ApiKey(ApiKey::Query(link)));
    let tag = |name: &str, description: &str| {
        let mut tag = Tag::new(name);
        tag.description = Some(description.to_owned());
        tag
    };
    OpenApiBuilder::from(document)
        .info(info())
        .tags(Some([
            tag("skills", "Publish, list, show, download and delete skills."),
            tag("executions", "Run skills and code, and show the results."),
            tag("deps", "List, install in advance and delete packages."),
            tag("webhooks", "Webhook deliveries and the secret that signs them."),
            tag("keys", "Create, list, revoke and rotate API keys."),
            tag(
                "sessions",
                "Sign in to the dashboard and out. In place of an API key, each route accepts the cookie of a session together with \
                 its page token in the header `X-Skillbox-Page`.",
            ),
            tag("audit", "Who changed what."),
            tag("server", "Health, metrics and this document."),
        ]))
        .build()
}

pub(crate) fn written(table: &RouteTable) -> OpenApiText {
    let text = serde_json::to_vec(&document(table)).expect("the document always serializes");
    OpenApiText(Arc::new(text.into()))
}

fn info() -> Info {
    let mut info = Info::new("Skillbox", env!("CARGO_PKG_VERSION"));
    info.description = Some(
        "Runs AI-agent skills in hardened sandboxes. A failing skill is not an API error: its execution is answered with 200 \
         and a `status`. Errors are `application/problem+json` with a stable `code`. Unknown request fields are rejected. \
         Lists have pages: send `next_page_token` as `page_token` for the next page."
            .to_owned(),
    );
    let mut license = License::new("Apache-2.0");
    license.identifier = Some("Apache-2.0".to_owned());
    info.license = Some(license);
    info
}
