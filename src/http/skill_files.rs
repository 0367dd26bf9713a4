//! Files of skills: listed, downloaded so that no browser renders them (O-15), compared, and checked by the lint.

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, Method};
use axum::response::Response;
use serde::Deserialize;
use tokio_util::io::ReaderStream;

use super::attachment::disposition;
use super::authorization::Call;
use super::content::{self, Whole};
use super::document::Raw;
use super::extract::{Path, Query};
use super::page::{PageQuery, Paging};
use super::problem::{JsonResult, ProblemResponse};
use super::skills::SkillForm;
use super::state::run_detached;
use super::upload;
use crate::api::List;
use crate::api::skill_files::{self, LintReport, SkillChanges, SkillFileList};
use crate::api::skills::{self, SkillSummary};
use crate::engine::OpenSkillFile;
use crate::error::Error;
use crate::execution::media_type;
use crate::ids::Digest;
use crate::limits;
use crate::skill::{Selector, SkillName, SkillRef};

/// List the files of a version
#[utoipa::path(get, path = "/v1/skills/{name}/{version}/files", tag = "skills", operation_id = "list_skill_files",
    params(
        ("name" = String, Path, format = "skill-name", description = "The skill"),
        ("version" = String, Path, format = "selector", description = "A semantic version, `latest` or a digest `sha256:…`"),
    ),
    responses((status = OK, body = SkillFileList)))]
pub(crate) async fn list(
    call: Call,
    Path((name, selector)): Path<(SkillName, Selector)>,
) -> Result<Response, ProblemResponse> {
    let skill = SkillRef { name, selector };
    let files = skill_files::files(call.engine(), &call.caller, &skill).await?;
    Ok(call.json(&files)?)
}

/// Download a file of a version
///
/// Always a download, whatever it contains.
#[utoipa::path(get, path = "/v1/skills/{name}/{version}/files/{*path}", tag = "skills", operation_id = "download_skill_file",
    params(
        ("name" = String, Path, format = "skill-name", description = "The skill"),
        ("version" = String, Path, format = "selector", description = "A semantic version, `latest` or a digest `sha256:…`"),
        ("path" = String, Path, description = "The file's path"),
    ),
    responses(
        (status = OK, description = "The file, with the type of its name", body = Raw, content_type = "*/*"),
        (status = NOT_MODIFIED, description = "The client has this content"),
    ))]
pub(crate) async fn file(
    call: Call,
    Path((name, selector, path)): Path<(SkillName, Selector, String)>,
    method: Method,
    request_headers: HeaderMap,
) -> Result<Response, ProblemResponse> {
    let skill = SkillRef { name, selector };
    let opened = skill_files::open_file(call.engine(), &call.caller, &skill, &path).await?;
    let OpenSkillFile { content, size, skill } = opened;
    let whole = Whole {
        headers: content::headers(&media_type(&path), &disposition(&path))?,
        tag: format!("\"{}\"", Digest::of(format!("{skill} {path}").as_bytes()).hex()),
        size,
    };
    whole.answer(&method, &request_headers, || {
        let reader = tokio::fs::File::from_std(content);
        let stream = ReaderStream::with_capacity(reader, limits::DOWNLOAD_CHUNK_BYTES);
        Ok(Body::from_stream(stream))
    })
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct DiffQuery {
    /// Version to compare from: a semantic version, `latest` or a digest.
    #[param(value_type = String, format = "selector", example = "1.0.0")]
    from: Selector,
    /// Version to compare to.
    #[param(value_type = String, format = "selector", example = "latest")]
    to: Selector,
}

/// Compare two versions of a skill
///
/// Declared values and files that differ, with the changed lines of text files. The answer is limited: `truncated` reports whether
/// something was left out.
#[utoipa::path(get, path = "/v1/skills/{name}/diff", tag = "skills", operation_id = "compare_skill_versions",
    params(("name" = String, Path, format = "skill-name", description = "The skill"), DiffQuery),
    responses((status = OK, body = SkillChanges)))]
pub(crate) async fn diff(
    call: Call,
    Path(name): Path<SkillName>,
    Query(DiffQuery { from, to }): Query<DiffQuery>,
) -> Result<Response, ProblemResponse> {
    let changes = skill_files::diff(call.engine(), &call.caller, &name, &from, &to).await?;
    Ok(call.json(&changes)?)
}

/// Check a version with the lint
#[utoipa::path(get, path = "/v1/skills/{name}/{version}/lint", tag = "skills", operation_id = "lint_skill_version",
    params(
        ("name" = String, Path, format = "skill-name", description = "The skill"),
        ("version" = String, Path, format = "selector", description = "A semantic version, `latest` or a digest `sha256:…`"),
    ),
    responses((status = OK, body = LintReport)))]
pub(crate) async fn lint(
    call: Call,
    Path((name, selector)): Path<(SkillName, Selector)>,
) -> JsonResult<LintReport> {
    let skill = SkillRef { name, selector };
    Ok(axum::Json(
        skill_files::lint(call.engine(), &call.caller, &skill).await?,
    ))
}

/// Check an archive with the lint
///
/// Publishes nothing. The body is that of `POST /v1/skills`; an archive that would be rejected there is a finding here.
#[utoipa::path(post, path = "/v1/skills/lint", tag = "skills", operation_id = "lint_skill",
    request_body(content(
        (Raw = "application/zip"),
        (SkillForm = "multipart/form-data"),
    )),
    responses((status = OK, body = LintReport)))]
pub(crate) async fn lint_archive(call: Call, request: Request) -> JsonResult<LintReport> {
    let (push, slot) = upload::receive(&call.state, call.tenant(), request)
        .await?
        .into_push();
    let engine = call.state.engine.clone();
    let lint = async move { skill_files::lint_push(&engine, &call.caller, push).await };
    Ok(axum::Json(run_detached(slot, lint).await?))
}

/// List the versions of the skill `lint`
///
/// As `GET /v1/skills/{name}`, whose path `POST /v1/skills/lint` takes.
#[utoipa::path(get, path = "/v1/skills/lint", tag = "skills", operation_id = "list_versions_of_lint", params(PageQuery),
    responses((status = OK, body = List<SkillSummary>)))]
pub(crate) async fn versions_of_lint(call: Call, Paging(page): Paging) -> JsonResult<List<SkillSummary>> {
    let name: SkillName = "lint".parse().map_err(Error::internal)?;
    Ok(axum::Json(
        skills::versions(call.engine(), &call.caller, &name, page).await?,
    ))
}
