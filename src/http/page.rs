//! The query of lists.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use serde::Deserialize;

use super::extract::Query;
use super::problem::ProblemResponse;
use super::state::ApiState;
use crate::api::page_request;
use crate::engine::PageRequest;

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PageQuery {
    /// Rows per page, at least 1. Larger values are reduced to 200.
    #[param(value_type = Option<u64>, minimum = 1, maximum = 9223372036854775807_u64, example = 50)]
    limit: Option<String>,
    /// `next_page_token` of the previous page.
    #[param(format = "page-token")]
    page_token: Option<String>,
}

/// The page that a [`PageQuery`] requests.
pub(crate) struct Paging(pub(crate) PageRequest);

impl FromRequestParts<Arc<ApiState>> for Paging {
    type Rejection = ProblemResponse;

    async fn from_request_parts(parts: &mut Parts, state: &Arc<ApiState>) -> Result<Self, ProblemResponse> {
        let Query(query) = Query::<PageQuery>::from_request_parts(parts, state).await?;
        let page = page_request(query.limit.as_deref(), query.page_token.as_deref())?;
        Ok(Self(page))
    }
}
