//! The consumer on the twin: what settles, what is tried again and when, and what dies alone.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod rig;

use ledger::{FailureClass, Outcome, Policy, Status};
use rig::{Rig, payment, poison, subscription};
use serde_json::json;
use workflow::{
    ports::Trouble,
    projection::{EventView, Plan, Projection, ProjectionError},
    twin::Fault,
};

#[tokio::test]
async fn an_event_settles_and_its_state_is_the_newest_whatever_the_order() {
    let rig = Rig::new();
    for (id, kind, created, plan) in [
        ("evt_3", "updated", 30, "gold"),
        ("evt_1", "created", 10, "bronze"),
        ("evt_2", "updated", 20, "silver"),
        ("evt_3", "updated", 30, "gold"),
    ] {
        rig.deliver(&subscription(id, kind, created, "sub_1", plan)).await;
        rig.drain(60_000).await;
    }
    assert_eq!(rig.plan_of("sub_1"), "gold");
    assert_eq!(rig.row("evt_3").life.outcome, Some(Outcome::Applied));
    assert_eq!(rig.row("evt_2").life.outcome, Some(Outcome::Superseded));
    assert_eq!(rig.row("evt_2").effects.len(), 1, "what was superseded is remembered");
    assert!(rig.twin.rows().iter().all(|row| row.life.open.is_none()));
}

#[tokio::test]
async fn nothing_brings_an_entity_back_after_its_tombstone() {
    let rig = Rig::new();
    rig.deliver(&subscription("evt_9", "deleted", 5, "sub_1", "gold")).await;
    rig.deliver(&subscription("evt_1", "updated", 99, "sub_1", "gold")).await;
    rig.drain(60_000).await;
    assert_eq!(rig.plan_of("sub_1"), "null");
    assert_eq!(rig.row("evt_1").life.outcome, Some(Outcome::Superseded));
}

#[tokio::test]
async fn unconfigured_types_settle_as_ignored() {
    let rig = Rig::new();
    rig.deliver(&subscription("evt_1", "paused", 5, "sub_1", "gold")).await;
    rig.drain(60_000).await;
    assert_eq!(rig.row("evt_1").life.outcome, Some(Outcome::Ignored));
}

#[tokio::test]
async fn deltas_count_each_event_once_however_often_it_comes() {
    let rig = Rig::new();
    for round in 0..3 {
        for (n, amount) in [(1, 5), (2, 7), (3, 30)] {
            rig.deliver(&payment(&format!("evt_{n}"), "acct_1", amount)).await;
            rig.twin.enqueue(&format!("{{\"v\":1,\"key\":\"shop#evt_{n}\"}}"));
        }
        rig.twin.advance(round * 40_000);
        rig.drain(60_000).await;
    }
    let total = rig.twin.state("shop#balance#acct_1").unwrap().state["total"].clone();
    assert_eq!(total.to_string(), "42");
}

#[tokio::test]
async fn a_poison_event_dies_alone_in_the_dead_letter_queue() {
    let rig = Rig::new();
    rig.deliver(&poison("evt_bad")).await;
    for n in 0..9 {
        rig.deliver(&subscription(&format!("evt_{n}"), "created", 10, &format!("sub_{n}"), "gold"))
            .await;
    }
    rig.drain(60_000).await;
    for n in 0..9 {
        let row = rig.row(&format!("evt_{n}"));
        assert_eq!((row.life.status, row.life.attempts), (Status::Settled, 1));
    }
    let dead = rig.row("evt_bad");
    assert_eq!((dead.life.status, dead.life.attempts), (Status::Dead, 1));
    assert_eq!(dead.life.failure.unwrap().class, FailureClass::Permanent);
    assert_eq!(rig.twin.dead_letter_bodies().len(), 1);
    assert_eq!(rig.twin.queue_len(), 0);
}

#[tokio::test]
async fn messages_nobody_understands_fail_alone_and_reach_the_dead_letter_queue() {
    let rig = Rig::new();
    rig.deliver(&subscription("evt_1", "created", 10, "sub_1", "gold")).await;
    rig.twin.enqueue("{not json");
    rig.twin.enqueue("");
    rig.twin.enqueue("{\"v\":1,\"key\":\"shop#never-claimed\"}");
    rig.drain(600_000).await;
    assert_eq!(rig.row("evt_1").life.status, Status::Settled);
    assert_eq!(rig.twin.dead_letter_bodies().len(), 3);
    assert!(rig.twin.find("shop#never-claimed").is_none(), "a message never creates a row");
}

#[tokio::test]
async fn a_transient_outage_is_retried_five_times_in_about_half_a_minute_and_then_dead() {
    let rig = Rig::new();
    rig.deliver(&subscription("evt_1", "created", 10, "sub_1", "gold")).await;
    rig.twin.set_faults(|step, _| (step == "apply").then_some(Fault::Before(Trouble::Unavailable)));
    let began = rig.now();
    rig.drain(300_000).await;
    let row = rig.row("evt_1");
    assert_eq!((row.life.status, row.life.attempts), (Status::Dead, 6));
    assert_eq!(row.life.failure.as_ref().unwrap().class, FailureClass::Transient);
    let took = row.life.failure.unwrap().at.since(began);
    assert!((30_000..=40_000).contains(&took), "{took} ms");
    assert_eq!(rig.twin.dead_letter_bodies().len(), 1);
}

/// A team's projection whose price service asks for patience.
struct Limited(Option<u64>);

impl Projection for Limited {
    fn project(&self, _: &EventView<'_>) -> Result<Vec<Plan>, ProjectionError> {
        Err(ProjectionError::Custom {
            reason: "the price service answered 429".to_owned(),
            class: FailureClass::RateLimited,
            retry_after_ms: self.0,
        })
    }
}

#[tokio::test]
async fn rate_limits_wait_ten_seconds_a_run_or_as_long_as_retry_after_says() {
    for (retry_after_ms, waits) in [(None, [10, 20, 30]), (Some(37_000), [37, 37, 37])] {
        let mut rig = Rig::new();
        rig.consumer.projection = Box::new(Limited(retry_after_ms));
        rig.deliver(&subscription("evt_1", "created", 10, "sub_1", "gold")).await;
        for copies in 0..5 {
            rig.twin.enqueue(&format!("{{\"v\":1,\"key\":\"shop#evt_1\",\"type\":\"{copies}\"}}"));
        }
        for wait in waits {
            let before = rig.row("evt_1").life.attempts;
            rig.batch().await;
            let life = rig.row("evt_1").life;
            assert_eq!(life.attempts, before + 1, "five copies of the message run it once");
            assert_eq!(life.retry_at.unwrap().since(rig.now()) / 1_000, wait);
            rig.twin.advance(wait * 1_000 - 1_001);
            rig.batch().await;
            assert_eq!(rig.row("evt_1").life.attempts, before + 1, "not before its time");
            rig.twin.advance(1_001);
        }
    }
}

#[tokio::test]
async fn throttling_gives_the_attempt_back_and_the_event_settles_afterwards() {
    let rig = Rig::new();
    rig.deliver(&subscription("evt_1", "created", 10, "sub_1", "gold")).await;
    rig.twin.set_faults(|step, _| (step == "apply").then_some(Fault::Before(Trouble::Throttled)));
    for _ in 0..8 {
        rig.batch().await;
        rig.twin.advance(61_000);
    }
    let row = rig.row("evt_1");
    assert_eq!((row.life.status, row.life.attempts), (Status::Waiting, 0));
    rig.twin.clear_faults();
    rig.drain(600_000).await;
    assert_eq!(rig.row("evt_1").life.outcome, Some(Outcome::Applied));
}

#[tokio::test]
async fn an_hour_of_throttling_is_a_failure_after_all() {
    let rig = Rig::new();
    rig.deliver(&subscription("evt_1", "created", 10, "sub_1", "gold")).await;
    rig.twin.set_faults(|step, _| (step == "apply").then_some(Fault::Before(Trouble::Throttled)));
    for _ in 0..70 {
        rig.batch().await;
        rig.twin.advance(61_000);
        rig.tend().await;
    }
    assert!(rig.row("evt_1").life.failure.is_some(), "{:?}", rig.row("evt_1").life);
}

#[tokio::test]
async fn every_write_whose_answer_was_lost_is_recognised() {
    for step in ["lease", "apply", "settle", "fail", "bury", "wait"] {
        let rig = Rig::new();
        rig.twin.set_faults(move |found, _| (found == step).then_some(Fault::AnswerLost));
        rig.deliver(&subscription("evt_1", "created", 10, "sub_1", "gold")).await;
        rig.deliver(&subscription("evt_2", "paused", 10, "sub_1", "gold")).await;
        rig.deliver(&poison("evt_3")).await;
        rig.drain(60_000).await;
        assert_eq!(rig.row("evt_1").life.outcome, Some(Outcome::Applied), "{step}");
        assert_eq!(rig.row("evt_2").life.outcome, Some(Outcome::Ignored), "{step}");
        assert_eq!(rig.row("evt_3").life.status, Status::Dead, "{step}");
        assert_eq!(rig.twin.state("shop#subscription#sub_1").unwrap().revision, 1, "{step}");
        assert_eq!(rig.row("evt_1").life.attempts, 1, "{step}");
        assert!(rig.twin.metric("Fenced") < 0.5, "{step}");
    }
}

#[tokio::test]
async fn a_dead_worker_is_replaced_when_its_lease_ends_and_not_before() {
    let rig = Rig::new();
    rig.deliver(&subscription("evt_1", "created", 10, "sub_1", "gold")).await;
    rig.dying_batch().await;
    assert_eq!(rig.row("evt_1").life.status, Status::Processing);
    rig.twin.enqueue("{\"v\":1,\"key\":\"shop#evt_1\"}");
    rig.twin.advance(39_000);
    rig.batch().await;
    assert_eq!(rig.row("evt_1").life.epoch, 1, "the lease still holds");
    rig.drain(600_000).await;
    let row = rig.row("evt_1");
    assert_eq!(
        (row.life.outcome, row.life.epoch, row.life.attempts),
        (Some(Outcome::Applied), 2, 2)
    );
}

#[tokio::test]
async fn a_copy_that_meets_a_lease_comes_back_after_its_last_millisecond() {
    let rig = Rig::new();
    rig.deliver(&subscription("evt_1", "created", 10, "sub_1", "gold")).await;
    rig.dying_batch().await;
    let ends = rig.row("evt_1").life.lease.unwrap().until;
    rig.twin.lose_queue();
    rig.twin.enqueue("{\"v\":1,\"key\":\"shop#evt_1\"}");
    rig.batch().await;
    assert_eq!(rig.twin.next_visible(), Some(ends.plus(1_000)), "the lease holds until its end");
    rig.drain(60_000).await;
    assert_eq!(rig.twin.counts()["lease"], 3, "won by the dead worker, refused, taken over");
}

#[tokio::test]
async fn suspects_run_last_and_alone_and_their_neighbours_lose_one_attempt_at_most() {
    let rig = Rig::new();
    for n in 0..10 {
        rig.deliver(&subscription(&format!("evt_{n}"), "created", 10, &format!("sub_{n}"), "gold"))
            .await;
    }
    rig.dying_batch().await;
    rig.twin.advance(200_000);
    rig.drain(60_000).await;
    for n in 0..10 {
        let row = rig.row(&format!("evt_{n}"));
        assert_eq!((row.life.status, row.life.attempts), (Status::Settled, 2));
        assert!(row.life.waiting_since.is_none());
    }
    assert_eq!(rig.twin.counts()["wait"], 10, "each suspect stood aside once");
}

#[tokio::test]
async fn a_worker_that_always_dies_is_buried_by_force_with_its_count() {
    let rig = Rig::new();
    rig.deliver(&subscription("evt_1", "created", 10, "sub_1", "gold")).await;
    for _ in 0..6 {
        rig.dying_batch().await;
        rig.twin.advance(200_000);
    }
    assert_eq!(rig.row("evt_1").life.attempts, 6);
    rig.batch().await;
    let row = rig.row("evt_1");
    assert_eq!(row.life.status, Status::Dead);
    assert_eq!(row.life.failure.unwrap().error, "the worker died 6 times");
}

#[tokio::test]
async fn a_panicking_record_is_a_failed_run_and_its_neighbours_settle() {
    // The twin's clock never reaches a deadline by waiting, so a panic is what is left to guard:
    // the store panics for one record only.
    let rig = Rig::new();
    rig.deliver(&payment("evt_1", "acct_1", 5)).await;
    rig.deliver(&subscription("evt_2", "created", 10, "sub_1", "gold")).await;
    rig.twin.set_faults(|step, _| {
        assert!(step != "entity", "injected panic");
        None
    });
    rig.batch().await;
    rig.twin.clear_faults();
    assert_eq!(rig.row("evt_2").life.status, Status::Settled);
    let failed = rig.row("evt_1");
    assert_eq!(failed.life.status, Status::Failed);
    assert!(failed.life.failure.unwrap().error.contains("panicked"));
    rig.drain(60_000).await;
    assert_eq!(rig.row("evt_1").life.outcome, Some(Outcome::Applied));
}

#[tokio::test]
async fn a_console_redrive_gives_a_fresh_budget_and_shows_the_new_reason() {
    let rig = Rig::new();
    rig.deliver(&subscription("evt_1", "created", 10, "sub_1", "gold")).await;
    rig.twin.set_faults(|step, _| (step == "apply").then_some(Fault::Before(Trouble::Unavailable)));
    rig.drain(300_000).await;
    assert_eq!(rig.row("evt_1").life.status, Status::Dead);
    let first_failure = rig.row("evt_1").life.failure.unwrap();

    rig.twin.set_faults(|step, _| (step == "apply").then_some(Fault::Before(Trouble::Invalid)));
    rig.twin.advance(11_000);
    rig.twin.redrive_dead_letters();
    rig.drain(300_000).await;
    let row = rig.row("evt_1");
    let second_failure = row.life.failure.clone().unwrap();
    assert_eq!((row.life.status, row.life.attempts), (Status::Dead, 1), "a fresh count");
    assert_eq!(second_failure.class, FailureClass::Permanent);
    assert!(second_failure.at > first_failure.at);

    rig.twin.clear_faults();
    rig.twin.advance(11_000);
    rig.twin.redrive_dead_letters();
    rig.drain(60_000).await;
    assert_eq!(rig.row("evt_1").life.outcome, Some(Outcome::Applied));
    rig.twin.enqueue("{\"v\":1,\"key\":\"shop#evt_1\"}");
    rig.drain(60_000).await;
    assert_eq!(rig.twin.queue_len(), 0, "a settled row is a no-op");
    assert_eq!(rig.twin.state("shop#subscription#sub_1").unwrap().revision, 1);
}

#[tokio::test]
async fn a_dead_row_keeps_its_body_for_ever_and_a_settled_one_for_a_time() {
    let policy = Policy { inline_bytes_max: 0, ..Policy::default() };
    let rig = Rig::with(policy, "b");
    rig.deliver(&subscription("evt_1", "created", 10, "sub_1", "gold")).await;
    let expiries = || rig.twin.chunk_expiries().into_values().collect::<Vec<_>>();
    assert!(expiries().iter().all(Option::is_some), "an expiry from birth");
    rig.twin.set_faults(|step, _| (step == "apply").then_some(Fault::Before(Trouble::Unavailable)));
    rig.drain(300_000).await;
    assert_eq!(rig.row("evt_1").life.status, Status::Dead);
    assert!(expiries().iter().all(Option::is_none), "a person may need it in a year");
    rig.twin.clear_faults();
    rig.twin.advance(11_000);
    rig.twin.redrive_dead_letters();
    rig.drain(60_000).await;
    assert_eq!(rig.row("evt_1").life.outcome, Some(Outcome::Applied));
    assert!(expiries().iter().all(Option::is_some) && expiries().len() == 1);
}

#[tokio::test]
async fn a_burial_is_dated_when_it_is_made_however_slow_its_preparation() {
    let policy = Policy { inline_bytes_max: 0, ..Policy::default() };
    for dies in [false, true] {
        let rig = Rig::with(policy.clone(), "b");
        let event = if dies {
            subscription("evt_1", "created", 10, "sub_1", "gold")
        } else {
            poison("evt_1")
        };
        rig.deliver(&event).await;
        for _ in 0..if dies { 6 } else { 0 } {
            rig.dying_batch().await;
            rig.twin.advance(200_000);
        }
        rig.twin.set_faults(|step, _| (step == "keep_chunk").then_some(Fault::Slow(11_000)));
        rig.batch().await;
        let life = rig.row("evt_1").life;
        assert_eq!((life.status, life.failure.unwrap().at), (Status::Dead, rig.now()));
    }
}

#[tokio::test]
async fn copies_older_than_the_burial_grant_no_budget() {
    let rig = Rig::new();
    rig.deliver(&poison("evt_bad")).await;
    for _ in 0..5 {
        rig.twin.enqueue("{\"v\":1,\"key\":\"shop#evt_bad\"}");
    }
    rig.drain(300_000).await;
    assert_eq!(rig.row("evt_bad").life.epoch, 1, "it ran once");
    assert_eq!(rig.twin.dead_letter_bodies().len(), 6);
}

#[tokio::test]
async fn a_row_of_a_newer_build_is_left_untouched() {
    let rig = Rig::new();
    rig.deliver(&subscription("evt_1", "created", 10, "sub_1", "gold")).await;
    let mut row = rig.row("evt_1");
    row.life.format = 2;
    rig.twin.plant(row.clone());
    rig.batch().await;
    rig.tend().await;
    assert_eq!(rig.row("evt_1"), row);
    assert!(rig.twin.metric("UnknownFormat") > 0.5);
}

#[tokio::test]
async fn records_of_one_entity_are_worked_in_order_without_contention() {
    let rig = Rig::new();
    for n in 0..10 {
        rig.deliver(&payment(&format!("evt_{n}"), "acct_1", 1)).await;
    }
    rig.batch().await;
    assert_eq!(rig.twin.counts()["entity"], 10, "nobody had to read twice");
    let total = rig.twin.state("shop#balance#acct_1").unwrap().state["total"].clone();
    assert_eq!(total, json!(10));
}

#[tokio::test]
async fn no_attempt_is_counted_when_no_time_is_left() {
    let rig = Rig::with(Policy::default(), "b");
    rig.deliver(&subscription("evt_1", "created", 10, "sub_1", "gold")).await;
    let batch = rig.twin.receive(10);
    let failed = rig.consumer.consume(batch, rig.now().plus(5_000)).await;
    assert_eq!(failed.len(), 1);
    assert_eq!(rig.row("evt_1").life.attempts, 0);
}
