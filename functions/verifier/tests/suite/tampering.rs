//! Deliveries of every preset with random content, signed, then changed by one random bit of what the
//! scheme authenticates: none may pass. And batches, cut at random, against a plain JSON parser.
//!
//! `PROPTEST_CASES` is the budget (256 of each by default; `tests/README.md` has the large one). A
//! preset's head and its key `unsigned` say what its scheme leaves uncovered; that is left out here
//! by name.

use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};
use verifier::{Headers, preset_names};

use crate::properties::proven_headers;
use crate::signing::signable;
use crate::support::{Delivery, NOW_MS, preset};

/// Presets that sign, except the one whose credentials cover nothing of a delivery.
fn covered() -> Vec<&'static str> {
    preset_names().filter(|name| *name != "chargebee" && signable(name).is_some()).collect()
}

/// Text as people and machines write it, with what parsers trip over.
fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-zA-Z0-9_-]{1,24}",
        "[ -~]{0,24}",
        "[äß€😀\\\\/\"&=+%|:.,;\n\t ]{0,8}",
        Just(String::new()),
    ]
}

/// A body of the kind that a preset signs, before it is signed.
fn body(name: &'static str) -> BoxedStrategy<Vec<u8>> {
    let words = proptest::collection::vec((word(), word()), 1..6);
    match name {
        "twilio" => words
            .prop_map(|fields| {
                let mut form = form_urlencoded::Serializer::new(String::new());
                form.append_pair("MessageSid", "SM1").extend_pairs(fields);
                form.finish().into_bytes()
            })
            .boxed(),
        "braintree" => proptest::collection::vec("[a-z]{1,8}", 1..6)
            .prop_map(|names| {
                let inner = names.iter().map(|name| format!("<{name}>x</{name}>"));
                let inner = inner.collect::<Vec<_>>().concat();
                format!("<notification>{inner}</notification>").into_bytes()
            })
            .boxed(),
        "adyen" => (word(), 0_u32..1_000_000, any::<bool>())
            .prop_map(|(reference, value, success)| {
                json!({"live": "false", "notificationItems": [{"NotificationRequestItem": {
                    "pspReference": "P1", "originalReference": "O1", "merchantAccountCode": "M1",
                    "merchantReference": reference, "eventCode": "CAPTURE",
                    "success": success.to_string(), "amount": {"value": value, "currency": "EUR"}}}]})
                .to_string()
                .into_bytes()
            })
            .boxed(),
        _ => prop_oneof![
            words.prop_map(|members| {
                let object: serde_json::Map<String, Value> =
                    members.into_iter().map(|(key, value)| (key, value.into())).collect();
                json!({"id": "evt_1", "event_id": "evt_1", "data": object}).to_string().into_bytes()
            }),
            proptest::collection::vec(any::<u8>(), 1..200),
        ]
        .boxed(),
    }
}

/// The part of the body whose bits count.
fn covered_part(name: &str, body: &[u8]) -> std::ops::Range<usize> {
    if name != "adyen" {
        return 0..body.len();
    }
    // Of an Adyen item only eight fields are signed: the amount stands for all of them here, and
    // `properties` goes through each.
    let text = std::str::from_utf8(body).unwrap();
    let at = text.find("\"value\":").unwrap() + "\"value\":".len();
    at..at + text[at..].find(|character: char| !character.is_ascii_digit()).unwrap()
}

/// Whether a form or number that verifies is another spelling of the same content.
fn is_same_content(name: &str, one: &[u8], other: &[u8]) -> bool {
    let preset = preset(name);
    let document = |body| preset.document(body).map(std::borrow::Cow::into_owned).ok();
    document(one).is_some() && document(one) == document(other)
}

fn signed_by(names: Vec<&'static str>) -> impl Strategy<Value = (&'static str, Vec<u8>)> {
    proptest::sample::select(names).prop_flat_map(|name| (Just(name), body(name)))
}

/// The presets whose proof stands in headers.
fn proven_by_headers() -> Vec<&'static str> {
    covered().into_iter().filter(|name| !matches!(*name, "adyen" | "braintree")).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn one_bit_of_the_body_is_enough_to_be_refused((name, body) in signed_by(covered()), bit in any::<Index>()) {
        let (preset, key, delivery) = signable(name).unwrap();
        let signed = Delivery { body, ..delivery }.signed(&preset, &key, NOW_MS);
        let keys = [key];
        prop_assert_eq!(signed.cause(&preset, &keys), "verified", "{}", name);
        let part = covered_part(name, &signed.body);
        prop_assume!(!part.is_empty());
        let bit = bit.index(part.len() * 8);
        let mut flipped = signed.clone();
        flipped.body[part.start + bit / 8] ^= 1 << (bit % 8);
        if flipped.cause(&preset, &keys) == "verified" {
            prop_assert!(is_same_content(name, &signed.body, &flipped.body), "{}: bit {}", name, bit);
        }
    }

    #[test]
    fn one_bit_of_a_proven_header_is_enough_to_be_refused(
        (name, body) in signed_by(proven_by_headers()),
        header in any::<Index>(),
        bit in any::<Index>(),
    ) {
        let (preset, key, delivery) = signable(name).unwrap();
        let signed = Delivery { body, ..delivery }.signed(&preset, &key, NOW_MS);
        let proven = proven_headers(&preset, &signed);
        let (header, value) = &proven[header.index(proven.len())];
        let mut bytes = value.clone().into_bytes();
        let bit = bit.index(bytes.len() * 8);
        bytes[bit / 8] ^= 1 << (bit % 8);
        if let Ok(flipped) = String::from_utf8(bytes) {
            let tried = signed.with(header, Some(&flipped));
            prop_assert_ne!(tried.cause(&preset, &[key]), "verified", "{}: {}", name, header);
        }
    }

    #[test]
    fn one_bit_of_a_signed_address_is_enough_to_be_refused(
        name in proptest::sample::select(vec!["square", "twilio"]),
        path in "/[a-z0-9/._~-]{0,30}",
        query in "[a-z0-9=&%'+.]{0,30}",
        bit in any::<Index>(),
    ) {
        let (preset, key, delivery) = signable(name).unwrap();
        let url = format!("https://hooks.example{path}?q={query}");
        let signed = delivery.at(&url).signed(&preset, &key, NOW_MS);
        prop_assert_eq!(signed.cause(&preset, std::slice::from_ref(&key)), "verified");
        let mut bytes = url.into_bytes();
        let bit = bit.index(bytes.len() * 8);
        bytes[bit / 8] ^= 1 << (bit % 8);
        if let Ok(flipped) = String::from_utf8(bytes) {
            let tried = signed.clone().at(&flipped);
            prop_assert_ne!(tried.cause(&preset, &[key]), "verified", "{}", flipped);
        }
    }

    #[test]
    fn a_batch_is_cut_where_a_plain_parser_cuts_it(
        items in proptest::collection::vec(
            prop_oneof![
                (word(), word()).prop_map(|(id, text)| json!({"id": id, "x": {"events": [text]}})),
                word().prop_map(Value::from),
                any::<i64>().prop_map(Value::from),
                Just(json!({"id": 7})),
                Just(json!([{"id": "nested"}])),
                Just(Value::Null),
            ],
            0..20,
        ),
        spaces in proptest::collection::vec("[ \n\t\r]{0,3}", 2),
    ) {
        let list: Vec<String> = items.iter().map(Value::to_string).collect();
        let separator = format!("{},{}", spaces[0], spaces[1]);
        let body = format!("{{\"a\":[1],\"events\":{}[{}]{}}}", spaces[0], list.join(&separator), spaces[1]);
        let delivery = Delivery::post(body);
        let preset = preset("gocardless");
        let events = delivery.events(&preset).unwrap();
        prop_assert_eq!(events.len(), items.len());
        for ((event, item), text) in events.iter().zip(&items).zip(&list) {
            prop_assert_eq!(&event.body[..], text.as_bytes(), "the provider's own bytes");
            let id = item.get("id").and_then(|id| id.as_str().map(str::to_owned).or_else(|| id.as_i64().map(|n| n.to_string())));
            match &event.unusable {
                None => prop_assert_eq!(Some(&event.id), id.as_ref()),
                Some(_) => prop_assert!(event.id.starts_with("sha256:")),
            }
        }
    }

    #[test]
    fn a_body_near_to_a_batch_is_cut_or_refused_and_never_panics(
        body in r#"(\{"(events|notificationItems|live|a)":|\[|\]|\}|\{|,|"[a-z\\"]{0,4}"|[0-9eE.+-]{1,5}|null|true| ){0,40}"#,
    ) {
        for name in ["gocardless", "adyen"] {
            let preset = preset(name);
            let delivery = Delivery { headers: Headers::new(), ..Delivery::post(&body) };
            let is_json = serde_json::from_str::<Value>(&body).is_ok();
            match delivery.events(&preset) {
                Ok(_) => prop_assert!(is_json, "{}", body),
                Err(unusable) => prop_assert!(!unusable.reason.cause().is_empty()),
            }
        }
    }
}
