//! A replay that is killed: at its calls, before or after they take effect, time and again.

use crate::shop::{NOW, applied, begin, deliver, desk, payment, rows};
use proptest::{
    prelude::Rng,
    test_runner::{RngAlgorithm, TestRng},
};
use support::{Desk, Pages};
use workflow::replay::Checkpoint;

const EVENTS: usize = 430;
const KNOWN_EVERY: usize = 3;

fn missed() -> Desk {
    let at = |n: usize| NOW.minus(7_200_000).plus(n as u64 * 9_000);
    let events: Vec<_> = (0..EVENTS).map(|n| payment(n, at(n))).collect();
    let desk = desk(events.clone());
    for event in events.iter().step_by(KNOWN_EVERY) {
        deliver(&desk.world, event);
    }
    desk
}

#[test]
fn killed_at_ten_random_points_it_ends_complete_and_nothing_is_applied_twice() {
    for seed in 0..5_u8 {
        let mut random = TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]);
        let desk = missed();
        let known = EVENTS.div_ceil(KNOWN_EVERY);
        let pages = Pages::default();
        let begun = begin(&desk, 3);
        let resume =
            |pages: &Pages| -> Checkpoint { pages.last().unwrap_or_else(|| begun.clone()) };
        let mut deaths = 0;
        while deaths < 10 {
            desk.die_at(1 + u64::from(random.next_u32()) % 250);
            match desk.replay(&resume(&pages), &pages) {
                None => deaths += 1,
                Some(done) => {
                    done.unwrap();
                    break;
                }
            }
            let far = resume(&pages).tally;
            assert_eq!(far.fetched, far.new + far.duplicate, "seed {seed}");
            assert!(far.new + known as u64 <= rows(&desk.world) as u64, "only what is confirmed");
        }
        desk.die_at(u64::MAX);
        let done = desk.replay(&resume(&pages), &pages).unwrap().unwrap();
        let tally = &done.tally;
        assert_eq!(tally.fetched, EVENTS as u64, "seed {seed}, {deaths} deaths");
        assert_eq!(tally.new, (EVENTS - known) as u64, "seed {seed}: counted once each");
        assert_eq!((rows(&desk.world), applied(&desk.world)), (EVENTS, Some(EVENTS as u64)));
    }
}

#[test]
fn a_run_keeps_its_name_before_its_first_page_and_knows_what_it_fed_in_of_it() {
    // At its first call, which asks for the page, and at posts of the page: before and after each.
    for call in [1, 2, 3, 20, 41, 60] {
        let at = |n: usize| NOW.minus(3_600_000).plus(n as u64 * 9_000);
        let desk = desk((0..80).map(|n| payment(n, at(n))).collect());
        let pages = Pages::default();
        let begun = begin(&desk, 3);
        desk.die_at(call);
        assert!(desk.replay(&begun, &pages).is_none(), "killed at call {call}");
        let kept = pages.last().map(|kept| (kept.run, kept.next));
        assert_eq!(kept, Some((begun.run, begun.next)), "killed at call {call}");
        desk.die_at(u64::MAX);
        let done = desk.replay(&pages.last().unwrap(), &pages).unwrap().unwrap();
        let tally = (done.tally.fetched, done.tally.new, done.tally.duplicate);
        assert_eq!(tally, (80, 80, 0), "killed at call {call}: none was there before the run");
        assert_eq!(applied(&desk.world), Some(80));
    }
}
