//! A flood of events that fail for good: a provider changed its format.

use crate::{
    rig::{poison, subscription},
    system::{HOUR, MINUTE, SECOND, System, percentile, shown, times_to_settle},
};
use ledger::Status;

#[test]
fn a_flood_of_permanent_failures_goes_to_the_dead_letter_queue_and_starves_nobody() {
    let system = System::new();
    let mut engine = system.engine(4);
    let (bad, good) = (6_000, 600);
    // Fifty a second for two minutes, and five good ones a second beside them.
    engine.spawn(system.traffic(bad, 20, |n| poison(&format!("bad_{n}"))));
    engine.spawn(system.traffic(good, 200, |n| {
        subscription(&format!("evt_{n}"), "created", n, &format!("sub_{n}"), "gold")
    }));
    engine.run_for(2 * MINUTE);
    let gone = engine.run_until(HOUR, SECOND, || system.twin().queue_len() == 0);
    engine.run_for(2 * HOUR);
    let times = times_to_settle(&system.rows("evt_"));
    println!(
        "flood: 50/s permanent failures for 2 min: {} dead letters, the queue empty {} later; 5/s good beside them: \
         half settled within {} ms, 99 % within {} ms",
        system.twin().dead_letter_bodies().len(),
        shown(gone),
        percentile(&times, 50),
        percentile(&times, 99)
    );
    assert!(system.all_settled("evt_", good));
    assert!(percentile(&times, 99) <= 5 * SECOND);
    let rows = system.rows("bad_");
    assert_eq!(rows.len() as u64, bad);
    assert!(rows.iter().all(|row| row.life.status == Status::Dead && row.life.epoch == 1));
    assert_eq!(system.twin().dead_letter_bodies().len() as u64, bad);
    let tally = system.tally();
    assert_eq!((tally.redriven, tally.swept, tally.cleared), (0, 0, 0));
}
