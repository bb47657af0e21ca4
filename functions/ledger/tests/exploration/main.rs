//! The exploration: every interleaving of deliveries, workers, steward and person, with a crash
//! at every step and every answer lost, over the crate's own verbs.
//!
//! - [`world`] is one state of everything; [`receiver`], [`worker`] and [`others`] are what each
//!   actor may do next; [`verbs`] and [`change`] ask the real verbs; [`times`] says what became
//!   of time.
//! - [`properties`] is what must never happen, [`rescue`] that nothing is ever lost, and
//!   [`suites`] what is explored and what must be met.
//! - [`broken`] takes one thing out of the protocol at a time, and each time something breaks.
//!
//! `cargo test -p ledger --test exploration` runs the standard suite;
//! `ONCEHOOK_EXPLORE=large` in front of it the large one. Both print what they explored.
//!
//! Not explored: more than two events of an entity, more than one bad projection outcome per
//! run, rates and quotas, and time as such: a clock reads early or late, never how late.

#![expect(clippy::expect_used, reason = "a failed expectation is a failed test")]
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "hashing wants the low bits, and the model's numbers are small"
)]
#![expect(clippy::struct_excessive_bools, reason = "bounds are switches that combine freely")]

mod bounds;
mod broken;
mod change;
mod model;
mod others;
mod pool;
mod process;
mod properties;
mod receiver;
mod rescue;
mod search;
mod suites;
mod times;
mod verbs;
mod worker;
mod world;

use bounds::{Bounds, Design};
use search::{Report, explore};
use std::{
    collections::BTreeSet,
    io::Write,
    sync::{Mutex, PoisonError},
};

/// Explorations at a time.
const THREADS: usize = 2;

/// Prints past the test harness, which swallows what a passing test prints.
fn tell(text: &impl std::fmt::Display) {
    // A closed standard error is no reason to fail.
    let _ = writeln!(std::io::stderr(), "{text}");
}

fn explore_all(suite: Vec<Bounds>) -> Vec<Report> {
    let open = Mutex::new(suite.into_iter());
    let reports = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let next = open.lock().unwrap_or_else(PoisonError::into_inner).next();
                    let Some(bounds) = next else { return };
                    let report = explore(bounds, Design::Whole);
                    tell(&report);
                    reports.lock().unwrap_or_else(PoisonError::into_inner).push(report);
                }
            });
        }
    });
    reports.into_inner().unwrap_or_else(PoisonError::into_inner)
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the rules read no environment, this test may")]
fn every_interleaving_keeps_every_promise() {
    let is_large = std::env::var("ONCEHOOK_EXPLORE").is_ok_and(|word| word == "large");
    let suite = if is_large { suites::large() } else { suites::standard() };
    let reports = explore_all(suite);

    let broken: Vec<_> = reports
        .iter()
        .filter_map(|report| Some((report.name, report.counterexample.as_ref()?)))
        .collect();
    for (name, counterexample) in &broken {
        tell(&format_args!("{name}\n{counterexample}"));
    }
    assert!(broken.is_empty(), "a promise is broken; the shortest way there is printed above");

    for report in reports.iter().filter(|_| !is_large) {
        assert!(report.is_complete, "{} was not explored to its end", report.name);
    }
    let met: BTreeSet<&str> = reports
        .iter()
        .flat_map(|report| report.heard.iter().chain(&report.shapes))
        .map(String::as_str)
        .collect();
    let missed: Vec<_> = suites::MUST_BE_MET.iter().filter(|one| !met.contains(*one)).collect();
    assert!(missed.is_empty(), "never met: {missed:?}");

    let states: usize = reports.iter().map(|report| report.states).sum();
    let always = properties::Property::ALL.len();
    let sometimes = suites::MUST_BE_MET.len();
    tell(&format_args!(
        "exploration: {states} states, {always} always properties kept, {sometimes} sometimes \
         properties met"
    ));
}
