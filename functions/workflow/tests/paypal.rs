//! PayPal on the twin: the certificate that a request points to, and the one event that a signed
//! transmission may bring. The deliveries are real ones of PayPal's sandbox, with its certificate.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod rig;

use ledger::{Millis, Status};
use rig::Rig;
use serde_json::{Value, json};
use workflow::{ports::Trouble, receive::Delivery, twin::Fault};

const SOURCES: &str = r#"
[sources.paypal]
preset = "paypal"
secret = "paypal"

[[sources.paypal.projections]]
on = ["BILLING.PLAN.CREATED"]
entity = { type = "plan", id = "/resource/id" }
order = { strategy = "version", by = "/resource/update_time", unit = "iso" }
set = { name = "/resource/name" }
"#;

const URL: &str = "https://api.sandbox.paypal.com/v1/notifications/test";

/// A captured delivery with the certificate it names.
fn captured() -> Value {
    let file = include_str!("../../../tests/vectors/signatures.json");
    let vectors: Value = serde_json::from_str(file).unwrap();
    let list = vectors.as_array().or_else(|| vectors["vectors"].as_array()).unwrap();
    let vector = |id: &str| list.iter().find(|vector| vector["id"] == id).unwrap().clone();
    // The first has the captured headers under a crafted body, the second the captured body.
    let mut captured = vector("paypal-014");
    captured["body"] = vector("paypal-007")["body"].clone();
    captured
}

struct Sandbox {
    rig: Rig,
    vector: Value,
}

impl Sandbox {
    fn new() -> Self {
        let vector = captured();
        let now = Millis(vector["now"].as_u64().unwrap() * 1_000);
        let secret = json!({"paypal": [{"kid": "k1", "key": vector["secret"]}]});
        let rig = Rig::of(SOURCES, &secret, now, false);
        rig.twin.set_certificate(URL, vector["public_key_pem"].as_str().unwrap().as_bytes());
        Self { rig, vector }
    }

    fn body(&self) -> &str {
        self.vector["body"].as_str().unwrap()
    }

    /// The captured headers over any body.
    fn delivery(&self, body: &str) -> Delivery {
        let headers = self.vector["headers"].as_object().unwrap();
        let headers: Vec<(&str, &str)> =
            headers.iter().map(|(name, value)| (name.as_str(), value.as_str().unwrap())).collect();
        self.rig.request("POST", "paypal", "", &headers, body.as_bytes())
    }

    async fn post(&self, body: &str) -> u16 {
        self.rig.receiver.receive(self.delivery(body)).await.status
    }

    async fn post_to(&self, url: &str) -> u16 {
        let mut delivery = self.delivery(self.body());
        delivery.headers = delivery
            .headers
            .iter()
            .map(|(name, value)| (name, if name == "paypal-cert-url" { url } else { value }))
            .collect();
        self.rig.receiver.receive(delivery).await.status
    }

    fn fetches(&self) -> u64 {
        self.rig.twin.counts().get("certificate").copied().unwrap_or(0)
    }
}

/// `body` with a member whose letters make the CRC-32 the wanted one: the sum is linear, so 64
/// letters of two kinds are 64 unknowns for its 32 equations.
fn with_sum(body: &Value, wanted: u32) -> String {
    let text = |letters: u64| {
        let letters: String =
            (0..64).map(|n| if letters >> n & 1 == 1 { 'a' } else { 'b' }).collect();
        let mut body = body.clone();
        body["pad"] = letters.into();
        body.to_string()
    };
    let sum = |letters| crc32fast::hash(text(letters).as_bytes());
    let base = sum(0);
    // Each row: what a choice of letters changes in the sum, reduced to its highest bit.
    let mut reduced: Vec<(u32, u64)> = Vec::new();
    let reduce = |rows: &[(u32, u64)], mut effect: u32, mut letters: u64| {
        for (row, of) in rows {
            if effect ^ row < effect {
                effect ^= row;
                letters ^= of;
            }
        }
        (effect, letters)
    };
    for n in 0..64 {
        let row = reduce(&reduced, sum(1 << n) ^ base, 1 << n);
        if row.0 != 0 {
            reduced.push(row);
            reduced.sort_unstable_by(|a, b| b.cmp(a));
        }
    }
    let (left, letters) = reduce(&reduced, wanted ^ base, 0);
    assert_eq!(left, 0, "64 letters reach every sum");
    text(letters)
}

#[tokio::test]
async fn the_certificate_is_fetched_once_an_hour_and_the_event_is_worked() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.post(sandbox.body()).await, 200);
    let key = "paypal#WH-2MW4820926242972J-6SG447389E205703U";
    let row = sandbox.rig.twin.find(key).unwrap();
    assert_eq!((row.life.status, row.evidence.kid.as_str()), (Status::Claimed, "k1"));
    for _ in 0..3 {
        assert_eq!(sandbox.post(sandbox.body()).await, 200, "a resend is a duplicate");
    }
    assert_eq!((sandbox.fetches(), sandbox.rig.twin.rows().len()), (1, 1));
    sandbox.rig.twin.advance(3_600_000);
    assert_eq!(sandbox.post(sandbox.body()).await, 200);
    assert_eq!(sandbox.fetches(), 2, "an hour later it is asked for again");
}

#[tokio::test]
async fn a_certificate_that_cannot_be_had_is_503_and_asked_for_again_in_seconds() {
    let sandbox = Sandbox::new();
    let unreachable = |step: &'static str, _| {
        (step == "certificate").then_some(Fault::Before(Trouble::Unavailable))
    };
    sandbox.rig.twin.set_faults(unreachable);
    assert_eq!(sandbox.post(sandbox.body()).await, 503);
    assert_eq!(sandbox.post(sandbox.body()).await, 503);
    assert_eq!(sandbox.fetches(), 1, "not asked again at once");
    sandbox.rig.twin.clear_faults();
    sandbox.rig.twin.advance(5_000);
    assert_eq!(sandbox.post(sandbox.body()).await, 200);
}

#[tokio::test]
async fn a_foreign_certificate_and_an_address_without_one_are_refused() {
    let sandbox = Sandbox::new();
    let pem = sandbox.vector["public_key_pem"].as_str().unwrap().as_bytes().to_vec();
    // PayPal's sandbox does not speak for PayPal.
    sandbox.rig.twin.set_certificate("https://api.paypal.com/c", &pem);
    sandbox.rig.twin.set_certificate("https://api.sandbox.paypal.com/junk", b"<html>");
    for url in [
        "https://api.paypal.com/c",
        "https://api.sandbox.paypal.com/junk",
        "https://api.sandbox.paypal.com/nothing",
    ] {
        assert_eq!(sandbox.post_to(url).await, 401, "{url}");
    }
    assert_eq!(sandbox.fetches(), 3);
    assert_eq!(sandbox.post_to("https://paypal.example/c").await, 401);
    assert_eq!(sandbox.fetches(), 3, "a foreign address is not even asked");
    assert!(sandbox.rig.twin.rows().is_empty());
}

#[tokio::test]
async fn forged_addresses_set_no_pace_and_push_nothing_out() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.post(sandbox.body()).await, 200);
    for minute in 1..=3 {
        for n in 0..200 {
            sandbox.post_to(&format!("https://api.sandbox.paypal.com/{minute}/{n}")).await;
        }
        let fetches = minute * 15;
        assert_eq!(sandbox.fetches(), fetches, "twenty a minute, of which five are not theirs");
        assert_eq!(sandbox.post(sandbox.body()).await, 200, "the known certificate still verifies");
        assert_eq!(sandbox.fetches(), fetches);
        sandbox.rig.twin.advance(60_000);
    }
}

/// Certificates without end: each of these addresses holds a good one, and none has proven anything.
async fn flood(sandbox: &Sandbox, round: usize) {
    for n in 0..40 {
        let url = format!("https://api.sandbox.paypal.com/{round}/{n}");
        let pem = sandbox.vector["public_key_pem"].as_str().unwrap();
        sandbox.rig.twin.set_certificate(&url, pem.as_bytes());
        let mut forged = sandbox.delivery("{}");
        forged.headers = forged
            .headers
            .iter()
            .map(|(name, value)| (name, if name == "paypal-cert-url" { &url } else { value }))
            .collect();
        assert_ne!(sandbox.rig.receiver.receive(forged).await.status, 200);
    }
}

#[tokio::test]
async fn a_proven_certificate_is_asked_for_again_whatever_strangers_ask_for() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.post(sandbox.body()).await, 200);
    for round in 0..3 {
        sandbox.rig.twin.advance(3_600_000);
        flood(&sandbox, 2 * round).await;
        sandbox.rig.twin.advance(60_000);
        flood(&sandbox, 2 * round + 1).await;
        let before = sandbox.fetches();
        assert_eq!(sandbox.post(sandbox.body()).await, 200, "an hour old, and not pushed out");
        assert_eq!(sandbox.fetches(), before + 1, "one of the fetches that are its own");
    }
}

#[tokio::test]
async fn a_proven_certificate_that_cannot_be_had_anew_verifies_for_a_day() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.post(sandbox.body()).await, 200);
    sandbox.rig.twin.set_faults(|step, _| {
        (step == "certificate").then_some(Fault::Before(Trouble::Unavailable))
    });
    for _ in 0..23 {
        sandbox.rig.twin.advance(3_600_000);
        let before = sandbox.fetches();
        for _ in 0..30 {
            assert_eq!(sandbox.post(sandbox.body()).await, 200);
        }
        assert_eq!(sandbox.fetches(), before + 1, "and is not asked for with each delivery");
    }
    sandbox.rig.twin.advance(3_600_000);
    assert_eq!(sandbox.post(sandbox.body()).await, 503, "a day is over");
}

#[tokio::test]
async fn a_certificate_that_was_taken_away_verifies_no_longer() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.post(sandbox.body()).await, 200);
    sandbox.rig.twin.set_certificate(URL, b"<html>");
    sandbox.rig.twin.advance(3_600_000);
    assert_eq!(sandbox.post(sandbox.body()).await, 401);
}

#[tokio::test]
async fn a_body_crafted_to_the_same_sum_under_a_new_event_id_changes_nothing() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.post(sandbox.body()).await, 200);
    sandbox.rig.drain(600_000).await;
    let state = sandbox.rig.twin.state("paypal#plan#P-2U911356NH683973BEDIWKUY");

    let mut forged: Value = serde_json::from_str(sandbox.body()).unwrap();
    forged["id"] = "WH-FORGED".into();
    forged["resource"]["update_time"] = "2018-01-01T00:00:00Z".into();
    forged["resource"]["name"] = "free of charge".into();
    let forged = with_sum(&forged, crc32fast::hash(sandbox.body().as_bytes()));
    for _ in 0..2 {
        assert_eq!(sandbox.post(&forged).await, 200, "the scheme cannot tell it from PayPal's");
    }
    assert!(sandbox.rig.twin.find("paypal#WH-FORGED").is_none());
    let rows = sandbox.rig.twin.rows();
    assert_eq!(rows.len(), 2, "kept once, for a person");
    let kept = rows.iter().find(|row| row.evidence.key.as_str().starts_with("_c#")).unwrap();
    assert_eq!(kept.life.status, Status::Dead);
    let failure = kept.life.failure.as_ref().unwrap();
    assert_eq!(failure.error, "the same signed transmission brought another event before");
    assert!((sandbox.rig.twin.metric("Conflict") - 2.0).abs() < 0.1);
    sandbox.rig.drain(600_000).await;
    assert_eq!(sandbox.rig.twin.state("paypal#plan#P-2U911356NH683973BEDIWKUY"), state);
}

#[tokio::test]
async fn a_transmission_signed_longer_ago_than_it_is_remembered_changes_nothing() {
    let sandbox = Sandbox::new();
    let day_ms = 86_400_000;
    sandbox.rig.twin.advance(268 * day_ms);
    assert_eq!(sandbox.post(sandbox.body()).await, 200);
    assert_eq!(sandbox.rig.twin.rows()[0].life.status, Status::Claimed);

    let late = Sandbox::new();
    late.rig.twin.advance(270 * day_ms);
    assert_eq!(late.post(late.body()).await, 200);
    let rows = late.rig.twin.rows();
    assert_eq!((rows.len(), rows[0].life.status), (1, Status::Dead));
    assert!(rows[0].life.failure.as_ref().unwrap().error.contains("signed so long ago"));
}

#[tokio::test]
async fn a_mark_that_cannot_be_made_is_503_and_a_lost_answer_is_ones_own() {
    let sandbox = Sandbox::new();
    sandbox
        .rig
        .twin
        .set_faults(|step, _| (step == "bind").then_some(Fault::Before(Trouble::Unavailable)));
    assert_eq!(sandbox.post(sandbox.body()).await, 503);
    sandbox.rig.twin.set_faults(|step, _| (step == "bind").then_some(Fault::AnswerLost));
    assert_eq!(sandbox.post(sandbox.body()).await, 503);
    sandbox.rig.twin.clear_faults();
    assert_eq!(sandbox.post(sandbox.body()).await, 200);
    let rows = sandbox.rig.twin.rows();
    assert_eq!((rows.len(), rows[0].life.status), (1, Status::Claimed));
}

#[tokio::test]
async fn a_crafted_body_does_not_take_the_place_of_the_event_whose_claim_failed() {
    let sandbox = Sandbox::new();
    sandbox
        .rig
        .twin
        .set_faults(|step, _| (step == "claim").then_some(Fault::Before(Trouble::Unavailable)));
    assert_eq!(
        sandbox.post(sandbox.body()).await,
        503,
        "the proof is bound, the event is not kept"
    );
    sandbox.rig.twin.clear_faults();
    let mut forged: Value = serde_json::from_str(sandbox.body()).unwrap();
    forged["resource"]["name"] = "free of charge".into();
    let forged = with_sum(&forged, crc32fast::hash(sandbox.body().as_bytes()));
    assert_eq!(sandbox.post(&forged).await, 200);
    assert_eq!(sandbox.post(sandbox.body()).await, 200);
    let rows = sandbox.rig.twin.rows();
    let statuses: Vec<Status> = rows.iter().map(|row| row.life.status).collect();
    assert_eq!(statuses, [Status::Dead, Status::Claimed], "the forged body waits for a person");
    assert_eq!(rows[1].evidence.body.len, sandbox.body().len() as u64);
}
