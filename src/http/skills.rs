//! `/v1/skills`: publish, list, show, download and delete skills.

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use tokio_util::io::ReaderStream;

use super::attachment::disposition;
use super::authorization::Call;
use super::document::Raw;
use super::extract::{Json, Path};
use super::page::{PageQuery, Paging};
use super::problem::{JsonResult, ProblemResponse};
use super::range::is_known;
use super::state::run_detached;
use super::upload;
use crate::api::List;
use crate::api::skills::{self, AddedRequirements, Skill, SkillSummary};
use crate::error::Error;
use crate::limits;
use crate::skill::{Selector, SkillName, SkillRef};

/// Publish a skill
///
/// The body is a zip archive of the skill's folder. Content that is already published is answered with 200. Different
/// content under a published version is a conflict. `application/octet-stream` is accepted for the archive, too.
#[utoipa::path(post, path = "/v1/skills", tag = "skills", operation_id = "publish_skill",
    request_body(content(
        (Raw = "application/zip"),
        (SkillForm = "multipart/form-data"),
    )),
    responses(
        (status = CREATED, description = "Published", body = Skill),
        (status = OK, description = "Already published with the same content", body = Skill),
    ))]
pub(crate) async fn publish(call: Call, request: Request) -> Result<Response, ProblemResponse> {
    let (push, slot) = upload::receive(&call.state, call.tenant(), request)
        .await?
        .into_push();
    let engine = call.state.engine.clone();
    let publish = async move { skills::publish(&engine, &call.caller, push).await };
    let published = run_detached(slot, publish).await?;
    let status = if published.existed {
        StatusCode::OK
    } else {
        StatusCode::CREATED
    };
    let SkillSummary { name, version, .. } = &published.skill.summary;
    let location = HeaderValue::try_from(format!("/v1/skills/{name}/{version}")).map_err(Error::internal)?;
    let headers = [(header::LOCATION, location)];
    Ok((status, headers, axum::Json(published.skill)).into_response())
}

/// A form with a file.
#[derive(utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "for the document only")]
pub(super) struct SkillForm {
    /// Zip archive.
    #[schema(value_type = String, format = Binary)]
    file: Raw,
    /// A field for each package to add to the version. Without any, those of the version that is `latest` are carried over.
    #[schema(required = false, max_items = 200)]
    requirements: Vec<String>,
}

/// List skills
///
/// The latest version of each, by name.
#[utoipa::path(get, path = "/v1/skills", tag = "skills", operation_id = "list_skills", params(PageQuery),
    responses((status = OK, body = List<SkillSummary>)))]
pub(crate) async fn list(call: Call, Paging(page): Paging) -> JsonResult<List<SkillSummary>> {
    Ok(axum::Json(skills::list(call.engine(), &call.caller, page).await?))
}

/// List the versions of a skill
///
/// Most recent push first.
#[utoipa::path(get, path = "/v1/skills/{name}", tag = "skills", operation_id = "list_skill_versions",
    params(("name" = String, Path, format = "skill-name", description = "The skill"), PageQuery),
    responses((status = OK, body = List<SkillSummary>)))]
pub(crate) async fn versions(
    call: Call,
    Path(name): Path<SkillName>,
    Paging(page): Paging,
) -> JsonResult<List<SkillSummary>> {
    Ok(axum::Json(
        skills::versions(call.engine(), &call.caller, &name, page).await?,
    ))
}

/// Show a version of a skill
#[utoipa::path(get, path = "/v1/skills/{name}/{version}", tag = "skills", operation_id = "show_skill",
    params(
        ("name" = String, Path, format = "skill-name", description = "The skill"),
        ("version" = String, Path, format = "selector", description = "A semantic version, `latest` or a digest `sha256:…`"),
    ),
    responses((status = OK, body = Skill)))]
pub(crate) async fn show(
    call: Call,
    Path((name, selector)): Path<(SkillName, Selector)>,
) -> JsonResult<Skill> {
    Ok(axum::Json(
        skills::get(call.engine(), &call.caller, &name, &selector).await?,
    ))
}

/// Download the archive of a version
///
/// The bytes as they were uploaded.
#[utoipa::path(get, path = "/v1/skills/{name}/{version}/archive", tag = "skills", operation_id = "download_skill",
    params(
        ("name" = String, Path, format = "skill-name", description = "The skill"),
        ("version" = String, Path, format = "selector", description = "A semantic version, `latest` or a digest `sha256:…`"),
    ),
    responses(
        (status = OK, description = "The archive", body = Raw, content_type = "application/zip"),
        (status = NOT_MODIFIED, description = "The client has this content"),
    ))]
pub(crate) async fn archive(
    call: Call,
    Path((name, selector)): Path<(SkillName, Selector)>,
    headers: HeaderMap,
) -> Result<Response, ProblemResponse> {
    let (record, object) = skills::archive(call.engine(), &call.caller, &name, &selector).await?;
    // Weak, since the digest covers the content of the archive, not its bytes.
    let tag = format!("W/\"{}\"", record.digest.hex());
    let about = [
        (header::ETAG, tag.clone()),
        (header::CACHE_CONTROL, "private, no-cache".to_owned()),
    ];
    if is_known(&headers, &tag) {
        return Ok((StatusCode::NOT_MODIFIED, about).into_response());
    }
    let size = object.size();
    let reader = object.into_reader(0..size).await.map_err(Error::internal)?;
    let body = Body::from_stream(ReaderStream::with_capacity(reader, limits::DOWNLOAD_CHUNK_BYTES));
    let file = format!("{}-{}.zip", record.name, record.version);
    let content = [
        (header::CONTENT_TYPE, "application/zip".to_owned()),
        (header::CONTENT_LENGTH, size.to_string()),
        (header::CONTENT_DISPOSITION, disposition(&file)),
    ];
    Ok((about, content, body).into_response())
}

/// Add packages to a version of a skill
///
/// Replaces the packages that were added to the version, beside its files and not part of its digest. They are installed for each
/// run of it, also where it is mounted, and later pushes carry them over.
#[utoipa::path(put, path = "/v1/skills/{name}/{version}/requirements", tag = "skills", operation_id = "set_skill_requirements",
    params(
        ("name" = String, Path, format = "skill-name", description = "The skill"),
        ("version" = String, Path, format = "selector", description = "A semantic version, `latest` or a digest `sha256:…`"),
    ),
    request_body = AddedRequirements,
    responses((status = OK, description = "The version with its packages", body = Skill)))]
pub(crate) async fn set_requirements(
    call: Call,
    Path((name, selector)): Path<(SkillName, Selector)>,
    Json(body, _held): Json<AddedRequirements>,
) -> JsonResult<Skill> {
    let skill = SkillRef { name, selector };
    Ok(axum::Json(
        skills::set_requirements(call.engine(), &call.caller, &skill, &body).await?,
    ))
}

/// Delete a version of a skill
///
/// `{version}` may also be `latest` or a digest.
#[utoipa::path(delete, path = "/v1/skills/{name}/{version}", tag = "skills", operation_id = "delete_skill",
    params(
        ("name" = String, Path, format = "skill-name", description = "The skill"),
        ("version" = String, Path, format = "selector", description = "A semantic version, `latest` or a digest `sha256:…`"),
    ),
    responses((status = NO_CONTENT, description = "Deleted")))]
pub(crate) async fn delete(
    call: Call,
    Path((name, selector)): Path<(SkillName, Selector)>,
) -> Result<StatusCode, ProblemResponse> {
    skills::delete(call.engine(), &call.caller, &name, &selector).await?;
    Ok(StatusCode::NO_CONTENT)
}
