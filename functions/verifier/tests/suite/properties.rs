//! What must hold for every input: no panic, and no change of authenticated content that passes.

use proptest::prelude::*;
use verifier::{Headers, Preset, preset_names, preset_table};

use crate::signing::signable;
use crate::support::{Delivery, NOW_MS, preset};

/// Headers whose content the scheme authenticates, or which carry the proof itself.
pub(crate) fn proven_headers(preset: &Preset, delivery: &Delivery) -> Vec<(String, String)> {
    let signed: &[&str] = match preset.name() {
        "standard-webhooks" => &["webhook-id", "webhook-timestamp"],
        "svix" => &["svix-id", "svix-timestamp"],
        "slack" => &["x-slack-request-timestamp"],
        _ => &[],
    };
    let proof = preset.signature_headers();
    delivery
        .headers
        .iter()
        .filter(|(name, _)| signed.contains(name) || proof.iter().any(|known| known == name))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// Every single-bit change of a text that leaves it UTF-8.
fn flips(text: &str) -> impl Iterator<Item = String> {
    let bytes = text.as_bytes().to_vec();
    (0..bytes.len() * 8).filter_map(move |bit| {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        String::from_utf8(flipped).ok()
    })
}

#[test]
fn every_single_bit_of_a_covered_body_counts() {
    for name in preset_names() {
        // Chargebee's credentials cover no body, and Adyen's signature eight fields of it.
        let covered = !matches!(name, "chargebee" | "adyen");
        let Some((preset, key, delivery)) = signable(name).filter(|_| covered) else {
            continue;
        };
        let signed = delivery.signed(&preset, &key, NOW_MS);
        let keys = [key];
        for bit in 0..signed.body.len() * 8 {
            let mut flipped = signed.clone();
            flipped.body[bit / 8] ^= 1 << (bit % 8);
            if flipped.cause(&preset, &keys) == "verified" {
                // Two spellings of one form are one content: `%2B` and `%2b`.
                let content = |body| preset.document(body).map(std::borrow::Cow::into_owned).ok();
                let same = content(&flipped.body) == content(&signed.body);
                assert!(same, "{name}: bit {bit} of the body is not covered");
            }
        }
    }
}

#[test]
fn every_single_bit_of_an_adyen_items_signed_fields_counts() {
    let (preset, key, delivery) = signable("adyen").unwrap();
    let signed = delivery.signed(&preset, &key, NOW_MS);
    let keys = [key];
    let text = String::from_utf8(signed.body.clone()).unwrap();
    for field in [r#""A""#, r#""CAPTURE""#, r#""EUR""#, ":10", r#""success":"true""#] {
        let at = text.find(field).unwrap();
        for changed in flips(field) {
            let body = format!("{}{changed}{}", &text[..at], &text[at + field.len()..]);
            let flipped = Delivery { body: body.into_bytes(), ..signed.clone() };
            assert_ne!(flipped.cause(&preset, &keys), "verified", "{field} -> {changed}");
        }
    }
}

#[test]
fn every_single_bit_of_a_proven_header_counts() {
    for name in preset_names() {
        let Some((preset, key, delivery)) = signable(name) else {
            continue;
        };
        let signed = delivery.signed(&preset, &key, NOW_MS);
        let keys = [key];
        for (header, value) in proven_headers(&preset, &signed) {
            for flipped in flips(&value) {
                let tried = signed.with(&header, Some(&flipped));
                let verified = tried.cause(&preset, &keys) == "verified";
                // The name of the Basic scheme is case-insensitive.
                let spelling = name == "chargebee" && flipped.eq_ignore_ascii_case(&value);
                assert!(!verified || spelling, "{name}: {header}: {flipped}");
            }
        }
    }
}

#[test]
fn every_single_bit_of_a_signed_url_counts() {
    for name in ["square", "twilio"] {
        let (preset, key, delivery) = signable(name).unwrap();
        let url = "https://hooks.example/webhooks/source?a=1&b=%20x";
        let signed = delivery.at(url).signed(&preset, &key, NOW_MS);
        for flipped in flips(url) {
            let tried = signed.clone().at(&flipped);
            let verified = tried.cause(&preset, std::slice::from_ref(&key)) == "verified";
            assert!(!verified, "{name}: {flipped}");
        }
    }
}

/// Text that is near to what parsers look for.
fn header_value() -> impl Strategy<Value = String> {
    prop_oneof![
        ".{0,40}",
        "[tv01=,;.| a-f0-9&]{0,120}",
        "(t=17000000[0-9]{2}|v[01]=[a-f0-9]{60,66}|,|;|=| ){0,6}",
        "(v1a?,[A-Za-z0-9+/=]{40,46} ?){0,4}",
        "(sha256=)?[a-f0-9]{60,66}",
        "[A-Za-z0-9+/]{43}=",
        "Basic [A-Za-z0-9+/]{0,40}={0,2}",
        "17000000[0-9]{2}",
        "2023-11-14T22:13:2[0-9]Z",
        "https://[a-z.]{0,20}paypal.com/[a-z/.]{0,20}",
        "key=[a-z]{0,4},algorithm=HMAC_[A-Z0-9]{0,8}",
    ]
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..200),
        r#"[\[\]{}":,a-z0-9\\ ]{0,200}"#.prop_map(String::into_bytes),
        r#"(\{"(id|type|events|notificationItems|data)":("[a-z]{0,4}"|[0-9]{1,3}|\[\]|\{\}|null),?){0,4}\}{0,4}"#
            .prop_map(String::into_bytes),
        "((bt_signature|bt_payload|payload|id|a)=[a-z0-9%|&+/]{0,20}&?){0,6}"
            .prop_map(String::into_bytes),
    ]
}

/// Headers that some preset reads, with any value.
fn headers() -> impl Strategy<Value = Headers> {
    let names: Vec<String> = preset_names()
        .flat_map(|name| {
            let preset = preset(name);
            let mut names = preset.signature_headers();
            names.extend(preset.kept_headers().iter().cloned());
            names
        })
        .collect();
    let line = (proptest::sample::select(names), header_value());
    proptest::collection::vec(line, 0..40).prop_map(|lines| lines.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_input_panics_and_none_is_authentic_by_chance(
        headers in headers(),
        body in body(),
        query in "[a-zA-Z0-9=&%_]{0,60}",
        method in "(GET|POST|[A-Z]{0,6})",
        now_ms in any::<u64>(),
    ) {
        let mut delivery = Delivery::post(body).at("https://hooks.example/x");
        delivery.headers = headers;
        delivery.query = query;
        delivery.method = method;
        for name in preset_names() {
            let (preset, keys) = match signable(name) {
                Some((preset, key, _)) => (preset, vec![key]),
                None if name == "paypal" => {
                    let preset = preset(name);
                    let key = preset.key("k", "4JH86294D6297924G").unwrap();
                    (preset, vec![key])
                }
                None => continue,
            };
            let request = delivery.request();
            prop_assert!(preset.verify(&request, &keys, now_ms).is_err(), "{}", name);
            let _ = preset.events(&request);
            let _ = preset.document(&delivery.body);
            let _ = preset.handshake(&request, &keys, now_ms);
            for key in &keys {
                let _ = preset.sign_body(&delivery.body, key);
                let _ = preset.sign(&request, key, now_ms);
            }
        }
    }

    #[test]
    fn no_text_panics_as_a_key(text in ".{0,80}", name in proptest::sample::select(preset_names().collect::<Vec<_>>())) {
        let _ = preset(name).key("k", &text);
    }

    #[test]
    fn whatever_is_signed_verifies(body in body(), offset_s in 0_u64..300) {
        for name in ["stripe", "github", "shopify", "standard-webhooks", "recurly", "slack", "square"] {
            let (preset, key, delivery) = signable(name).unwrap();
            let delivery = Delivery { body: body.clone(), ..delivery };
            let signed = delivery.signed(&preset, &key, NOW_MS - offset_s * 1_000);
            prop_assert!(signed.verify(&preset, &[key]).is_ok(), "{}", name);
        }
    }

    #[test]
    fn a_json_event_is_read_as_serde_json_reads_it(
        id in "[ -~]{1,20}",
        other in proptest::collection::btree_map("[a-c]{1,3}", any::<i64>(), 0..5),
    ) {
        let mut document = serde_json::json!({ "id": id, "data": other });
        document["type"] = "t".into();
        let delivery = Delivery::post(document.to_string());
        let expected = serde_json::from_slice::<serde_json::Value>(&delivery.body).unwrap();
        match delivery.events(&preset("stripe")) {
            Ok(events) => prop_assert_eq!(Some(events[0].id.as_str()), expected["id"].as_str()),
            Err(_) => prop_assert!(id.trim().is_empty() || matches!(id.as_str(), "0" | "-0" | "null" | "undefined")),
        }
    }

    #[test]
    fn no_table_panics(
        name in proptest::sample::select(preset_names().collect::<Vec<_>>()),
        path in proptest::collection::vec("(verify|event|answer|handshake|time|batch|id|live|signed|header|layout|at|unit|[a-z]{1,3})", 1..4),
        value in prop_oneof![
            ".{0,20}".prop_map(toml::Value::String),
            any::<i64>().prop_map(toml::Value::Integer),
            any::<bool>().prop_map(toml::Value::Boolean),
            "[{}a-z./ |:]{0,20}".prop_map(toml::Value::String),
            Just(toml::Value::Array(Vec::new())),
            Just(toml::Value::Table(toml::Table::new())),
        ],
    ) {
        let mut table = preset_table(name).unwrap();
        let (last, parents) = path.split_last().unwrap();
        let mut at = &mut table;
        for step in parents {
            let entry = at.entry(step.clone()).or_insert_with(|| toml::Table::new().into());
            if !entry.is_table() {
                *entry = toml::Table::new().into();
            }
            at = entry.as_table_mut().unwrap();
        }
        at.insert(last.clone(), value);
        if let Ok(preset) = Preset::from_table(&table) {
            let _ = preset.verify(&Delivery::post("{}").request(), &[], NOW_MS);
        }
    }
}
