//! The engine's rules, each with the cause it gives when it refuses.

use verifier::{HeaderLookup, Key, Preset, Rejection};

use crate::support::{Delivery, NOW_MS, NOW_S, overridden, preset};

fn stripe() -> (Preset, Key) {
    let preset = preset("stripe");
    let key = preset.key("2026-11", "whsec_endpoint_A").unwrap();
    (preset, key)
}

fn signed_at(offset_s: i64) -> (Preset, Key, Delivery) {
    let (preset, key) = stripe();
    let at_ms = NOW_S.checked_add_signed(offset_s).unwrap() * 1_000;
    let delivery = Delivery::post(r#"{"id":"evt_1"}"#).signed(&preset, &key, at_ms);
    (preset, key, delivery)
}

#[test]
fn a_good_request_says_which_key_and_when() {
    let (preset, key, delivery) = signed_at(-5);
    let verified = delivery.verify(&preset, &[key]).unwrap();
    assert_eq!(verified.kid, "2026-11");
    assert_eq!(verified.signed_at_ms, Some(NOW_MS - 5_000));
}

#[test]
fn both_ends_of_the_window_are_inside_and_the_next_second_is_not() {
    for (offset_s, expected) in [
        (-301, Err(Rejection::TooOld { by_s: 1 })),
        (-300, Ok(())),
        (300, Ok(())),
        (301, Err(Rejection::TooNew { by_s: 1 })),
        (31_536_000, Err(Rejection::TooNew { by_s: 31_535_700 })),
    ] {
        let (preset, key, delivery) = signed_at(offset_s);
        let verdict = delivery.verify(&preset, &[key]).map(|_| ());
        assert_eq!(verdict, expected, "{offset_s} s");
    }
}

#[test]
fn the_last_second_counts_to_its_end() {
    let (preset, key, delivery) = signed_at(-300);
    let keys = [key];
    let late = preset.verify(&delivery.request(), &keys, NOW_MS + 999);
    assert!(late.is_ok());
    let later = preset.verify(&delivery.request(), &keys, NOW_MS + 1_000);
    assert_eq!(later, Err(Rejection::TooOld { by_s: 1 }));
}

#[test]
fn a_millisecond_window_is_exact() {
    let preset = preset("recurly");
    let key = preset.key("k", "secret-1").unwrap();
    let delivery = Delivery::post("{}").signed(&preset, &key, NOW_MS);
    let keys = [key];
    let at = |now_ms| preset.verify(&delivery.request(), &keys, now_ms).map(|_| ());
    assert_eq!(at(NOW_MS + 300_000), Ok(()));
    assert_eq!(at(NOW_MS + 300_001), Err(Rejection::TooOld { by_s: 1 }));
    assert_eq!(at(NOW_MS - 300_000), Ok(()));
    assert_eq!(at(NOW_MS - 300_001), Err(Rejection::TooNew { by_s: 1 }));
}

#[test]
fn a_window_is_a_matter_of_configuration() {
    let wide = overridden("stripe", "[verify.time]\npast_s = 3600\nfuture_s = 0");
    let (_, key, delivery) = signed_at(-3_600);
    assert!(delivery.verify(&wide, &[key]).is_ok());
    let (_, key, delivery) = signed_at(1);
    assert_eq!(delivery.cause(&wide, &[key]), "too_new");
}

#[test]
fn a_wrong_signature_outranks_a_wrong_time() {
    let (preset, _, delivery) = signed_at(-10_000);
    let other = preset.key("other", "whsec_endpoint_B").unwrap();
    assert_eq!(delivery.cause(&preset, &[other]), "no_signature_matched");
}

#[test]
fn missing_empty_repeated_and_joined_headers_are_refused() {
    let (preset, key, delivery) = signed_at(0);
    let keys = [key];
    let header = "stripe-signature";
    assert_eq!(delivery.with(header, None).cause(&preset, &keys), "header_missing");
    assert_eq!(delivery.with(header, Some("")).cause(&preset, &keys), "header_missing");
    let value = delivery
        .headers
        .iter()
        .find_map(|(name, value)| (name == header).then(|| value.to_owned()))
        .unwrap();
    let twice = delivery.clone().header("Stripe-Signature", &value);
    assert_eq!(twice.cause(&preset, &keys), "header_repeated");
    for glue in [",", ", "] {
        let joined = delivery.with(header, Some(&format!("{value}{glue}{value}")));
        assert_eq!(joined.cause(&preset, &keys), "header_repeated", "{glue:?}");
    }
    for name in ["paddle", "recurly", "standard-webhooks"] {
        let (preset, key, delivery) = crate::signing::signable(name).unwrap();
        let signed = delivery.signed(&preset, &key, NOW_MS);
        let header = preset.signature_headers().remove(0);
        let value = signed
            .headers
            .iter()
            .find_map(|(name, value)| (name == header).then(|| value.to_owned()))
            .unwrap();
        for glue in [",", ", "] {
            let joined = signed.with(&header, Some(&format!("{value}{glue}{value}")));
            let cause = joined.cause(&preset, std::slice::from_ref(&key));
            assert_eq!(cause, "header_repeated", "{name} {glue:?}");
        }
    }
    let plain = crate::support::preset("github");
    let key = plain.key("k", "gh-secret-01").unwrap();
    let signed = Delivery::post("{}").signed(&plain, &key, NOW_MS);
    let value = signed.headers.iter().next().unwrap().1.to_owned();
    let joined = signed.with("x-hub-signature-256", Some(&format!("{value}, {value}")));
    assert_eq!(joined.cause(&plain, &[key]), "header_repeated");
}

#[test]
fn a_repeated_part_of_the_signed_text_is_refused() {
    let preset = preset("standard-webhooks");
    let key = preset.key("k", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
    let signed = Delivery::post("{}").header("webhook-id", "msg_1").signed(&preset, &key, NOW_MS);
    let keys = [key];
    for name in ["webhook-id", "webhook-timestamp", "webhook-signature"] {
        let twice = signed.clone().header(name, "msg_1");
        assert_eq!(twice.cause(&preset, &keys), "header_repeated", "{name}");
        assert_eq!(signed.with(name, None).cause(&preset, &keys), "header_missing", "{name}");
    }
}

#[test]
fn a_dot_in_a_message_id_cannot_move_the_border_to_the_time() {
    let preset = preset("standard-webhooks");
    let key = preset.key("k", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
    let dotted = Delivery::post("{}").header("webhook-id", "msg.1");
    assert!(preset.sign(&dotted.request(), &key, NOW_MS).is_err());
    let forged = dotted
        .header("webhook-timestamp", &NOW_S.to_string())
        .header("webhook-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    assert_eq!(forged.cause(&preset, &[key]), "header_malformed");
}

#[test]
fn only_the_accepted_version_counts_and_unknown_ones_are_ignored() {
    let (preset, key, delivery) = signed_at(0);
    let keys = [key];
    let value = delivery.headers.iter().next().unwrap().1.to_owned();
    let digest = value.split_once("v1=").unwrap().1.to_owned();
    let t = NOW_S;
    for (header, cause) in [
        (format!("t={t},v0={digest}"), "scheme_refused"),
        (format!("t={t},v2={digest}"), "scheme_refused"),
        (format!("t={t},V1={digest}"), "scheme_refused"),
        (format!("t={t}"), "scheme_refused"),
        (format!("t={t},v1={},v0={digest}", "0".repeat(64)), "no_signature_matched"),
        (format!("t={t},v1="), "header_malformed"),
        (format!("t={t}, v1={digest}"), "header_repeated"),
        (format!("v1={digest}"), "header_malformed"),
        (format!("t=,v1={digest}"), "header_malformed"),
        (format!("t={t}.0,v1={digest}"), "header_malformed"),
        (format!("t=+{t},v1={digest}"), "header_malformed"),
        (format!("t=-{t},v1={digest}"), "header_malformed"),
        (format!("t={t},t={t},v1={digest}"), "header_repeated"),
        (format!("t={t},v9=x,v1={digest},foo,=,bar=="), "verified"),
        (format!("v1={digest},t={t}"), "verified"),
    ] {
        let tried = delivery.with("stripe-signature", Some(&header));
        assert_eq!(tried.cause(&preset, &keys), cause, "{header}");
    }
}

#[test]
fn a_list_longer_than_any_provider_sends_is_refused_unread() {
    let (preset, key, delivery) = signed_at(0);
    let value = delivery.headers.iter().next().unwrap().1.to_owned();
    let padding = ",v1=00".repeat(1_000);
    let long = delivery.with("stripe-signature", Some(&format!("{value}{padding}")));
    assert_eq!(long.cause(&preset, &[key]), "too_many_signatures");
}

#[test]
fn a_secret_is_tried_on_more_signatures_than_a_public_key() {
    let preset = preset("standard-webhooks");
    let key = preset.key("k", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
    let signed = Delivery::post("{}").header("webhook-id", "m").signed(&preset, &key, NOW_MS);
    let HeaderLookup::Once(good) = signed.headers.get("webhook-signature") else { panic!() };
    let value = format!("{}{good}", format!("v1,{}= ", "A".repeat(43)).repeat(9));
    let tried = signed.with("webhook-signature", Some(&value));
    assert_eq!(tried.cause(&preset, std::slice::from_ref(&key)), "verified");
}

#[test]
fn mollie_signs_with_both_secrets_for_a_day_in_a_header_each() {
    let preset = preset("mollie");
    let [old, new] = ["an old secret of some length", "a new secret of some length"]
        .map(|text| preset.key("k", text).unwrap());
    let value = |key: &verifier::Key| {
        let signed = Delivery::post("{}").signed(&preset, key, NOW_MS);
        let HeaderLookup::Once(value) = signed.headers.get("x-mollie-signature") else { panic!() };
        value.to_owned()
    };
    let (by_old, by_new) = (value(&old), value(&new));
    let lines = Delivery::post("{}")
        .header("x-mollie-signature", &by_old)
        .header("x-mollie-signature", &by_new);
    let joined = |by: &str| {
        Delivery::post("{}").header("x-mollie-signature", &format!("{by_old}{by}{by_new}"))
    };
    for delivery in [lines, joined(","), joined(", ")] {
        for key in [&old, &new] {
            assert_eq!(delivery.cause(&preset, std::slice::from_ref(key)), "verified");
        }
        let other = preset.key("k", "another secret of some length").unwrap();
        assert_eq!(delivery.cause(&preset, &[other]), "no_signature_matched");
    }
    let bare = by_new.strip_prefix("sha256=").unwrap();
    let unprefixed = Delivery::post("{}").header("x-mollie-signature", bare);
    assert_eq!(unprefixed.cause(&preset, &[new]), "scheme_refused");
}

#[test]
fn a_malformed_signature_is_told_the_spelling() {
    for (name, secret, header, spelling) in [
        ("github", "gh-secret-01", "x-hub-signature-256", "lower-case hex"),
        ("shopify", "shpss_0123456789abcdef", "x-shopify-hmac-sha256", "canonical base64"),
    ] {
        let preset = preset(name);
        let key = preset.key("k", secret).unwrap();
        let signed = Delivery::post("{}").signed(&preset, &key, NOW_MS);
        let rejection = signed.with(header, Some("sha256=!")).verify(&preset, &[key]).unwrap_err();
        assert!(rejection.to_string().contains(spelling), "{rejection}");
    }
}

#[test]
fn only_canonical_spellings_are_signatures() {
    let hex = preset("github");
    let key = hex.key("k", "gh-secret-01").unwrap();
    let signed = Delivery::post("{}").signed(&hex, &key, NOW_MS);
    let value = signed.headers.iter().next().unwrap().1.to_owned();
    let keys = [key];
    for spelled in [
        value.to_uppercase().replace("SHA256=", "sha256="),
        format!("{value} "),
        format!(" {value}"),
        format!("{value}0"),
        value.replace("sha256=", "sha256=0x"),
    ] {
        let tried = signed.with("x-hub-signature-256", Some(&spelled));
        assert_ne!(tried.cause(&hex, &keys), "verified", "{spelled}");
    }
    let base64 = preset("shopify");
    let key = base64.key("k", "shop-secret-01").unwrap();
    let signed = Delivery::post(r#"{"action":"opened","number":1}"#);
    let keys = [key];
    let tried =
        |value: &str| signed.clone().header("x-shopify-hmac-sha256", value).cause(&base64, &keys);
    assert_eq!(tried("Ln7VFbkc036xv6n+Nt8p5f1FuKtMvilzwmU+jElLpSk="), "verified");
    assert_eq!(tried("Ln7VFbkc036xv6n+Nt8p5f1FuKtMvilzwmU+jElLpSk"), "header_malformed");
    assert_eq!(tried("Ln7VFbkc036xv6n-Nt8p5f1FuKtMvilzwmU-jElLpSk="), "header_malformed");
    assert_eq!(tried("Ln7VFbkc036xv6n+Nt8p5f1FuKtMvilzwmU+jElLpSl="), "header_malformed");
    assert_eq!(tried("Ln7VFbkc036xv6n+Nt8p5f1FuKtMvilzwmU+jElLpSk=\n"), "header_malformed");
    assert_eq!(
        tried("2e7ed515b91cd37eb1bfa9fe36df29e5fd45b8ab4cbe2973c2653e8c494ba529"),
        "header_malformed"
    );
    assert_eq!(tried("%%%"), "header_malformed");
}

#[test]
fn without_a_usable_key_the_fault_is_ours() {
    let (preset, _, delivery) = signed_at(0);
    let rejection = delivery.verify(&preset, &[]).unwrap_err();
    assert_eq!(rejection, Rejection::NoUsableKey);
    assert!(rejection.is_ours());
    let public = crate::support::preset("standard-webhooks")
        .key("k", "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4=")
        .unwrap();
    assert_eq!(delivery.cause(&preset, &[public]), "no_usable_key");
    let bare = delivery.with("stripe-signature", None);
    assert_eq!(bare.cause(&preset, &[]), "header_missing", "a stranger learns nothing");
}

#[test]
fn any_of_several_live_keys_verifies_under_its_own_name() {
    let (preset, key, delivery) = signed_at(0);
    let others = ["a", "b"].map(|kid| preset.key(kid, &format!("whsec_{kid}")).unwrap());
    let keys = [others[0].clone(), key, others[1].clone()];
    assert_eq!(delivery.verify(&preset, &keys).unwrap().kid, "2026-11");
    let rejection = delivery.verify(&preset, &others).unwrap_err();
    assert_eq!(rejection, Rejection::NoSignatureMatched);
    assert!(rejection.may_heal_with_newer_keys());
}

#[test]
fn the_url_is_the_configured_one_whatever_the_headers_say() {
    let preset = preset("square");
    let key = preset.key("k", "secret-1").unwrap();
    let delivery = Delivery::post("{}").at("https://hooks.example/webhooks/square");
    let signed = delivery.signed(&preset, &key, NOW_MS);
    let keys = [key];
    let spoofed =
        signed.clone().header("host", "evil.example").header("x-forwarded-host", "evil.example");
    assert_eq!(spoofed.cause(&preset, &keys), "verified");
    let moved = signed.clone().at("https://evil.example/webhooks/square");
    assert_eq!(moved.cause(&preset, &keys), "no_signature_matched");
    let slash = signed.clone().at("https://hooks.example/webhooks/square/");
    assert_eq!(slash.cause(&preset, &keys), "no_signature_matched");
    let mut bare = signed;
    bare.public_url = None;
    assert_eq!(bare.cause(&preset, &keys), "no_public_url");
}

#[test]
fn refusals_repeat_nothing_that_the_sender_chose() {
    let canary = "canary5f1d0c7a";
    let (preset, key, delivery) = signed_at(0);
    let keys = [key];
    for header in [
        format!("t={canary},v1={canary}"),
        format!("t={NOW_S},v1={}", "0".repeat(64)),
        format!("{canary}={canary}"),
        canary.repeat(100),
    ] {
        let rejection =
            delivery.with("stripe-signature", Some(&header)).verify(&preset, &keys).unwrap_err();
        let printed = format!("{rejection} {rejection:?}");
        assert!(!printed.contains("canary"), "{printed}");
        assert!(!printed.contains("00000000"), "{printed}");
    }
    let request = Delivery::post(canary).header("authorization", canary);
    let event = Delivery::post(format!(r#"{{"id":"e","x":"{canary}"}}"#));
    let printed = format!("{:?} {:?}", request.headers, event.event(&preset));
    assert!(!printed.contains("canary"), "{printed}");
}

#[test]
fn no_more_public_key_signatures_are_tried_than_a_source_has_keys() {
    let preset = preset("standard-webhooks");
    let private = preset
        .key(
            "k",
            "whsk_nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2DXWpgBgrEKt9VL/tPJZAc6DuFy89qmIyWvAhpo9wdRGg==",
        )
        .unwrap();
    let signed = Delivery::post("{}").header("webhook-id", "m").signed(&preset, &private, NOW_MS);
    let HeaderLookup::Once(good) = signed.headers.get("webhook-signature") else { panic!() };
    let other = format!("v1a,{}==", "A".repeat(86));
    for (others, verdict) in [(0, "verified"), (2, "verified"), (3, "too_many_signatures")] {
        let value = format!("{}{good}", format!("{other} ").repeat(others));
        let tried = signed.with("webhook-signature", Some(&value));
        assert_eq!(tried.cause(&preset, std::slice::from_ref(&private)), verdict, "{others}");
    }
}
