//! Setup handshakes, and why none of them signs what a stranger asks for.

use serde_json::Value;
use verifier::{Key, KeyDefect, Preset};

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

/// A source whose handshake is this, with an app secret and a handshake's token.
fn custom(handshake: &str) -> (Preset, [Key; 2]) {
    let preset = overridden("github", &format!("[handshake]\n{handshake}"));
    let keys = [
        preset.key("k", "app-secret-01").unwrap(),
        preset.handshake_token("subscribe", "meatyhamhock").unwrap(),
    ];
    (preset, keys)
}

fn answer(preset: &Preset, keys: &[Key], delivery: &Delivery) -> Option<(u16, String)> {
    let answer = preset.handshake(&delivery.request(), keys, NOW_MS)?;
    Some((answer.status, String::from_utf8(answer.body).unwrap()))
}

#[test]
fn a_subscription_is_confirmed_to_whoever_knows_the_token() {
    let (preset, keys) = custom("subscribe = true");
    let vector = vector("meta");
    let query = vector["request"]["query"].as_str().unwrap();
    let confirmed = Some((200, vector["response"]["body"].as_str().unwrap().to_owned()));
    assert_eq!(answer(&preset, &keys, &Delivery::get(query)), confirmed);
    assert_eq!(preset.methods(), ["POST", "GET"]);
    let refused = Some((403, String::new()));
    for query in [
        "",
        "hub.mode=subscribe&hub.challenge=1",
        "hub.mode=subscribe&hub.challenge=1&hub.verify_token=",
        "hub.mode=subscribe&hub.challenge=1&hub.verify_token=meatyhamhocks",
        "hub.mode=subscribe&hub.challenge=1&hub.verify_token=app-secret-01",
        "hub.mode=unsubscribe&hub.challenge=1&hub.verify_token=meatyhamhock",
        "hub.mode=subscribe&hub.verify_token=meatyhamhock",
        "hub.mode=subscribe&hub.challenge=%0d%0a&hub.verify_token=meatyhamhock",
        "hub.mode=subscribe&hub.challenge=1&hub.challenge=2&hub.verify_token=meatyhamhock",
        "hub.mode=subscribe&hub.challenge=1&hub.verify_token=meatyhamhock&hub.verify_token=x",
    ] {
        assert_eq!(answer(&preset, &keys, &Delivery::get(query)), refused, "{query}");
    }
    assert_eq!(answer(&preset, &keys[..1], &Delivery::get(query)), refused, "no token is stored");
    assert_eq!(answer(&preset, &keys, &Delivery::post("{}")), None, "a post is a delivery");
}

#[test]
fn a_handshakes_token_verifies_nothing() {
    let (preset, [_, token]) = custom("subscribe = true");
    let as_key = preset.key("k", "meatyhamhock").unwrap();
    let forged = Delivery::post("{}").signed(&preset, &as_key, NOW_MS);
    assert_eq!(forged.cause(&preset, std::slice::from_ref(&token)), "no_usable_key");
    for (text, defect) in [
        ("", KeyDefect::Empty),
        (" meatyhamhock", KeyDefect::Padded),
        ("changeme", KeyDefect::Placeholder),
    ] {
        assert_eq!(preset.handshake_token("t", text).unwrap_err(), defect, "{text:?}");
    }
}

#[test]
fn a_parameter_of_the_query_is_echoed_to_a_request_without_a_body() {
    for (provider, parameter) in [("microsoft-graph", "validationToken"), ("dropbox", "challenge")]
    {
        let vector = vector(provider);
        let (preset, keys) = custom(&format!("echo_query = \"{parameter}\""));
        let mut asked = Delivery::get(vector["request"]["query"].as_str().unwrap());
        vector["method"].as_str().unwrap().clone_into(&mut asked.method);
        let given = preset.handshake(&asked.request(), &keys, NOW_MS).unwrap();
        assert_eq!(given.body, vector["response"]["body"].as_str().unwrap().as_bytes());
        assert_eq!(given.content_type.as_deref(), Some("text/plain; charset=utf-8"));
        let nosniff = ("x-content-type-options".to_owned(), "nosniff".to_owned());
        assert!(given.headers.contains(&nosniff));
        asked.body = b"{}".to_vec();
        assert_eq!(answer(&preset, &keys, &asked), None, "with a body it is a delivery");
        assert_eq!(answer(&preset, &keys, &Delivery::get("other=1")), None);
        let twice = format!("{parameter}=1&{parameter}=2");
        assert_eq!(answer(&preset, &keys, &Delivery::get(&twice)), None);
        let long = format!("{parameter}={}", "x".repeat(1_025));
        assert_eq!(answer(&preset, &keys, &Delivery::get(&long)), Some((403, String::new())));
    }
}
