//! The dead-letter queue on the twin: what the steward clears of it, and how hard it looks.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod rig;

use ledger::Outcome;
use rig::{Rig, poison, subscription};
use workflow::{ports::Trouble, twin::Fault};

#[tokio::test]
async fn more_dead_letters_than_one_run_clears_are_cleared_run_after_run() {
    let rig = Rig::new();
    rig.deliver(&subscription("evt_1", "created", 10, "sub_1", "gold")).await;
    rig.deliver(&poison("evt_bad")).await;
    // Copies that were received too often while the row was not to be had.
    rig.twin.set_faults(|step, _| (step == "lease").then_some(Fault::Before(Trouble::Throttled)));
    for _ in 0..1_500 {
        rig.twin.enqueue("{\"v\":1,\"key\":\"shop#evt_1\"}");
    }
    rig.drain(600_000).await;
    rig.twin.clear_faults();
    assert_eq!(rig.twin.dead_letter_bodies().len(), 1_502);
    rig.twin.enqueue("{\"v\":1,\"key\":\"shop#evt_1\"}");
    rig.twin.enqueue("{\"v\":1,\"key\":\"shop#evt_bad\"}");
    rig.drain(60_000).await;
    let mut cleared = Vec::new();
    for _ in 0..4 {
        rig.twin.advance(60_000);
        cleared.push(rig.tend().await.cleared);
    }
    assert_eq!(cleared.iter().sum::<u64>(), 1_501, "{cleared:?}");
    assert!(cleared[0] >= 990 && cleared[1] >= 490, "{cleared:?}");
    let looked = rig.twin.counts()["dead_letters"];
    rig.twin.advance(60_000);
    rig.tend().await;
    assert_eq!(rig.twin.counts()["dead_letters"], looked, "then they are left for fifteen minutes");
}

#[tokio::test]
async fn dead_letters_of_settled_rows_are_cleared_and_the_others_stay() {
    let rig = Rig::new();
    rig.deliver(&subscription("evt_1", "created", 10, "sub_1", "gold")).await;
    rig.deliver(&poison("evt_bad")).await;
    rig.twin.set_faults(|step, _| (step == "apply").then_some(Fault::Before(Trouble::Unavailable)));
    rig.drain(300_000).await;
    rig.twin.clear_faults();
    assert_eq!(rig.twin.dead_letter_bodies().len(), 2);
    rig.twin.advance(15 * 60_000);
    rig.tend().await;
    rig.drain(60_000).await;
    assert_eq!(rig.row("evt_1").life.outcome, Some(Outcome::Applied));
    rig.twin.advance(15 * 60_000);
    assert_eq!(rig.tend().await.cleared, 1);
    let left = rig.twin.dead_letter_bodies();
    assert!(left.len() == 1 && left[0].contains("evt_bad"));
}

#[tokio::test]
async fn dead_letters_that_wait_for_a_person_are_not_looked_through_every_minute() {
    let rig = Rig::new();
    rig.deliver(&poison("evt_bad")).await;
    for _ in 0..1_100 {
        rig.twin.enqueue("{\"v\":1,\"key\":\"shop#evt_bad\"}");
    }
    rig.drain(600_000).await;
    assert_eq!(rig.twin.dead_letter_bodies().len(), 1_101);
    rig.twin.reset_counts();
    for _ in 0..14 {
        rig.tend().await;
        rig.twin.advance(60_000);
    }
    assert_eq!(rig.twin.counts()["dead_letters"], 100, "a thousand letters, once");
}
