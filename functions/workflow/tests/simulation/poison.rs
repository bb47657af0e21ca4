//! Records that fail for good, and records that kill whoever works them.

use crate::{
    rig::{payment, poison, subscription},
    system::{HOUR, MINUTE, SECOND, System, percentile, shown, times_to_settle},
};
use ledger::{FailureClass, Status};

#[test]
fn one_poison_record_in_twenty_takes_no_neighbour_with_it() {
    let system = System::new();
    let mut engine = system.engine(2);
    let events = 3_000;
    engine.spawn(system.traffic(events, 50, |n| match n % 20 {
        7 => poison(&format!("bad_{n}")),
        _ => subscription(&format!("evt_{n}"), "created", n, &format!("sub_{n}"), "gold"),
    }));
    engine.run_for(5 * MINUTE);
    let (good, bad) = (system.rows("evt_"), system.rows("bad_"));
    let times = times_to_settle(&good);
    println!(
        "poison, 1 in 20 at 20/s: {} good settled, half within {} ms, 99 % within {} ms, all in one run; \
         {} poison dead after one run each",
        good.len(),
        percentile(&times, 50),
        percentile(&times, 99),
        bad.len()
    );
    assert!(good.iter().all(|row| (row.life.status, row.life.attempts) == (Status::Settled, 1)));
    assert!(percentile(&times, 99) <= 2 * SECOND);
    assert_eq!(bad.len(), 150);
    assert!(bad.iter().all(|row| (row.life.status, row.life.attempts) == (Status::Dead, 1)));
    let letters = system.twin().dead_letter_bodies();
    assert_eq!(letters.len(), 150);
    assert!(letters.iter().all(|letter| letter.contains("bad_")));
}

#[test]
fn a_record_that_kills_its_worker_is_buried_and_its_neighbours_settle() {
    let system = System::new();
    let mut engine = system.engine(1);
    let events = 3_000;
    engine.spawn(system.traffic(events, 20, |n| match n {
        1_500 => payment("killer_1", "acct_1", 1),
        _ => subscription(&format!("evt_{n}"), "created", n, &format!("sub_{n}"), "gold"),
    }));
    let buried = engine.run_until(HOUR, SECOND, || {
        system.rig.twin.find("shop#killer_1").is_some_and(|row| row.life.status == Status::Dead)
    });
    let (killer, deaths) = (system.rig.row("killer_1").life, system.deaths());
    let good = system.rows("evt_");
    let times = times_to_settle(&good);
    println!(
        "a record that kills its worker: {} deaths, buried {} after it came; {} neighbours settled, the last within {}, \
         most attempts {}",
        deaths,
        shown(buried.saturating_sub(30 * SECOND)),
        good.len(),
        shown(percentile(&times, 100)),
        good.iter().map(|row| row.life.attempts).max().unwrap_or(0)
    );
    assert_eq!(deaths, 6, "as often as the budget says");
    assert_eq!(killer.failure.unwrap().error, "the worker died 6 times");
    assert!(system.all_settled("evt_", events - 1));
    assert!(good.iter().all(|row| row.life.attempts <= 2), "a neighbour loses one attempt at most");
    assert!(percentile(&times, 100) <= 4 * MINUTE);
}

#[test]
fn nobody_revives_what_no_run_can_cure_however_long_it_lies() {
    let system = System::new();
    let mut engine = system.engine(1);
    engine.spawn(system.traffic(50, SECOND, |n| poison(&format!("bad_{n}"))));
    engine.run_for(8 * HOUR);
    let bad = system.rows("bad_");
    assert!(bad.iter().all(|row| row.life.epoch == 1 && row.life.redrives == 0));
    assert!(bad.iter().all(|row| {
        row.life.failure.as_ref().map(|failure| failure.class) == Some(FailureClass::Permanent)
    }));
    assert_eq!((system.tally().redriven, system.twin().dead_letter_bodies().len()), (0, 50));
}
