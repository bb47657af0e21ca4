//! The schemes that need code of their own: PayPal, Twilio, Adyen.

use verifier::{Preset, Rejection};

use crate::support::{Delivery, NOW_MS, preset};

#[test]
fn a_paypal_certificate_is_asked_for_only_at_paypals_own_addresses() {
    let preset = preset("paypal");
    let keys = [preset.key("k", "4JH86294D6297924G").unwrap()];
    let delivery = |url: &str| {
        Delivery::post("{}")
            .header("paypal-transmission-id", "t-1")
            .header("paypal-transmission-time", "2023-11-14T22:13:20Z")
            .header("paypal-transmission-sig", &format!("{}==", "A".repeat(342)))
            .header("paypal-auth-algo", "SHA256withRSA")
            .header("paypal-cert-url", url)
    };
    let good = "https://api.paypal.com/v1/notifications/certs/CERT-360caa42";
    assert_eq!(
        delivery(good).verify(&preset, &keys),
        Err(Rejection::NeedsCertificate { url: good.to_owned() })
    );
    for bad in [
        "http://api.paypal.com/c",
        "https://paypal.com/c",
        "https://api.paypal.com",
        "https://api.paypal.com:8443/c",
        "https://user@api.paypal.com/c",
        "https://api.paypal.com@evil.example/c",
        "https://api.paypal.com.evil.example/c",
        "https://notpaypal.com/c",
        "https://evil.example/.paypal.com/c",
        "https://evil.example#.paypal.com/c",
        "https://evil.example\\.paypal.com/c",
        "https://.paypal.com/c",
        "https://a..paypal.com/c",
        "https://API.PAYPAL.COM/c",
        "https://api.paypal.com/c?redirect=evil",
        "https://api.paypal.com/../c",
        "https://api.paypal.com/c%0d%0a",
        " https://api.paypal.com/c",
        "https://169.254.169.254/latest/",
    ] {
        assert_eq!(
            delivery(bad).verify(&preset, &keys),
            Err(Rejection::CertificateUrlRefused),
            "{bad}"
        );
    }
    assert_eq!(delivery(good).cause(&preset, &[]), "no_usable_key");
    assert_eq!(
        delivery(good).with("paypal-transmission-time", Some("yesterday")).cause(&preset, &keys),
        "header_malformed"
    );
}

#[test]
fn a_local_stack_takes_certificates_from_one_address_of_this_machine_as_well() {
    let mut preset = preset("paypal");
    let keys = [preset.key("k", "4JH86294D6297924G").unwrap()];
    let cause = |preset: &Preset, url: &str| {
        let headers = [
            ("paypal-transmission-id", "t-1"),
            ("paypal-transmission-time", "2023-11-14T22:13:20Z"),
            ("paypal-transmission-sig", &format!("{}==", "A".repeat(342))),
            ("paypal-auth-algo", "SHA256withRSA"),
            ("paypal-cert-url", url),
        ];
        let post = Delivery::post("{}");
        headers
            .iter()
            .fold(post, |post, (name, value)| post.header(name, value))
            .cause(preset, &keys)
    };
    let local = "http://127.0.0.1:4711/certs/a";
    assert_eq!(cause(&preset, local), "certificate_url_refused");
    for base in ["http://127.0.0.1:4711", "http://10.0.0.1:4711/", "http://127.0.0.1:04711/", "/"] {
        assert!(!preset.trust_local_certificates(base), "{base}");
    }
    assert!(preset.trust_local_certificates("http://127.0.0.1:4711/"));
    assert_eq!(cause(&preset, local), "needs_certificate");
    assert_eq!(cause(&preset, "https://api.paypal.com/c"), "needs_certificate");
    for url in [
        "http://127.0.0.1:4712/certs/a",
        "http://127.0.0.1:4711/../a",
        "http://127.0.0.1:4711/a?b",
        "http://127.0.0.1:47110/a",
        "http://api.paypal.com/c",
    ] {
        assert_eq!(cause(&preset, url), "certificate_url_refused", "{url}");
    }
}

#[test]
fn a_fetched_certificate_must_be_paypals_and_valid_now() {
    let preset = preset("paypal");
    let vector = crate::vectors::of("paypal")
        .into_iter()
        .find(|vector| vector["id"] == "paypal-014")
        .unwrap();
    let pem = vector["public_key_pem"].as_str().unwrap().as_bytes();
    let sandbox = "https://api.sandbox.paypal.com/v1/notifications/test";
    let then_ms = vector["now"].as_u64().unwrap() * 1_000;
    let why = |url: &str, pem: &[u8], now_ms| match preset.fetched_certificate(url, pem, now_ms) {
        Ok(_) => "taken".to_owned(),
        Err(Rejection::CertificateRefused { why }) => why,
        Err(other) => other.cause().to_owned(),
    };
    assert_eq!(why(sandbox, pem, then_ms), "taken");
    assert_eq!(why(sandbox, pem, NOW_MS), "it is not valid now");
    assert_eq!(why(sandbox, pem, 0), "it is not valid now");
    assert_eq!(
        why("https://api.paypal.com/v1/c", pem, then_ms),
        "its name is not PayPal's",
        "a sandbox certificate does not speak for live"
    );
    assert_eq!(why("https://evil.example/c", pem, then_ms), "certificate_url_refused");
    assert_eq!(why(sandbox, b"", then_ms), "not an X.509 certificate in PEM");
    assert_eq!(why(sandbox, &pem[..pem.len() / 2], then_ms), "not an X.509 certificate in PEM");
    let stripe = crate::support::preset("stripe");
    assert!(stripe.fetched_certificate(sandbox, pem, then_ms).is_err());
}

#[test]
fn a_crafted_paypal_body_is_kept_beside_the_real_one_as_a_conflict() {
    let preset = preset("paypal");
    let vector = |id: &str| {
        let found = crate::vectors::of("paypal").into_iter().find(|v| v["id"] == id).unwrap();
        Delivery::post(found["body"].as_str().unwrap()).header("paypal-transmission-id", "t-1")
    };
    let real = vector("paypal-007");
    let crafted = vector("paypal-014");
    let (real, crafted) = (real.event(&preset), crafted.event(&preset));
    assert_ne!(real.identity, crafted.identity);
}

#[test]
fn a_paypal_event_names_the_transmission_that_proves_it() {
    let preset = preset("paypal");
    let delivery = Delivery::post(r#"{"id":"WH-1","event_type":"T"}"#);
    let sent = delivery.clone().header("paypal-transmission-id", "b2384410-f8d2-11e4");
    assert_eq!(sent.event(&preset).proof.as_deref(), Some("b2384410-f8d2-11e4"));
    assert_eq!(delivery.unusable(&preset), "required_missing", "never worked without one");
    let error = crate::support::defect("adyen", "[event]\none_event_per = \"header:x\"");
    assert!(error.contains("event.one_event_per"), "{error}");
}

#[test]
fn twilio_tries_the_default_port_and_keeps_the_query_as_it_came() {
    let preset = preset("twilio");
    let key = preset.key("k", "twilio-token-01").unwrap();
    let form = Delivery::post("MessageSid=SM1&MessageStatus=sent");
    let signed = form
        .at("https://hooks.example:443/webhooks/twilio?name=it's")
        .signed(&preset, &key, NOW_MS);
    let keys = [key];
    for (url, cause) in [
        ("https://hooks.example:443/webhooks/twilio?name=it's", "verified"),
        ("https://hooks.example/webhooks/twilio?name=it's", "verified"),
        ("https://hooks.example/webhooks/twilio?name=it%27s", "no_signature_matched"),
        ("https://hooks.example:8443/webhooks/twilio?name=it's", "no_signature_matched"),
        ("http://hooks.example/webhooks/twilio?name=it's", "no_signature_matched"),
    ] {
        assert_eq!(signed.clone().at(url).cause(&preset, &keys), cause, "{url}");
    }
}

#[test]
fn a_twilio_key_bound_to_sha256_verifies_nothing_else() {
    let preset = preset("twilio");
    let bound = preset.key("k", "HMAC_SHA256:shared-secret-key").unwrap();
    let free = preset.key("k", "shared-secret-key").unwrap();
    let form = Delivery::post("a=b").at("https://hooks.example/t");
    let sha256 = form.clone().signed(&preset, &bound, NOW_MS);
    let sha1 = form.signed(&preset, &free, NOW_MS);
    assert_eq!(sha256.cause(&preset, std::slice::from_ref(&bound)), "verified");
    assert_eq!(sha256.cause(&preset, std::slice::from_ref(&free)), "verified");
    assert_eq!(sha1.cause(&preset, &[free]), "verified");
    assert_eq!(sha1.cause(&preset, &[bound]), "no_usable_key");
}

#[test]
fn an_adyen_delivery_is_as_good_as_its_worst_item() {
    let preset = preset("adyen");
    let key = preset
        .key("k", "DFB1EB5485895CFA84146406857104ABB4CBCABDC8AAF103A624C8F6A3EAAB00")
        .unwrap();
    let item = |reference: &str| {
        format!(
            r#"{{"NotificationRequestItem":{{"pspReference":"{reference}","eventCode":"CAPTURE","success":"true","amount":{{"value":10,"currency":"EUR"}}}}}}"#
        )
    };
    let both = format!(r#"{{"notificationItems":[{},{}]}}"#, item("A"), item("B"));
    let signed = Delivery::post(both).signed(&preset, &key, NOW_MS);
    let keys = [key];
    assert_eq!(signed.cause(&preset, &keys), "verified");
    let text = String::from_utf8(signed.body.clone()).unwrap();
    for (body, cause) in [
        (text.replace(r#""B""#, r#""C""#), "no_signature_matched"),
        (
            text.replace(r#""success":"true""#, r#""success":"true","success":"true""#),
            "body_malformed",
        ),
        (text.replace(r#""value":10"#, r#""value":{}"#), "body_malformed"),
        (text.replace("CAPTURE", "CAP:TURE"), "body_malformed"),
        (text.replace("hmacSignature", "hmac"), "field_missing"),
        (r#"{"notificationItems":[]}"#.to_owned(), "body_malformed"),
        (r#"{"notificationItems":{}}"#.to_owned(), "body_malformed"),
        ("{}".to_owned(), "body_malformed"),
        (String::new(), "body_malformed"),
        ("[1".to_owned(), "body_malformed"),
    ] {
        assert_eq!(Delivery::post(&body).cause(&preset, &keys), cause, "{body}");
    }
}
