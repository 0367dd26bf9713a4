//! The query of lists.

use serde::Deserialize;

use crate::api::page_request;
use crate::engine::PageRequest;
use crate::error::Error;

/// The query of a list without filters.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PageQuery {
    /// Rows of one page: at least 1; more than 200 are cut to 200.
    #[param(value_type = Option<u64>, minimum = 1, example = 50)]
    limit: Option<String>,
    /// `next_page_token` of the page before.
    #[param(max_length = 256)]
    page_token: Option<String>,
}

impl PageQuery {
    /// Checks and clamps.
    pub(crate) fn into_request(self) -> Result<PageRequest, Error> {
        page_request(self.limit.as_deref(), self.page_token.as_deref())
    }
}
