//! One suite of port tests, run on the in-memory twin and on an emulated DynamoDB.
//!
//! For every pair of a row and a verb, one value on each side of every comparison, the store must
//! accept exactly when the pure verb does, leave exactly the row that the verb computes, and read
//! a refusal exactly as the verb reads it. So the rule that stands twice, as a function and as a
//! condition expression, is one rule.
//!
//! The emulator is a process of its own; nothing is deployed. With `ONCEHOOK_MOTO=1` the same
//! pairs run a third time, on a second emulator.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "test code: a failed unwrap is a failed test"
)]

mod apply;
mod backfill;
mod check;
mod emulator;
mod indexes;
mod lives;
mod sequence;
mod store;
mod units;
mod verbs;

use std::process::ExitCode;
use store::Stores;
use support::{Case, run_cases};

macro_rules! cases {
    ($($module:ident :: $name:ident,)+) => {
        vec![$(Case::<Stores> { name: stringify!($name), run: |stores| stores.block_on($module::$name(stores)) },)+]
    };
}

fn main() -> ExitCode {
    let cases = cases![
        indexes::both_indexes_list_alike,
        indexes::chunks_and_notes_come_back_as_written,
        indexes::a_chunk_lives_as_long_as_its_row_may_need_it,
        indexes::a_closed_row_dates_its_body,
        indexes::a_proof_is_bound_once,
        indexes::keys_are_looked_up_and_notes_kept_alike,
        // Early: moto copies its tables for every transaction.
        apply::apply_under_the_fence,
        apply::apply_behind_the_version_guard,
        apply::apply_on_the_revision_read,
        apply::apply_to_several_entities,
        apply::apply_that_wakes_a_waiter,
        backfill::backfill_a_version,
        verbs::claim,
        verbs::lease,
        verbs::settle,
        verbs::wait,
        sequence::wait_in_sequence,
        verbs::fail,
        verbs::bury,
        verbs::forced_bury,
        verbs::redrive,
        verbs::sweep,
        verbs::resolve,
        units::write_units_of_an_event,
    ];
    run_cases(cases, Stores::start, Stores::end)
}
