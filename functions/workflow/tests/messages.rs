//! What happens to a message: deleted only with its row settled, else back at the right time.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod rig;

use ledger::{EffectOutcome, FailureClass, Outcome, Status};
use rig::{Rig, payment, subscription};
use workflow::{ports::Trouble, twin::Fault};

const MESSAGE: &str = "{\"v\":1,\"key\":\"shop#evt_1\"}";

#[tokio::test]
async fn the_message_of_a_settled_row_is_deleted_at_its_first_receive() {
    let rig = Rig::new();
    rig.deliver(&subscription("evt_1", "created", 10, "sub_1", "gold")).await;
    rig.drain(60_000).await;
    rig.twin.enqueue(MESSAGE);
    rig.batch().await;
    assert_eq!((rig.twin.queue_len(), rig.twin.counts()["lease"]), (0, 2));
    assert_eq!(rig.twin.dead_letter_bodies().len(), 0);
}

#[tokio::test]
async fn the_message_of_a_row_of_a_newer_build_waits_a_minute_for_that_build() {
    let rig = Rig::new();
    rig.deliver(&subscription("evt_1", "created", 10, "sub_1", "gold")).await;
    let mut row = rig.row("evt_1");
    row.life.format = 2;
    rig.twin.plant(row);
    rig.batch().await;
    assert_eq!(rig.twin.next_visible(), Some(rig.now().plus(60_000)));
}

#[tokio::test]
async fn the_message_of_a_lost_lease_stays_until_its_row_is_settled() {
    let rig = Rig::new();
    rig.deliver(&subscription("evt_1", "created", 10, "sub_1", "gold")).await;
    let batch = rig.twin.receive(10);
    // The worker is so slow that another takes the row over while it still writes.
    let mut other = rig.row("evt_1");
    other.life.epoch = 7;
    other.life.status = Status::Processing;
    other.life.attempts = 1;
    let lease = ledger::Lease { owner: ledger::Token(9), until: rig.now().plus(90_000) };
    other.life.lease = Some(lease);
    let (twin, planted) = (std::sync::Arc::clone(&rig.twin), std::cell::Cell::new(false));
    let work = rig.consumer.consume(batch.clone(), rig.now().plus(30_000));
    rig.twin.set_latency(|step| u64::from(step == "apply"));
    let mut work = std::pin::pin!(work);
    let failed = std::future::poll_fn(|context| {
        let polled = work.as_mut().poll(context);
        if polled.is_pending() && !planted.replace(true) {
            twin.plant(other.clone());
            twin.advance(1);
        }
        polled
    })
    .await;
    assert_eq!(failed.len(), 1, "it is not finished");
    assert!((rig.twin.metric("Fenced") - 1.0).abs() < 0.1);
    assert_eq!(rig.row("evt_1").life, other.life, "and nothing more was written");
}

/// A payment's run during which the account is written to `times` times between its read and its
/// write.
async fn paid_under_contention(times: u64) -> Rig {
    let rig = Rig::new();
    rig.deliver(&payment("evt_0", "acct_1", 1)).await;
    rig.drain(60_000).await;
    rig.deliver(&payment("evt_1", "acct_1", 5)).await;
    rig.twin.set_latency(|step| u64::from(step == "apply"));
    let batch = rig.twin.receive(10);
    let mut work = Box::pin(rig.consumer.consume(batch.clone(), rig.now().plus(30_000)));
    let mut writes = 0;
    let failed = std::future::poll_fn(|context| {
        let polled = work.as_mut().poll(context);
        if polled.is_pending() {
            if writes < times {
                writes += 1;
                let mut entity = rig.twin.state("shop#balance#acct_1").unwrap();
                entity.revision += 1;
                rig.twin.plant_state("shop#balance#acct_1", entity);
            }
            rig.twin.advance(1);
        }
        polled
    })
    .await;
    drop(work);
    rig.twin.set_latency(|_| 0);
    rig.twin.finish(&batch, &failed);
    rig
}

#[tokio::test]
async fn a_sum_that_meets_another_is_read_again_five_times_and_then_given_back() {
    let met = paid_under_contention(5).await;
    let life = met.row("evt_1").life;
    assert_eq!((life.outcome, life.attempts), (Some(Outcome::Applied), 1));
    let total = met.twin.state("shop#balance#acct_1").unwrap().state["total"].clone();
    assert_eq!(total.to_string(), "6");
    let contended = paid_under_contention(6).await;
    let life = contended.row("evt_1").life;
    assert_eq!((life.status, life.attempts), (Status::Waiting, 0), "nobody's failure");
    contended.drain(60_000).await;
    assert_eq!(contended.row("evt_1").life.outcome, Some(Outcome::Applied));
}

#[tokio::test]
async fn a_row_of_a_source_that_this_build_does_not_know_waits_for_one_that_does() {
    let mut rig = Rig::new();
    rig.deliver(&payment("evt_1", "acct_1", 5)).await;
    let known = rig.consumer.config.clone();
    rig.consumer.config = config::Config::parse("sources.toml", OTHER_SOURCE, &|_| None).unwrap();
    rig.batch().await;
    let failure = rig.row("evt_1").life.failure.unwrap();
    assert_eq!(failure.class, FailureClass::Transient, "the other build of a deploy may");
    rig.consumer.config = known;
    rig.drain(60_000).await;
    assert_eq!(rig.row("evt_1").life.outcome, Some(Outcome::Applied));
}

const OTHER_SOURCE: &str = r#"
[sources.other]
preset = "stripe"
secret = "other"
"#;

const TWO_PROJECTIONS: &str = r#"
[sources.shop]
preset = "stripe"
secret = "shop"

[[sources.shop.projections]]
on = ["subscription.updated"]
entity = { type = "subscription", id = "/data/object/id" }
order = { strategy = "version", by = "/created", unit = "s" }
set = { plan = "/data/object/plan" }

[[sources.shop.projections]]
on = ["subscription.updated"]
entity = { type = "plan", id = "/data/object/plan" }
order = { strategy = "version", by = "/created", unit = "s" }
set = { last = "/data/object/id" }
"#;

#[tokio::test]
async fn an_event_is_applied_where_it_is_newer_and_superseded_only_where_nothing_is_left() {
    use EffectOutcome::{Applied, Superseded};
    let secret = serde_json::json!({"shop": [{"kid": "k1", "key": rig::SECRET}]});
    let rig = Rig::of(TWO_PROJECTIONS, &secret, rig::START, false);
    for (id, created, plan) in [("evt_9", 9, "gold"), ("evt_5", 5, "silver"), ("evt_1", 1, "gold")]
    {
        rig.deliver(&subscription(id, "updated", created, "sub_1", plan)).await;
        rig.drain(60_000).await;
    }
    let ended = |id: &str| {
        let row = rig.row(id);
        let effects: Vec<EffectOutcome> = row.effects.iter().map(|effect| effect.outcome).collect();
        (row.life.outcome.unwrap(), effects)
    };
    assert_eq!(ended("evt_9"), (Outcome::Applied, vec![Applied, Applied]));
    assert_eq!(ended("evt_5"), (Outcome::Applied, vec![Superseded, Applied]), "a new plan");
    assert_eq!(ended("evt_1"), (Outcome::Superseded, vec![Superseded, Superseded]));
    assert_eq!(rig.plan_of("sub_1"), "gold");
}

#[tokio::test]
async fn the_message_of_a_row_that_could_not_be_given_back_returns_when_the_lease_ends() {
    for step in ["fail", "wait"] {
        let rig = Rig::new();
        rig.deliver(&subscription("evt_1", "created", 10, "sub_1", "gold")).await;
        rig.twin.set_faults(move |found, _| {
            let apply = if step == "wait" { Trouble::Throttled } else { Trouble::Unavailable };
            match found {
                "apply" => Some(Fault::Before(apply)),
                found if found == step => Some(Fault::Before(Trouble::Unavailable)),
                _ => None,
            }
        });
        rig.batch().await;
        let life = rig.row("evt_1").life;
        assert_eq!(life.status, Status::Processing, "{step}");
        let ends = life.lease.unwrap().until;
        assert_eq!(rig.twin.next_visible(), Some(ends.plus(1_000)), "{step}");
    }
}

#[tokio::test]
async fn a_failed_run_and_its_message_come_back_at_the_same_time() {
    let rig = Rig::new();
    rig.deliver(&subscription("evt_1", "created", 10, "sub_1", "gold")).await;
    rig.twin.set_faults(|step, _| (step == "apply").then_some(Fault::Before(Trouble::Unavailable)));
    for seconds in [1, 2, 4, 8, 16] {
        rig.batch().await;
        let retry_at = rig.row("evt_1").life.retry_at;
        assert_eq!(retry_at, Some(rig.now().plus(seconds * 1_000)));
        assert_eq!(rig.twin.next_visible(), retry_at);
        rig.twin.advance(seconds * 1_000);
    }
}

#[tokio::test]
async fn a_throttled_row_waits_as_long_again_as_it_has_waited_up_to_a_minute() {
    let rig = Rig::new();
    rig.deliver(&subscription("evt_1", "created", 10, "sub_1", "gold")).await;
    rig.twin.set_faults(|step, _| (step == "apply").then_some(Fault::Before(Trouble::Throttled)));
    let mut waits = Vec::new();
    for _ in 0..9 {
        rig.batch().await;
        let life = rig.row("evt_1").life;
        assert_eq!((life.status, life.attempts), (Status::Waiting, 0));
        let wait = life.retry_at.unwrap().since(rig.now());
        waits.push(wait / 1_000);
        rig.twin.advance(wait);
    }
    // Nine receives of the ten that a message has: a storm of six minutes rings no alarm.
    assert_eq!(waits, [10, 10, 20, 40, 60, 60, 60, 60, 60]);
    rig.twin.clear_faults();
    rig.drain(0).await;
    assert_eq!(rig.row("evt_1").life.outcome, Some(Outcome::Applied));
    assert_eq!(rig.twin.dead_letter_bodies().len(), 0);
}

#[tokio::test]
async fn no_message_is_hidden_for_longer_than_a_queue_allows() {
    let rig = Rig::new();
    rig.deliver(&subscription("evt_1", "created", 10, "sub_1", "gold")).await;
    let mut row = rig.row("evt_1");
    row.life.status = Status::Failed;
    row.life.retry_at = Some(rig.now().plus(2 * 86_400_000));
    rig.twin.plant(row);
    rig.batch().await;
    assert_eq!(rig.twin.next_visible(), Some(rig.now().plus(43_170_000)), "within twelve hours");
}

#[tokio::test]
async fn a_panic_in_the_machinery_is_one_failed_record_and_no_failed_batch() {
    let rig = Rig::new();
    for n in 0..10 {
        rig.deliver(&subscription(&format!("evt_{n}"), "created", 10, &format!("sub_{n}"), "gold"))
            .await;
    }
    let mut leases = 0;
    rig.twin.set_faults(move |step, _| {
        leases += u32::from(step == "lease");
        assert!(step != "lease" || leases != 4, "injected panic");
        None
    });
    rig.batch().await;
    rig.twin.clear_faults();
    let settled = rig.twin.rows().iter().filter(|row| row.life.status == Status::Settled).count();
    assert_eq!((settled, rig.twin.queue_len()), (9, 1));
    assert_eq!(rig.twin.next_visible(), Some(rig.now().plus(30_000)));
}
