//! What a window of any size costs: throughput on the twin, and memory that does not grow.
//!
//! `cargo test --release -p tests --test replay -- --ignored --nocapture cost`
#![allow(clippy::print_stdout, reason = "a measurement is its report")]

use crate::shop::{NOW, begin, desk, payment, rows};
use std::time::Instant;
use support::Pages;

#[test]
#[ignore = "a measurement: run it alone, with --release"]
fn cost_of_replaying_ten_thousand_events_on_the_twin() {
    let at = |n: usize| NOW.minus(3_600_000).plus(n as u64 * 300);
    let desk = desk((0..10_000).map(|n| payment(n, at(n))).collect());
    for (what, new) in [("new", 10_000), ("duplicate", 0)] {
        let began = Instant::now();
        let done = desk.replay(&begin(&desk, 2), &Pages::default()).unwrap().unwrap();
        let seconds = began.elapsed().as_secs_f64();
        assert_eq!((done.tally.fetched, done.tally.new), (10_000, new));
        println!("replay of 10,000 {what} events on the twin: {:.0} events/s", 10_000.0 / seconds);
    }
    assert_eq!(rows(&desk.world), 10_000);
}
