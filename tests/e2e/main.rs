//! End to end: requests as providers post them, against the stack that the real template deploys.
//!
//! One stack for all cases, started before the first and taken down after the last; then nothing of
//! it may be running, and no message may be left in its queue. Cases run one after another, since
//! they look at one queue, and each uses ids of its own, so that any of them can be run alone:
//! `cargo test -p tests --test e2e -- redrive`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "test code: a failed unwrap is a failed test"
)]

mod accept;
mod alarms;
mod calls;
mod command;
mod fuzz;
mod interrupt;
mod keep;
mod order;
mod paypal;
mod providers;
mod reconcile;
mod recover;
mod refuse;
mod replay;
mod replay_route;
mod revive;
mod runbook;
mod strategies;
mod suite;
mod vendors;

use std::process::ExitCode;
use suite::Suite;
use support::{Case, run_cases};

macro_rules! cases {
    ($($module:ident :: $name:ident,)+) => {
        vec![$(Case::<Suite> { name: concat!(stringify!($module), "::", stringify!($name)), run: |suite| suite.block_on($module::$name(suite)) },)+]
    };
}

fn main() -> ExitCode {
    let cases = cases![
        accept::official_sdks_are_accepted_and_their_bytes_kept,
        vendors::every_vendors_own_package_agrees_to_the_byte,
        providers::a_batch_becomes_a_row_each_and_one_bad_element_loses_no_neighbour,
        providers::a_delivery_of_more_than_500_events_is_kept_whole_and_dead,
        providers::handshakes_are_answered_and_probes_get_their_401,
        providers::old_new_and_local_keys_verify_and_the_row_says_which,
        paypal::a_paypal_delivery_is_proven_by_the_certificate_it_points_to,
        accept::the_base64_flag_decides_how_a_body_is_read,
        accept::megabytes_come_back_byte_for_byte,
        order::two_hundred_copies_at_once_are_one_row_and_one_change,
        order::every_order_of_arrival_ends_in_the_same_state,
        strategies::fetched_state_is_the_providers_whatever_events_say_and_who_it_does_not_know_waits,
        strategies::events_of_one_second_end_in_what_the_provider_says_and_others_ask_nobody,
        strategies::a_real_stripes_own_webhooks_shuffled_and_doubled_end_in_what_its_api_says,
        strategies::numbers_end_in_their_own_order_and_go_on_behind_a_gap,
        strategies::payments_are_added_and_listed_once_in_any_order,
        refuse::what_is_not_authentic_is_refused_and_not_explained,
        refuse::a_malformed_gateway_event_is_answered_and_never_a_function_error,
        keep::an_event_nobody_configured_settles_as_ignored,
        keep::an_event_of_the_other_mode_settles_as_ignored,
        keep::the_same_id_with_other_bytes_is_kept_beside_the_first,
        keep::what_is_signed_but_unreadable_is_kept_dead_and_answered_2xx,
        keep::a_poison_event_goes_to_the_dead_letters_alone,
        revive::a_redrive_from_the_dead_letters_grants_one_fresh_budget,
        revive::a_redriven_message_of_a_settled_row_changes_nothing,
        revive::a_claim_whose_message_was_lost_is_sent_by_the_steward,
        revive::a_dead_row_is_redriven_by_itself_when_it_is_due,
        revive::a_new_build_gives_what_died_before_it_one_fresh_budget,
        revive::a_row_whose_workers_died_is_buried_by_force,
        revive::a_message_without_a_row_ends_with_the_dead_letters,
        recover::all_the_dead_come_back_with_their_messages_and_the_rows_name_the_person,
        recover::a_replay_from_the_ledger_gives_back_what_the_state_lost_and_refuses_sums,
        recover::doctor_names_a_setting_that_a_hand_changed,
        alarms::k06_the_dead_ring_by_depth_by_rate_and_by_age,
        alarms::every_other_alarm_rings_at_its_figure_and_not_before,
        runbook::the_runbooks_comparison_can_fail,
        runbook::every_command_of_the_runbook_answers_as_it_stands_there,
        calls::two_calls_a_new_event_one_a_duplicate_none_a_refusal,
        replay_route::a_token_opens_its_own_source_and_says_new_or_duplicate,
        replay_route::a_closed_route_is_no_route,
        replay::github_hands_over_what_is_missing_and_no_body_is_read_twice,
        replay::paddle_asks_for_patience_breaks_off_and_is_read_to_the_end,
        replay::killed_time_and_again_it_ends_complete_and_nothing_is_applied_twice,
        replay::of_4812_events_22_are_new_and_the_chart_shows_the_hole,
        interrupt::a_replay_from_a_provider_goes_on_by_the_command_it_names,
        interrupt::a_replay_from_the_ledger_goes_on_with_its_run_in_its_window,
        interrupt::a_backfill_goes_on_at_its_line_and_sets_nothing_twice,
        interrupt::a_comparison_that_waits_for_the_provider_does_not_keep_the_operator,
        interrupt::a_stream_is_left_with_every_line_whole_and_no_complaint,
        reconcile::a_gap_is_claimed_said_and_counted,
        reconcile::a_person_compares_one_source_now,
        fuzz::random_requests_are_never_a_5xx_and_write_nothing,
        fuzz::logs_hold_no_body_no_signature_and_no_secret,
    ];
    run_cases(cases, Suite::start, Suite::end)
}
