//! Setup handshakes, and why none of them signs what a stranger asks for.

use serde_json::Value;

use crate::support::{Delivery, NOW_MS, overridden, preset};

const VECTORS: &str = include_str!("../../../../tests/vectors/handshakes.json");

fn vector(provider: &str) -> Value {
    let vectors: Vec<Value> = serde_json::from_str(VECTORS).unwrap();
    vectors.into_iter().find(|vector| vector["provider"] == provider).unwrap()
}

#[test]
fn slack_hears_its_challenge_when_the_request_is_signed() {
    let vector = vector("slack");
    let preset = preset("slack");
    let key = preset.key("k", "slack-secret-01").unwrap();
    let keys = [key.clone()];
    let body = vector["request"]["body"].as_str().unwrap();
    let signed = Delivery::post(body).signed(&preset, &key, NOW_MS);
    let answer = preset.handshake(&signed.request(), &keys, NOW_MS).expect("a handshake");
    assert_eq!(answer.status, 200);
    assert!(answer.content_type.unwrap().starts_with("text/plain"));
    assert_eq!(
        String::from_utf8(answer.body).unwrap(),
        vector["response"]["body"].as_str().unwrap()
    );

    let unsigned = Delivery::post(body);
    assert_eq!(preset.handshake(&unsigned.request(), &keys, NOW_MS), None);
    assert_eq!(unsigned.cause(&preset, &keys), "header_missing");
    let forged = signed.with("x-slack-signature", Some(&format!("v0={}", "0".repeat(64))));
    assert_eq!(preset.handshake(&forged.request(), &keys, NOW_MS), None);
    let stale = NOW_MS + 301_000;
    assert_eq!(preset.handshake(&signed.request(), &keys, stale), None);
}

#[test]
fn slack_events_are_not_handshakes() {
    let preset = preset("slack");
    let key = preset.key("k", "slack-secret-01").unwrap();
    for body in [
        r#"{"type":"event_callback","challenge":"x"}"#,
        r#"{"type":"url_verification"}"#,
        r#"{"type":"url_verification","challenge":{}}"#,
        r#"{"type":"url_verification","challenge":"a\r\nb"}"#,
        "not json",
    ] {
        let signed = Delivery::post(body).signed(&preset, &key, NOW_MS);
        let keys = [key.clone()];
        assert_eq!(preset.handshake(&signed.request(), &keys, NOW_MS), None);
    }
    let long = format!(r#"{{"type":"url_verification","challenge":"{}"}}"#, "x".repeat(2_000));
    let signed = Delivery::post(long).signed(&preset, &key, NOW_MS);
    assert_eq!(preset.handshake(&signed.request(), &[key], NOW_MS), None);
}

#[test]
fn braintree_hears_its_challenge_signed() {
    let vector = vector("braintree");
    let preset = preset("braintree");
    let keys = [preset.key("k", vector["secret"].as_str().unwrap()).unwrap()];
    let probe = Delivery::get(vector["request"]["query"].as_str().unwrap());
    let answer = preset.handshake(&probe.request(), &keys, NOW_MS).expect("a handshake");
    assert_eq!(
        String::from_utf8(answer.body).unwrap(),
        vector["response"]["body"].as_str().unwrap()
    );
    assert!(preset.methods().contains(&"GET".to_owned()));
}

#[test]
fn braintree_challenges_are_hexadecimal_and_nothing_else_is_signed() {
    let preset = preset("braintree");
    let keys = [preset.key("k", "public:private").unwrap()];
    let challenge = "20f9f8ed05f77439fe955c977e4c8a53";
    for query in [
        "",
        "bt_challenge=",
        "bt_challenge=20f9",
        "bt_challenge=20F9F8ED05F77439FE955C977E4C8A53",
        "bt_challenge=PG5vdGlmaWNhdGlvbj48L25vdGlmaWNhdGlvbj4",
        "bt_challenge=20f9f8ed05f77439fe955c977e4c8a53ff",
        "bt_challenge=20f9f8ed05f77439fe955c977e4c8a53&bt_challenge=20f9f8ed05f77439fe955c977e4c8a53",
    ] {
        let probe = Delivery::get(query);
        assert_eq!(preset.handshake(&probe.request(), &keys, NOW_MS), None);
    }
    let mut post = Delivery::get(&format!("bt_challenge={challenge}"));
    post.method = "POST".to_owned();
    assert_eq!(preset.handshake(&post.request(), &keys, NOW_MS), None);
}

#[test]
fn a_signed_challenge_is_no_signed_delivery() {
    let preset = preset("braintree");
    let keys = [preset.key("k", "public:private").unwrap()];
    let challenge = "20f9f8ed05f77439fe955c977e4c8a53";
    let probe = Delivery::get(&format!("bt_challenge={challenge}"));
    let answer = preset.handshake(&probe.request(), &keys, NOW_MS).unwrap();
    let signature = String::from_utf8(answer.body).unwrap();
    let form = format!("bt_signature={}&bt_payload={challenge}", signature.replace('|', "%7C"));
    assert_eq!(Delivery::post(form).cause(&preset, &keys), "body_malformed");
}

#[test]
fn probes_get_an_empty_200_where_a_source_asks_for_it() {
    let preset = overridden("github", "[handshake]\nprobe = [\"HEAD\", \"GET\"]");
    for method in ["HEAD", "GET"] {
        let mut probe = Delivery::get("");
        probe.method = method.to_owned();
        let answer = preset.handshake(&probe.request(), &[], NOW_MS).unwrap();
        assert_eq!((answer.status, answer.body.len()), (200, 0));
    }
    assert_eq!(preset.methods(), ["POST", "HEAD", "GET"]);
    let delivery = Delivery::post("{}");
    assert_eq!(preset.handshake(&delivery.request(), &[], NOW_MS), None);
}

#[test]
fn what_is_longer_than_a_request_for_an_echo_is_a_delivery() {
    let preset = preset("slack");
    let key = preset.key("k", "secret-0123456789").unwrap();
    let answered = |pad: usize| {
        let body =
            format!(r#"{{"type":"url_verification","challenge":"c","pad":"{}"}}"#, "x".repeat(pad));
        let signed = Delivery::post(body).signed(&preset, &key, NOW_MS);
        preset.handshake(&signed.request(), std::slice::from_ref(&key), NOW_MS).is_some()
    };
    assert!(answered(10_000));
    assert!(!answered(20_000));
}
