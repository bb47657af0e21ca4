//! The case from practice: 4,812 events at the provider, 4,790 in the ledger, a hole of forty minutes.

use crate::shop::{NOW, applied, begin, deliver, desk, payment, rows};
use ledger::{Millis, Origin};
use support::{Desk, Pages};
use workflow::replay::{Look, SLOT_MS, pager::Window};

const EVENTS: usize = 4_812;
const MISSED: usize = 22;
/// For what does not depend on how many there are.
const FEWER: usize = 450;
/// The hole begins this long before now.
const HOLE: u64 = 3 * 3_600_000;
const HOLE_MS: u64 = 40 * 60_000;

/// One event every few seconds over the last seven hours; in the hole as many as were missed.
fn practice(all: usize) -> Desk {
    let hole = NOW.minus(HOLE);
    let outside = all - MISSED;
    let step = 7 * 3_600_000 / outside as u64;
    let inside = (0..MISSED).map(|n| hole.plus(HOLE_MS / MISSED as u64 * n as u64));
    let times = (0..outside).map(|n| NOW.minus(7 * 3_600_000).plus(step * n as u64));
    let times = times.map(|at| if is_in_hole(at) { at.minus(HOLE_MS) } else { at });
    let mut times: Vec<Millis> = times.chain(inside).collect();
    times.sort_unstable();
    let events: Vec<_> = times.iter().enumerate().map(|(n, at)| payment(n, *at)).collect();
    let desk = desk(events.clone());
    for (n, (event, at)) in events.iter().zip(&times).enumerate() {
        if !is_in_hole(*at) {
            deliver(&desk.world, event);
        }
        // A short queue is a quick one.
        if n % 50 == 0 {
            desk.world.work();
        }
    }
    assert_eq!(rows(&desk.world), all - MISSED);
    desk
}

fn is_in_hole(at: Millis) -> bool {
    let hole = NOW.minus(HOLE);
    (hole..hole.plus(HOLE_MS)).contains(&at)
}

#[test]
fn of_4812_events_22_are_new_and_a_second_run_finds_none() {
    let desk = practice(EVENTS);
    let dry = desk.run(&begin(&desk, 8), &Pages::default(), Look).unwrap().unwrap();
    assert_eq!((dry.tally.fetched, dry.tally.new, dry.tally.duplicate), (4_812, 22, 4_790));
    assert_eq!(rows(&desk.world), 4_790, "a dry run posts nothing");
    assert_eq!(desk.world.twin.counts()["known"], 49, "a hundred keys a call");

    let first = desk.replay(&begin(&desk, 8), &Pages::default()).unwrap().unwrap();
    let tally = &first.tally;
    assert_eq!((tally.fetched, tally.new, tally.duplicate, tally.failed), (4_812, 22, 4_790, 0));
    assert_eq!(dry.tally.slots, tally.slots, "the dry run said the same");
    let hole = NOW.minus(HOLE).0 / SLOT_MS..NOW.minus(HOLE).plus(HOLE_MS).0.div_ceil(SLOT_MS);
    assert!(tally.slots.keys().all(|slot| hole.contains(slot)), "{:?}", tally.slots);
    assert_eq!(tally.slots.len(), 8, "eight slots of five minutes: {:?}", tally.slots);

    let second = desk.replay(&begin(&desk, 8), &Pages::default()).unwrap().unwrap();
    assert_eq!((second.tally.fetched, second.tally.new), (4_812, 0));
    assert_eq!(applied(&desk.world), Some(4_812), "each payment counts once");
}

#[test]
fn a_replayed_row_says_who_and_why_and_carries_no_identity() {
    let desk = practice(FEWER);
    let run = desk.replay(&begin(&desk, 8), &Pages::default()).unwrap().unwrap();
    let replayed: Vec<_> = desk
        .world
        .twin
        .rows()
        .into_iter()
        .filter(|row| row.evidence.origin == Origin::Replay)
        .collect();
    assert_eq!(replayed.len(), MISSED);
    let evidence = &replayed[0].evidence;
    let note = format!("anna, run {}: outage", run.run);
    assert_eq!(evidence.origin_note.as_deref(), Some(note.as_str()));
    assert_eq!((evidence.identity_hash, evidence.kid.as_str()), (None, "k"));

    // The provider delivers it after all, rendered differently: a duplicate, no conflict.
    let mut event: serde_json::Value =
        serde_json::from_slice(&desk.world.body(evidence.key.as_str())).unwrap();
    event["data"]["object"]["rendered"] = "otherwise".into();
    deliver(&desk.world, &event);
    assert_eq!(rows(&desk.world), FEWER);
}

#[test]
fn what_happens_while_the_pages_are_read_moves_no_cursor_and_is_in_the_next_window() {
    let desk = practice(FEWER);
    let last_second = payment(900_001, NOW);
    let later = (2..9).map(|n| payment(900_000 + n, NOW.plus(n as u64 * 1_000)));
    // Popped from the end: the event of the window's last second comes after the first page is read.
    let arriving: Vec<_> = later.chain([last_second, payment(900_000, NOW.plus(1_000))]).collect();
    desk.with(|api| api.arriving = arriving);
    let first = desk.replay(&begin(&desk, 8), &Pages::default()).unwrap().unwrap();
    assert_eq!(first.tally.fetched, FEWER as u64, "nothing is skipped, nothing comes twice");
    // The next window begins in the second in which this one ended.
    let next = Window::new(first.window.until, NOW.plus(60_000));
    desk.world.twin.advance(60_000);
    let next = desk.replay(&desk.begin("shop", next), &Pages::default()).unwrap().unwrap();
    let left = desk.with(|api| api.arriving.len() as u64);
    assert_eq!(next.tally.new, 9 - left, "the second in which both windows meet belongs to both");
}
