//! What the projections call is down for an hour.

use crate::{
    rig::subscription,
    system::{HOUR, MINUTE, SECOND, System, percentile, scale, scaled, shown, times_to_settle},
};
use ledger::Status;

#[test]
fn an_hours_outage_at_fifty_a_second_heals_by_itself() {
    // The steward's bound on sends is scaled with the traffic, and the consumer too.
    let parts = scale(50);
    let system = System::with(scaled(parts));
    let mut engine = system.engine(if parts == 1 { 20 } else { 2 });
    let began = system.rig.now();
    let (every_ms, hours) = (20 * parts, 2);
    let events = hours * HOUR / every_ms;
    engine.spawn(system.traffic(events, every_ms, |n| {
        subscription(&format!("evt_{n}"), "created", n, &format!("sub_{n}"), "gold")
    }));
    engine.run_for(10 * MINUTE);
    let ends = began.plus(70 * MINUTE);
    system.downstream.is_down_until(ends);
    engine.run_for(HOUR);
    let rows = system.rows("evt_");
    let hit = rows.iter().filter(|row| row.life.status != Status::Settled).count();
    let dead = rows.iter().filter(|row| row.life.status == Status::Dead).count();
    let in_outage = system.tally();
    let open = || system.twin().rows().iter().filter(|row| row.life.open.is_some()).count();
    let mut left = Vec::new();
    let mut healed = 0;
    while open() > 0 && healed < 24 * HOUR {
        engine.run_for(30 * MINUTE);
        healed += 30 * MINUTE;
        left.push(open());
    }
    let after: Vec<_> =
        system.rows("evt_").into_iter().filter(|row| row.evidence.received_at > ends).collect();
    let fresh = times_to_settle(&after);
    engine.run_for(HOUR);
    println!(
        "outage of 1 h, an event every {every_ms} ms: {hit} unfinished at its end, {dead} of them dead, {} redriven in vain; all settled {} \
         after it (left every half hour: {left:?}); fresh events meanwhile: 99 % within {} ms; {} runs in all, {} dead \
         letters left",
        in_outage.redriven,
        shown(healed),
        percentile(&fresh, 99),
        system.downstream.runs(),
        system.twin().dead_letter_bodies().len()
    );
    assert!(system.all_settled("evt_", events), "nothing is lost and nobody was asked");
    assert!(
        percentile(&fresh, 99) <= 2 * SECOND,
        "what comes afterwards does not wait for the dead"
    );
    assert!(healed <= 4 * HOUR, "{}", shown(healed));
}
