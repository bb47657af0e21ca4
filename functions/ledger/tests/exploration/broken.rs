//! The protocol with one thing taken out. Each must fail, and says how in the fewest steps: a
//! search that finds nothing wrong with these would find nothing wrong with anything.

use crate::{
    bounds::{Bounds, Design, Projection},
    properties::Property,
    search::explore,
    tell,
};

/// Searches a broken design; returns the length of the shortest way to `property`.
fn refute(design: Design, mut bounds: Bounds, property: Property) -> usize {
    bounds.symmetric = false;
    bounds.states_max = 2_000_000;
    let report = explore(bounds, design);
    let found = report.counterexample.as_ref().map(|found| found.property);
    tell(&report);
    let Some(counterexample) = report.counterexample else {
        panic!("{design:?} was not refuted within its bounds");
    };
    tell(&counterexample);
    assert_eq!(found, Some(property), "{design:?} broke otherwise than expected");
    counterexample.steps.len()
}

#[test]
fn without_the_fence_a_delta_is_added_twice() {
    let bounds = Bounds { deliveries: &[0], ..Bounds::new("no fence", Projection::Delta) };
    assert!(refute(Design::NoFence, bounds, Property::NeverDoubled) <= 12);
}

#[test]
fn without_the_version_guard_an_old_snapshot_replaces_a_new_one() {
    let bounds =
        Bounds { deliveries: &[0, 1], ..Bounds::new("no version guard", Projection::Snapshot) };
    assert!(refute(Design::NoVersionGuard, bounds, Property::NeverReversed) <= 12);
}

#[test]
fn two_writes_instead_of_the_transaction_double_a_delta_when_the_worker_dies_between_them() {
    let bounds = Bounds { deliveries: &[0], ..Bounds::new("two writes", Projection::Delta) };
    assert!(refute(Design::TwoWrites, bounds, Property::NeverDoubled) <= 12);
}

#[test]
fn a_duplicate_answered_as_done_while_only_claimed_loses_the_event_where_nothing_sweeps() {
    let bounds = Bounds {
        deliveries: &[0, 0],
        stewards: 0,
        ..Bounds::new("done while claimed", Projection::Snapshot)
    };
    assert!(refute(Design::DoneWhileClaimed, bounds, Property::NeverLost) <= 12);
}

#[test]
fn a_redriven_row_left_among_the_dead_is_never_looked_at_again() {
    let bounds = Bounds {
        deliveries: &[0],
        redrives_max: 1,
        permanent: true,
        transient: true,
        ..Bounds::new("left among the dead", Projection::Snapshot)
    };
    assert!(refute(Design::LeftAmongTheDead, bounds, Property::NeverLost) <= 15);
}

#[test]
fn a_waiter_woken_only_by_a_message_sleeps_for_ever_when_its_waker_dies() {
    let bounds = Bounds {
        deliveries: &[0, 1],
        ..Bounds::new("woken by message only", Projection::Sequence)
    };
    assert!(refute(Design::WokenByMessageOnly, bounds, Property::NeverLost) <= 16);
}

#[test]
fn a_wake_for_waiting_rows_only_oversleeps_a_row_whose_worker_died() {
    let bounds =
        Bounds { deliveries: &[0, 1], ..Bounds::new("wakes waiters only", Projection::Sequence) };
    assert!(refute(Design::WakesWaitersOnly, bounds, Property::WaitersAreWoken) <= 16);
}

#[test]
fn a_set_of_waiters_that_changes_without_the_revision_is_overlooked() {
    let bounds = Bounds {
        deliveries: &[0, 1],
        coarse: true,
        gap: true,
        ..Bounds::new("silent waiters", Projection::Sequence)
    };
    assert!(refute(Design::SilentWaiters, bounds, Property::WaitersAreWoken) <= 16);
}

#[test]
fn a_burial_dated_before_its_own_message_is_undone_by_it() {
    let bounds =
        Bounds { deliveries: &[0], ..Bounds::new("backdated burial", Projection::Snapshot) };
    assert!(refute(Design::BackdatedBurial, bounds, Property::NoBudgetNobodyGranted) <= 16);
}

#[test]
fn messages_that_redrive_whatever_their_age_grant_budgets_nobody_granted() {
    let bounds = Bounds {
        deliveries: &[0],
        transient: true,
        ..Bounds::new("ageless messages", Projection::Snapshot)
    };
    assert!(refute(Design::AgelessMessages, bounds, Property::NoBudgetNobodyGranted) <= 16);
}
