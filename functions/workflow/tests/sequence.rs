//! Sequences on the twin: who waits, who is worked when, and what becomes of a gap.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod rig;

use ledger::{FailureClass, Outcome, Policy, Status};
use rig::{
    Rig,
    numbered::{
        APPLIED, SUPERSEDED, arrive, arrive_and_die, event, order, reached, rig_of, sources, told,
    },
    provider::{Provider, answer, object},
};
use serde_json::json;

#[tokio::test]
async fn a_wait_of_an_hour_is_no_unfinished_work_and_a_wait_that_nobody_ends_is() {
    let rig = rig_of("apply");
    arrive(&rig, &[2]).await;
    for minutes in 1..=59 {
        rig.twin.advance(60_000);
        let tally = rig.tend().await;
        // The index alone tells of the first two minutes.
        assert!(tally.oldest_pending_ms <= 120_000, "{minutes}: {}", tally.oldest_pending_ms);
        let waits = if minutes > 2 { minutes * 60_000 } else { 0 };
        assert_eq!(tally.oldest_waiting_ms, waits, "{minutes}");
    }
    // Its time is up, it is sent, and no consumer takes it.
    let mut ages = Vec::new();
    for _ in 0..10 {
        rig.twin.advance(60_000);
        ages.push(rig.tend().await.oldest_pending_ms / 60_000);
    }
    assert_eq!(ages, [0, 0, 0, 3, 4, 5, 6, 7, 8, 9]);
    rig.drain(60_000).await;
    assert_eq!(told(&rig, 2), APPLIED);
    assert_eq!(rig.tend().await.oldest_pending_ms, 0);
}

#[tokio::test]
async fn numbers_that_come_early_wait_without_an_attempt_and_follow_the_missing_one_at_once() {
    let rig = rig_of("apply");
    arrive(&rig, &[3, 4, 2]).await;
    for n in [2, 3, 4] {
        assert_eq!(told(&rig, n), (Status::Waiting, None, 0));
    }
    assert_eq!(order(&rig).waiting.len(), 3);
    assert_eq!(reached(&rig), (None, String::new()), "nothing is applied yet");
    assert_eq!(rig.twin.queue_len(), 0, "who waits needs no message");

    arrive(&rig, &[1]).await;
    for n in 1..=4 {
        assert_eq!(told(&rig, n), APPLIED, "number {n}, without the steward");
    }
    assert_eq!(reached(&rig), (Some(4), "p4".to_owned()));
    assert!(order(&rig).waiting.is_empty());
    assert!(rig.twin.rows().iter().all(|row| row.life.open.is_none()));
}

#[tokio::test]
async fn duplicates_and_numbers_that_are_taken_change_nothing() {
    let rig = rig_of("apply");
    arrive(&rig, &[1, 2, 2, 1]).await;
    rig.twin.enqueue(r#"{"v":1,"key":"shop#evt_1"}"#);
    rig.drain(60_000).await;
    assert_eq!(reached(&rig), (Some(2), "p2".to_owned()));
    let mut other = event("changed", 2);
    other["id"] = json!("evt_other");
    rig.deliver(&other).await;
    rig.batch().await;
    assert_eq!(rig.row("evt_other").life.outcome, Some(Outcome::Applied), "its other changes are");
    let effects = rig.row("evt_other").effects;
    let superseded = |effect: &&ledger::Effect| effect.entity == "shop#order#o1";
    let effect = effects.iter().find(superseded).unwrap();
    assert_eq!(effect.outcome, ledger::EffectOutcome::Superseded);
}

#[tokio::test]
async fn an_event_that_waits_changes_nothing_else_meanwhile_and_everything_once() {
    let rig = rig_of("apply");
    arrive(&rig, &[2]).await;
    assert!(rig.twin.state("shop#log#a1").is_none());
    assert!(rig.twin.state("shop#latest#a1").is_none());
    arrive(&rig, &[1, 4, 3, 5]).await;
    let log = rig.twin.state("shop#log#a1").unwrap();
    assert_eq!(json!(log.state), json!({"count": 5, "seen": [3, 4, 5]}), "the last three");
    assert_eq!(rig.twin.state("shop#latest#a1").unwrap().state["n"], 5);
    assert_eq!(reached(&rig), (Some(5), "p5".to_owned()));
}

#[tokio::test]
async fn whose_worker_is_gone_is_sent_by_the_steward_within_two_minutes() {
    let rig = rig_of("apply");
    arrive(&rig, &[2, 3]).await;
    arrive_and_die(&rig, 1).await;
    assert_eq!(told(&rig, 1), APPLIED);
    assert_eq!(told(&rig, 2), (Status::Waiting, None, 0));
    rig.live(120_000).await;
    assert_eq!((told(&rig, 2), told(&rig, 3)), (APPLIED, APPLIED));
}

#[tokio::test]
async fn a_gap_is_waited_for_an_hour_and_then_applied_over() {
    let rig = rig_of("apply");
    arrive(&rig, &[1, 4, 3]).await;
    rig.live(3_540_000).await;
    assert_eq!(reached(&rig).0, Some(1), "not within the hour");
    rig.live(240_000).await;
    assert_eq!(reached(&rig), (Some(4), "p4".to_owned()));
    assert!(order(&rig).waiting.is_empty());
    arrive(&rig, &[2]).await;
    let effects = rig.row("evt_2").effects;
    assert!(effects.iter().any(|effect| effect.outcome == ledger::EffectOutcome::Superseded));
    assert_eq!(reached(&rig), (Some(4), "p4".to_owned()), "too late");
    arrive(&rig, &[5]).await;
    assert_eq!(told(&rig, 5), APPLIED, "the sequence has moved on");
}

#[tokio::test]
async fn a_gap_may_be_dead_for_a_person_with_the_missing_number_named() {
    let rig = rig_of("dead");
    arrive(&rig, &[1, 3]).await;
    rig.live(3_780_000).await;
    let row = rig.row("evt_3");
    assert_eq!((row.life.status, row.life.attempts), (Status::Dead, 1));
    let failure = row.life.failure.unwrap();
    assert_eq!(failure.class, FailureClass::Permanent);
    assert_eq!(
        failure.error,
        "order: number 3 cannot be applied, since 2 has not come (the last was 1)"
    );
    assert_eq!(reached(&rig).0, Some(1));
    // The person finds number 2; then number 3 is redriven.
    arrive(&rig, &[2]).await;
    rig.twin.advance(20_000);
    rig.twin.enqueue(r#"{"v":1,"key":"shop#evt_3"}"#);
    rig.drain(60_000).await;
    assert_eq!(reached(&rig), (Some(3), "p3".to_owned()));
}

#[tokio::test]
async fn a_gap_may_be_closed_with_what_the_provider_says() {
    let rig = rig_of("fetch");
    let provider = Provider::behind(&rig);
    provider.put("o1", object("what the provider says", "open"));
    arrive(&rig, &[1, 2]).await;
    assert_eq!(provider.asked().len(), 0, "without a gap nobody is asked");
    arrive(&rig, &[4]).await;
    rig.live(3_780_000).await;
    assert_eq!(provider.asked().len(), 1);
    assert_eq!(reached(&rig), (Some(4), "what the provider says".to_owned()));
    arrive(&rig, &[5]).await;
    assert_eq!(reached(&rig), (Some(5), "p5".to_owned()));
}

#[tokio::test]
async fn a_provider_that_is_down_when_the_hour_is_over_does_not_make_it_two() {
    let rig = rig_of("fetch");
    let provider = Provider::behind(&rig);
    provider.put("o1", object("what the provider says", "open"));
    provider.set_whim(|_| Some(answer(503, "down")));
    arrive(&rig, &[1, 3]).await;
    rig.live(3_600_000 + 600_000).await;
    assert!(provider.asked().len() > 3, "asked again and again: {}", provider.asked().len());
    assert_eq!(told(&rig, 3), (Status::Waiting, None, 0));
    provider.clear_whim();
    rig.live(120_000).await;
    assert_eq!(reached(&rig), (Some(3), "what the provider says".to_owned()));

    // Down for more than another hour, it is a failure after all.
    let rig = rig_of("fetch");
    let provider = Provider::behind(&rig);
    provider.set_whim(|_| Some(answer(503, "down")));
    arrive(&rig, &[1, 3]).await;
    rig.live(2 * 3_600_000 + 300_000).await;
    assert!(rig.row("evt_3").life.failure.is_some());
}

#[tokio::test]
async fn who_finds_no_room_to_wait_looks_again_and_follows_in_order() {
    for on_gap in ["apply", "dead"] {
        let policy = Policy { waiters_max: 2, ..Policy::default() };
        let rig = Rig::shop(&sources(on_gap), policy);
        arrive(&rig, &[1, 7, 6, 5, 4, 3]).await;
        assert_eq!(order(&rig).waiting.len(), 2);
        assert_eq!(told(&rig, 3), (Status::Waiting, None, 0), "without an attempt");
        rig.live(1_200_000).await;
        arrive(&rig, &[2]).await;
        rig.live(600_000).await;
        for n in 1..=7 {
            assert_eq!(told(&rig, n), APPLIED, "number {n}, {on_gap}");
        }
        assert_eq!(reached(&rig), (Some(7), "p7".to_owned()));
        let log = rig.twin.state("shop#log#a1").unwrap();
        assert_eq!(json!(log.state), json!({"count": 7, "seen": [5, 6, 7]}), "in order");
    }
}

#[tokio::test]
async fn who_finds_no_room_has_no_more_time_than_the_others() {
    let policy = Policy { waiters_max: 2, ..Policy::default() };
    let rig = Rig::shop(&sources("apply"), policy);
    arrive(&rig, &[1, 4, 5, 3]).await;
    rig.live(3_900_000).await;
    for n in [3, 4, 5] {
        assert_eq!(told(&rig, n), APPLIED, "number {n}");
    }
    assert!(order(&rig).waiting.is_empty());
}

#[tokio::test]
async fn of_those_behind_a_gap_the_lowest_goes_first_whoever_came_first() {
    let rig = rig_of("apply");
    arrive(&rig, &[1, 6]).await;
    rig.live(600_000).await;
    rig.deliver(&event("closed", 5)).await;
    rig.batch().await;
    rig.live(600_000).await;
    arrive(&rig, &[4, 3]).await;
    // The hour of 6 is over, then that of 5; they go behind 3, whose hour is not.
    rig.live(2_700_000).await;
    assert_eq!(reached(&rig).0, Some(1));
    rig.live(900_000).await;
    for n in [3, 4, 5] {
        assert_eq!(told(&rig, n), APPLIED, "number {n}");
    }
    assert!(order(&rig).is_final, "what ends it is not overtaken");
    let log = rig.twin.state("shop#log#a1").unwrap();
    assert_eq!(log.state["seen"], json!([3, 4, 6]), "6 comes after the end, and counts elsewhere");
}

#[tokio::test]
async fn who_was_woken_is_not_overtaken_before_it_is_applied() {
    let rig = rig_of("apply");
    arrive(&rig, &[3]).await;
    rig.live(3_000_000).await;
    arrive(&rig, &[2]).await;
    rig.live(500_000).await;
    arrive_and_die(&rig, 1).await;
    assert_eq!(reached(&rig).0, Some(1), "number 2 is woken, and not yet worked");
    // At this moment the hour of number 3 is over.
    rig.twin.advance(110_000);
    rig.twin.enqueue(r#"{"v":1,"key":"shop#evt_3"}"#);
    rig.batch().await;
    assert_eq!(reached(&rig).0, Some(1), "number 2 comes first");
    rig.live(300_000).await;
    assert_eq!((told(&rig, 2), told(&rig, 3)), (APPLIED, APPLIED));
    assert!(order(&rig).waiting.is_empty());
}

#[tokio::test]
async fn a_name_left_in_the_set_holds_nobody_up_for_ever() {
    let rig = rig_of("dead");
    arrive(&rig, &[1, 4, 3]).await;
    rig.live(3_780_000).await;
    assert_eq!(told(&rig, 3).0, Status::Dead, "its time was up, and its name stays");
    assert_eq!(told(&rig, 4), (Status::Waiting, None, 0));
    rig.live(3_600_000).await;
    assert_eq!(told(&rig, 4).0, Status::Dead);
}

#[tokio::test]
async fn of_two_events_with_the_next_number_the_one_that_still_waits_is_woken() {
    let rig = rig_of("apply");
    let twin = |id: &str| {
        let mut event = event("changed", 2);
        event["id"] = json!(id);
        event
    };
    for id in ["evt_a", "evt_b"] {
        rig.deliver(&twin(id)).await;
        rig.batch().await;
    }
    // One of them is closed by hand; its name stays in the set.
    let mut closed = rig.row("evt_a");
    closed.life.status = Status::Settled;
    closed.life.outcome = Some(Outcome::Resolved);
    closed.life.open = None;
    rig.twin.plant(closed);
    arrive(&rig, &[1]).await;
    assert_eq!(rig.row("evt_b").life.outcome, Some(Outcome::Applied));
    assert_eq!(reached(&rig), (Some(2), "p2".to_owned()));
}

#[tokio::test]
async fn a_last_number_ends_the_sequence_in_its_turn() {
    let rig = rig_of("apply");
    rig.deliver(&event("closed", 3)).await;
    rig.batch().await;
    assert_eq!(told(&rig, 3), (Status::Waiting, None, 0), "a tombstone waits like everybody");
    arrive(&rig, &[1, 2]).await;
    let entity = order(&rig);
    assert!(entity.is_final);
    assert_eq!(json!(entity.state), json!({"plan": null, "status": "closed"}));
    rig.deliver(&event("closed", 4)).await;
    rig.batch().await;
    assert_eq!(told(&rig, 4), SUPERSEDED);
    assert_eq!(order(&rig).version.map(ledger::Version::get), Some(3));
}

#[tokio::test]
async fn a_number_that_is_no_number_is_dead_and_named() {
    let rig = rig_of("apply");
    let mut event = event("changed", 1);
    event["data"]["object"]["n"] = json!("first");
    rig.deliver(&event).await;
    rig.batch().await;
    let failure = rig.row("evt_1").life.failure.unwrap();
    assert_eq!(failure.class, FailureClass::Permanent);
    assert_eq!(failure.error, "order: the version \"first\" is no integer (at /data/object/n)");
}
