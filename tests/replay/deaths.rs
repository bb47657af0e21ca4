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
