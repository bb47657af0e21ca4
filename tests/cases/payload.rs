//! Kind f: sizes, digits, characters and keys that break receivers.

use crate::{
    reports::{input, text},
    shop::{github, shop, world},
};
use ledger::{EventKey, FailureClass, SourceName, Status};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use support::{World, WorldBuilder};

fn dead_for_good(world: &World, key: &str) -> String {
    let life = world.row(key).life;
    let failure = life.failure.unwrap_or_else(|| panic!("{key} is {}", life.status));
    assert_eq!((life.status, failure.class), (Status::Dead, FailureClass::Permanent), "{key}");
    failure.error
}

/// Text that compresses to about two thirds, the same in every run.
fn noise(chars: usize) -> String {
    let mut state = 1_u64;
    let digit = |_| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from_digit(u32::try_from(state >> 59).unwrap(), 32).unwrap()
    };
    (0..chars).map(digit).collect()
}

#[test]
fn f03_a_body_above_an_items_limit_is_stored_whole_and_comes_back() {
    let sizes = [390_000, 409_599, 409_600, 409_601];
    let bodies = sizes.map(noise).into_iter().chain(["\u{e9}".repeat(250_000)]);
    for (n, body) in bodies.enumerate() {
        let world = world();
        assert_eq!(
            github(&world, &format!("f03-{n}"), json!({"b": body}).to_string().as_bytes()),
            200
        );
        let key = format!("github#f03-{n}");
        assert_eq!(world.body(&key), json!({"b": body}).to_string().as_bytes());
        let stored = world.row(&key).evidence.body;
        assert!(stored.inline.is_none_or(|bytes| bytes.len() <= 4_096));
        world.work();
        assert_eq!(world.status(&key), Status::Settled);
    }
}

/// The body's id is GitHub's header here; `/version` and `/amount` are what a projection reads.
const NUMBERS: &str = r#"
[sources.numbers]
preset = "github"
secret = "github"
[[sources.numbers.projections]]
on = ["versioned"]
entity = { type = "thing", id = "/id" }
order = { strategy = "version", by = "/version" }
set = { id = "/id" }
[[sources.numbers.projections]]
on = ["counted"]
entity = { type = "count", id = "/id" }
order = { strategy = "none" }
add = { total = "/amount" }
[[sources.numbers.projections]]
on = ["exact"]
entity = { type = "exact", id = "/id" }
order = { strategy = "version", by = "/qty" }
set = { amount = "/amount", price = "/price", qty = "/qty", neg = "/neg" }
[[sources.numbers.projections]]
on = ["too-exact"]
entity = { type = "too-exact", id = "/id" }
order = { strategy = "version", by = "/qty" }
set = { total = "/total" }
"#;

fn numbers(event: &str, delivery: &str, body: &str) -> World {
    let world = WorldBuilder::new(NUMBERS).keys("github", &["gh-secret-01"]).build();
    let headers = [("x-github-event", event), ("x-github-delivery", delivery)];
    assert_eq!(world.deliver("numbers", &headers, body.as_bytes()).status, 200);
    world.work();
    world
}

#[test]
fn f05_a_number_beyond_every_float_is_kept_and_never_guessed_at() {
    for body in input("f05")["bodies"].as_array().unwrap() {
        let body = body.as_str().unwrap();
        let world = numbers("unused", "f05", body);
        assert_eq!(world.status("numbers#f05"), Status::Settled, "{body}");
        assert_eq!(world.body("numbers#f05"), body.as_bytes());
    }
    let version = numbers("versioned", "f05d", r#"{"id":"evt_f05d","version":1E400}"#);
    assert!(dead_for_good(&version, "numbers#f05d").contains("38 digits"));
    let amount = numbers("counted", "f05", r#"{"id":"evt_f05","amount":1e400}"#);
    dead_for_good(&amount, "numbers#f05");
}

#[test]
fn f06_decimals_keep_their_digits_from_the_body_to_the_state() {
    let body = text(input("f06"), "/body");
    let world = numbers("exact", "f06", body);
    assert_eq!(world.body("numbers#f06"), body.as_bytes());
    let state = Value::Object(world.entity("numbers#exact#evt_f06").state);
    let stored = aws::item::decode_json(&aws::item::encode_json(&state));
    for (field, exact) in [("amount", "0.1234567890123456789"), ("price", "10.10"), ("qty", "1.0")]
    {
        let value = state[field].to_string();
        assert_eq!(value, exact);
        let kept: f64 = stored[field].to_string().parse().unwrap();
        assert!(
            (kept - exact.parse::<f64>().unwrap()).abs() < f64::EPSILON,
            "{field} is stored as {kept}"
        );
    }
    // DynamoDB keeps 38 digits: the 39th is refused in plain sight, never rounded.
    dead_for_good(&numbers("too-exact", "f06", body), "numbers#f06");
}

/// A provider whose id stands in the body.
fn acme() -> World {
    let sources = r#"
        [sources.acme]
        preset = "github"
        secret = "github"
        [sources.acme.event]
        id = "/id"
        type = "/type"
        identity = "body"
        [[sources.acme.projections]]
        on = ["a"]
        entity = { type = "thing", id = "/data/object/id" }
        order = { strategy = "version", by = "/v" }
        set = { status = "/data/status" }
    "#;
    WorldBuilder::new(sources).keys("github", &["gh-secret-01"]).build()
}

fn deliver(world: &World, body: &[u8]) -> u16 {
    world.deliver("acme", &[], body).status
}

fn kept_as(body: &[u8]) -> String {
    format!("acme#sha256:{}", support::sha256_hex(body))
}

/// One rule: a repeated key that decides the identity makes the event unusable, so that no two
/// readers can see two ids in it.
#[test]
fn f07_an_id_that_is_there_twice_is_no_id() {
    let (world, body) = (acme(), text(input("f07"), "/body").as_bytes());
    assert_eq!(deliver(&world, body), 200);
    let reason = dead_for_good(&world, &kept_as(body));
    assert!(reason.contains("twice"), "{reason}");
    assert_eq!(world.keys().len(), 1);
}

/// The report would answer 400 to a null in an id: the event is authentic, so it is kept, under a
/// hash of its id that no terminal can choke on.
#[test]
fn f08_null_characters_are_kept_in_texts_hashed_in_ids_and_no_json_when_raw() {
    let world = acme();
    let in_text = br#"{"id":"evt_f08","text":"ab\u0000cd"}"#;
    assert_eq!(deliver(&world, in_text), 200);
    assert_eq!(world.body("acme#evt_f08"), in_text);
    assert_eq!(deliver(&world, br#"{"id":"evt\u0000_f08b"}"#), 200);
    let raw = b"{\"id\":\"evt_f08c\",\"text\":\"ab\x00cd\"}";
    assert_eq!(deliver(&world, raw), 200);
    dead_for_good(&world, &kept_as(raw));
    assert!(world.keys().iter().all(|key| !key.contains('\0')), "{:?}", world.keys());
    assert_eq!(world.keys().len(), 3);
}

#[test]
fn f10_bytes_that_are_no_utf_8_are_verified_kept_and_named() {
    let report = input("f10");
    let bodies = report["bodies_hex"].as_array().unwrap();
    for (n, (body, signature)) in
        bodies.iter().zip(report["x_hub_signature_256"].as_array().unwrap()).enumerate()
    {
        let (world, body) = (world(), hex::decode(body.as_str().unwrap()).unwrap());
        let delivery = format!("f10-{n}");
        let headers = [
            ("x-github-event", "push"),
            ("x-github-delivery", delivery.as_str()),
            ("x-hub-signature-256", signature.as_str().unwrap()),
        ];
        assert_eq!(world.post("github", &headers, &body).status, 200);
        let key = world.keys().remove(0);
        assert_eq!(dead_for_good(&world, &key), "the body is not UTF-8");
        assert_eq!(world.body(&key), body, "nothing is stored with U+FFFD");
    }
}

#[test]
fn f11_an_empty_id_is_never_a_key() {
    let world = acme();
    for body in [r#"{"id":"","type":"x"}"#, r#"{"id":" ","type":"x"}"#] {
        assert_eq!(deliver(&world, body.as_bytes()), 200);
    }
    assert_eq!(
        deliver(&world, br#"{"id":"evt_f11","type":"a","v":1,"data":{"object":{"id":""}}}"#),
        200
    );
    world.work();
    dead_for_good(&world, "acme#evt_f11");
    assert!(world.keys().iter().all(|key| !key.trim().ends_with('#')), "{:?}", world.keys());
    assert_eq!(github(&shop().build(), "", b"{}"), 200);
}

#[test]
fn f13_hash_signs_and_slashes_in_ids_make_no_two_events_one() {
    let keys: BTreeSet<EventKey> = [
        ("a", "#b"),
        ("a", "b#"),
        ("a", "b"),
        ("stripe", "acct_1#evt#2"),
        ("stripe", "acct_1#evt2"),
    ]
    .map(|(source, id)| EventKey::new(&SourceName::new(source).unwrap(), id).unwrap())
    .into();
    assert_eq!(keys.len(), 5);

    let world = acme();
    let ids = input("f13")["ids"].as_array().unwrap();
    for id in ids {
        assert_eq!(deliver(&world, json!({"id": id}).to_string().as_bytes()), 200);
    }
    assert_eq!(world.keys().len(), ids.len());
    for id in ids {
        // As an operator types it.
        let key = EventKey::parse(&format!("acme#{}", id.as_str().unwrap())).unwrap();
        assert_eq!(world.row(key.as_str()).evidence.key.event_id(), id.as_str().unwrap());
    }
}

#[test]
fn f14_what_fits_the_platform_is_taken_and_what_does_not_is_counted() {
    let limit = 6 * 1_024 * 1_024;
    for (bytes, status) in
        [(150_000, 200), (1_000_000, 200), (4_400_000, 200), (limit, 200), (limit + 1, 413)]
    {
        let world = world();
        let body = format!("{{\"b\":\"{}\"}}", "x".repeat(bytes - 8));
        assert_eq!(body.len(), bytes);
        assert_eq!(github(&world, "f14", body.as_bytes()), status, "{bytes} bytes");
        if status == 200 {
            assert!(world.body("github#f14") == body.as_bytes());
        } else {
            assert!((world.twin.metric("Rejected") - 1.0).abs() < f64::EPSILON);
        }
    }
}

#[test]
fn f15_nothing_the_size_of_a_payload_is_in_a_message_or_a_log_line() {
    let world = world();
    let files: Vec<String> =
        (0..3_000).map(|n| format!("src/module_{n}/a_rather_long_file_name_{n}.rs")).collect();
    let event = "e".repeat(100_000);
    let delivery = "d".repeat(1_000);
    let body = json!({"action": event, "files": files}).to_string();
    assert_eq!(github(&world, &delivery, body.as_bytes()), 200);
    let batch = world.twin.receive(10);
    assert!(batch[0].body.len() < 3_000, "a message of {} bytes", batch[0].body.len());
    world.work_batch(&batch);
    for line in world.twin.lines() {
        let said = serde_json::to_string(&line.fields).unwrap().len() + line.message.len();
        assert!(said < 3_000, "a line of {said} bytes");
    }
}

#[test]
fn f16_ids_are_compared_byte_by_byte_and_shown_with_what_is_invisible() {
    let world = acme();
    for body in input("f16")["bodies"].as_array().unwrap() {
        assert_eq!(deliver(&world, body.as_str().unwrap().as_bytes()), 200);
    }
    assert_eq!(world.keys().len(), 4, "{:?}", world.keys());
    let shown: Vec<String> = world
        .twin
        .lines()
        .iter()
        .filter_map(|line| line.fields.get("event.key"))
        .map(Value::to_string)
        .collect();
    assert!(shown.iter().any(|key| key.contains("\\u{200b}")), "{shown:?}");
    assert!(shown.iter().all(|key| !key.contains('\u{200b}')), "{shown:?}");
}
