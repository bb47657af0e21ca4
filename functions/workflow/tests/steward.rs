//! The steward on the twin: nothing accepted is ever forgotten, and nothing is done twice for it.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod rig;

use ledger::{Bucket, FailureClass, Outcome, Policy, Status};
use rig::{Rig, START, poison, subscription};
use std::sync::Arc;
use workflow::{
    Steward,
    ports::{Clock, Trouble},
    twin::Fault,
};

async fn unsent(rig: &Rig, id: &str) {
    rig.twin.set_faults(|step, _| (step == "send").then_some(Fault::Before(Trouble::Unavailable)));
    rig.deliver(&subscription(id, "created", 10, &format!("sub_{id}"), "gold")).await;
    rig.twin.clear_faults();
}

#[tokio::test]
async fn an_event_whose_message_was_never_sent_is_sent_within_two_minutes() {
    let rig = Rig::new();
    unsent(&rig, "evt_1").await;
    rig.tend().await;
    assert_eq!(rig.twin.queue_len(), 0, "not overdue yet");
    rig.twin.advance(60_000);
    let tally = rig.tend().await;
    assert_eq!((tally.swept, tally.oldest_pending_ms), (1, 60_000));
    rig.drain(60_000).await;
    assert_eq!(rig.row("evt_1").life.outcome, Some(Outcome::Applied));
}

#[tokio::test]
async fn a_steward_that_dies_between_sweep_and_send_loses_nothing() {
    let rig = Rig::new();
    unsent(&rig, "evt_1").await;
    rig.twin.advance(60_000);
    rig.twin.set_faults(|step, _| (step == "send").then_some(Fault::Before(Trouble::Unavailable)));
    assert_eq!(rig.tend().await.swept, 0);
    rig.twin.clear_faults();
    rig.twin.advance(120_000);
    assert_eq!(rig.tend().await.swept, 1);
}

#[tokio::test]
async fn two_stewards_at_once_send_one_message() {
    let rig = Rig::new();
    for n in 0..20 {
        unsent(&rig, &format!("evt_{n}")).await;
    }
    rig.twin.advance(60_000);
    let other = rig.deploy("build-1");
    tokio::join!(rig.tend(), other.tend());
    assert_eq!(rig.twin.queue_len(), 20);
}

#[tokio::test]
async fn of_two_stewards_that_see_the_same_row_one_sends() {
    let rig = Rig::new();
    unsent(&rig, "evt_1").await;
    rig.twin.advance(60_000);
    // Both have listed and read the row before either writes, though one begins a little later.
    rig.twin.set_latency(|step| if matches!(step, "row" | "sweep") { 5 } else { 0 });
    let other = rig.deploy("build-1");
    let later = async {
        rig.twin.sleep(1).await;
        other.tend().await
    };
    let mut both = std::pin::pin!(async { tokio::join!(rig.tend(), later) });
    let (one, two) = std::future::poll_fn(|context| {
        let polled = both.as_mut().poll(context);
        if polled.is_pending() {
            let wakes = rig.twin.next_wake().unwrap();
            rig.twin.advance(wakes.since(rig.now()));
        }
        polled
    })
    .await;
    assert_eq!((one.swept + two.swept, rig.twin.queue_len()), (1, 1));
    assert_eq!(rig.twin.counts()["sweep"], 2, "the other was refused");
}

#[tokio::test]
async fn a_backlog_is_not_fed_until_its_rows_are_an_hour_overdue() {
    let rig = Rig::new();
    unsent(&rig, "evt_1").await;
    for _ in 0..1_001 {
        rig.twin.enqueue("{\"v\":1,\"key\":\"shop#other\"}");
    }
    rig.twin.advance(60 * 60_000);
    assert_eq!(rig.tend().await.swept, 0);
    rig.twin.advance(60_000);
    assert_eq!(rig.tend().await.swept, 1);
}

#[tokio::test]
async fn a_run_sends_no_more_than_its_bound_and_the_next_goes_on() {
    let rig = Rig::with(Policy { sends_max: 7, ..Policy::default() }, "b");
    for n in 0..20 {
        unsent(&rig, &format!("evt_{n}")).await;
    }
    rig.twin.advance(60_000);
    let mut sent = Vec::new();
    for _ in 0..4 {
        sent.push(rig.tend().await.swept);
    }
    assert_eq!(sent, [7, 7, 6, 0]);
}

#[tokio::test]
async fn a_run_ends_ten_seconds_before_its_function_does() {
    let rig = Rig::new();
    unsent(&rig, "evt_1").await;
    rig.twin.advance(60_000);
    assert_eq!(rig.steward.run(rig.now().plus(10_000)).await.swept, 0);
    assert_eq!(rig.steward.run(rig.now().plus(10_001)).await.swept, 1);
}

#[tokio::test]
async fn the_dead_of_an_outage_are_redriven_run_after_run_and_not_a_bound_every_five_minutes() {
    let rig = Rig::with(Policy { sends_max: 7, ..Policy::default() }, "b");
    for n in 0..20 {
        rig.deliver(&subscription(&format!("evt_{n}"), "created", 10, &format!("sub_{n}"), "gold"))
            .await;
    }
    rig.twin.set_faults(|step, _| (step == "apply").then_some(Fault::Before(Trouble::Unavailable)));
    rig.drain(300_000).await;
    rig.twin.clear_faults();
    let mut redriven = Vec::new();
    for _ in 0..4 {
        rig.twin.advance(60_000);
        redriven.push(rig.tend().await.redriven);
        rig.drain(0).await;
    }
    assert_eq!(redriven, [7, 7, 6, 0]);
    assert!(rig.twin.rows().iter().all(|row| row.life.outcome == Some(Outcome::Applied)));
    let looked = rig.twin.counts()["open"];
    rig.twin.advance(60_000);
    rig.tend().await;
    assert_eq!(rig.twin.counts()["open"], looked + 10, "then the dead are left for five minutes");
}

#[tokio::test]
async fn a_backlog_in_one_partition_hides_no_other() {
    let rig = Rig::new();
    unsent(&rig, "evt_0").await;
    let mut row = rig.row("evt_0");
    row.evidence.body.inline = None;
    let mut plant = |n: u32, wanted: u8, later_ms: u64| {
        row.evidence.key = ledger::EventKey::parse(&format!("shop#many_{n}")).unwrap();
        let open = row.life.open.unwrap();
        row.life.open = Some(ledger::Open {
            bucket: Bucket::Pending(wanted),
            due_at: open.due_at.plus(later_ms),
        });
        let fits = row.evidence.key.shard() == wanted;
        if fits {
            rig.twin.plant(row.clone());
        }
        row.life.open = Some(open);
        fits
    };
    let longest_overdue = (0..1_000).find(|n| plant(*n, 9, 0)).unwrap();
    let mut others = 0;
    for n in longest_overdue + 1.. {
        others += u32::from(plant(n, 0, 1));
        if others > 20_000 {
            break;
        }
    }
    rig.twin.advance(120_000);
    rig.tend().await;
    let row = rig.row(&format!("many_{longest_overdue}"));
    assert_eq!(row.life.sweeps, 1, "what is overdue for longest is sent first, wherever it lies");
}

#[tokio::test]
async fn a_row_whose_workers_all_died_is_buried_and_seen_in_the_dead_letter_queue() {
    let rig = Rig::new();
    rig.deliver(&subscription("evt_1", "created", 10, "sub_1", "gold")).await;
    for _ in 0..6 {
        rig.dying_batch().await;
        rig.twin.advance(200_000);
    }
    rig.twin.lose_queue();
    let tally = rig.tend().await;
    assert_eq!(tally.forced_buries, 1);
    let row = rig.row("evt_1");
    assert_eq!(row.life.failure.unwrap().error, "the worker died 6 times");
    rig.drain(60_000).await;
    assert_eq!(rig.twin.dead_letter_bodies().len(), 1);
}

#[tokio::test]
async fn a_forced_burial_is_not_undone_by_its_own_message_however_slow_the_send() {
    let rig = Rig::new();
    rig.deliver(&subscription("evt_1", "created", 10, "sub_1", "gold")).await;
    for _ in 0..6 {
        rig.dying_batch().await;
        rig.twin.advance(200_000);
    }
    rig.twin.lose_queue();
    // A burial dated before its message would let the message redrive it: a budget that nobody
    // granted, and once more after every further burial.
    rig.twin.set_faults(|step, _| (step == "send").then_some(Fault::Slow(11_000)));
    assert_eq!(rig.tend().await.forced_buries, 1);
    rig.twin.clear_faults();
    rig.drain(60_000).await;
    let life = rig.row("evt_1").life;
    assert_eq!((life.status, life.attempts, life.redriven_at), (Status::Dead, 6, None));
    assert_eq!(rig.twin.dead_letter_bodies().len(), 1);
}

#[tokio::test]
async fn an_outage_of_an_hour_heals_by_itself() {
    let rig = Rig::new();
    for n in 0..50 {
        rig.deliver(&subscription(&format!("evt_{n}"), "created", 10, &format!("sub_{n}"), "gold"))
            .await;
    }
    rig.twin.set_faults(|step, _| (step == "apply").then_some(Fault::Before(Trouble::Unavailable)));
    for _ in 0..60 {
        rig.drain(0).await;
        rig.twin.advance(60_000);
        rig.tend().await;
    }
    rig.twin.clear_faults();
    let mut minutes = 0;
    while rig.twin.rows().iter().any(|row| row.life.status != Status::Settled) {
        rig.drain(0).await;
        rig.twin.advance(60_000);
        rig.tend().await;
        minutes += 1;
        assert!(minutes < 180, "not healed after three hours");
    }
    assert!(rig.twin.rows().iter().all(|row| row.life.outcome == Some(Outcome::Applied)));
}

#[tokio::test]
async fn dead_rows_are_redriven_five_times_an_hour_apart_and_then_parked() {
    let rig = Rig::new();
    rig.deliver(&subscription("evt_1", "created", 10, "sub_1", "gold")).await;
    rig.twin.set_faults(|step, _| (step == "apply").then_some(Fault::Before(Trouble::Unavailable)));
    let mut burials = Vec::new();
    for _ in 0..10 * 60 {
        rig.drain(0).await;
        let life = rig.row("evt_1").life;
        if life.status == Status::Dead && burials.last() != life.failure.as_ref().map(|f| &f.at) {
            burials.push(life.failure.unwrap().at);
        }
        rig.twin.advance(60_000);
        rig.tend().await;
    }
    assert_eq!(burials.len(), 6, "one death and five after redrives");
    for pair in burials.windows(2).skip(1) {
        let apart = pair[1].since(pair[0]) / 60_000;
        assert!((60..=75).contains(&apart), "{apart} minutes apart");
    }
    let life = rig.row("evt_1").life;
    assert_eq!(life.redrives, 5);
    assert!(matches!(life.open.unwrap().bucket, Bucket::Parked(_)));
}

#[tokio::test]
async fn a_new_build_gives_what_died_before_it_one_fresh_budget_and_permanent_rows_none() {
    let rig = Rig::with(Policy { redrives_max: 0, ..Policy::default() }, "build-1");
    rig.deliver(&subscription("evt_1", "created", 10, "sub_1", "gold")).await;
    rig.deliver(&poison("evt_bad")).await;
    rig.twin.set_faults(|step, _| (step == "apply").then_some(Fault::Before(Trouble::Unavailable)));
    rig.drain(300_000).await;
    rig.tend().await;
    assert_eq!(rig.row("evt_1").life.status, Status::Dead);

    let fixed = rig.deploy("build-2");
    rig.twin.advance(60_000);
    assert_eq!(fixed.tend().await.redriven, 1);
    fixed.drain(300_000).await;
    let life = rig.row("evt_1").life;
    assert_eq!((life.status, life.attempts), (Status::Dead, 6), "the budget was fresh");
    for _ in 0..10 {
        rig.twin.advance(300_000);
        assert_eq!(fixed.tend().await.redriven, 0, "once per build");
    }
    let bad = rig.row("evt_bad").life;
    assert_eq!((bad.status, bad.epoch), (Status::Dead, 1));
    assert_eq!(bad.failure.unwrap().class, FailureClass::Permanent);

    rig.twin.clear_faults();
    let cured = rig.deploy("build-3");
    cured.tend().await;
    cured.drain(60_000).await;
    assert_eq!(rig.row("evt_1").life.outcome, Some(Outcome::Applied));
}

#[tokio::test]
async fn where_another_builds_walk_was_cut_short_is_no_place_to_begin() {
    let policy = Policy { sends_max: 3, redrives_max: 0, ..Policy::default() };
    let rig = Rig::with(policy, "build-1");
    for n in 0..10 {
        let id = format!("evt_{n}");
        rig.deliver(&subscription(&id, "created", 10, &format!("sub_{n}"), "gold")).await;
    }
    rig.twin.set_faults(|step, _| (step == "apply").then_some(Fault::Before(Trouble::Unavailable)));
    rig.drain(3_600_000).await;
    rig.twin.clear_faults();
    let parked = |rig: &Rig| {
        let rows = rig.twin.rows();
        rows.iter().filter(|row| row.life.status == Status::Dead).count()
    };
    assert_eq!(parked(&rig), 10);
    assert_eq!(rig.deploy("build-2").tend().await.redriven, 3, "cut short");
    // What it brought back dies of the same.
    rig.twin.set_faults(|step, _| (step == "apply").then_some(Fault::Before(Trouble::Unavailable)));
    rig.drain(3_600_000).await;
    rig.twin.clear_faults();
    let cure = rig.deploy("build-3");
    let mut redriven = 0;
    for _ in 0..6 {
        rig.twin.advance(60_000);
        redriven += cure.tend().await.redriven;
        rig.drain(60_000).await;
    }
    assert_eq!(redriven, 10, "all of them, wherever the other walk had come");
}

#[tokio::test]
async fn a_walk_goes_on_where_the_run_before_it_ended() {
    let rig = Rig::with(Policy { sends_max: 7, ..Policy::default() }, "build-1");
    for n in 0..10 {
        rig.deliver(&poison(&format!("bad_{n}"))).await;
    }
    rig.twin.set_faults(|step, _| (step == "apply").then_some(Fault::Before(Trouble::Unavailable)));
    for n in 0..7 {
        rig.deliver(&subscription(&format!("evt_{n}"), "created", 10, &format!("sub_{n}"), "gold"))
            .await;
    }
    // Redriven once: the next time is an hour away.
    rig.drain(300_000).await;
    rig.tend().await;
    rig.drain(300_000).await;
    let fixed = rig.deploy("build-2");
    rig.twin.reset_counts();
    let mut redriven = 0;
    for sends_max in [3, 3, 3, 3] {
        let steward = Steward {
            policy: Policy { sends_max, ..fixed.steward.policy.clone() },
            ports: Arc::clone(&rig.twin),
            release: "build-2".to_owned(),
            has_reconciler: false,
        };
        redriven += steward.run(rig.now().plus(60_000)).await.redriven;
    }
    assert_eq!((redriven, rig.twin.counts()["row"]), (7, 17), "no row is looked at twice");
}

#[tokio::test]
async fn a_sweep_of_a_million_rows_reads_only_what_is_pending() {
    let rig = Rig::new();
    rig.deliver(&subscription("evt_0", "created", 10, "sub_0", "gold")).await;
    rig.drain(60_000).await;
    let settled = rig.row("evt_0");
    for n in 1..1_000_000 {
        let mut row = settled.clone();
        row.evidence.key = ledger::EventKey::parse(&format!("shop#evt_{n}")).unwrap();
        row.evidence.body.inline = None;
        rig.twin.plant(row);
    }
    for n in 0..25 {
        unsent(&rig, &format!("overdue_{n}")).await;
    }
    rig.twin.advance(61_000);
    rig.twin.reset_counts();
    let tally = rig.tend().await;
    assert_eq!((tally.swept, tally.pending), (25, 25));
    let counts = rig.twin.counts();
    assert_eq!(
        (counts["open entries read"], counts["row"]),
        (25, 25),
        "the settled million costs nothing"
    );
    assert!(rig.now() > START);
}
