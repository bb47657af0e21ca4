//! The replay route on the twin: who may use it, what a row says of it, and what it leaves alone.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod rig;

use ledger::{Origin, Status};
use rig::{Rig, SECRET, subscription};
use serde_json::{Value, json};
use verifier::Answer;
use workflow::{
    ports::{Secret, Trouble},
    receive::{Delivery, tokens},
    twin::Fault,
};

const TOKEN: &str = "shop-replay-token-0123456789abcdef";
const NEXT: &str = "shop-replay-token-of-next-month-0123";
const OTHER: &str = "other-replay-token-0123456789abcdef";
const SOURCES: &str = r#"
[sources.shop]
preset = "stripe"
secret = "shop"
live = true

[sources.other]
preset = "stripe"
secret = "other"

[sources.closed]
preset = "stripe"
secret = "shop"
"#;

fn rig() -> Rig {
    let secret = json!({"shop": [{"kid": "k1", "key": SECRET}]});
    let mut rig = Rig::of(SOURCES, &secret, rig::START, false);
    rig.receiver.replay = Some(tokens(false));
    store(&rig, &[("t1", TOKEN)]);
    rig
}

fn store(rig: &Rig, live: &[(&str, &str)]) {
    let live: Vec<Value> = live.iter().map(|(kid, key)| json!({"kid": kid, "key": key})).collect();
    let other = json!([{"kid": "o1", "key": OTHER}]);
    let document = json!({"shop": live, "other": other}).to_string();
    rig.twin.set_secret_of(Secret::Replay, &document);
}

fn replay(rig: &Rig, source: &str, headers: &[(&str, &str)], body: &[u8]) -> Delivery {
    let mut delivery = rig.request("POST", source, "", headers, body);
    delivery.path = format!("/replay/{source}");
    delivery
}

async fn fed(rig: &Rig, token: &str, event: &Value) -> Answer {
    let headers = [
        ("x-replay-token", token),
        ("x-replay-by", "J%C3%BCrgen"),
        ("x-replay-reason", "outage of 30 %25"),
    ];
    rig.receiver.receive(replay(rig, "shop", &headers, event.to_string().as_bytes())).await
}

fn outcomes(answer: &Answer) -> Vec<String> {
    let said: Value = serde_json::from_slice(&answer.body).unwrap();
    let events = said["events"].as_array().unwrap().iter();
    events.map(|event| event["outcome"].as_str().unwrap().to_owned()).collect()
}

fn event(id: &str) -> Value {
    subscription(id, "created", 10, "sub_1", "gold")
}

#[tokio::test]
async fn a_replayed_event_is_new_once_and_its_row_says_who_and_why() {
    let rig = rig();
    let answer = fed(&rig, TOKEN, &event("evt_1")).await;
    assert_eq!((answer.status, outcomes(&answer)), (200, vec!["new".to_owned()]));
    assert_eq!(answer.content_type.as_deref(), Some("application/json"));
    assert_eq!(outcomes(&fed(&rig, TOKEN, &event("evt_1")).await), ["duplicate"]);
    let evidence = rig.row("evt_1").evidence;
    assert_eq!((evidence.origin, evidence.kid.as_str()), (Origin::Replay, "t1"));
    assert_eq!(evidence.origin_note.as_deref(), Some("Jürgen: outage of 30 %"));
    assert_eq!((evidence.identity_hash, rig.twin.queue_len()), (None, 1));
}

#[tokio::test]
async fn a_delivery_and_a_replay_of_one_event_are_one_row_however_each_is_rendered() {
    let rig = rig();
    let mut rendered = event("evt_1");
    rendered["data"]["object"]["plan"] = json!("renamed");
    rig.deliver(&event("evt_1")).await;
    assert_eq!(outcomes(&fed(&rig, TOKEN, &rendered).await), ["duplicate"]);
    assert_eq!(outcomes(&fed(&rig, TOKEN, &event("evt_2")).await), ["new"]);
    let mut rendered = event("evt_2");
    rendered["data"]["object"]["plan"] = json!("renamed");
    assert_eq!(rig.deliver(&rendered).await.status, 200);
    assert_eq!(rig.twin.rows().len(), 2, "nothing is taken for a conflict");
}

#[tokio::test]
async fn only_the_sources_own_token_opens_it_and_all_refusals_are_alike() {
    let rig = rig();
    let refused = fed(&rig, "nonsense", &event("evt_1")).await;
    assert_eq!(refused.status, 401);
    for token in ["", OTHER, &TOKEN[1..], SECRET] {
        assert_eq!(fed(&rig, token, &event("evt_1")).await, refused, "{token:?}");
    }
    let words = [("x-replay-by", "a"), ("x-replay-reason", "b")];
    let body = event("evt_1").to_string();
    let unsigned = rig.receiver.receive(replay(&rig, "shop", &words, body.as_bytes())).await;
    assert_eq!(unsigned, refused);
    let headers = [("x-replay-token", TOKEN), words[0], words[1]];
    for source in ["other", "closed"] {
        let there = rig.receiver.receive(replay(&rig, source, &headers, body.as_bytes())).await;
        assert_eq!(there, refused, "{source} has a token of its own, or none");
    }
    // A signature is no token, and a token no signature.
    let mut signed = rig.signed(body.as_bytes());
    signed.path = "/replay/shop".to_owned();
    assert_eq!(rig.receiver.receive(signed).await, refused);
    let delivered = rig.request("POST", "shop", "", &headers, body.as_bytes());
    assert_eq!(rig.receiver.receive(delivered).await.status, 401);
    assert!(rig.twin.rows().is_empty());
}

#[tokio::test]
async fn a_closed_route_is_no_route() {
    let mut rig = rig();
    rig.receiver.replay = None;
    let closed = fed(&rig, TOKEN, &event("evt_1")).await;
    let mut nowhere = rig.request("POST", "nobody", "", &[], b"{}");
    nowhere.path = "/webhooks/nobody".to_owned();
    assert_eq!(closed, rig.receiver.receive(nowhere).await);
    assert_eq!((closed.status, rig.twin.counts().len()), (404, 0), "no secret is read for it");
}

#[tokio::test]
async fn a_token_stored_a_moment_ago_opens_it_and_the_old_one_still_does() {
    let rig = rig();
    assert_eq!(fed(&rig, TOKEN, &event("evt_1")).await.status, 200);
    store(&rig, &[("t2", NEXT), ("t1", TOKEN)]);
    assert_eq!(fed(&rig, NEXT, &event("evt_2")).await.status, 401, "read a moment ago");
    rig.twin.advance(60_000);
    assert_eq!(fed(&rig, NEXT, &event("evt_2")).await.status, 200);
    assert_eq!(rig.row("evt_2").evidence.kid, "t2");
    assert_eq!(fed(&rig, TOKEN, &event("evt_3")).await.status, 200);
}

#[tokio::test]
async fn tokens_that_cannot_be_read_are_a_503_and_no_refusal() {
    let rig = rig();
    rig.twin
        .set_faults(|step, _| (step == "secret").then_some(Fault::Before(Trouble::Unavailable)));
    assert_eq!(fed(&rig, TOKEN, &event("evt_1")).await.status, 503);
    rig.twin.clear_faults();
    assert_eq!(fed(&rig, TOKEN, &event("evt_1")).await.status, 200);
}

#[tokio::test]
async fn who_and_why_are_required_and_a_wrong_method_is_refused() {
    let rig = rig();
    let body = event("evt_1").to_string();
    let long = "x".repeat(501);
    let (token, by) = (("x-replay-token", TOKEN), ("x-replay-by", "anna"));
    for headers in [
        vec![token],
        vec![token, by],
        vec![token, by, ("x-replay-reason", "   ")],
        vec![token, by, ("x-replay-reason", long.as_str())],
        vec![token, by, ("x-replay-reason", "%ff%fe")],
    ] {
        let answer = rig.receiver.receive(replay(&rig, "shop", &headers, body.as_bytes())).await;
        assert_eq!(answer.status, 400);
    }
    let mut read = replay(&rig, "shop", &[token, by], b"");
    read.method = "GET".to_owned();
    assert_eq!(rig.receiver.receive(read).await.status, 405);
    assert!(rig.twin.rows().is_empty());
}

#[tokio::test]
async fn what_cannot_be_used_is_kept_and_what_cannot_be_stored_is_503() {
    let rig = rig();
    let test_mode = json!({"id": "evt_t", "type": "x", "created": 1, "livemode": false});
    assert_eq!(outcomes(&fed(&rig, TOKEN, &test_mode).await), ["wrong_mode"]);
    assert_eq!(outcomes(&fed(&rig, TOKEN, &json!({"type": "x"})).await), ["unusable"]);
    let dead = rig.twin.rows().into_iter().find(|row| row.life.status == Status::Dead).unwrap();
    assert_eq!(dead.evidence.origin, Origin::Replay);
    rig.twin.set_faults(|step, _| (step == "claim").then_some(Fault::Before(Trouble::Throttled)));
    assert_eq!(fed(&rig, TOKEN, &event("evt_1")).await.status, 503);
}

#[tokio::test]
async fn no_line_holds_a_token_or_a_reason() {
    let rig = rig();
    fed(&rig, TOKEN, &event("evt_1")).await;
    fed(&rig, OTHER, &event("evt_1")).await;
    let lines = format!("{:?}", rig.twin.lines());
    assert!(!lines.contains(TOKEN) && !lines.contains(OTHER) && !lines.contains("outage"));
    assert!(lines.contains("Jürgen") && lines.contains("Replayed"), "{lines}");
}
