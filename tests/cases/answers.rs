//! Kind h: what the provider is told.

use crate::{
    reports::input,
    shop::{at, github, shop, world},
};
use ledger::{Outcome, Status};
use serde_json::json;
use support::WorldBuilder;
use workflow::{ports::Trouble, twin::Fault};

#[test]
fn h01_an_unknown_event_type_is_accepted_and_settles_as_ignored() {
    let world = world();
    for body in input("h01")["bodies"].as_array().unwrap() {
        assert_eq!(world.deliver("stripe", &[], body.as_str().unwrap().as_bytes()).status, 200);
    }
    world.work();
    for key in ["stripe#evt_h01", "stripe#evt_h01b"] {
        assert_eq!(world.row(key).life.outcome, Some(Outcome::Ignored));
    }
    assert_eq!(world.row("stripe#evt_h01b").evidence.event_type, "brand.new.type.v9");
    assert!(world.twin.dead_letter_bodies().is_empty());
}

#[test]
fn h02_an_event_of_an_unknown_account_is_no_error() {
    let world = world();
    let event = json!({"id": "evt_h02", "type": "account.updated", "created": 1_700_000_000,
        "account": "acct_unknown", "data": {"object": {"id": "acct_unknown"}}});
    assert_eq!(world.deliver("stripe", &[], event.to_string().as_bytes()).status, 200);
    world.work();
    assert_eq!(world.row("stripe#evt_h02").life.outcome, Some(Outcome::Ignored));
}

#[test]
fn h06_nobody_is_told_that_the_endpoint_is_gone() {
    let world = shop().keys("stripe", &[]).build();
    let zeros = format!("t=1700000000,v1={}", "0".repeat(64));
    let mut answers = vec![
        world.request("POST", "/webhooks/deleted", &[], b"{}").status,
        world.request("POST", "/elsewhere", &[], b"{}").status,
        world.request("DELETE", "/webhooks/github", &[], b"{}").status,
        world.post("github", &[("x-hub-signature-256", "sha256=00")], b"{}").status,
        world.post("github", &[], &vec![b' '; 7_000_000]).status,
        world.post("stripe", &[("stripe-signature", zeros.as_str())], b"{}").status,
    ];
    world
        .twin
        .set_faults(|step, _| (step == "claim").then_some(Fault::Before(Trouble::Unavailable)));
    answers.push(github(&world, "h06", b"{}"));
    assert_eq!(answers, [404, 404, 405, 401, 413, 503, 503]);
}

/// GitHub is answered 503 like everybody when nothing could be stored, and its preset says that
/// no retry follows. The hourly comparison with the provider's delivery log, which heals it, is
/// not part of these functions yet.
#[test]
fn h09_that_github_sends_nothing_twice_is_known_and_a_failed_claim_is_counted() {
    let world = world();
    world
        .twin
        .set_faults(|step, _| (step == "claim").then_some(Fault::Before(Trouble::Unavailable)));
    assert_eq!(github(&world, "g-h09", b"{}"), 503);
    assert!((world.twin.metric("ClaimFailed") - 1.0).abs() < f64::EPSILON);
    let retries = |name: &str| world.receiver.config.source(name).unwrap().preset.retries();
    assert_eq!([retries("github"), retries("stripe")], [false, true]);
}

#[test]
fn h11_an_event_of_the_other_mode_is_accepted_kept_and_not_worked() {
    let sources = r#"
        [sources.live]
        preset = "stripe"
        secret = "stripe"
        live = true
        [sources.test]
        preset = "stripe"
        secret = "stripe"
        live = false
    "#;
    let world = WorldBuilder::new(sources)
        .keys("stripe", &["whsec_endpoint_A"])
        .at(at(1_700_000_000))
        .build();
    for (source, live) in [("live", false), ("test", true)] {
        let event =
            json!({"id": "evt_h11", "type": "x", "created": 1, "livemode": live, "data": {}});
        assert_eq!(world.deliver(source, &[], event.to_string().as_bytes()).status, 200);
        let row = world.row(&format!("{source}#evt_h11"));
        assert_eq!((row.life.status, row.life.outcome), (Status::Settled, Some(Outcome::Ignored)));
    }
    assert_eq!(world.twin.queue_len(), 0);
}
