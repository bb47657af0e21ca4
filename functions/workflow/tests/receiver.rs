//! The receiver on the twin: what is answered, what is written, and what is never thrown away.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod rig;

use ledger::{Outcome, Status};
use rig::{Rig, subscription};
use serde_json::json;
use workflow::{ports::Trouble, twin::Fault};

#[tokio::test]
async fn a_signed_event_becomes_one_row_and_one_message() {
    let rig = Rig::new();
    let answer = rig.deliver(&subscription("evt_1", "created", 10, "sub_1", "gold")).await;
    assert_eq!(answer.status, 200);
    let row = rig.row("evt_1");
    assert_eq!((row.life.status, row.evidence.kid.as_str()), (Status::Claimed, "k1"));
    assert_eq!(rig.twin.queue_len(), 1);
    let counts = rig.twin.counts();
    assert_eq!((counts["claim"], counts["send"], counts.get("row")), (1, 1, None));
}

#[tokio::test]
async fn refusals_are_all_alike_and_touch_nothing() {
    let rig = Rig::new();
    let event = subscription("evt_1", "created", 10, "sub_1", "gold").to_string();
    let good = rig.signed(event.as_bytes());
    rig.receiver.receive(rig.signed(b"{}")).await; // loads the keys
    rig.twin.reset_counts();

    let mut altered = good.clone();
    altered.body[0] = b'[';
    let mut unsigned = good.clone();
    unsigned.headers = verifier::Headers::new();
    let mut garbled = good.clone();
    garbled.headers = [("stripe-signature", "t=x,v1=zz")].into_iter().collect();
    let mut answers = Vec::new();
    for delivery in [altered, unsigned, garbled] {
        answers.push(rig.receiver.receive(delivery).await);
    }
    assert!(answers.iter().all(|answer| *answer == answers[0] && answer.status == 401));

    let mut elsewhere = good.clone();
    elsewhere.path = "/webhooks/nowhere".to_owned();
    assert_eq!(rig.receiver.receive(elsewhere).await.status, 404);
    let mut read = good.clone();
    read.method = "GET".to_owned();
    assert_eq!(rig.receiver.receive(read).await.status, 405);
    let mut huge = good;
    huge.body = vec![b' '; 6 * 1_024 * 1_024 + 1];
    assert_eq!(rig.receiver.receive(huge).await.status, 413);

    assert!(rig.twin.find("shop#evt_1").is_none());
    assert_eq!(rig.twin.counts().keys().copied().collect::<Vec<_>>(), Vec::<&str>::new());
}

#[tokio::test]
async fn a_signature_that_does_not_hold_is_counted_apart_from_noise() {
    let rig = Rig::new();
    let event = subscription("evt_1", "created", 10, "sub_1", "gold").to_string();
    let good = rig.signed(event.as_bytes());
    let refused_signatures = async |delivery| {
        let before = (rig.twin.metric("SignatureRefused"), rig.twin.metric("Rejected"));
        assert_eq!(rig.receiver.receive(delivery).await.status, 401);
        assert!((rig.twin.metric("Rejected") - before.1 - 1.0).abs() < 0.1);
        rig.twin.metric("SignatureRefused") - before.0
    };
    let mut noise = Vec::new();
    for headers in [
        &[][..],
        &[("stripe-signature", "")],
        &[("stripe-signature", "admin")],
        &[("stripe-signature", "t=1,v0=00")],
        &[("authorization", "Basic YWRtaW46YWRtaW4=")],
    ] {
        let mut delivery = good.clone();
        delivery.headers = headers.iter().copied().collect();
        noise.push(refused_signatures(delivery).await);
    }
    assert!(noise.iter().all(|counted| *counted < 0.1), "{noise:?}");
    let mut altered = good.clone();
    altered.body[0] = b'[';
    assert!((refused_signatures(altered).await - 1.0).abs() < 0.1);
    rig.twin.advance(301_000);
    assert!((refused_signatures(good).await - 1.0).abs() < 0.1, "too old by now");
    // The provider signs with another secret than the one that is stored.
    rig.twin.set_secret(r#"{"shop":[{"kid":"k9","key":"whsec_Another8qLw2NcY7tB5xJ9hD4mP6s"}]}"#);
    rig.twin.advance(301_000);
    let late = rig.signed(event.as_bytes());
    assert!((refused_signatures(late).await - 1.0).abs() < 0.1);
}

#[tokio::test]
async fn a_duplicate_is_one_call_and_no_work() {
    let rig = Rig::new();
    let event = subscription("evt_1", "created", 10, "sub_1", "gold");
    rig.deliver(&event).await;
    rig.drain(60_000).await;
    rig.twin.reset_counts();
    assert_eq!(rig.deliver(&event).await.status, 200);
    assert_eq!(rig.twin.counts(), [("claim", 1)].into_iter().collect());
    assert_eq!(rig.twin.queue_len(), 0);
    assert!((rig.twin.metric("Duplicate") - 1.0).abs() < 0.1);
}

#[tokio::test]
async fn a_duplicate_of_unfinished_work_is_sent_again_once_it_is_old() {
    let rig = Rig::new();
    let event = subscription("evt_1", "created", 10, "sub_1", "gold");
    rig.twin.set_faults(|step, _| (step == "send").then_some(Fault::Before(Trouble::Unavailable)));
    assert_eq!(rig.deliver(&event).await.status, 200, "the claim is durable, the sweeper sends");
    rig.twin.clear_faults();
    rig.twin.advance(30_000);
    rig.deliver(&event).await;
    assert_eq!(rig.twin.queue_len(), 0, "still young");
    rig.twin.advance(1);
    assert_eq!(rig.deliver(&event).await.status, 200);
    assert_eq!(rig.twin.queue_len(), 1);
}

#[tokio::test]
async fn a_claim_whose_answer_was_lost_is_recognised_and_sent() {
    let rig = Rig::new();
    rig.twin.set_faults(|step, _| (step == "claim").then_some(Fault::AnswerLost));
    let answer = rig.deliver(&subscription("evt_1", "created", 10, "sub_1", "gold")).await;
    assert_eq!((answer.status, rig.twin.queue_len()), (200, 1));
}

#[tokio::test]
async fn a_claim_that_cannot_be_made_is_503_and_the_next_try_succeeds() {
    let rig = Rig::new();
    let event = subscription("evt_1", "created", 10, "sub_1", "gold");
    for trouble in [Trouble::Throttled, Trouble::Conflict, Trouble::Unavailable, Trouble::Invalid] {
        rig.twin.set_faults(move |step, _| (step == "claim").then_some(Fault::Before(trouble)));
        let answer = rig.deliver(&event).await;
        assert_eq!(answer.status, 503, "{trouble:?}");
        assert!(answer.headers.iter().any(|(name, _)| name == "retry-after"));
    }
    rig.twin.clear_faults();
    assert_eq!(rig.deliver(&event).await.status, 200);
    assert_eq!(rig.twin.queue_len(), 1);
}

#[tokio::test]
async fn the_same_id_with_other_bytes_keeps_both_bodies() {
    let rig = Rig::new();
    rig.deliver(&subscription("evt_1", "created", 10, "sub_1", "gold")).await;
    let other = subscription("evt_1", "created", 10, "sub_1", "silver");
    for _ in 0..3 {
        assert_eq!(rig.deliver(&other).await.status, 200);
    }
    let rows = rig.twin.rows();
    assert_eq!(rows.len(), 2, "the second body is kept once");
    let conflict = rows.iter().find(|row| row.evidence.key.as_str().starts_with("_c#")).unwrap();
    assert_eq!(conflict.life.status, Status::Dead);
    assert_ne!(conflict.evidence.body.sha256, rig.row("evt_1").evidence.body.sha256);
    rig.drain(60_000).await;
    assert_eq!(rig.plan_of("sub_1"), "gold", "the first body is what counts");
}

#[tokio::test]
async fn authentic_but_useless_deliveries_are_kept_for_a_person() {
    let rig = Rig::new();
    for body in
        [&b"not json"[..], b"{}", b"{\"id\":null}", b"{\"id\":\"\"}", b"{\"id\":{}}", b"\xff\xfe"]
    {
        assert_eq!(rig.receiver.receive(rig.signed(body)).await.status, 200);
    }
    let rows = rig.twin.rows();
    assert_eq!(rows.len(), 6);
    for row in rows {
        assert_eq!(row.life.status, Status::Dead);
        assert!(row.evidence.key.event_id().starts_with("sha256:"));
        assert!(row.life.failure.is_some_and(|failure| !failure.error.is_empty()));
    }
    assert_eq!(rig.twin.queue_len(), 0);
}

#[tokio::test]
async fn a_test_event_on_a_live_source_is_kept_and_changes_nothing() {
    let rig = Rig::new();
    let mut event = subscription("evt_1", "created", 10, "sub_1", "gold");
    event["livemode"] = json!(false);
    assert_eq!(rig.deliver(&event).await.status, 200);
    let row = rig.row("evt_1");
    assert_eq!((row.life.status, row.life.outcome), (Status::Settled, Some(Outcome::Ignored)));
    assert_eq!(rig.twin.queue_len(), 0);
    assert!(row.life.expires_at.is_some());
}

#[tokio::test]
async fn a_large_body_lies_in_chunks_and_comes_back_byte_for_byte() {
    let rig = Rig::new();
    let mut event = subscription("evt_1", "created", 10, "sub_1", "gold");
    // Hex of a hash chain: incompressible enough to need several chunks.
    let mut noise = String::new();
    let mut block = [0_u8; 32];
    while noise.len() < 4_500_000 {
        use sha2::Digest;
        block = sha2::Sha256::digest(block).into();
        noise.push_str(&hex::encode(block));
    }
    event["noise"] = json!(noise);
    let body = event.to_string();
    assert_eq!(rig.receiver.receive(rig.signed(body.as_bytes())).await.status, 200);
    let row = rig.row("evt_1");
    assert!(row.evidence.body.inline.is_none() && row.evidence.body.chunks >= 6);
    rig.drain(60_000).await;
    let row = rig.row("evt_1");
    assert_eq!(row.life.outcome, Some(Outcome::Applied));
    let read = workflow::body::read(&*rig.twin, &row).await.unwrap();
    assert!(read == body.as_bytes());
    // A list may hand over more than a delivery may hold.
    let larger = vec![b'x'; rig.receiver.policy.body_bytes_max + 1];
    let encoded = workflow::body::encode(&larger, &rig.receiver.policy);
    let mut listed = row.clone();
    listed.evidence.body = encoded.body;
    assert!(workflow::body::read(&*rig.twin, &listed).await.unwrap() == larger);

    rig.twin.reset_counts();
    rig.receiver.receive(rig.signed(body.as_bytes())).await;
    assert_eq!(rig.twin.counts(), [("row", 1)].into_iter().collect(), "a duplicate stores nothing");
}

#[tokio::test]
async fn a_rotated_key_is_loaded_after_the_first_failure_and_no_event_is_lost() {
    let rig = Rig::new();
    rig.twin.set_secret(
        &json!({"shop": [{"kid": "old", "key": "whsec_old9f8e7d6c5b4a39281706f5e4d3c2b1a0"}]})
            .to_string(),
    );
    assert_eq!(
        rig.deliver(&subscription("evt_1", "created", 10, "sub_1", "gold")).await.status,
        401
    );
    let two = json!({"shop": [{"kid": "old", "key": "whsec_old9f8e7d6c5b4a39281706f5e4d3c2b1a0"}, {"kid": "k1", "key": rig::SECRET}]});
    rig.twin.set_secret(&two.to_string());
    rig.twin.advance(60_000);
    assert_eq!(
        rig.deliver(&subscription("evt_1", "created", 10, "sub_1", "gold")).await.status,
        200
    );
    rig.twin.reset_counts();
    for _ in 0..50 {
        let mut forged = rig.signed(b"{}");
        forged.body = b"[]".to_vec();
        assert_eq!(rig.receiver.receive(forged).await.status, 401);
    }
    assert!(
        rig.twin.counts().get("secret").copied().unwrap_or(0) <= 1,
        "forgeries do not drive the bill"
    );
}

#[tokio::test]
async fn stale_keys_serve_for_an_hour_and_then_the_answer_is_503_not_401() {
    let rig = Rig::new();
    rig.deliver(&subscription("evt_1", "created", 10, "sub_1", "gold")).await;
    rig.twin
        .set_faults(|step, _| (step == "secret").then_some(Fault::Before(Trouble::Unavailable)));
    rig.twin.advance(59 * 60_000);
    assert_eq!(
        rig.deliver(&subscription("evt_2", "created", 10, "sub_1", "gold")).await.status,
        200
    );
    rig.twin.advance(60_000);
    assert_eq!(
        rig.deliver(&subscription("evt_3", "created", 10, "sub_1", "gold")).await.status,
        503
    );
}

#[tokio::test]
async fn a_function_that_started_without_its_keys_reads_them_at_the_next_delivery() {
    let rig = Rig::new();
    rig.twin
        .set_faults(|step, _| (step == "secret").then_some(Fault::Before(Trouble::Unavailable)));
    rig.receiver.keyring.load(&*rig.twin, &rig.receiver.config).await;
    rig.twin.clear_faults();
    let event = subscription("evt_1", "created", 10, "sub_1", "gold");
    assert_eq!(rig.deliver(&event).await.status, 200);
}

#[tokio::test]
async fn empty_padded_and_placeholder_keys_are_refused_by_name_and_weaken_no_other() {
    let rig = Rig::new();
    let keys = json!({"shop": [{"kid": "empty", "key": ""}, {"kid": "padded", "key": " x "}, {"kid": "k1", "key": rig::SECRET}]});
    rig.twin.set_secret(&keys.to_string());
    assert_eq!(
        rig.deliver(&subscription("evt_1", "created", 10, "sub_1", "gold")).await.status,
        200
    );
    let complaints: Vec<String> = rig
        .twin
        .lines()
        .iter()
        .map(|line| line.message.clone())
        .filter(|m| m.contains("not used"))
        .collect();
    assert_eq!(complaints.len(), 2, "{complaints:?}");
    assert!(complaints[0].contains("empty") && complaints[1].contains("padded"));

    let none = Rig::new();
    none.twin.set_secret(&json!({"shop": [{"kid": "empty", "key": ""}]}).to_string());
    assert_eq!(
        none.deliver(&subscription("evt_1", "created", 10, "sub_1", "gold")).await.status,
        503
    );
}

#[tokio::test]
async fn no_line_holds_a_body_a_signature_or_a_secret() {
    let rig = Rig::new();
    let canary = "canary-4242-4242";
    let mut event = subscription("evt_1", "created", 10, "sub_1", canary);
    event["card"] = json!(canary);
    let delivery = rig.signed(event.to_string().as_bytes());
    let signature: Vec<String> = delivery
        .headers
        .iter()
        .map(|(_, value)| value.to_owned())
        .filter(|v| v.contains("v1="))
        .collect();
    rig.receiver.receive(delivery).await;
    rig.deliver(&rig::poison("evt_2")).await;
    rig.drain(600_000).await;
    rig.tend().await;
    let everything = format!("{:?}", rig.twin.lines());
    assert!(everything.contains("evt_1"));
    assert!(!everything.contains(canary) && !everything.contains(rig::SECRET));
    assert!(signature.iter().all(|signature| !everything.contains(signature)));
}

#[tokio::test]
async fn a_duplicate_of_a_dead_row_is_sent_again_only_where_another_run_may_cure_it() {
    let rig = Rig::new();
    rig.twin.set_faults(|step, _| (step == "apply").then_some(Fault::Before(Trouble::Unavailable)));
    let event = subscription("evt_1", "created", 10, "sub_1", "gold");
    rig.deliver(&event).await;
    rig.deliver(&rig::poison("evt_bad")).await;
    rig.drain(600_000).await;
    assert_eq!((rig.twin.queue_len(), rig.twin.dead_letter_bodies().len()), (0, 2));
    assert_eq!(rig.deliver(&rig::poison("evt_bad")).await.status, 200);
    assert_eq!(rig.twin.queue_len(), 0, "no run can help");
    assert!((rig.twin.metric("DuplicateOfDead") - 1.0).abs() < 0.1);
    assert_eq!(rig.deliver(&event).await.status, 200);
    assert_eq!(rig.twin.queue_len(), 1);
}

#[tokio::test]
async fn no_header_is_stored_that_the_preset_does_not_name() {
    let rig = Rig::new();
    let event = subscription("evt_1", "created", 10, "sub_1", "gold").to_string();
    let mut delivery = rig.signed(event.as_bytes());
    for name in ["authorization", "cookie", "x-forwarded-for"] {
        delivery.headers.push(name, "canary");
    }
    delivery.headers.push("user-agent", "Stripe/1.0");
    assert_eq!(rig.receiver.receive(delivery).await.status, 200);
    let row = rig.row("evt_1");
    let names: Vec<&str> = row.evidence.headers.keys().map(String::as_str).collect();
    assert_eq!(names, ["content-type", "user-agent"]);
}
