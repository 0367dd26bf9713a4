//! `/v1/stats`: counts and durations of executions.

use serde::Deserialize;

use super::authorization::Call;
use super::extract::Query;
use super::problem::JsonResult;
use crate::api::stats::{self, StatsInfo};
use crate::api::time;
use crate::engine::StatsRequest;
use crate::skill::SkillName;

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct StatsQuery {
    /// Ended at this time or later; a day before `until` if absent.
    #[serde(default, deserialize_with = "time")]
    #[param(value_type = Option<String>, format = DateTime)]
    since: Option<jiff::Timestamp>,
    /// Ended before this time; now if absent.
    #[serde(default, deserialize_with = "time")]
    #[param(value_type = Option<String>, format = DateTime)]
    until: Option<jiff::Timestamp>,
    /// At most so many buckets, 60 if absent.
    #[param(value_type = Option<u32>, minimum = 2, maximum = 200, example = 48)]
    buckets: Option<String>,
    /// Only executions of this skill.
    #[param(value_type = Option<String>, format = "skill-name")]
    skill: Option<SkillName>,
}

/// Show statistics
///
/// Ended executions of the tenant by status, with percentiles of their duration. `since` and `until` are moved outward to whole buckets, of five
/// minutes to days. An execution that is deleted stays counted; `buckets` are an hour or longer for times before the last three days, and a day or
/// longer before the last 35 days.
#[utoipa::path(get, path = "/v1/stats", tag = "server", operation_id = "show_stats", params(StatsQuery),
    responses((status = OK, body = StatsInfo)))]
pub(crate) async fn show(call: Call, Query(query): Query<StatsQuery>) -> JsonResult<StatsInfo> {
    let request = StatsRequest {
        since: query.since,
        until: query.until,
        buckets: stats::bucket_count(query.buckets.as_deref())?,
        skill: query.skill,
    };
    Ok(axum::Json(
        stats::show(call.engine(), &call.caller, request).await?,
    ))
}
