//! Failures that other receivers had with bytes, headers and clocks, as tests of this one. The
//! digests come from outside: none was computed with this crate.

use base64::{Engine as _, engine::general_purpose::STANDARD};

use crate::support::{Delivery, NOW_MS, NOW_S, preset};

const OPENED: &str = r#"{"action":"opened","number":1}"#;
const OPENED_SIGNATURE: &str =
    "sha256=5a778c5d40b0a595d6d3c450a89428d05c1057a61704b6169610adcd9d54e685";

fn github(body: impl AsRef<[u8]>, signature: &str) -> Delivery {
    Delivery::post(body)
        .header("x-github-event", "push")
        .header("x-github-delivery", "guid-1")
        .header("x-hub-signature-256", signature)
}

#[track_caller]
fn github_cause(delivery: &Delivery, expected: &str) {
    let preset = preset("github");
    let key = preset.key("k", "gh-secret-01").unwrap();
    assert_eq!(delivery.cause(&preset, &[key]), expected);
}

fn stripe(body: &str, header: &str) -> Delivery {
    Delivery::post(body).header("stripe-signature", header)
}

#[track_caller]
fn stripe_cause(delivery: &Delivery, expected: &str) {
    let preset = preset("stripe");
    let key = preset.key("k", "whsec_endpoint_A").unwrap();
    assert_eq!(delivery.cause(&preset, &[key]), expected);
}

#[test]
fn the_decoded_bytes_are_signed_and_not_the_gateways_base64() {
    let encoded = "eyJpZCI6ImV2dF9hMDEiLCJ0eXBlIjoicGluZyJ9";
    let header = "t=1700000000,v1=73d2123e0978c5e86687ac2da8894e093fff5541e485299eedb8ce4e52f445c1";
    let decoded = String::from_utf8(STANDARD.decode(encoded).unwrap()).unwrap();
    stripe_cause(&stripe(&decoded, header), "verified");
    stripe_cause(&stripe(encoded, header), "no_signature_matched");
}

#[test]
fn the_content_type_decides_nothing() {
    for content_type in [
        "application/json",
        "application/json; charset=utf-8",
        "Application/JSON;charset=\"UTF-8\"",
        "text/plain",
        "application/vnd.github.v3+json",
        "*/*",
        "",
        "application/cloudevents+json",
        "application/octet-stream",
        "text/xml",
    ] {
        let delivery = github(OPENED, OPENED_SIGNATURE).header("content-type", content_type);
        github_cause(&delivery, "verified");
        assert_eq!(delivery.event(&preset("github")).event_type, "push.opened");
    }
}

#[test]
fn a_github_hook_on_its_default_form_encoding_is_understood() {
    let form = STANDARD
        .decode(
            "cGF5bG9hZD0lN0IlMjJ6ZW4lMjIlM0ElMjJ4JTIyJTJDJTIyYWN0aW9uJTIyJTNBJTIyb3BlbmVkJTIyJTdE",
        )
        .unwrap();
    let signature = "sha256=dc7db9b93f6a4b9330bcf1a1e89fdda4e02560a67cc7b9957f5f241c9196d7e0";
    let delivery = github(&form, signature);
    github_cause(&delivery, "verified");
    let github = preset("github");
    assert_eq!(delivery.event(&github).event_type, "push.opened");
    assert_eq!(delivery.event(&github).body.as_ref(), form, "the bytes that came");
    assert_eq!(github.document(&form).unwrap(), r#"{"zen":"x","action":"opened"}"#);
}

#[test]
fn escapes_in_the_body_stay_as_they_are() {
    let shopify = preset("shopify");
    let keys = [shopify.key("k", "shop-secret-01").unwrap()];
    let cause = |body: &str, signature: &str| {
        Delivery::post(body).header("x-shopify-hmac-sha256", signature).cause(&shopify, &keys)
    };
    let body = r#"{"note":"A\u2028B","path":"a\/b","q":"x\u0026y","e":"\u00e9"}"#;
    assert_eq!(cause(body, "5uA2IkCQH1Q2kAled4YbDZzUS1hj8WU9NQp/Ldd88po="), "verified");
    let escaped = r#"{"name":"caf\u00e9"}"#;
    let spelled = r#"{"name":"café"}"#;
    let for_escaped = "cHBtvRd7e0P8sbL5OfSyUOjsuz5Gj3HU2AkD8tUKJ1k=";
    let for_spelled = "hciBUyuO6Rxy+UoXnSFCbdrbNmt55aBb55PzlOs/xOk=";
    assert_eq!(cause(escaped, for_escaped), "verified");
    assert_eq!(cause(spelled, for_spelled), "verified");
    assert_eq!(cause(escaped, for_spelled), "no_signature_matched");
    assert_eq!(cause(spelled, for_escaped), "no_signature_matched");
}

#[test]
fn text_outside_ascii_is_signed_as_utf8() {
    let signature = "sha256=e2aa9b61ad4165a847de77c8ca73cc934c5d526e5c5e8b290de96a722f8834fe";
    github_cause(&github(r#"{"msg":"deploy 🚀 naïve"}"#, signature), "verified");
}

#[test]
fn line_breaks_are_part_of_the_body() {
    let signature = "sha256=092bb42214a357c05c1edcf4561046fa0bf7d5c5cc1e10fca17a6b5e7e5c692a";
    github_cause(&github("{\n  \"action\": \"sync\"\n}\n", signature), "verified");
    github_cause(&github("{\n  \"action\": \"sync\"\n}", signature), "no_signature_matched");
    let body = "{\n  \"id\": \"evt_a08\",\n  \"type\": \"invoice.paid\"\n}";
    let header = "t=1700000000,v1=7305cd3c266a809dda41a628dc4378e8fac869d24002c6bd58fb9fec7c883b99";
    stripe_cause(&stripe(body, header), "verified");
    stripe_cause(&stripe(&body.replace('\n', "\r\n"), header), "no_signature_matched");
}

#[test]
fn a_byte_order_mark_is_signed_and_only_parsing_skips_it() {
    let body = STANDARD.decode("77u/eyJpZCI6ImV2dF9ib20iLCJ0eXBlIjoieCJ9").unwrap();
    let signature = "sha256=25d79a41c8725e126d1f403653ad376866d96a47ab3a17b685da3ec33db41e2b";
    let delivery = github(&body, signature);
    github_cause(&delivery, "verified");
    assert_eq!(delivery.event(&preset("github")).body.as_ref(), body);
    github_cause(&github(&body[3..], signature), "no_signature_matched");
    let form = "\u{feff}payload=%7B%22action%22%3A%22opened%22%7D";
    assert_eq!(github(form, "").event(&preset("github")).event_type, "push.opened");
}

#[test]
fn an_empty_body_verifies_and_is_unusable() {
    let signature = "sha256=6b9dd855751c0e036b3df490423e9496d1c24df54fa8d88c632980cd705aef6d";
    let delivery = github("", signature);
    github_cause(&delivery, "verified");
    assert_eq!(delivery.unusable(&preset("github")), "not_json");
}

#[test]
fn a_comma_inside_a_standard_webhooks_entry_is_no_separator() {
    let webhooks = preset("standard-webhooks");
    let keys = [webhooks.key("k", "whsec_c3RhbmRhcmQta2V5LTAxMjM0NTY3ODlhYmNkZWYwMQ==").unwrap()];
    let delivery = Delivery::post("{}")
        .header("webhook-id", "msg_a14")
        .header("webhook-timestamp", "1700000000")
        .header("webhook-signature", "v1,R+jJMPAcfuQOHomZc6AnJXaSAf2NDNfULq8Gzg9rhAA= v1,AAAA");
    assert_eq!(delivery.cause(&webhooks, &keys), "verified");
    let cut = delivery.with("webhook-signature", Some("v1"));
    assert_eq!(cut.cause(&webhooks, &keys), "scheme_refused");
}

#[test]
fn a_decoy_scheme_is_no_downgrade() {
    let body = r#"{"id":"evt_rot","type":"x"}"#;
    let digest = "643b07d230f423bf0d2b07d84efa546540e3696630e2d3b00b88c1df9039ba53";
    let zeros = "0".repeat(64);
    stripe_cause(&stripe(body, &format!("t=1700000000,v1={digest}")), "verified");
    for (header, cause) in [
        (format!("t=1700000000,v0={digest}"), "scheme_refused"),
        (format!("t=1700000000,v2={digest}"), "scheme_refused"),
        (format!("t=1700000000,v1={zeros},v0={digest}"), "no_signature_matched"),
    ] {
        stripe_cause(&stripe(body, &header), cause);
    }
}

#[test]
fn a_time_in_the_future_does_not_pass_a_one_sided_check() {
    let stripe = preset("stripe");
    let key = stripe.key("k", "whsec_endpoint_A").unwrap();
    for (t, cause) in [
        (1_700_000_301, "too_new"),
        (1_731_536_000, "too_new"),
        (1_699_999_699, "too_old"),
        (1_699_999_700, "verified"),
        (1_700_000_299, "verified"),
    ] {
        let signed = Delivery::post("{}").signed(&stripe, &key, t * 1_000);
        assert_eq!(signed.cause(&stripe, std::slice::from_ref(&key)), cause, "{t}");
    }
}

#[test]
fn a_request_from_the_future_stays_valid_for_two_windows_which_the_ledger_must_outlive() {
    let slack = preset("slack");
    let keys = [slack.key("k", "slack-secret-01").unwrap()];
    let delivery = Delivery::post("token=x&command=%2Fgo")
        .header("x-slack-request-timestamp", "1700000295")
        .header(
            "x-slack-signature",
            "v0=f327ef448e73bb419afd3604b84430f2340d173985b06e151918746af49cca6d",
        );
    let at = |offset_s: u64| {
        let now_ms = (NOW_S + offset_s) * 1_000;
        slack.verify(&delivery.request(), &keys, now_ms).is_ok()
    };
    assert!(at(0) && at(590) && at(595));
    assert!(!at(596));
}

#[test]
fn a_form_is_verified_before_it_is_parsed() {
    let slack = preset("slack");
    let keys = [slack.key("k", "slack-secret-01").unwrap()];
    let body = STANDARD
        .decode("dG9rZW49dDAmdGVhbV9pZD1UMDEmY29tbWFuZD0lMkZkZXBsb3kmdGV4dD1hK2IlMjBjJnJlc3BvbnNlX3VybD1odHRwcyUzQSUyRiUyRmhvb2tzLmV4YW1wbGUlMkYx")
        .unwrap();
    let delivery = Delivery::post(body).header("x-slack-request-timestamp", "1700000000").header(
        "x-slack-signature",
        "v0=f4129e2315c4ae867e6578657bfa61ea02e0716fddda748002fb6d63f15702fb",
    );
    assert_eq!(delivery.cause(&slack, &keys), "verified");
}

#[test]
fn a_quote_in_a_twilio_url_is_not_encoded_again() {
    let twilio = preset("twilio");
    let keys = [twilio.key("k", "twilio-token-01").unwrap()];
    let form = "From=%2B15550100&Body=hi&AddOns=%7B%22status%22%3A%22successful%22%2C%22results%22%3A%7B%7D%7D";
    let delivery = Delivery::post(form)
        .at("https://api.example/hooks/twilio?name=it's&x=1")
        .header("x-twilio-signature", "IuiPOHAgp5d5dxQZrgC8fgUxAJQ=");
    assert_eq!(delivery.cause(&twilio, &keys), "verified");
    let spoofed =
        delivery.header("x-forwarded-host", "evil.example").header("host", "evil.example");
    assert_eq!(spoofed.cause(&twilio, &keys), "verified");
}

#[test]
fn numbers_braces_and_order_survive_into_the_event() {
    let body = r#"{"id":"WH-1","resource":{"amount":{"value":"10.00","breakdown":{}},"n":1.0,"big":12345678901234567890}}"#;
    let paypal = preset("paypal");
    let delivery = Delivery::post(body).header("paypal-transmission-id", "t-1");
    assert_eq!(delivery.event(&paypal).body.as_ref(), body.as_bytes());
    assert_eq!(paypal.document(body.as_bytes()).unwrap(), body);
}

#[test]
fn the_algorithm_is_configuration_and_never_the_headers_choice() {
    for value in [
        "bogus=0000000000000000000000000000000000000000000000000000000000000000",
        "md5=29f545806e92a80ae8e27bc7cb12c31b",
        "sha1=87f5ed90cfe5f48028208bbccbf8d9e22121614f",
    ] {
        github_cause(&github(OPENED, value), "scheme_refused");
    }
    let legacy = Delivery::post(OPENED)
        .header("x-hub-signature", "sha1=87f5ed90cfe5f48028208bbccbf8d9e22121614f");
    github_cause(&legacy, "header_missing");
}

#[test]
fn an_empty_secret_cannot_be_loaded_and_so_cannot_be_forged() {
    let github_preset = preset("github");
    for text in ["", "   ", "\n", "${UNEXPANDED}"] {
        assert!(github_preset.key("k", text).is_err(), "{text:?}");
    }
    let forged =
        github(OPENED, "sha256=f3ad6a7a848a08330c13cee790261ec73c3e6e6c59ace76714933625ff8e7a40");
    assert_eq!(forged.cause(&github_preset, &[]), "no_usable_key");
    github_cause(&forged, "no_signature_matched");
}

#[test]
fn an_unsigned_request_never_passes_whatever_it_claims_to_be() {
    let test_id = r#"{"id":"evt_test_1","object":"event","type":"x","created":1700000000,"livemode":false,"data":{"object":{}}}"#;
    stripe_cause(&Delivery::post(test_id), "header_missing");
    stripe_cause(&stripe(test_id, ""), "header_missing");
    stripe_cause(&Delivery::post(test_id).header("x-debug", "1"), "header_missing");
    let mut skipping = Delivery::post(test_id);
    skipping.query = "skip_verify=1".to_owned();
    stripe_cause(&skipping, "header_missing");
}

#[test]
fn a_retry_with_another_body_and_the_old_signature_is_refused() {
    let github_preset = preset("github");
    let key = github_preset.key("k", "gh-secret-01").unwrap();
    let first = Delivery::post(r#"{"n":1}"#).signed(&github_preset, &key, NOW_MS);
    let retry = Delivery { body: br#"{"n":2}"#.to_vec(), ..first };
    github_cause(&retry, "no_signature_matched");
}
