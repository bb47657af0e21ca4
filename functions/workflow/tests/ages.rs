//! How old unfinished work is, as the steward measures it: what the alarm may and may not ring for.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod rig;

use ledger::{Bucket, Status};
use rig::{Rig, subscription};
use workflow::{ports::Trouble, twin::Fault};

/// An event whose message is lost.
async fn lost(rig: &Rig, id: &str) {
    rig.deliver(&subscription(id, "created", 10, &format!("sub_{id}"), "gold")).await;
    rig.twin.lose_queue();
}

#[tokio::test]
async fn an_event_that_nobody_works_grows_old_and_a_redriven_one_is_counted_from_its_redrive() {
    let rig = Rig::new();
    for n in 0..50 {
        lost(&rig, &format!("evt_{n}")).await;
    }
    for minutes in 1..=20 {
        rig.twin.advance(60_000);
        rig.twin.reset_counts();
        let tally = rig.tend().await;
        assert_eq!(tally.oldest_pending_ms, minutes * 60_000, "however often it is sent again");
        let reads = rig.twin.counts().get("row").copied().unwrap_or(0);
        assert!(reads <= tally.swept + 8, "{reads} rows are read for it");
    }
    rig.drain(60_000).await;
    let mut dead = rig.row("evt_0");
    dead.life.status = Status::Failed;
    dead.life.outcome = None;
    dead.life.redriven_at = Some(rig.now());
    let due_at = rig.now().plus(600_000);
    dead.life.open =
        Some(ledger::Open { bucket: Bucket::Pending(dead.evidence.key.shard()), due_at });
    rig.twin.plant(dead);
    rig.twin.advance(60_000);
    assert_eq!(rig.tend().await.oldest_pending_ms, 60_000);
}

#[tokio::test]
async fn a_wait_for_a_turn_at_the_provider_is_no_unfinished_work_while_it_is_kept() {
    let rig = Rig::new();
    lost(&rig, "evt_1").await;
    let mut row = rig.row("evt_1");
    let retry_at = rig.now().plus(1_800_000);
    row.life.status = Status::Waiting;
    row.life.waiting_since = Some(rig.now());
    row.life.retry_at = Some(retry_at);
    let due_at = retry_at.plus(rig.steward.policy.retry_grace_ms);
    row.life.open = row.life.open.map(|open| ledger::Open { due_at, ..open });
    rig.twin.plant(row);
    rig.twin.advance(1_200_000);
    let tally = rig.tend().await;
    assert_eq!((tally.oldest_pending_ms, tally.oldest_waiting_ms), (0, 1_200_000));
    assert!((rig.twin.metric("OldestWaitingAge") - 1_200.0).abs() < 0.1);
    rig.twin.advance(1_200_000);
    assert_eq!(rig.tend().await.oldest_pending_ms, 600_000, "since its turn");
}

#[tokio::test]
async fn rows_whose_age_cannot_be_read_count_as_unfinished() {
    let rig = Rig::new();
    lost(&rig, "evt_1").await;
    rig.twin.advance(600_000);
    rig.twin.set_faults(|step, _| (step == "row").then_some(Fault::Before(Trouble::Unavailable)));
    assert_eq!(rig.tend().await.oldest_pending_ms, 600_000);
}

#[tokio::test]
async fn a_steward_that_cannot_look_does_not_say_that_all_is_well() {
    let rig = Rig::new();
    lost(&rig, "evt_1").await;
    rig.twin.advance(600_000);
    rig.tend().await;
    let told = |name: &'static str| {
        let lines = rig.twin.lines();
        lines.iter().filter(|line| line.metrics.iter().any(|m| m.name == name)).count()
    };
    let all = ["StewardRun", "Pending", "OldestPendingAge", "DeadRows", "OldestDeadAge"];
    assert_eq!(all.map(told), [1; 5]);
    rig.twin.forget_lines();
    rig.twin.advance(600_000);
    rig.twin.set_faults(|step, _| (step == "open").then_some(Fault::Before(Trouble::Unavailable)));
    assert!(rig.tend().await.is_blind);
    assert_eq!(all.map(told), [0; 5]);
    // The redrives that it could not look for are not put off.
    rig.twin.clear_faults();
    rig.twin.advance(60_000);
    assert!(rig.tend().await.dead.is_some());
}
