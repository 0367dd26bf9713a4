//! What every backend must do, as tests: written once, run for each.

pub(super) mod audit;
pub(super) mod blobs;
pub(super) mod counts;
pub(super) mod deliveries;
pub(super) mod executions;
pub(super) mod keys;
pub(super) mod packages;
pub(super) mod pages;
pub(super) mod queue;
pub(super) mod requests;
pub(super) mod retention;
mod samples;
pub(super) mod secrets;
pub(super) mod sessions;
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
                record_reads_back_unchanged,
                rejects_skill_with_import_path_of_another,
                packages_of_a_version_change_alone,
                publishing_same_content_again_changes_nothing,
                rejects_other_content_under_published_version,
                one_of_concurrent_publications_wins,
                latest_is_the_highest_release,
                last_push_of_equal_releases_is_latest,
                last_push_is_latest_without_release,
                repeated_push_without_version_is_latest,
                a_skill_is_found_by_version_and_by_digest,
                deleted_version_is_not_found,
                changes_of_another_process_are_visible_at_once,
                a_tenant_never_sees_the_skills_of_another,
            ]
            executions: [
                an_execution_reads_back_byte_for_byte,
                omitted_parts_of_an_execution_are_empty,
                execution_is_inserted_once,
                execution_is_finished_once,
                running_execution_is_withdrawn,
                one_of_concurrent_finishes_wins,
                interrupts_executions_of_dead_process,
                a_cancel_request_reaches_the_owner_until_the_execution_ends,
                text_is_never_executed_as_sql,
                a_tenant_never_sees_the_executions_of_another,
            ]
            queue: [
                queued_execution_starts_once_and_its_request_is_deleted,
                finished_or_deleted_queued_execution_never_starts,
                repeated_request_returns_same_execution,
                concurrent_repeated_requests_create_one_execution,
                queue_of_dead_process_is_recovered_in_order,
                queued_requests_of_a_tenant_are_limited_in_total,
                counts_stored_bytes_of_tenant,
            ]
            pages: [
                skills_are_listed_once_each_by_name,
                versions_are_listed_last_push_first,
                lists_of_skills_omit_instructions,
                executions_are_listed_newest_first,
                lists_all_executions_of_one_microsecond,
                filters_select_exactly_matching_executions,
                pages_are_complete_while_rows_are_added,
                keys_are_listed_newest_first,
                a_cursor_of_another_list_is_refused,
                page_size_is_clamped,
            ]
            requests: [
                kept_request_reads_back_until_its_execution_is_deleted,
                queued_execution_keeps_its_request_when_it_starts,
                execution_without_kept_request_has_none,
                withdrawn_executions_lose_their_requests,
                kept_requests_of_ended_executions_count_as_storage,
                a_tenant_never_sees_the_requests_of_another,
            ]
            retention: [
                old_executions_expire,
                retains_most_recent_executions_of_each_tenant,
                running_execution_is_never_deleted,
                deleted_execution_is_not_found,
            ]
            keys: [
                first_key_is_created_once,
                a_key_is_found_by_its_hash,
                a_key_is_found_by_its_id_in_its_tenant,
                a_revoked_key_stays_revoked,
                key_is_replaced_atomically,
                a_revoked_key_cannot_be_replaced,
                a_tenant_never_sees_the_keys_of_another,
                revocation_by_another_process_applies_at_once,
            ]
            sessions: [
                a_session_is_found_by_its_cookie_with_its_key,
                a_session_shows_current_state_of_its_key,
                use_of_a_session_never_moves_back,
                sessions_are_listed_newest_first_until_they_end,
                least_recently_used_session_is_deleted_beyond_quota,
                ended_sessions_are_deleted,
                a_sign_in_link_is_taken_once,
                an_expired_sign_in_link_is_not_found,
                sign_in_links_of_a_key_are_limited,
                a_tenant_never_sees_the_sessions_of_another,
            ]
            audit: [
                audit_entries_read_back_newest_first,
                oldest_audit_entries_are_deleted_beyond_limit,
                old_audit_entries_are_deleted,
                a_tenant_never_sees_the_audit_trail_of_another,
            ]
            blobs: [
                blob_is_stored_once_and_its_expiry_never_moves_back,
                rejects_blob_over_quota,
                expired_blob_is_not_found_and_gets_other_bytes,
                retired_blob_is_not_found_and_gets_other_bytes,
                blob_uploaded_again_is_not_deleted,
                blobs_are_listed_newest_first,
                a_tenant_never_sees_the_blobs_of_another,
            ]
            secrets: [
                secret_is_created_and_replaced,
                rejects_secret_over_quota,
                secrets_are_listed_by_name,
                deleted_secret_is_not_found,
                a_tenant_never_sees_the_secrets_of_another,
            ]
            deliveries: [
                every_outcome_makes_its_webhook_due,
                outcomes_of_queued_executions_make_webhooks_due,
                webhook_is_claimed_once,
                expired_claim_is_due_again,
                attempt_ends_or_schedules_a_retry,
                tenants_and_hosts_take_turns,
                long_list_for_one_host_delays_no_other_host,
                redelivery_makes_webhook_due_again,
                webhooks_are_deleted_with_their_execution,
                a_tenant_never_sees_the_webhooks_of_another,
                signing_secret_is_created_once_and_rotated,
            ]
            counts: [
                each_ended_execution_is_counted_once,
                a_deleted_execution_stays_counted_once,
                executions_of_one_microsecond_are_counted_once,
                old_counts_are_deleted,
                a_tenant_never_sees_the_counts_of_another,
            ]
            packages: [
                packages_are_found_listed_and_deleted,
                a_tenant_never_sees_the_packages_of_another,
                recently_used_packages_stay_within_limit,
                tenant_with_most_packages_loses_them_first,
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
