//! Kind g: the requests with which providers try an endpoint, and what they want to hear.

use crate::{
    reports::{bytes, headers, input, text},
    shop::world,
};
use ledger::Outcome;
use serde_json::Value;
use support::{World, WorldBuilder};
use verifier::Answer;

const SOURCES: &str = r#"
[sources.slack]
preset = "slack"
secret = "slack"

[sources.twilio]
preset = "twilio"
secret = "twilio"

[sources.meta]
secret = "meta"
[sources.meta.verify]
scheme = "signature"
header = "x-hub-signature-256"
prefix = "sha256="
algorithm = "hmac-sha256"
encoding = "hex"
key = "text"
[sources.meta.event]
id = { hash = ["/entry"] }
type = "/object"
identity = "none"
[sources.meta.handshake]
subscribe = true

[sources.msgraph]
secret = "msgraph"
[sources.msgraph.verify]
scheme = "token"
header = "x-client-state"
[sources.msgraph.event]
id = "/id"
identity = "body"
[sources.msgraph.handshake]
echo_query = "validationToken"

[sources.trello]
secret = "trello"
[sources.trello.verify]
scheme = "signature"
header = "x-trello-webhook"
algorithm = "hmac-sha1"
encoding = "base64"
signed = "{body}{url}"
key = "text"
[sources.trello.event]
id = "/action/id"
identity = "body"
[sources.trello.handshake]
probe = ["HEAD", "GET"]
"#;

fn handshakes() -> World {
    WorldBuilder::new(SOURCES)
        .keys("slack", &["slack-secret-01"])
        .keys("twilio", &["twilio-token-01"])
        .keys("meta", &["app-secret-01"])
        .handshake_token("meta", text(input("g03"), "/config/verify_token"))
        .keys("msgraph", &["client-state-01"])
        .keys("trello", &["trello-secret-01"])
        .build()
}

/// Sends a report's gateway event, whatever its method, to the source its path ends with.
fn send(world: &World, event: &Value) -> Answer {
    let source = text_of(event, "/rawPath").rsplit('/').next().unwrap();
    let path = format!("/webhooks/{source}?{}", text_of(event, "/rawQueryString"));
    let method = text_of(event, "/requestContext/http/method");
    world.request(method, &path, &headers(event), &bytes(event))
}

fn text_of<'e>(event: &'e Value, pointer: &str) -> &'e str {
    event.pointer(pointer).and_then(Value::as_str).unwrap()
}

fn said(answer: &Answer) -> (u16, &str) {
    (answer.status, std::str::from_utf8(&answer.body).unwrap())
}

fn nothing_happened(world: &World) {
    assert!(world.keys().is_empty(), "{:?}", world.keys());
    assert_eq!(world.twin.queue_len(), 0);
}

#[test]
fn g01_slack_hears_its_challenge_and_a_forger_does_not() {
    let world = handshakes();
    let event = &input("g01")["event"];
    let answer = send(&world, event);
    assert_eq!(said(&answer), (200, "challenge-0123456789"));
    assert!(answer.content_type.unwrap().starts_with("text/plain"));
    let mut forged = event.clone();
    forged["headers"]["x-slack-signature"] = format!("v0={}", "0".repeat(64)).into();
    let answer = send(&world, &forged);
    assert_eq!(answer.status, 401);
    assert!(!String::from_utf8(answer.body).unwrap().contains("challenge"));
    nothing_happened(&world);
}

#[test]
fn g02_a_handshake_is_verified_over_all_its_bytes() {
    let world = handshakes();
    let body = " {\"unknown\": {\"a\": [1, 2]},\n \"type\" : \"url_verification\", \"challenge\":\"c-02\" } ";
    assert_eq!(said(&world.deliver("slack", &[], body.as_bytes())), (200, "c-02"));
    let tight = br#"{"type":"url_verification","challenge":"c-02"}"#;
    let stamp = (world.now().0 / 1_000).to_string();
    let headers = [("x-slack-request-timestamp", stamp.as_str()), ("x-slack-signature", "v0=00")];
    assert_eq!(world.post("slack", &headers, tight).status, 401);
    nothing_happened(&world);
}

#[test]
fn g03_metas_subscription_needs_the_token_and_no_signature() {
    let world = handshakes();
    let [right, wrong, bare] = input("g03")["events"].as_array().unwrap().as_slice() else {
        panic!("three events")
    };
    let answer = send(&world, right);
    assert_eq!(said(&answer), (200, "CHALLENGE-01"));
    assert!(answer.content_type.unwrap().starts_with("text/plain"));
    for refused in [wrong, bare] {
        assert_eq!(said(&send(&world, refused)), (403, ""));
    }
    assert_eq!(world.post("meta", &[], b"{}").status, 401, "a delivery is signed as ever");
    let signature = "sha256=0000000000000000000000000000000000000000000000000000000000000000";
    assert_eq!(world.post("meta", &[("x-hub-signature-256", signature)], b"{}").status, 401);
    nothing_happened(&world);
}

#[test]
fn g05_a_probe_is_answered_and_other_methods_are_told_what_is_allowed() {
    let world = handshakes();
    for event in input("g05")["events"].as_array().unwrap() {
        let answer = send(&world, event);
        match text_of(event, "/requestContext/http/method") {
            "HEAD" | "GET" => assert_eq!(said(&answer), (200, "")),
            method => {
                assert_eq!(answer.status, 405, "{method}");
                let allow = answer.headers.iter().find(|(name, _)| name == "allow").unwrap();
                assert_eq!(allow.1, "POST, HEAD, GET");
            }
        }
    }
    nothing_happened(&world);
}

#[test]
fn g07_a_validation_token_comes_back_as_it_was_meant_and_never_as_html() {
    let world = handshakes();
    let [post, get] = input("g07")["events"].as_array().unwrap().as_slice() else {
        panic!("two events")
    };
    for (event, token) in [(post, "Validation: Testing client <br/>"), (get, "foo")] {
        let answer = send(&world, event);
        assert_eq!(said(&answer), (200, token));
        assert_eq!(answer.content_type.as_deref(), Some("text/plain; charset=utf-8"));
        assert!(answer.headers.iter().any(|header| header.1 == "nosniff"));
    }
    let notification = b"{\"value\":[]}";
    let answer = world.request("POST", "/webhooks/msgraph?validationToken=x", &[], notification);
    assert_eq!(answer.status, 401, "a delivery does not become a handshake by its query");
    nothing_happened(&world);
}

#[test]
fn g08_each_provider_gets_its_own_answer() {
    let world = handshakes();
    let form = b"MessageSid=SM1&MessageStatus=delivered";
    let answer = world.deliver("twilio", &[], form);
    assert_eq!(said(&answer), (200, "<Response></Response>"));
    assert_eq!(answer.content_type.as_deref(), Some("text/xml"));
    let event = br#"{"type":"event_callback","event_id":"Ev1","event":{"type":"x"}}"#;
    assert_eq!(said(&world.deliver("slack", &[], event)), (200, ""));
}

#[test]
fn g09_githubs_ping_is_kept_as_a_ping_and_changes_nothing() {
    let world = world();
    assert_eq!(send(&world, &input("g09")["event"]).status, 200);
    world.work();
    let row = world.row("github#g09");
    assert_eq!(row.evidence.event_type, "ping");
    assert_eq!(row.life.outcome, Some(Outcome::Ignored));
    assert!(row.effects.is_empty());
}

#[test]
fn g10_a_bad_signature_is_401_for_privacy_topics_too_and_explains_nothing() {
    let world = world();
    let topic = [
        ("x-shopify-topic", "shop/redact"),
        ("x-shopify-shop-domain", "one.example"),
        ("x-shopify-event-id", "E1"),
    ];
    let bad = ("x-shopify-hmac-sha256", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=");
    let answers = [
        world.post("shopify", &[&topic[..], &[bad]].concat(), b"{}"),
        world.post("shopify", &topic, b"{}"),
        world.deliver("shopify", &topic, b"{}"),
    ];
    assert_eq!(answers.each_ref().map(|answer| answer.status), [401, 401, 200]);
    for refused in &answers[..2] {
        assert_eq!(said(refused).1, "the signature was not accepted\n");
    }
}

/// The report would allow 415 for `text/xml`. The type of the content decides nothing here.
#[test]
fn g11_no_content_type_refuses_a_good_delivery() {
    let world = world();
    let report = input("g11");
    let body = text(report, "/body").as_bytes();
    for (n, content_type) in report["content_types"].as_array().unwrap().iter().enumerate() {
        let id = format!("g11-{n}");
        let headers = [
            ("content-type", content_type.as_str().unwrap()),
            ("x-github-event", "issues"),
            ("x-github-delivery", id.as_str()),
        ];
        assert_eq!(world.deliver("github", &headers, body).status, 200, "{content_type}");
        assert_eq!(world.row(&format!("github#{id}")).evidence.event_type, "issues.opened");
    }
}
