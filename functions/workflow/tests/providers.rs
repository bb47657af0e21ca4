//! What providers do beside sending one event, on the twin: batches, required answers, handshakes,
//! probes, and keys that come and go.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod rig;

use ledger::{Millis, Status};
use rig::{Rig, START};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use workflow::{ports::Trouble, twin::Fault};

const ADYEN_KEY: &str = "DFB1EB5485895CFA84146406857104ABB4CBCABDC8AAF103A624C8F6A3EAAB00";
const TEXT_KEY: &str = "k-5Ws9Q2mXr7";
const PAIR: &str = "integration_public_key:integration_private_key_b7e2";
const JSON: (&str, &str) = ("content-type", "application/json");

fn sources() -> String {
    ["adyen", "gocardless", "slack", "braintree", "twilio", "razorpay", "stripe"]
        .map(|name| format!("[sources.{name}]\npreset = \"{name}\"\nsecret = \"{name}\"\n"))
        .concat()
}

fn keys() -> Value {
    let one = |key: &str| json!([{ "kid": "k1", "key": key }]);
    json!({
        "adyen": one(ADYEN_KEY), "gocardless": one(TEXT_KEY), "slack": one(TEXT_KEY),
        "braintree": one(PAIR), "twilio": one(TEXT_KEY), "razorpay": one(TEXT_KEY),
        "stripe": [{"kid": "new", "key": rig::SECRET}, {"kid": "listen", "key": TEXT_KEY, "local": true}],
    })
}

fn rig() -> Rig {
    Rig::of(&sources(), &keys(), START, false)
}

fn payment(id: &str) -> Value {
    json!({"id": id, "created_at": "2025-11-30T12:00:00Z", "resource_type": "payments",
           "action": "paid_out", "links": {"payment": "PM1"}})
}

async fn post(rig: &Rig, source: &str, key: &str, body: &[u8]) -> verifier::Answer {
    rig.receiver.receive(rig.signed_by(source, key, &[JSON], body)).await
}

fn count(rig: &Rig, metric: &str) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small count")]
    let count = rig.twin.metric(metric) as u64;
    count
}

#[tokio::test]
async fn a_batch_is_a_row_each_and_a_retry_of_the_whole_claims_only_what_is_missing() {
    let rig = rig();
    let batch = json!({"events": [payment("EV1"), payment("EV2"), payment("EV3")]}).to_string();
    // The second claim fails: the provider hears 503 and sends the whole again.
    let mut claims = 0;
    rig.twin.set_faults(move |step, _| {
        claims += u32::from(step == "claim");
        (step == "claim" && claims == 2).then_some(Fault::Before(Trouble::Unavailable))
    });
    assert_eq!(post(&rig, "gocardless", TEXT_KEY, batch.as_bytes()).await.status, 503);
    assert_eq!(rig.twin.rows().len(), 2, "what could be claimed stays");
    rig.twin.clear_faults();
    assert_eq!(post(&rig, "gocardless", TEXT_KEY, batch.as_bytes()).await.status, 200);
    assert_eq!((rig.twin.rows().len(), rig.twin.queue_len()), (3, 3), "each is sent once");
    assert_eq!((count(&rig, "New"), count(&rig, "Duplicate")), (3, 2));
    let slice = rig.twin.find("gocardless#EV2").unwrap().evidence.body.sha256;
    assert_eq!(slice, <[u8; 32]>::from(Sha256::digest(payment("EV2").to_string())));
}

#[tokio::test]
async fn one_bad_element_does_not_lose_its_neighbours() {
    let rig = rig();
    let bad = json!({"resource_type": "payments", "note": "no id"});
    let batch = json!({"events": [payment("EV1"), bad, 7, payment("EV2")]}).to_string();
    assert_eq!(post(&rig, "gocardless", TEXT_KEY, batch.as_bytes()).await.status, 200);
    let rows = rig.twin.rows();
    let dead = rows.iter().filter(|row| row.life.status == Status::Dead).count();
    assert_eq!((rows.len(), dead, rig.twin.queue_len()), (4, 2, 2));
    assert_eq!((count(&rig, "New"), count(&rig, "Unusable")), (2, 2));
}

#[tokio::test]
async fn beyond_500_events_the_delivery_is_kept_whole_as_one_dead_row() {
    for (events, rows, unusable) in [(500, 500, 0), (501, 1, 1)] {
        let rig = rig();
        let list: Vec<Value> = (0..events).map(|n| payment(&format!("EV{n}"))).collect();
        let batch = json!({ "events": list }).to_string();
        assert_eq!(post(&rig, "gocardless", TEXT_KEY, batch.as_bytes()).await.status, 200);
        assert_eq!(rig.twin.rows().len(), rows, "{events} events");
        assert_eq!(count(&rig, "Unusable"), unusable);
        if let [row] = rig.twin.rows().as_slice() {
            let failure = row.life.failure.clone().unwrap();
            assert_eq!(
                (row.life.status, failure.class),
                (Status::Dead, ledger::FailureClass::Permanent)
            );
            assert_eq!(failure.error, "501 events in one delivery, at most 500 are taken");
            assert_eq!(row.evidence.body.sha256, <[u8; 32]>::from(Sha256::digest(&batch)));
        }
    }
}

#[tokio::test]
async fn an_adyen_batch_is_accepted_in_its_own_words_and_not_before_it_is_stored() {
    let rig = rig();
    let item = |psp: &str| {
        json!({"NotificationRequestItem": {"pspReference": psp, "eventCode": "CAPTURE", "success": "true",
               "eventDate": "2025-11-30T12:00:00Z", "amount": {"value": 10, "currency": "EUR"}}})
    };
    let batch = json!({"live": "false", "notificationItems": [item("A"), item("B")]}).to_string();
    rig.twin.set_faults(|step, _| (step == "claim").then_some(Fault::Before(Trouble::Throttled)));
    let refused = post(&rig, "adyen", ADYEN_KEY, batch.as_bytes()).await;
    assert_eq!(refused.status, 503);
    assert!(!String::from_utf8(refused.body).unwrap().contains("accepted"));
    rig.twin.clear_faults();
    let answer = post(&rig, "adyen", ADYEN_KEY, batch.as_bytes()).await;
    assert_eq!((answer.status, answer.body.as_slice()), (200, &b"[accepted]"[..]));
    assert_eq!(answer.content_type.as_deref(), Some("text/plain"));
    for key in ["adyen#A:CAPTURE:true", "adyen#B:CAPTURE:true"] {
        assert!(rig.twin.find(key).is_some(), "{key}");
    }
}

#[tokio::test]
async fn a_twilio_callback_is_answered_in_xml() {
    let rig = rig();
    let answer = post(&rig, "twilio", TEXT_KEY, b"MessageSid=SM1&MessageStatus=sent").await;
    assert_eq!((answer.status, answer.content_type.as_deref()), (200, Some("text/xml")));
    assert!(rig.twin.find("twilio#SM1:sent").is_some());
}

#[tokio::test]
async fn a_handshake_writes_nothing_and_a_probe_with_a_bad_signature_is_401() {
    let rig = rig();
    let challenge = br#"{"type":"url_verification","challenge":"3eZbrw1aBm2r"}"#;
    let answer = post(&rig, "slack", TEXT_KEY, challenge).await;
    assert_eq!((answer.status, answer.body.as_slice()), (200, &b"3eZbrw1aBm2r"[..]));
    let probe = rig.request("POST", "slack", "", &[JSON], challenge);
    assert_eq!(rig.receiver.receive(probe).await.status, 401);
    assert_eq!(post(&rig, "slack", "another-key-81", challenge).await.status, 401);

    let get = |query: &str| rig.request("GET", "braintree", query, &[], b"");
    let answer = rig.receiver.receive(get("bt_challenge=20f9f8ed05f77439fe955c977e4c8a53")).await;
    assert_eq!(answer.status, 200);
    let answer = rig.receiver.receive(get("bt_challenge=whatever%20is%20to%20be%20signed")).await;
    assert_eq!(answer.status, 401);
    let answer = rig.receiver.receive(rig.request("GET", "slack", "", &[], b"")).await;
    assert_eq!(answer.status, 405);
    assert_eq!(count(&rig, "Handshake"), 2);
    assert!(rig.twin.rows().is_empty() && rig.twin.queue_len() == 0);
}

#[tokio::test]
async fn a_handshake_is_proven_by_a_secret_that_was_stored_a_moment_ago() {
    let sources = format!(
        "{}[sources.meta]\npreset = \"github\"\nsecret = \"meta\"\n[sources.meta.handshake]\nsubscribe = true\n",
        sources()
    );
    for source in ["slack", "meta"] {
        let old = json!([{"kid": "old", "key": rig::SECRET}]);
        let rig = Rig::of(&sources, &json!({"slack": old, "meta": old}), START, false);
        let known = post(&rig, source, "a key of nobody's", b"{}").await;
        assert_eq!(known.status, 401, "the old secret is in use");
        rig.twin.advance(61_000);
        let stored = json!({
            "slack": [{"kid": "k", "key": TEXT_KEY}],
            "meta": [{"kid": "k", "key": TEXT_KEY}, {"kid": "t", "key": "vt-01", "handshake": true}],
        });
        rig.twin.set_secret(&stored.to_string());
        let answer = if source == "slack" {
            post(&rig, "slack", TEXT_KEY, br#"{"type":"url_verification","challenge":"c-1"}"#).await
        } else {
            let query = "hub.mode=subscribe&hub.challenge=c-1&hub.verify_token=vt-01";
            rig.receiver.receive(rig.request("GET", "meta", query, &[], b"")).await
        };
        assert_eq!((answer.status, answer.body.as_slice()), (200, &b"c-1"[..]), "{source}");
        assert!(rig.twin.rows().is_empty(), "{source}: it is no event");
    }
}

#[tokio::test]
async fn an_id_in_an_unsigned_header_cannot_overwrite_what_came_under_it() {
    let rig = rig();
    let deliver = async |id: &str, body: &[u8]| {
        let headers = [JSON, ("x-razorpay-event-id", id)];
        rig.receiver.receive(rig.signed_by("razorpay", TEXT_KEY, &headers, body)).await.status
    };
    assert_eq!(deliver("e1", br#"{"event":"payment.captured","n":1}"#).await, 200);
    assert_eq!(deliver("e1", br#"{"event":"payment.captured","n":2}"#).await, 200);
    assert_eq!(count(&rig, "Conflict"), 1);
    assert_eq!(rig.twin.rows().len(), 2, "both are kept");
}

#[tokio::test]
async fn a_local_key_verifies_on_a_local_stack_and_is_refused_by_any_other() {
    let body = br#"{"id":"evt_1","type":"t","livemode":false}"#;
    for (allow_local, status) in [(true, 200), (false, 401)] {
        let rig = Rig::of(&sources(), &keys(), START, allow_local);
        let answer = post(&rig, "stripe", TEXT_KEY, body).await;
        assert_eq!(answer.status, status, "local {allow_local}");
        assert_eq!(post(&rig, "stripe", rig::SECRET, body).await.status, 200, "the other key");
        let said = |text: &str| rig.twin.lines().iter().any(|line| line.message.contains(text));
        assert_eq!(said("\"listen\""), !allow_local, "the refused key is named");
        assert!(!said(TEXT_KEY));
    }
}

#[tokio::test]
async fn which_key_verified_is_in_the_row_the_line_and_a_metric_of_its_place() {
    let secret = json!({"stripe": [{"kid": "2026-11", "key": rig::SECRET}, {"kid": "2026-05", "key": TEXT_KEY}]});
    let rig = Rig::of(&sources(), &secret, Millis(START.0), false);
    for (n, key) in [rig::SECRET, TEXT_KEY, TEXT_KEY].iter().enumerate() {
        let body = format!(r#"{{"id":"evt_{n}","type":"t"}}"#);
        assert_eq!(post(&rig, "stripe", key, body.as_bytes()).await.status, 200);
    }
    assert_eq!(rig.twin.find("stripe#evt_2").unwrap().evidence.kid, "2026-05");
    assert_eq!((count(&rig, "VerifiedByKey1"), count(&rig, "VerifiedByKey2")), (1, 2));
    let lines = rig.twin.lines();
    let kids: Vec<&Value> = lines.iter().filter_map(|line| line.fields.get("key.kid")).collect();
    assert_eq!(kids, ["2026-11", "2026-05", "2026-05"]);
}

#[tokio::test]
async fn sources_that_share_a_secret_read_it_each_in_its_own_form() {
    let sources = ["adyen-platform", "gocardless"]
        .map(|name| format!("[sources.{name}]\npreset = \"{name}\"\nsecret = \"shared\"\n"))
        .concat();
    let keys = json!({"shared": [{"kid": "k1", "key": ADYEN_KEY}]});
    let rig = Rig::of(&sources, &keys, START, false);
    let transfer = json!({"type": "t", "timestamp": "2025-11-30T12:00:00Z", "data": {"id": "T1"}});
    let payments = json!({"events": [payment("EV1")]});
    for (source, body) in [("adyen-platform", transfer), ("gocardless", payments)] {
        let answer = post(&rig, source, ADYEN_KEY, body.to_string().as_bytes()).await;
        assert_eq!(answer.status, 200, "{source}");
    }
    assert_eq!(rig.twin.rows().len(), 2);
}

#[tokio::test]
async fn a_handshakes_token_is_no_key_and_takes_no_keys_place() {
    let sources = "[sources.meta]\npreset = \"github\"\nsecret = \"meta\"\n\
                   [sources.meta.handshake]\nsubscribe = true\n";
    let token = json!({"kid": "subscribe", "key": "vt-01", "handshake": true});
    let mut entries: Vec<Value> =
        (1..=3).map(|n| json!({"kid": format!("k{n}"), "key": format!("{TEXT_KEY}{n}")})).collect();
    entries.insert(0, token);
    let rig = Rig::of(sources, &json!({"meta": entries}), START, false);
    let subscribe = |token: &str| {
        let query = format!("hub.mode=subscribe&hub.challenge=c-1&hub.verify_token={token}");
        rig.receiver.receive(rig.request("GET", "meta", &query, &[], b""))
    };
    let answer = subscribe("vt-01").await;
    assert_eq!((answer.status, answer.body.as_slice()), (200, &b"c-1"[..]));
    assert_eq!(subscribe(TEXT_KEY).await.status, 403);
    assert_eq!((count(&rig, "Handshake"), count(&rig, "Rejected")), (1, 1));
    for n in 1..=3 {
        let body = json!({"n": n}).to_string();
        let answer = post(&rig, "meta", &format!("{TEXT_KEY}{n}"), body.as_bytes()).await;
        assert_eq!(answer.status, 200, "all three keys are live");
    }
    assert_eq!(post(&rig, "meta", "vt-01", b"{}").await.status, 401);
    assert!(!format!("{:?}", rig.twin.lines()).contains("vt-01"), "the token is in no line");
}
