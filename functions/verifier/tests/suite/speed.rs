//! What a verdict costs, measured: `cargo test -p verifier --release --test suite speed -- --ignored
//! --nocapture --test-threads=1`. Ignored otherwise, since times mean something only in a release
//! build.

use std::hint::black_box;
use std::time::Duration;

use hmac::{Hmac, KeyInit as _, Mac as _};
use proptest::prelude::*;
use rustix::time::{ClockId, clock_gettime};
use sha2::Sha256;
use verifier::{Headers, Key, Preset, preset_names};

use crate::signing::signable;
use crate::support::{Delivery, NOW_MS, preset};

/// The least of many takes: what the work costs when nothing else interferes. Counted is the time
/// that this thread ran, not the time that passed.
fn least<T>(takes: u32, mut work: impl FnMut() -> T) -> Duration {
    let ran = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap();
    let take = |work: &mut dyn FnMut() -> T| {
        let begun = ran();
        black_box(work());
        ran().checked_sub(begun).unwrap()
    };
    (0..takes).map(|_| take(&mut work)).min().unwrap()
}

/// A delivery of about this size, signed.
fn sized(name: &str, bytes: usize) -> (Preset, [Key; 1], Delivery) {
    let (preset, key, delivery) = signable(name).unwrap();
    let body = format!(r#"{{"id":"evt_1","type":"t","pad":"{}"}}"#, "x".repeat(bytes));
    let signed = Delivery { body: body.into_bytes(), ..delivery }.signed(&preset, &key, NOW_MS);
    (preset, [key], signed)
}

fn bare(body: &[u8], takes: u32) -> Duration {
    least(takes, || {
        let mut mac = Hmac::<Sha256>::new_from_slice(b"secret-0123456789").unwrap();
        mac.update(body);
        mac.finalize()
    })
}

#[test]
#[ignore = "a measurement: needs --release"]
fn five_kilobytes_cost_at_most_five_bare_hmacs() {
    println!("5 KB       bare HMAC     verify   ratio    + events");
    for name in
        ["github", "stripe", "shopify", "standard-webhooks", "slack", "paddle", "square", "recurly"]
    {
        let (preset, keys, delivery) = sized(name, 5_000);
        let bare = bare(&delivery.body, 2_000);
        let request = delivery.request();
        let verify = least(2_000, || preset.verify(&request, &keys, NOW_MS).unwrap());
        let events = least(2_000, || preset.events(&request).is_ok());
        let ratio = verify.as_secs_f64() / bare.as_secs_f64();
        println!("{name:<20} {bare:>10?} {verify:>10?} {ratio:>7.2} {:>10?}", verify + events);
        assert!(ratio <= 5.0, "{name}: {ratio:.2} times a bare HMAC");
    }
}

#[test]
#[ignore = "a measurement: needs --release"]
fn the_cost_is_linear_in_the_body() {
    println!("ns a KB    64 KB   256 KB     1 MB     4 MB");
    for name in ["github", "stripe", "standard-webhooks", "square"] {
        let costs = [64, 256, 1_024, 4_096].map(|kilobytes| {
            let (preset, keys, delivery) = sized(name, kilobytes * 1_024);
            let request = delivery.request();
            let least = least(30, || preset.verify(&request, &keys, NOW_MS).unwrap());
            u64::try_from(least.as_nanos()).unwrap() / kilobytes as u64
        });
        println!("{name:<18}{}", costs.map(|cost| format!("{cost:>9}")).concat());
        let (most, fewest) = (costs.iter().max().unwrap(), costs.iter().min().unwrap());
        assert!(most * 10 <= fewest * 15, "{name}: {costs:?} is not linear");
    }
}

/// Pieces of what parsers look for.
const HOSTILE: &str = r#"(\{|\}|\[|\]|,|:|"|\\|\\u00|[a-c0-9]|&|=|%4|%00|\+|\x00|\{\}|"id":|"a":1,|"events":\[|"notificationItems":\[|bt_payload=|bt_signature=|MessageSid=|payload=|<a>|é|\n){0,6}"#;

/// The largest body the platform lets in.
const BODY_BYTES_MAX: usize = 4_718_592;

/// Bodies of the largest size, each the worst case of some part.
fn hostile_bodies() -> Vec<(&'static str, Vec<u8>)> {
    const SIZE: usize = BODY_BYTES_MAX;
    let fill = |head: &str, piece: &str, tail: &str| {
        let times = (SIZE - head.len() - tail.len()) / piece.len();
        format!("{head}{}{tail}", piece.repeat(times)).into_bytes()
    };
    let xml = {
        use base64::{Engine as _, engine::general_purpose::STANDARD};
        let deep = format!("<notification>{}", "<a>".repeat(SIZE / 5));
        format!("bt_signature=public%7C{}&bt_payload={}", "0".repeat(40), STANDARD.encode(deep))
    };
    // As many signatures as are looked at, each in the name of the right key.
    let pairs =
        format!("bt_signature={}&bt_payload=", format!("public|{}%26", "0".repeat(40)).repeat(32));
    vec![
        ("deep lists", fill("", "[", "")),
        ("deep objects", fill("", "{\"a\":", "")),
        ("deep under a key", fill("{\"notificationItems\":", "[", "")),
        ("many keys", fill("{\"a\":1", ",\"b\":1", "}")),
        ("one key many times", fill("{\"id\":1", ",\"id\":1", "}")),
        ("many elements", fill("{\"events\":[0", ",0", "]}")),
        ("many empty events", fill("{\"events\":[{}", ",{}", "]}")),
        ("many items", fill("{\"notificationItems\":[{}", ",{}", "]}")),
        (
            "one item of many keys",
            fill(
                "{\"notificationItems\":[{\"NotificationRequestItem\":{\"a\":1",
                ",\"b\":1",
                "}}]}",
            ),
        ),
        ("escapes", fill("{\"id\":\"", "\\u0041", "\"}")),
        ("digits", fill("{\"id\":", "9", "}")),
        ("many fields", fill("", "a=1&", "")),
        ("many equal fields", fill("", "MessageSid=1&", "")),
        ("percent", fill("payload=", "%41", "")),
        ("percent of JSON", fill("payload=", "%7B", "")),
        ("signatures in a form", fill("bt_payload=aaaa&bt_signature=", "a%7Cb%26", "")),
        ("deep XML", xml.into_bytes()),
        ("many pairs over much base64", fill(&pairs, "A", "")),
        ("zeros under a name", fill("MessageSid=", "\0", "")),
        ("escapes in an id", fill("MessageSid=", "%00", "")),
        ("text under a name", fill("MessageSid=", "x", "")),
        ("zeros", vec![0; SIZE]),
        ("no UTF-8", vec![0xff; SIZE]),
    ]
}

/// The largest body that this provider could sign inside, with the least in each of its parts.
fn largest_signed_inside(name: &str, preset: &Preset, key: &Key) -> Option<Vec<u8>> {
    let (head, piece, tail, times) = match name {
        "adyen" => {
            let item = r#"{"NotificationRequestItem":{"pspReference":"A"}},"#;
            (r#"{"notificationItems":["#, item, r"{}]}", BODY_BYTES_MAX / (item.len() + 80))
        }
        "braintree" => ("<n>", "<a>1</a>", "</n>", BODY_BYTES_MAX * 3 / 4 / 8),
        _ => return None,
    };
    let text = format!("{head}{}{tail}", piece.repeat(times)).replace(",{}", "");
    Some(preset.sign_body(text.as_bytes(), key).unwrap().into_owned())
}

/// Header values as long as the gateway lets in (10 KB in all).
fn hostile_headers(preset: &Preset) -> Vec<Headers> {
    let mut names = preset.signature_headers();
    names.extend(preset.kept_headers().iter().cloned());
    ["v1=", "t=1,", "v1,", ",", " ", ";", "=", "|", "a.b.", "sha256=", "AAAA"]
        .map(|piece| {
            let value = piece.repeat(10_000 / piece.len() / names.len().max(1));
            names.iter().map(|name| (name.clone(), value.clone())).collect()
        })
        .to_vec()
}

#[test]
#[ignore = "a measurement: needs --release"]
fn no_stranger_costs_fifty_milliseconds() {
    let bodies = hostile_bodies();
    let mut too_slow = Vec::new();
    let bare = bare(&vec![b'x'; BODY_BYTES_MAX], 20);
    println!("a bare HMAC-SHA256 of {BODY_BYTES_MAX} bytes: {bare:?}");
    println!("slowest input          ms   x bare  step       body");
    for name in preset_names() {
        let (preset, keys, sample) = match signable(name) {
            Some((preset, key, sample)) => (preset, vec![key], sample),
            None => (preset(name), Vec::new(), Delivery::post("")),
        };
        let mut slowest = [(Duration::ZERO, "", ""); 4];
        for (what, body) in &bodies {
            let unsigned = Delivery { body: body.clone(), ..sample.clone() };
            // As a stranger sends it, and as a provider gone mad would sign it.
            let mut tried: Vec<Delivery> = vec![unsigned.clone()];
            if let Some(key) = keys.first()
                && let Ok(added) = preset.sign(&unsigned.request(), key, NOW_MS)
            {
                let signed =
                    added.iter().fold(unsigned, |signed, (name, value)| signed.header(name, value));
                tried.push(signed);
            }
            if *what == "many items"
                && let Some(key) = keys.first()
                && let Some(body) = largest_signed_inside(name, &preset, key)
            {
                tried.push(Delivery { body, ..sample.clone() });
            }
            if *what == "zeros" {
                let sample = Delivery { body: b"{}".to_vec(), ..sample.clone() };
                let with = |headers| Delivery { headers, ..sample.clone() };
                tried.extend(hostile_headers(&preset).into_iter().map(with));
            }
            for delivery in &tried {
                let request = delivery.request();
                let steps = [
                    ("verify", least(3, || preset.verify(&request, &keys, NOW_MS).is_ok())),
                    ("events", least(3, || preset.events(&request).is_ok())),
                    ("document", least(3, || preset.document(&delivery.body).is_ok())),
                    ("handshake", least(3, || preset.handshake(&request, &keys, NOW_MS))),
                ];
                for (slowest, (step, took)) in slowest.iter_mut().zip(steps) {
                    *slowest = (*slowest).max((took, step, what));
                }
            }
        }
        for (took, step, what) in slowest {
            let ratio = took.as_secs_f64() / bare.as_secs_f64();
            println!(
                "{name:<18}{:>7.1}  {ratio:>7.1}  {step:<9}  {what}",
                took.as_secs_f64() * 1_000.0
            );
            if took >= Duration::from_millis(50) {
                too_slow.push(format!("{name}: {step} of {what} took {took:?}"));
            }
        }
    }
    assert!(too_slow.is_empty(), "{too_slow:#?}");
}

/// A public key has no running state: each signature hashes the body again. What a stranger can ask
/// for is bounded by how many are looked at.
#[test]
#[ignore = "a measurement: needs --release"]
fn many_public_key_signatures_cost_no_more_than_a_few() {
    let preset = preset("standard-webhooks");
    let key = preset.key("k", "whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=").unwrap();
    let body = vec![b'x'; BODY_BYTES_MAX];
    let bare = bare(&body, 20);
    let signatures = |n: usize| {
        use base64::{Engine as _, engine::general_purpose::STANDARD};
        let each = |n: usize| {
            let mut bytes = [1_u8; 64];
            bytes[0] = u8::try_from(n).unwrap();
            bytes[63] = 0;
            format!("v1a,{}", STANDARD.encode(bytes))
        };
        (0..n).map(each).collect::<Vec<_>>().join(" ")
    };
    for n in [1, 2, 3, 4, 32] {
        let delivery = Delivery::post(&body)
            .header("webhook-id", "msg_1")
            .header("webhook-timestamp", &(NOW_MS / 1_000).to_string())
            .header("webhook-signature", &signatures(n));
        let request = delivery.request();
        let took = least(3, || preset.verify(&request, std::slice::from_ref(&key), NOW_MS).is_ok());
        let ratio = took.as_secs_f64() / bare.as_secs_f64();
        println!("{n:>2} signatures: {took:?}, {ratio:.1} times a bare HMAC");
        assert!(took < Duration::from_millis(50), "{n} signatures took {took:?}");
    }
}

proptest! {
    // Each case is the largest body at every step of every preset: an eighth of PROPTEST_CASES.
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases.div_ceil(8),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    #[ignore = "a measurement: needs --release"]
    fn no_random_body_costs_fifty_milliseconds(
        head in HOSTILE,
        piece in HOSTILE.prop_filter("something", |piece| !piece.is_empty()),
        tail in HOSTILE,
    ) {
        let times = (BODY_BYTES_MAX - head.len() - tail.len()) / piece.len();
        let body = format!("{head}{}{tail}", piece.repeat(times)).into_bytes();
        for name in preset_names() {
            let (preset, keys, sample) = match signable(name) {
                Some((preset, key, sample)) => (preset, vec![key], sample),
                None => (preset(name), Vec::new(), Delivery::post("")),
            };
            let unsigned = Delivery { body: body.clone(), ..sample };
            let mut tried = unsigned.clone();
            if let Some(key) = keys.first() {
                for (header, value) in preset.sign(&unsigned.request(), key, NOW_MS).unwrap_or_default() {
                    tried.headers.push(&header, value);
                }
            }
            let request = tried.request();
            for (step, took) in [
                ("verify", least(2, || preset.verify(&request, &keys, NOW_MS).is_ok())),
                ("events", least(2, || preset.events(&request).is_ok())),
                ("document", least(2, || preset.document(&tried.body).is_ok())),
                ("handshake", least(2, || preset.handshake(&request, &keys, NOW_MS))),
            ] {
                prop_assert!(took < Duration::from_millis(50), "{name}: {step} took {took:?}");
            }
        }
    }
}
