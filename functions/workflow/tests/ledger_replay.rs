//! Replay from the ledger, on the twin: rows of their own, through the guard, never twice.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod rig;

use ledger::{EntityKey, FailureClass, Origin, Outcome, Row, RunName, Status};
use rig::{Rig, payment, poison, subscription};
use serde_json::{Value, json};
use workflow::{
    ledger_replay::{LedgerReplay, Replayed, WhyNot, why_not},
    ports::Trouble,
    projection::{Addend, Delta, EventView, Plan, Projection, ProjectionError},
    twin::Fault,
};

const RUN: &str = "friday";

async fn replay(rig: &Rig, row: &Row) -> Replayed {
    let run = RunName::new(RUN).unwrap();
    let replay = LedgerReplay {
        config: &rig.consumer.config,
        policy: &rig.consumer.policy,
        run: &run,
        by: "ada",
        reason: "the state table was lost",
    };
    replay.replay(&*rig.twin, row).await.unwrap()
}

async fn settled(event: &Value) -> (Rig, Row) {
    let rig = Rig::new();
    assert_eq!(rig.deliver(event).await.status, 200);
    rig.drain(60_000).await;
    let row = rig.row(event["id"].as_str().unwrap());
    assert_eq!(row.life.status, Status::Settled);
    (rig, row)
}

fn of(rig: &Rig, row: &Row) -> Row {
    rig.twin.find(&format!("_r#{RUN}#{}", row.evidence.key)).unwrap()
}

#[tokio::test]
async fn a_replay_is_a_row_of_its_own_that_says_who_and_why_and_the_original_stays_as_it_is() {
    let (rig, row) = settled(&subscription("evt_1", "created", 10, "sub_1", "gold")).await;
    rig.twin.advance(5_000);
    assert_eq!(replay(&rig, &row).await, Replayed::New { sent: true });
    let made = of(&rig, &row);
    assert_eq!(made.evidence.origin, Origin::Replay);
    let note = made.evidence.origin_note.unwrap();
    assert_eq!(note, "by ada: the state table was lost (run friday)");
    assert_eq!((made.evidence.received_at, made.evidence.identity_hash), (rig.now(), None));
    assert_eq!(made.evidence.source, row.evidence.source);
    assert_eq!(made.evidence.body, row.evidence.body);
    rig.drain(60_000).await;
    let made = of(&rig, &row);
    // The state knows this very event: the guard lets it through once only.
    assert_eq!(made.life.outcome, Some(Outcome::Superseded));
    assert_eq!(rig.row("evt_1"), row);
}

#[tokio::test]
async fn what_the_state_lost_is_there_again_and_an_older_event_does_not_reverse_a_newer() {
    let rig = Rig::new();
    for (id, created, plan) in [("evt_1", 10, "silver"), ("evt_2", 20, "gold")] {
        rig.deliver(&subscription(id, "updated", created, "sub_1", plan)).await;
        rig.drain(60_000).await;
    }
    // As after a restore of the state to a time between the two.
    let mut state = rig.twin.state("shop#subscription#sub_1").unwrap();
    state.state = json!({"plan": "lost", "status": "lost"}).as_object().unwrap().clone();
    state.version = Some(ledger::Version::new(1).unwrap());
    rig.twin.plant_state("shop#subscription#sub_1", state);
    for id in ["evt_2", "evt_1"] {
        assert_eq!(replay(&rig, &rig.row(id)).await, Replayed::New { sent: true });
        rig.drain(60_000).await;
    }
    assert_eq!(rig.plan_of("sub_1"), "gold");
    let outcomes = ["evt_1", "evt_2"].map(|id| of(&rig, &rig.row(id)).life.outcome);
    assert_eq!(outcomes, [Some(Outcome::Superseded), Some(Outcome::Applied)]);
}

#[tokio::test]
async fn the_same_run_makes_no_row_twice_and_goes_on_where_it_was_interrupted() {
    let (rig, row) = settled(&subscription("evt_1", "created", 10, "sub_1", "gold")).await;
    assert_eq!(replay(&rig, &row).await, Replayed::New { sent: true });
    assert_eq!(replay(&rig, &row).await, Replayed::Before);
    rig.drain(60_000).await;
    let made = of(&rig, &row);
    assert_eq!(replay(&rig, &row).await, Replayed::Before);
    assert_eq!(of(&rig, &row), made, "not when it is settled either");
    // An answer that was lost is this run's own.
    let (rig, row) = settled(&subscription("evt_2", "created", 10, "sub_2", "gold")).await;
    rig.twin.set_faults(|step, _| (step == "claim").then_some(Fault::AnswerLost));
    assert_eq!(replay(&rig, &row).await, Replayed::New { sent: true });
}

#[tokio::test]
async fn a_replay_whose_message_is_not_sent_is_the_stewards() {
    let (rig, row) = settled(&subscription("evt_1", "created", 10, "sub_1", "gold")).await;
    rig.twin.set_faults(|step, _| (step == "send").then_some(Fault::Before(Trouble::Unavailable)));
    assert_eq!(replay(&rig, &row).await, Replayed::New { sent: false });
    rig.twin.clear_faults();
    rig.twin.advance(120_000);
    assert_eq!(rig.tend().await.swept, 1);
    rig.drain(60_000).await;
    assert_eq!(of(&rig, &row).life.status, Status::Settled);
}

#[tokio::test]
async fn a_large_body_is_copied_and_outlives_the_originals() {
    // Random text does not shrink, so this one lies in chunks.
    let noise = (0_u64..90_000).map(|n| format!("{:x}", n.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
    let noise = noise.collect::<Vec<_>>().concat();
    let mut event = subscription("evt_big", "created", 10, "sub_big", "gold");
    event["noise"] = json!(noise);
    let (rig, row) = settled(&event).await;
    assert!(row.evidence.body.chunks > 1, "{:?}", row.evidence.body);
    let days = u64::from(rig.consumer.policy.retention_days) + 170;
    rig.twin.advance(days * 86_400_000);
    // The row itself would be gone by now; whoever read it before may still be at it.
    assert_eq!(replay(&rig, &row).await, Replayed::New { sent: true });
    assert_eq!(replay(&rig, &row).await, Replayed::Before);
    rig.twin.advance(20 * 86_400_000);
    rig.twin.expire();
    let chunks = rig.twin.chunk_expiries();
    assert!(chunks.keys().all(|pk| pk.contains("#_r#friday#")), "the original's are gone");
    rig.drain(60_000).await;
    assert_eq!(of(&rig, &row).life.outcome, Some(Outcome::Superseded), "it was read and projected");
}

#[tokio::test]
async fn what_may_not_be_fed_in_again_is_refused_with_the_reason() {
    let (rig, counted) = settled(&payment("evt_pay", "acc_1", 5)).await;
    let why = |row: &Row| why_not(row, &rig.consumer.config, false);
    let delta = why(&counted).unwrap();
    assert_eq!(delta, WhyNot::Delta { entity: "balance".to_owned() });
    assert!(delta.to_string().contains("a second time"), "{delta}");

    rig.deliver(&subscription("evt_new", "created", 10, "sub_1", "gold")).await;
    assert_eq!(why(&rig.row("evt_new")), Some(WhyNot::Unfinished));
    rig.deliver(&poison("evt_poison")).await;
    rig.drain(60_000).await;
    assert_eq!(why(&rig.row("evt_poison")), Some(WhyNot::Dead));

    let applied = rig.row("evt_new");
    assert_eq!(why(&applied), None);
    replay(&rig, &applied).await;
    rig.drain(60_000).await;
    assert_eq!(why(&of(&rig, &applied)), Some(WhyNot::Replay));

    let mut other_mode = subscription("evt_test", "created", 10, "sub_1", "gold");
    other_mode["livemode"] = json!(false);
    rig.deliver(&other_mode).await;
    assert_eq!(why(&rig.row("evt_test")), Some(WhyNot::OtherMode));
    rig.deliver(&subscription("evt_nobody", "nobody.asked", 10, "sub_1", "gold")).await;
    rig.drain(60_000).await;
    assert_eq!(rig.row("evt_nobody").life.outcome, Some(Outcome::Ignored));
    assert_eq!(why(&rig.row("evt_nobody")), None, "a build may have learnt to use it");

    let mut changed = applied.clone();
    changed.life.outcome = Some(Outcome::Resolved);
    assert_eq!(why(&changed), Some(WhyNot::Resolved));
    assert_eq!(why_not(&changed, &rig.consumer.config, true), None);
    changed = applied.clone();
    changed.evidence.source = ledger::SourceName::new("gone").unwrap();
    assert_eq!(why(&changed), Some(WhyNot::NotConfigured));
    changed = applied;
    changed.life.format += 1;
    assert_eq!(why(&changed), Some(WhyNot::UnknownFormat));
}

/// A team's own projection: it counts the changes of a subscription.
struct Counting;

impl Projection for Counting {
    fn project(&self, event: &EventView<'_>) -> Result<Vec<Plan>, ProjectionError> {
        let field = "changes".to_owned();
        let addend = Addend { field, from: "=1".to_owned(), amount: "1".parse().unwrap() };
        Ok(vec![Plan::Delta(Delta {
            entity: EntityKey::new("shop", "counter", "sub_1").unwrap(),
            event_id: event.event_id.to_owned(),
            adds: vec![addend],
            appends: Vec::new(),
        })])
    }
}

#[tokio::test]
async fn what_adds_is_not_worked_again_whoever_made_the_row_and_whatever_was_configured_then() {
    let refused = |rig: &Rig, row: &Row| {
        let made = of(rig, row);
        assert_eq!(made.life.status, Status::Dead, "{:?}", made.life);
        let failure = made.life.failure.unwrap();
        assert_eq!(failure.class, FailureClass::Permanent);
        assert!(failure.error.contains("it would count twice"), "{}", failure.error);
    };
    // Made by a command that does not know the rule.
    let (rig, row) = settled(&payment("evt_pay", "acc_1", 5)).await;
    assert_eq!(replay(&rig, &row).await, Replayed::New { sent: true });
    rig.drain(60_000).await;
    refused(&rig, &row);
    assert_eq!(rig.twin.state("shop#balance#acc_1").unwrap().state["total"], json!(5));

    // Made while a version decided; the build that works it adds, and says so in Rust.
    let event = subscription("evt_1", "created", 10, "sub_1", "gold");
    let (mut rig, row) = settled(&event).await;
    assert_eq!(why_not(&row, &rig.consumer.config, false), None);
    assert_eq!(replay(&rig, &row).await, Replayed::New { sent: true });
    rig.consumer.projection = Box::new(Counting);
    rig.drain(60_000).await;
    refused(&rig, &row);
    assert!(rig.twin.state("shop#counter#sub_1").is_none());
    // An event of its own counts.
    rig.deliver(&subscription("evt_2", "updated", 20, "sub_1", "gold")).await;
    rig.drain(60_000).await;
    assert_eq!(rig.twin.state("shop#counter#sub_1").unwrap().state["changes"], json!(1));
}
