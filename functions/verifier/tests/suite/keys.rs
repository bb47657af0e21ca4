//! What is a key and what only looks like one.

use verifier::{KeyDefect, check_secret};

use crate::support::{overridden, preset};

#[test]
fn empty_padded_and_placeholder_texts_are_no_keys() {
    let preset = preset("stripe");
    for text in ["", " ", "\n", "\t "] {
        assert_eq!(preset.key("k", text).unwrap_err(), KeyDefect::Empty);
    }
    for text in ["whsec_a ", " whsec_a", "whsec_a\n", "\u{feff}whsec_a", "whsec_a\u{a0}"] {
        assert_eq!(preset.key("k", text).unwrap_err(), KeyDefect::Padded);
    }
    for text in [
        "changeme",
        "CHANGE_ME",
        "change-me",
        "replace-me",
        "TODO",
        "tbd",
        "placeholder",
        "null",
        "undefined",
        "<secret>",
        "${UNEXPANDED}",
        "{{ secret }}",
        "whsec_...",
        "whsec_xxxxxxxx",
        "xxxxxxxx",
        "********",
        "your-secret-here",
        "YOUR_WEBHOOK_SECRET",
    ] {
        assert_eq!(preset.key("k", text).unwrap_err(), KeyDefect::Placeholder, "{text}");
    }
    assert!(matches!(preset.key("k", "whsec\u{0}a").unwrap_err(), KeyDefect::Malformed { .. }));
}

#[test]
fn real_keys_of_every_form_are_taken() {
    for (name, text) in [
        ("stripe", "whsec_5WbX5kEWLlfzsGNjH64I8lOOqUB6e8FH"),
        ("github", "It's a Secret to Everybody"),
        ("shopify", "shpss_0123456789abcdef"),
        ("standard-webhooks", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
        ("standard-webhooks", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
        ("standard-webhooks", "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4="),
        ("adyen", "DFB1EB5485895CFA84146406857104ABB4CBCABDC8AAF103A624C8F6A3EAAB00"),
        ("chargebee", "hook-user:p:a:s:s"),
        ("braintree", "public:private"),
        ("twilio", "12345"),
    ] {
        assert!(preset(name).key("k", text).is_ok(), "{name}");
    }
}

#[test]
fn a_key_in_another_providers_form_is_malformed() {
    for (name, text) in [
        ("standard-webhooks", "whsec_not base64"),
        ("standard-webhooks", "whsec_c2hvcnQ="),
        ("standard-webhooks", "whpk_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="),
        ("adyen", "not hex"),
        ("adyen", "ABC"),
        ("chargebee", "no-colon"),
        ("braintree", ":private"),
        ("braintree", "public:"),
        ("mollie-classic", "any"),
    ] {
        assert!(
            matches!(preset(name).key("k", text), Err(KeyDefect::Malformed { .. })),
            "{name} {text}"
        );
    }
}

#[test]
fn a_malformed_key_is_told_its_form() {
    let p256 = overridden("github", "[verify]\nalgorithm = \"ecdsa-p256-sha256\"\nkey = \"p256\"");
    let told = |preset: &verifier::Preset| preset.key("k", "not it").unwrap_err().to_string();
    for (preset, form) in [
        (&preset("adyen"), "an even number of hexadecimal digits"),
        (
            &preset("standard-webhooks"),
            "`whsec_` and base64 of 16 to 64 bytes, or `whpk_` and a public key",
        ),
        (&preset("braintree"), "a name, a colon, and a secret"),
        (&p256, "a P-256 public key as PEM, base64 or JWK"),
    ] {
        assert_eq!(told(preset), format!("the key is malformed: expected {form}"));
    }
}

#[test]
fn only_a_pem_file_may_end_in_a_newline() {
    let preset =
        overridden("github", "[verify]\nalgorithm = \"ecdsa-p256-sha256\"\nkey = \"p256\"");
    let pem = "-----BEGIN PUBLIC KEY-----\n\
               MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEaxfR8uEsQkf4vOblY6RA8ncDfYEt\n\
               6zOg9KE5RdiYwpZP40Li/hp/m47n60p8D54WK84zV2sxXs7LtkBoN79R9Q==\n\
               -----END PUBLIC KEY-----\n";
    assert!(preset.key("k", pem).is_ok());
    let bare: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    assert!(preset.key("k", &bare).is_ok());
    assert_eq!(preset.key("k", &format!("{bare}\n")).unwrap_err(), KeyDefect::Padded);
}

#[test]
fn a_secret_that_is_shown_is_checked_like_a_key() {
    // None is a placeholder: each has one mark of those alone.
    for text in ["rk_live_5f1d", "your-5f1d0c7a", "yoursecret5f1d", "my-secret-5f1d"] {
        assert_eq!(check_secret(text), Ok(()), "{text}");
    }
    for (text, defect) in [
        ("", KeyDefect::Empty),
        ("rk_live_5f1d\n", KeyDefect::Padded),
        ("your-api-key", KeyDefect::Placeholder),
        ("rk\u{7}", KeyDefect::Malformed { expected: "printable text" }),
    ] {
        assert_eq!(check_secret(text), Err(defect), "{text:?}");
    }
}

#[test]
fn nothing_prints_a_key() {
    let canary = "canary-5f1d0c7a-secret";
    let preset = preset("stripe");
    let key = preset.key("2026-11", canary).unwrap();
    assert_eq!(key.kid(), "2026-11");
    let padded = preset.key("2026-11", &format!("{canary} ")).unwrap_err();
    let malformed = crate::support::preset("adyen").key("k", canary).unwrap_err();
    for printed in [
        format!("{key:?}"),
        format!("{key:#?}"),
        format!("{padded} {padded:?}"),
        format!("{malformed} {malformed:?}"),
    ] {
        assert!(!printed.contains("canary"), "{printed}");
    }
}
