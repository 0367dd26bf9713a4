//! `/v1/deps`: installed packages, listed, installed in advance, forgotten.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};

use super::authorization::Authenticated;
use super::extract::{Body, Json, Path, Query};
use super::page::{List, PageQuery};
use super::problem::ProblemResponse;
use super::state::ApiState;
use crate::ids::Digest;
use crate::limits;
use crate::skill::{Language, Selector, SkillName};
use crate::store::PackageSet;

/// One set of installed packages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Packages {
    /// What was asked for, and for which image or interpreter it was built.
    #[schema(value_type = String)]
    pub key: Digest,
    /// Whose packages.
    pub language: Language,
    /// What was asked for.
    #[schema(example = json!(["numpy", "pandas>=2"]))]
    pub requirements: Vec<String>,
    /// Size of all files, in bytes.
    pub bytes: u64,
    /// How many files.
    pub files: u32,
    /// When they were installed.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: jiff::Timestamp,
    /// When they were last used, to the hour.
    #[schema(value_type = String, format = DateTime)]
    pub used_at: jiff::Timestamp,
}

impl From<&PackageSet> for Packages {
    fn from(set: &PackageSet) -> Self {
        Self {
            key: set.key,
            language: set.language,
            requirements: set.wanted.clone(),
            bytes: set.bytes,
            files: set.files,
            created_at: set.created_at,
            used_at: set.used_at,
        }
    }
}

/// The skill whose packages are to be installed.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"skill": "data-analysis"}))]
pub(crate) struct Prefetch {
    /// The skill.
    #[schema(value_type = String, max_length = 64)]
    skill: SkillName,
    /// A semantic version, `latest` or a digest `sha256:…`; `latest` if absent.
    #[serde(default)]
    #[schema(value_type = Option<String>, max_length = 71)]
    version: Option<Selector>,
}

impl Body for Prefetch {
    const BYTES_MAX: u64 = limits::BODY_BYTES_MAX;
}

/// List installed packages
///
/// The newest first.
#[utoipa::path(get, path = "/v1/deps", tag = "deps", operation_id = "list_deps", params(PageQuery),
    responses((status = OK, body = List<Packages>)))]
pub(crate) async fn list(
    State(state): State<Arc<ApiState>>,
    Authenticated(caller): Authenticated,
    Query(page): Query<PageQuery>,
) -> Result<axum::Json<List<Packages>>, ProblemResponse> {
    let page = state.engine.package_sets(&caller, page.into_request()?).await?;
    Ok(axum::Json(List::of(&page)))
}

/// Install a skill's packages in advance
///
/// Answers when all that its program and its scripts ask for is installed: at once if it was before.
#[utoipa::path(post, path = "/v1/deps/prefetch", tag = "deps", operation_id = "prefetch_deps", request_body = Prefetch,
    responses((status = OK, description = "Installed", body = List<Packages>)))]
pub(crate) async fn prefetch(
    State(state): State<Arc<ApiState>>,
    Authenticated(caller): Authenticated,
    Json(body, _held): Json<Prefetch>,
) -> Result<axum::Json<List<Packages>>, ProblemResponse> {
    let selector = body.version.unwrap_or_default();
    let sets = state
        .engine
        .prefetch_packages(&caller, body.skill, selector, None)
        .await?;
    Ok(axum::Json(List {
        items: sets.iter().map(Packages::from).collect(),
        next_page_token: None,
    }))
}

/// Forget installed packages
///
/// The next run that needs them installs them again. Running programs are not affected.
#[utoipa::path(delete, path = "/v1/deps/{key}", tag = "deps", operation_id = "delete_deps",
    params(("key" = String, Path, description = "As in the list")),
    responses((status = NO_CONTENT, description = "Forgotten, or never known")))]
pub(crate) async fn delete(
    State(state): State<Arc<ApiState>>,
    Authenticated(caller): Authenticated,
    Path(key): Path<Digest>,
) -> Result<StatusCode, ProblemResponse> {
    state.engine.delete_packages(&caller, &key).await?;
    Ok(StatusCode::NO_CONTENT)
}
