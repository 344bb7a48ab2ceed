//! The conformance suite: one list of cases for every store.
//!
//! Each case is a function over a [`Scene`]; [`for_each_case!`] names them all once, and a test file turns the list
//! into one test a case and store. After each case the books must balance deeply.

mod baton_cases;
mod body_cases;
mod cache_cases;
mod call_cases;
mod call_scene;
mod claim_cases;
mod clock_cases;
mod error_cases;
mod event_cases;
mod header_cases;
mod partly_cases;
mod purge_cases;
mod push_cases;
mod reap_cases;
mod scene;
mod session_cases;
mod settle_cases;
mod submit_cases;
mod survey_cases;
mod wait_cases;

pub use self::{
    baton_cases::*, body_cases::*, cache_cases::*, call_cases::*, claim_cases::*, clock_cases::*, error_cases::*,
    event_cases::*, header_cases::*, partly_cases::*, purge_cases::*, push_cases::*, reap_cases::*, scene::Scene,
    session_cases::*, settle_cases::*, submit_cases::*, survey_cases::*, wait_cases::*,
};

/// Calls a macro with the name of every case.
#[macro_export]
macro_rules! for_each_case {
    ($apply:ident) => {
        $apply! {
            joining_twice_is_joining_once
            a_heartbeat_over_a_third_of_the_lease_is_refused
            a_silent_session_is_reaped_and_stale_for_ever
            a_late_call_revives_until_it_is_reaped
            leaving_hands_claims_back_without_a_loss
            leaving_twice_is_leaving_once
            a_stop_reaches_those_who_joined_before_it
            a_stall_of_the_store_ends_no_session
            a_clock_step_ends_no_session
            the_smallest_lease_bounds_the_clock
            one_session_holds_a_baton
            the_holder_takes_the_same_epoch_again
            a_lost_holder_frees_the_baton
            a_holder_that_left_frees_the_baton
            resigning_an_old_epoch_does_nothing
            epochs_grow_when_the_clock_goes_back
            another_definition_is_refused
            an_adopting_source_takes_a_new_definition_at_its_cursor
            two_live_definitions_are_refused
            a_source_is_removed_once_nobody_offers_it
            a_client_is_never_given_a_baton
            a_beat_tells_of_what_its_session_offers_and_nothing_else
            an_ended_source_stays_ended_until_rewound
            an_ended_source_goes_on_at_its_cursor
            rewinding_needs_no_live_holder
            pushes_are_checked_in_order
            a_repeated_push_is_a_duplicate
            a_gap_tells_where_the_source_stands
            a_full_queue_refuses_a_push_whole
            an_old_baton_is_refused_and_counted
            ids_are_consecutive_over_sources_and_submits
            submits_are_serial_and_repeat_their_answers
            a_submit_of_nothing_uses_its_number
            a_key_is_one_message_for_a_day
            a_key_is_bound_to_its_queue
            keys_are_bounded_and_none_is_dropped
            a_key_lives_as_long_as_its_submission_says
            expired_keys_do_not_count
            a_bookmark_moves_with_its_submissions
            a_full_queue_refuses_each_submission_or_the_bookmark
            claims_of_two_queues_are_separate
            a_claim_is_bounded_by_bytes_but_never_empty
            a_repeated_claim_gives_what_is_in_flight
            a_settled_claim_number_is_spent
            an_empty_claim_keeps_its_number
            claims_may_overtake_each_other
            claim_numbers_stay_within_the_window
            a_paused_queue_gives_nothing
            an_empty_claim_tells_when_to_come_back
            splitting_a_parcel_keeps_its_bodies
            a_message_without_its_body_is_buried_and_the_next_is_given
            a_claimed_message_whose_body_went_is_settled_or_buried
            a_claim_buries_so_many_and_no_more
            settles_take_ranges_and_masks
            settles_are_serial_and_repeat_their_answers
            a_bad_run_is_refused_alone
            a_late_token_is_refused_and_counted
            another_session_cannot_settle
            retried_messages_come_back_when_due
            back_goes_to_the_front_in_order
            results_and_follow_ups_commit_with_the_settle
            results_take_so_much_room_and_the_oldest_go
            follow_ups_pass_a_full_queue
            bytes_fall_with_each_message_that_leaves
            a_parcel_goes_with_its_last_message
            a_straggler_in_each_parcel_holds_up_no_source
            a_parcel_with_an_eighth_left_is_stored_without_the_others
            what_is_left_of_a_parcel_is_claimed_retried_and_buried_as_ever
            headers_travel_with_their_messages
            the_last_error_stays_with_a_retried_message
            losses_split_spans_in_id_order
            a_reap_reports_who_was_lost_and_what_went_back
            suspects_go_one_to_a_session
            a_poison_message_ends_as_one_error
            losses_are_counted_apart_from_attempts
            errors_are_drained_in_two_phases
            a_drainer_that_dies_loses_nothing
            one_drainer_at_a_time
            a_repeated_disposal_disposes_once
            requeued_errors_run_again_under_their_ids
            pages_are_bounded_by_bytes_but_never_empty
            a_purge_removes_what_waits_and_nothing_else
            a_repeated_purge_removes_once
            a_purge_goes_in_steps
            a_purged_call_ends_as_cancelled
            a_purge_removes_failed_messages_if_asked
            a_removed_queue_is_forgotten_and_its_ids_go_on
            the_bookmarks_of_a_removed_queue_are_forgotten
            an_unused_store_is_empty
            a_survey_tells_of_many_and_progress_of_one
            progress_tells_when_the_first_delayed_message_is_due
            a_destruction_needs_all_nodes_gone
            malformed_requests_change_nothing
            a_push_wakes_a_waiting_worker
            a_wait_without_a_message_lasts_its_time_and_ends
            a_wait_does_not_extend_a_lease
            a_claim_waits_on_while_others_are_served
            a_session_that_goes_wakes_several_others
            a_message_wakes_one_session
            a_claim_that_leaves_something_wakes_the_next
            wake_ups_are_passed_on
            a_look_tells_what_is_worth_a_claim
            a_beat_tells_whether_others_without_a_baton_work_a_queue
            a_call_ends_with_its_last_message
            a_plain_message_is_no_call
            an_emit_is_kept_once_and_only_for_the_holder
            a_new_attempt_voids_what_has_no_key
            follow_ups_join_a_call
            a_claim_withholds_what_was_cancelled
            a_cancel_ends_what_is_delayed_at_once
            done_and_dead_win_over_a_cancel
            a_log_is_bounded_and_waits_for_the_fastest_follower
            the_keys_of_a_call_are_bounded
            a_follower_is_woken_when_there_is_more
            a_forsaken_call_is_cancelled
            a_call_is_kept_for_an_hour
            calls_that_have_ended_are_kept_within_a_bound
            a_key_is_one_call
            a_later_message_with_the_id_is_another
            one_session_computes_and_the_others_wait
            only_the_one_with_the_right_hands_in
            what_was_computed_before_it_was_forgotten_is_not_kept
            prefixes_cover_what_is_below_them_and_nothing_else
            a_session_that_goes_frees_its_compute_rights_and_wakes_those_who_wait
            values_end_on_the_fleet_clock
            what_may_not_be_kept_is_computed_by_all_at_once
            an_error_is_told_until_it_ends
            values_take_so_much_room_and_the_oldest_go
            a_compute_right_that_lasts_too_long_is_taken_over
            a_session_has_so_many_compute_rights
            what_was_forgotten_folds_into_a_floor
        }
    };
}
