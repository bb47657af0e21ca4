//! Kind e: between the claim and the settled row nothing is lost, whatever fails in between.

use crate::{
    consumer::{die_at_work, wake_and_apply},
    shop::{count, thing, world},
};
use ledger::{
    EventKey, Failure, FailureClass, Lease, Life, Message, Millis, Status, Token,
    verbs::{ApplyRefusal, Fail, FenceRefusal},
};
use serde_json::json;
use support::{World, claimed_row, now};
use workflow::{
    ports::{Ledger, Trouble},
    twin::Fault,
};

/// The first call of `step` fails with `fault`.
fn once(world: &World, step: &'static str, fault: Fault) {
    let mut calls = 0;
    world.twin.set_faults(move |call, _| {
        calls += u32::from(call == step);
        (call == step && calls == 1).then_some(fault)
    });
}

/// The report asks for a 5xx when the send fails. The claim is durable by then and the sweeper
/// sends what is overdue, so a 2xx loses nothing and spares the provider a retry.
#[test]
fn e01_a_claim_whose_send_failed_is_sent_by_the_sweeper() {
    for trouble in [Trouble::Unavailable, Trouble::Throttled, Trouble::Invalid] {
        let world = world();
        once(&world, "send", Fault::Before(trouble));
        assert_eq!(thing(&world, "evt_e01", "t1", 1), 200);
        assert_eq!((world.status("things#evt_e01"), world.twin.queue_len()), (Status::Claimed, 0));
        world.minutes(2);
        assert_eq!(world.status("things#evt_e01"), Status::Settled, "within two minutes");
        assert_eq!(world.row("things#evt_e01").life.sweeps, 1);
    }
}

#[test]
fn e02_a_crash_between_claim_and_send_is_healed_by_the_retry_or_without_it() {
    for retries in [true, false] {
        let world = world();
        // The process dies after the claim: its row is there, its message is not.
        assert_eq!(thing(&world, "evt_e02", "t1", 1), 200);
        world.twin.lose_queue();
        if retries {
            world.twin.advance(60_000);
            assert_eq!(thing(&world, "evt_e02", "t1", 1), 200);
            assert!(
                (world.twin.metric("Resent") - 1.0).abs() < f64::EPSILON,
                "the skip is not silent"
            );
            world.work();
        } else {
            world.minutes(2);
        }
        assert_eq!(world.status("things#evt_e02"), Status::Settled);
    }
}

#[test]
fn e03_without_a_durable_write_there_is_no_2xx() {
    let world = world();
    world.twin.set_faults(|step, _| {
        matches!(step, "claim" | "send").then_some(Fault::Before(Trouble::Unavailable))
    });
    assert_eq!(thing(&world, "evt_e03", "t1", 1), 503);
    assert!(world.keys().is_empty());
    world.twin.clear_faults();
    assert_eq!(thing(&world, "evt_e03", "t1", 1), 200);
}

#[test]
fn e04_an_event_whose_state_was_not_written_is_not_done() {
    for trouble in [Trouble::Throttled, Trouble::Unavailable] {
        let world = world();
        assert_eq!(thing(&world, "evt_e04", "t1", 1), 200);
        once(&world, "apply", Fault::Before(trouble));
        world.work();
        assert!(world.status("things#evt_e04").is_pending());
        assert_eq!(world.twin.state("things#thing#t1"), None);
        world.work_through();
        assert_eq!(world.status("things#evt_e04"), Status::Settled);
        assert_eq!(world.entity("things#thing#t1").revision, 1);
    }
}

/// Ten seconds after the crash the report allows a 2xx if the event is still guaranteed: it is.
#[test]
fn e05_a_dead_workers_claim_ends_by_itself_and_its_late_write_is_refused() {
    let world = world();
    assert_eq!(count(&world, "evt_e05", "c1", 1), 200);
    let (key, epoch, _) = die_at_work(&world);
    world.twin.advance(10_000);
    assert_eq!(count(&world, "evt_e05", "c1", 1), 200);
    assert_eq!(world.row(key.as_str()).life.epoch, epoch, "nobody took it over yet");
    world.twin.advance(291_000);
    assert_eq!(count(&world, "evt_e05", "c1", 1), 200);
    world.work();
    let life = world.row(key.as_str()).life;
    assert_eq!(life.status, Status::Settled);
    assert!(life.epoch > epoch, "the fence did not move");
    world.twin.advance(1_000);
    assert_eq!(wake_and_apply(&world, &key, epoch), ApplyRefusal::Fence(FenceRefusal::Lost));
    assert_eq!(world.field("counts#count#c1", "total"), json!(1));
}

#[test]
fn e07_what_is_in_flight_is_in_flight_for_as_long_as_a_run_can_last() {
    for lease_ends_in in [60_000, 1, 0] {
        assert!(!is_taken_over(lease_ends_in), "{lease_ends_in} ms before its lease ended");
    }
    let world = world();
    plant_leased(&world, "evt_e07", world.now().minus(1));
    world.twin.enqueue(&message("evt_e07"));
    // Another event of the same source is nobody's business.
    assert_eq!(thing(&world, "evt_e07b", "t2", 1), 200);
    world.work();
    for key in ["things#evt_e07", "things#evt_e07b"] {
        assert_eq!(world.status(key), Status::Settled);
    }
}

/// Whether a message takes over a row whose lease ends in `ms`.
fn is_taken_over(ms: u64) -> bool {
    let world = world();
    plant_leased(&world, "evt_e07", world.now().plus(ms));
    world.twin.enqueue(&message("evt_e07"));
    world.work();
    world.status("things#evt_e07") == Status::Settled
}

fn message(event: &str) -> String {
    Message::new(EventKey::parse(&format!("things#{event}")).unwrap(), "thing", None).to_json()
}

fn plant_leased(world: &World, event: &str, until: Millis) {
    let body = json!({"id": "t1", "version": 1, "value": 1}).to_string();
    let (row, _) =
        claimed_row("things", event, "thing", body.as_bytes(), world.now().minus(240_000));
    let lease = Some(Lease { owner: Token(0xDEAD), until });
    let life =
        Life { status: Status::Processing, epoch: 1, attempts: 1, lease, ..row.life.clone() };
    world.twin.plant(ledger::Row { life, ..row });
}

/// The duplicate may be answered 2xx, because the event is durable before anybody works on it.
#[test]
fn e08_a_duplicate_of_work_in_progress_is_safe_to_acknowledge() {
    let world = world();
    assert_eq!(thing(&world, "evt_e08", "t1", 1), 200);
    let (key, epoch, _) = die_at_work(&world);
    assert_eq!(thing(&world, "evt_e08", "t1", 1), 200);
    let failure =
        Failure { error: "slow".to_owned(), class: FailureClass::Transient, at: world.now() };
    let ask = Fail { epoch, failure, retry_at: world.now().plus(1_000), shard: key.shard() };
    now(world.twin.fail(&key, &ask)).unwrap().unwrap();
    world.twin.lose_queue();
    world.minutes(4);
    assert_eq!(world.status(key.as_str()), Status::Settled);
}

#[test]
fn e09_a_claim_whose_answer_was_lost_is_recognised_as_ones_own() {
    let world = world();
    once(&world, "claim", Fault::AnswerLost);
    assert_eq!(thing(&world, "evt_e09", "t1", 1), 200);
    assert_eq!(world.twin.queue_len(), 1, "the event was taken for a duplicate");
    assert!((world.twin.metric("New") - 1.0).abs() < f64::EPSILON);
    world.work();
    assert_eq!(world.entity("things#thing#t1").revision, 1);
}

#[test]
fn e11_the_answer_comes_after_the_send() {
    let world = world();
    assert_eq!(thing(&world, "evt_e11", "t1", 1), 200);
    assert_eq!(world.twin.queue_len(), 1);
    // Nothing may outlive the handler: the process is frozen when it has answered.
    for file in [
        "workflow/src/receive.rs",
        "workflow/src/receive/accept.rs",
        "workflow/src/consume.rs",
        "receiver/src/main.rs",
        "consumer/src/main.rs",
    ] {
        let text = std::fs::read_to_string(support::root().join("functions").join(file)).unwrap();
        assert!(!text.contains("spawn("), "functions/{file} starts a task of its own");
    }
}
