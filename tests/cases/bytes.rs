//! Kind a: the bytes that were signed, and nothing else, decide.

use crate::{
    reports::{bytes, headers, input, post, text},
    shop::{at, github, shop, world},
};
use ledger::{FailureClass, Status};
use serde_json::json;
use support::{World, WorldBuilder};
use verifier::{Headers, Request};

/// A form's value, every byte escaped that a form escapes.
fn url_escaped(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
            byte => format!("%{byte:02X}"),
        })
        .collect()
}

fn only_key(world: &World) -> String {
    let mut keys = world.keys();
    assert_eq!(keys.len(), 1, "{keys:?}");
    keys.remove(0)
}

#[test]
fn a01_a_base64_body_is_decoded_before_it_is_hashed() {
    let (world, event) = (world(), &input("a01")["event"]);
    assert_eq!(post(&world, event).status, 200);
    assert_eq!(only_key(&world), "stripe#evt_a01");
    assert_eq!(world.body("stripe#evt_a01"), bytes(event));
}

#[test]
fn a02_form_bodies_arrive_base64_and_verify() {
    for variant in input("a02")["matrix"].as_array().unwrap() {
        let (world, event) = (world(), &variant["event"]);
        assert_eq!(post(&world, event).status, 200, "{}", variant["content-type"]);
        assert_eq!(world.body(&only_key(&world)), bytes(event));
    }
}

#[test]
fn a03_a_hook_left_on_the_form_encoding_is_verified_as_sent_and_read_from_its_field() {
    let (world, event) = (world(), &input("a03")["event"]);
    assert_eq!(post(&world, event).status, 200);
    let row = world.row(&only_key(&world));
    assert_eq!(
        (row.life.status, row.evidence.event_type.as_str()),
        (Status::Claimed, "issues.opened")
    );
}

#[test]
fn a04_escapes_are_kept_as_they_were_signed() {
    let (world, event) = (world(), &input("a04")["event"]);
    assert_eq!(post(&world, event).status, 200);
    assert_eq!(world.body(&only_key(&world)), bytes(event));
}

#[test]
fn a05_both_spellings_of_a_text_verify_each_with_its_own_signature() {
    let world = world();
    let requests = input("a05")["two_requests"].as_array().unwrap();
    let send = |body: usize, signature: usize| {
        let signed = &requests[signature];
        let headers = [
            ("x-shopify-topic", "orders/create"),
            ("x-shopify-shop-domain", "shop-one.example"),
            ("x-shopify-event-id", signed["x-shopify-event-id"].as_str().unwrap()),
            ("x-shopify-hmac-sha256", signed["x-shopify-hmac-sha256"].as_str().unwrap()),
        ];
        world.post("shopify", &headers, requests[body]["body"].as_str().unwrap().as_bytes()).status
    };
    assert_eq!([send(0, 1), send(1, 0)], [401, 401], "swapped");
    assert_eq!([send(0, 0), send(1, 1)], [200, 200]);
}

#[test]
fn a06_emoji_are_hashed_as_utf_8() {
    let (world, event) = (world(), &input("a06")["event"]);
    assert_eq!(post(&world, event).status, 200);
    assert_eq!(world.body("github#a06"), bytes(event));
}

#[test]
fn a07_line_breaks_and_the_last_one_too_are_part_of_what_is_signed() {
    let (world, report) = (world(), input("a07"));
    let shorter = text(report, "/negative/same_headers_but_body");
    assert_eq!(world.post("github", &headers(&report["event"]), shorter.as_bytes()).status, 401);
    assert_eq!(post(&world, &report["event"]).status, 200);
}

#[test]
fn a08_other_line_ends_are_refused_and_the_log_names_the_length() {
    let (world, body) = (world(), text(input("a08"), "/body"));
    let signature =
        "t=1700000000,v1=7305cd3c266a809dda41a628dc4378e8fac869d24002c6bd58fb9fec7c883b99";
    let send = |body: &str| {
        world.post("stripe", &[("stripe-signature", signature)], body.as_bytes()).status
    };
    assert_eq!(send(body), 200);
    let crlf = body.replace('\n', "\r\n");
    assert_eq!(send(&crlf), 401);
    let line = world.twin.lines().pop().unwrap();
    assert_eq!(line.fields["body.bytes"], json!(crlf.len()));
}

#[test]
fn a09_a_byte_order_mark_is_hashed_and_skipped_only_to_read() {
    let (world, event) = (world(), &input("a09")["event"]);
    assert_eq!(post(&world, event).status, 200);
    assert_eq!(world.status("github#a09"), Status::Claimed);
    assert_eq!(world.body("github#a09"), bytes(event));
    // The same before a form.
    let form = "\u{feff}payload=%7B%22action%22%3A%22opened%22%7D";
    assert_eq!(github(&world, "a09-form", form.as_bytes()), 200);
    assert_eq!(world.row("github#a09-form").evidence.event_type, "push.opened");
}

/// The report would answer 400. An empty body with a right signature is authentic, so it is kept
/// as a dead row, where the reason is seen, and answered 2xx.
#[test]
fn a11_an_empty_body_is_verified_kept_and_no_crash() {
    for event in input("a11")["three_events"].as_array().unwrap() {
        let world = world();
        assert_eq!(post(&world, event).status, 200);
        let row = world.row(&only_key(&world));
        assert_eq!(row.life.status, Status::Dead);
        assert_eq!(row.life.failure.map(|failure| failure.class), Some(FailureClass::Permanent));
    }
}

#[test]
fn a14_a_comma_inside_a_signature_token_separates_nothing() {
    let report = input("a14");
    let world = shop().keys("standard-webhooks", &[text(report, "/secret")]).build();
    assert_eq!(world.post("standard-webhooks", &headers(report), b"{}").status, 200);
    assert_eq!(only_key(&world), "standard-webhooks#msg_a14");
}

#[test]
fn a20_only_the_scheme_v1_counts() {
    let (world, report) = (world(), input("a20"));
    for signature in report["headers_to_try"].as_array().unwrap() {
        let headers = [("stripe-signature", signature.as_str().unwrap())];
        assert_eq!(world.post("stripe", &headers, text(report, "/body").as_bytes()).status, 401);
    }
    assert!(world.keys().is_empty());
}

#[test]
fn a21_the_time_window_has_two_ends() {
    let report = input("a21");
    for attempt in report["headers_to_try"].as_array().unwrap() {
        let world = world();
        let body = text(report, "/body").as_bytes().to_vec();
        let call = world.signer.call_at("stripe", &[], body, at(attempt["t"].as_u64().unwrap()).0);
        let (name, value) = call.headers.last().unwrap();
        let header = [(name.as_str(), std::str::from_utf8(value).unwrap())];
        assert_eq!(
            json!(world.post("stripe", &header, &call.body).status),
            attempt["expect"],
            "{}",
            attempt["t"]
        );
    }
}

/// A provider without a preset, described in the configuration: what Slack signs.
const SLACK: &str = r#"
[sources.slack]
secret = "slack"
[sources.slack.verify]
scheme = "signature"
header = "x-slack-signature"
layout = "plain"
prefix = "v0="
algorithm = "hmac-sha256"
encoding = "hex"
signed = "v0:{header.x-slack-request-timestamp}:{body}"
time = { at = "header.x-slack-request-timestamp", unit = "s", past_s = 300, future_s = 300 }
key = "text"
[sources.slack.event]
format = "form"
id = { hash = ["/command", "/text", "header:x-slack-request-timestamp"] }
type = "/command"
identity = "none"
"#;

fn slack() -> World {
    WorldBuilder::new(SLACK).keys("slack", &["slack-secret-01"]).build()
}

#[test]
fn a22_a_request_repeated_at_the_other_end_of_the_window_does_no_second_work() {
    let (world, request) = (slack(), &input("a22")["request"]);
    let header = |name: &str| request[name].as_str().unwrap();
    let headers =
        ["x-slack-request-timestamp", "x-slack-signature"].map(|name| (name, header(name)));
    let send = || world.post("slack", &headers, header("body").as_bytes()).status;
    assert_eq!(send(), 200);
    world.work();
    world.twin.advance(590_000);
    assert_eq!(send(), 200);
    world.work();
    assert_eq!(world.row(&only_key(&world)).life.attempts, 1);
}

#[test]
fn a26_a_form_is_verified_as_it_came_and_parsed_afterwards() {
    let (world, event) = (slack(), &input("a26")["event"]);
    assert_eq!(post(&world, event).status, 200);
    let key = only_key(&world);
    assert_eq!(world.body(&key), bytes(event));
    assert_eq!(world.row(&key).evidence.event_type, "/deploy");
}

#[test]
fn a30_what_is_stored_is_what_came_to_the_last_digit() {
    let steps = input("a30")["steps"][0].as_str().unwrap();
    let body = steps.strip_prefix("receive body ").unwrap().as_bytes();
    let world = world();
    assert_eq!(github(&world, "WH-1", body), 200);
    world.work();
    assert_eq!(world.body("github#WH-1"), body);
}

#[test]
fn a33_the_algorithm_is_never_the_senders_choice() {
    let (world, report) = (world(), input("a33"));
    let body = text(report, "/body").as_bytes();
    let send = |name, value| {
        let headers = [("x-github-event", "push"), ("x-github-delivery", "a33"), (name, value)];
        world.post("github", &headers, body).status
    };
    for value in report["values"].as_array().unwrap() {
        assert_eq!(send("x-hub-signature-256", value.as_str().unwrap()), 401);
    }
    assert_eq!(send("x-hub-signature", "sha1=87f5ed90cfe5f48028208bbccbf8d9e22121614f"), 401);
}

fn twilio() -> World {
    WorldBuilder::new("[sources.twilio]\npreset = \"twilio\"\nsecret = \"twilio\"")
        .keys("twilio", &[text(input("a28"), "/secrets/twilio")])
        .build()
}

/// The report's address is not one of this receiver's, so its signature is put to the verifier.
#[test]
fn a28_a_quote_in_the_query_is_signed_as_it_was_sent() {
    let report = input("a28");
    let fields = report["form"].as_object().unwrap().iter();
    let form: Vec<String> = fields
        .map(|(name, value)| format!("{name}={}", url_escaped(value.as_str().unwrap())))
        .collect();
    let form = form.join("&");
    let headers: Headers =
        [("x-twilio-signature", text(report, "/x-twilio-signature"))].into_iter().collect();
    let world = twilio();
    let preset = &world.receiver.config.source("twilio").unwrap().preset;
    let key = preset.key("k", text(report, "/secrets/twilio")).unwrap();
    let accepted = |url: &str| {
        let (base, query) = url.split_once('?').unwrap();
        let request = Request {
            method: "POST",
            path: text(report, "/event_hint/rawPath"),
            query,
            public_url: Some(base),
            headers: &headers,
            body: form.as_bytes(),
        };
        preset.verify(&request, std::slice::from_ref(&key), world.now().0).is_ok()
    };
    let url = text(report, "/url");
    assert!(accepted(url));
    assert!(!accepted(&url.replace('\'', "%27")), "another spelling is another address");
}

/// The other format of gateway events has no raw query; the edge refuses it (its own test says so).
#[test]
fn a29_the_signed_address_is_configured_and_no_header_changes_it() {
    let world = twilio();
    let body = b"MessageSid=SM29&MessageStatus=sent";
    let query = "a=1&a=2&b=%20x";
    let preset = &world.receiver.config.source("twilio").unwrap().preset;
    let key = preset.key("k", text(input("a29"), "/secrets/twilio")).unwrap();
    let post = |base: &str, spoofed: &[(&str, &str)]| {
        let request = Request {
            method: "POST",
            path: "/webhooks/twilio",
            query,
            public_url: Some(base),
            headers: &Headers::new(),
            body,
        };
        let signed = preset.sign(&request, &key, world.now().0).unwrap();
        let signature = signed.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let headers: Vec<_> = signature.chain(spoofed.iter().copied()).collect();
        world.request("POST", &format!("/webhooks/twilio?{query}"), &headers, body).status
    };
    let spoofed = [
        ("host", "abc123.execute-api.region.example"),
        ("x-forwarded-host", "evil.example"),
        ("x-forwarded-proto", "http"),
        ("forwarded", "host=evil.example;proto=http"),
    ];
    assert_eq!(post("https://hooks.example/webhooks/twilio", &spoofed), 200);
    for other in [
        "https://evil.example/webhooks/twilio",
        "http://hooks.example/webhooks/twilio",
        "https://abc123.execute-api.region.example/webhooks/twilio",
        "https://hooks.example/prod/webhooks/twilio",
    ] {
        assert_eq!(post(other, &spoofed), 401, "{other}");
    }
}

#[test]
fn a34_an_empty_or_unexpanded_secret_verifies_nothing_and_weakens_no_other() {
    let attack = &input("a34")["attack"];
    for secret in ["", "   ", "\n", "${UNEXPANDED}"] {
        let alone = shop().keys("github", &[secret]).build();
        assert_eq!(post(&alone, attack).status, 503, "{secret:?} alone");
        assert!(alone.twin.metric("KeyRefused") >= 1.0);
        let beside = shop().keys("github", &["gh-secret-01", secret]).build();
        assert_eq!(post(&beside, attack).status, 401, "{secret:?} beside a good one");
        assert_eq!(github(&beside, "good", b"{}"), 200, "the good one beside {secret:?}");
    }
    let missing = WorldBuilder::new(crate::shop::SOURCES).build();
    assert_eq!(post(&missing, attack).status, 503, "no secret at all");
}

#[test]
fn a36_nothing_stands_between_the_gateway_and_the_function_that_verifies() {
    let template = std::fs::read_to_string(support::root().join("template.yaml")).unwrap();
    for absent in ["Authorizer", "RequestParameters", "RequestValidator", "WebACL"] {
        assert!(!template.contains(absent), "the template has {absent}");
    }
}

/// The report leaves the unpadded and the URL-safe form open: both are refused, since Shopify
/// sends neither and one signature should have one spelling.
#[test]
fn a38_a_signature_has_one_encoding() {
    let (world, report) = (world(), input("a38"));
    for attempt in report["values"].as_array().unwrap() {
        let headers = [
            ("x-shopify-topic", "orders/create"),
            ("x-shopify-shop-domain", "shop-one.example"),
            ("x-shopify-event-id", "ev-a38"),
            ("x-shopify-hmac-sha256", attempt["x-shopify-hmac-sha256"].as_str().unwrap()),
        ];
        let status = world.post("shopify", &headers, text(report, "/body").as_bytes()).status;
        let wanted = attempt["expect"].as_u64().unwrap_or(401);
        assert_eq!(u64::from(status), wanted, "{}", headers[3].1);
    }
}
