//! Kind d: a worker fails, dies or is slow, and its neighbours, its row and its effect do not.

use crate::shop::{count, github, thing, world};
use ledger::{
    EventKey, Lease, Life, Message, Millis, Outcome, Status, Token,
    verbs::{Apply, ApplyRefusal, FenceRefusal, LeaseAsk},
};
use serde_json::json;
use support::{World, claimed_row, now};
use workflow::{
    ports::{Ledger, Trouble},
    twin::Fault,
};

/// A worker that takes the next message, leases its row, and is never heard of again. Its lease's
/// epoch and end.
pub(crate) fn die_at_work(world: &World) -> (EventKey, u64, Millis) {
    let batch = world.twin.receive(1);
    let key = Message::parse(&batch[0].body).unwrap().key;
    let ask = LeaseAsk {
        owner: Token(0xDEAD),
        until: world.now().plus(40_000),
        now: world.now(),
        release: "r1".to_owned(),
    };
    let leased = now(world.twin.lease(&key, &ask)).unwrap().unwrap();
    (key, leased.row.life.epoch, ask.until)
}

/// A worker that wakes long after its lease has ended and writes what it had in mind.
pub(crate) fn wake_and_apply(world: &World, key: &EventKey, epoch: u64) -> ApplyRefusal {
    let ask = Apply::new(epoch, world.now(), Vec::new());
    now(world.twin.apply(key, &ask, &[])).unwrap().unwrap_err().why
}

fn is_one(metric: f64) -> bool {
    (metric - 1.0).abs() < f64::EPSILON
}

#[test]
fn d02_what_a_batch_reports_as_failed_is_what_stays() {
    let template = std::fs::read_to_string(support::root().join("template.yaml")).unwrap();
    let is_set = |line: &&str| line.trim_start().starts_with("FunctionResponseTypes:");
    let reports = template
        .lines()
        .filter(is_set)
        .filter(|line| line.contains("ReportBatchItemFailures"))
        .count();
    let mappings = template.matches("Type: AWS::Lambda::EventSourceMapping").count();
    assert_eq!((reports, mappings), (1, 1), "a mapping of the template does not read what failed");

    let world = world();
    for (event, version) in [("a", 1), ("c", 2)] {
        assert_eq!(thing(&world, event, "t1", version), 200);
    }
    // No version: it can never be worked.
    let poison = [("x-github-event", "thing"), ("x-github-delivery", "b")];
    assert_eq!(world.deliver("things", &poison, br#"{"id":"t1"}"#).status, 200);
    let batch = world.twin.receive(10);
    let poisoned = batch.iter().find(|record| record.body.contains("things#b")).unwrap();
    assert_eq!(world.work_batch(&batch), std::slice::from_ref(&poisoned.message_id));
    assert_eq!(world.twin.queue_len(), 1);
}

#[test]
fn d04_a_message_nobody_can_read_is_reported_alone_and_ends_with_the_dead_letters() {
    let world = world();
    assert_eq!([thing(&world, "e1", "o1", 1), thing(&world, "e4", "o4", 1)], [200, 200]);
    for body in ["{not json", ""] {
        world.twin.enqueue(body);
    }
    let batch = world.twin.receive(10);
    let bad: Vec<String> = batch
        .iter()
        .filter(|record| !record.body.contains("things#"))
        .map(|record| record.message_id.clone())
        .collect();
    let mut failed = world.work_batch(&batch);
    failed.sort();
    assert_eq!(failed, bad);
    for key in ["things#e1", "things#e4"] {
        assert_eq!(world.status(key), Status::Settled);
    }
    world.work_through();
    let mut dead = world.twin.dead_letter_bodies();
    dead.sort();
    assert_eq!(dead, ["", "{not json"]);
}

#[test]
fn d06_a_row_whose_worker_died_is_taken_over_when_the_lease_ends_and_not_before() {
    let world = world();
    assert_eq!(thing(&world, "e-d06", "t1", 1), 200);
    let (key, _, until) = die_at_work(&world);
    world.twin.advance(10_000);
    world.twin.enqueue(&Message::new(key.clone(), "thing", None).to_json());
    world.work();
    assert_eq!(world.row(key.as_str()).life.attempts, 1, "an early retry burns nothing");
    world.twin.advance(until.since(world.now()) + 2_000);
    world.work();
    let life = world.row(key.as_str()).life;
    assert_eq!((life.status, life.attempts), (Status::Settled, 2));
}

#[test]
fn d07_without_time_left_nothing_is_leased() {
    let world = world();
    assert_eq!(thing(&world, "e-d07", "t1", 1), 200);
    for deadline in [world.now(), world.now().minus(60_000), world.now().plus(1)] {
        let batch = world.twin.receive(10);
        let failed = now(world.consumer.consume(batch.clone(), deadline));
        assert_eq!(failed.len(), 1);
        world.twin.finish(&batch, &failed);
        let life = world.row("things#e-d07").life;
        assert_eq!((life.status, life.attempts, life.lease), (Status::Claimed, 0, None));
        world.twin.advance(1_000);
    }
    world.work();
    assert_eq!(world.status("things#e-d07"), Status::Settled);
}

#[test]
fn d08_the_effect_and_its_mark_are_one_write() {
    let world = world();
    // The write is made and its answer lost; then the message comes again.
    assert_eq!(count(&world, "e-d08", "c1", 5), 200);
    world.twin.set_faults(|step, _| (step == "apply").then_some(Fault::AnswerLost));
    world.work();
    world.twin.clear_faults();
    world
        .twin
        .enqueue(&Message::new(EventKey::parse("counts#e-d08").unwrap(), "count", None).to_json());
    world.work();
    assert_eq!(world.field("counts#count#c1", "total"), json!(5));

    // A worker dies over its work, another does it, and the first wakes up.
    assert_eq!(count(&world, "e-d08b", "c1", 7), 200);
    let (key, epoch, until) = die_at_work(&world);
    world.twin.advance(until.since(world.now()) + 1);
    world.twin.enqueue(&Message::new(key.clone(), "count", None).to_json());
    world.work();
    assert_eq!(wake_and_apply(&world, &key, epoch), ApplyRefusal::Fence(FenceRefusal::Lost));
    assert_eq!(world.field("counts#count#c1", "total"), json!(12));
}

#[test]
fn d09_a_row_stranded_in_processing_is_found_and_its_age_measured() {
    let world = world();
    let body = json!({"id": "t1", "version": 1, "value": 1}).to_string();
    let (row, _) =
        claimed_row("things", "e-d09", "thing", body.as_bytes(), world.now().minus(600_000));
    let dead = Lease { owner: Token(0xDEAD), until: world.now().minus(1) };
    let life = Life {
        status: Status::Processing,
        epoch: 1,
        attempts: 1,
        lease: Some(dead),
        ..row.life.clone()
    };
    world.twin.plant(ledger::Row { life, ..row });
    let tally = world.steward();
    assert_eq!((tally.swept, tally.oldest_pending_ms), (1, 600_000));
    world.work();
    assert_eq!(world.status("things#e-d09"), Status::Settled);
    let template = std::fs::read_to_string(support::root().join("template.yaml")).unwrap();
    assert!(template.contains("MetricName: OldestPendingAge"), "no alarm watches the age");
    assert!(world.twin.metric("OldestPendingAge") >= 600.0);
}

/// Every way a worker can leave, crossed with every failure on the way out: the row is always
/// where some process finds it, and the effect is made once.
#[test]
fn d10_every_way_out_leaves_a_row_that_somebody_selects() {
    let troubles = [Trouble::Throttled, Trouble::Conflict, Trouble::Unavailable];
    let first: Vec<Option<Fault>> = [None, Some(Fault::AnswerLost)]
        .into_iter()
        .chain(troubles.map(|t| Some(Fault::Before(t))))
        .collect();
    let second =
        [Fault::Before(Trouble::Unavailable), Fault::Before(Trouble::Throttled), Fault::AnswerLost];
    for on_apply in first {
        for step in ["lease", "entity", "wait", "fail", "postpone", "claim", "send"] {
            for fault in second {
                way_out(on_apply, step, fault);
            }
        }
    }
}

fn way_out(on_apply: Option<Fault>, step: &'static str, fault: Fault) {
    let what = format!("{on_apply:?} on apply, {fault:?} on {step}");
    let world = world();
    let (mut applies, mut others) = (0, 0);
    world.twin.set_faults(move |call, _| {
        if call == "apply" {
            applies += 1;
            on_apply.filter(|_| applies == 1)
        } else if call == step {
            others += 1;
            Some(fault).filter(|_| others == 1)
        } else {
            None
        }
    });
    // A provider that is answered 503 sends again.
    while count(&world, "e-d10", "c1", 5) != 200 {}
    world.work();
    let life = world.row("counts#e-d10").life;
    let is_selected = life.open.is_some() == life.status.is_pending();
    assert!(
        is_selected || life.status == Status::Dead,
        "{what}: {:?} in {:?}",
        life.status,
        life.open
    );
    world.twin.clear_faults();
    world.minutes(10);
    assert_eq!(world.status("counts#e-d10"), Status::Settled, "{what}");
    assert_eq!(world.field("counts#count#c1", "total"), json!(5), "{what}");
}

#[test]
fn d11_seen_is_not_done() {
    let world = world();
    assert_eq!(thing(&world, "e-d11", "t1", 1), 200);
    let (key, _, until) = die_at_work(&world);
    world.twin.advance(until.since(world.now()) + 1);
    assert_eq!(thing(&world, "e-d11", "t1", 1), 200, "the provider retries, too");
    world.work();
    world.work_through();
    assert_eq!(world.status(key.as_str()), Status::Settled);
    assert_eq!(world.entity("things#thing#t1").revision, 1);
}

/// How the reasons of a cancelled transaction are told apart is tested beside the adapter; here,
/// what follows: a conflict or a throttle is no verdict on the event, and takes no attempt.
#[test]
fn d13_a_conflict_or_a_throttle_is_never_read_as_stale() {
    for trouble in [Trouble::Conflict, Trouble::Throttled] {
        let world = world();
        assert_eq!(thing(&world, "e-d13", "t1", 1), 200);
        let mut calls = 0;
        world.twin.set_faults(move |step, _| {
            calls += u32::from(step == "apply");
            (step == "apply" && calls == 1).then_some(Fault::Before(trouble))
        });
        world.work();
        assert_eq!(world.status("things#e-d13"), Status::Waiting);
        world.work_through();
        let life = world.row("things#e-d13").life;
        assert_eq!((life.outcome, life.attempts), (Some(Outcome::Applied), 1));
    }
    let world = world();
    for (event, version) in [("new", 2), ("old", 1)] {
        assert_eq!(thing(&world, event, "t1", version), 200);
        world.work();
    }
    assert_eq!(world.row("things#old").life.outcome, Some(Outcome::Superseded));
    // What the store cannot hold fails in plain sight.
    world.twin.set_faults(|step, _| (step == "apply").then_some(Fault::Before(Trouble::Invalid)));
    assert_eq!(thing(&world, "too-big", "t1", 3), 200);
    world.work();
    assert_eq!(world.status("things#too-big"), Status::Dead);
}

#[test]
fn d14_redriving_finished_work_is_a_no_op_whatever_the_message_is_called() {
    let world = world();
    assert_eq!(count(&world, "e-d14", "c1", 5), 200);
    world.work();
    let settled = world.row("counts#e-d14");
    // A copy with another message id, as tools make them.
    world.twin.enqueue(&Message::new(settled.evidence.key.clone(), "count", None).to_json());
    world.work();
    assert_eq!(world.row("counts#e-d14"), settled);
    assert_eq!(world.field("counts#count#c1", "total"), json!(5));
    assert!(is_one(world.twin.metric("SettledAlready")));
}

#[test]
fn d15_a_message_of_finished_work_is_deleted_not_skipped() {
    let world = world();
    assert_eq!(github(&world, "e-d15", b"{}"), 200);
    let batch = world.twin.receive(10);
    for _ in 0..6 {
        // The same message in the same warm process, since its deletion failed.
        assert_eq!(now(world.consumer.consume(batch.clone(), world.now().plus(30_000))), [""; 0]);
    }
    world.twin.finish(&batch, &[]);
    assert_eq!((world.twin.queue_len(), world.twin.dead_letter_bodies().len()), (0, 0));
}
