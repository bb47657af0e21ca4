//! Waiting: for a rate limit, for another worker's lease, for a store that throttles, for a call
//! that does not end.

use crate::{
    rig::{payment, subscription},
    system::{HOUR, MINUTE, SECOND, System, percentile, shown, times_to_settle},
};
use ledger::{Outcome, Status};
use workflow::{ports::Trouble, twin::Fault};

#[test]
fn retry_after_is_kept_with_five_copies_of_the_message() {
    let system = System::new();
    let began = system.rig.now();
    system.downstream.limits_until(began.plus(100 * SECOND), 37 * SECOND);
    let mut engine = system.engine(5);
    engine.spawn(system.traffic(1, SECOND, |_| payment("evt_1", "acct_1", 5)));
    engine.run_for(20);
    for _ in 0..5 {
        system.twin().enqueue(r#"{"v":1,"key":"shop#evt_1","type":"payment.received"}"#);
    }
    let mut runs = Vec::new();
    while !system.all_settled("evt_", 1) && runs.len() < 10 {
        let before = system.downstream.runs();
        engine.run_until(10 * MINUTE, 50, || system.downstream.runs() > before);
        runs.push(system.rig.now());
        engine.run_for(200);
    }
    let gaps: Vec<u64> = runs.windows(2).map(|pair| pair[1].since(pair[0])).collect();
    println!("Retry-After 37 s, six copies of one message: {} runs, {gaps:?} ms apart", runs.len());
    assert_eq!(runs.len(), 4, "six copies run the event once each time");
    // Jitter never undercuts what was asked for; a message may come a second early, no more.
    assert!(gaps.iter().all(|gap| (36 * SECOND..=42 * SECOND).contains(gap)), "{gaps:?}");
    assert_eq!(system.rows("evt_1")[0].life.attempts, 4);
    engine.run_for(5 * MINUTE);
    assert_eq!((system.twin().queue_len(), system.twin().dead_letter_bodies().len()), (0, 0));
}

#[test]
fn a_copy_that_meets_a_lease_is_visible_again_when_that_lease_ends_and_not_before() {
    let system = System::new();
    system.twin().set_latency(|step| if step == "apply" { 20 * SECOND } else { 10 });
    let mut engine = system.engine(2);
    engine
        .spawn(system.traffic(1, SECOND, |_| subscription("evt_1", "created", 1, "sub_1", "gold")));
    engine.run_until(MINUTE, 10, || {
        system.rig.twin.find("shop#evt_1").is_some_and(|row| row.life.lease.is_some())
    });
    let lease = system.rig.row("evt_1").life.lease.unwrap();
    system.twin().enqueue(r#"{"v":1,"key":"shop#evt_1"}"#);
    engine.run_for(15 * SECOND);
    let hidden_until = system.twin().next_visible().unwrap();
    assert_eq!(system.twin().queue_len(), 2);
    // Whole seconds, and the lease ends after its last millisecond.
    let early = hidden_until.since(lease.until);
    assert!((1..=SECOND + 100).contains(&early), "{early} ms after the lease's end");
    engine.run_for(2 * MINUTE);
    println!(
        "bounce: a copy that met a lease came back {early} ms after its end; {} leases asked for",
        system.twin().counts()["lease"]
    );
    assert_eq!(system.twin().counts()["lease"], 3, "won, refused, settled");
    let row = system.rig.row("evt_1");
    assert_eq!((row.life.outcome, row.life.attempts), (Some(Outcome::Applied), 1));
    assert_eq!(system.twin().queue_len(), 0);
}

#[test]
fn a_throttling_storm_gives_every_attempt_back_and_nothing_is_lost() {
    let system = System::new();
    let (events, storm) = (1_200, 20 * MINUTE);
    let mut engine = system.engine(10);
    system
        .twin()
        .set_faults(|step, _| (step == "apply").then_some(Fault::Before(Trouble::Throttled)));
    engine.spawn(system.traffic(events, SECOND, |n| {
        subscription(&format!("evt_{n}"), "created", n, &format!("sub_{n}"), "gold")
    }));
    engine.run_for(storm);
    let waiting = system.rows("evt_");
    assert!(waiting.iter().all(|row| row.life.attempts <= 1), "no attempt is spent");
    assert!(waiting.iter().all(|row| row.life.status != Status::Dead));
    system.twin().clear_faults();
    let healed = engine.run_until(HOUR, 10 * SECOND, || system.all_settled("evt_", events));
    engine.run_for(20 * MINUTE);
    println!(
        "throttling for 20 min at 1/s: {} rows waited, all settled {} after its end, most attempts {}; \
         {} dead letters left of it",
        waiting.len(),
        shown(healed),
        system.rows("evt_").iter().map(|row| row.life.attempts).max().unwrap_or(0),
        system.twin().dead_letter_bodies().len()
    );
    assert!(system.all_settled("evt_", events));
    assert!(healed <= 10 * MINUTE, "{}", shown(healed));
    assert!(system.rows("evt_").iter().all(|row| row.life.attempts == 1));
    assert_eq!(system.twin().dead_letter_bodies().len(), 0, "cleared once their rows are settled");
}

#[test]
fn a_call_that_does_not_end_is_cut_off_before_the_function_is_and_costs_its_neighbours_nothing() {
    let system = System::new();
    // The third apply hangs for a minute, longer than the function may run.
    let mut applies = 0_u64;
    system.twin().set_latency(move |step| {
        applies += u64::from(step == "apply");
        if step == "apply" && applies == 3 { MINUTE } else { 5 }
    });
    let mut engine = system.engine(1);
    engine.spawn(system.traffic(10, 1, |n| {
        subscription(&format!("evt_{n}"), "created", n, &format!("sub_{n}"), "gold")
    }));
    engine.run_for(2 * MINUTE);
    assert!(system.all_settled("evt_", 10));
    let (cut, rest): (Vec<_>, Vec<_>) =
        system.rows("evt_").into_iter().partition(|row| row.life.attempts > 1);
    assert_eq!(cut.len(), 1);
    assert!(cut[0].life.failure.as_ref().unwrap().error.contains("cut off"));
    let took = times_to_settle(&cut)[0];
    println!(
        "a call that hangs: cut off and settled by another run {} s after it came; its neighbours within {} ms",
        took / SECOND,
        percentile(&times_to_settle(&rest), 100)
    );
    assert!((25 * SECOND..=30 * SECOND).contains(&took), "{took} ms");
    assert!(percentile(&times_to_settle(&rest), 100) <= SECOND);
}

#[test]
fn a_claim_that_does_not_end_is_answered_503_a_second_before_the_deadline() {
    let system = System::new();
    system.twin().set_latency(|step| if step == "claim" { 20 * SECOND } else { 5 });
    let answered = std::cell::Cell::new(None);
    let (rig, answered_at, began) = (&system.rig, &answered, system.rig.now());
    let mut engine = system.engine(0);
    engine.spawn(async move {
        let answer = rig.deliver(&payment("evt_1", "acct_1", 5)).await;
        answered_at.set(Some((answer.status, rig.now().since(began))));
    });
    engine.run_for(30 * SECOND);
    assert_eq!(answered.get(), Some((503, 7 * SECOND)));
}
