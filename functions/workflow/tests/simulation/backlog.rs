//! The queue stood still under load, or the steward did.

use crate::{
    rig::subscription,
    system::{HOUR, MINUTE, SECOND, System, scale, scaled, shown},
};
use ledger::Row;
use workflow::{ports::Trouble, twin::Fault};

#[test]
fn half_an_hours_backlog_drains_and_the_sweeper_does_not_feed_it() {
    // Traffic, the consumer's 300 events a second and the limits that count messages, all scaled.
    let parts = scale(10);
    let (per_second, workers) = if parts == 1 { (100, 3) } else { (100 / parts, 1) };
    let system = System::with(scaled(parts));
    if parts > 1 {
        system.invocation_ms.set(parts * 30);
    }
    let mut engine = system.engine(workers);
    let events = per_second * 60 * 45;
    engine.spawn(system.traffic(events, SECOND / per_second, |n| {
        subscription(&format!("evt_{n}"), "updated", n, &format!("sub_{}", n % 500), "gold")
    }));
    engine.run_for(2 * MINUTE);
    let before = system.tally();
    assert_eq!(before.swept, 0, "nothing is sent twice while the consumer keeps up");

    system.consumes.set(false);
    engine.run_for(30 * MINUTE);
    let behind = system.twin().queue_len();
    system.consumes.set(true);
    let drained = engine.run_until(2 * HOUR, SECOND, || system.twin().queue_len() < 100);
    engine.run_for(15 * MINUTE);

    assert!(system.all_settled("evt_", events), "every event is settled");
    let swept = system.tally().swept;
    println!(
        "backlog: {per_second}/s, consumer stopped for 30 min: {behind} behind, drained in {}, \
         {swept} extra messages by the sweeper",
        shown(drained)
    );
    assert!(behind as u64 >= per_second * 60 * 30);
    assert!(drained <= 20 * MINUTE, "{}", shown(drained));
    // While more than a thousand are visible only rows overdue by an hour are sent, and there are
    // none. Below that, what waits is sent once: when the backlog begins and when it ends.
    assert!(swept <= 2 * scaled(parts).backlog_messages, "{swept}");
    assert!(swept * 100 <= behind as u64, "{swept} extra messages for {behind}");
    assert_eq!(system.twin().dead_letter_bodies().len(), 0);
}

#[test]
fn lost_messages_behind_a_growing_backlog_are_sent_again_within_two_hours() {
    // For three hours the consumer does half of what comes, and one message in fifty is never sent.
    let parts = 100;
    let system = System::with(scaled(parts));
    system.invocation_ms.set(19_900);
    let events = 3 * HOUR / SECOND;
    let mut sends = 0_u64;
    system.twin().set_faults(move |step, _| {
        sends += u64::from(step == "send");
        let lost = step == "send" && sends.is_multiple_of(50);
        lost.then_some(Fault::Before(Trouble::Unavailable))
    });
    let mut engine = system.engine(1);
    engine.spawn(system.traffic(events, SECOND, |n| {
        subscription(&format!("evt_{n}"), "updated", n, &format!("sub_{}", n % 500), "gold")
    }));
    let mut oldest_unsent = 0;
    engine.run_until(3 * HOUR, 5 * MINUTE, || {
        let now = system.rig.now();
        // Neither worked nor swept: its own message waits still, or was lost.
        let untouched = |row: &Row| row.life.attempts == 0 && row.life.sweeps == 0;
        let rows = system.rows("evt_");
        let ages = rows.iter().filter(|row| untouched(row));
        let oldest = ages.map(|row| now.since(row.evidence.received_at)).max().unwrap_or(0);
        oldest_unsent = oldest_unsent.max(oldest);
        false
    });
    let behind = system.twin().queue_len();
    system.twin().clear_faults();
    system.invocation_ms.set(60);
    engine.run_until(HOUR, SECOND, || system.twin().queue_len() == 0);
    engine.run_for(10 * MINUTE);
    println!(
        "backlog that grows for 3 h, 1 message in 50 lost: {behind} behind at its end, {} extra messages; \
         nobody waited longer than {} to be worked or sent again",
        system.tally().swept,
        shown(oldest_unsent)
    );
    assert!(behind as u64 > events / 3, "{behind}");
    assert!(oldest_unsent <= 2 * HOUR, "{}", shown(oldest_unsent));
    assert!(system.all_settled("evt_", events));
}

#[test]
fn a_steward_that_was_down_for_half_an_hour_finds_what_nobody_sent() {
    let system = System::new();
    let events = 1_800;
    // Every tenth message is not sent, and the provider does not repeat itself.
    let mut sends = 0_u64;
    system.twin().set_faults(move |step, _| {
        sends += u64::from(step == "send");
        let lost = step == "send" && sends.is_multiple_of(10) && sends <= events;
        lost.then_some(Fault::Before(Trouble::Unavailable))
    });
    let mut engine = system.engine(2);
    engine.spawn(system.traffic(events, SECOND, |n| {
        subscription(&format!("evt_{n}"), "created", n, &format!("sub_{n}"), "gold")
    }));
    system.tends.set(false);
    engine.run_for(30 * MINUTE);
    let forgotten = system.rows("evt_").iter().filter(|row| row.life.attempts == 0).count();
    assert!(forgotten >= 150, "{forgotten}");
    system.tends.set(true);
    let healed = engine.run_until(HOUR, 10 * SECOND, || system.all_settled("evt_", events));
    println!(
        "steward down for 30 min, 1 message in 10 not sent: {forgotten} forgotten, all settled {} after it is back",
        shown(healed)
    );
    assert!(healed <= 7 * MINUTE, "{}", shown(healed));
    assert!(system.all_settled("evt_", events));
}
