//! No list and no look-up reads or sorts rows that it does not return.

use rusqlite::params_from_iter;
use rusqlite::types::Null;

use super::tests::{File, inner};
use super::{
    blobs, count_queries, counts, deliveries, execution_pages, executions, keys, queue, retention, secrets,
    skills, storage,
};
use crate::execution::Status;
use crate::store::Store;
use crate::store::contract::Place as _;

/// Each list and look-up, and the one step that it may take.
fn plans() -> Vec<(&'static str, String)> {
    [plans_of_executions(), plans_of_others()].concat()
}

fn by(index: &str, terms: &str) -> String {
    format!("INDEX {index} ({terms})")
}

fn plans_of_executions() -> Vec<(&'static str, String)> {
    let place = "created_at>? AND (created_at,id)<(?,?)";
    vec![
        (
            blobs::PAGE,
            by("blobs_by_time", "tenant=? AND (created_at,digest)<(?,?)"),
        ),
        (
            blobs::BY_DIGEST,
            by("sqlite_autoindex_blobs_1", "tenant=? AND digest=?"),
        ),
        (blobs::OBJECTS, by("blobs_by_size", "tenant=?")),
        (blobs::USED, "COVERING INDEX blobs_by_size (tenant=?)".to_owned()),
        (
            blobs::EXPIRED,
            "COVERING INDEX blobs_by_expiry (expires_at<?)".to_owned(),
        ),
        (
            execution_pages::PAGE,
            by("executions_by_time", &format!("tenant=? AND {place}")),
        ),
        (
            queue::OWNERS,
            "SCAN executions USING COVERING INDEX executions_queued".to_owned(),
        ),
        (
            queue::QUEUED_BYTES,
            "COVERING INDEX queued_requests_by_tenant (tenant=?)".to_owned(),
        ),
        (
            counts::ENDED,
            "COVERING INDEX executions_by_end (tenant=? AND finished_at>? AND finished_at<?)".to_owned(),
        ),
        (
            counts::HAS_UNCOUNTED,
            "COVERING INDEX executions_by_end (tenant=? AND finished_at>? AND finished_at<?)".to_owned(),
        ),
        (
            count_queries::COUNTS_BETWEEN,
            "PRIMARY KEY (tenant=? AND seconds=? AND skill=? AND start>? AND start<?)".to_owned(),
        ),
        (
            count_queries::TOTALS_BETWEEN,
            "PRIMARY KEY (tenant=? AND seconds=? AND skill=? AND start>? AND start<?)".to_owned(),
        ),
        (
            count_queries::NEXT_SKILL,
            "PRIMARY KEY (tenant=? AND seconds=? AND skill>?)".to_owned(),
        ),
        (
            counts::OLD,
            "COVERING INDEX execution_counts_by_start (seconds=? AND start<?)".to_owned(),
        ),
        (storage::USED, by("sqlite_autoindex_storage_used_1", "tenant=?")),
        (
            executions::INSTANCES,
            "SCAN executions USING COVERING INDEX executions_running".to_owned(),
        ),
        (
            executions::CANCEL_REQUESTS,
            by("executions_cancel_requested", "instance=?"),
        ),
    ]
}

fn plans_of_others() -> Vec<(&'static str, String)> {
    vec![
        (
            deliveries::PAGE,
            by("deliveries_by_time", "tenant=? AND (created_at,id)<(?,?)"),
        ),
        (
            deliveries::OF_EXECUTION,
            by("deliveries_by_execution", "execution=?"),
        ),
        (
            deliveries::NEXT,
            "COVERING INDEX deliveries_next (next_at>?)".to_owned(),
        ),
        (
            deliveries::NEXT_TENANT,
            "COVERING INDEX deliveries_due (tenant>?)".to_owned(),
        ),
        (
            deliveries::OLDEST,
            "COVERING INDEX deliveries_due (tenant=? AND next_at>? AND next_at<?)".to_owned(),
        ),
        (
            deliveries::NEWEST,
            "COVERING INDEX deliveries_due (tenant=? AND next_at>? AND next_at<?)".to_owned(),
        ),
        (
            deliveries::SENT,
            "SCAN deliveries USING COVERING INDEX deliveries_sent".to_owned(),
        ),
        (
            keys::PAGE,
            by("keys_by_time", "tenant=? AND (created_at,id)<(?,?)"),
        ),
        (keys::BY_HASH, by("sqlite_autoindex_keys_2", "hash=?")),
        (
            retention::BEYOND,
            by("executions_by_time", "tenant=? AND (created_at,id)<(?,?)"),
        ),
        (
            retention::ENDED_BEFORE,
            by("executions_by_end", "tenant=? AND finished_at<?"),
        ),
        (retention::FIRST_BEYOND, by("executions_by_time", "tenant=?")),
        (retention::NEXT_TENANT, by("executions_by_time", "tenant>?")),
        (
            secrets::PAGE,
            by("sqlite_autoindex_secrets_1", "tenant=? AND name>?"),
        ),
        (
            secrets::SEALED,
            by("sqlite_autoindex_secrets_1", "tenant=? AND name=?"),
        ),
        (
            secrets::COUNT,
            "COVERING INDEX sqlite_autoindex_secrets_1 (tenant=?)".to_owned(),
        ),
        (skills::LATEST, by("skills_by_rank", "tenant=? AND name=?")),
        (skills::NEXT_LATEST, by("skills_by_rank", "tenant=? AND name>?")),
        (
            skills::VERSIONS,
            by("skills_by_push", "tenant=? AND name=? AND push<?"),
        ),
    ]
}

/// The steps by which a statement is executed.
async fn plan(store: &Store, sql: &'static str) -> Vec<String> {
    let plan = inner(store).read(move |c| {
        let mut statement = c.prepare(&format!("explain query plan {sql}"))?;
        let none = vec![Null; statement.parameter_count()];
        let steps = statement.query_map(params_from_iter(none), |row| row.get::<_, String>("detail"))?;
        Ok(steps.collect::<Result<Vec<_>, _>>()?)
    });
    plan.await.unwrap()
}

/// a page costs a seek and its rows, however deep it lies.
#[tokio::test]
async fn every_list_is_read_from_an_index_in_order() {
    let file = File::new();
    let store = file.open().await;
    for (sql, expected) in plans() {
        // One step: no sorting besides.
        let steps = plan(&store, sql).await;
        assert_eq!(steps.len(), 1, "{steps:?}");
        assert!(steps[0].ends_with(&expected), "{steps:?} for {sql}");
    }
}

/// Lists that merge one range of an index for each status, and the range.
fn merged_plans() -> Vec<(&'static str, String)> {
    let place = "created_at>? AND (created_at,id)<(?,?)";
    let of = |index, terms| by(index, &format!("tenant=? AND {terms} AND {place}"));
    let by_skill = "executions_by_skill_and_status";
    vec![
        (
            execution_pages::PAGE_OF_STATUSES,
            of("executions_by_status", "status=?"),
        ),
        (
            execution_pages::PAGE_OF_SKILL,
            of(by_skill, "skill=? AND status=?"),
        ),
        (
            execution_pages::PAGE_OF_KEY,
            of("executions_by_key", "key_id=? AND status=?"),
        ),
        (
            execution_pages::PAGE_OF_KEY_AND_SKILL,
            of("executions_by_key", "key_id=? AND status=?"),
        ),
    ]
}

/// nothing is sorted, so a page costs a seek for each status and its rows.
#[tokio::test]
async fn lists_of_several_statuses_merge_ranges_of_an_index() {
    let file = File::new();
    let store = file.open().await;
    for (sql, expected) in merged_plans() {
        let steps = plan(&store, sql).await;
        let (ranges, merges): (Vec<_>, Vec<_>) = steps.iter().partition(|step| step.ends_with(&expected));
        assert_eq!(ranges.len(), Status::ALL.len(), "{steps:?} for {sql}");
        let merge = ["MERGE (UNION ALL)", "LEFT", "RIGHT"];
        assert!(
            merges.iter().all(|step| merge.contains(&step.as_str())),
            "{merges:?} for {sql}"
        );
    }
}
