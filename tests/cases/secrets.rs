//! Kind i: secrets that change, several at once, of two modes, or missing.

use crate::{
    reports::{input, text},
    shop::{at, world},
};
use ledger::{Outcome, Status};
use serde_json::{Value, json};
use support::{Signer, World, WorldBuilder};

const MINUTE_MS: u64 = 60_000;

/// Stores another Stripe key alone, and gives what signs with it.
fn rotate(world: &World, kid: &str, key: &str) -> Signer {
    let document = json!({"stripe": [{"kid": kid, "key": key}]}).to_string();
    world.twin.set_secret(&document);
    Signer::new(world.receiver.config.clone(), &document).unwrap()
}

fn body(id: &str) -> Vec<u8> {
    json!({"id": id, "object": "event", "type": "x", "created": 1_700_000_000, "livemode": true})
        .to_string()
        .into_bytes()
}

/// Posts an event signed by this signer at the world's time.
fn post(world: &World, signer: &Signer, source: &str, body: &[u8]) -> u16 {
    let call = signer.call_at(source, &[], body.to_vec(), world.now().0);
    let headers: Vec<(String, String)> = call
        .headers
        .into_iter()
        .map(|(name, value)| (name, String::from_utf8(value).unwrap()))
        .collect();
    let headers: Vec<(&str, &str)> =
        headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    world.post(source, &headers, &call.body).status
}

fn reads(world: &World) -> u64 {
    world.twin.counts().get("secret").copied().unwrap_or(0)
}

#[test]
fn i01_a_secret_rotated_without_a_deploy_works_within_five_minutes_and_the_log_says_which() {
    let world = world();
    let new = rotate(&world, "2026-12", "whsec_endpoint_C");
    // The five minutes for which keys are kept, and nobody had to be refused first.
    world.twin.advance(5 * MINUTE_MS);
    assert_eq!(post(&world, &new, "stripe", &body("evt_i01")), 200);
    assert_eq!(world.row("stripe#evt_i01").evidence.kid, "2026-12");
    let lines = format!("{:?}", world.twin.lines());
    assert!(lines.contains("2026-12") && !lines.contains("whsec_"), "the name, never the key");
    assert_eq!(
        post(&world, &world.signer, "stripe", &body("evt_i01b")),
        401,
        "the old key is gone"
    );
}

#[test]
fn i03_a_warm_function_reads_the_keys_again_when_none_fits_and_forgers_set_no_pace() {
    let world = world();
    assert_eq!(post(&world, &world.signer, "stripe", &body("evt_i03")), 200);
    let new = rotate(&world, "v2", "whsec_endpoint_C");
    world.twin.advance(MINUTE_MS);
    let before = reads(&world);
    assert_eq!(post(&world, &new, "stripe", &body("evt_i03b")), 200, "the same request, again");
    assert_eq!(reads(&world) - before, 1);
    assert_eq!(world.row("stripe#evt_i03b").evidence.kid, "v2");

    let forged = [(
        "stripe-signature",
        "t=1700000060,v1=75dc2866169285f6de59fbdc45e58bba6d815a9c874dca83ca68a6b73718e9f2",
    )];
    for _ in 0..200 {
        assert_eq!(world.post("stripe", &forged, b"{}").status, 401);
    }
    assert_eq!(reads(&world) - before, 1, "not within the same minute");
    world.twin.advance(MINUTE_MS);
    for _ in 0..200 {
        world.post("stripe", &forged, b"{}");
    }
    assert_eq!(reads(&world) - before, 2, "once a minute, however many come");
}

#[test]
fn i05_two_endpoints_at_one_address_each_with_its_own_secret() {
    let report = input("i05");
    let world = world();
    let requests = report["requests"].as_array().unwrap();
    let answers: Vec<u16> = requests
        .iter()
        .map(|header| {
            let headers = [("stripe-signature", header.as_str().unwrap())];
            world.post("stripe", &headers, br#"{"id":"evt_rot","type":"x"}"#).status
        })
        .collect();
    assert_eq!(answers, [200, 200, 401]);
    assert_eq!(world.keys(), ["stripe#evt_rot"]);
    assert_eq!(world.row("stripe#evt_rot").evidence.kid, "k0");
}

/// The report asks that a live event under the test secret be refused. It is authentic for the
/// test source, so it is kept there, counted, and works on nothing; the live source refuses it.
#[test]
fn i07_the_test_secret_changes_no_live_state() {
    let sources = r#"
        [sources.live]
        preset = "stripe"
        secret = "live"
        live = true
        [[sources.live.projections]]
        on = ["invoice.paid"]
        entity = { type = "invoice", id = "/data/object/id" }
        order = { strategy = "version", by = "/created", unit = "s" }
        set = { paid = true }
        [sources.test]
        preset = "stripe"
        secret = "test"
        live = false
        [[sources.test.projections]]
        on = ["invoice.paid"]
        entity = { type = "invoice", id = "/data/object/id" }
        order = { strategy = "version", by = "/created", unit = "s" }
        set = { paid = true }
    "#;
    let report = input("i07");
    let world = WorldBuilder::new(sources)
        .keys("live", &[text(report, "/secrets/live")])
        .keys("test", &[text(report, "/secrets/test")])
        .at(at(1_700_000_000))
        .build();
    let event = |id: &str, live: bool| {
        json!({"id": id, "type": "invoice.paid", "created": 1_700_000_000, "livemode": live,
            "data": {"object": {"id": "in_i07"}}})
        .to_string()
    };
    assert_eq!(world.deliver("test", &[], event("evt_t", false).as_bytes()).status, 200);
    world.work();
    assert_eq!(world.row("test#evt_t").life.outcome, Some(Outcome::Applied));
    assert!(world.twin.state("test#invoice#in_i07").is_some());
    assert!(world.twin.state("live#invoice#in_i07").is_none(), "kept apart");

    let mismatch = event("evt_m", true);
    assert_eq!(world.deliver("test", &[], mismatch.as_bytes()).status, 200);
    let row = world.row("test#evt_m");
    assert_eq!((row.life.status, row.life.outcome), (Status::Settled, Some(Outcome::Ignored)));
    assert!((world.twin.metric("WrongMode") - 1.0).abs() < f64::EPSILON);
    // The same bytes and signature at the live address.
    let call = world.signer.call_at("test", &[], mismatch.into_bytes(), world.now().0);
    let headers: Vec<(&str, &str)> = call
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), std::str::from_utf8(value).unwrap()))
        .collect();
    assert_eq!(world.post("live", &headers, &call.body).status, 401);
    world.work();
    assert!(world.twin.state("live#invoice#in_i07").is_none());
}

#[test]
fn i08_nothing_unsigned_passes_by_any_way() {
    let world = WorldBuilder::new("[sources.stripe]\npreset = \"stripe\"\nsecret = \"stripe\"")
        .keys("stripe", &[text(input("i08"), "/secrets/stripe")])
        .build();
    for request in input("i08")["requests"].as_array().unwrap() {
        let headers: Vec<(&str, &str)> = request
            .get("headers")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .map(|(name, value)| (name.as_str(), value.as_str().unwrap()))
            .collect();
        let query = request.get("path").and_then(Value::as_str).unwrap_or_default();
        let path = format!("/webhooks/stripe?{}", query.split_once('?').unwrap_or_default().1);
        let answer =
            world.request("POST", &path, &headers, request["body"].as_str().unwrap().as_bytes());
        assert_eq!(answer.status, 401, "{request}");
    }
    assert!(world.keys().is_empty());
}
