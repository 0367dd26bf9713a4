//! What every backend must do, as tests: written once, run for each.

pub(super) mod blobs;
pub(super) mod deliveries;
pub(super) mod executions;
pub(super) mod keys;
pub(super) mod packages;
pub(super) mod pages;
pub(super) mod queue;
pub(super) mod retention;
mod samples;
pub(super) mod secrets;
pub(super) mod skills;

use crate::store::Store;

/// Where the data of one test is. Opened twice it gives two handles on the same data, as two processes have.
pub(super) trait Place {
    async fn open(&self) -> Store;
}

/// Makes one test of each function; `$place` is evaluated again for each.
macro_rules! contract_tests {
    ($place:expr) => {
        $crate::store::contract::contract_tests! { $place;
            skills: [
                a_record_reads_back_whole,
                no_two_skills_are_imported_by_one_path,
                publishing_the_same_content_again_changes_nothing,
                a_published_version_never_changes,
                of_many_uploads_of_one_version_one_wins,
                latest_is_the_highest_release,
                of_equal_releases_the_last_push_is_latest,
                without_a_release_the_last_push_is_latest,
                a_skill_is_found_by_version_and_by_digest,
                a_deleted_version_is_gone,
                what_another_process_changes_is_seen_at_once,
                a_tenant_never_sees_the_skills_of_another,
            ]
            executions: [
                an_execution_reads_back_byte_for_byte,
                an_execution_begins_once,
                an_execution_ends_once,
                of_concurrent_ends_exactly_one_counts,
                a_dead_process_leaves_nothing_running,
                a_cancel_request_reaches_the_owner_until_the_execution_ends,
                text_is_data_and_never_a_statement,
                a_tenant_never_sees_the_executions_of_another,
            ]
            queue: [
                what_waits_starts_once_and_its_request_goes,
                what_leaves_the_queue_never_starts,
                a_request_that_is_sent_again_is_the_same_execution,
                of_many_same_requests_one_is_executed,
                what_waited_in_a_dead_process_is_adopted_in_order,
                waiting_requests_of_a_tenant_have_a_bound_together,
                what_a_tenant_keeps_is_counted,
            ]
            pages: [
                skills_are_listed_once_each_by_name,
                versions_are_listed_last_push_first,
                lists_of_skills_leave_out_the_instructions,
                executions_are_listed_newest_first,
                executions_of_one_moment_are_all_listed,
                filters_leave_exactly_what_they_say,
                pages_stay_whole_while_rows_are_added,
                keys_are_listed_newest_first,
                a_cursor_of_another_list_is_refused,
                a_page_is_never_empty_and_never_boundless,
            ]
            retention: [
                old_executions_expire,
                each_tenant_keeps_its_most_recent_executions,
                a_running_execution_is_never_forgotten,
                a_forgotten_execution_is_gone,
            ]
            keys: [
                the_first_key_is_made_once,
                a_key_is_found_by_its_hash,
                a_revoked_key_stays_revoked,
                a_key_is_replaced_whole_or_not_at_all,
                a_revoked_key_cannot_be_replaced,
                a_tenant_never_sees_the_keys_of_another,
                a_key_that_another_process_revokes_ends_at_once,
            ]
            blobs: [
                a_blob_is_kept_once_and_its_expiry_never_moves_back,
                a_tenant_keeps_only_so_much,
                an_expired_blob_is_not_there_and_comes_back_with_other_bytes,
                an_ended_blob_is_not_there_and_comes_back_with_other_bytes,
                what_came_back_is_not_forgotten,
                blobs_are_listed_newest_first,
                a_tenant_never_sees_the_blobs_of_another,
            ]
            secrets: [
                a_secret_is_set_and_set_again,
                a_tenant_keeps_only_so_many_secrets,
                secrets_are_listed_by_name,
                a_deleted_secret_is_gone,
                a_tenant_never_sees_the_secrets_of_another,
            ]
            deliveries: [
                every_end_that_is_to_be_told_is_due_with_it,
                ends_in_the_queue_are_told,
                no_two_claim_the_same_webhook,
                what_nobody_has_recorded_in_time_is_due_again,
                an_attempt_is_over_or_followed_by_another,
                tenants_and_hosts_take_turns,
                a_long_list_for_one_host_hides_no_other,
                a_webhook_is_sent_anew_when_it_is_asked_for,
                webhooks_go_with_their_execution,
                a_tenant_never_sees_the_webhooks_of_another,
                a_signing_secret_is_made_once_and_rotated,
            ]
            packages: [
                kept_packages_are_found_listed_and_dropped,
                a_tenant_never_sees_the_packages_of_another,
                what_was_used_last_stays_within_the_bound,
                the_tenant_with_the_most_packages_gives_first,
            ]
        }
    };
    ($place:expr; $($group:ident: [$($claim:ident),* $(,)?])*) => {
        $($(
            #[tokio::test(flavor = "multi_thread")]
            async fn $claim() {
                $crate::store::contract::$group::$claim(&$place).await;
            }
        )*)*
    };
}
pub(super) use contract_tests;
