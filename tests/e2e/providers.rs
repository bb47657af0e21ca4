//! What providers do beside sending one event: batches, handshakes, probes, keys that change.

use crate::suite::Suite;
use hex::encode;
use ledger::{Outcome, Status};
use serde_json::json;
use support::{Call, now_ms, sha256_hex};

const JSON: (&str, &str) = ("content-type", "application/json");

pub(crate) async fn a_batch_becomes_a_row_each_and_one_bad_element_loses_no_neighbour(
    suite: &Suite,
) {
    let event = |id: &str| {
        json!({"id": id, "created_at": "2026-11-30T12:00:00Z", "resource_type": "payments",
               "action": "confirmed", "links": {"payment": suite.id("PM")}, "details": {"cause": "x"}})
    };
    let ids = [suite.id("EV"), suite.id("EV"), suite.id("EV")];
    let mut bad = event("");
    bad["note"] = suite.id("bad").into();
    let events = [event(&ids[0]), bad.clone(), event(&ids[1]), event(&ids[2])];
    let batch = json!({ "events": events }).to_string().into_bytes();
    for _ in 0..2 {
        let answer = suite.post_bytes("gocardless", &[JSON], batch.clone()).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
    }
    for (id, sent) in ids.iter().zip([&events[0], &events[2], &events[3]]) {
        let row = suite.stack.row_in(&format!("gocardless#{id}"), Status::Settled).await;
        assert_eq!(row.life.outcome, Some(Outcome::Applied), "{id}");
        assert_eq!(suite.stack.body(&row).await, sent.to_string().into_bytes(), "its own slice");
    }
    let key = format!("gocardless#sha256:{}", sha256_hex(bad.to_string().as_bytes()));
    let row = suite.stack.row(&key).await.unwrap();
    assert_eq!(row.life.status, Status::Dead, "kept for a person");
}

pub(crate) async fn a_delivery_of_more_than_500_events_is_kept_whole_and_dead(suite: &Suite) {
    let events: Vec<_> =
        (0..501).map(|n| json!({"id": format!("{}_{n}", suite.id("EV"))})).collect();
    let batch = json!({ "events": events }).to_string().into_bytes();
    let answer = suite.post_bytes("gocardless", &[JSON], batch.clone()).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let row = suite.stack.row(&format!("gocardless#sha256:{}", sha256_hex(&batch))).await.unwrap();
    assert_eq!(row.life.status, Status::Dead);
    assert_eq!(encode(row.evidence.body.sha256), sha256_hex(&batch));
    assert!(suite.stack.body(&row).await == batch, "the whole delivery");
    let lines = suite.logs("receiver");
    let said = |word: &str| lines.iter().any(|line| line.contains(word));
    assert!(said("\"unusable.cause\":\"too_many_events\"") && said("\"Unusable\":1"));
}

pub(crate) async fn handshakes_are_answered_and_probes_get_their_401(suite: &Suite) {
    let challenge =
        json!({"type": "url_verification", "challenge": "3eZbrw1aBm2rZgRNFdxV2595E9CY3gmd"});
    let call = suite.signed("slack", &[JSON], challenge.to_string().into_bytes());
    let mut unsigned = call.clone();
    unsigned.headers.retain(|(name, _)| name != "x-slack-signature");
    let answer = suite.stack.http.post(call).await;
    assert_eq!((answer.status, answer.text.as_str()), (200, "3eZbrw1aBm2rZgRNFdxV2595E9CY3gmd"));
    assert_eq!(suite.stack.http.post(unsigned).await.status, 401, "no signature, no echo");

    let get = |query: &str| Call {
        method: "GET".to_owned(),
        path: format!("/webhooks/braintree?bt_challenge={query}"),
        headers: Vec::new(),
        body: Vec::new(),
    };
    let answer = suite.stack.http.post(get("20f9f8ed05f77439fe955c977e4c8a53")).await;
    let (public, _) = suite.stack.signer.key_text("braintree").split_once(':').unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text);
    let (name, digest) = answer.text.split_once('|').unwrap();
    assert_eq!((name, digest.len()), (public, 40));
    // Anything but a challenge's form would make it sign what a stranger likes.
    let answer = suite.stack.http.post(get("x%26bt_payload%3Dforged")).await;
    assert_ne!(answer.status, 200, "{}", answer.text);
}

pub(crate) async fn old_new_and_local_keys_verify_and_the_row_says_which(suite: &Suite) {
    for kid in ["2026-11", "2026-05", "stripe-listen"] {
        let (sample, id, _) = suite.subscription("stripe_subscription_created");
        let sample = sample.with("/livemode", false);
        let key = suite.stack.signer.key("stripe-test", kid);
        let call = suite.stack.signer.call_with(
            "stripe-test",
            &key,
            &sample.headers,
            sample.bytes(),
            now_ms(),
        );
        let answer = suite.stack.http.post(call).await;
        assert_eq!(answer.status, 200, "{kid}: {}", answer.text);
        let row = suite.stack.row_in(&format!("stripe-test#{id}"), Status::Settled).await;
        assert_eq!((row.evidence.kid.as_str(), row.life.outcome), (kid, Some(Outcome::Applied)));
    }
    let lines = suite.logs("receiver");
    for n in 1..=3 {
        let metric = format!("\"VerifiedByKey{n}\":1");
        assert!(lines.iter().any(|line| line.contains(&metric)), "{metric}");
    }
}
