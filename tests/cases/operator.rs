//! Kinds j and k: what is fed in again, and what an operator is told. What the command line itself
//! says is tested beside it, in `functions/oncehook/src/commands/tests/reports.rs`.

use crate::shop::{shop, thing, world};
use ledger::{
    Bucket, EventKey, FailureClass, Message, Outcome, Row, RunName, Status,
    verbs::{Redrive, RedriveBy},
};
use serde_json::json;
use support::{World, now};
use workflow::{
    ledger_replay::{LedgerReplay, Replayed},
    ports::{Ledger, Trouble},
    twin::Fault,
};

const DAY_MS: u64 = 86_400_000;

fn template() -> String {
    std::fs::read_to_string(support::root().join("template.yaml")).unwrap()
}

/// A number of a resource in the template: of `property`, in the block that begins with `resource`.
fn number(template: &str, resource: &str, property: &str) -> u64 {
    let block = template.split(&format!("\n  {resource}:\n")).nth(1).unwrap();
    let value = block.split(&format!("{property}: ")).nth(1).unwrap();
    let digits: String = value.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

/// A version that is a text: no run can help.
fn poison(world: &World, event: &str) -> Row {
    let body = json!({"id": "t1", "version": "first", "value": 1}).to_string();
    let headers = [("x-github-event", "thing"), ("x-github-delivery", event)];
    assert_eq!(world.deliver("things", &headers, body.as_bytes()).status, 200);
    world.work();
    world.row(&format!("things#{event}"))
}

fn replay(world: &World, row: &Row) -> Replayed {
    let run = RunName::new("r1").unwrap();
    let config = &world.consumer.config;
    let replay =
        LedgerReplay { config, policy: &world.policy, run: &run, by: "ada", reason: "lost" };
    now(replay.replay(&*world.twin, row)).unwrap()
}

#[test]
fn j08_a_replay_enters_behind_the_signature_and_the_public_door_still_refuses_the_old_header() {
    let world = shop().build();
    let body = br#"{"id":"evt_j08","object":"event","type":"invoice.paid","created":1700000000,
        "data":{"object":{"id":"in_j08"}}}"#;
    let call = world.signer.call_at("stripe", &[], body.to_vec(), world.now().0);
    let headers: Vec<(String, String)> = call
        .headers
        .iter()
        .map(|(name, value)| (name.clone(), String::from_utf8(value.clone()).unwrap()))
        .collect();
    let headers: Vec<(&str, &str)> =
        headers.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    assert_eq!(world.post("stripe", &headers, body).status, 200);
    world.work();
    world.twin.advance(10 * DAY_MS);
    assert_eq!(world.post("stripe", &headers, body).status, 401, "ten days old");
    let row = world.row("stripe#evt_j08");
    assert_eq!(replay(&world, &row), Replayed::New { sent: true });
    world.work();
    let made = world.row("_r#r1#stripe#evt_j08");
    assert_eq!(made.life.status, Status::Settled);
    assert_eq!(world.body("_r#r1#stripe#evt_j08"), body, "the stored bytes");
    assert_eq!(made.evidence.kid, row.evidence.kid, "which key verified it at receipt");
}

/// The mark is the row: a message only names it, and the row names its body's hash.
#[test]
fn j09_the_consumer_trusts_what_was_verified_at_receipt_and_nothing_else_that_is_queued() {
    let world = world();
    assert_eq!(thing(&world, "evt_j09", "t1", 1), 200);
    world.twin.advance(600_000);
    world.work();
    assert_eq!(world.row("things#evt_j09").life.outcome, Some(Outcome::Applied));

    let foreign = EventKey::parse("things#evt_nobody").unwrap();
    world.twin.enqueue(&Message::new(foreign, "thing", None).to_json());
    world.twin.enqueue("{\"id\":\"evt_x\",\"type\":\"thing\"}");
    world.work();
    assert_eq!(world.twin.dead_letter_bodies().len(), 2, "refused, and shown");
    assert!(world.keys().iter().all(|key| key != "things#evt_nobody"));

    assert_eq!(thing(&world, "evt_altered", "t2", 1), 200);
    let mut row = world.row("things#evt_altered");
    row.evidence.body.sha256[0] ^= 1;
    world.twin.plant(row);
    world.work();
    let row = world.row("things#evt_altered");
    let failure = row.life.failure.unwrap();
    assert_eq!((row.life.status, failure.class), (Status::Dead, FailureClass::Permanent));
    assert!(failure.error.contains("hash"), "{}", failure.error);
}

#[test]
fn k02_a_dead_row_says_why_and_keeps_it_through_a_redrive() {
    let world = world();
    let row = poison(&world, "evt_k02");
    let failure = row.life.failure.clone().unwrap();
    assert_eq!(row.evidence.source.as_str(), "things");
    assert_eq!(
        (row.evidence.key.event_id(), row.evidence.event_type.as_str()),
        ("evt_k02", "thing")
    );
    assert_eq!((row.evidence.received_at, row.life.attempts), (world.now(), 1));
    assert_eq!(failure.class, FailureClass::Permanent);
    assert!(failure.error.contains("/version"), "the stage: {}", failure.error);
    assert_eq!(row.life.release.as_deref(), Some("r1"), "the build");
    // Object and version are the body's, which the row holds or points to, byte for byte.
    assert!(String::from_utf8(world.body("things#evt_k02")).unwrap().contains("\"first\""));
    assert!(
        world
            .twin
            .lines()
            .iter()
            .any(|line| { line.fields.values().any(|value| value == "things#evt_k02") }),
        "its key is in the log"
    );

    world.twin.advance(20_000);
    let by = RedriveBy::Person { by: "ada".to_owned(), reason: "look again".to_owned() };
    let key = row.evidence.key.clone();
    let ask = Redrive { by, now: world.now(), shard: key.shard() };
    now(world.twin.redrive(&key, &ask)).unwrap().unwrap();
    let after = world.row("things#evt_k02");
    assert_eq!(after.life.failure, Some(failure), "the reason outlives the redrive");
    assert_eq!((after.evidence, after.life.by_hand.unwrap().by), (row.evidence, "ada".to_owned()));

    // A destination may say a lot: the row keeps a bounded sentence.
    world.twin.set_faults(|step, _| (step == "apply").then_some(Fault::Before(Trouble::Invalid)));
    thing(&world, "evt_long", "t9", 1);
    world.work();
    let error = world.row("things#evt_long").life.failure.unwrap().error;
    assert!(error.chars().count() <= 500 && !error.is_empty());
}

/// The report wants permanent refusals out of the dead-letter queue. Here the queue holds whatever is
/// dead, so that the SQS console shows all of it; what is told apart is the row: parked with its class
/// and reason, against dead with a redrive of its own to come. What is throttled is neither.
#[test]
fn k07_refusals_are_parked_with_their_reason_and_failures_of_the_system_come_back_by_themselves() {
    let world = world();
    let refused = poison(&world, "evt_refused");
    assert!(matches!(refused.life.open.unwrap().bucket, Bucket::Parked(_)));
    assert_eq!(refused.life.failure.unwrap().class, FailureClass::Permanent);

    world
        .twin
        .set_faults(|step, _| (step == "apply").then_some(Fault::Before(Trouble::Unavailable)));
    thing(&world, "evt_down", "t2", 1);
    world.work_through();
    let down = world.row("things#evt_down");
    assert!(matches!(down.life.open.unwrap().bucket, Bucket::Dead(_)), "{:?}", down.life.open);
    assert_eq!(down.life.failure.unwrap().class, FailureClass::Transient);

    world.twin.set_faults(|step, _| (step == "apply").then_some(Fault::Before(Trouble::Throttled)));
    thing(&world, "evt_throttled", "t3", 1);
    world.work();
    let throttled = world.row("things#evt_throttled");
    assert_eq!((throttled.life.status, throttled.life.attempts), (Status::Waiting, 0));
    world.twin.clear_faults();
    world.minutes(15);
    assert_eq!(world.status("things#evt_down"), Status::Settled, "by itself");
    assert_eq!(world.status("things#evt_throttled"), Status::Settled);
    assert_eq!(world.status("things#evt_refused"), Status::Dead, "waits for a person");
}

#[test]
fn k09_the_record_of_a_failure_outlives_its_message_which_outlives_the_queue() {
    let template = template();
    let queue = number(&template, "Queue", "MessageRetentionPeriod");
    let dead = number(&template, "DeadLetterQueue", "MessageRetentionPeriod");
    assert_eq!((queue, dead), (4 * 86_400, 14 * 86_400));
    // A message keeps its first date, so ten days are left at worst; the alarm on age rings in an hour.
    assert_eq!(number(&template, "DeadLettersAgeAlarm", "Threshold"), 3_600);

    let world = world();
    let row = poison(&world, "evt_k09");
    world.twin.lose_queue();
    world.twin.advance(2 * 3_600_000);
    world.steward();
    assert!(world.twin.metric("OldestDeadAge") >= 7_200.0, "it is published");
    world.twin.advance(400 * DAY_MS);
    world.twin.expire();
    assert_eq!(world.row("things#evt_k09").life, row.life, "longer than any message");
    assert!(!world.body("things#evt_k09").is_empty());
}

/// Key and body of a settled event go together, after the retention; a large body's chunks later, so
/// that no row is ever without its body. Unfinished and dead rows never go.
#[test]
fn k12_pruning_touches_nothing_unfinished_and_an_expired_row_that_is_still_there_still_counts() {
    let world = world();
    thing(&world, "evt_done", "t1", 1);
    world.work();
    let dead = poison(&world, "evt_dead");
    let noise = (0_u64..60_000).map(|n| format!("{:x}", n.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
    let noise = noise.collect::<Vec<_>>().concat();
    let large = json!({"id": "t3", "version": "first", "noise": noise}).to_string();
    let headers = [("x-github-event", "thing"), ("x-github-delivery", "evt_large")];
    world.deliver("things", &headers, large.as_bytes());
    while world.status("things#evt_large") != Status::Dead {
        world.work_once();
    }
    assert!(world.row("things#evt_large").evidence.body.chunks > 0);
    thing(&world, "evt_pending", "t2", 1);

    world.twin.advance(91 * DAY_MS);
    // The store deletes late: what has expired and is there still stops a duplicate.
    let before = world.row("things#evt_done");
    assert!(before.life.expires_at.unwrap().0 * 1_000 < world.now().0);
    assert_eq!(thing(&world, "evt_done", "t1", 1), 200);
    assert_eq!(world.row("things#evt_done"), before);

    world.twin.advance(400 * DAY_MS);
    world.twin.expire();
    assert!(!world.keys().contains(&"things#evt_done".to_owned()), "gone");
    assert_eq!(world.row("things#evt_dead").life, dead.life);
    assert_eq!(world.body("things#evt_large"), large.as_bytes(), "no byte of what is dead");
    assert!(!world.body("things#evt_pending").is_empty());
}
