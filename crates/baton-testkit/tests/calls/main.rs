//! Calls through the library, on every store: what they tell reaches who follows, and each ends once, whoever is killed.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test stops at what it did not expect"
)]

mod cancelling;
mod following;
mod searching;
mod setting;

use baton_testkit::on_every_store;

use crate::{cancelling::*, following::*, searching::*, setting::Setting};

on_every_store! {
    events_reach_all_who_follow_as_they_are_told
    follow_ups_tell_to_the_call_they_joined
    a_cancel_reaches_what_runs_and_what_is_claimed_ahead
    a_context_hears_of_the_cancel
    a_call_nobody_follows_is_cancelled
    equal_calls_are_one_while_it_lasts
    a_killed_node_restarts_and_keys_come_once
    a_subset_sum_over_the_fleet_tells_every_match_once
    calls_cancelled_at_random_with_kills_end_once
}
